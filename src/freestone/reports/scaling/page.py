"""The families of an experiment as the page holds them: lines, words, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from freestone.analysis import medians
from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.reports import ticks
from freestone.reports.drawn import NOTHING, Figure, Table
from freestone.reports.families import Family, families
from freestone.reports.scaling import chart, data
from freestone.reports.scaling.data import Measure, Point
from freestone.reports.shown import counting, left_out
from freestone.reports.vega import document


@dataclass(frozen=True)
class FamilyPart:
    """Workloads that differ in one number, and what changes with it."""

    name: str
    axis: str
    members: list[str]
    """Their numbers, in words."""
    figures: list[Figure]


def parts(experiment: Experiment, summary: Summary, records: Sequence[TrialRecord]) -> list[FamilyPart]:
    """Every family of which something can be drawn."""
    by_workload: dict[str, list[TrialRecord]] = {}
    for record in records:
        by_workload.setdefault(record.workload, []).append(record)
    found = []
    for family in families(experiment.workloads):
        mine = [record for member in family.members for record in by_workload.get(member.workload, ())]
        drawn = [_figure(experiment, summary, mine, family, measure) for measure in data.MEASURES]
        figures = [figure for figure in drawn if figure is not None]
        if figures:
            numbers = [data.number_in_words(family, member.at) for member in family.members]
            found.append(FamilyPart(family.name, family.axis, numbers, figures))
    return found


def _figure(
    experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], family: Family, measure: Measure
) -> Figure | None:
    drawn = chart.draw(experiment, summary, records, family, measure)
    if drawn is None:
        return None
    workloads = [member.workload for member in family.members]
    lines = data.lines(experiment, summary, records, family, measure)
    by_operation = data.is_by_operation(counting(summary, records), measure)
    title = data.quantity_title(measure) + (" of one operation" if by_operation else "")
    return Figure(
        title,
        f"{_caption(lines, measure, by_operation)} {left_out(summary, workloads)}".rstrip(),
        f"{title} under {family.name} by {family.axis}: {_say(lines, measure)}.",
        document(drawn),
        _table(family, lines, measure),
    )


def _caption(lines: dict[str, list[Point]], measure: Measure, by_operation: bool) -> str:
    said = ["Medians"]
    if by_operation and measure == "time":
        said = ["Wall time of what the program measures, divided by all operations of all threads; medians"]
    elif by_operation:
        said = ["Of the whole process, its start and its preparation too, divided by its operations; medians"]
    sizes = {medians.interval(point.trials) is not None for points in lines.values() for point in points}
    if sizes == {True}:
        said.append("bars are 95 % intervals")
    elif sizes == {False}:
        said.append("bars reach from the smallest round to the largest, for there are too few for an interval")
    else:
        said.append("bars are 95 % intervals; of fewer than six rounds, they reach from the smallest to the largest")
    return ", ".join(said) + "; dots beside them are single trials, later rounds farther right."


def _say(lines: dict[str, list[Point]], measure: Measure) -> str:
    return "; ".join(
        f"{name} from {_text(measure, points[0].median)} to {_text(measure, points[-1].median)}"
        for name, points in lines.items()
    )


def _table(family: Family, lines: dict[str, list[Point]], measure: Measure) -> Table:
    by_number = {name: {point.at: point for point in points} for name, points in lines.items()}
    rows = [
        [
            data.number_in_words(family, member.at),
            *(_cell(found.get(member.at), measure) for found in by_number.values()),
        ]
        for member in family.members
    ]
    return Table([family.axis, *by_number], rows)


def _cell(point: Point | None, measure: Measure) -> str:
    if point is None:
        return NOTHING
    low, median, high = (_text(measure, value) for value in (point.low, point.median, point.high))
    return median if point.low == point.high else f"{median} [{low}, {high}]"


def _text(measure: Measure, value: float) -> str:
    return ticks.brief(data.kind_of(measure), value)
