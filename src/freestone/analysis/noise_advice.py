"""What to do where noise hides what one would like to see: how many rounds, and what to quieten. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from freestone.analysis import arms, statistics, student
from freestone.analysis.statistics import FEWEST_PAIRS
from freestone.records.schema import WALL_TIME, Machine, Ratio, TrialRecord

WANTED: Final = 0.02
"""The difference that a comparison should be able to see."""
MOST_ROUNDS: Final = 10_000
TAKEN_PER_S: Final = 20.0
"""Involuntary switches in a second of processor time. A program that has a processor for itself has a few."""
SHORT_S: Final = 0.1
"""Seconds below which a single interruption by another program, some milliseconds, is several per cent of a run."""
APART: Final = 1.2
"""Runs that are farther than this above the median are disturbed, or of another mode."""
OFTEN: Final = 0.05
DRIFT: Final = 0.03


def advice(machine: Machine, time: str, ratios: Sequence[Ratio], baseline: Sequence[TrialRecord]) -> list[str]:
    """Sentences for the one who measures; none where differences of 2 % can be seen already.

    Args:
        machine: on which it was measured.
        time: the workload's metric of time.
        ratios: of its configurations, in that metric.
        baseline: the good trials of the baseline on this workload.
    """
    known = [ratio for ratio in ratios if ratio.pairs >= FEWEST_PAIRS and 0 < ratio.value <= ratio.high < math.inf]
    if not known:
        return []
    # The middle one: a single restless configuration is its own affair.
    middle = sorted(known, key=lambda ratio: ratio.high / ratio.value)[len(known) // 2]
    half = math.log(middle.high) - math.log(middle.value)
    if half <= math.log1p(WANTED):
        return []
    needed = rounds_needed(middle.pairs, half, math.log1p(WANTED))
    often = f"about {needed}" if needed is not None else f"more than {MOST_ROUNDS}"
    first = (
        f"intervals of time reach {_far(math.exp(min(half, 700.0)))} to either side: "
        f"to see {100 * WANTED:.0f} % as things are takes {often} rounds"
    )
    causes = [*_of_runs(time, baseline), *_of_machine(machine)]
    return [first + (", or less noise" if causes else ""), *causes]


def _far(factor: float) -> str:
    """How far a factor leads away; beyond 100 % nobody reads it as per cent."""
    return f"{100 * (factor - 1):.2g} %" if factor <= 2 else f"a factor of {factor:.2g}"


def rounds_needed(pairs: int, half: float, wanted: float, confidence: float = 0.997) -> int | None:
    """Rounds after which an interval would be so narrow; None where that is more than anybody runs.

    Args:
        pairs: rounds so far, at least 4.
        half: half of the interval's width by now, as a logarithm.
        wanted: half of the width that it should have.
        confidence: about what such an interval has; how much a few more degrees of freedom help hangs on it.
    """
    spread = half / student.quantile(pairs - 1, confidence) * math.sqrt(pairs)

    def is_enough(rounds: int) -> bool:
        return student.quantile(rounds - 1, confidence) * spread / math.sqrt(rounds) <= wanted

    low, high = FEWEST_PAIRS, MOST_ROUNDS
    if not is_enough(high):
        return None
    while low < high:
        between = (low + high) // 2
        low, high = (low, between) if is_enough(between) else (between + 1, high)
    return low


def _of_runs(time: str, baseline: Sequence[TrialRecord]) -> list[str]:
    """What the baseline's own runs show: it is there in every round, twice."""
    found = []
    taken = [
        record.metrics.involuntary_switches / busy_s
        for record in baseline
        if record.metrics is not None
        and record.metrics.involuntary_switches is not None
        and (busy_s := record.metrics.cpu_s or 0.0) > 0
    ]
    if taken and statistics.median(taken) > TAKEN_PER_S:
        found.append(
            f"other work takes the processor from a run {statistics.median(taken):.0f} times a second: close what else "
            "runs, or keep processors free for this (taskset, cpusets)"
        )
    times = _times(time, baseline)
    values = list(times.values())
    if not values:
        return found
    usual = statistics.median(values)
    if time == WALL_TIME and usual < SHORT_S:
        found.append(
            f"a run lasts {1000 * usual:.2g} ms, and what disturbs it does not shrink with it: give it more work"
        )
    far = sum(value > APART * usual for value in values)
    if far > OFTEN * len(values):
        found.append(
            f"{far} of {len(values)} rounds of the baseline take over {APART:g} times the median: neighbours, or a "
            "program with a slow mode; the report shows every run"
        )
    return [*found, *_drift(times)]


def _times(time: str, baseline: Sequence[TrialRecord]) -> dict[int, float]:
    return {number: value for number, value in arms.by_round(baseline).get(time, {}).items() if 0 < value < math.inf}


def _drift(times: Mapping[int, float]) -> list[str]:
    numbers = sorted(times)
    half = len(numbers) // 2
    if half < FEWEST_PAIRS:
        return []
    early, late = (statistics.geometric_mean([times[n] for n in part]) for part in (numbers[:half], numbers[-half:]))
    if abs(math.log(late) - math.log(early)) < math.log1p(DRIFT):
        return []
    way = "slower" if late > early else "faster"
    size = _far(math.exp(min(700.0, abs(math.log(late) - math.log(early)))))
    return [f"the machine became {size} {way} meanwhile: ratios within rounds do not hold that, figures do"]


def _of_machine(machine: Machine) -> list[str]:
    facts = machine.facts
    found = []
    governor = facts.get("governor")
    if isinstance(governor, str) and governor != "performance":
        found.append(f"the governor is {governor}: cpupower frequency-set -g performance")
    if facts.get("virtualised") is True:
        found.append("this is a virtual machine, and its neighbours cannot be seen: one of one's own is quieter")
    return found
