"""Racing on figures whose truth is known: what is best stays, what is worse goes, twins are not told apart."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.tuning import racing
from freestone.tuning.kept import ROUNDS
from freestone.tuning.racing import MEMORY, TIME, Race

BASE = "untouched"

GIB = float(1 << 20)
"""In KiB, so large that a page more or less is nothing."""

Noise = Callable[[random.Random], float]
"""Draws what is added to the logarithm of a figure."""

NOISES: dict[str, Noise] = {
    "plain": lambda chance: chance.gauss(0, 0.02),
    "skewed": lambda chance: chance.expovariate(1 / 0.02),
    "heavy tails": lambda chance: 0.01 * chance.gauss(0, 1) / math.sqrt(chance.gammavariate(1.5, 1 / 1.5)),
    "bimodal": lambda chance: (0.05 if chance.random() < 0.3 else 0.0) + chance.gauss(0, 0.003),
}


def measured(
    truth: Mapping[str, tuple[float, float]], batches: int, chance: random.Random, noise: Noise, *, drift: float = 0.1
) -> list[Race]:
    """What is known after each of some batches in which everybody takes part, on a machine that drifts."""
    race: dict[str, dict[str, dict[tuple[int, int], float]]] = {name: {TIME: {}, MEMORY: {}} for name in (BASE, *truth)}
    found: list[Race] = []
    for batch in range(batches):
        for number in range(ROUNDS):
            weather = drift * chance.random()
            for name, (time, memory) in {BASE: (1.0, 1.0), **truth}.items():
                race[name][TIME][batch, number] = time * math.exp(weather + noise(chance))
                race[name][MEMORY][batch, number] = GIB * memory * math.exp(noise(chance) / 4)
        found.append({name: {each: dict(rounds) for each, rounds in mine.items()} for name, mine in race.items()})
    return found


def raced(after: list[Race]) -> dict[str, str]:
    """Who is out at the end, where whoever is out takes no part any more."""
    out: dict[str, str] = {}
    for count, race in enumerate(after, start=1):
        present = [name for name in race if name not in out]
        out |= racing.put_out(race, BASE, present, dict.fromkeys(race, count), out)
    return out


@pytest.mark.parametrize("kind", NOISES)
def test_those_of_the_front_stay_as_often_as_promised(kind: str) -> None:
    truth = {
        "fast": (0.9, 1.1),
        "lean": (1.05, 0.8),
        "both": (0.95, 0.95),
        **{f"twin {number}": (1.0, 1.0) for number in range(5)},
    }
    chance = random.Random(f"front/{kind}")
    searches = 60
    lost = dict.fromkeys(("fast", "lean", "both"), 0)
    for _ in range(searches):
        for name in raced(measured(truth, 5, chance, NOISES[kind])).keys() & lost.keys():
            lost[name] += 1
    assert all(each <= 0.05 * searches for each in lost.values()), lost


@pytest.mark.parametrize("kind", NOISES)
def test_twins_are_seldom_put_out(kind: str) -> None:
    truth = {f"twin {number}": (1.0, 1.0) for number in range(6)}
    chance = random.Random(f"twins/{kind}")
    searches = 60
    accused = sum(bool(raced(measured(truth, 5, chance, NOISES[kind]))) for _ in range(searches))
    assert accused <= 0.05 * searches


def test_what_is_clearly_worse_goes_soon() -> None:
    truth = {"good": (0.8, 0.9), "slow": (1.6, 1.0), "fat": (1.0, 2.0)}
    after = measured(truth, 2, random.Random(3), NOISES["plain"])
    assert raced(after).keys() == {"slow", "fat"}
    assert raced(after)["slow"] == "good"


def test_what_is_much_worse_in_one_and_better_in_the_other_stays() -> None:
    truth = {"fast and fat": (0.5, 3.0), "slow and lean": (3.0, 0.5)}
    assert raced(measured(truth, 6, random.Random(4), NOISES["plain"])) == {}


def test_the_untouched_program_puts_out_and_stays() -> None:
    out = raced(measured({"slow": (1.5, 1.0), "fast": (0.5, 0.5)}, 4, random.Random(5), NOISES["plain"]))
    assert out.keys() == {"slow"}
    alone = raced(measured({"slow": (1.5, 1.2)}, 4, random.Random(5), NOISES["plain"]))
    assert alone == {"slow": BASE}


def test_those_of_different_batches_are_compared_by_way_of_the_untouched_program() -> None:
    chance = random.Random(6)
    whole = measured({"early": (1.5, 1.2), "late": (0.7, 0.9)}, 6, chance, NOISES["plain"], drift=1.0)[-1]
    race = {
        name: {
            each: {
                at: value
                for at, value in rounds.items()
                if name == BASE or (at[0] < 3 if name == "early" else at[0] >= 3)
            }
            for each, rounds in mine.items()
        }
        for name, mine in whole.items()
    }
    assert racing.dominates(race, "late", "early", BASE, 0.999)
    assert not racing.dominates(race, "early", "late", BASE, 0.5)


def test_too_few_rounds_put_nobody_out() -> None:
    few: Race = {
        name: {each: {(0, number): value for number in range(3)} for each in racing.OBJECTIVES}
        for name, value in ((BASE, 1.0), ("worse", 9.0))
    }
    assert racing.put_out(few, BASE, ["worse"], {"worse": 1}, ()) == {}


def test_an_objective_that_was_not_measured_puts_nobody_out() -> None:
    times = dict.fromkeys(range(8), 1.0)
    blind: Race = {
        name: {TIME: {(0, number): value * each for number, each in times.items()}, MEMORY: {}}
        for name, value in ((BASE, 1.0), ("worse", 9.0))
    }
    assert racing.put_out(blind, BASE, ["worse"], {"worse": 1}, ()) == {}


@given(st.integers(1, 1000))
def test_all_looks_together_err_no_more_than_promised(looks: int) -> None:
    spent = sum(1 - racing.certainty(number) for number in range(1, looks + 1))
    assert spent * racing.MOST_ARMS <= 0.05 + 1e-9


figures = st.floats(0.2, 5.0)


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(figures, figures), min_size=1), st.floats(0.01, 100))
def test_the_estimated_front_is_of_no_unit_and_beaten_by_nobody(
    truth: dict[str, tuple[float, float]], factor: float
) -> None:
    def exact(scale: float) -> Race:
        return {
            name: {TIME: {(0, 0): scale * time}, MEMORY: {(0, 0): scale * memory}}
            for name, (time, memory) in {BASE: (1.0, 1.0), **truth}.items()
        }

    front = racing.front(exact(1.0), truth, BASE)
    assert front
    for name in front:
        assert not any(other[0] < truth[name][0] and other[1] < truth[name][1] for other in truth.values())
    ranked = racing.ranked(exact(1.0), list(truth), BASE, "time")
    assert sorted(ranked) == sorted(truth)
    gaining = [name for name in front if min(truth[name]) * racing.SLACK < 1]
    assert set(ranked[: len(gaining)]) == set(gaining)
    costs = [racing.cost(exact(1.0), name, BASE, "time") for name in ranked[: len(gaining)]]
    assert costs == sorted(costs)
    for name, (time, _) in truth.items():
        assert racing.ratio(exact(factor), TIME, name, BASE) * factor == pytest.approx(time * factor)


def test_memory_that_agrees_by_chance_puts_nobody_out() -> None:
    """Four rounds of one count are no proof: what is counted in pages is known no better than to one."""
    race: Race = {
        name: {
            TIME: dict.fromkeys(((0, n) for n in range(4)), 1.0),
            MEMORY: dict.fromkeys(((0, n) for n in range(4)), kib),
        }
        for name, kib in ((BASE, 1004.0), ("twin", 1000.0), ("worse", 1100.0))
    }
    assert not racing.dominates(race, "twin", BASE, BASE, 0.95)
    assert racing.dominates(race, BASE, "worse", BASE, 0.95)
