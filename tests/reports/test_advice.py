"""One sentence for who is in a hurry: what to take, that there is nothing to take, or that it was too short."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest

from freestone.analysis import headline, summarise
from freestone.records.schema import Experiment, TrialRecord
from freestone.reports import advice

MakeExperiment = Callable[..., Experiment]
MakeRecord = Callable[..., TrialRecord]


def advised(
    make_experiment: MakeExperiment,
    make_record: MakeRecord,
    rounds: int,
    wall_s: float,
    status: str = "ok",
    typed: str = "freestone compare --quick -- true",
) -> str:
    """The advice after so many rounds, in which the other allocator took so long and the baseline a second."""
    experiment = make_experiment(("glibc", "freestone"), rounds=50, command_line=shlex.split(typed))
    records = [
        record
        for number in range(rounds)
        for record in (
            make_record("glibc", number, wall_s=1 + number / 1000),
            make_record("glibc", number, repeat=1, wall_s=1 + number / 999),
            make_record("freestone", number, wall_s=wall_s + number / 1000, status=status),
        )
    ]
    return advice.sentence(experiment, summarise(experiment, records), 60.0)


def test_what_is_really_better_is_advised_with_the_line_that_runs_it(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    said = advised(make_experiment, make_record, 10, 0.5)
    assert said.startswith("Run it under freestone (time 0.5")
    assert said.endswith(": freestone run -a freestone -- true")


def test_what_is_no_better_is_not(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    for wall_s in (1.0, 2.0):
        said = advised(make_experiment, make_record, 10, wall_s)
        assert said.startswith("Stay with glibc: in 10 rounds freestone was not really better in time")


def test_too_few_rounds_say_how_long_would_do(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    assert advised(make_experiment, make_record, 2, 0.5) == (
        "There is no telling yet: 2 rounds of 2 allocators in 60 s are too few; "
        "try: freestone compare --time-budget 300 --quick -- true"
    )


def test_without_another_there_is_no_advice(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    assert "Run it" not in advised(make_experiment, make_record, 10, 0.5, status="failed")


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ("-a freestone,jemalloc --env 'A=b c'", "-a freestone,jemalloc --env 'A=b c'"),
        ("--time-budget 60 --ready 'nc -z ::1 7' --load l", "--ready 'nc -z ::1 7' --load l"),
        ("-a x --time-budget=60 --results r", "-a x --results r"),
    ],
)
def test_the_longer_one_keeps_every_option_but_the_budget(
    make_experiment: MakeExperiment, make_record: MakeRecord, options: str, kept: str
) -> None:
    typed = f"freestone compare --quick {options} -- ./v --time-budget 7"
    said = advised(make_experiment, make_record, 2, 0.5, typed=typed)
    assert said.endswith(f"try: freestone compare --time-budget 300 --quick {kept} -- ./v --time-budget 7")


def test_who_is_level_with_the_best_is_named_with_its_price(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    experiment = make_experiment(("glibc", "a", "b", "slow"), rounds=10)
    walls = {"glibc": 1.0, "a": 0.500, "b": 0.501, "slow": 0.9}
    peaks = {"glibc": 1000, "a": 3000, "b": 500, "slow": 1000}
    records = [
        make_record(
            name, number, repeat=repeat, wall_s=wall + (number * 7 + 3 * len(name)) % 5 / 200, peak_rss_kib=peak
        )
        for number in range(10)
        for name, repeat in (("glibc", 0), ("glibc", 1), ("a", 0), ("b", 0), ("slow", 0))
        for wall, peak in [(walls[name] + (number % 3) / 100 * (name == "b"), peaks[name] + number)]
    ]
    summary = summarise(experiment, records)
    level = headline.level_with_best(experiment, records, summary)
    (workload,) = experiment.workloads
    best = summary.best[workload.name]["time"]
    (other,) = level[workload.name]["time"]
    assert {best, other} == {"a", "b"}
    assert f"{other} not told apart from it" in summary.headline
    said = advice.sentence(experiment, summary, 60.0, level)
    assert said.startswith(f"Run it under {best} (time ")
    assert f", or {other} (time " in said
    assert "peak memory 2.991× glibc" in said
    assert "peak memory 0.502× glibc" in said
    assert said.endswith(f", not told apart from it in time: freestone run -a {best} -- true")
