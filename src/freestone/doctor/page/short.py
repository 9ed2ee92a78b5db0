"""Configurations under names that fit beside a mark: what has settings is numbered, ``glibc 1``. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from freestone.records.schema import Experiment
from freestone.reports.source import Source

LONGEST = 20
"""Characters of a name that stays as it is."""


def names(experiment: Experiment) -> dict[str, str]:
    """Full name -> short one, none twice; the baseline keeps its own."""
    kept = {each.name for each in experiment.configurations if _stays(each.name, experiment)}
    found, taken = {name: name for name in kept}, set(kept)
    for each in experiment.configurations:
        if each.name in kept:
            continue
        number = 1
        while f"{each.allocator.name} {number}" in taken:
            number += 1
        found[each.name] = f"{each.allocator.name} {number}"
        taken.add(found[each.name])
    return found


def _stays(name: str, experiment: Experiment) -> bool:
    return name == experiment.baseline or len(name) <= LONGEST


def renamed(source: Source, called: Mapping[str, str]) -> Source:
    """Rounds under other names; what steers each configuration stays with it.

    Args:
        called: full name -> the other.
    """
    experiment, summary = source.experiment, source.summary
    configurations = [each.model_copy(update={"name": called[each.name]}) for each in experiment.configurations]
    cells = [
        cell.model_copy(update={"configuration": called.get(cell.configuration, cell.configuration)})
        for cell in summary.cells
    ]
    best = {
        workload: {what: called.get(name, name) for what, name in of.items()} for workload, of in summary.best.items()
    }
    return Source(
        experiment.model_copy(update={"configurations": configurations, "baseline": called[experiment.baseline]}),
        summary.model_copy(update={"cells": cells, "best": best}),
        [
            record.model_copy(update={"configuration": called.get(record.configuration, record.configuration)})
            for record in source.records
        ],
        source.calls,
        source.instructions,
        source.damage,
    )
