"""Orders of malloc and free: which workloads belong together, what they cost, what the floor eats."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from invented_orders import ORDERS, Measured, measured, ordered, workload

from freestone.analysis.statistics import Interval, paired_ratio
from freestone.records.schema import Workload
from freestone.reports.orders import data as orders
from freestone.reports.orders.data import Cost, Member, Trial

# --- which belong together --------------------------------------------------------------------------------------------


def test_orders_are_found_in_commands_and_lifo_stands_first() -> None:
    (family,) = orders.orders(
        [
            workload("a", "--order", "fifo", "--size=64", "--live", "10000", "--operations", "7"),
            workload("b", "--order=lifo", "--size", "64", "--live=10000", "--operations=900"),
            workload("c", "--order", "random", "--shuffle-inside", "--size", "64", "--live", "10000"),
            workload("d", "--order", "random", "--size", "64", "--live", "10000"),
        ]
    )
    assert [(m.workload, m.order, m.shuffled) for m in family.members] == [
        ("b", "lifo", False),
        ("a", "fifo", False),
        ("d", "random", False),
        ("c", "random", True),
    ]
    assert (family.size, family.live, family.title) == (64, 10000, "64 B, 10 k live")


@pytest.mark.parametrize(
    "other",
    [
        ordered("fifo", 32),
        ordered("fifo", 16, 200),
        ordered("fifo", 16, 100, "--threads", "2"),
        ordered("fifo", environment={"A": "1"}),
        ordered("fifo", directory="/elsewhere"),
        ordered("fifo", program="/somewhere/other"),
        ordered("lifo"),
        ordered("random", 16, 100, "--shuffle-inside"),
        workload("none", "--size", "16", "--live", "100"),
    ],
    ids=lambda each: each.name,
)
def test_anything_else_that_differs_parts_them_and_one_order_is_no_family(other: Workload) -> None:
    assert orders.orders([ordered("lifo"), other]) == []


def test_what_else_they_share_is_in_the_title() -> None:
    threads = [ordered(order, 16, 100, "--threads", "2") for order in ("lifo", "fifo")]
    (family,) = orders.orders(threads)
    assert family.title == "16 B, 100 live, --threads 2"
    (family,) = orders.orders([workload("a", "--order", "lifo"), workload("b", "--order", "fifo")])
    assert family.title == "as the program has it"


@given(st.permutations([ordered(o, s, n) for o in ORDERS for s in (16, 64) for n in (100, 10000)]))
def test_each_size_and_number_has_all_its_orders_once(workloads: list[Workload]) -> None:
    found = orders.orders(workloads)
    assert {(each.size, each.live) for each in found} == {(s, n) for s in (16, 64) for n in (100, 10000)}
    for family in found:
        assert sorted(member.order for member in family.members) == sorted(ORDERS)
        assert family.members[0].order == orders.LIFO


# --- what they cost ---------------------------------------------------------------------------------------------------


def test_costs_are_those_of_one_malloc_or_free(made: Measured) -> None:
    (family,) = orders.orders(made[0].workloads)
    found = orders.costs(*made, family)
    assert list(found) == ["glibc", "freestone"]
    cost = found["glibc"][Member("lifo-16-100", "lifo")]
    assert cost.gross == pytest.approx(5.0)
    assert cost.million_a_second == pytest.approx(200.0)
    assert cost.floor == pytest.approx(2.0)
    assert cost.net == pytest.approx(3.0)


def test_repeats_and_what_failed_are_left_out(made: Measured) -> None:
    experiment, summary, records = made
    (family,) = orders.orders(experiment.workloads)
    again = [each.model_copy(update={"repeat": 1, "figures": {"operations": 1, "seconds": 9.0}}) for each in records]
    failed = [each.model_copy(update={"status": "failed", "round": 99}) for each in records]
    assert orders.costs(experiment, summary, [*records, *again, *failed], family) == orders.costs(*made, family)
    cells = [each.model_copy(update={"status": "invalid"}) for each in summary.cells]
    assert orders.costs(experiment, summary.model_copy(update={"cells": cells}), records, family) == {}


@pytest.mark.parametrize("said", [None, {}, {"seconds": 1.0}, {"seconds": 0.0, "operations": 5.0}])
def test_a_trial_that_says_too_little_has_no_cost(made: Measured, said: dict[str, float] | None) -> None:
    assert orders.trial_of(made[2][0].model_copy(update={"figures": said})) is None


def test_without_a_floor_there_is_a_cost_and_no_degradation() -> None:
    bare = Cost({0: Trial(5.0, None), 1: Trial(6.0, None)})
    assert (bare.gross, bare.floor, bare.net) == (5.5, None, None)
    assert orders.degradation(bare, bare) is None


def test_less_than_the_floors_differ_is_eaten() -> None:
    floors = (1.0, 2.0, 3.0, 4.0, 5.0)
    eaten = Cost({n: Trial(floor + 1.9, floor) for n, floor in enumerate(floors)})
    left = Cost({n: Trial(floor + 2.1, floor) for n, floor in enumerate(floors)})
    assert eaten.net is None
    assert left.net == pytest.approx(2.1)


nanoseconds = st.floats(0.01, 1000)
trials = st.lists(st.tuples(nanoseconds, nanoseconds), min_size=1, max_size=12)


def cost(pairs: Sequence[tuple[float, float]]) -> Cost:
    return Cost({number: Trial(net + floor, floor) for number, (net, floor) in enumerate(pairs)})


@given(trials)
def test_an_order_is_as_slow_as_itself(pairs: list[tuple[float, float]]) -> None:
    one = cost(pairs)
    assume(one.net is not None)
    found = orders.degradation(one, one)
    assert found is not None
    assert found.value == pytest.approx(1)
    assert found.pairs == len(pairs)
    assert found.interval is None or found.interval == pytest.approx((1, 1))
    assert (found.interval is None) == (len(pairs) < 4)


@given(st.floats(0.1, 10), nanoseconds, trials)
def test_a_floor_changes_nothing_once_it_is_taken_off(
    times: float, floor: float, pairs: list[tuple[float, float]]
) -> None:
    """The same allocator under another harness."""
    lifo = Cost({n: Trial(net + floor, floor) for n, (net, _) in enumerate(pairs)})
    slower = Cost({n: Trial(net * times + floor * 2, floor * 2) for n, (net, _) in enumerate(pairs)})
    found = orders.degradation(slower, lifo)
    assume(lifo.net is not None and slower.net is not None)
    assert found is not None
    assert found.value == pytest.approx(times, rel=1e-6)


@given(trials, trials)
def test_the_interval_is_that_of_the_lab_over_the_rounds_that_both_have(
    ones: list[tuple[float, float]], others: list[tuple[float, float]]
) -> None:
    one, lifo = cost(ones), cost(others)
    found = orders.degradation(one, lifo)
    assert (found is None) == (one.net is None or lifo.net is None)
    if found is None:
        return
    both = range(min(len(ones), len(others)))
    expected = paired_ratio([one.trials[n].net or 0 for n in both], [lifo.trials[n].net or 0 for n in both])
    assert isinstance(expected, Interval)
    assert found.value == expected.value
    assert found.interval == ((expected.low, expected.high) if expected.known else None)


@given(st.lists(st.tuples(st.floats(0.001, 50), st.floats(0, 50)), min_size=1, max_size=8))
def test_no_net_time_is_less_than_nothing(pairs: list[tuple[float, float]]) -> None:
    one = Cost({number: Trial(gross, floor) for number, (gross, floor) in enumerate(pairs)})
    if any(gross <= floor for gross, floor in pairs):
        assert one.net is None
        assert orders.degradation(one, one) is None
    published = orders.as_published(one, one)
    assert published is not None
    assert published.value == pytest.approx(1)


def test_rounds_that_do_not_meet_have_no_ratio() -> None:
    assert orders.degradation(Cost({0: Trial(3, 1)}), Cost({1: Trial(3, 1)})) is None


def test_the_published_way_takes_nothing_off(made: Measured) -> None:
    (family,) = orders.orders(made[0].workloads)
    against = orders.against_lifo(family, orders.costs(*made, family))
    random, shuffled = (family.find("random", shuffled=each) for each in (False, True))
    assert random is not None
    assert shuffled is not None
    assert against["freestone"][random].value == pytest.approx(2.0)
    assert set(against["glibc"]) == {shuffled}, "the floor eats the other"
    assert against["glibc"][shuffled].value == pytest.approx(2.0)
    assert shuffled not in against["freestone"], "not measured"


def test_without_lifo_nothing_is_held_against_it() -> None:
    workloads = [ordered("fifo"), ordered("random")]
    made = measured({(each.name, "glibc"): [(5.0, 1.0)] for each in workloads}, workloads)
    (family,) = orders.orders(workloads)
    assert orders.against_lifo(family, orders.costs(*made, family)) == {"glibc": {}}


def test_medians_and_means_agree_with_the_figures_by_hand() -> None:
    workloads = [ordered("lifo"), ordered("fifo")]
    lifo, fifo = [(4.0, 1.0), (5.0, 1.0), (7.0, 1.5)], [(9.0, 2.0), (8.0, 2.0), (9.5, 2.0)]
    made = measured({("lifo-16-100", "glibc"): lifo, ("fifo-16-100", "glibc"): fifo}, workloads)
    (family,) = orders.orders(workloads)
    costs = orders.costs(*made, family)
    member = Member("fifo-16-100", "fifo")
    assert costs["glibc"][member].gross == pytest.approx(statistics.median([9.0, 8.0, 9.5]))
    by_hand = math.prod([7 / 3, 6 / 4, 7.5 / 5.5]) ** (1 / 3)
    assert orders.against_lifo(family, costs)["glibc"][member].value == pytest.approx(by_hand)
