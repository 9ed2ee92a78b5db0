#!/usr/bin/env python3
"""The mean over the workloads of one suite, allocator by allocator, as a Markdown table.

Usage: ``python tools/suite_means.py RESULTS_FOLDER [SUITE]`` (``apps`` unless another is named)

``freestone bench field apps`` weighs an allocator against the best of all on every workload; this tells how it does on
real programs alone, beside the baseline. What counts, the estimator and the interval are the lab's; a round gives one
figure, the mean logarithm over the workloads, and all intervals of a column hold at once. Every run of the baseline
counts, also the second of a round.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Final

from freestone.analysis import arms, family, statistics
from freestone.analysis.score import FAULTS, PEAK_RSS, TIME, Rounds, metric_of
from freestone.analysis.summary import as_ratio
from freestone.records import store
from freestone.records.schema import Experiment, Ratio, TrialRecord
from freestone.reports import quantities
from freestone.suites import reading
from freestone.suites.schema import SuiteError

ASPECTS: Final = (TIME, PEAK_RSS, FAULTS)

Figures = dict[str, dict[str, Rounds]]
"""Aspect -> workload -> round -> value."""


def figures(experiment: Experiment, records: Iterable[TrialRecord], repeat: int | None = None) -> Figures:
    """What the trials of one configuration say, on the workloads on which all of them count.

    Args:
        records: with the verdicts that only a look at all of them gives.
        repeat: of the baseline, which of its runs in a round; None for both, in the geometric mean.
    """
    workloads = {workload.name: workload for workload in experiment.workloads}
    found: Figures = {aspect: {} for aspect in ASPECTS}
    for (name, _), mine in arms.by_arm(records).items():
        by_round = arms.by_round(mine, repeat) if arms.verdict(mine)[0] == "ok" else {}
        for aspect in ASPECTS:
            values = by_round.get(metric_of(aspect, workloads[name]), {})
            found[aspect][name] = {turn: value for turn, value in values.items() if value > 0}
    return found


def shared(one: Mapping[str, Rounds], other: Mapping[str, Rounds]) -> list[str]:
    """The workloads that both have in every round of either, so that no round speaks of others."""
    turns = {turn for side in (one, other) for values in side.values() for turn in values}
    return [name for name in one if turns and turns <= one[name].keys() & other.get(name, {}).keys()]


def rounds(one: Mapping[str, Rounds], other: Mapping[str, Rounds]) -> list[float]:
    """For each round the mean logarithm of one's ratios to the other's, over the workloads that they share."""
    names = shared(one, other)
    turns = sorted(one[names[0]]) if names else []
    return [mean(math.log(one[name][turn]) - math.log(other[name][turn]) for name in names) for turn in turns]


def ratio(logs: Sequence[float], of: int) -> Ratio:
    """The mean ratio of some rounds, where the intervals of so many are to hold at once."""
    return as_ratio(statistics.interval(statistics.estimate(logs), family.confidence(1, of)))


def table(experiment: Experiment, records: Iterable[TrialRecord]) -> list[str]:
    """Markdown: a row for each configuration but the baseline, least time first, and the baseline's two runs.

    A configuration that does not count on some of the workloads says on how many it is seen.
    """
    own = arms.counted(experiment, records)
    of = {
        each.name: [record for record in own if record.configuration == each.name] for each in experiment.configurations
    }
    baseline = of.pop(experiment.baseline)
    base = figures(experiment, baseline)
    seen = {name: figures(experiment, mine) for name, mine in of.items()}
    least = {name: mean(logs) for name, each in seen.items() if (logs := rounds(each[TIME], base[TIME]))}
    lines = [f"| to {experiment.baseline} | {' | '.join(ASPECTS)} |", f"| --- |{' ---: |' * len(ASPECTS)}"]
    whole = len(experiment.workloads)
    for name in sorted(least, key=lambda name: least[name]):
        lines.append(_row(name, seen[name], base, len(least), whole))
    again = f"{experiment.baseline}, its second run of a round to its first"
    first, second = (figures(experiment, baseline, repeat) for repeat in (0, 1))
    lines.append(_row(again, second, first, 1, whole))
    return lines


def _row(title: str, one: Figures, other: Figures, of: int, whole: int) -> str:
    cells = []
    for aspect in ASPECTS:
        logs, count = rounds(one[aspect], other[aspect]), len(shared(one[aspect], other[aspect]))
        found = ratio(logs, of) if logs else None
        said = "–" if found is None else f"{quantities.ratio_number(found)} {quantities.interval(found)}"
        cells.append(said if count in (0, whole) else f"{said} ({count} of {whole})")
    return f"| {title} | {' | '.join(cells)} |"


def _pattern(name: str) -> re.Pattern[str]:
    """What the workloads of an entry are called: ``postgres-{load}`` has one for each load."""
    return re.compile(
        "".join(".+" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{\w+\})", name))
    )


def main(words: Sequence[str]) -> int:
    """What stands behind the command's name; 2 for wrong use, 1 where nothing can be said."""
    if not 1 <= len(words) <= 2:
        print("usage: python tools/suite_means.py RESULTS_FOLDER [SUITE]", file=sys.stderr)
        return 2
    folder, suite = Path(words[0]), words[1] if len(words) > 1 else "apps"
    try:
        patterns = [_pattern(entry.name) for entry in reading.load(suite).workload]
    except SuiteError as error:
        print(f"suite_means: {error}", file=sys.stderr)
        return 2
    try:
        experiment, found = store.read_experiment(folder), store.read_trials(folder)
    except store.StoreError as error:
        print(f"suite_means: {error}", file=sys.stderr)
        return 1
    if damage := store.damage_line(folder, found.damage):
        print(f"suite_means: {damage}", file=sys.stderr)
    wanted = [each for each in experiment.workloads if any(pattern.fullmatch(each.name) for pattern in patterns)]
    if not wanted:
        print(f"suite_means: {folder} has no workload of {suite}", file=sys.stderr)
        return 1
    names = {workload.name for workload in wanted}
    own = [record for record in found.records if record.workload in names]
    print("\n".join(table(experiment.model_copy(update={"workloads": wanted}), own)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
