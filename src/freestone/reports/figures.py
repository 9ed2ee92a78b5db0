"""The figures people look for, each a pure function from records and summary to a chart.

Design rules, the same for every figure: every raw point is shown; configurations keep their order and their colour
from figure to figure and are named where they are drawn, so no legend has to be matched and no colour has to be told
apart; a configuration without a valid trial keeps its row, with its status in words instead of a mark.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
from altair.utils import schemapi

from freestone.records.schema import Cell, Experiment, Ratio, Sample, Summary, TrialRecord
from freestone.reports import placing, quantities, ticks
from freestone.reports.pieces import Rows, coloured, inline, layered, shaped
from freestone.reports.quantities import Quantity, Scale, quantity_of

Chart = alt.Chart | alt.LayerChart | alt.HConcatChart | alt.VConcatChart | alt.ConcatChart

# After Paul Tol's "bright" scheme, led by a grey for the baseline, and moved until any two are told apart by every eye
# (CIEDE2000 at least 10, also where one kind of cones is missing) and each stands out from the paper by 3:1;
# tests/reports/test_colours.py measures it.
PALETTE_LIGHT = ("#525865", "#4477AA", "#EE6677", "#0E7916", "#C11C7C", "#AA9305", "#22A0C2")
PALETTE_DARK = ("#BBC8CB", "#59A6FF", "#F1949B", "#44A756", "#C95CA5", "#D9C17F", "#87DDFF")
FONT = "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', sans-serif"

ROW = 36
"""Height of a configuration's row, pixels."""
VEGA_LITE = ".".join(alt.SCHEMA_VERSION.split(".")[:2])
"""The Vega-Lite that the figures are written for, as vl-convert names it."""
SERIES_POINTS = 240
"""Points of a memory series that are drawn; between them the peaks are kept."""

_TRADE_PX = 300
"""Height of time against memory, and the least width it is drawn at."""
_WIDE = 3.0
"""Ratios that span more than this are drawn on a logarithmic axis."""


@dataclass(frozen=True)
class Theme:
    """Colours of a figure; any CSS colour, so that a page can give variables and change them without drawing anew."""

    ink: str
    faint: str
    line: str
    paper: str
    palette: tuple[str, ...]

    def config(self) -> dict[str, Any]:
        """As a Vega-Lite config."""
        return {
            "background": self.paper,
            "font": FONT,
            "view": {"stroke": None},
            "range": {"category": list(self.palette)},
            "axis": {
                "labelColor": self.ink,
                "titleColor": self.faint,
                "gridColor": self.line,
                "domainColor": self.line,
                "tickColor": self.line,
                "labelFontSize": 12,
                "titleFontSize": 12,
                "titleFontWeight": "normal",
                "labelLimit": 130,
                "tickCount": 5,
            },
            "axisX": {"domain": False, "ticks": False, "labelColor": self.faint, "labelPadding": 6, "titlePadding": 8},
            "axisY": {"domain": False, "ticks": False, "grid": False, "labelPadding": 8},
            "axisYQuantitative": {"labelColor": self.faint},
            "title": {"color": self.ink, "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 10},
            "rule": {"color": self.faint},
            "style": {
                "label": {"color": self.ink, "fontSize": 12},
                "faint": {"color": self.faint, "fontSize": 12},
                "leader": {"color": self.faint, "strokeWidth": 0.7},
            },
        }


LIGHT = Theme("#1F2933", "#5F6B7A", "#E3E7EC", "#FFFFFF", PALETTE_LIGHT)
DARK = Theme("#E6EAF0", "#9AA5B4", "#2E3640", "#14181D", PALETTE_DARK)


# --- figures ---------------------------------------------------------------------------------------------------------


def points(
    experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], workload: str, key: str
) -> alt.LayerChart:
    """Every trial's value as a dot, later rounds lower within a row; the geometric mean as a bar, its value beside it.

    Args:
        key: name of a metric.
    """
    quantity = quantity_of(key)
    order = order_of(experiment, summary, workload)
    cells = _cells(summary, workload)
    values = {name: values_of(records, workload, name, key) for name in order if cells[name].status == "ok"}
    scale = Scale.over(quantity.kind, [v for mine in values.values() for _, v in mine])
    rounds = 1 + max((number for mine in values.values() for number, _ in mine), default=0)
    dots: Rows = [
        {
            "configuration": name,
            "round": number + 1,
            "row": (number + 0.5) / rounds,
            "value": value / scale.divisor,
            "text": scale.text(value),
        }
        for name, mine in values.items()
        for number, value in mine
    ]
    bars: Rows = [
        {
            "configuration": name,
            "value": figure / scale.divisor,
            "text": scale.number(figure),
        }
        for name, mine in values.items()
        if mine and (figure := cells[name].figure(key)) is not None
    ]
    x = _Axis(_domain([row["value"] for row in (*dots, *bars)]), _axis_title(quantity, scale))
    means = {row["configuration"]: row["text"] for row in bars}
    colour = coloured(experiment)
    dot = (
        alt.Chart(inline(dots))
        .mark_circle(size=34, opacity=0.55)
        .encode(
            x=x.of("value"),
            y=_y(order, named=True),
            yOffset=alt.YOffset("row:Q", scale=alt.Scale(domain=[-0.5, 1.5], nice=False)),
            color=colour,
            tooltip=[
                alt.Tooltip("configuration:N"),
                alt.Tooltip("round:Q"),
                alt.Tooltip("text:N", title=quantity.title),
            ],
        )
    )
    bar = (
        alt.Chart(inline(bars))
        .mark_tick(thickness=2.5, size=ROW * 0.72)
        .encode(x=x.of("value"), y=_y(order, right=means), color=colour)
    )
    return _rows_chart([dot, bar, _absent(cells, order)], order)


def ratios(experiment: Experiment, summary: Summary, workload: str, key: str) -> alt.LayerChart:
    """The ratio of each configuration to the baseline with its interval."""
    quantity = quantity_of(key)
    order = order_of(experiment, summary, workload)
    cells = _cells(summary, workload)
    rows: Rows = []
    for name in order:
        ratio = cells[name].ratio.get(key)
        if cells[name].status == "ok" and ratio is not None and name != summary.baseline:
            rows.append({"configuration": name, **_ratio_row(quantity, ratio)})
    ends = [row[end] for row in rows for end in ("low", "high")]
    x = _Axis(_domain([1.0, *ends]), f"{_in_sentence(quantity)}, ratio to {summary.baseline}")
    verdicts = {row["configuration"]: row["label"] for row in rows} | {summary.baseline: "baseline"}
    colour = coloured(experiment)
    marks: list[alt.Chart] = [
        alt.Chart(inline([{"at": 1.0}])).mark_rule().encode(x=x.of("at")),
        alt.Chart(inline(rows))
        .mark_rule(strokeWidth=7, opacity=0.35)
        .encode(x=x.of("low"), x2=alt.X2("high:Q"), y=_y(order, right=verdicts), color=colour),
        alt.Chart(inline(rows))
        .mark_point(size=60, filled=True, opacity=1)
        .encode(
            x=x.of("value"),
            y=_y(order, named=True),
            color=colour,
            tooltip=[
                alt.Tooltip("configuration:N"),
                alt.Tooltip("value:Q", title="ratio", format=".4f"),
                alt.Tooltip("interval:N", title="interval"),
                alt.Tooltip("label:N", title="verdict"),
            ],
        ),
        _absent(cells, order),
    ]
    return _rows_chart(marks, order)


def trade(experiment: Experiment, summary: Summary, workload: str, memory: str = "peak_rss_kib") -> alt.LayerChart:
    """Time against memory, both as ratios to the baseline with their intervals: lower left is better in both.

    The dotted stairs join the configurations that no other one beats in both.
    """
    cells = _cells(summary, workload)
    time = quantities.time_of(cells.values())
    rows: Rows = [{"configuration": summary.baseline, **_trade_row(None, None)}]
    for name in order_of(experiment, summary, workload):
        cell = cells[name]
        if cell.status == "ok" and name != summary.baseline and time in cell.ratio and memory in cell.ratio:
            rows.append({"configuration": name, **_trade_row(cell.ratio[time], cell.ratio[memory])})
    quantity = quantity_of(memory)
    x = _trade_axis(rows, "x", f"{_in_sentence(quantity_of(time))}, ratio to {summary.baseline}")
    y = _trade_axis(rows, "y", f"{quantity.title}, ratio to {summary.baseline}")
    colour = coloured(experiment)
    front = [{**row, "configuration": summary.baseline} for row in _front(rows)]
    return layered(
        alt.Chart(inline([{"at": 1.0}])).mark_rule().encode(x=x.of("at")),
        alt.Chart(inline([{"at": 1.0}])).mark_rule().encode(y=y.vertical("at")),
        alt.Chart(inline(front))
        .mark_line(strokeWidth=1.2, strokeDash=[2, 3], interpolate="step-after")
        .encode(x=x.of("x"), y=y.vertical("y"), order=alt.Order("step:Q"), color=colour),
        alt.Chart(inline(rows))
        .mark_rule(strokeWidth=5, opacity=0.35)
        .encode(x=x.of("x_low"), x2=alt.X2("x_high:Q"), y=y.vertical("y"), color=colour),
        alt.Chart(inline(rows))
        .mark_rule(strokeWidth=5, opacity=0.35)
        .encode(x=x.of("x"), y=y.vertical("y_low"), y2=alt.Y2("y_high:Q"), color=colour),
        alt.Chart(inline(rows))
        .mark_point(size=70, filled=True, opacity=1)
        .encode(
            x=x.of("x"),
            y=y.vertical("y"),
            color=colour,
            shape=shaped(experiment),
            tooltip=[
                alt.Tooltip("configuration:N"),
                alt.Tooltip("x:Q", title=quantity_of(time).title, format=".3f"),
                alt.Tooltip("y:Q", title=quantity.title, format=".3f"),
            ],
        ),
        *_names(rows, x, y),
        height=_TRADE_PX,
    )


def series(
    experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], workload: str, configuration: str
) -> alt.LayerChart | None:
    """Memory over time of one configuration: its trial of median wall time, the baseline's behind it as a thin line.

    Axes are the same for all configurations of a workload, so the panels can be compared at a glance. None when the
    configuration has no valid trial with a series.
    """
    shown = {name: _median_trial(records, workload, name) for name in order_of(experiment, summary, workload)}
    tracks = {name: trial.metrics.series for name, trial in shown.items() if trial is not None and trial.metrics}
    tracks = {name: track for name, track in tracks.items() if len(track) > 1}
    if configuration not in tracks:
        return None
    top = max(sample.rss_kib for track in tracks.values() for sample in track)
    end = max(track[-1].at_s for track in tracks.values())
    memory, time = Scale.over("memory", [top]), Scale.over("time", [end])
    x = alt.X(
        "at:Q",
        title=None,
        scale=alt.Scale(domain=[0, end / time.divisor], nice=False),
        axis=alt.Axis(grid=False, tickCount=4, labelExpr=f"datum.value + ' {time.unit}'"),
    )
    y = alt.Y(
        "rss:Q",
        title=None,
        scale=alt.Scale(domain=[0, top * 1.05 / memory.divisor], nice=False),
        axis=alt.Axis(grid=True, tickCount=3, labelExpr=f"datum.value + ' {memory.unit}'"),
    )

    def rows(name: str) -> Rows:
        return [
            {"configuration": name, "at": round(s.at_s / time.divisor, 4), "rss": round(s.rss_kib / memory.divisor, 2)}
            for s in thinned(tracks[name], SERIES_POINTS)
        ]

    mine = alt.Chart(inline(rows(configuration)))
    layers = [
        mine.mark_area(opacity=0.16, interpolate="step-after").encode(x=x, y=y, color=coloured(experiment)),
        mine.mark_line(strokeWidth=1.8, interpolate="step-after").encode(
            x=x,
            y=y,
            color=coloured(experiment),
            tooltip=[alt.Tooltip("at:Q", title=time.unit), alt.Tooltip("rss:Q", title=memory.unit)],
        ),
    ]
    if configuration != summary.baseline and summary.baseline in tracks:
        behind = alt.Chart(inline(rows(summary.baseline))).mark_line(strokeWidth=1, interpolate="step-after")
        layers.insert(0, behind.encode(x=x, y=y, color=coloured(experiment)))
    return layered(*layers, height=110)


def noise(summary: Summary, workload: str) -> alt.LayerChart | None:
    """The A/A comparison: the baseline's second run over its first, per quantity. None when it was not made.

    Context switches are left to the table: a handful of them varies so widely that nothing else could be read.
    """
    found = summary.noise.get(workload, {})
    rows: Rows = [
        {"quantity": q.title, **_ratio_row(q, found[q.key]), "label": quantities.interval(found[q.key])}
        for q in quantities.QUANTITIES
        if q.key in found and quantities.is_known(found[q.key]) and not q.key.endswith("_switches")
    ]
    if not rows:
        return None
    order = [row["quantity"] for row in rows]
    ends = [row[end] for row in rows for end in ("low", "high")]
    x = _Axis(_domain([1.0, *ends]), f"{summary.baseline}, second run / first run")
    intervals = {row["quantity"]: row["label"] for row in rows}
    return layered(
        alt.Chart(inline([{"at": 1.0}])).mark_rule().encode(x=x.of("at")),
        alt.Chart(inline(rows))
        .mark_rule(strokeWidth=7, opacity=0.4)
        .encode(x=x.of("low"), x2=alt.X2("high:Q"), y=_y(order, "quantity", right=intervals)),
        alt.Chart(inline(rows))
        .mark_text(text="\u2022", style="label", fontSize=18)
        .encode(x=x.of("value"), y=_y(order, "quantity", named=True)),
        height=28 * len(rows),
        twice=True,
    )


def overview(
    experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], workload: str
) -> alt.HConcatChart:
    """One picture of fixed size for a README: every trial's time, and time against memory."""
    time = quantities.time_of(_cells(summary, workload).values())
    left = points(experiment, summary, records, workload, time).properties(
        width=400, height=300, title=f"{quantity_of(time).title} of every trial: {workload}"
    )
    right = trade(experiment, summary, workload).properties(
        width=360, height=300, title="Time against memory: lower left is better"
    )
    return alt.hconcat(left, right, spacing=48)


# --- files -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """Charts that are made meanwhile are not held against Vega-Lite's schema, which takes longer than all else.

    The tests do that, for every kind of figure.
    """
    with schemapi.debug_mode(False):
        yield


def specification(chart: Chart, theme: Theme) -> dict[str, Any]:
    """The chart as a Vega-Lite document with the theme in it."""
    if isinstance(chart, alt.LayerChart) and chart.data is alt.Undefined and not schemapi.DEBUG_MODE:
        document = _assembled(chart)
    else:
        document = chart.to_dict(validate=schemapi.DEBUG_MODE)
    document["config"] = theme.config()
    return document


def _assembled(chart: alt.LayerChart) -> dict[str, Any]:
    """What ``chart.to_dict()`` says, layer by layer; that copies every layer twice, half the time of a report."""
    document: dict[str, Any] = {"layer": [], "datasets": {}}
    for mark in chart.layer:
        layer = mark.to_dict(validate=False)
        document["$schema"] = layer.pop("$schema")
        document["datasets"] |= layer.pop("datasets", {})
        del layer["config"]
        document["layer"].append(layer)
    for key in ("width", "height", "resolve"):
        value = getattr(chart, key)
        if value is not alt.Undefined:
            document[key] = value.to_dict() if isinstance(value, schemapi.SchemaBase) else value
    return document


def standing_alone(chart: Chart, theme: Theme, width: int) -> Chart:
    """A copy with the theme in it, to be shown outside the page; ``width`` pixels where it fits its container."""
    alone = chart.copy(deep=True)
    alone.config = alt.Config.from_dict(theme.config())
    if isinstance(alone, alt.Chart | alt.LayerChart) and alone.width == "container":
        alone.width = width
    return alone


def side_by_side(named: Sequence[tuple[str, dict[str, Any]]], *, columns: int = 3, width: int = 260) -> dict[str, Any]:
    """Documents of panels as one, each under its name; ``width`` pixels each."""
    whole: dict[str, Any] = {"concat": [], "columns": columns, "spacing": 28, "datasets": {}}
    for name, document in named:
        inner = {key: part for key, part in document.items() if key not in ("$schema", "config", "datasets")}
        whole["$schema"] = document["$schema"]
        whole["datasets"] |= document["datasets"]  # they are known to the whole only, by the hash of what is in them
        whole["concat"].append({**inner, "title": name, "width": width})
    return whole


def save_document(document: dict[str, Any], destination: Path, *, theme: Theme = LIGHT, width: int = 760) -> Path:
    """Draw a figure of the page into a ``.svg`` or ``.png`` file, in a theme of its own."""
    import vl_convert

    alone = _sized({**document, "config": theme.config()}, width)
    if destination.suffix == ".svg":
        destination.write_text(vl_convert.vegalite_to_svg(alone, vl_version=VEGA_LITE), encoding="utf-8")
    else:
        destination.write_bytes(vl_convert.vegalite_to_png(alone, scale=2, vl_version=VEGA_LITE))
    return destination


def save_svg(chart: Chart, destination: Path, *, theme: Theme = LIGHT, width: int = 560) -> Path:
    """Draw the chart into an SVG file, without a browser; ``width`` pixels where the chart fits its container."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(_sized(specification(chart, theme), width), vl_version=VEGA_LITE)
    destination.write_text(svg, encoding="utf-8")
    return destination


def save_png(chart: Chart, destination: Path, *, theme: Theme = LIGHT, width: int = 560, scale: float = 2) -> Path:
    """Draw the chart into a PNG file, without a browser, at ``scale`` pixels per pixel."""
    import vl_convert

    document = _sized(specification(chart, theme), width)
    destination.write_bytes(vl_convert.vegalite_to_png(document, scale=scale, vl_version=VEGA_LITE))
    return destination


def _sized(document: dict[str, Any], width: int) -> dict[str, Any]:
    # Nothing contains the figure here, so its width has to be said.
    sized = {**document, "padding": 16}
    return {**sized, "width": width} if document.get("width") == "container" else sized


# --- data ------------------------------------------------------------------------------------------------------------


def order_of(experiment: Experiment, summary: Summary, workload: str) -> list[str]:
    """The configurations of a workload from the least time to the most, those without a valid trial last."""
    cells = _cells(summary, workload)
    names = [c.name for c in experiment.configurations if c.name in cells]
    time = quantities.time_of(cells.values())

    def rank(name: str) -> tuple[int, float]:
        cell = cells[name]
        figure = cell.figure(time)
        return (0, math.inf if figure is None else figure) if cell.status == "ok" else (1, 0.0)

    return sorted(names, key=rank)


def values_of(records: Iterable[TrialRecord], workload: str, configuration: str, key: str) -> list[tuple[int, float]]:
    """(round, value) of every ok trial; the baseline's second runs are the noise, not part of it."""
    found = []
    for record in records:
        mine = (record.workload, record.configuration, record.repeat) == (workload, configuration, 0)
        if mine and record.status == "ok":
            value = quantities.value_of(record, key)
            if value is not None and math.isfinite(value):
                found.append((record.round, value))
    return sorted(found)


def thinned(track: Sequence[Sample], points: int) -> list[Sample]:
    """At most ``points`` samples in time order: the largest of each stretch, and always the first and the last."""
    if len(track) <= points:
        return list(track)
    inner = track[1:-1]
    stretches = max(1, points - 2)
    edges = [round(i * len(inner) / stretches) for i in range(stretches + 1)]
    peaks = [
        max(inner[start:end], key=lambda sample: sample.rss_kib)
        for start, end in itertools.pairwise(edges)
        if end > start
    ]
    return [track[0], *peaks, track[-1]]


def _median_trial(records: Iterable[TrialRecord], workload: str, configuration: str) -> TrialRecord | None:
    mine = [
        record
        for record in records
        if (record.workload, record.configuration, record.repeat) == (workload, configuration, 0)
        and record.status == "ok"
        and record.metrics is not None
        and record.metrics.series
    ]
    if not mine:
        return None
    times = {id(record): record.metrics.wall_s for record in mine if record.metrics}
    middle = statistics.median_low(list(times.values()))
    return next(record for record in mine if times[id(record)] == middle)


def _cells(summary: Summary, workload: str) -> dict[str, Cell]:
    return {cell.configuration: cell for cell in summary.cells if cell.workload == workload}


def _ends(ratio: Ratio) -> tuple[float, float]:
    """The ends of an interval as far as they can be drawn: with too few rounds there is nothing to draw but a point."""
    return (ratio.low, ratio.high) if quantities.is_known(ratio) else (ratio.value, ratio.value)


def _ratio_row(quantity: Quantity, ratio: Ratio) -> dict[str, Any]:
    low, high = _ends(ratio)
    return {
        "value": ratio.value,
        "low": low,
        "high": high,
        "interval": quantities.interval(ratio),
        "label": quantities.verdict(quantity, ratio),
    }


def _trade_row(time: Ratio | None, memory: Ratio | None) -> dict[str, float]:
    one = Ratio(value=1, low=1, high=1, pairs=0, different=False)
    time, memory = time or one, memory or one
    x_low, x_high = _ends(time)
    y_low, y_high = _ends(memory)
    return {"x": time.value, "x_low": x_low, "x_high": x_high, "y": memory.value, "y_low": y_low, "y_high": y_high}


def _front(rows: Rows) -> Rows:
    """The rows that no other row beats in both ratios, left to right."""
    best: Rows = []
    for row in sorted(rows, key=lambda row: (row["x"], row["y"])):
        if not best or row["y"] < best[-1]["y"]:
            best.append(row)
    return [{"x": row["x"], "y": row["y"], "step": step} for step, row in enumerate(best)]


def _trade_axis(rows: Rows, field: str, title: str) -> _Axis:
    """An axis of ratios with room for names at its ends; logarithmic where it is wide, so that none is crowded out."""
    ends = [row[end] for row in rows for end in (f"{field}_low", f"{field}_high") if math.isfinite(row[end])]
    if min(ends) <= 0 or max(ends) / min(ends) < _WIDE:
        return _Axis(_domain(ends, left=0.16, right=0.16), title)
    low, high = (math.exp(end) for end in _domain(map(math.log, ends), left=0.16, right=0.16))
    return _Axis([low, high], title, ticks.logarithmic("count", low, high))


def _names(rows: Rows, x: _Axis, y: _Axis) -> Iterator[alt.Chart]:
    """The name of each row, where it covers nothing, and a line to it from its point where it stands far.

    Reckoned on a plot of the narrowest width in use, since a wider one only pulls names apart.
    """
    points = {
        row["configuration"]: (x.share(row["x"]) * _TRADE_PX, (1 - y.share(row["y"])) * _TRADE_PX) for row in rows
    }
    offsets = placing.places(points, _TRADE_PX, _TRADE_PX)
    for row in rows:
        dx, dy = offsets[row["configuration"]]
        at = alt.Chart(inline([row])).encode(x=x.of("x"), y=y.vertical("y"))
        if placing.is_far((dx, dy)):
            yield at.mark_rule(style="leader", x2Offset=dx - math.copysign(3, dx), y2Offset=dy).encode(
                x2="x:Q", y2="y:Q"
            )
        named = at.mark_text(style="label", align="left" if dx > 0 else "right", dx=dx, dy=dy)
        yield named.encode(text=alt.Text("configuration:N"))


# --- pieces of charts ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Axis:
    """A quantitative axis of a layered figure. Every layer is given its domain: one that is not brings zero in."""

    domain: list[float]
    title: str
    labels: list[float] | None = None
    """Where it is labelled if it is logarithmic; None for a linear one."""

    def of(self, field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=self.title, scale=self._scale(), axis=self._axis())

    def vertical(self, field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title=self.title, scale=self._scale(), axis=self._axis(labelPadding=6))

    def share(self, value: float) -> float:
        """Where a value lies, 0 at the lower end and 1 at the upper."""
        low, high = self.domain
        if self.labels is not None:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (value - low) / (high - low)

    def _axis(self, **options: Any) -> alt.Axis:
        labels: dict[str, Any] = {} if self.labels is None else {"values": self.labels, "format": "~g"}
        return alt.Axis(grid=True, **labels, **options)

    def _scale(self) -> alt.Scale:
        if self.labels is not None:
            return alt.Scale(type="log", domain=self.domain, nice=False)
        return alt.Scale(domain=self.domain, nice=False, zero=False)


def _y(
    order: Sequence[str],
    field: str = "configuration",
    *,
    named: bool = False,
    right: Mapping[str, str] | None = None,
) -> alt.Y:
    """The rows of a figure. One layer names them on the left; ``right`` writes something about each on the other side.

    What is written is an axis and not a mark, so the layout keeps room for it at every width.
    """
    axis = alt.Axis() if named else None
    if right is not None:
        words = {name: right.get(name, "") for name in order}
        axis = alt.Axis(orient="right", labelExpr=f"({json.dumps(words)})[datum.value]", labelFontWeight=600)
    return alt.Y(f"{field}:N", sort=list(order), title=None, scale=alt.Scale(domain=list(order)), axis=axis)


def _axis_title(quantity: Quantity, scale: Scale) -> str:
    return f"{_in_sentence(quantity)}, {scale.unit}".rstrip(", ")


def _in_sentence(quantity: Quantity) -> str:
    return quantity.title if quantity.title.startswith("RSS") else quantity.title[0].lower() + quantity.title[1:]


def _domain(values: Iterable[float], *, left: float = 0.06, right: float = 0.06) -> list[float]:
    """The values' range, widened at both ends by shares of itself. Never empty."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    span = (high - low) or abs(high) * 0.1 or 1.0
    return [low - left * span, high + right * span]


def _absent(cells: Mapping[str, Cell], order: Sequence[str]) -> alt.Chart:
    rows: Rows = [
        {"configuration": name, "label": quantities.STATUS_WORDS[cells[name].status]}
        for name in order
        if cells[name].status != "ok"
    ]
    marks = alt.Chart(inline(rows)).mark_text(style="faint", align="left", dx=4, fontStyle="italic")
    left = alt.XValue(0)  # type: ignore[no-untyped-call]  # alt.value(0) takes a hundred times as long to make
    labels: alt.Chart = marks.encode(x=left, y=_y(order), text=alt.Text("label:N"))
    return labels


def _rows_chart(marks: Sequence[alt.Chart], order: Sequence[str]) -> alt.LayerChart:
    return layered(*marks, height=ROW * max(1, len(order)), twice=True)
