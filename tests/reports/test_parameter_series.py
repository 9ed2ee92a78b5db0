"""A metric against a parameter: which workloads belong together, and what is compared with what."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.analysis.statistics import paired_ratio
from freestone.records.schema import TrialRecord, Workload
from freestone.reports import parameter_series
from freestone.reports.parameter_series import Series, Trials, families, number_of, ratio


def workload(template: str, command: str = "p", **parameters: str) -> Workload:
    return Workload(
        name=template.format(**parameters),
        command=[word.format(**parameters) for word in command.split()],
        parameters=parameters,
        template=template,
    )


def series_of(results: Any, records: Sequence[TrialRecord] | None = None) -> list[Series]:
    trials = Trials(results.experiment, results.summary, results.records if records is None else records)
    (family,) = families(results.experiment.workloads)
    return parameter_series.series(trials, results.summary, family)


# --- which belong together ------------------------------------------------------------------------------------------


def test_members_ascend_by_the_number_whatever_they_are_called() -> None:
    said = {"4cores": "8", "1": "1", "cores": "2"}
    several = [workload("server-{threads}-threads", threads=number) for number in said.values()]
    named = [
        each.model_copy(update={"name": f"server-{name}-threads"}) for name, each in zip(said, several, strict=True)
    ]
    (family,) = families(named)
    assert (family.name, family.parameter, family.is_words) == ("server-…-threads", "threads", False)
    assert family.members == {"server-1-threads": 1, "server-cores-threads": 2, "server-4cores-threads": 8}


def test_two_members_are_no_family_and_neither_are_workloads_without_a_template() -> None:
    assert families([workload("s-{n}", n=n) for n in "12"]) == []
    assert families([Workload(name=n, command=["s", n]) for n in "1234"]) == []


def test_each_parameter_has_its_families_while_the_others_are_fixed() -> None:
    found = families([workload("{order}-{live}", order=o, live=n) for o in ("lifo", "fifo", "x") for n in "123"])
    assert [(each.name, each.parameter, each.is_words) for each in found] == [
        ("…-1", "order", True),
        ("lifo-…", "live", False),
        ("…-2", "order", True),
        ("…-3", "order", True),
        ("fifo-…", "live", False),
        ("x-…", "live", False),
    ]
    assert list(found[0].labels.values()) == ["lifo", "fifo", "x"], "words keep the order of the suite"


def test_the_points_of_a_scan_are_a_family() -> None:
    points = [
        Workload(name=f"p n={n} m=2", command=["sh", f"seq {n}"], parameters={"n": n, "m": "2"}, series="p")
        for n in "124"
    ]
    (family,) = families(points)
    assert family.same_work
    assert (family.name, family.parameter, list(family.members.values())) == ("p m=2", "n", [1, 2, 4])


def test_templates_are_kept_apart() -> None:
    assert families([workload(name, n=n) for name, n in (("a-{n}", "1"), ("a-{n}", "2"), ("b-{n}", "3"))]) == []


def test_of_the_same_value_the_first_stands() -> None:
    twice = workload("s-{n}", n="1").model_copy(update={"name": "again"})
    (family,) = families([workload("s-{n}", n="1"), twice, *(workload("s-{n}", n=n) for n in "23")])
    assert list(family.members) == ["s-1", "s-2", "s-3"]


def test_other_words_in_the_command_are_other_work() -> None:
    alike = [workload("s-{n}", "p --size {n} --rounds 5", n=n) for n in "123"]
    assert families(alike)[0].same_work
    unlike = [workload("s-{n}", "p --size {n} --rounds 9{n}", n=n) for n in "123"]
    assert not families(unlike)[0].same_work


@pytest.mark.parametrize(
    ("parameter", "value", "words"),
    [("size", "4K", "4 KiB"), ("threads", "64", "64"), ("live", "1000", "1,000"), ("live", "250000", "250 k")],
)
def test_numbers_on_the_axis(parameter: str, value: str, words: str) -> None:
    (family,) = families([workload(f"s-{{{parameter}}}", **{parameter: n}) for n in ("1", "2", value)])
    assert list(family.labels.values())[-1] == words


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("64", 64),
        ("4K", 4096),
        ("1g", 1 << 30),
        ("1.5", 1.5),
        ("4X", None),
        ("9" * 400, None),
        ("", None),
        ("-1", None),
    ],
)
def test_numbers(word: str, number: float | None) -> None:
    assert number_of(word) == number


# --- against a number -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scaled(family_maker: Callable[..., Any]) -> Any:
    command = ["server", "--threads", "{threads}"]
    return family_maker("server-{threads}", command, {"threads": ("1", "2", "16")}, operations=1000.0)


def test_time_and_faults_are_those_of_one_operation(scaled: Any) -> None:
    time, memory, faults = series_of(scaled)
    mine = [
        r.metrics
        for r in scaled.records
        if (r.workload, r.configuration, r.repeat) == ("server-2", "freestone", 0) and r.metrics
    ]
    point = time.lines["freestone"][2]
    assert point.value == pytest.approx(statistics.median(m.wall_s for m in mine) / 1000)
    assert point.trials == pytest.approx(tuple(m.wall_s / 1000 for m in mine))
    assert min(point.trials) <= point.low <= point.value <= point.high
    assert point.is_interval
    assert memory.lines["freestone"][2].value == statistics.median(m.peak_rss_kib or 0 for m in mine)
    assert faults.lines["freestone"][2].value == pytest.approx(
        statistics.median(m.minor_faults or 0 for m in mine) / 1000
    )
    assert [each.title for each in (time, memory, faults)] == [
        "Time of one operation",
        "Peak RSS",
        "Minor faults of one operation",
    ]


def test_what_failed_has_no_line_and_is_named(scaled: Any) -> None:
    for each in series_of(scaled):
        assert set(each.lines) == {"glibc", "freestone", "mimalloc", "tcmalloc"}
        assert "tbb" in each.left_out


def test_unlike_amounts_that_no_program_says_are_not_compared(scaled: Any) -> None:
    silent = [r.model_copy(update={"figures": None}) for r in scaled.records]
    whole, told = series_of(scaled, silent)[0], series_of(scaled)[0]
    assert whole.lines["glibc"][1].value == pytest.approx(1000 * told.lines["glibc"][1].value)
    workloads = [each.model_copy(update={"command": [each.name]}) for each in scaled.experiment.workloads]
    unlike = type(scaled)(scaled.experiment.model_copy(update={"workloads": workloads}), silent, scaled.summary)
    assert [each.title for each in series_of(unlike)] == ["Peak RSS"]
    place = next(at for at, r in enumerate(silent) if (r.configuration, r.repeat) == ("glibc", 0))
    one = [*scaled.records[:place], silent[place], *scaled.records[place + 1 :]]
    assert series_of(scaled, one)[0].title == "Time", "one trial that says no amount is enough for none"


def test_one_point_is_no_line(scaled: Any) -> None:
    assert series_of(scaled, [r for r in scaled.records if r.workload == "server-1"]) == []


def test_the_harness_is_told_beside_the_time(scaled: Any) -> None:
    said = [
        r.model_copy(update={"figures": {"operations": 1000.0, "floor_seconds": 1e-6 * (1 + r.round % 3)}})
        for r in scaled.records
    ]
    time, memory, _ = series_of(scaled, said)
    assert time.floor == pytest.approx({1: 2e-9, 2: 2e-9, 16: 2e-9})
    assert not memory.floor


# --- against words --------------------------------------------------------------------------------------------------

Costs = Mapping[str, Sequence[tuple[float, float]]]


def ordered(family_maker: Callable[..., Any], costs: Costs) -> Series | None:
    """Time of one operation and of the harness in each round, by order, under each configuration alike."""
    made = family_maker("{order}-16", ["patterns", "--order", "{order}"], {"order": tuple(costs)}, operations=10.0)
    records = []
    for record in made.records:
        rounds = costs[record.workload.partition("-")[0]]
        if record.round < len(rounds):
            gross, floor = rounds[record.round]
            said = {"operations": 10.0, "floor_seconds": 10 * floor}
            metrics = record.metrics and record.metrics.model_copy(update={"wall_s": 10 * gross})
            records.append(record.model_copy(update={"figures": said, "metrics": metrics}))
    return next((each for each in series_of(made, records) if each.reference), None)


def test_each_order_is_a_ratio_to_the_first_without_the_harness(family_maker: Callable[..., Any]) -> None:
    lifo, fifo = [(4.0, 1.0), (5.0, 1.0), (7.0, 1.5)], [(9.0, 2.0), (8.0, 2.0), (9.5, 2.0)]
    found = ordered(family_maker, {"lifo": lifo, "fifo": fifo, "random": lifo})
    assert found is not None
    assert (found.reference, list(found.labels.values())) == ("lifo", ["fifo", "random"])
    by_hand = math.prod([7 / 3, 6 / 4, 7.5 / 5.5]) ** (1 / 3)
    point = found.lines["freestone"][1]
    assert point.value == pytest.approx(by_hand)
    assert point.trials == pytest.approx((7 / 3, 6 / 4, 7.5 / 5.5))
    assert (point.is_interval, point.low, point.high) == (False, min(point.trials), max(point.trials))
    assert found.lines["freestone"][2].value == pytest.approx(1)


def test_an_order_has_its_time_with_the_harness_too(family_maker: Callable[..., Any]) -> None:
    orders = {"order": ("lifo", "fifo", "random")}
    time, against = series_of(family_maker("{order}", ["patterns", "{order}"], orders, operations=10.0))
    assert (time.reference, time.kind, list(time.labels.values())) == ("", "time", ["lifo", "fifo", "random"])
    assert len(time.lines["freestone"]) == 3
    assert (against.reference, len(against.lines["freestone"])) == ("lifo", 2)


def test_an_order_that_the_harness_eats_has_no_ratio(family_maker: Callable[..., Any]) -> None:
    lifo, floors = [(9.0, 1.0)] * 5, (1.0, 2.0, 3.0, 4.0, 5.0)
    eaten = [(floor + 1.9, floor) for floor in floors]  # less than the floors differ, quartile to quartile
    left = [(floor + 2.1, floor) for floor in floors]
    found = ordered(family_maker, {"lifo": lifo, "eaten": eaten, "left": left, "none": [(1.0, 1.0)] * 5})
    assert found is not None
    assert set(found.lines["freestone"]) == {2}
    assert ordered(family_maker, {"lifo": [(1.0, 1.0)] * 5, "fifo": lifo, "random": lifo}) is None


rounds = st.dictionaries(st.integers(0, 12), st.floats(0.01, 1000), min_size=1)


@given(rounds, rounds)
def test_a_ratio_is_that_of_the_lab_over_the_rounds_that_both_have(
    one: dict[int, float], other: dict[int, float]
) -> None:
    found, both = ratio(one, other), [each for each in one if each in other]
    expected = paired_ratio([one[each] for each in both], [other[each] for each in both])
    assert (found is None) == (expected is None) == (not both)
    if found is not None and expected is not None:
        assert found.value == expected.value
        assert found.is_interval == expected.known
        if found.is_interval:
            assert (found.low, found.high) == (expected.low, expected.high)


# --- figures of a program -------------------------------------------------------------------------------------------


def of_figures(results: Any, figures: Mapping[str, float], *, without: str = "") -> list[Series]:
    records = [
        r.model_copy(update={"figures": {} if r.configuration == without else dict(figures)}) for r in results.records
    ]
    trials = Trials(results.experiment, results.summary, records)
    return parameter_series.of_figures(trials, results.summary, "json-sqlite")


def test_costs_by_size_are_series(results: Any) -> None:
    said = {"malloc_ns/64": 6.0, "malloc_ns/8": 4.0, "calloc_ns/8": 5.0, "calloc_ns/64": 0.0, "floor_ns": 0.5}
    malloc, calloc = of_figures(results, said, without="mimalloc")
    assert (malloc.title, malloc.labels, malloc.is_words) == ("malloc by size", {8: "8 B", 64: "64 B"}, False)
    assert malloc.lines["glibc"][8].value == pytest.approx(4e-9)
    assert malloc.floor == pytest.approx({8: 0.5e-9, 64: 0.5e-9})
    assert set(malloc.lines) == {"glibc", "freestone", "tcmalloc"}
    assert set(calloc.lines["glibc"]) == {8}, "0 has no place on a logarithmic axis"
    assert "its free is not on the clock" in calloc.how


def test_latency_is_a_series_by_percentile_with_no_call_beside_it(results: Any) -> None:
    said = {"free_ns/median": 9.0, "free_ns/p99.9": 40.0, "free_ns/p": 900.0, "free_calls/64": 5.0}
    said |= {"nothing_ns/median": 2.0, "nothing_ns/p": 300.0, "clock_step_ns": 15.0}
    (free,) = of_figures(results, said)
    assert (free.title, list(free.labels.values())) == ("free by percentile", ["median", "99.9 %", "p"])
    assert [point.value for point in free.lines["freestone"].values()] == pytest.approx([9e-9, 40e-9, 900e-9])
    assert free.floor == pytest.approx({0: 2e-9, 2: 300e-9})
    assert "steps of 15 ns" in free.how


def test_other_programs_have_none(results: Any) -> None:
    assert of_figures(results, {"seconds": 1.0, "malloc_ns/8": 4.0, "malloc_calls/8": 4.0, "a/b": 1.0}) == []
