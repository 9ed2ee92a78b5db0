"""Whole tables of made-up trials: twins are seldom accused, and what is planted is found."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_tables import campaign, noise, trials
from simulated_tables.campaign import PLANTED, Tally
from simulated_tables.trials import Truth

from freestone.analysis.statistics import FEWEST_PAIRS

pytestmark = pytest.mark.long

TABLES = 40
MOST = 6
"""Of forty, where one in twenty is allowed: more than that chance would give once in a hundred times."""


@pytest.mark.parametrize("kind", ["skewed", "bimodal", "drifting", "autocorrelated"])
def test_twins_are_seldom_accused_in_any_quantity_of_a_table(kind: str) -> None:
    of = campaign.tally(kind, 10, TABLES, boards=False)
    assert of.accused <= MOST
    assert of.untrue <= MOST


@pytest.mark.parametrize("kind", ["plain", "skewed", "bimodal", "disturbed", "counts"])
def test_a_table_of_the_fewest_rounds_keeps_its_promise_too(kind: str) -> None:
    """A few rounds often agree by chance in what is counted."""
    of = campaign.tally(kind, FEWEST_PAIRS, 200, boards=False)
    assert of.accused <= 20
    assert of.untrue <= 20


def test_twins_are_seldom_accused_by_scoreboards_and_differences() -> None:
    of = campaign.tally("bimodal", 6, 15)
    assert of.accused_boards <= 3
    assert of.accused_differences <= 3


def test_what_is_planted_is_found_where_rounds_allow_it() -> None:
    found = campaign.tally("plain", 20, 20, boards=False).found
    assert found["5 % slower"] == 20
    assert found["2 % slower"] >= 18
    assert found["5 % slower"] >= found["2 % slower"] >= found["1 % slower"] >= 4


@pytest.mark.parametrize("kind", noise.KINDS)
def test_noise_meets_every_run_of_a_round_alike(kind: str) -> None:
    random = np.random.default_rng(1)
    drawn = np.concatenate([noise.rounds(kind, random, 20, 4) for _ in range(200)])
    spread = drawn.std() / np.sqrt(len(drawn))
    assert drawn.shape == (4000, 4)
    assert np.ptp(drawn.mean(axis=0)) <= 6 * spread


def test_trials_are_those_of_the_truth() -> None:
    truth = Truth({"half": 0.5, "same": 1.0}, workloads=2)
    records = trials.draw(truth, "plain", np.random.default_rng(1), 3)
    assert len(records) == 2 * 3 * 4
    for record in records:
        assert record.metrics is not None
        expected = 0.5 if record.configuration == "half" else 1.0
        assert record.metrics.wall_s == pytest.approx(expected, rel=0.1)
        assert record.metrics.peak_rss_kib == pytest.approx(1000, rel=0.01)


def test_the_table_has_a_line_for_each_kind_and_number_of_rounds() -> None:
    found = Tally(200, untrue=10, accused=4, found=dict.fromkeys(PLANTED, 100))
    lines = campaign.table([("plain", 10, found)]).splitlines()
    assert lines[-1] == "| plain | 10 | 95 % | 2 % | 0 % | 0 % | 50 % | 50 % | 50 % |"
    assert {line.count("|") for line in lines} == {10}
