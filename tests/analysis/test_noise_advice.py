"""What the lab says to do where the noise is large."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freestone.analysis.noise_advice import advice, rounds_needed
from freestone.records.schema import LONGEST_S, OWN_TIME, Machine, Ratio, TrialRecord

MakeRecord = Callable[..., TrialRecord]
QUIET = Machine(id="m", facts={"governor": "performance", "virtualised": False})


def _ratio(half: float, pairs: int = 10) -> Ratio:
    return Ratio(value=1.0, low=math.exp(-half), high=math.exp(half), pairs=pairs, different=False)


def _runs(make_record: MakeRecord, walls: Sequence[float], *, switches: int = 1) -> list[TrialRecord]:
    records = []
    for number, wall in enumerate(walls):
        record = make_record("glibc", number, wall_s=wall)
        assert record.metrics is not None
        metrics = record.metrics.model_copy(update={"user_s": wall, "sys_s": 0.0, "involuntary_switches": switches})
        records.append(record.model_copy(update={"metrics": metrics}))
    return records


def test_where_two_per_cent_can_be_seen_there_is_nothing_to_say(make_record: MakeRecord) -> None:
    assert advice(QUIET, "wall_s", [_ratio(0.015)] * 3, _runs(make_record, [0.01] * 10, switches=999)) == []
    assert advice(QUIET, "wall_s", [], []) == []
    assert advice(QUIET, "wall_s", [_ratio(math.inf, pairs=2)], []) == []


def test_wide_intervals_are_told_with_the_rounds_that_would_do(make_record: MakeRecord) -> None:
    (said,) = advice(QUIET, "wall_s", [_ratio(math.log(1.06))], _runs(make_record, [1.0] * 10))
    assert said.startswith("intervals of time reach 6 % to either side: to see 2 % as things are takes about ")
    assert "less noise" not in said


def test_what_is_beyond_twice_is_a_factor_and_no_per_cent(make_record: MakeRecord) -> None:
    (said,) = advice(QUIET, "wall_s", [_ratio(math.log(4.3))], _runs(make_record, [1.0] * 10))
    assert said.startswith("intervals of time reach a factor of 4.3 to either side: ")


@pytest.mark.parametrize(
    ("walls", "switches", "facts", "expected"),
    [
        ([1.0] * 10, 500, {}, "other work takes the processor from a run 500 times a second"),
        (
            [0.02] * 10,
            0,
            {},
            "a run lasts 20 ms, and what disturbs it does not shrink with it: give it more work",
        ),
        ([1.0] * 7 + [2.0] * 3, 0, {}, "3 of 10 rounds of the baseline take over 1.2 times the median"),
        ([1.0] * 5 + [1.1] * 5, 0, {}, "the machine became 10 % slower meanwhile"),
        ([1.0] * 10, 0, {"governor": "powersave"}, "the governor is powersave"),
        ([1.0] * 10, 0, {"virtualised": True}, "its neighbours cannot be seen"),
    ],
)
def test_what_disturbs_is_named(
    make_record: MakeRecord, walls: list[float], switches: int, facts: dict[str, str | bool], expected: str
) -> None:
    machine = QUIET.model_copy(update={"facts": QUIET.facts | facts})
    said = advice(machine, "wall_s", [_ratio(0.1)], _runs(make_record, walls, switches=switches))
    assert said[0].endswith("or less noise")
    assert any(expected in each for each in said[1:])


def test_nothing_is_claimed_of_a_short_run_that_was_not_measured(make_record: MakeRecord) -> None:
    """How much of it is the start of a process is not known: of 20 ms of work next to nothing is."""
    said = advice(QUIET, "wall_s", [_ratio(0.1)], _runs(make_record, [0.02] * 10))
    assert not any("start" in line for line in said)


def test_a_short_request_is_no_short_run(make_record: MakeRecord) -> None:
    """What a server says of itself is the time of a request: no process starts for it."""
    runs = [
        record.model_copy(update={"figures": {"seconds": 0.00006 * (1 + record.round % 3)}})
        for record in _runs(make_record, [1.0] * 10)
    ]
    said = advice(QUIET, OWN_TIME, [_ratio(0.3)], runs)
    assert said
    assert not any("a run lasts" in line for line in said)


def test_one_restless_configuration_is_its_own_affair(make_record: MakeRecord) -> None:
    assert advice(QUIET, "wall_s", [_ratio(0.01), _ratio(0.01), _ratio(2.0)], _runs(make_record, [1.0] * 10)) == []


def test_the_rounds_that_are_named_are_about_those_it_takes() -> None:
    """Four times the width takes about sixteen times the rounds, less what more degrees of freedom give."""
    needed = rounds_needed(10, 0.08, 0.02)
    assert needed is not None
    assert 90 < needed < 160
    assert rounds_needed(10, 0.02, 0.02) == 10
    assert rounds_needed(10, 5.0, 0.02) is None


@given(st.integers(4, 500), st.floats(1e-6, 50), st.floats(1e-6, 1))
def test_more_noise_never_takes_fewer_rounds(pairs: int, half: float, wanted: float) -> None:
    less, more = rounds_needed(pairs, half, wanted), rounds_needed(pairs, 2 * half, wanted)
    assert more is None or (less is not None and less <= more)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.floats(5e-324, LONGEST_S), max_size=12), st.floats(0, 700))
def test_no_time_is_too_short_or_too_long_for_advice(make_record: MakeRecord, walls: list[float], half: float) -> None:
    random.Random(1).shuffle(walls)
    assert all(isinstance(each, str) for each in advice(QUIET, "wall_s", [_ratio(half)], _runs(make_record, walls)))
