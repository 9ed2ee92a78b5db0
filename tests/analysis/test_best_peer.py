"""The peer that the other half of the rounds would have chosen: no luck of the choice in the ratio."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.analysis.best_peer import best_of_other_rounds
from freestone.analysis.statistics import geometric_mean

figures = st.floats(1e-3, 1e3)
peers = st.dictionaries(st.sampled_from("abcdef"), st.dictionaries(st.integers(0, 5), figures), max_size=6)


def test_a_peer_that_is_lowest_in_every_round_is_chosen_in_every_round() -> None:
    assert best_of_other_rounds({"a": {0: 1.0, 1: 1.5, 2: 1.2}, "b": {0: 2.0, 1: 1.6, 2: 1.3}}) == {
        0: 1.0,
        1: 1.5,
        2: 1.2,
    }


def test_a_lucky_round_does_not_choose_for_itself() -> None:
    steady, lucky = {0: 1.0, 1: 1.0, 2: 1.0}, {0: 0.1, 1: 1.2, 2: 1.2}
    found = best_of_other_rounds({"steady": steady, "lucky": lucky})
    assert found[0] == 1.0, "by the rounds 1 and 2 the steady one is the lower"
    assert found[1] == 1.2, "round 0 speaks for the lucky one, in vain"


def test_one_round_foresees_nothing() -> None:
    assert best_of_other_rounds({"a": {0: 1.0}, "b": {0: 2.0}}) == {}
    assert best_of_other_rounds({}) == {}


def test_a_peer_that_failed_in_a_round_is_not_chosen_for_it() -> None:
    assert best_of_other_rounds({"a": {1: 1.0, 2: 1.0}, "b": {0: 5.0, 1: 5.0, 2: 5.0}}) == {0: 5.0, 1: 1.0, 2: 1.0}


def test_a_figure_of_zero_has_no_ratio_and_chooses_nobody() -> None:
    assert best_of_other_rounds({"a": {0: 0.0, 1: 0.0}, "b": {0: 2.0, 1: 2.0}}) == {0: 2.0, 1: 2.0}


@given(peers)
def test_every_figure_is_some_peers_in_that_round_and_order_does_not_matter(
    values: dict[str, dict[int, float]],
) -> None:
    found = best_of_other_rounds(values)
    for number, figure in found.items():
        there = [rounds[number] for rounds in values.values() if number in rounds]
        assert figure in there
        assert figure >= min(there)
    assert found == best_of_other_rounds(dict(reversed(values.items())))


@given(st.dictionaries(st.integers(0, 5), figures, min_size=2))
def test_a_single_peer_is_chosen_everywhere(rounds: dict[int, float]) -> None:
    assert best_of_other_rounds({"only": rounds}) == rounds


@pytest.mark.parametrize("rounds", [2, 4, 8])
def test_beside_equals_nobody_looks_slow(rounds: int) -> None:
    """Ten equal allocators on 400 workloads: the lowest of nine beats any, the best of the other rounds does not."""
    draw = random.Random(7)
    lowest, chosen = [], []
    for _ in range(400):
        runs = {name: {r: draw.lognormvariate(0, 0.2) for r in range(rounds)} for name in "abcdefghij"}
        own = runs.pop("a")
        lowest.append(geometric_mean(list(own.values())) / min(geometric_mean(list(x.values())) for x in runs.values()))
        chosen.append(geometric_mean(list(own.values())) / geometric_mean(list(best_of_other_rounds(runs).values())))
    assert geometric_mean(lowest) > 1 + 0.2 / rounds**0.5
    assert geometric_mean(chosen) == pytest.approx(1, abs=0.03)
