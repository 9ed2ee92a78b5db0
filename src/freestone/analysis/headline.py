"""One sentence for the top of the table: which allocator is best for what, and whether the difference is real."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from freestone.analysis.field import standings
from freestone.analysis.rounds import Arm
from freestone.analysis.statistics import FEWEST_PAIRS
from freestone.records.schema import Cell, Experiment, Workload

Rivalry = Callable[[str, str, str, str], bool]
"""(workload, metric, one, other) -> whether ``one`` is really lower than ``other``."""

Typical = Mapping[Arm, Mapping[str, float]]
"""(workload, configuration) -> metric -> geometric mean over rounds."""

MOST_TOLD: Final = 3
"""With more workloads than these the headline speaks of all of them together."""


def aspects(workload: Workload) -> list[tuple[str, str]]:
    """What the headline speaks of, and the metric it reads for it."""
    return [("time", workload.time), ("peak memory", "peak_rss_kib"), ("page faults", "minor_faults")]


def sentence(experiment: Experiment, cells: Sequence[Cell], beats: Rivalry, rounds: int, typical: Typical) -> str:
    """The headline.

    Args:
        experiment: whose headline it is.
        cells: all cells of its summary.
        beats: whether one configuration is really lower than another on a metric of a workload.
        rounds: complete rounds.
        typical: what every arm that counts has, by metric.
    """
    if len(experiment.workloads) > MOST_TOLD and any(cell.status == "ok" for cell in cells):
        return _of_many(experiment, typical)
    several = len(experiment.workloads) > 1
    parts: list[str] = []
    for workload in experiment.workloads:
        own = [cell for cell in cells if cell.workload == workload.name]
        said = _of_workload(experiment, workload, own, beats, rounds)
        parts.append(f"{workload.name}: {said}" if several else said)
    return ". ".join(parts) + "."


def _of_many(experiment: Experiment, typical: Typical) -> str:
    """The leader of the field in each aspect; who really leads on which workload is the scoreboard's to tell."""
    told = []
    for number, aspect in enumerate(("time", "peak memory", "page faults")):
        values: dict[str, dict[str, float]] = {}
        for workload in experiment.workloads:
            metric = aspects(workload)[number][1]
            figures = {
                name: metrics[metric]
                for (measured, name), metrics in typical.items()
                if measured == workload.name and metric in metrics
            }
            if workload.counted and figures:
                values[workload.name] = figures
        if values:
            first = standings(values)[0]
            told.append(f"in {aspect} {first.configuration} {_times(first.mean)}")
    count = len(experiment.workloads)
    return f"{count} workloads, geometric mean of the ratio to the best of each: least {'; '.join(told)}."


def _of_workload(experiment: Experiment, workload: Workload, cells: Sequence[Cell], beats: Rivalry, rounds: int) -> str:
    good = [cell for cell in cells if cell.status == "ok"]
    if not any(cell.trials_total for cell in cells):
        return "Nothing was measured yet"
    if not good:
        tried = [cell for cell in cells if cell.status != "unmeasured"]
        reasons = list(dict.fromkeys(cell.reason or cell.status for cell in tried))
        return f"Nothing could be measured: {reasons[0]}" + (" (and other reasons)" if len(reasons) > 1 else "")
    baseline = experiment.baseline
    if not any(cell.configuration == baseline for cell in good):
        return f"No comparison: the baseline {baseline} has no valid measurement"
    if len(good) == 1:
        only = good[0].configuration
        others = [cell.configuration for cell in cells if cell.status == "different"]
        if only == baseline and others:
            return f"No comparison: under {_and(others)} the output differs from that under {baseline}"
        return f"Only {only} could be measured" if len(cells) > 1 else f"{only} was measured against nothing but itself"
    pairs = max((ratio.pairs for cell in good for ratio in cell.ratio.values()), default=0)
    if pairs < FEWEST_PAIRS:
        return f"Too few rounds to tell any difference ({_count(pairs, 'round')}; {FEWEST_PAIRS} are the fewest)"
    verdicts = [(aspect, _winner(workload.name, metric, good, baseline, beats)) for aspect, metric in aspects(workload)]
    known = [(aspect, text) for aspect, text in verdicts if text]
    if known and all(text == NO_DIFFERENCE for _, text in known):
        names = [aspect for aspect, _ in known]
        return f"No difference seen between {_and([cell.configuration for cell in good])} in {_and(names)}"
    return "; ".join(
        f"{'Best' if not number else 'best'} in {aspect}: {text}" for number, (aspect, text) in enumerate(known)
    )


NO_DIFFERENCE: Final = "no difference seen"


def _winner(workload: str, metric: str, good: Sequence[Cell], baseline: str, beats: Rivalry) -> str | None:
    """Who is lowest on a metric, by how much against the baseline, and who is not really behind."""
    if not any(metric in cell.ratio for cell in good):
        return None
    ratios = {cell.configuration: cell.ratio[metric] for cell in good if metric in cell.ratio}
    better = {name: ratio for name, ratio in ratios.items() if ratio.different and ratio.value < 1}
    if not better:
        worse = [name for name, ratio in ratios.items() if ratio.different]
        if not worse:
            return NO_DIFFERENCE
        level = [name for name in ratios if name not in worse]
        return f"{_and([baseline, *level])}" + (" (no difference seen)" if level else " (real)")
    best = min(better, key=lambda name: better[name].value)
    level = [name for name in better if name != best and not beats(workload, metric, best, name)]
    ratio = better[best]
    factor = f"{_times(ratio.value)} {baseline} [{_number(ratio.low)}, {_number(ratio.high)}]"
    beside = f"; {_and(level)} level with it" if level else ""
    return f"{best} {factor} (real{beside})"


def _times(value: float) -> str:
    return f"{_number(value)}×"


def _number(value: float) -> str:
    return f"{value:.2f}" if 0.1 <= value < 10 else f"{value:.2g}"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
