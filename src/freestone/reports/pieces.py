"""The pieces that figures share: rows of data, one colour for each configuration everywhere, layers over each other."""

from __future__ import annotations

from typing import Any

import altair as alt

from freestone.records.schema import Experiment
from freestone.reports.theme import COLOURS

Rows = list[dict[str, Any]]

_DASHES = ([1, 0], [6, 2], [2, 2], [8, 2, 2, 2], [1, 4])
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")


def inline(rows: Rows) -> alt.InlineData:
    """The rows inside the figure's own document."""
    return alt.InlineData(values=rows)


def colour_order(experiment: Experiment) -> list[str]:
    """The configurations in the order in which they get colours; the baseline gets the first, a grey."""
    return [experiment.baseline, *(c.name for c in experiment.configurations if c.name != experiment.baseline)]


def coloured(experiment: Experiment) -> alt.Color:
    """The colour of the field ``configuration``; it is named where it is drawn, so there is no legend."""
    return alt.Color("configuration:N", scale=alt.Scale(domain=colour_order(experiment)), legend=None)


def dashed(experiment: Experiment) -> alt.StrokeDash:
    """The dash of the field ``configuration``."""
    order = colour_order(experiment)
    dashes = [_DASHES[index // COLOURS % len(_DASHES)] for index in range(len(order))]
    return alt.StrokeDash("configuration:N", scale=alt.Scale(domain=order, range=dashes), legend=None)


def shaped(experiment: Experiment) -> alt.Shape:
    """The shape of the field ``configuration``."""
    order = colour_order(experiment)
    shapes = [_SHAPES[index // COLOURS % len(_SHAPES)] for index in range(len(order))]
    return alt.Shape("configuration:N", scale=alt.Scale(domain=order, range=shapes), legend=None)


def layered(*marks: alt.Chart, height: int, twice: bool = False) -> alt.LayerChart:
    """The marks over each other, as wide as the page lets them be; ``twice`` where the y axis has two sides."""
    chart = alt.LayerChart()
    chart.layer = list(marks)  # given to the constructor, each would be copied twice, in search of parameters
    chart.width, chart.height = "container", height
    if twice:
        chart.resolve = alt.Resolve(axis=alt.AxisResolveMap(y="independent"))
    return chart
