"""The running of an experiment, with trials that cost nothing: what is taken, kept, resumed and given up."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import freestone
from freestone.analysis.rounds import Slot, plan_round
from freestone.experiments import Interruption, Outcome, mismatch, run, unfinished
from freestone.experiments.events import BudgetSpent, GivenUp, TrialEnded, TrialStarted
from freestone.records import store
from freestone.records.schema import Allocator, Experiment, Machine, TrialRecord, Workload


def _slots(records: list[TrialRecord]) -> list[tuple[str, int, int]]:
    return [(record.configuration, record.round, record.repeat) for record in records]


def test_every_round_is_run_in_its_order(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    experiment = make_experiment(rounds=3)
    assert run(experiment, tmp_path, measurement=fake_trials) is Outcome.COMPLETE
    planned = [slot for number in range(3) for slot in plan_round(experiment, number)]
    assert fake_trials.taken == planned
    assert _slots(store.read_trials(tmp_path).records) == [(s.configuration, s.round, s.repeat) for s in planned]
    assert sorted(fake_trials.rehearsed) == [("work", "freestone"), ("work", "glibc"), ("work", "jemalloc")]


def test_a_record_is_on_the_disk_before_the_next_trial_begins(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    def look(slot: Slot) -> None:
        assert len(store.read_trials(tmp_path).records) == len(fake_trials.taken)

    fake_trials.before = look
    run(make_experiment(rounds=2), tmp_path, measurement=fake_trials)


@pytest.mark.parametrize("broken_after", [0, 1, 3, 4, 7, 11])
def test_resuming_runs_exactly_what_is_missing(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path, broken_after: int
) -> None:
    experiment = make_experiment(rounds=3)

    def stop(slot: Slot) -> None:
        if len(fake_trials.taken) == broken_after:
            raise KeyboardInterrupt

    fake_trials.before = stop
    assert run(experiment, tmp_path, measurement=fake_trials) is Outcome.INTERRUPTED
    kept = store.read_trials(tmp_path).records
    assert len(kept) == broken_after
    fake_trials.before = lambda slot: None
    assert run(experiment, tmp_path, measurement=fake_trials) is Outcome.COMPLETE
    assert fake_trials.taken == [slot for number in range(3) for slot in plan_round(experiment, number)]
    assert store.read_trials(tmp_path).records[:broken_after] == kept
    taken = len(fake_trials.taken)
    assert run(experiment, tmp_path, measurement=fake_trials) is Outcome.COMPLETE, "nothing is left to do"
    assert len(fake_trials.taken) == taken


@pytest.mark.parametrize("broken_after", [0, 1, 5, 8, 13, 19])
def test_what_is_left_out_of_a_session_is_kept_and_a_later_one_goes_on(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path, broken_after: int
) -> None:
    workloads = [Workload(name=name, command=["true"]) for name in ("small", "large", "other")]
    experiment = make_experiment(("a", "b"), rounds=4, workloads=workloads)

    def stop(slot: Slot) -> None:
        if len(fake_trials.taken) == broken_after:
            raise KeyboardInterrupt

    fake_trials.before = stop
    assert run(experiment, tmp_path, measurement=fake_trials) is Outcome.INTERRUPTED
    begun = (tmp_path / store.TRIALS_FILE).read_bytes()
    fake_trials.before = lambda slot: None
    fake_trials.rehearsed.clear()
    every = [slot for number in range(4) for slot in plan_round(experiment, number)]
    left = [slot for slot in every[broken_after:] if slot.workload != "large"]
    events: list[object] = []
    done = run(experiment, tmp_path, left_out={"large"}, measurement=fake_trials, on_event=events.append)
    assert done is Outcome.COMPLETE
    assert fake_trials.taken[broken_after:] == left, "the same slots as ever, but for those"
    assert "large" not in {workload for workload, _ in fake_trials.rehearsed}
    ended = [event for event in events if isinstance(event, TrialEnded)]
    assert (ended[-1].done, ended[-1].total) == (broken_after + len(left),) * 2
    assert unfinished(experiment, store.read_trials(tmp_path).records) == ["large"]
    assert (tmp_path / store.TRIALS_FILE).read_bytes().startswith(begun)
    assert run(experiment, tmp_path, measurement=fake_trials) is Outcome.COMPLETE
    assert sorted(map(str, fake_trials.taken)) == sorted(map(str, every)), "each once"
    assert unfinished(experiment, store.read_trials(tmp_path).records) == []


def test_where_everything_is_left_out_nothing_is_run(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    run(make_experiment(), tmp_path, left_out={"work"}, measurement=fake_trials)
    assert fake_trials.taken == fake_trials.rehearsed == []


def test_what_is_left_out_takes_nothing_of_the_budget(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    """A round of both is 33 s; of the small one alone, 3."""
    workloads = [Workload(name=name, command=["true"]) for name in ("small", "large")]
    experiment = make_experiment(("a", "b"), rounds=9, time_budget_s=50.0, workloads=workloads)
    fake_trials.cost = lambda slot: {"wall_s": 10.0 if slot.workload == "large" else 1.0}
    run(experiment, tmp_path, measurement=fake_trials, clock=fake_trials.clock)
    assert len(fake_trials.taken) == 6
    run(experiment, tmp_path, left_out={"large"}, measurement=fake_trials, clock=fake_trials.clock)
    assert {slot.workload for slot in fake_trials.taken[6:]} == {"small"}
    assert len(fake_trials.taken[6:]) == 3 * 5


def test_a_damaged_line_is_measured_again(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    experiment = make_experiment(rounds=2)
    run(experiment, tmp_path, measurement=fake_trials)
    path = tmp_path / store.TRIALS_FILE
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b'{"experiment": "one", "wor\n', *lines[3:]]))
    fake_trials.taken.clear()
    run(experiment, tmp_path, measurement=fake_trials)
    assert fake_trials.taken == [plan_round(experiment, 0)[2]]
    assert path.read_bytes().startswith(b"".join(lines[:2])), "what was there stays"


def test_records_of_another_experiment_are_not_gone_on_with(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    run(make_experiment(), tmp_path, measurement=fake_trials)
    with pytest.raises(store.StoreError, match="another experiment"):
        run(make_experiment(id="two"), tmp_path, measurement=fake_trials)


def test_what_fails_under_one_allocator_only_is_given_up_and_the_others_go_on(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    fake_trials.cost = lambda slot: {"status": "failed"} if slot.configuration == "jemalloc" else {}
    events: list[object] = []
    assert run(make_experiment(), tmp_path, measurement=fake_trials, on_event=events.append) is Outcome.COMPLETE
    assert sum(slot.configuration == "jemalloc" for slot in fake_trials.taken) == 2
    assert sum(slot.configuration == "freestone" for slot in fake_trials.taken) == 5
    assert [event for event in events if isinstance(event, GivenUp)] == [GivenUp("work", "jemalloc", "it failed")]


def test_an_experiment_without_hope_ends_early(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    fake_trials.cost = lambda slot: {"status": "invalid"}
    assert run(make_experiment(rounds=50), tmp_path, measurement=fake_trials) is Outcome.HOPELESS
    assert {slot.round for slot in fake_trials.taken} == {0, 1}


@pytest.mark.parametrize(("budget_s", "rounds"), [(0.001, 1), (7.9, 1), (8.0, 2), (100.0, 9)])
def test_as_many_rounds_are_run_as_fit_the_budget(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path, budget_s: float, rounds: int
) -> None:
    """A round is four trials of a second."""
    experiment = make_experiment(("a", "b", "c"), rounds=9, time_budget_s=budget_s)
    events: list[object] = []
    outcome = run(experiment, tmp_path, measurement=fake_trials, on_event=events.append, clock=fake_trials.clock)
    begun = {slot.round for slot in fake_trials.taken}
    assert len(begun) == rounds
    assert len(fake_trials.taken) == 4 * rounds, "no round is left half"
    spent = [event for event in events if isinstance(event, BudgetSpent)]
    assert (outcome, spent) == ((Outcome.BUDGET, [BudgetSpent(rounds)]) if rounds < 9 else (Outcome.COMPLETE, []))


@pytest.mark.parametrize(("budget_s", "rounds"), [(None, 5), (28.0, 3), (27.9, 2)])
def test_rounds_after_those_in_which_programs_sleep_are_known_to_be_shorter(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path, budget_s: float | None, rounds: int
) -> None:
    """Four trials of a second a round; in the first of them each sleeps four seconds more."""
    workload = Workload(name="work", command=["true"], idle=["--idle", "4"], idle_s=4, idle_rounds=1)
    experiment = make_experiment(("a", "b", "c"), rounds=5, time_budget_s=budget_s, workloads=[workload])
    fake_trials.cost = lambda slot: {"wall_s": 5.0 if slot.round == 0 else 1.0}
    remaining: list[tuple[float, float]] = []

    def note(event: object) -> None:
        if isinstance(event, TrialStarted) and event.remaining_s is not None:
            remaining.append((fake_trials.now, event.remaining_s))

    run(experiment, tmp_path, measurement=fake_trials, on_event=note, clock=fake_trials.clock)
    assert {slot.round for slot in fake_trials.taken} == set(range(rounds))
    assert remaining == [(now, fake_trials.now - now) for now, _ in remaining]
    assert len(remaining) == 4 * rounds - 1, "of the first trial nothing is known before it"


def test_a_resumed_experiment_has_the_budget_that_is_left(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    experiment = make_experiment(("a", "b", "c"), rounds=9, time_budget_s=12.5)
    run(experiment, tmp_path, measurement=fake_trials, clock=fake_trials.clock)
    assert len(fake_trials.taken) == 12
    assert run(experiment, tmp_path, measurement=fake_trials, clock=fake_trials.clock) is Outcome.BUDGET
    assert len(fake_trials.taken) == 12


def test_progress_counts_up_to_what_is_run(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    events: list[object] = []
    run(
        make_experiment(rounds=3),
        tmp_path,
        measurement=fake_trials,
        on_event=events.append,
        clock=fake_trials.clock,
    )
    started = [event for event in events if isinstance(event, TrialStarted)]
    ended = [event for event in events if isinstance(event, TrialEnded)]
    assert [event.done for event in started] == list(range(12))
    assert {event.total for event in started} == {12}
    assert (ended[-1].done, ended[-1].total) == (12, 12)
    assert started[0].remaining_s is None
    estimates = [event.remaining_s for event in started[1:] if event.remaining_s is not None]
    assert len(estimates) == 11
    assert estimates == sorted(estimates, reverse=True)
    assert estimates[-1] == pytest.approx(1.0)


@pytest.mark.usefixtures("heard_signals")
def test_the_first_signal_breaks_off_the_trial_and_keeps_the_others(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    def interrupt(slot: Slot) -> None:
        if len(fake_trials.taken) == 5:
            os.kill(os.getpid(), signal.SIGINT)

    fake_trials.before = interrupt
    before = signal.getsignal(signal.SIGINT)
    with Interruption() as stop:
        assert run(make_experiment(), tmp_path, measurement=fake_trials, stop=stop) is Outcome.INTERRUPTED
        assert stop.signal is signal.SIGINT
    assert len(store.read_trials(tmp_path).records) == 5
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("heard_signals")
def test_a_signal_between_trials_lets_the_record_be_written(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    def interrupt(event: object) -> None:
        if isinstance(event, TrialEnded) and event.done == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    with Interruption() as stop:
        outcome = run(make_experiment(), tmp_path, measurement=fake_trials, on_event=interrupt, stop=stop)
    assert outcome is Outcome.INTERRUPTED
    assert len(fake_trials.taken) == len(store.read_trials(tmp_path).records) == 3


def test_what_the_program_did_after_a_signal_is_not_kept(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    """A terminal sends Ctrl-C to the program as well; the trial may come back before the signal is noticed."""
    with Interruption() as stop:

        def interrupted(slot: Slot) -> None:
            stop.signal = signal.SIGINT

        fake_trials.before = interrupted
        assert run(make_experiment(), tmp_path, measurement=fake_trials, stop=stop) is Outcome.INTERRUPTED
    assert store.read_trials(tmp_path).records == []


def test_an_experiment_is_resumed_only_as_it_was(make_experiment: Callable[..., Experiment]) -> None:
    experiment = make_experiment(("glibc", "jemalloc"), freestone_version=freestone.__version__)
    glibc, jemalloc = experiment.configurations
    assert mismatch(experiment, experiment.machine, [glibc, jemalloc]) is None
    nice = Machine(id="elsewhere", facts={**experiment.machine.facts, "limits": "nice=5"})
    refusal = mismatch(experiment, nice, [glibc, jemalloc]) or ""
    assert "another machine" in refusal
    earlier = experiment.model_copy(update={"freestone_version": "0.0.1"})
    assert "begun by freestone 0.0.1" in (mismatch(earlier, experiment.machine, [glibc, jemalloc]) or "")
    assert "limits None and nice=5 (then and now)" in refusal

    def changed(**changes: object) -> str:
        other = jemalloc.model_copy(update={"allocator": jemalloc.allocator.model_copy(update=changes)})
        return mismatch(experiment, experiment.machine, [glibc, other]) or ""

    assert "build-id ab then, cd now" in changed(build_id="cd")
    assert "another one now" in changed(file="/opt/other.so")
    assert "no longer here" in changed(available=False)
    assert "no longer here" in (mismatch(experiment, experiment.machine, [glibc]) or "")
    assert isinstance(jemalloc.allocator, Allocator)


def _of_truth(truth: dict[str, float]) -> Callable[[Slot], dict[str, float]]:
    """What trials take: the truth of each configuration, no two trials quite alike."""
    return lambda slot: {"wall_s": truth[slot.configuration] * (1 + 0.01 * ((slot.position * 7 + slot.round) % 5))}


@pytest.mark.parametrize("broken_after", [0, 5, 16, 17, 30])
def test_what_is_out_of_the_race_gets_no_more_rounds_also_in_a_later_session(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path, broken_after: int
) -> None:
    experiment = make_experiment(("glibc", "fast", "slow"), rounds=12, racing="peak_rss_kib")
    fake_trials.cost = _of_truth({"glibc": 1.0, "fast": 0.7, "slow": 1.5})

    def stop(slot: Slot) -> None:
        if len(fake_trials.taken) == broken_after:
            raise KeyboardInterrupt

    fake_trials.before = stop
    assert run(experiment, tmp_path, measurement=fake_trials) is Outcome.INTERRUPTED
    fake_trials.before = lambda slot: None
    assert run(experiment, tmp_path, measurement=fake_trials) is Outcome.COMPLETE
    planned = [slot for number in range(12) for slot in plan_round(experiment, number)]
    assert fake_trials.taken == [slot for slot in planned if slot.configuration != "slow" or slot.round < 4]
    assert unfinished(experiment, store.read_trials(tmp_path).records) == []


def test_a_race_that_nothing_is_left_in_ends(
    make_experiment: Callable[..., Experiment], fake_trials: Any, tmp_path: Path
) -> None:
    experiment = make_experiment(("glibc", "slow"), rounds=12, racing="peak_rss_kib")
    fake_trials.cost = _of_truth({"glibc": 1.0, "slow": 1.5})
    assert run(experiment, tmp_path, measurement=fake_trials) is Outcome.COMPLETE
    assert len(fake_trials.taken) == 4 * 3
