#!/usr/bin/env python3
"""The mean over the workloads of one suite, allocator by allocator, as a Markdown table.

Usage: ``python tools/suite_means.py RESULTS_FOLDER [SUITE]`` (``apps`` unless another is named)

``freestone bench field apps`` weighs an allocator against the best of all on every workload; this tells how it does on
real programs alone, beside the baseline. A round gives one figure, the mean logarithm over the workloads; the interval
is Student's over the rounds, so wide that all that stand in one column hold together with 95 %. Every run of the
baseline counts, also the second of a round.
"""

from __future__ import annotations

import math
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Final

from freestone.analysis.student import quantile
from freestone.records import store
from freestone.records.schema import TrialRecord
from freestone.suites import reading
from freestone.suites.schema import SuiteError

CONFIDENCE: Final = 0.95
Key = tuple[str, int, str]
"""Workload, round, configuration."""


def _time(record: TrialRecord) -> float | None:
    said = record.figures.get("seconds") if record.figures else None
    return said if said is not None else record.metrics.wall_s if record.metrics else None


def _peak(record: TrialRecord) -> float | None:
    return record.metrics.peak_rss_kib if record.metrics else None


def _faults(record: TrialRecord) -> float | None:
    return record.metrics.minor_faults if record.metrics else None


QUANTITIES: Final[Mapping[str, Callable[[TrialRecord], float | None]]] = {
    "time": _time,
    "peak RSS": _peak,
    "page faults": _faults,
}


def logarithms(records: Iterable[TrialRecord], of: Callable[[TrialRecord], float | None]) -> dict[Key, float]:
    """Of each workload, round and configuration the mean logarithm over its runs; what has none is left out."""
    found: dict[Key, list[float]] = defaultdict(list)
    for record in records:
        value = of(record) if record.status == "ok" else None
        if value is not None and value > 0:
            found[record.workload, record.round, record.configuration].append(math.log(value))
    return {key: mean(values) for key, values in found.items()}


def rounds(found: Mapping[Key, float], one: str, other: str) -> list[float]:
    """For each round the mean logarithm of one configuration's ratio to another's, over the workloads of all rounds.

    A workload that lacks either of them in some round is left out of all, so that no round speaks of others.
    """
    turns = sorted({turn for _, turn, _ in found})
    names = sorted({workload for workload, _, _ in found})
    whole = [name for name in names if all((name, turn, c) in found for turn in turns for c in (one, other))]
    return [mean(found[name, turn, one] - found[name, turn, other] for name in whole) for turn in turns if whole]


def interval(logs: Sequence[float], of: int) -> tuple[float, float] | None:
    """Where the mean ratio lies, where so many intervals are to hold at once; None with fewer than two rounds."""
    if len(logs) < 2:
        return None
    half = quantile(len(logs) - 1, 1 - (1 - CONFIDENCE) / of) * stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean(logs) - half), math.exp(mean(logs) + half)


def table(records: Sequence[TrialRecord], baseline: str, configurations: Sequence[str]) -> list[str]:
    """Markdown: a row for each configuration but the baseline, least time first, and the baseline's two runs."""
    others = [name for name in configurations if name != baseline]
    columns = {title: logarithms(records, of) for title, of in QUANTITIES.items()}
    means = {name: rounds(columns["time"], name, baseline) for name in others}
    shown = sorted((name for name in others if means[name]), key=lambda name: mean(means[name]))
    lines = [f"| to {baseline} | {' | '.join(columns)} |", f"| --- |{' ---: |' * len(columns)}"]
    for name in shown:
        cells = [_cell(rounds(found, name, baseline), len(shown)) for found in columns.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    again = [_again(record) for record in records if record.configuration == baseline]
    itself = [_cell(rounds(logarithms(again, of), _run(1), _run(0)), 1) for of in QUANTITIES.values()]
    lines.append(f"| {baseline}, its second run of a round to its first | {' | '.join(itself)} |")
    return lines


def _run(repeat: int) -> str:
    return f"run {repeat}"


def _again(record: TrialRecord) -> TrialRecord:
    return record.model_copy(update={"configuration": _run(record.repeat)})


def _cell(logs: Sequence[float], of: int) -> str:
    if not logs:
        return "–"
    sure = interval(logs, of)
    said = f"{math.exp(mean(logs)):.3f}"
    return said if sure is None else f"{said} [{sure[0]:.3f}, {sure[1]:.3f}]"


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
        experiment = store.read_experiment(folder)
        records = store.read_trials(folder).records
    except store.StoreError as error:
        print(f"suite_means: {error}", file=sys.stderr)
        return 1
    own = [record for record in records if any(pattern.fullmatch(record.workload) for pattern in patterns)]
    if not own:
        print(f"suite_means: {folder} has no workload of {suite}", file=sys.stderr)
        return 1
    print("\n".join(table(own, experiment.baseline, [each.name for each in experiment.configurations])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
