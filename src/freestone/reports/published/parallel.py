"""One parallel loop of small allocations: libc's malloc against TBB's allocator, without optimisation and with."""

from __future__ import annotations

from collections.abc import Iterable

from freestone.reports.grid import Grid, Piece
from freestone.reports.published import tables
from freestone.reports.published.reproduction import Finding, FindingKind, Measured, Point, Reproduction, side

_LEVELS = ("O0", "O3")
_THROUGH = ("libc", "tbb")


def reproduce(measured: Measured) -> Reproduction | None:
    """Needs both ways of allocating at one level, under whatever served malloc."""
    here = {
        (name, level): ratio
        for name in measured.configurations
        for level in _LEVELS
        if (ratio := _ratio(measured, name, level)) is not None
    }
    if not here:
        return None
    rows = tables.rows("parallel-allocation")
    there = {
        (row["system"], level): tbb / libc
        for row in rows
        for level in _LEVELS
        if (tbb := tables.number(row, f"tbb_{level}_ms")) is not None
        and (libc := tables.number(row, f"libc_{level}_ms")) is not None
    }
    return Reproduction(
        title="Small allocations in a parallel loop",
        source="notes on allocation time: parallel-allocation.csv",
        axis="time through TBB's allocator, ratio to malloc",
        points=[
            *(Point(f"-{level}", system, False, ratio) for (system, level), ratio in there.items()),
            *(Point(f"-{level}", name, True, ratio) for (name, level), ratio in here.items()),
        ],
        table=_table(measured, rows),
        findings=[*_against_tbb(here, there), *_optimised(measured, rows)],
    )


def _workload(level: str, through: str) -> str:
    return f"parallel-{level}-{through}"


def _ratio(measured: Measured, name: str, level: str) -> float | None:
    tbb, libc = (measured.time(_workload(level, through), name) for through in ("tbb", "libc"))
    return None if tbb is None or not libc else tbb / libc


def _table(measured: Measured, rows: tuple[tables.Row, ...]) -> Grid:
    columns = [(through, level) for level in _LEVELS for through in _THROUGH]
    lines = [
        [
            Piece(f"{row['system']}, published"),
            *(Piece(_milliseconds(tables.number(row, f"{through}_{level}_ms"))) for through, level in columns),
        ]
        for row in rows
    ]
    for name in measured.configurations:
        times = [measured.time(_workload(level, through), name) for through, level in columns]
        if any(time is not None for time in times):
            lines.append(
                [Piece(name, "title"), *(Piece("–" if time is None else f"{time * 1000:,.0f}") for time in times)]
            )
    return Grid(
        "Milliseconds",
        ["malloc by", *(f"{'malloc' if through == 'libc' else 'TBB'} -{level}" for through, level in columns)],
        lines,
        "Published: 175 million objects. error: the published run had no such library. There is no musl build here: "
        "Debian has neither TBB nor a C++ library for it.",
    )


def _milliseconds(value: float | None) -> str:
    return "error" if value is None else f"{value:,.0f}"


def _against_tbb(here: dict[tuple[str, str], float], there: dict[tuple[str, str], float]) -> Iterable[Finding]:
    glibc = next((system for system, _ in there if "VM, glibc" in system and "Docker" not in system), None)
    for level in _LEVELS:
        ours, theirs = here.get(("glibc", level)), there.get((glibc or "", level))
        if ours is None or theirs is None:
            continue
        kind: FindingKind = "agrees" if side(ours) == side(theirs) else "differs"
        yield Finding(
            kind, f"-{level}: TBB's allocator takes {theirs:.2f} times glibc's time on {glibc}, {ours:.2f} times here."
        )
    musl = {level: ratio for (system, level), ratio in there.items() if "Alpine" in system and "VM" in system}
    if musl:
        said = " and ".join(f"{1 / ratio:.0f} times at -{level}" for level, ratio in musl.items())
        yield Finding("open", f"TBB's allocator beat musl's malloc {said} there; there is no TBB for musl here.")
    own = here.get(("freestone", "O3"))
    if own is not None:
        yield Finding("open", f"libfreestone was in nobody's table: here TBB takes {own:.2f} times its time at -O3.")


def _optimised(measured: Measured, rows: tuple[tables.Row, ...]) -> Iterable[Finding]:
    """What the compiler's optimisation is worth: it shrinks the loop, not the allocation."""
    row = rows[0]
    for through in _THROUGH:
        slow, fast = (tables.number(row, f"{through}_{level}_ms") for level in _LEVELS)
        times = [measured.time(_workload(level, through), "glibc") for level in _LEVELS]
        if slow is None or fast is None or times[0] is None or times[1] is None:
            continue
        theirs, ours = slow / fast, times[0] / times[1]
        kind: FindingKind = "agrees" if ours > 1 + (theirs - 1) / 4 else "differs"
        yield Finding(
            kind,
            f"{'malloc' if through == 'libc' else 'TBB'}: -O0 takes {theirs:.1f} times as long as -O3 there, "
            f"{ours:.1f} times here.",
        )
