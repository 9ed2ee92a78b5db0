"""A whole search with trials that cost nothing: what it finds, what it keeps, how it goes on, how it ends."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from freestone.analysis.rounds import Arm, Slot
from freestone.experiments import Outcome
from freestone.experiments.run import Measurement
from freestone.records import store
from freestone.records.schema import Allocator, Configuration, Experiment, Status, TrialRecord, Workload
from freestone.records.store import StoreError
from freestone.trials import StageFailure
from freestone.tuning import kept, proposals, racing, space, standing
from freestone.tuning.choice import MOST_FINALISTS, Choice
from freestone.tuning.kept import Tuning
from freestone.tuning.knobs import KNOBS
from freestone.tuning.search import SEARCHED, Search
from freestone.tuning.space import Point, Room

ALLOCATORS = ("glibc", "freestone", "jemalloc")
ROOM: Room = {name: KNOBS[name] for name in ALLOCATORS}

Truth = Callable[[Configuration], tuple[float, float]]
"""Seconds and KiB of a program under a configuration."""


def indifferent(configuration: Configuration) -> tuple[float, float]:
    return 1.0, 10_000.0


def likes_one_heap(configuration: Configuration) -> tuple[float, float]:
    """Half of the time under jemalloc with one arena, whatever else is set; all else is the same."""
    return (0.5 if "narenas:1" in configuration.environment.get("MALLOC_CONF", "") else 1.0), 10_000.0


@dataclass
class Lab:
    """Trials of any experiment, with a clock that goes by what they take."""

    record: Callable[..., TrialRecord]
    truth: Truth = indifferent
    noise: float = 0.01
    breaks: Callable[[str], Status | None] = lambda name: None
    stops_after: int | None = None
    now: float = 0.0
    taken: list[tuple[str, Slot]] = field(default_factory=list)

    def of(self, experiment: Experiment) -> Measurement:
        return _Trials(self, experiment)

    def clock(self) -> float:
        return self.now


@dataclass
class _Trials:
    lab: Lab
    experiment: Experiment

    def rehearsals(self, arms: Sequence[Arm]) -> list[Arm]:
        return []

    def rehearse(self, workload: Workload, configuration: Configuration) -> None:
        raise AssertionError("nothing is rehearsed")

    def warm_up(self, workload: Workload, configuration: Configuration) -> None:
        raise AssertionError("nothing is warmed up")

    def set_up(self, workload: Workload) -> StageFailure | None:
        return None

    def clean_up(self, workload: Workload) -> StageFailure | None:
        return None

    def trial(self, workload: Workload, configuration: Configuration, slot: Slot) -> TrialRecord:
        if self.lab.stops_after is not None and len(self.lab.taken) >= self.lab.stops_after:
            raise KeyboardInterrupt
        self.lab.taken.append((self.experiment.id, slot))
        chance = random.Random(f"{self.experiment.id}/{slot}")
        seconds, kib = self.lab.truth(configuration)
        seconds *= math.exp(chance.gauss(0, self.lab.noise))
        self.lab.now += seconds + standing.OVERHEAD_S
        return self.lab.record(
            configuration.name,
            slot.round,
            repeat=slot.repeat,
            position=slot.position,
            experiment=self.experiment.id,
            wall_s=seconds,
            peak_rss_kib=round(kib * math.exp(chance.gauss(0, self.lab.noise / 4))),
            status=self.lab.breaks(configuration.name) or "ok",
        )


@pytest.fixture
def lab(make_record: Callable[..., TrialRecord]) -> Lab:
    return Lab(make_record)


@pytest.fixture
def tuning(make_experiment: Callable[..., Experiment]) -> Tuning:
    head = make_experiment(ALLOCATORS, time_budget_s=600.0, rounds=50, id="one")
    return Tuning(goal="time", memory="peak_rss_kib", head=head)


def chooser(tuning: Tuning) -> Choice:
    here: dict[str, Allocator] = {each.name: each.allocator for each in tuning.head.configurations}
    return Choice(tuning, ROOM, here)


def session(folder: Path, tuning: Tuning, lab: Lab, told: list[str] | None = None) -> Search:
    tell = (lambda line: None) if told is None else told.append
    return Search(folder, tuning, chooser(tuning), tell=tell, measurement=lab.of, clock=lab.clock)


def test_what_is_planted_is_found(tmp_path: Path, tuning: Tuning, lab: Lab) -> None:
    lab.truth = likes_one_heap
    search = session(tmp_path, tuning, lab)
    assert search.run() is Outcome.COMPLETE
    best = search.finalists()[0]
    assert "narenas:1" in search.standing.configurations[best].environment["MALLOC_CONF"]
    assert "narenas" not in "".join(name for name in search.standing.out if "narenas:1" in name and name == best)


@pytest.mark.long
def test_a_search_keeps_to_its_part_of_the_time(tmp_path: Path, tuning: Tuning, lab: Lab) -> None:
    search = session(tmp_path, tuning, lab)
    search.run()
    budget = tuning.head.time_budget_s or 0
    assert 0.5 * SEARCHED * budget < lab.now <= SEARCHED * budget
    assert search.left_s == pytest.approx(budget - lab.now)


def test_a_time_that_is_too_short_says_how_long_would_do(tmp_path: Path, tuning: Tuning, lab: Lab) -> None:
    def within(seconds: float) -> Tuning:
        return tuning.model_copy(update={"head": tuning.head.model_copy(update={"time_budget_s": seconds})})

    hurried = session(tmp_path, within(12.0), lab)
    hurried.run()
    wanted = hurried.wanting_s
    assert wanted is not None
    assert wanted == pytest.approx(4 * 4 * 1.1 / SEARCHED, rel=0.05)
    place = tmp_path / "longer"
    place.mkdir()
    longer = session(place, within(1.1 * wanted), lab)
    longer.run()
    assert longer.wanting_s is None


@pytest.mark.long
def test_every_round_has_the_untouched_program_twice(tmp_path: Path, tuning: Tuning, lab: Lab) -> None:
    session(tmp_path, tuning, lab).run()
    batches = kept.batches(tmp_path)
    assert len(batches) > 3
    for batch in batches:
        for number in {record.round for record in batch.records}:
            mine = [each for each in batch.records if each.round == number and each.configuration == "glibc"]
            assert sorted(each.repeat for each in mine) == [0, 1]


@pytest.mark.long
def test_a_configuration_is_new_once(tmp_path: Path, tuning: Tuning, lab: Lab) -> None:
    session(tmp_path, tuning, lab).run()
    environments = [
        (each.allocator.name, tuple(sorted(each.environment.items())))
        for each in standing.of(tuning, kept.batches(tmp_path)).configurations.values()
    ]
    assert len(set(environments)) == len(environments) > 10


@pytest.mark.parametrize("after", [0, *(pytest.param(count, marks=pytest.mark.long) for count in (3, 9, 40, 101))])
def test_what_was_broken_off_goes_on_as_it_would_have(
    tmp_path: Path, tuning: Tuning, make_record: Callable[..., TrialRecord], after: int
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    first = Lab(make_record)
    session(whole, tuning, first).run()
    second = Lab(make_record, stops_after=after)
    assert session(broken, tuning, second).run() is Outcome.INTERRUPTED
    assert sum(len(each.records) for each in kept.batches(broken)) == after
    second.stops_after = None
    assert session(broken, tuning, second).run() is Outcome.COMPLETE
    assert len(set(second.taken)) == len(second.taken)
    assert second.taken == first.taken


def test_what_fails_is_named_and_no_finalist(tmp_path: Path, tuning: Tuning, lab: Lab) -> None:
    lab.breaks = lambda name: "failed" if name == "freestone" else None
    search = session(tmp_path, tuning, lab)
    search.run()
    assert search.standing.failed == {"freestone": "it failed"}
    assert "freestone" not in search.finalists()


def test_without_the_untouched_program_nothing_goes_on(tmp_path: Path, tuning: Tuning, lab: Lab) -> None:
    lab.breaks = lambda name: "failed" if name == "glibc" else None
    search = session(tmp_path, tuning, lab)
    assert search.run() is Outcome.COMPLETE
    assert search.standing.broken == "it failed"
    assert len(kept.batches(tmp_path)) == 1


@pytest.mark.long
def test_a_study_that_breaks_loses_nothing(
    tmp_path: Path, tuning: Tuning, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> list[Point]:
        raise RuntimeError("out of order\nand more")

    monkeypatch.setattr(proposals, "_proposed", breaks)
    told: list[str] = []
    search = session(tmp_path, tuning, lab, told)
    assert search.run() is Outcome.COMPLETE
    assert [line for line in told if "Optuna" in line] == [
        "Optuna proposes nothing any more (RuntimeError: out of order); every record is kept"
    ]
    assert sum(len(each.records) for each in kept.batches(tmp_path)) == len(lab.taken) > 100
    assert search.finalists()


@pytest.mark.long
def test_a_program_without_a_difference_has_finalists_all_the_same(tmp_path: Path, tuning: Tuning, lab: Lab) -> None:
    search = session(tmp_path, tuning, lab)
    search.run()
    assert 1 <= len(search.finalists()) <= MOST_FINALISTS
    assert search.standing.out == {}


@pytest.mark.long
def test_finalists_set_nothing_in_vain_but_for_the_first(tmp_path: Path, tuning: Tuning, lab: Lab) -> None:
    lab.truth, lab.noise = likes_one_heap, 0.03
    search = session(tmp_path, tuning, lab)
    search.run()
    tried = search.standing.configurations
    first, *others = search.finalists()
    for more in others:
        for less in others:
            mine, theirs = (space.entries(tried[each].environment) for each in (more, less))
            if tried[more].allocator.name == tried[less].allocator.name and theirs < mine:
                assert racing.gains_on(search.standing.race, more, less, "glibc")
    assert first not in others


def test_a_program_that_was_changed_between_two_batches_is_another_one(
    tmp_path: Path, tuning: Tuning, lab: Lab
) -> None:
    lab.stops_after = 40
    session(tmp_path, tuning, lab).run()
    batches = kept.batches(tmp_path)
    assert len(batches) > 1

    def built(number: int, record: TrialRecord) -> TrialRecord:
        return record.model_copy(update={"files": {"/program": f"elf:{number}"}, "started_at": f"2026-{number:02}"})

    marked = [
        kept.Batch(each.number, each.folder, each.experiment, [built(each.number, record) for record in each.records])
        for each in batches
    ]
    assert "program is not what it was in the first trial" in (standing.of(tuning, marked).broken or "")


@pytest.mark.long
def test_a_batch_whose_head_was_not_written_is_begun_anew(tmp_path: Path, tuning: Tuning, lab: Lab) -> None:
    kept.batch_folder(tmp_path, 1).mkdir(parents=True)
    assert kept.batches(tmp_path) == []
    session(tmp_path, tuning, lab).run()
    assert kept.batches(tmp_path)[0].records


def test_a_head_is_read_as_it_was_written(tmp_path: Path, tuning: Tuning) -> None:
    kept.write_tuning(tmp_path, tuning)
    assert kept.read_tuning(tmp_path) == tuning
    (tmp_path / kept.TUNING_FILE).write_text("{}")
    with pytest.raises(StoreError, match=r"tuning\.json is damaged"):
        kept.read_tuning(tmp_path)
    with pytest.raises(StoreError, match=r"give a results folder of freestone tune"):
        kept.read_tuning(tmp_path / "nowhere")


def test_each_batch_is_a_results_folder(tmp_path: Path, tuning: Tuning, lab: Lab) -> None:
    lab.stops_after = 20
    session(tmp_path, tuning, lab).run()
    place = kept.batch_folder(tmp_path, 1)
    experiment = store.read_experiment(place)
    assert {each.experiment for each in store.read_trials(place).records} == {experiment.id}
    assert experiment.baseline == "glibc"


@pytest.mark.long
def test_with_one_allocator_its_settings_are_searched(tmp_path: Path, tuning: Tuning, lab: Lab) -> None:
    alone = tuning.model_copy(
        update={"head": tuning.head.model_copy(update={"configurations": tuning.head.configurations[:1]})}
    )
    room: Room = {"glibc": ROOM["glibc"]}
    choice = Choice(alone, room, {"glibc": alone.head.configurations[0].allocator})
    search = Search(tmp_path, alone, choice, measurement=lab.of, clock=lab.clock)
    assert search.run() is Outcome.COMPLETE
    tried = search.standing.configurations
    assert len(tried) > 8
    assert all(each.environment for name, each in tried.items() if name != "glibc")
