"""Records in, scoreboard out: who is held against whom, what is in the means, and who is left out."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.analysis import score, summarise
from freestone.analysis.field import standings
from freestone.records.schema import Aspect, Experiment, Score, TrialRecord, Workload

MakeExperiment = Callable[..., Experiment]
MakeRecord = Callable[..., TrialRecord]
Values = dict[str, dict[str, float]]
Measure = Callable[..., Score]


@pytest.fixture(scope="module")
def suite() -> Callable[..., Experiment]:
    """An experiment of named workloads; those that end in ``!`` are not counted, in ``#`` measure themselves."""

    def make(head: Experiment, workloads: list[str]) -> Experiment:
        made = [
            Workload(
                name=name.rstrip("!#"),
                command=["true"],
                reads="json" if "#" in name else "process",
                counted="!" not in name,
            )
            for name in workloads
        ]
        return head.model_copy(update={"workloads": made})

    return make


@pytest.fixture
def measure(make_experiment: MakeExperiment, make_record: MakeRecord, suite: Callable[..., Experiment]) -> Measure:
    """``measure({workload: {configuration: wall_s}}, memory={...})``: five rounds, each slower by a tenth."""

    def run(times: Values, *, memory: Values | None = None, faults: Values | None = None, rounds: int = 5) -> Score:
        names = dict.fromkeys(name for each in times.values() for name in each)
        experiment = suite(make_experiment(tuple(names), rounds=rounds), list(times))
        records = [
            make_record(
                name,
                number,
                repeat=repeat,
                workload=workload.rstrip("!#"),
                wall_s=seconds * 1.1**number,
                peak_rss_kib=int((memory or {}).get(workload, {}).get(name, 1000)),
                minor_faults=int((faults or {}).get(workload, {}).get(name, 100)),
            )
            for workload, each in times.items()
            for name, seconds in each.items()
            for number in range(rounds)
            for repeat in range(2 if name == experiment.baseline else 1)
        ]
        return score(experiment, records, "freestone")

    return run


def aspect(board: Score, name: str) -> Aspect:
    (found,) = (each for each in board.aspects if each.name == name)
    return found


def test_the_subject_is_held_against_the_best_of_the_others(measure: Measure) -> None:
    board = measure(
        {
            "a": {"glibc": 4.0, "freestone": 1.0, "jemalloc": 2.0},
            "b": {"glibc": 1.0, "freestone": 1.2, "jemalloc": 3.0},
        }
    )
    time = aspect(board, "time")
    assert [(row.workload, row.best_peer) for row in time.rows] == [("a", "jemalloc"), ("b", "glibc")]
    assert [row.ratio.value for row in time.rows] == pytest.approx([0.5, 1.2])
    assert time.mean.value == pytest.approx(math.sqrt(0.5 * 1.2))
    assert time.mean.pairs == 5
    assert time.mean.low == pytest.approx(time.mean.value), "the drift of the machine is in no interval"
    assert (time.worst.workload, time.worst.best_peer) == ("b", "glibc")
    assert [row.held_out.value for row in time.rows] == pytest.approx([0.5, 1.2]), (
        "who leads in every round leads in the others"
    )
    assert time.held_out.value == pytest.approx(time.mean.value)
    assert time.held_out.pairs == 5


def test_who_leads_by_one_lucky_round_is_not_the_best_of_the_others(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    wall = {"glibc": [2.0] * 5, "freestone": [2.0] * 5, "jemalloc": [0.01, 2.1, 2.1, 2.1, 2.1]}
    records = [
        make_record(name, number, repeat=repeat, workload="w", wall_s=seconds)
        for name, each in wall.items()
        for number, seconds in enumerate(each)
        for repeat in range(2 if name == "glibc" else 1)
    ]
    experiment = make_experiment(tuple(wall), rounds=5).model_copy(
        update={"workloads": [Workload(name="w", command=["true"])]}
    )
    time = aspect(score(experiment, records, "freestone"), "time")
    assert time.rows[0].best_peer == "jemalloc"
    assert time.mean.value > 2
    assert time.held_out.value == pytest.approx((2 / 2.1) ** (2 / 5)), (
        "glibc in the half with the round of luck, jemalloc in the other"
    )


def test_a_single_round_foresees_nothing(measure: Measure) -> None:
    time = aspect(measure({"a": {"glibc": 1.0, "freestone": 2.0}}, rounds=1), "time")
    assert (time.mean.value, time.held_out, time.rows[0].held_out) == (pytest.approx(2.0), None, None)


def test_the_field_is_held_against_the_best_of_all(measure: Measure) -> None:
    board = measure(
        {
            "a": {"glibc": 4.0, "freestone": 1.0, "jemalloc": 2.0},
            "b": {"glibc": 1.0, "freestone": 1.2, "jemalloc": 3.0},
        }
    )
    field = {each.configuration: each for each in aspect(board, "time").field}
    assert list(field) == ["freestone", "glibc", "jemalloc"], "the best mean first"
    assert field["glibc"].mean == pytest.approx(2.0)
    assert field["jemalloc"].mean == pytest.approx(math.sqrt(6))
    assert (field["jemalloc"].worst, field["jemalloc"].worst_workload) == (pytest.approx(3.0), "b")


def test_a_workload_that_is_not_counted_is_shown_and_in_no_mean(measure: Measure) -> None:
    board = measure({"a": {"glibc": 2.0, "freestone": 1.0}, "b!": {"glibc": 1.0, "freestone": 9.0}})
    time = aspect(board, "time")
    assert [row.counted for row in time.rows] == [True, False]
    assert time.mean.value == pytest.approx(0.5)
    assert time.worst.workload == "a"
    assert {each.workloads for each in time.field} == {1}


def test_calm_that_is_bought_with_memory_is_left_out_of_lean_faults(measure: Measure) -> None:
    times = {name: {"glibc": 1.0, "freestone": 1.0, "jemalloc": 1.0} for name in ("a", "b")}
    board = measure(
        times,
        # On a the calmest peer, jemalloc, has 11 % more than the leanest peer; on b a tenth.
        memory={"a": {"glibc": 1000, "jemalloc": 1110}, "b": {"glibc": 1000, "jemalloc": 1100}},
        faults={"a": {"jemalloc": 50, "freestone": 80}, "b": {"jemalloc": 50, "freestone": 60}},
    )
    assert [row.workload for row in aspect(board, "minor faults").rows] == ["a", "b"]
    lean = aspect(board, "minor faults, lean")
    assert [row.workload for row in lean.rows] == ["b"]
    assert lean.mean.value == pytest.approx(1.2)


def test_the_subjects_own_memory_does_not_decide_what_is_lean(measure: Measure) -> None:
    board = measure(
        {"a": {"glibc": 1.0, "freestone": 1.0}},
        memory={"a": {"glibc": 5000, "freestone": 1000}},
    )
    assert [row.workload for row in aspect(board, "minor faults, lean").rows] == ["a"]


def test_who_failed_is_left_out_and_named_and_never_fast(
    make_experiment: MakeExperiment, make_record: MakeRecord, suite: Callable[..., Experiment]
) -> None:
    experiment = suite(make_experiment(rounds=4), ["a", "b"])
    records = [
        make_record(
            name,
            number,
            repeat=repeat,
            workload=workload,
            wall_s=0.001 if name == "jemalloc" else 1.0,
            status="failed" if (name, workload) == ("jemalloc", "a") else "ok",
            reason="killed by SIGSEGV" if (name, workload) == ("jemalloc", "a") else None,
        )
        for number in range(4)
        for workload in ("a", "b")
        for name in ("glibc", "freestone", "jemalloc")
        for repeat in range(2 if name == "glibc" else 1)
    ]
    board = score(experiment, records, "freestone")
    assert [(each.workload, each.configuration, each.status, each.reason) for each in board.left_out] == [
        ("a", "jemalloc", "failed", "killed by SIGSEGV")
    ]
    time = aspect(board, "time")
    assert [row.best_peer for row in time.rows] == ["glibc", "jemalloc"]
    assert "jemalloc" not in time.rows[0].values
    assert time.field[-1].configuration == "jemalloc", "measured on fewer workloads, so it leads nobody"


def test_a_subject_that_failed_has_no_ratio_there(
    make_experiment: MakeExperiment, make_record: MakeRecord, suite: Callable[..., Experiment]
) -> None:
    experiment = suite(make_experiment(("glibc", "freestone"), rounds=4), ["a", "b"])
    records = [
        make_record(name, number, repeat=repeat, workload=workload, status=status)
        for number in range(4)
        for workload in ("a", "b")
        for name, repeat in (("glibc", 0), ("glibc", 1), ("freestone", 0))
        for status in ["timeout" if (name, workload) == ("freestone", "a") else "ok"]
    ]
    time = aspect(score(experiment, records, "freestone"), "time")
    assert [row.ratio is None for row in time.rows] == [True, False]
    assert time.mean.value == pytest.approx(1.0)


def test_without_peers_there_is_nothing_to_be_held_against(measure: Measure) -> None:
    time = aspect(measure({"a": {"freestone": 1.0}}), "time")
    assert (time.rows[0].best_peer, time.rows[0].ratio, time.mean, time.worst) == (None, None, None, None)
    assert time.field[0].mean == 1.0


def test_the_time_of_a_program_that_measures_itself_is_its_own(
    make_experiment: MakeExperiment, make_record: MakeRecord, suite: Callable[..., Experiment]
) -> None:
    experiment = suite(make_experiment(("glibc", "freestone"), rounds=4), ["a#"])
    records = [
        make_record(
            name,
            number,
            repeat=repeat,
            workload="a",
            wall_s=10.0,
            figures={"seconds": 1.0 if name == "glibc" else 0.5, "rss_kib_idle": 300.0, "operations": 7.0},
        )
        for number in range(4)
        for name, repeat in (("glibc", 0), ("glibc", 1), ("freestone", 0))
    ]
    board = score(experiment, records, "freestone")
    assert aspect(board, "time").mean.value == pytest.approx(0.5)
    assert aspect(board, "RSS after idle").rows[0].values == {
        "glibc": pytest.approx(300),
        "freestone": pytest.approx(300),
    }
    summary = summarise(experiment, records)
    medians = next(cell.median for cell in summary.cells if cell.configuration == "freestone")
    assert medians["figure:seconds"] == 0.5
    assert "figure:operations" not in medians, "a parameter is no measurement"
    assert summary.headline.startswith("Best in time: freestone 0.50× glibc")


def test_a_figure_of_zero_has_no_ratio(measure: Measure) -> None:
    board = measure({"a": {"glibc": 1.0, "freestone": 1.0}}, faults={"a": {"glibc": 0, "freestone": 5}})
    assert aspect(board, "minor faults").rows[0].values == {"freestone": pytest.approx(5)}


def test_rounds_that_are_not_there_yet_are_no_reason_to_fail(measure: Measure) -> None:
    board = measure({"a": {"glibc": 1.0, "freestone": 1.0}}, rounds=1)
    time = aspect(board, "time")
    assert (time.mean.low, time.mean.high) == (0.0, math.inf)
    assert not time.mean.different


def test_an_experiment_without_records_has_an_empty_board(make_experiment: MakeExperiment) -> None:
    board = score(make_experiment(), [], "freestone")
    assert (board.aspects, board.rounds_complete) == ([], 0)
    assert len(board.left_out) == 3


def test_many_workloads_have_one_headline(
    make_experiment: MakeExperiment, make_record: MakeRecord, suite: Callable[..., Experiment]
) -> None:
    experiment = suite(make_experiment(("glibc", "freestone"), rounds=4), ["a", "b", "c", "d"])
    records = [
        make_record(name, number, repeat=repeat, workload=workload, wall_s=2.0 if name == "glibc" else 1.0)
        for number in range(4)
        for workload in "abcd"
        for name, repeat in (("glibc", 0), ("glibc", 1), ("freestone", 0))
    ]
    said = summarise(experiment, records).headline
    assert said.startswith("4 workloads, ")
    assert "least in time freestone 1.00×" in said


figures = st.floats(0.01, 1000)


@given(st.dictionaries(st.text(min_size=1), st.dictionaries(st.sampled_from("abcd"), figures, min_size=1), min_size=1))
def test_nobody_in_the_field_is_better_than_the_best(values: Values) -> None:
    found = standings(values)
    assert {each.configuration for each in found} == {name for each in values.values() for name in each}
    for each in found:
        assert 1 - 1e-9 <= each.mean <= each.worst * (1 + 1e-9)
        assert each.worst_workload in values
    if len(values) == 1:
        assert found[0].mean == pytest.approx(1)


@given(st.dictionaries(st.text(min_size=1), st.dictionaries(st.sampled_from("abcd"), figures, min_size=1), min_size=1))
def test_the_unit_of_a_workload_does_not_matter(values: Values) -> None:
    scaled = {workload: {name: 1024 * value for name, value in each.items()} for workload, each in values.items()}
    before = {each.configuration: (each.mean, each.worst) for each in standings(values)}
    after = {each.configuration: (each.mean, each.worst) for each in standings(scaled)}
    assert all(after[name] == pytest.approx(before[name]) for name in before)
