"""Who really leads: held against rivals, and confirmed by rounds that did not choose."""

from __future__ import annotations

import random
from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freestone.analysis import arms, summarise
from freestone.analysis.rivals import Rivals
from freestone.records.schema import LONGEST_S, Experiment, TrialRecord

MakeExperiment = Callable[..., Experiment]
MakeRecord = Callable[..., TrialRecord]


def _measured(
    make_experiment: MakeExperiment, make_record: MakeRecord, walls: dict[str, list[float]]
) -> tuple[Experiment, list[TrialRecord]]:
    experiment = make_experiment(tuple(walls), rounds=len(walls["base"]))
    records = [
        make_record(name, number, repeat=repeat, wall_s=wall)
        for name, mine in walls.items()
        for number, wall in enumerate(mine)
        for repeat in range(2 if name == "base" else 1)
    ]
    return experiment, records


def _rivals(experiment: Experiment, records: list[TrialRecord]) -> Rivals:
    return Rivals(experiment, {arm: arms.by_round(mine) for arm, mine in arms.by_arm(records).items()})


def test_a_steady_leader_beats_and_is_confirmed(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    draw = random.Random(1)
    walls = {name: [at * draw.lognormvariate(0, 0.005) for _ in range(10)] for name, at in
             {"base": 1.0, "quick": 0.8, "slow": 1.2}.items()}  # fmt: skip
    rivals = _rivals(*_measured(make_experiment, make_record, walls))
    assert rivals.beats("work", "wall_s", "quick", "slow")
    assert not rivals.beats("work", "wall_s", "slow", "quick")
    held = rivals.held_out("work", "wall_s", ["quick", "slow"])
    assert held is not None
    assert held.known
    assert 0.79 < held.value < 0.81
    assert held.high < 1


def test_a_leader_by_luck_is_not_confirmed(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    """Twenty twins: one of them is lowest, and what the others say of it in rounds that did not choose it is 1."""
    unconfirmed = 0
    for seed in range(30):
        draw = random.Random(seed)
        names = ["base", *(f"twin{number}" for number in range(20))]
        walls = {name: [draw.lognormvariate(0, 0.05) for _ in range(8)] for name in names}
        held = _rivals(*_measured(make_experiment, make_record, walls)).held_out("work", "wall_s", names[1:])
        assert held is not None
        unconfirmed += held.high >= 1
    assert unconfirmed >= 25


def test_a_restless_baseline_does_not_hide_a_difference_between_two_others(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    draw = random.Random(2)
    walls = {
        "base": [draw.lognormvariate(0, 0.5) for _ in range(12)],
        "quick": [0.5 * draw.lognormvariate(0, 0.005) for _ in range(12)],
        "slow": [0.6 * draw.lognormvariate(0, 0.005) for _ in range(12)],
    }
    assert _rivals(*_measured(make_experiment, make_record, walls)).beats("work", "wall_s", "quick", "slow")


any_positive = st.floats(5e-324, LONGEST_S)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.integers(1, 7).flatmap(lambda count: st.tuples(*[st.lists(any_positive, min_size=count, max_size=count)] * 3))
)
def test_the_edge_of_what_numbers_hold_does_no_harm_to_a_summary(
    make_experiment: MakeExperiment, make_record: MakeRecord, values: tuple[list[float], list[float], list[float]]
) -> None:
    """Down to the smallest number there is and up to the largest."""
    walls = dict(zip(("base", "one", "other"), values, strict=True))
    summary = summarise(*_measured(make_experiment, make_record, walls))
    assert summary.headline.endswith(".")
    for cell in summary.cells:
        for ratio in cell.ratio.values():
            assert 0 <= ratio.low <= ratio.value <= ratio.high
