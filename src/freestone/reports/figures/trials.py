"""Every trial of a workload as a dot."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.reports import quantities
from freestone.reports.figures import axes
from freestone.reports.figures.axes import ROW, Axis
from freestone.reports.pieces import Rows, coloured, inline
from freestone.reports.quantities import Scale, quantity_of
from freestone.reports.shown import cells_of, order_of, values_of


def points(
    experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], workload: str, key: str
) -> alt.LayerChart:
    """Every trial's value as a dot, later rounds lower within a row; the geometric mean as a bar, its value beside it.

    What has other output than the baseline has hollow dots and no bar, and is last: it is not ranked.

    Args:
        key: name of a metric.
    """
    quantity = quantity_of(key)
    order = order_of(experiment, summary, workload)
    cells = cells_of(summary, workload)
    values = {name: values_of(records, workload, name, key) for name in order if quantities.has_figures(cells[name])}
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
        if mine and cells[name].status == "ok" and (figure := cells[name].figure(key)) is not None
    ]
    x = Axis(axes.domain_of([row["value"] for row in (*dots, *bars)]), axes.title_of(quantity, scale))
    unranked = [name for name, mine in values.items() if mine and cells[name].status != "ok"]
    beside = {row["configuration"]: row["text"] for row in bars}
    beside |= {name: quantities.STATUS_WORDS[cells[name].status] for name in unranked}  # there is little room
    colour = coloured(experiment)
    ranked = [row for row in dots if row["configuration"] not in unranked]
    hollow = [row for row in dots if row["configuration"] in unranked]

    def of_trials(marks: alt.Chart) -> alt.Chart:
        placed: alt.Chart = marks.encode(
            x=x.of("value"),
            y=axes.y_of(order, named=True),
            yOffset=alt.YOffset("row:Q", scale=alt.Scale(domain=[-0.5, 1.5], nice=False)),
            color=colour,
            tooltip=[
                alt.Tooltip("configuration:N"),
                alt.Tooltip("round:Q"),
                alt.Tooltip("text:N", title=quantity.title),
            ],
        )
        return placed

    marks = [
        of_trials(alt.Chart(inline(ranked)).mark_circle(size=34, opacity=0.55)),
        alt.Chart(inline(bars))
        .mark_tick(thickness=2.5, size=ROW * 0.72)
        .encode(x=x.of("value"), y=axes.y_of(order, right=beside), color=colour),
        axes.absent(cells, order, unranked),
    ]
    if hollow:
        marks.append(
            of_trials(alt.Chart(inline(hollow)).mark_point(shape="circle", size=30, filled=False, opacity=0.8))
        )
    return axes.rows_chart(marks, order)
