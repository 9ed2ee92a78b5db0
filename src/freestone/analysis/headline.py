"""One sentence for the top of the table: which allocator is best for what, and whether the difference is real.

Best can be who takes the least time or the least memory, each with its price in the other. Page faults are a count, and
a count is no verdict: the fewest are told with what they did to time and memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from freestone.analysis import arms, digits
from freestone.analysis.field import standings
from freestone.analysis.rivals import Rivals
from freestone.analysis.rounds import Arm
from freestone.analysis.statistics import FEWEST_PAIRS
from freestone.records.schema import Cell, Experiment, Ratio, Standing, Summary, TrialRecord, Workload

Typical = Mapping[Arm, Mapping[str, float]]
"""(workload, configuration) -> metric -> geometric mean over rounds."""

MOST_TOLD: Final = 3
"""With more workloads than these the headline speaks of all of them together."""


TIME: Final = "time"
MEMORY: Final = "peak memory"
FAULTS: Final = "page faults"


def aspects(workload: Workload) -> dict[str, str]:
    """What the headline speaks of, and the metric it reads for it."""
    return {TIME: workload.time, MEMORY: "peak_rss_kib", FAULTS: "minor_faults"}


def sentence(experiment: Experiment, cells: Sequence[Cell], rivals: Rivals, rounds: int, typical: Typical) -> str:
    """The headline.

    Args:
        experiment: whose headline it is.
        cells: all cells of its summary.
        rivals: who beats whom.
        rounds: complete rounds.
        typical: what every arm that counts has, by metric.
    """
    if len(experiment.workloads) > MOST_TOLD and any(cell.status == "ok" for cell in cells):
        return _of_many(experiment, typical)
    several = len(experiment.workloads) > 1
    parts: list[str] = []
    for workload in experiment.workloads:
        own = [cell for cell in cells if cell.workload == workload.name]
        said = _of_workload(experiment, workload, own, rivals, rounds)
        parts.append(f"{workload.name}: {said}" if several else said)
    return " ".join(map(ended, parts))


def ended(said: str) -> str:
    """A sentence with its full stop, where what it quotes has not brought one."""
    return said if said.endswith((".", "!", "?", "…")) else f"{said}."


def level_with_best(
    experiment: Experiment, records: Iterable[TrialRecord], summary: Summary
) -> dict[str, dict[str, list[str]]]:
    """Workload -> ``time``, ``peak memory`` -> who is really better than the baseline and not really behind the best.

    Args:
        experiment: what was compared.
        records: its records.
        summary: of them.
    """
    own = arms.without_parameters(arms.counted(experiment, records))
    rivals = Rivals(experiment, {arm: arms.by_round(mine) for arm, mine in arms.by_arm(own).items()})
    found: dict[str, dict[str, list[str]]] = {}
    for workload in experiment.workloads:
        good = [cell for cell in summary.cells if cell.workload == workload.name and cell.status == "ok"]
        for aspect, best in summary.best.get(workload.name, {}).items():
            metric = aspects(workload)[aspect]
            found.setdefault(workload.name, {})[aspect] = [
                cell.configuration
                for cell in good
                if cell.configuration != best
                and _is_less(cell.ratio.get(metric))
                # Who is slower is no choice for its memory.
                and (aspect == TIME or not _is_more(cell.ratio.get(workload.time)))
                and not rivals.beats(workload.name, metric, best, cell.configuration)
            ]
    return found


def _is_less(ratio: Ratio | None) -> bool:
    return ratio is not None and ratio.different and ratio.value < 1


def _is_more(ratio: Ratio | None) -> bool:
    return ratio is not None and ratio.different and ratio.value > 1


def _of_many(experiment: Experiment, typical: Typical) -> str:
    """The leader of the field in each aspect; who really leads on which workload is the scoreboard's to tell."""
    fields: dict[str, list[Standing]] = {}
    for aspect in (TIME, MEMORY, FAULTS):
        values: dict[str, dict[str, float]] = {}
        for workload in experiment.workloads:
            metric = aspects(workload)[aspect]
            figures = {
                name: metrics[metric]
                for (measured, name), metrics in typical.items()
                if measured == workload.name and metric in metrics
            }
            if workload.counted and figures:
                values[workload.name] = figures
        if values:
            fields[aspect] = standings(values)
    told = [
        f"least in {aspect} {fields[aspect][0].configuration} {_times(fields[aspect][0].mean)}"
        for aspect in (TIME, MEMORY)
        if aspect in fields
    ]
    if FAULTS in fields:
        calm = fields[FAULTS][0].configuration
        cost = [
            f"{aspect} {_times(standing.mean)}"
            for aspect in (TIME, MEMORY)
            for standing in fields.get(aspect, [])
            if standing.configuration == calm
        ]
        told.append(f"fewest {FAULTS} {calm}" + (f", at {_and(cost)}" if cost else ""))
    count = len(experiment.workloads)
    return ended(f"{count} workloads, geometric mean of the ratio to the best of each: {'; '.join(told)}")


def _of_workload(experiment: Experiment, workload: Workload, cells: Sequence[Cell], rivals: Rivals, rounds: int) -> str:
    good = [cell for cell in cells if cell.status == "ok"]
    if not any(cell.trials_total for cell in cells):
        # A run that ends has a record, also a bad one. What fails before the first of them has none.
        return "Nothing was measured" + (
            ": setup failed, or it was stopped before the first run" if workload.stages.setup is not None else " yet"
        )
    if not good:
        tried = [cell for cell in cells if cell.status != "unmeasured"]
        reasons = list(dict.fromkeys(cell.reason or cell.status for cell in tried))
        more = " (and other reasons)" if len(reasons) > 1 else ""
        # A cell may say itself that it has others.
        first = _OTHERS.sub("", reasons[0]) if more else reasons[0]
        server = all(cell.status == "timeout" for cell in tried) and workload.service is None
        return f"Nothing could be measured: {first}{more}" + (f"; {A_SERVER}" if server else "")
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
        few = f"{_count(pairs, 'round')}; {FEWEST_PAIRS} are the fewest"
        return f"Too few rounds to tell any difference ({few}): ask for more by --rounds 10 (make compare ROUNDS=10)"
    race = _Race(workload, good, baseline, rivals)
    if not any(race.metric(aspect) in cell.ratio for cell in good for aspect in (TIME, MEMORY, FAULTS)):
        return "No ratio can be made of what was measured"
    known = [aspect for aspect in (TIME, MEMORY, FAULTS) if race.ratios(aspect)]
    if not any(race.is_decided(aspect) for aspect in known):
        return f"No difference seen between {_and([cell.configuration for cell in good])} in {_and(known)}"
    told = [f"best in {aspect}: {race.winner(aspect)}" for aspect in known if aspect != FAULTS]
    text = "; ".join([*told, *([race.fewest_faults()] if FAULTS in known else [])])
    return text[:1].upper() + text[1:]


NO_DIFFERENCE: Final = "no difference seen"

A_SERVER: Final = "a server? it needs --ready and --load (docs/guide/service.md)"
"""What is said of a program that does not end."""

_OTHERS: Final = re.compile(r" \(and \d+ other reasons?\)$")


class _Race:
    """The configurations of one workload that count, and who leads in what."""

    def __init__(self, workload: Workload, good: Sequence[Cell], baseline: str, rivals: Rivals) -> None:
        self._workload = workload
        self._good = good
        self._baseline = baseline
        self._rivals = rivals

    def metric(self, aspect: str) -> str:
        return aspects(self._workload)[aspect]

    def ratios(self, aspect: str) -> dict[str, Ratio]:
        metric = self.metric(aspect)
        return {cell.configuration: cell.ratio[metric] for cell in self._good if metric in cell.ratio}

    def is_decided(self, aspect: str) -> bool:
        """Whether anybody really differs from the baseline."""
        return any(ratio.different for ratio in self.ratios(aspect).values())

    def winner(self, aspect: str) -> str:
        """Who is lowest, by how much against the baseline, who is not really behind, and at what price."""
        ratios = self.ratios(aspect)
        better = {name: ratio for name, ratio in ratios.items() if ratio.different and ratio.value < 1}
        if not better:
            worse = [name for name, ratio in ratios.items() if ratio.different]
            if not worse:
                return NO_DIFFERENCE
            level = [name for name in ratios if name not in worse]
            return f"{_and([self._baseline, *level])}" + (f" ({NO_DIFFERENCE})" if level else " (real)")
        best = min(better, key=lambda name: better[name].value)
        factor = f"{best} {_factor(better[best])} {self._baseline} {_range(better[best])}"
        return f"{factor} ({self._standing(aspect, best, better)}){self._price(aspect, best)}"

    def fewest_faults(self) -> str:
        """Who has the fewest page faults, who may have as few, and what became of time and memory."""
        ratios = self.ratios(FAULTS)
        fewer = {name: ratio for name, ratio in ratios.items() if ratio.different and ratio.value < 1}
        if not fewer:
            if not self.is_decided(FAULTS):
                return f"{FAULTS}: {NO_DIFFERENCE}"
            level = [name for name, ratio in ratios.items() if not ratio.different]
            if not level:
                return f"{FAULTS}: {self._baseline} has the fewest"
            return f"fewest {FAULTS}: {_and([self._baseline, *level])} ({NO_DIFFERENCE})"
        calm = min(fewer, key=lambda name: fewer[name].value)
        of_calm = {aspect: self.ratios(aspect).get(calm) for aspect in (TIME, MEMORY) if self.ratios(aspect)}
        changed = [f"{aspect} {_factor(ratio)}" for aspect, ratio in of_calm.items() if ratio and ratio.different]
        unseen = [aspect for aspect, ratio in of_calm.items() if ratio and not ratio.different]
        unknown = [f"{aspect} unknown" for aspect, ratio in of_calm.items() if ratio is None]
        # As of everything that is told of it beside the baseline: intervals that have something in common tell nothing.
        level = [name for name, ratio in ratios.items() if name != calm and ratio.low <= fewer[calm].high]
        beside = f" ({_and(level)} not told apart from it)" if level else ""
        parts = [f"fewest {FAULTS}: {calm} {_factor(fewer[calm])} {self._baseline}{beside}"]
        if changed or unknown:
            parts.append(f"at {_and([*changed, *unknown])}")
        if unseen:
            parts.append(f"with {NO_DIFFERENCE} in {' or '.join(unseen)}")
        return ", ".join(parts)

    def _standing(self, aspect: str, best: str, better: Mapping[str, Ratio]) -> str:
        metric = self.metric(aspect)
        names = list(self.ratios(aspect))
        if not self._rivals.confirms(self._workload.name, metric, names):
            held = self._rivals.held_out(self._workload.name, metric, names)
            said = f": rounds that did not choose it say {_times(held.value)}" if held is not None else ""
            return f"not confirmed{said}"
        level = [
            name for name in better if name != best and not self._rivals.beats(self._workload.name, metric, best, name)
        ]
        return f"real; {_and(level)} not told apart from it" if level else "real"

    def _price(self, aspect: str, best: str) -> str:
        """What the winner takes more of than the baseline, where that is real."""
        other = MEMORY if aspect == TIME else TIME
        ratio = self.ratios(other).get(best)
        if ratio is None or not ratio.different or ratio.value <= 1:
            return ""
        return f", at {_factor(ratio)} the {other}"


def _factor(ratio: Ratio) -> str:
    return _times(ratio.value, different=ratio.different)


def _times(value: float, *, different: bool = False) -> str:
    return f"{_number(value, different=different)}×"


def _range(ratio: Ratio) -> str:
    low, high = (_number(end, different=ratio.different) for end in (ratio.low, ratio.high))
    return f"[{low}, {high}]"


def _number(value: float, *, different: bool) -> str:
    return digits.number(value, 2, different=different) if 0.1 <= value < 10 else f"{value:.2g}"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
