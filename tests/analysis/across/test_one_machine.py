"""What one machine says, to stand beside others: its own summary, and all of its workloads as if they were one."""

from __future__ import annotations

import math

import pytest
from invented_records import MakeExperiment, MakeRecord

from freestone.analysis import family, statistics, summarise
from freestone.analysis.across import one_machine
from freestone.analysis.across.there import There
from freestone.records.schema import Experiment, TrialRecord, Workload

ROUNDS = 8
SUITE = [Workload(name=name, command=[name]) for name in ("short", "long")]


def _records(
    make_record: MakeRecord, factors: dict[tuple[str, str], float], failing: tuple[str, str] | None = None
) -> list[TrialRecord]:
    """(workload, configuration) -> what it takes beside the others there; the workloads differ a thousandfold."""
    return [
        make_record(
            configuration,
            number,
            workload=workload,
            repeat=repeat,
            wall_s=(0.001 if workload == "short" else 1.0) * factor * (1 + 0.01 * ((number * 7 + repeat) % 5)),
            status="failed" if (workload, configuration) == failing and number == 0 else "ok",
        )
        for (workload, configuration), factor in factors.items()
        for number in range(ROUNDS)
        for repeat in range(2 if configuration == "glibc" else 1)
    ]


def _measured(experiment: Experiment, records: list[TrialRecord]) -> dict[str, There]:
    found = one_machine.measured("here", experiment, records, summarise(experiment, records))
    return {each.workload: each for each in found}


def _ratio(there: There, name: str) -> float:
    """By the rounds that are kept of it."""
    found = there.rounds["time"].ratio(name, "glibc")
    assert found is not None
    return math.exp(found.middle)


FACTORS = {
    ("short", "glibc"): 1.0,
    ("long", "glibc"): 1.0,
    ("short", "freestone"): 0.5,
    ("long", "freestone"): 0.8,
    ("short", "jemalloc"): 0.4,
    ("long", "jemalloc"): 1.3,
}


def test_together_is_the_geometric_mean_of_the_workloads_ratios(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    found = _measured(make_experiment(workloads=SUITE, rounds=ROUNDS), _records(make_record, FACTORS))
    whole = found["all 2 workloads together"]
    assert whole.whole
    for name in ("freestone", "jemalloc"):
        ratios = [found[each].ratios["time"][name].value for each in ("short", "long")]
        assert whole.ratios["time"][name].value == pytest.approx(math.sqrt(ratios[0] * ratios[1]))
        assert _ratio(whole, name) == pytest.approx(whole.ratios["time"][name].value)
    assert {name: each.best.get("time") for name, each in found.items()} == {
        "short": "jemalloc",
        "long": "freestone",
        whole.workload: "freestone",
    }


def test_ratios_of_the_whole_are_as_sure_as_a_table_of_means_has_to_be(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    found = _measured(make_experiment(workloads=SUITE, rounds=ROUNDS), _records(make_record, FACTORS))
    whole = found["all 2 workloads together"]
    peers, aspects = 2, 2
    sure = 1 - 0.05 * family.MEANS / (peers * aspects)
    for name, ratio in whole.ratios["time"].items():
        rounds = whole.rounds["time"].ratio(name, "glibc")
        assert rounds is not None
        held = statistics.interval(rounds, sure)
        assert (ratio.low, ratio.high) == (pytest.approx(held.low), pytest.approx(held.high))


def test_what_became_of_everybody_is_told_of_each_workload_and_of_the_whole(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    records = _records(make_record, FACTORS, failing=("short", "freestone"))
    found = _measured(make_experiment(workloads=SUITE, rounds=ROUNDS), records)
    status = {name: each.outcomes["freestone"].status for name, each in found.items()}
    assert status == {"short": "failed", "long": "ok", "all 2 workloads together": "failed"}
    said = found["all 2 workloads together"].outcomes["freestone"].reason
    assert said == f"short: {found['short'].outcomes['freestone'].reason}"
    assert found["short"].unknown("time") is None, "jemalloc is known to be better"


def test_who_failed_on_one_workload_is_not_best_of_all(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    records = _records(make_record, FACTORS, failing=("short", "freestone"))
    whole = _measured(make_experiment(workloads=SUITE, rounds=ROUNDS), records)["all 2 workloads together"]
    assert "freestone" not in whole.ratios["time"]
    assert whole.best["time"] == "jemalloc"


def test_one_workload_and_what_is_not_counted_have_no_whole(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    records = _records(make_record, FACTORS)
    aside = [SUITE[0], SUITE[1].model_copy(update={"counted": False})]
    for workloads in (SUITE[:1], aside):
        found = _measured(make_experiment(workloads=workloads, rounds=ROUNDS), records)
        assert list(found) == [each.name for each in workloads]


def test_points_of_a_scan_have_no_whole(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    points = [each.model_copy(update={"series": "scan"}) for each in SUITE]
    found = _measured(make_experiment(workloads=points, rounds=ROUNDS), _records(make_record, FACTORS))
    assert list(found) == ["short", "long"]


def test_a_machine_says_what_its_summary_says(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    experiment, records = make_experiment(workloads=SUITE, rounds=ROUNDS), _records(make_record, FACTORS)
    summary = summarise(experiment, records)
    for each in one_machine.measured("here", experiment, records, summary)[:2]:
        assert each.best == summary.best[each.workload]
        for name, ratio in each.ratios["time"].items():
            assert _ratio(each, name) == pytest.approx(ratio.value)


def test_who_lacks_a_workload_says_so_in_the_name_of_the_whole(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    three = [*SUITE, Workload(name="lost", command=["lost"])]
    factors = {**FACTORS, ("lost", "glibc"): 1.0, ("lost", "freestone"): 0.1}
    found = _measured(
        make_experiment(workloads=three, rounds=ROUNDS), _records(make_record, factors, failing=("lost", "glibc"))
    )
    whole = found["2 of 3 workloads together"]
    assert (whole.command, whole.lacking) == (("long", "short"), ("lost",))
