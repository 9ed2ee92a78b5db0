"""The order of trials: random, paired, the same whenever it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freestone.analysis.rounds import plan_round
from freestone.experiments import schedule
from freestone.records.schema import Experiment, TrialRecord, Workload

fixed = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
seeds = st.integers(0, 2**64)


@fixed
@given(seed=seeds, number=st.integers(0, 1000), arms=st.integers(1, 8))
def test_a_round_holds_every_configuration_once_and_the_baseline_twice(
    make_experiment: Callable[..., Experiment], seed: int, number: int, arms: int
) -> None:
    names = tuple(f"allocator{i}" for i in range(arms))
    experiment = make_experiment(names, seed=seed)
    slots = plan_round(experiment, number)
    assert Counter(slot.configuration for slot in slots) == Counter([*names, names[0]])
    assert [slot.position for slot in slots] == list(range(arms + 1))
    runs_of_baseline = [slot.repeat for slot in slots if slot.configuration == names[0]]
    assert runs_of_baseline == [0, 1], "the first in time is the first"
    assert slots == plan_round(experiment, number)


def test_every_workload_is_in_every_round(make_experiment: Callable[..., Experiment]) -> None:
    workloads = [Workload(name=name, command=[name]) for name in ("one", "two")]
    slots = plan_round(make_experiment(("a", "b"), workloads=workloads), 0)
    assert Counter((slot.workload, slot.configuration) for slot in slots) == {
        ("one", "a"): 2, ("one", "b"): 1, ("two", "a"): 2, ("two", "b"): 1,
    }  # fmt: skip


def test_no_configuration_has_a_place_of_its_own(make_experiment: Callable[..., Experiment]) -> None:
    experiment = make_experiment(("a", "b", "c"))
    first = Counter(plan_round(experiment, number)[0].configuration for number in range(400))
    assert 150 < first["a"] < 250, "two of four places are the baseline's"
    assert 60 < first["b"] < 140
    assert 60 < first["c"] < 140


def test_the_seed_decides_the_order(make_experiment: Callable[..., Experiment]) -> None:
    orders = {tuple(slot.configuration for slot in plan_round(make_experiment(seed=seed), 0)) for seed in range(20)}
    assert len(orders) > 3


@fixed
@given(done=st.sets(st.integers(0, 3)))
def test_exactly_what_has_no_record_is_missing(
    make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord], done: set[int]
) -> None:
    experiment = make_experiment()
    slots = plan_round(experiment, 2)
    records = [make_record(slots[i].configuration, 2, repeat=slots[i].repeat) for i in done]
    assert schedule.missing(experiment, 2, records) == [slot for i, slot in enumerate(slots) if i not in done]


def test_a_configuration_without_a_good_trial_in_two_rounds_is_given_up(
    make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord]
) -> None:
    experiment = make_experiment()
    once = [make_record("freestone", 0, status="failed")]
    assert schedule.given_up(once) == set()
    twice = [*once, make_record("freestone", 1, status="timeout"), make_record("glibc", 0), make_record("glibc", 1)]
    assert schedule.given_up(twice) == {("work", "freestone")}
    assert "freestone" not in {slot.configuration for slot in schedule.missing(experiment, 2, twice)}
    saved = [*twice, make_record("freestone", 1, repeat=1)]
    assert schedule.given_up(saved) == set(), "one good trial is hope"


def test_a_round_costs_what_its_trials_cost(
    make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord]
) -> None:
    experiment = make_experiment(("a", "b"))
    assert schedule.costs(experiment, [], 0.5) is None
    records = [make_record("a", 0, wall_s=2.0), make_record("b", 0, wall_s=5.0)]
    cost_s = 2.5 + 2.5 + 5.5
    assert schedule.costs(experiment, records, 0.5) == schedule.Costs(cost_s, cost_s, sleeping=0)


def rested(record: TrialRecord, seconds: float) -> TrialRecord:
    assert record.metrics is not None
    return record.model_copy(update={"metrics": record.metrics.model_copy(update={"rested_s": seconds})})


def test_what_programs_sleep_in_the_first_rounds_only_is_no_cost_of_the_others(
    make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord]
) -> None:
    experiment = make_experiment(("a", "b"))

    def sleepy(**settings: object) -> Experiment:
        workloads = [workload.model_copy(update={"idle_rounds": 1, **settings}) for workload in experiment.workloads]
        return experiment.model_copy(update={"workloads": workloads})

    itself = [make_record("a", 0, wall_s=4.0), make_record("b", 0, wall_s=7.0)]
    costs = schedule.costs(sleepy(idle=["--idle", "2"], idle_s=2), itself, 0.5)
    assert costs == schedule.Costs(asleep_s=4.5 + 4.5 + 7.5, awake_s=2.5 + 2.5 + 5.5, sleeping=1)
    assert [costs.round_s(number) for number in range(3)] == [costs.asleep_s, costs.awake_s, costs.awake_s]
    kept = [rested(make_record("a", 0, wall_s=2.0), 2.0), rested(make_record("b", 0, wall_s=5.0), 2.0)]
    assert schedule.elapsed_s(kept[0]) == 4.0
    assert schedule.costs(sleepy(rest_s=2), kept, 0.5) == costs
    later = [*kept, make_record("a", 1, wall_s=2.0), make_record("b", 1, wall_s=5.0)]
    assert schedule.costs(sleepy(rest_s=2), later, 0.5) == costs


def test_a_round_begins_only_if_it_fits() -> None:
    assert schedule.fits_budget(1000, 1000, None)
    assert schedule.fits_budget(5, 5, 10)
    assert not schedule.fits_budget(5.1, 5, 10)
    assert schedule.fits_budget(1000, None, 1), "the first round always is run"
