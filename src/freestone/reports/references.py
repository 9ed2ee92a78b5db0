"""Counts by valgrind as tables: what each configuration takes in references, and in which functions."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from freestone.records.schema import HeapCount, InstructionCount, InstructionCounts
from freestone.reports import functions, grid, quantities
from freestone.reports.grid import Grid, Mark, Piece

FUNCTIONS = 5
"""So many are shown of each configuration; the file holds more."""

HOW = (
    "Counted by cachegrind in runs of their own, never timed: the program's whole life with its start-up, and the "
    "witness, which proves who served malloc. Caches are simulated; threads take turns, so that those which wait by "
    "spinning vary from run to run."
)
_HEADS = ("instructions", "ratio", "data reads", "data writes", "D1 misses", "LLd misses")
_NOTHING = "–"
_ASCII = str.maketrans({_NOTHING: "-", "×": "x", "·": ","})


@dataclass(frozen=True)
class Part:
    """What is said of one workload."""

    command: str
    remarks: list[str]
    """Why a configuration has no counts, and what is not in them."""
    references: Grid
    functions: Grid
    requests: str
    """What the program asks of malloc, in a sentence; empty where it was not counted."""


def parts(counts: InstructionCounts, baseline: str) -> dict[str, Part]:
    """By workload."""
    heaps = {each.workload: each for each in counts.heaps}
    names = dict.fromkeys([*(each.workload for each in counts.counts), *heaps])
    return {
        name: _part(name, [each for each in counts.counts if each.workload == name], heaps.get(name), baseline)
        for name in names
    }


def render(counts: InstructionCounts, baseline: str, *, width: int, colour: bool, ascii_only: bool = False) -> str:
    """For a terminal."""

    def filled(words: str) -> str:
        return textwrap.fill(words, width, break_on_hyphens=False)

    lines = []
    for part in parts(counts, baseline).values():
        for table in (part.references, part.functions):
            if table.rows:
                lines.append(grid.text(table, width=width, colour=colour, ascii_only=ascii_only))
        if part.requests:
            lines.append(f"{filled(part.requests)}\n")
    text = "\n".join([*lines, filled(HOW)])
    return text.translate(_ASCII) if ascii_only else text


def _part(workload: str, counts: Sequence[InstructionCount], heap: HeapCount | None, baseline: str) -> Part:
    command = shlex.join(counts[0].command if counts else heap.command if heap is not None else [])
    against = next((each.instructions for each in counts if each.configuration == baseline), None)
    good = [each for each in counts if each.status == "ok"]
    remarks = _remarks(counts)
    return Part(
        command,
        remarks,
        Grid(
            workload,
            ["", *_HEADS],
            [_row(each, None if each.configuration == baseline else against) for each in counts],
            "; ".join([f"Counted: {command}", *remarks]),
            together=2,
        ),
        Grid(
            f"{workload}, share of the instructions",
            ["", "functions"],
            [[Piece(each.configuration), Piece(_functions(each))] for each in good],
            left=frozenset({0, 1}),
        ),
        _requests(heap) if heap is not None else "",
    )


def _row(count: InstructionCount, against: int | None) -> list[Piece]:
    if count.status != "ok":
        rest = [Piece(_NOTHING, "same")] * (len(_HEADS) - 1)
        return [Piece(count.configuration), Piece(quantities.STATUS_WORDS[count.status], "worse"), *rest]
    ratio = count.instructions / against if count.instructions and against else None
    mark: Mark = "" if ratio is None or 0.995 <= ratio < 1.005 else "better" if ratio < 1 else "worse"
    return [
        Piece(count.configuration),
        Piece(_number(count.instructions)),
        Piece("" if ratio is None else f"×{ratio:.2f}", mark),
        *(Piece(_number(each)) for each in (count.data_reads, count.data_writes, count.d1_misses, count.lld_misses)),
    ]


def _remarks(counts: Iterable[InstructionCount]) -> list[str]:
    said: dict[str, list[str]] = {}
    for each in counts:
        for remark in [each.reason or "no reason recorded"] if each.status != "ok" else each.notes:
            said.setdefault(remark, []).append(each.configuration)
    return [f"{', '.join(names)}: {remark}" for remark, names in said.items()]


def _functions(count: InstructionCount) -> str:
    whole = count.instructions or 1
    shares: dict[str, float] = {}  # several instances of one template are one line
    for each in count.functions:
        name = functions.spoken(each.name, each.file)
        shares[name] = shares.get(name, 0.0) + each.instructions / whole
    most = sorted(shares.items(), key=lambda each: -each[1])[:FUNCTIONS]
    return " · ".join(f"{share:.0%} {name}".replace("%", " %", 1) for name, share in most)


def _requests(heap: HeapCount) -> str:
    if heap.status != "ok":
        return f"Requests to malloc: {quantities.STATUS_WORDS[heap.status]}: {heap.reason}"
    return (
        f"Requests to malloc, by memcheck, the same under every allocator: {_number(heap.allocations)} allocations of "
        f"{_number(heap.allocated_bytes)} bytes together, {_number(heap.frees)} frees, {_number(heap.in_use_bytes)} "
        f"bytes in {_number(heap.in_use_blocks)} blocks left at exit."
    )


def _number(value: int | None) -> str:
    return _NOTHING if value is None else f"{value:,}"
