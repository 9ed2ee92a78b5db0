"""Units, digits and words."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from freestone.analysis import digits
from freestone.records.schema import FIGURE, OWN_TIME, Cell, Metrics, Proof, Ratio, TrialRecord
from freestone.reports import quantities
from freestone.reports.quantities import QUANTITIES, Scale, quantity_of


def ratio(value: float, *, different: bool = True, width: float = 0.02) -> Ratio:
    return Ratio(value=value, low=value - width / 2, high=value + width / 2, pairs=10, different=different)


def test_every_quantity_is_a_field_of_the_schema() -> None:
    """Or a figure: of the program's own, of its load, or of its rest after the work."""
    others = {quantity.key for quantity in QUANTITIES} - {*Metrics.model_fields}
    assert OWN_TIME in others
    assert all(key.startswith(FIGURE) for key in others)


@pytest.mark.parametrize(
    ("kind", "values", "shown"),
    [
        ("time", [2.4123, 2.8], ["2.41 s", "2.80 s"]),
        ("time", [0.412, 0.0123], ["412 ms", "12 ms"]),
        ("time", [0.00042], ["420 µs"]),
        ("time", [120.4, 95.0], ["120 s", "95 s"]),
        ("memory", [182_000, 74_000], ["178 MiB", "72 MiB"]),
        ("memory", [900], ["900 KiB"]),
        ("memory", [3 * 1024 * 1024], ["3.00 GiB"]),
        ("count", [31_200, 48_970], ["31,200", "48,970"]),
        ("count", [25e6], ["25.0 million"]),
        ("count", [0], ["0"]),
        ("time", [0.0], ["0 s"]),
    ],
)
def test_a_column_shares_one_unit_with_three_digits(
    kind: quantities.Kind, values: list[float], shown: list[str]
) -> None:
    scale = Scale.over(kind, values)
    assert [scale.text(value) for value in values] == shown


@given(
    st.sampled_from(["time", "memory", "count"]),
    st.lists(st.floats(0, 1e12, allow_nan=False), max_size=8),
)
@example("memory", [1024.0, 5e-324, 5e-324])
def test_any_values_have_a_scale(kind: quantities.Kind, values: list[float]) -> None:
    scale = Scale.over(kind, values)
    for value in values:
        assert scale.text(value)
    assert scale.divisor > 0


@pytest.mark.parametrize(
    ("key", "given_ratio", "words"),
    [
        ("wall_s", ratio(0.912), "8.8 % faster"),
        ("wall_s", ratio(1.125), "12 % slower"),
        ("wall_s", ratio(3.12), "3.1 times as slow"),
        ("peak_rss_kib", ratio(0.5), "50 % less"),
        ("wall_s", ratio(0.005, width=0.001), "200 times as fast"),
        ("minor_faults", ratio(0.001, width=0.0001), "1/1,000 of it"),
        ("wall_s", ratio(0.1), "90 % faster"),
        ("peak_rss_kib", ratio(2.5), "2.5 times as much"),
        ("wall_s", ratio(0.912, different=False), "no difference seen"),
        ("wall_s", ratio(math.nan), "too few rounds"),
        ("wall_s", Ratio(value=1.1, low=0, high=math.inf, pairs=3, different=False), "too few rounds"),
    ],
)
def test_a_ratio_is_said_in_words(key: str, given_ratio: Ratio, words: str) -> None:
    assert quantities.verdict(quantity_of(key), given_ratio) == words


def test_an_interval_has_the_decimals_its_width_deserves() -> None:
    assert quantities.interval(Ratio(value=0.91, low=0.9051, high=0.9203, pairs=9, different=True)) == "[0.905, 0.920]"
    assert quantities.interval(Ratio(value=0.9, low=0.63, high=1.13, pairs=9, different=False)) == "[0.63, 1.13]"


@given(st.floats(1e-9, 0.5), st.floats(1e-9, 0.5))
def test_what_is_nearly_nothing_is_not_written_as_nothing(value: float, low: float) -> None:
    """Page faults fell to a thousandth, and the table said ×0.00."""
    ratio = Ratio(value=value, low=min(value, low), high=0.9, pairs=9, different=True)
    assert float(quantities.ratio_number(ratio)) > 0
    assert float(quantities.factor(ratio)[1:]) > 0
    assert all(float(each) > 0 for each in quantities.interval(ratio)[1:-1].split(", "))


@given(
    st.lists(st.floats(1e-9, 1, exclude_max=True) | st.floats(0.98, 1, exclude_max=True), min_size=3, max_size=3),
    st.booleans(),
)
@example([0.72, 0.85, 0.998], False)
@example([0.9999999, 0.99999999, 0.999999999], True)
def test_nothing_of_a_real_difference_is_written_as_1(below: list[float], above: bool) -> None:
    """A table had ``0.85 [0.72, 1.00]`` for a real one, and an interval that holds 1 is none."""
    low, value, high = sorted(1 / each if above else each for each in below)
    real = Ratio(value=value, low=low, high=high, pairs=9, different=True)
    assume(low != 1 and high != 1)  # the reciprocal of the last float below 1
    written = [
        quantities.ratio_number(real),
        *quantities.interval(real)[1:-1].split(", "),
        quantities.factor(real).removeprefix("×"),
    ]
    assert [each for each in written if float(each) == 1] == []
    assert [each for each in written if (float(each) > 1) != above] == []
    assert abs(1 - value) < 1e-11 or not re.match(r"[0.]+ %", quantities.verdict(quantity_of("wall_s"), real))


@given(st.floats(0.5, 2), st.floats(0.5, 2))
def test_what_is_no_difference_keeps_the_digits_of_its_width(low: float, high: float) -> None:
    assert digits.number(low, 2, different=False) == f"{low:.2f}"
    seen = quantities.interval(Ratio(value=1, low=min(low, 1), high=max(high, 1), pairs=9, different=False))
    assert all(len(each) <= len("1.000") for each in seen[1:-1].split(", "))


@pytest.mark.parametrize(
    ("given_ratio", "shown"),
    [
        (Ratio(value=0.85, low=0.72, high=0.998, pairs=9, different=True), "0.85 [0.72, 0.998]"),
        (Ratio(value=0.85, low=0.72, high=0.99999996, pairs=9, different=True), "0.85 [0.72, 0.999999]"),
        (Ratio(value=1.069, low=1.0041, high=1.14, pairs=9, different=True), "1.07 [1.004, 1.14]"),
        (Ratio(value=1.069, low=0.9991, high=1.14, pairs=9, different=False), "1.07 [1.00, 1.14]"),
    ],
)
def test_an_end_near_1_has_the_decimals_that_tell_on_which_side_it_is(given_ratio: Ratio, shown: str) -> None:
    assert f"{quantities.ratio_number(given_ratio)} {quantities.interval(given_ratio)}" == shown


def test_an_interval_that_knows_nothing_says_so() -> None:
    assert quantities.interval(Ratio(value=1.1, low=0, high=math.inf, pairs=3, different=False)) == "[?]"


def test_a_counter_is_a_quantity_too() -> None:
    assert quantity_of("page-faults").title == "Page-fault traps"
    assert quantity_of("cycles:u").title == "Cycles, user mode"
    assert quantity_of("dTLB-misses").title == "dTLB-misses"
    record = trial(counters={"instructions": 5})
    assert quantities.value_of(record, "instructions") == 5
    assert quantities.value_of(record, "peak_rss_kib") is None
    assert quantities.value_of(record, "unheard_of") is None


def test_a_figure_of_the_programs_own_is_a_quantity_too() -> None:
    record = trial(figures={"seconds": 0.25, "rss_kib_idle": 2048.0})
    assert quantities.value_of(record, "figure:seconds") == 0.25
    assert quantities.value_of(record, "figure:unheard_of") is None
    assert quantities.value_of(trial(), "figure:seconds") is None
    assert quantity_of("figure:seconds").less == "faster"
    idle = quantity_of("figure:rss_kib_idle")
    assert (idle.title, idle.kind) == ("RSS after idle", "memory")
    assert quantity_of("figure:later_faults").kind == "count"


def test_the_time_of_a_workload_is_what_the_program_says_where_it_says_it() -> None:
    def cell(median: dict[str, float]) -> Cell:
        return Cell(workload="w", configuration="c", status="ok", trials_ok=1, trials_total=1, median=median)

    assert quantities.time_of([cell({"wall_s": 2})]) == "wall_s"
    assert quantities.time_of([cell({}), cell({"wall_s": 2, "figure:seconds": 1})]) == "figure:seconds"


def trial(figures: dict[str, float] | None = None, counters: dict[str, int] | None = None) -> TrialRecord:
    return TrialRecord(
        experiment="e",
        workload="w",
        configuration="c",
        round=0,
        position=0,
        started_at="2026-11-20T13:00:00+00:00",
        status="ok",
        metrics=Metrics(wall_s=1, user_s=1, sys_s=0, counters=counters or {}),
        figures=figures,
        proof=Proof(valid=True),
    )
