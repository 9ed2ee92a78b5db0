"""What comes before and after the rounds: setup, warm-up runs, cleanup, whatever happens between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from freestone.analysis.rounds import Slot
from freestone.experiments import Outcome, run
from freestone.experiments.events import NeverReady, StageFailed, WarmUpStarted
from freestone.records import store
from freestone.records.schema import Configuration, Experiment, Stages, Workload
from freestone.trials import StageFailure

STAGES = Stages(setup="make", cleanup="make clean")


def workloads(*names: str, warmup: int = 0) -> list[Workload]:
    return [Workload(name=name, command=["true"], stages=STAGES, warmup=warmup) for name in names]


def test_setup_comes_once_before_everything_and_cleanup_once_after_it(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    experiment = make_experiment(("a", "b"), rounds=2, workloads=workloads("one", "two"))
    assert run(experiment, tmp_path, measurement=fake_trials) is Outcome.COMPLETE
    assert fake_trials.around == ["setup one 0", "setup two 0", "cleanup two 12", "cleanup one 12"]


def test_a_workload_without_such_commands_has_none_run(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    run(make_experiment(rounds=1), tmp_path, measurement=fake_trials)
    assert fake_trials.around == []


@pytest.mark.parametrize("broken_after", [0, 1, 4])
def test_what_is_broken_off_is_cleaned_up_and_set_up_again_when_it_goes_on(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path, broken_after: int
) -> None:
    experiment = make_experiment(("a", "b"), rounds=2, workloads=workloads("one"))

    def stop(slot: Slot) -> None:
        if len(fake_trials.taken) == broken_after:
            raise KeyboardInterrupt

    fake_trials.before = stop
    assert run(experiment, tmp_path, measurement=fake_trials) is Outcome.INTERRUPTED
    assert fake_trials.around == ["setup one 0", f"cleanup one {broken_after}"]
    fake_trials.before = lambda slot: None
    fake_trials.around.clear()
    assert run(experiment, tmp_path, measurement=fake_trials) is Outcome.COMPLETE
    assert fake_trials.around == [f"setup one {broken_after}", "cleanup one 6"]
    assert run(experiment, tmp_path, measurement=fake_trials) is Outcome.COMPLETE
    assert len(fake_trials.around) == 2, "where nothing is left to do, nothing is set up"


def test_an_error_of_the_lab_is_cleaned_up_after_too(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    def full(slot: Slot) -> None:
        raise store.StoreError("disk full")

    fake_trials.before = full
    with pytest.raises(store.StoreError):
        run(make_experiment(workloads=workloads("one")), tmp_path, measurement=fake_trials)
    assert fake_trials.around[-1] == "cleanup one 0"


def test_what_cannot_be_set_up_is_not_run_and_the_rest_is(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    failure = StageFailure("setup failed with exit status 1", "")
    fake_trials.failing["setup one"] = failure
    experiment = make_experiment(("a", "b"), rounds=2, workloads=workloads("one", "two", warmup=1))
    events: list[object] = []
    run(experiment, tmp_path, measurement=fake_trials, on_event=events.append)
    assert {slot.workload for slot in fake_trials.taken} == {"two"}
    assert {name for name, _ in fake_trials.rehearsed} == {"two"}
    assert fake_trials.around[-1] == "cleanup one 6", "a setup that failed halfway has left something"
    assert [event for event in events if isinstance(event, StageFailed)] == [StageFailed("one", "setup", failure)]
    fake_trials.failing.clear()
    assert run(experiment, tmp_path, measurement=fake_trials) is Outcome.COMPLETE
    assert len(fake_trials.taken) == 12, "a later session goes on with it"


def test_where_nothing_can_be_set_up_nothing_is_run(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    fake_trials.failing["setup one"] = StageFailure("setup failed with exit status 1", "")
    experiment = make_experiment(rounds=2, workloads=workloads("one", warmup=2))
    assert run(experiment, tmp_path, measurement=fake_trials) is Outcome.HOPELESS
    assert fake_trials.taken == fake_trials.rehearsed == []
    assert fake_trials.around == ["setup one 0", "cleanup one 0"]


def test_a_server_that_never_gets_ready_is_not_run_and_the_others_are(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rehearse(workload: Workload, configuration: Configuration) -> NeverReady | None:
        fake_trials.rehearsed.append((workload.name, configuration.name))
        return NeverReady("one", "it was not ready") if workload.name == "one" else None

    monkeypatch.setattr(fake_trials, "rehearse", rehearse)
    stages = workloads("one", "two", warmup=1)
    events: list[object] = []
    both = make_experiment(("a", "b"), rounds=1, workloads=stages)
    assert run(both, tmp_path, measurement=fake_trials, on_event=events.append) is Outcome.COMPLETE
    assert {record.workload for record in store.read_trials(tmp_path).records} == {"two"}
    assert len([name for name, _ in fake_trials.rehearsed if name == "one"]) == 1, "it is tried under no other"
    assert [event for event in events if isinstance(event, NeverReady)] == [NeverReady("one", "it was not ready")]
    (alone := tmp_path / "alone").mkdir()
    assert run(make_experiment(workloads=stages[:1]), alone, measurement=fake_trials) is Outcome.HOPELESS
    assert store.read_trials(alone).records == []
    assert fake_trials.around[-1] == "cleanup one 3"


def test_a_cleanup_that_fails_is_told_and_loses_nothing(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    failure = StageFailure("cleanup failed with exit status 1", "")
    fake_trials.failing["cleanup two"] = failure
    experiment = make_experiment(("a", "b"), rounds=1, workloads=workloads("one", "two"))
    events: list[object] = []
    assert run(experiment, tmp_path, measurement=fake_trials, on_event=events.append) is Outcome.COMPLETE
    assert [event for event in events if isinstance(event, StageFailed)] == [StageFailed("two", "cleanup", failure)]
    assert fake_trials.around[-1] == "cleanup one 6", "the others are cleaned up all the same"
    assert len(store.read_trials(tmp_path).records) == 6


def test_every_allocator_is_warmed_up_as_often_as_was_asked_after_the_rehearsals(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    one, two = workloads("one", warmup=2)[0], workloads("two")[0]
    experiment = make_experiment(("a", "b"), rounds=1, workloads=[one, two])
    events: list[object] = []
    run(experiment, tmp_path, measurement=fake_trials, on_event=events.append)
    warm = [line for line in fake_trials.around if line.startswith("warm-up")]
    assert sorted(warm) == ["warm-up one a 0"] * 2 + ["warm-up one b 0"] * 2, "before the first trial, and of no other"
    assert [event.total for event in events if isinstance(event, WarmUpStarted)] == [4] * 4
    assert len(store.read_trials(tmp_path).records) == 6, "nothing is kept of them"
