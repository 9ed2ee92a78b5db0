"""Memory over the time of a trial."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence

import altair as alt

from freestone.records.schema import Experiment, Sample, Summary, TrialRecord
from freestone.reports.pieces import Rows, coloured, inline, layered
from freestone.reports.quantities import Scale
from freestone.reports.shown import counting, order_of

SERIES_POINTS = 240
"""Points of a memory series that are drawn; between them the peaks are kept."""


def series(
    experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], workload: str, configuration: str
) -> alt.LayerChart | None:
    """Memory over time of one configuration: its trial of median wall time, the baseline's behind it as a thin line.

    Axes are the same for all configurations of a workload, so the panels can be compared at a glance. None when the
    configuration has no result, or no trial with a series.
    """
    counted = counting(summary, records, [workload])
    shown = {name: _median_trial(counted, workload, name) for name in order_of(experiment, summary, workload)}
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
