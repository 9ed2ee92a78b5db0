"""Ratios with their intervals: of each configuration to the baseline, and of the baseline to itself."""

from __future__ import annotations

from typing import Any

import altair as alt

from freestone.analysis import digits
from freestone.records.schema import Experiment, Ratio, Summary
from freestone.reports import quantities
from freestone.reports.figures import axes
from freestone.reports.figures.axes import Axis
from freestone.reports.pieces import Rows, coloured, inline, layered
from freestone.reports.quantities import Quantity, quantity_of
from freestone.reports.shown import cells_of, order_of


def ratios(experiment: Experiment, summary: Summary, workload: str, key: str) -> alt.LayerChart:
    """The ratio of each configuration to the baseline with its interval."""
    quantity = quantity_of(key)
    order = order_of(experiment, summary, workload)
    cells = cells_of(summary, workload)
    rows: Rows = []
    for name in order:
        ratio = cells[name].ratio.get(key)
        if cells[name].status == "ok" and ratio is not None and name != summary.baseline:
            rows.append({"configuration": name, **_ratio_row(quantity, ratio)})
    ends = [row[end] for row in rows for end in ("low", "high")]
    x = Axis(axes.domain_of([1.0, *ends]), f"{axes.in_sentence(quantity)}, ratio to {summary.baseline}")
    verdicts = {row["configuration"]: row["label"] for row in rows} | {summary.baseline: "baseline"}
    colour = coloured(experiment)
    marks: list[alt.Chart] = [
        alt.Chart(inline([{"at": 1.0}])).mark_rule().encode(x=x.of("at")),
        alt.Chart(inline(rows))
        .mark_rule(strokeWidth=7, opacity=0.35)
        .encode(x=x.of("low"), x2=alt.X2("high:Q"), y=axes.y_of(order, right=verdicts), color=colour),
        alt.Chart(inline(rows))
        .mark_point(size=60, filled=True, opacity=1)
        .encode(
            x=x.of("value"),
            y=axes.y_of(order, named=True),
            color=colour,
            tooltip=[
                alt.Tooltip("configuration:N"),
                alt.Tooltip("written:N", title="ratio"),
                alt.Tooltip("interval:N", title="interval"),
                alt.Tooltip("label:N", title="verdict"),
            ],
        ),
        axes.absent(cells, order),
    ]
    return axes.rows_chart(marks, order)


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
    x = Axis(axes.domain_of([1.0, *ends]), f"{summary.baseline}, second run / first run")
    intervals = {row["quantity"]: row["label"] for row in rows}
    return layered(
        alt.Chart(inline([{"at": 1.0}])).mark_rule().encode(x=x.of("at")),
        alt.Chart(inline(rows))
        .mark_rule(strokeWidth=7, opacity=0.4)
        .encode(x=x.of("low"), x2=alt.X2("high:Q"), y=axes.y_of(order, "quantity", right=intervals)),
        alt.Chart(inline(rows))
        .mark_text(text="\u2022", style="label", fontSize=18)
        .encode(x=x.of("value"), y=axes.y_of(order, "quantity", named=True)),
        height=28 * len(rows),
        twice=True,
    )


def _ratio_row(quantity: Quantity, ratio: Ratio) -> dict[str, Any]:
    low, high = axes.ends_of(ratio)
    return {
        "value": ratio.value,
        "written": digits.number(ratio.value, 4, different=ratio.different),
        "low": low,
        "high": high,
        "interval": quantities.interval(ratio),
        "label": quantities.verdict(quantity, ratio),
    }
