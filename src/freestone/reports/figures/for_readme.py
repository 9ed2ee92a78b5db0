"""One picture for a README: the times of all trials, and time against memory."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.reports import quantities
from freestone.reports.figures.time_and_memory import trade
from freestone.reports.figures.trials import points
from freestone.reports.quantities import quantity_of
from freestone.reports.shown import cells_of


def overview(
    experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], workload: str
) -> alt.HConcatChart:
    """One picture of fixed size for a README: every trial's time, and time against memory."""
    time = quantities.time_of(cells_of(summary, workload).values())
    left = points(experiment, summary, records, workload, time).properties(
        width=400, height=300, title=f"{quantity_of(time).title} of every trial: {workload}"
    )
    right = trade(experiment, summary, workload).properties(
        width=360, height=300, title="Time against memory: lower left is better"
    )
    return alt.hconcat(left, right, spacing=48)
