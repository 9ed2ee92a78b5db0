"""The field: how far each configuration is from the best of all, workload by workload. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping

from freestone.analysis import statistics
from freestone.records.schema import Standing


def standings(values: Mapping[str, Mapping[str, float]]) -> list[Standing]:
    """Every configuration's ratio to the best of all on each workload, as geometric mean and worst; best mean first.

    Whoever has figures on few workloads leads nobody who has them on more: what is easy is measured sooner.

    Args:
        values: workload -> configuration -> figure, above 0, less is better.
    """
    names = dict.fromkeys(name for figures in values.values() for name in figures)
    found = []
    for name in names:
        ratios = {
            workload: figures[name] / min(figures.values()) for workload, figures in values.items() if name in figures
        }
        worst = max(ratios, key=lambda workload: ratios[workload])
        found.append(
            Standing(
                configuration=name,
                mean=statistics.geometric_mean(list(ratios.values())),
                worst=ratios[worst],
                worst_workload=worst,
                workloads=len(ratios),
            )
        )
    return sorted(found, key=lambda standing: (-standing.workloads, standing.mean))
