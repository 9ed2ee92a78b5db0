"""The page of the classic case as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from classic_case.counted import CURED, OURS, THEN, TODAY, Case
from classic_case.rule import PerCall
from freestone.records.schema import Cell
from freestone.reports.published import tables
from freestone.reports.quantities import interval, ratio_number

PUBLISHED = {row["case"]: row for row in tables.rows("minor-faults-2001")}
BEFORE, AFTER = "glibc default", "glibc M_MMAP_MAX=0 M_TRIM_THRESHOLD=-1"
MEASURES = {
    "elapsed": ("elapsed", "wall_s"),
    "user": ("user_s", "user_s"),
    "system": ("system_s", "sys_s"),
    "minor faults": ("minor_faults", "minor_faults"),
}
"""A line of the table -> the column of the published one, the metric of the lab."""


def beside_published(cells: Mapping[str, Cell]) -> str:
    """The published table beside ours: before, after, and what is left of it; libfreestone likewise."""
    lines = [
        "| | published: before | after | left | here: glibc | with the cure | left [95 %] | libfreestone "
        "| left [95 %] |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, (column, metric) in MEASURES.items():
        before, after = (tables.number(PUBLISHED[case], column) or 0.0 for case in (BEFORE, AFTER))
        row = [_value(before, metric), _value(after, metric), _left(after / before)]
        row.append(_figure(cells[TODAY], metric))
        for configuration in (CURED, OURS):
            row += [_figure(cells[configuration], metric), _left_of(cells[configuration], cells[TODAY], metric)]
        lines.append(f"| {name} | {' | '.join(row)} |")
    return "\n".join(lines)


def _value(value: float, metric: str) -> str:
    return f"{value:,.0f}" if metric == "minor_faults" else f"{value:,.1f} s" if value >= 10 else f"{value:.2f} s"


def _figure(cell: Cell, metric: str) -> str:
    value = cell.figure(metric)
    return "" if value is None else _value(value, metric)


def _left(ratio: float) -> str:
    return f"{100 * ratio:.2g} %" if ratio < 0.1 else f"{ratio:.2f}"


def _left_of(cell: Cell, baseline: Cell, metric: str) -> str:
    before, after, ratio = baseline.figure(metric), cell.figure(metric), cell.ratio.get(metric)
    if metric == "minor_faults" or ratio is None:
        return _left(after / before) if before and after is not None else ""
    return f"{ratio_number(ratio)} {interval(ratio)}"


def _calls(counts: PerCall) -> str:
    kinds = [f"{value:.3g} {name}" for name, value in (("brk", counts.brk), ("mmap", counts.mmap)) if value >= 0.05]
    return f"{', '.join(kinds) or 'none'}; {counts.faults:.1f}"


def _published(kib: int) -> str:
    row = PUBLISHED.get(f"{kib} KiB")
    if row is None:
        return ""
    changes, many = row["footprint_changes"] == "yes", row["many_minor_faults"] == "yes"
    return f"{row['method']}; footprint {'changes' if changes else 'stays'}, {'many' if many else 'few'} faults"


def thresholds(found: Mapping[Case, PerCall], matrices: int) -> str:
    """System calls and faults a call, a line for each size; with the published classes where there are some."""
    published = matrices == 1
    lines = [
        f"| KiB |{' published, 2001 |' if published else ''} glibc set as in 2001 | glibc today | with the cure "
        "| libfreestone |",
        f"| ---: |{' --- |' if published else ''} ---: | ---: | ---: | ---: |",
    ]
    for kib in sorted({case.kib for case in found if case.matrices == matrices}):
        row = [_calls(found[Case(kib, matrices, name)]) for name in (THEN, TODAY, CURED, OURS)]
        lines.append(f"| {kib} | {' | '.join([_published(kib), *row] if published else row)} |")
    return "\n".join(lines)


def by_number(found: Mapping[Case, PerCall], kib: int) -> str:
    """System calls and faults a call, a line for each number of matrices."""
    lines = [
        "| matrices | in all | glibc set as in 2001 | glibc today | with the cure | libfreestone |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for matrices in sorted({case.matrices for case in found if case.kib == kib}):
        row = [_calls(found[Case(kib, matrices, name)]) for name in (THEN, TODAY, CURED, OURS)]
        lines.append(f"| {matrices} | {matrices * kib} KiB | {' | '.join(row)} |")
    return "\n".join(lines)


@dataclass(frozen=True)
class Promise:
    """What libfreestone is held to in one program."""

    kib: int
    matrices: int
    faults: float
    """Of a call under it / under glibc as it is."""
    over_live: float
    """Its peak RSS beyond that of the program's start / what is live at most."""

    @property
    def kept(self) -> bool:
        """Faults below 1 %, memory at most 10 % over what is live."""
        return self.faults < 0.01 and self.over_live <= 1.1


def promise(case: tuple[int, int, int], cells: Mapping[str, Cell], start: Mapping[str, Cell]) -> Promise:
    """Of KiB, matrices and calls, by the medians of the rounds."""
    kib, matrices, calls = case

    def beyond(name: str, metric: str) -> float:
        return cells[name].median[metric] - start[name].median[metric]

    per_call = {name: beyond(name, "minor_faults") / calls for name in (TODAY, OURS)}
    return Promise(kib, matrices, per_call[OURS] / per_call[TODAY], beyond(OURS, "peak_rss_kib") / (kib * matrices))


def promises(kept: Sequence[Promise]) -> str:
    """A table."""
    lines = [
        "| matrices | live | faults a call, of glibc's | peak RSS beyond the start's, of what is live | kept |",
        "| ---: | ---: | ---: | ---: | --- |",
    ]
    for each in kept:
        live = each.kib * each.matrices
        lines.append(
            f"| {each.matrices} of {each.kib} KiB | {live:,} KiB | {100 * each.faults:.2g} % | {each.over_live:.2f} | "
            f"{'yes' if each.kept else '**no**'} |"
        )
    return "\n".join(lines)
