"""The same parallel loop, counted by valgrind: instructions and references of malloc's way and of TBB's, at -O3."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from freestone.records.schema import HeapCount, InstructionCount, InstructionCounts
from freestone.reports.grid import Grid, Piece
from freestone.reports.published import tables
from freestone.reports.published.reproduction import Finding, FindingKind, Point, Reproduction, side

THERE = 175_000_000
"""Objects of the published runs."""

_WORKLOADS = {"libc": "parallel-O3-libc", "tbb": "parallel-O3-tbb"}
_SPOKEN = {"libc": "malloc", "tbb": "TBB"}
_BASELINE = "glibc"
_ALIKE = 0.01
"""Allocations an object that count as one, or as none."""


@dataclass(frozen=True)
class References:
    """Of one run, an object."""

    instructions: float
    reads: float
    writes: float

    @property
    def data(self) -> float:
        return self.reads + self.writes


@dataclass(frozen=True)
class Requests:
    """What memcheck saw of one run."""

    allocations: float
    allocated_bytes: float
    objects: float

    @property
    def each(self) -> float:
        """Allocations an object."""
        return self.allocations / self.objects


def reproduce(counts: InstructionCounts) -> Reproduction | None:
    """Needs both ways at -O3 counted under one configuration."""
    here: dict[str, dict[str, References]] = {}
    for through, workload in _WORKLOADS.items():
        for count in counts.counts:
            found = _references(count) if count.workload == workload else None
            if found is not None:
                here.setdefault(count.configuration, {})[through] = found
    here = {name: ways for name, ways in here.items() if len(ways) == len(_WORKLOADS)}
    if not here:
        return None
    rows = {row["allocator"].partition(" ")[0]: row for row in tables.rows("parallel-allocation-valgrind")}
    there = {through: _published(rows[through]) for through in _WORKLOADS}
    asked_there = {
        through: Requests(float(row["allocs"]), float(row["bytes_allocated"]), THERE) for through, row in rows.items()
    }
    asked = {
        through: requests
        for through, workload in _WORKLOADS.items()
        for heap in counts.heaps
        if heap.workload == workload and (requests := _requests(heap)) is not None
    }
    return Reproduction(
        title="Small allocations in a parallel loop, counted",
        source="notes on allocation time: parallel-allocation-valgrind.csv",
        axis="through TBB's allocator, ratio to malloc",
        points=[
            *_points("published", False, there),
            *(p for name, ways in here.items() for p in _points(name, True, ways)),
        ],
        table=_table(there, asked_there, here, asked),
        findings=[*_against_tbb(there, here), *_memcheck(asked_there, asked), *_ours(here)],
    )


def _references(count: InstructionCount) -> References | None:
    objects = _objects(count.command)
    if count.status != "ok" or not objects:
        return None
    values = (count.instructions, count.data_reads, count.data_writes)
    return References(*((value or 0) / objects for value in values)) if all(values) else None


def _requests(heap: HeapCount) -> Requests | None:
    objects = _objects(heap.command)
    if heap.status != "ok" or heap.allocations is None or heap.allocated_bytes is None or not objects:
        return None
    return Requests(heap.allocations, heap.allocated_bytes, objects)


def _objects(command: list[str]) -> float | None:
    try:
        return float(command[command.index("--objects") + 1])
    except (ValueError, IndexError):
        return None


def _published(row: tables.Row) -> References:
    return References(*(float(row[column]) / THERE for column in ("instruction_refs", "data_reads", "data_writes")))


def _points(name: str, measured: bool, ways: dict[str, References]) -> Iterable[Point]:
    libc, tbb = ways["libc"], ways["tbb"]
    yield Point("instructions", name, measured, tbb.instructions / libc.instructions)
    yield Point("data reads", name, measured, tbb.reads / libc.reads)
    yield Point("data writes", name, measured, tbb.writes / libc.writes)


def _table(
    there: dict[str, References],
    asked_there: dict[str, Requests],
    here: dict[str, dict[str, References]],
    asked: dict[str, Requests],
) -> Grid:
    def line(name: Piece, found: References, requests: Requests | None) -> list[Piece]:
        numbers = [f"{found.instructions:,.1f}", f"{found.reads:,.1f}", f"{found.writes:,.1f}"]
        said = ["–", "–"] if requests is None else [f"{requests.allocations:,.0f}", f"{requests.each:.3f}"]
        return [name, *(Piece(each) for each in (*numbers, *said))]

    lines = [
        line(Piece(f"{_SPOKEN[through]}, published"), there[through], asked_there[through]) for through in _WORKLOADS
    ]
    for name, ways in here.items():
        lines += [
            line(Piece(f"{_SPOKEN[through]}, {name}", "title"), ways[through], asked.get(through))
            for through in _WORKLOADS
        ]
    return Grid(
        "References an object, -O3",
        ["through", "instructions", "data reads", "data writes", "allocations", "an object"],
        lines,
        f"Published: {THERE // 10**6} million objects. Start-up is in all of them, and weighs more in a small run.",
    )


def _against_tbb(there: dict[str, References], here: dict[str, dict[str, References]]) -> Iterable[Finding]:
    ways = here.get(_BASELINE)
    if ways is None:
        return
    for what in ("instructions", "data"):
        theirs, ours = (getattr(each["tbb"], what) / getattr(each["libc"], what) for each in (there, ways))
        kind: FindingKind = "agrees" if side(ours) == side(theirs) else "differs"
        spoken = "instructions" if what == "instructions" else "data references"
        yield Finding(
            kind,
            f"TBB's allocator takes {theirs:.2f} times the {spoken} of glibc's malloc there, {ours:.2f} times here.",
        )


def _memcheck(there: dict[str, Requests], here: dict[str, Requests]) -> Iterable[Finding]:
    """What memcheck says of allocations: of malloc all of them, of TBB's allocator none."""
    if "libc" in here:
        each = here["libc"]
        kind: FindingKind = "agrees" if abs(each.each - there["libc"].each) < _ALIKE else "differs"
        yield Finding(
            kind,
            f"Through malloc there are {there['libc'].each:.2f} allocations an object there, {each.each:.2f} here, "
            f"of {_mean(there['libc']):.1f} and {_mean(each):.1f} bytes.",
        )
    if "tbb" in here:
        unseen = here["tbb"].each < _ALIKE
        yield Finding(
            "artefact" if unseen else "differs",
            f"Published: {there['tbb'].allocations:,.0f} allocations through TBB"
            + (
                f", and {here['tbb'].allocations:,.0f} here. memcheck counts calls of malloc; TBB's allocator takes "
                "its memory past it, one block for every object all the same."
                if unseen
                else f"; {here['tbb'].allocations:,.0f} here."
            ),
        )


def _mean(requests: Requests) -> float:
    return requests.allocated_bytes / requests.allocations


def _ours(here: dict[str, dict[str, References]]) -> Iterable[Finding]:
    own, base = here.get("freestone"), here.get(_BASELINE)
    if own is not None and base is not None:
        ratio = own["libc"].instructions / base["libc"].instructions
        yield Finding(
            "open", f"libfreestone was in nobody's table: here its malloc takes {ratio:.2f} times glibc's instructions."
        )
