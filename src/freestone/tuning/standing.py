"""Where a search stands: its batches in, who is still in it out. Pure.

It is made anew from the records whenever it is asked for, so that a search that goes on after an end knows what the
first one knew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from freestone.analysis import arms, same_program, statistics
from freestone.experiments.schedule import elapsed_s
from freestone.records.schema import Configuration, TrialRecord
from freestone.tuning import racing
from freestone.tuning.kept import Batch, Tuning
from freestone.tuning.racing import MEMORY, TIME, Race

OVERHEAD_S = 0.1
"""What a trial costs beside its own time until a search has seen more."""


@dataclass(frozen=True)
class Standing:
    """Everything that was tried so far."""

    baseline: str
    configurations: Mapping[str, Configuration]
    """All that had a turn, the untouched program included."""
    race: Race
    """Those of them that are fit to be compared."""
    failed: Mapping[str, str]
    """Those that are not -> why: a failed trial, another output, not proved."""
    out: Mapping[str, str]
    """Who is out -> who is better."""
    unmeasured: frozenset[str]
    """Whose turn was in a batch that ended before it."""

    @property
    def alive(self) -> list[str]:
        """Who may still be the best in something, but for the untouched program."""
        return [name for name in self.race if name != self.baseline and name not in self.out]

    @property
    def broken(self) -> str | None:
        """Why nothing can be compared: the untouched program has failed; None where it has not."""
        return self.failed.get(self.baseline)


def of(tuning: Tuning, batches: Sequence[Batch]) -> Standing:
    """Where a search stands after its batches, each looked at once, in their order."""
    baseline = tuning.head.baseline
    counted = _counted(batches)
    out: dict[str, str] = {}
    looks: dict[str, int] = {}
    race: Race = {}
    failed: dict[str, str] = {}
    configurations: dict[str, Configuration] = {}
    for count, batch in enumerate(batches, start=1):
        configurations |= {each.name: each for each in batch.experiment.configurations}
        race, failed = _race(tuning, counted[:count])
        present = list(dict.fromkeys(record.configuration for record in counted[count - 1]))
        for name in present:
            looks[name] = looks.get(name, 0) + 1
        if baseline in race:
            out |= racing.put_out(race, baseline, present, looks, out)
    return Standing(
        baseline=baseline,
        configurations=configurations,
        race=race,
        failed=failed,
        out={name: by for name, by in out.items() if name in race},
        unmeasured=frozenset(configurations.keys() - race.keys() - failed.keys()),
    )


def spent_s(batches: Sequence[Batch]) -> float:
    """Seconds that the trials of some batches took, as far as records tell."""
    return sum(elapsed_s(record) + OVERHEAD_S for batch in batches for record in batch.records)


@dataclass(frozen=True)
class Prices:
    """Seconds that a trial takes, with all that is around it."""

    untouched_s: float
    others_s: Mapping[str, float]

    def round_s(self, names: Sequence[str], new: int = 0) -> float:
        """Of a round of some that were measured before, of some that were not, and of the untouched program, twice."""
        usual = statistics.median(list(self.others_s.values())) if self.others_s else self.untouched_s
        return 2 * self.untouched_s + sum(self.others_s.get(name, usual) for name in names) + new * usual


def prices(batches: Sequence[Batch], baseline: str, dearer: float = 1.0) -> Prices | None:
    """What trials took; None before the first of the untouched program.

    Args:
        dearer: by what factor the clock has seen more pass than the records tell.
    """
    seen: dict[str, list[float]] = {}
    for batch in batches:
        for record in batch.records:
            seen.setdefault(record.configuration, []).append((elapsed_s(record) + OVERHEAD_S) * dearer)
    typical = {name: statistics.median(each) for name, each in seen.items()}
    untouched_s = typical.pop(baseline, None)
    return None if untouched_s is None else Prices(untouched_s, typical)


def _counted(batches: Sequence[Batch]) -> list[list[TrialRecord]]:
    """The records of each batch with what only a look at all of them tells."""
    found = [arms.counted(batch.experiment, batch.records) for batch in batches]
    # A program that was changed between two batches is another one in the second.
    flat = same_program.marked([record for records in found for record in records])
    whole = iter(flat)
    return [[next(whole) for _ in records] for records in found]


def _race(tuning: Tuning, counted: Sequence[Sequence[TrialRecord]]) -> tuple[Race, dict[str, str]]:
    (workload,) = tuning.head.workloads
    metrics = {TIME: workload.time, MEMORY: tuning.memory}
    by_name: dict[str, list[TrialRecord]] = {}
    figures: dict[str, dict[str, dict[tuple[int, int], float]]] = {}
    for number, records in enumerate(counted):
        for (_, name), mine in arms.by_arm(records).items():
            by_name.setdefault(name, []).extend(mine)
            rounds = arms.by_round(mine)
            for objective, metric in metrics.items():
                kept = figures.setdefault(name, {}).setdefault(objective, {})
                kept |= {(number, each): value for each, value in rounds.get(metric, {}).items() if value > 0}
    failed = {}
    for name, mine in by_name.items():
        status, reason = arms.verdict(mine)
        if status != "ok":
            failed[name] = reason or status
    return {name: found for name, found in figures.items() if name not in failed}, failed
