"""One workload on several machines: which allocator is best where, and where the ranking changes. Pure functions.

Machines stand side by side and are never pooled. Of each is said what its own summary says; a ranking has changed
where a configuration really takes less than the baseline on one machine and really more on another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from freestone.analysis import machines
from freestone.analysis.headline import MEMORY, TIME, aspects
from freestone.records.schema import Experiment, Ratio, Summary, Workload

ASPECTS = (TIME, MEMORY)
"""What somebody is best in."""


@dataclass(frozen=True)
class There:
    """One machine's results of a workload."""

    place: str
    best: Mapping[str, str]
    """``time``, ``peak memory`` -> who is really best there."""
    ratios: Mapping[str, Mapping[str, Ratio]]
    """The same -> configuration -> its ratio to the baseline."""
    machine: str
    """What is equal for results of one machine."""


@dataclass(frozen=True)
class Turn:
    """A configuration that takes less at some places and more at others."""

    aspect: str
    configuration: str
    less: Sequence[str]
    more: Sequence[str]


@dataclass(frozen=True)
class Across:
    """A workload at several places."""

    workload: str
    baseline: str
    places: Sequence[There]
    turns: Sequence[Turn]

    def agreed(self, aspect: str) -> str | None:
        """Who is best at every place; None where there is nobody, or not the same one."""
        names = {there.best.get(aspect) for there in self.places}
        return names.pop() if len(names) == 1 else None

    @property
    def machines(self) -> int:
        """How many machines the places are."""
        return len({there.machine for there in self.places})

    @property
    def again(self) -> list[list[str]]:
        """Places that are one machine, measured several times."""
        found: dict[str, list[str]] = {}
        for there in self.places:
            found.setdefault(there.machine, []).append(there.place)
        return [names for names in found.values() if len(names) > 1]


def across(results: Sequence[tuple[str, Experiment, Summary]], *, one_order: bool = False) -> list[Across]:
    """Every workload that several machines have measured against the same baseline.

    Args:
        results: a name for each place, unlike each other, with what was measured there.
        one_order: whether they are of one folder: then they stand side by side also where they are of one machine,
            and workloads of one name are the same ones, wherever their programs lie.
    """
    if not one_order and len({experiment.machine.id for _, experiment, _ in results}) < 2:
        return []
    found: dict[tuple[str, tuple[str, ...], str], list[There]] = {}
    for place, experiment, summary in results:
        for workload in experiment.workloads:
            key = (workload.name, () if one_order else tuple(workload.command), summary.baseline)
            found.setdefault(key, []).append(_there(place, experiment, workload, summary))
    return [
        Across(name, baseline, places, _turns(places))
        for (name, _, baseline), places in found.items()
        if len(places) > 1
    ]


def _there(place: str, experiment: Experiment, workload: Workload, summary: Summary) -> There:
    cells = [cell for cell in summary.cells if cell.workload == workload.name and cell.status == "ok"]
    ratios = {
        aspect: {cell.configuration: cell.ratio[metric] for cell in cells if metric in cell.ratio}
        for aspect, metric in aspects(workload).items()
        if aspect in ASPECTS
    }
    return There(place, summary.best.get(workload.name, {}), ratios, machines.key(experiment.machine))


def _turns(places: Sequence[There]) -> list[Turn]:
    names = dict.fromkeys(name for there in places for ratios in there.ratios.values() for name in ratios)
    turns = []
    for aspect in ASPECTS:
        for name in names:
            told = [(there.place, ratio) for there in places if (ratio := there.ratios[aspect].get(name)) is not None]
            less = [place for place, ratio in told if ratio.different and ratio.value < 1]
            more = [place for place, ratio in told if ratio.different and ratio.value > 1]
            if less and more:
                turns.append(Turn(aspect, name, less, more))
    return turns
