"""Racing on figures whose truth is known: what is best stays, what is worse goes, twins are not told apart."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.analysis import racing
from freestone.analysis.racing import LOOK_EVERY, Race
from freestone.analysis.rounds import plan_round
from freestone.records.schema import Experiment, TrialRecord

BASE = "untouched"
TIME, MEMORY = OBJECTIVES = "wall_s", "peak_rss_kib"

GIB = float(1 << 20)
"""In KiB, so large that a page more or less is nothing."""

Noise = Callable[[random.Random], float]
"""Draws what is added to the logarithm of a figure."""

Racers = Callable[..., tuple[Experiment, list[TrialRecord]]]

NOISES: dict[str, Noise] = {
    "plain": lambda chance: chance.gauss(0, 0.02),
    "skewed": lambda chance: chance.expovariate(1 / 0.02),
    "heavy tails": lambda chance: 0.01 * chance.gauss(0, 1) / math.sqrt(chance.gammavariate(1.5, 1 / 1.5)),
    "bimodal": lambda chance: (0.05 if chance.random() < 0.3 else 0.0) + chance.gauss(0, 0.003),
}


def measured(
    truth: Mapping[str, tuple[float, float]], looks: int, chance: random.Random, noise: Noise, *, drift: float = 0.1
) -> list[Race]:
    """The figures at each of some looks, of a race in which all take part, on a machine that drifts."""
    race: dict[str, dict[str, dict[int, float]]] = {name: {TIME: {}, MEMORY: {}} for name in (BASE, *truth)}
    found: list[Race] = []
    for number in range(looks * LOOK_EVERY):
        weather = drift * chance.random()
        for name, (time, memory) in {BASE: (1.0, 1.0), **truth}.items():
            race[name][TIME][number] = time * math.exp(weather + noise(chance))
            race[name][MEMORY][number] = GIB * memory * math.exp(noise(chance) / 4)
        if number % LOOK_EVERY == LOOK_EVERY - 1:
            found.append({name: {each: dict(rounds) for each, rounds in mine.items()} for name, mine in race.items()})
    return found


def raced(after: list[Race]) -> dict[str, str]:
    """Those that are out at the end, of a race in which those that are out have no more rounds."""
    out: dict[str, str] = {}
    rounds: dict[str, int] = {}
    for looks, race in enumerate(after, start=1):
        seen = {
            name: {each: {n: v for n, v in mine.items() if n < rounds.get(name, 1 << 30)} for each, mine in row.items()}
            for name, row in race.items()
        }
        new = racing.put_out(seen, BASE, OBJECTIVES, looks, out)
        rounds |= dict.fromkeys(new, looks * LOOK_EVERY)
        out |= new
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


def test_too_few_rounds_put_nobody_out() -> None:
    few: Race = {
        name: {each: dict.fromkeys(range(3), value) for each in OBJECTIVES}
        for name, value in ((BASE, 1.0), ("worse", 9.0))
    }
    assert racing.put_out(few, BASE, OBJECTIVES, 1) == {}


def test_an_objective_that_was_not_measured_puts_nobody_out() -> None:
    blind: Race = {
        name: {TIME: dict.fromkeys(range(8), value), MEMORY: {}} for name, value in ((BASE, 1.0), ("worse", 9.0))
    }
    assert racing.put_out(blind, BASE, OBJECTIVES, 1) == {}


@given(st.integers(1, 1000))
def test_all_looks_together_err_no_more_than_promised(looks: int) -> None:
    spent = sum(1 - racing.certainty(number, 64) for number in range(1, looks + 1))
    assert spent * 64 <= 0.05 + 1e-9


def test_memory_that_agrees_by_chance_puts_nobody_out() -> None:
    """Four rounds of one count are no proof: what is counted in pages is known no better than to one."""
    race: Race = {
        name: {
            TIME: dict.fromkeys(range(4), 1.0),
            MEMORY: dict.fromkeys(range(4), kib),
        }
        for name, kib in ((BASE, 1004.0), ("twin", 1000.0), ("worse", 1100.0))
    }
    assert not racing.dominates(race, "twin", BASE, OBJECTIVES, 0.95)
    assert racing.dominates(race, BASE, "worse", OBJECTIVES, 0.95)


@pytest.fixture
def racers(make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord]) -> Racers:
    """``racers({name: seconds}, rounds, failed=)``: an experiment of glibc, which takes 1, and so many rounds of it."""

    def run(truth: Mapping[str, float], rounds: int, *, failed: str = "") -> tuple[Experiment, list[TrialRecord]]:
        experiment = make_experiment(("glibc", *truth), rounds=50, racing=MEMORY)
        chance = random.Random(1)
        records = [
            make_record(
                slot.configuration,
                number,
                repeat=slot.repeat,
                wall_s=truth.get(slot.configuration, 1.0) * math.exp(chance.gauss(0, 0.01)),
                peak_rss_kib=1_000_000,
                status="failed" if slot.configuration == failed and number > 0 else "ok",
            )
            for number in range(rounds)
            for slot in plan_round(experiment, number)
        ]
        return experiment, records

    return run


def test_a_clear_loser_is_out_at_the_first_look_and_not_before(racers: Racers) -> None:
    truth = {"fast": 0.8, "slow": 1.5}
    assert racing.out(*racers(truth, 3)) == {}
    experiment, records = racers(truth, 4)
    assert racing.out(experiment, records) == {("work", "slow"): "fast"}
    assert racing.out(experiment, records[:-1]) == {}, "a round that is not whole is not looked at"
    assert racing.out(experiment.model_copy(update={"racing": None}), records) == {}


def test_the_answer_is_the_same_however_many_rounds_follow(racers: Racers) -> None:
    experiment, records = racers({"fast": 0.8, "slow": 1.5, "close": 0.81}, 12)
    kept = [each for each in records if each.configuration != "slow" or each.round < 4]
    assert racing.out(experiment, kept) == racing.out(experiment, kept[: 4 * 5]) == {("work", "slow"): "fast"}


def test_a_race_without_rivals_is_over(racers: Racers) -> None:
    out = racing.out(*racers({"slow": 1.5}, 4))
    assert out == {("work", "slow"): "glibc", ("work", "glibc"): None}


def test_what_fails_gets_no_more_rounds(racers: Racers) -> None:
    assert racing.out(*racers({"fast": 0.8, "bad": 0.5}, 4, failed="bad")) == {("work", "bad"): None}


def test_without_the_untouched_program_nothing_goes_on(racers: Racers) -> None:
    out = racing.out(*racers({"fast": 0.8}, 4, failed="glibc"))
    assert out.keys() == {("work", "fast"), ("work", "glibc")}
