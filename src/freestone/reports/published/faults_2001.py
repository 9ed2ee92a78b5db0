"""Ezolt's study of 2001: blocks of 128 KiB that go back to the kernel at every free, and what cured it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from freestone.records.schema import FIGURE
from freestone.reports.grid import Grid, Piece
from freestone.reports.published import tables
from freestone.reports.published.reproduction import Finding, Measured, Point, Reproduction

_SIZES = {"126 KiB": "loop-126K-all", "127 KiB": "loop-127K-all", "128 KiB": "loop-128K-all"}
_PAGES = {"126 KiB": 31.5, "127 KiB": 31.75, "128 KiB": 32.0}
_PLAIN, _TUNED = "glibc", "glibc+no-mmap-no-trim"
_MANY = 0.5
"""Faults a round, as a share of the block's pages, from which on there are many."""
_FEW = 0.001


@dataclass(frozen=True)
class Loop:
    """Faults a round after the first, and seconds in the kernel and in all."""

    faults: float
    system_s: float
    wall_s: float


def reproduce(measured: Measured) -> Reproduction | None:
    """Needs one of the three sizes under glibc as it is."""
    loops = {
        (size, name): loop
        for size, workload in _SIZES.items()
        for name in measured.configurations
        if (loop := _loop(measured, workload, name)) is not None
    }
    if not any(name == _PLAIN for _, name in loops):
        return None
    rows = {row["case"]: row for row in tables.rows("minor-faults-2001")}
    names = [name for name in measured.configurations if any(name == each for _, each in loops)]
    return Reproduction(
        title="Blocks of 126, 127 and 128 KiB",
        source='Ezolt, "A Study in Malloc: A Case of Excessive Minor Faults", 2001: minor-faults-2001.csv',
        axis="faults a round, share of the block's pages",
        points=[Point(size, name, True, max(loop.faults / _PAGES[size], _FEW)) for (size, name), loop in loops.items()],
        table=Grid(
            "Page faults in every malloc, write and free after the first",
            ["", *_SIZES],
            [
                [
                    Piece("glibc of 2001, published"),
                    *(Piece("many" if _had_many(rows[each]) else "none") for each in _SIZES),
                ],
                *([Piece(name), *(Piece(_faults(loops.get((size, name)))) for size in _SIZES)] for name in names),
            ],
            "A block of 128 KiB has 32 pages.",
        ),
        findings=[*_classes(loops, rows), *_cure(loops, rows)],
    )


def _loop(measured: Measured, workload: str, name: str) -> Loop | None:
    faults = measured.median(workload, name, f"{FIGURE}later_faults")
    rounds = measured.option(workload, "--rounds")
    system, wall = measured.median(workload, name, "sys_s"), measured.median(workload, name, "wall_s")
    if faults is None or rounds is None or rounds < 2 or system is None or wall is None:
        return None
    return Loop(faults / (rounds - 1), system, wall)


def _had_many(row: tables.Row) -> bool:
    return row["many_minor_faults"] == "yes"


def _has_many(loop: Loop, size: str) -> bool:
    return loop.faults >= _MANY * _PAGES[size]


def _classes(loops: Mapping[tuple[str, str], Loop], rows: Mapping[str, tables.Row]) -> Iterable[Finding]:
    same: list[str] = []
    other: list[str] = []
    for size in _SIZES:
        loop = loops.get((size, _PLAIN))
        if loop is None:
            continue
        there, here = _had_many(rows[size]), _has_many(loop, size)
        words = f"{size} {'many' if there else 'none'} there, {loop.faults:.3g} a round here"
        (same if there == here else other).append(words)
    if same:
        yield Finding("agrees", f"Faults under glibc as it is: {'; '.join(same)}.")
    if other:
        yield Finding(
            "differs",
            f"Faults under glibc as it is: {'; '.join(other)}. Since glibc 2.4 the size from which blocks are "
            "mappings of their own, and that from which the top is given back, grow with the first such block that is "
            "freed.",
        )


def _cure(loops: Mapping[tuple[str, str], Loop], rows: Mapping[str, tables.Row]) -> Iterable[Finding]:
    before, after = (rows[f"glibc {case}"] for case in ("default", "M_MMAP_MAX=0 M_TRIM_THRESHOLD=-1"))
    there = [tables.number(row, column) for column in ("minor_faults", "elapsed") for row in (before, after)]
    faults_before, faults_after, elapsed_before, elapsed_after = (value or 0.0 for value in there)
    said = (
        f"M_MMAP_MAX=0 with M_TRIM_THRESHOLD=-1 took {faults_before:,.0f} faults to {faults_after:,.0f} and the "
        f"elapsed time to {elapsed_after / elapsed_before:.2f} of what it was"
    )
    size = "128 KiB"
    plain, tuned = loops.get((size, _PLAIN)), loops.get((size, _TUNED))
    if plain is None or tuned is None:
        yield Finding("open", f"{said}; the setting was not measured here.")
        return
    slower = tuned.wall_s / plain.wall_s
    seen = f"here, at {size}: {plain.faults:.3g} faults a round to {tuned.faults:.3g}, time to {slower:.2f}"
    if not _has_many(plain, size):
        yield Finding("differs", f"{said}; {seen}. There is nothing left to cure at this size.")
    elif tuned.faults < plain.faults / 10 and tuned.wall_s < plain.wall_s:
        yield Finding("agrees", f"{said}; {seen}.")
    else:
        yield Finding("differs", f"{said}; {seen}.")


def _faults(loop: Loop | None) -> str:
    return "–" if loop is None else f"{loop.faults:.3g}"
