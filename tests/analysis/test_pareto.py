"""What is concluded of finalists whose truth is known: the front, the best for a goal, and nothing where nothing is."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

import pytest

from freestone.analysis import pareto, summarise
from freestone.analysis.pareto import Conclusion, Goal
from freestone.records.schema import Experiment, TrialRecord
from freestone.reports import pareto_table

Conclude = Callable[..., Conclusion]


@pytest.fixture
def concluded(make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord]) -> Conclude:
    """``concluded({name: (time, memory)}, goal, seed=)``: of so many rounds beside glibc, which has 1 and 1."""

    def conclude(
        truth: Mapping[str, tuple[float, float]],
        goal: Goal = "balanced",
        *,
        seed: object = 0,
        rounds: int = 12,
        noise: float = 0.02,
        broken: str | None = None,
    ) -> Conclusion:
        chance = random.Random(str(seed))
        experiment = make_experiment(("glibc", *truth), rounds=rounds, racing="peak_rss_kib")
        records = []
        for number in range(rounds):
            weather = chance.random()
            for name, repeat in (("glibc", 0), ("glibc", 1), *((name, 0) for name in truth)):
                time, memory = truth.get(name, (1.0, 1.0))
                records.append(
                    make_record(
                        name,
                        number,
                        repeat=repeat,
                        wall_s=time * math.exp(weather + chance.gauss(0, noise)),
                        peak_rss_kib=round(1e6 * memory * math.exp(chance.gauss(0, noise / 4))),
                        status="failed" if name == broken and number == 3 else "ok",
                    )
                )
        (workload,) = experiment.workloads
        return pareto.conclude(experiment, records, summarise(experiment, records), workload, goal)

    return conclude


def names(found: Conclusion) -> list[str]:
    return [each.configuration for each in found.front]


def test_on_the_front_is_who_is_beaten_by_nobody(concluded: Conclude) -> None:
    found = concluded({"fast": (0.7, 1.3), "lean": (1.1, 0.7), "beaten": (0.9, 1.4), "worse": (1.2, 1.2)}, "time")
    assert found.out.keys() == {"beaten", "worse"}
    assert names(found) == ["fast", "lean"]
    assert found.best is not None
    assert found.best.configuration == "fast"
    assert found.level == []


@pytest.mark.parametrize(("goal", "best"), [("time", "fast"), ("memory", "lean"), ("balanced", "both")])
def test_each_goal_has_its_best(concluded: Conclude, goal: Goal, best: str) -> None:
    found = concluded({"fast": (0.7, 1.3), "lean": (1.3, 0.7), "both": (0.8, 0.95)}, goal)
    assert found.best is not None
    assert found.best.configuration == best
    assert set(names(found)) == {"fast", "lean", "both"}


def test_twins_of_the_best_stay_on_the_front_and_are_named_beside_it(concluded: Conclude) -> None:
    found = concluded({"one": (0.7, 1.0), "two": (0.7, 1.0)}, "time", noise=0.04)
    assert found.best is not None
    assert {found.best.configuration, *found.level} == {"one", "two"}
    assert set(names(found)) == {"one", "two"}


def test_twins_of_the_untouched_program_are_seldom_crowned(concluded: Conclude) -> None:
    twins = {f"twin {number}": (1.0, 1.0) for number in range(5)}
    times = 60
    crowned = sum(concluded(twins, "time", seed=number).best is not None for number in range(times))
    shown = sum(bool(concluded(twins, "time", seed=number).front) for number in range(times))
    assert crowned <= 0.05 * times
    assert shown <= 0.05 * times + 2  # the front may also say that memory is less


def test_what_is_less_by_a_thousandth_is_worth_no_change(concluded: Conclude) -> None:
    found = concluded({"leaner by a thousandth": (1.0, 0.999)}, "memory", noise=0.0002)
    assert found.tried[0].memory is not None
    assert found.tried[0].memory.different
    assert found.front == []
    assert found.best is None


def test_a_finalist_with_a_failed_trial_is_discarded(concluded: Conclude) -> None:
    found = concluded({"fast": (0.5, 0.5), "fine": (0.9, 0.9)}, "time", broken="fast")
    assert names(found) == ["fine"]
    (discarded,) = [each for each in found.tried if each.discarded is not None]
    assert discarded.configuration == "fast"


def test_too_few_rounds_say_nothing(concluded: Conclude) -> None:
    found = concluded({"fast": (0.5, 0.5)}, "time", rounds=3)
    assert found.front == []
    assert found.best is None


def told(found: Conclusion, experiment: Experiment) -> str:
    return pareto_table.conclusion(found, "time", experiment, brings_malloc=False, width=100)


def test_nothing_told_apart_is_said_in_these_words(
    concluded: Conclude, make_experiment: Callable[..., Experiment]
) -> None:
    experiment = make_experiment(("glibc", "twin"))
    assert "\nNothing told apart: no configuration" in told(concluded({"twin": (1.0, 1.0)}), experiment)
    assert "3 rounds say nothing; give it more time" in told(concluded({"twin": (1.0, 1.0)}, rounds=3), experiment)


def test_each_of_the_front_comes_with_its_price_and_the_lines_to_use_it(
    concluded: Conclude, make_experiment: Callable[..., Experiment]
) -> None:
    experiment = make_experiment(("glibc", "fast", "lean"))
    text = told(concluded({"fast": (0.7, 1.3), "lean": (1.3, 0.7)}, "time"), experiment)
    assert "\nBest for time: fast (time 0." in text
    for name in ("fast", "lean"):
        assert f"\n  {name}\n    time " in text
        assert f"freestone run -a {name} -- true" in text


def test_those_that_are_out_and_failed_are_counted(
    concluded: Conclude, make_experiment: Callable[..., Experiment]
) -> None:
    found = concluded({"fast": (0.7, 1.0), "slow": (1.5, 1.0), "bad": (0.5, 1.0)}, "time", broken="bad")
    assert found.out == {"slow": "fast"}
    assert names(found) == ["fast"]
    text = told(found, make_experiment(("glibc", "fast", "slow", "bad")))
    assert text.startswith("Tried beside glibc: 3 configurations. Out, as another is really better: 1. Failed: 1.")
