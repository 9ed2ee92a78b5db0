"""The cost of a block by its size as the page holds it: panels, words, numbers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

import altair as alt

from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.reports.drawn import NOTHING, Multiple, Name, Panel, Table
from freestone.reports.numerals import bytes_in_words
from freestone.reports.quantities import Scale
from freestone.reports.shown import counting, left_out
from freestone.reports.sizes import chart, data
from freestone.reports.sizes.data import Bar, Course
from freestone.reports.vega import document

_TWO = (
    "The dark part ends at malloc alone, the light part at malloc with free; read both ends at the axis, for on this "
    "scale the same height is ten times as much one line up. A line across a dark bar: in a loop of its own the pair "
    "took less than malloc alone, and no more than that. "
)
_ALL = (
    "Medians of one block; thin upright lines reach from the smallest trial to the largest, the stepped line is "
    "{baseline}. A logarithmic axis has no zero: all bars stand on {foot}, the power of ten below the least."
)


def multiples(
    experiment: Experiment,
    summary: Summary,
    records: Sequence[TrialRecord],
    workload: str,
    names: Mapping[str, Name],
) -> list[Multiple]:
    """A figure for each course that the workload tells; none for most workloads."""
    mine = counting(summary, records, [workload])
    found = []
    for course in data.courses(mine, workload):
        charts = chart.panels(experiment, summary, mine, workload, course)
        if charts:
            found.append(_multiple(summary, mine, workload, course, names, charts))
    return found


def _multiple(
    summary: Summary,
    records: Sequence[TrialRecord],
    workload: str,
    course: Course,
    names: Mapping[str, Name],
    charts: Mapping[str, alt.LayerChart],
) -> Multiple:
    every = {name: data.bars(records, workload, name, course) for name in charts}
    foot = chart.base(value for found in every.values() for bar in found for value in (bar.deed, bar.low))
    meaning = course.meaning[:1].upper() + course.meaning[1:]
    caption = _TWO if course.whole else f"{meaning}. "
    caption += _ALL.format(baseline=summary.baseline, foot=chart.nanoseconds(foot)) + _floor(records, workload)
    absent = left_out(summary, [workload])
    caption += f" {absent}" if absent else ""
    return Multiple(
        course.title,
        caption,
        [Panel(names[name], _say(course, name, every[name]), document(drawn)) for name, drawn in charts.items()],
        _table(every),
    )


def _floor(records: Iterable[TrialRecord], workload: str) -> str:
    said = [
        value
        for record in records
        if record.workload == workload and record.status == "ok" and record.figures is not None
        if (value := record.figures.get("floor_ns")) is not None
    ]
    return f" The empty loop, {_text(statistics.median(said))}, is in every bar." if said else ""


def _say(course: Course, name: str, found: Sequence[Bar]) -> str:
    ends = "; ".join(f"{bytes_in_words(bar.size)} {_text(bar.top)}" for bar in (found[0], found[-1]))
    return f"{course.meaning[:1].upper() + course.meaning[1:]} under {name}, {len(found)} sizes: {ends}"


def _table(every: Mapping[str, Sequence[Bar]]) -> Table:
    by_size = {name: {bar.size: bar for bar in found} for name, found in every.items()}
    rows = [
        [bytes_in_words(size), *(_cell(found.get(size)) for found in by_size.values())]
        for size in sorted({size for found in by_size.values() for size in found})
    ]
    return Table(["", *every], rows)


def _cell(bar: Bar | None) -> str:
    if bar is None:
        return NOTHING
    return _text(bar.deed) + (f", with free {_text(bar.whole)}" if bar.whole is not None else "")


def _text(nanoseconds: float) -> str:
    seconds = nanoseconds * 1e-9
    return Scale.over("time", [seconds]).text(seconds)
