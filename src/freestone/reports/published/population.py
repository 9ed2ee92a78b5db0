"""A study of rpmalloc on mimalloc-bench: how it stands beside others, and what populating ahead does to it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from freestone.reports.grid import Grid, Piece
from freestone.reports.published import tables
from freestone.reports.published.reproduction import SAME, Finding, FindingKind, Measured, Point, Reproduction, side

_HERE = {
    "larsonN-sized": ("server-4cores-threads", "server-cores-threads"),
    "sh6benchN": ("mixed-sh6-4cores-threads", "mixed-sh6-cores-threads"),
    "sh8benchN": ("mixed-sh8-4cores-threads", "mixed-sh8-cores-threads"),
    "xmalloc-testN": ("pipeline-4cores-to-1", "pipeline-8-to-1", "pipeline-1-to-1"),
    "cache-scratchN": ("cache-scratch-4cores-threads", "cache-scratch-cores-threads"),
    "malloc-large": ("random-large",),
    "redis": ("redis-commands",),
    "rocksdb": ("rocksdb-fill-read",),
    "lua": ("lua-keys",),
    "gs": ("ghostscript-pages",),
    "z3": ("z3-pigeons",),
}
"""Published program -> workloads written after the same description, or the same program with another input."""

_ALLOCATORS = {"rp": "rpmalloc", "mi": "mimalloc", "tc": "tcmalloc"}
_BOTH_WAYS = (("rpmalloc", "rpmalloc", "rpmalloc-populated"), ("libfreestone", "freestone", "freestone+populate"))
"""Title; and its configurations without and with populating ahead."""
_REFERENCE, _BASELINE = "sys", "glibc"
_TABLE, _PEAK = "mimalloc-bench-rpmalloc-populate", "peak_rss_kib"
_SMALL = 4
"""A smallest program of more than this many times the published one's peak says nothing of launchers."""

_ASPECTS = {"seconds": "time", "peak_rss_kib": "peak RSS", "minor_faults": "minor faults"}


@dataclass(frozen=True)
class Pair:
    """One allocator against glibc in one program: there and here."""

    program: str
    name: str
    aspect: str
    there: float
    here: float

    @property
    def agree(self) -> bool:
        """The same side of 1, or both near it."""
        return side(self.there) == side(self.here)


def reproduce(measured: Measured) -> Reproduction | None:
    """Needs glibc, one of the three others, and two of the programs."""
    if _BASELINE not in measured.configurations:
        return None
    published = _published("arm64", "original")
    pairs = [pair for aspect in _ASPECTS for pair in _pairs(measured, published, aspect)]
    if len({pair.program for pair in pairs}) < 2:
        return None
    timed = [pair for pair in pairs if pair.aspect == "time"]
    return Reproduction(
        title="rpmalloc, mimalloc and tcmalloc against glibc",
        source="notes on rpmalloc, mimalloc-bench on an M1 laptop: mimalloc-bench-rpmalloc-populate.csv",
        axis="time, ratio to glibc",
        points=[
            *{
                (pair.program, said): Point(pair.program, f"{said} there", False, pair.there)
                for pair in timed
                for said in (_as_published(pair.name),)
            }.values(),
            *(Point(pair.program, pair.name, True, pair.here) for pair in timed),
        ],
        table=_table(pairs),
        findings=[*_agreement(pairs), *_launcher(measured), *_population(measured)],
    )


def _published(arch: str, variant: str) -> dict[tuple[str, str, str], float]:
    """(program, allocator, column) -> median over the rows of a variant."""
    values: dict[tuple[str, str, str], list[float]] = {}
    for row in tables.rows(_TABLE):
        if (row["arch"], row["rpmalloc_variant"]) != (arch, variant):
            continue
        for column in _ASPECTS:
            value = tables.number(row, column)
            if value is not None:
                values.setdefault((row["test"], row["allocator"], column), []).append(value)
    return {key: statistics.median(each) for key, each in values.items()}


def _pairs(measured: Measured, published: Mapping[tuple[str, str, str], float], aspect: str) -> Iterable[Pair]:
    for program, workloads in _HERE.items():
        workload = measured.first(workloads)
        if workload is None:
            continue
        base = _value(measured, workload, _BASELINE, aspect)
        there_base = published.get((program, _REFERENCE, aspect))
        for name in measured.configurations:
            short = _short(name)
            there = published.get((program, short or "", aspect))
            here = _value(measured, workload, name, aspect)
            if there and there_base and here and base:
                yield Pair(program, name, _ASPECTS[aspect], there / there_base, here / base)


def _value(measured: Measured, workload: str, name: str, aspect: str) -> float | None:
    return measured.time(workload, name) if aspect == "seconds" else measured.median(workload, name, aspect)


def _short(configuration: str) -> str | None:
    """The published column of an allocator that was measured here; None for settings, variants and all others."""
    if "+" in configuration or configuration in {ahead for _, _, ahead in _BOTH_WAYS}:
        return None
    return next((short for short, name in _ALLOCATORS.items() if configuration.startswith(name)), None)


def _as_published(configuration: str) -> str:
    return _ALLOCATORS[_short(configuration) or "rp"]


def _table(pairs: Sequence[Pair]) -> Grid:
    rows = []
    for program, name in dict.fromkeys((pair.program, pair.name) for pair in pairs):
        found = {pair.aspect: pair for pair in pairs if (pair.program, pair.name) == (program, name)}
        row = [Piece(program), Piece(name)]
        for aspect in _ASPECTS.values():
            pair = found.get(aspect)
            row.append(Piece("–" if pair is None else f"{pair.there:.2f}"))
            row.append(Piece("–" if pair is None else f"{pair.here:.2f}", "same" if pair and pair.agree else ""))
        rows.append(row)
    heads = [each for aspect in _ASPECTS.values() for each in (f"{aspect}, there", "here")]
    return Grid(
        "Ratio to glibc",
        ["program", "allocator", *heads],
        rows,
        "Versions, inputs and processors differ: what can be compared is which side of 1 a ratio lies on.",
        left=frozenset({0, 1}),
    )


def _agreement(pairs: Sequence[Pair]) -> Iterable[Finding]:
    for aspect in _ASPECTS.values():
        mine = [pair for pair in pairs if pair.aspect == aspect]
        if not mine:
            continue
        other = [pair for pair in mine if not pair.agree]
        kind: FindingKind = "agrees" if len(other) * 3 <= len(mine) else "differs"
        worst = sorted(other, key=lambda pair: -abs(math.log(pair.here / pair.there)))[:3]
        named = "; ".join(
            f"{pair.program} under {pair.name} {pair.there:.2f} there, {pair.here:.2f} here" for pair in worst
        )
        yield Finding(
            kind,
            f"{aspect[0].upper()}{aspect[1:]}, less, as much (within {SAME - 1:.0%}) or more than glibc: the same "
            f"answer in {len(mine) - len(other)} of {len(mine)}" + (f"; farthest apart: {named}." if named else "."),
        )


def _launcher(measured: Measured) -> Iterable[Finding]:
    """A program's peak RSS is never below its launcher's, where it inherits that: the smallest tells."""
    there = min(value for row in tables.rows(_TABLE) if (value := tables.number(row, _PEAK)) is not None)
    peaks = [
        peak
        for workload in measured.workloads
        for name in measured.configurations
        if (peak := _value(measured, workload, name, _PEAK)) is not None
    ]
    if not peaks or min(peaks) > _SMALL * there:
        return
    yield Finding(
        "agrees",
        "A child that a large process forks begins with that one's peak RSS, and keeps it through exec (a program of 3 "
        f"MiB started from Python: 16 MiB). In neither table is that so: the smallest program peaked at "
        f"{there / 1024:.1f} MiB there and at {min(peaks) / 1024:.1f} MiB here, where a small launcher starts each.",
    )


def _population(measured: Measured) -> Iterable[Finding]:
    """What populating ahead does to the three aspects there; and here, where rpmalloc or libfreestone was measured both
    ways."""
    original, full = _published("x86-64", "original"), _published("x86-64", "full-populate")
    ratios = {
        column: statistics.geometric_mean(
            [full[key] / original[key] for key in full if key[1:] == ("rp", column) and original.get(key)]
        )
        for column in _ASPECTS
    }
    perf = {(row["arch"], row["workload"], row["rpmalloc_variant"]): row for row in tables.rows("perf-stat-populate")}
    before, after = (perf["x86-64", "allt n=20 j=12", variant] for variant in ("original", "full-populate"))
    traps, elapsed = (
        (tables.number(after, column) or 0) / (tables.number(before, column) or 1)
        for column in ("page_faults", "elapsed_s")
    )
    said = (
        f"Populating all of rpmalloc's mappings ahead: {ratios['minor_faults']:.2f} times the minor faults as "
        f"getrusage counts them and {ratios['peak_rss_kib']:.2f} times the peak RSS, program by program, while perf "
        f"counted {traps:.2f} of the page faults over the whole suite: the pages were brought in all the same, only "
        f"not by traps. Elapsed time: {elapsed:.2f}"
    )
    alike = [elapsed, ratios["peak_rss_kib"], ratios["minor_faults"]]
    here = {title: _populated_here(measured, plain, ahead) for title, plain, ahead in _BOTH_WAYS}
    told = {title: found for title, found in here.items() if found is not None}
    if not told:
        yield Finding("artefact", f"{said}. Fewer faults in that counter are no fewer pages.")
    for title, found in told.items():
        time, memory, faults = found
        # Of rpmalloc the same thing is measured; another allocator that populates populates other mappings.
        same = list(map(side, found)) == list(map(side, alike)) if title == "rpmalloc" else side(time) == side(elapsed)
        yield Finding(
            "agrees" if same else "differs",
            f"{said}. {title} populated ahead, here: time {time:.2f}, peak RSS {memory:.2f}, "
            f"minor faults {faults:.2f}.",
        )


def _populated_here(measured: Measured, plain: str, ahead: str) -> tuple[float, float, float] | None:
    found = []
    for aspect in _ASPECTS:
        ratios = [
            after / before
            for workload in measured.workloads
            if (before := _value(measured, workload, plain, aspect))
            and (after := _value(measured, workload, ahead, aspect))
        ]
        if not ratios:
            return None
        found.append(statistics.geometric_mean(ratios))
    return found[0], found[1], found[2]
