"""A metric against a parameter in words and numbers: the same for the page and for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from freestone.analysis import digits
from freestone.records.schema import InstructionCounts, Summary
from freestone.reports import grid, parameter_series, published, ticks
from freestone.reports.drawn import NOTHING, Table
from freestone.reports.grid import Grid, Piece
from freestone.reports.parameter_series import Point, Series, Trials

NO_ALLOCATOR = "no allocator"

_PLAIN = str.maketrans({"µ": "u", NOTHING: "-"})


def title(series: Series) -> str:
    """``Time of one operation``; of ratios ``Time against lifo``."""
    return f"{series.title} against {series.reference}" if series.reference else series.title


def caption(series: Series) -> str:
    """How the values came about, what the bars are, and what is left out."""
    known = all(point.is_interval for line in series.lines.values() for point in line.values())
    words = f"{series.how}, bars are 95 % intervals"
    words += "" if known else ", of too few rounds from the smallest to the largest"
    words += "; dots are single trials, later rounds farther right"
    words += "; hollow diamonds were published by others" if series.published else ""
    if series.floor:
        low, high = (ticks.brief(series.kind, end(series.floor.values())) for end in (min, max))
        words += f"; dotted: the same without an allocator, {low}" + (f" to {high}" if low != high else "")
    return f"{words}. {series.left_out}".rstrip()


def table(series: Series) -> Table:
    """A row for each value of the parameter, a column for each line."""
    columns = _columns(series)
    rows = [[words, *(column.get(at, NOTHING) for column in columns.values())] for at, words in series.labels.items()]
    return Table([series.parameter, *columns], rows)


def rows_below(name: str, several: Sequence[Series], note: str = "") -> Grid:
    """Several metrics against one parameter for a terminal: their rows below each other."""
    columns = [_columns(series) for series in several]
    behind = f" by {several[0].parameter}"
    heads = list(dict.fromkeys(head for each in columns for head in each))
    rows = [
        [Piece(f"{series.title.removesuffix(behind)}, {words}" if len(several) > 1 else words)]
        + [Piece(mine.get(head, {}).get(at, NOTHING)) for head in heads]
        for series, mine in zip(several, columns, strict=True)
        for at, words in series.labels.items()
    ]
    notes = dict.fromkeys(each for each in (note, *(series.left_out for series in several)) if each)
    return Grid(name, [several[0].parameter, *heads], rows, " ".join(notes), together=1)


def text(
    trials: Trials,
    summary: Summary,
    counts: InstructionCounts | None = None,
    *,
    width: int,
    colour: bool,
    ascii_only: bool = False,
) -> str:
    """For a terminal: programs' figures by percentile, and published tables beside the same measured here."""
    grids = []
    for workload in trials.workloads:
        found = [each for each in parameter_series.of_figures(trials, summary, workload) if each.is_words]
        grids += [rows_below(f"{workload}: single calls", found)] if found else []
    for each in published.reproductions(trials, counts):
        grids.append(rows_below(f"Published: {each.title}, {title(each.series)}", [each.series], each.source))
    said = "\n".join(grid.text(each, width=width, colour=colour, ascii_only=ascii_only) for each in grids)
    return said.translate(_PLAIN).encode("ascii", "replace").decode() if ascii_only else said


def cell(series: Series, point: Point) -> str:
    """``12.3 ns [12.1, 12.6]``."""
    numbers = (point.value, point.low, point.high)
    if series.reference:
        different = point.low > 1 or point.high < 1
        value, low, high = (
            digits.number(each, 2, different=different) if each >= 0.1 else ticks.brief("count", each)
            for each in numbers
        )
    else:
        value, low, high = (ticks.brief(series.kind, each) for each in numbers)
    return value if point.low == point.high else f"{value} [{low}, {high}]"


def _columns(series: Series) -> dict[str, dict[float, str]]:
    lines = dict(series.lines)
    others = {published_name(name): line for name, line in series.published.items()}
    others |= {NO_ALLOCATOR: series.floor} if series.floor else {}
    lines |= {name: {at: Point(value, value, value) for at, value in line.items()} for name, line in others.items()}
    return {name: {at: cell(series, point) for at, point in line.items()} for name, line in lines.items()}


def published_name(name: str) -> str:
    """How the values of others are called in a figure."""
    return f"{name} (published)"
