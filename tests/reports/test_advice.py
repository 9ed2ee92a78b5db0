"""One sentence for who is in a hurry: what to take, that there is nothing to take, or that it was too short."""

from __future__ import annotations

from collections.abc import Callable

from freestone.analysis import summarise
from freestone.records.schema import Experiment, TrialRecord
from freestone.reports import advice

MakeExperiment = Callable[..., Experiment]
MakeRecord = Callable[..., TrialRecord]


def advised(
    make_experiment: MakeExperiment, make_record: MakeRecord, rounds: int, wall_s: float, status: str = "ok"
) -> str:
    """The advice after so many rounds, in which the other allocator took so long and the baseline a second."""
    experiment = make_experiment(("glibc", "freestone"), rounds=50)
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
        assert said.startswith("Stay with glibc: in 10 rounds none of freestone was really better")


def test_too_few_rounds_say_how_long_would_do(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    assert advised(make_experiment, make_record, 2, 0.5) == (
        "There is no telling yet: 2 rounds of 2 allocators in 60 s are too few; "
        "try: freestone advise --time-budget 300 -- true"
    )


def test_without_another_there_is_no_advice(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    assert "Run it" not in advised(make_experiment, make_record, 10, 0.5, status="failed")
