"""Which configuration is really better than the baseline, for whoever wants to use it. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from freestone.analysis.rivals import Rivals
from freestone.records.schema import Cell, Experiment, Ratio

MEMORY = "peak_rss_kib"
WORTH_A_CHANGE = 0.995
"""What is nearer to the baseline is written as 1.00 times it: really less, perhaps, and nobody changes for that."""


def best(experiment: Experiment, cells: Sequence[Cell], rivals: Rivals) -> dict[str, dict[str, str]]:
    """Workload -> ``time``, ``peak memory`` -> the configuration to use for it; none where nothing is really better.

    Rounds that did not choose it have to confirm a winner. Whoever is slower is no winner in memory: it would be used
    at the price of what was not asked for.
    """
    found: dict[str, dict[str, str]] = {}
    for workload in experiment.workloads:
        own = [cell for cell in cells if cell.workload == workload.name and cell.status == "ok"]
        not_slower = [cell for cell in own if not _is_more(cell.ratio.get(workload.time))]
        found[workload.name] = {
            aspect: name
            for aspect, metric, among in (("time", workload.time, own), ("peak memory", MEMORY, not_slower))
            if (name := _lowest(among, metric)) is not None
            and rivals.confirms(workload.name, metric, [cell.configuration for cell in among if metric in cell.ratio])
        }
    return {workload: winners for workload, winners in found.items() if winners}


def _lowest(cells: Sequence[Cell], metric: str) -> str | None:
    lower = [cell for cell in cells if metric in cell.ratio and _is_less(cell.ratio[metric])]
    return min(lower, key=lambda cell: cell.ratio[metric].value).configuration if lower else None


def _is_less(ratio: Ratio) -> bool:
    return ratio.different and ratio.value < WORTH_A_CHANGE


def _is_more(ratio: Ratio | None) -> bool:
    return ratio is not None and ratio.different and ratio.value > 1
