"""Records in, summary out: what counts, what is paired with what, and what the first line claims."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freestone.analysis import summarise
from freestone.records.schema import Cell, Experiment, Metrics, Stages, Summary, TrialRecord, Workload

MakeExperiment = Callable[..., Experiment]
MakeRecord = Callable[..., TrialRecord]


def _cell(summary: Summary, configuration: str, workload: str = "work") -> Cell:
    (cell,) = (c for c in summary.cells if (c.workload, c.configuration) == (workload, configuration))
    return cell


@pytest.fixture
def measured(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> Callable[..., tuple[Experiment, list[TrialRecord]]]:
    """An experiment whose configurations differ by known factors; the machine gets slower round by round."""

    def make(factors: dict[str, float], rounds: int = 8, noise: float = 0.005) -> tuple[Experiment, list[TrialRecord]]:
        experiment = make_experiment(tuple(factors), rounds=rounds)
        draw = random.Random(5)
        records = []
        for number in range(rounds):
            for name, factor in factors.items():
                for repeat in range(2 if name == experiment.baseline else 1):
                    wall = (1 + 0.2 * number) * factor * draw.lognormvariate(0, noise)
                    records.append(
                        make_record(name, number, repeat=repeat, wall_s=wall, peak_rss_kib=int(1000 / factor))
                    )
        return experiment, records

    return make


def test_ratios_are_paired_within_rounds(measured: Callable[..., tuple[Experiment, list[TrialRecord]]]) -> None:
    summary = summarise(*measured({"glibc": 1.0, "freestone": 0.8, "jemalloc": 1.25}))
    fast = _cell(summary, "freestone").ratio["wall_s"]
    assert fast.value == pytest.approx(0.8, rel=0.02)
    assert fast.low < 0.8 < fast.high
    assert fast.high - fast.low < 0.05, "the drift of the machine is not in the interval"
    assert fast.different
    assert _cell(summary, "freestone").ratio["peak_rss_kib"].value == pytest.approx(1.25)
    assert summary.rounds_complete == 8
    assert summary.noise["work"]["wall_s"].value == pytest.approx(1, rel=0.02)
    assert not summary.noise["work"]["wall_s"].different


def test_the_baseline_has_no_ratio_to_itself(measured: Callable[..., tuple[Experiment, list[TrialRecord]]]) -> None:
    assert _cell(summarise(*measured({"glibc": 1.0, "freestone": 0.8})), "glibc").ratio == {}


def test_the_median_is_over_all_good_trials(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    walls = [3.0, 1.0, 2.0, 50.0]
    records = [make_record("a", number, wall_s=wall) for number, wall in enumerate(walls)]
    assert _cell(summarise(make_experiment(("a",)), records), "a").median["wall_s"] == 2.5


@pytest.mark.parametrize("status", ["failed", "timeout", "invalid"])
def test_a_cell_that_is_not_good_has_no_number(
    make_experiment: MakeExperiment, make_record: MakeRecord, status: str
) -> None:
    records = [make_record(name, number) for name in ("a", "b") for number in range(5)]
    records += [make_record("a", number, repeat=1) for number in range(5)]
    records += [make_record("c", number, status=status, reason="why", wall_s=0.001) for number in range(2)]
    cell = _cell(summarise(make_experiment(("a", "b", "c")), records), "c")
    assert (cell.status, cell.reason) == (status, "why")
    assert cell.median == {}
    assert cell.ratio == {}
    assert (cell.trials_ok, cell.trials_total) == (0, 2)


def test_a_cell_whose_turn_never_came_has_not_failed(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    summary = summarise(make_experiment(("a", "b")), [make_record("a", 0, status="invalid", reason="static binary")])
    assert (_cell(summary, "b").status, _cell(summary, "b").trials_total) == ("unmeasured", 0)
    assert summary.headline == "Nothing could be measured: static binary."


def test_a_configuration_with_one_bad_trial_has_no_figure_and_says_how_many(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    records = [make_record("a", number, wall_s=2.0) for number in range(4)]
    records.append(make_record("a", 4, wall_s=0.001, status="failed", reason="exit status 1"))
    cell = _cell(summarise(make_experiment(("a",)), records), "a")
    assert (cell.status, cell.reason) == ("failed", "1 of 5 failed: exit status 1")
    assert (cell.trials_ok, cell.trials_total) == (4, 5)
    assert cell.median == {}


@pytest.mark.parametrize(
    ("status", "word"), [("failed", "failed"), ("timeout", "timed out"), ("invalid", "not proved")]
)
def test_whoever_has_one_bad_trial_is_never_the_best(
    make_experiment: MakeExperiment, make_record: MakeRecord, status: str, word: str
) -> None:
    """The fastest by far, but for one run of eight."""
    records = [make_record("glibc", n, repeat=r, wall_s=2 + n / 100) for n in range(8) for r in (0, 1)]
    records += [make_record("freestone", n, wall_s=1.8 + n / 100) for n in range(8)]
    records += [make_record("jemalloc", n, wall_s=0.1, status="ok" if n != 3 else status) for n in range(8)]
    summary = summarise(make_experiment(rounds=8), records)
    assert "jemalloc" not in summary.headline
    assert summary.headline.startswith("Best in time: freestone")
    cell = _cell(summary, "jemalloc")
    assert (cell.median, cell.ratio) == ({}, {})
    assert cell.reason is not None
    assert cell.reason.startswith(f"1 of 8 {word}: ")


def test_failures_that_are_allowed_are_left_out_and_said(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    lenient = [Workload(name="work", command=["true"], allow_failures=1)]
    records = [make_record("a", number, wall_s=2.0) for number in range(4)]
    failing = [make_record("a", number, status="failed", reason="exit status 1") for number in (4, 5)]
    cell = _cell(summarise(make_experiment(("a",), workloads=lenient), [*records, failing[0]]), "a")
    assert (cell.status, cell.median["wall_s"]) == ("ok", 2.0)
    assert cell.note == "1 of 5 trials failed, as was allowed: exit status 1"
    two = _cell(summarise(make_experiment(("a",), workloads=lenient), [*records, *failing]), "a")
    assert (two.status, two.reason) == ("failed", "2 of 6 failed: exit status 1")


@pytest.mark.parametrize("status", ["timeout", "invalid"])
def test_neither_a_time_out_nor_a_missing_proof_can_be_allowed(
    make_experiment: MakeExperiment, make_record: MakeRecord, status: str
) -> None:
    """The runs that were ended are the slow ones: what is left would be quick."""
    lenient = [Workload(name="work", command=["true"], allow_failures=10)]
    records = [make_record("a", number, status="ok" if number % 2 else status) for number in range(10)]
    assert _cell(summarise(make_experiment(("a",), workloads=lenient), records), "a").status == status


def test_an_arm_all_of_whose_trials_failed_is_not_measured_however_many_may(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    lenient = [Workload(name="work", command=["true"], allow_failures=10)]
    records = [make_record("a", number, status="failed") for number in range(3)]
    assert _cell(summarise(make_experiment(("a",), workloads=lenient), records), "a").status == "failed"


def test_nothing_is_compared_with_a_baseline_that_failed(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    records = [make_record("a", number, repeat=repeat, status="failed") for number in range(5) for repeat in (0, 1)]
    records += [make_record("b", number) for number in range(5)]
    summary = summarise(make_experiment(("a", "b")), records)
    assert _cell(summary, "b").ratio == {}
    assert _cell(summary, "b").median["wall_s"] == 1.0
    assert summary.headline == "No comparison: the baseline a has no valid measurement."


def test_records_of_another_experiment_are_never_pooled(
    measured: Callable[..., tuple[Experiment, list[TrialRecord]]],
) -> None:
    experiment, records = measured({"glibc": 1.0, "freestone": 0.8})
    foreign = [record.model_copy(update={"experiment": "elsewhere", "round": record.round + 8}) for record in records]
    assert summarise(experiment, [*records, *foreign]) == summarise(experiment, records)


def test_a_record_that_is_there_twice_counts_once(
    measured: Callable[..., tuple[Experiment, list[TrialRecord]]],
) -> None:
    experiment, records = measured({"glibc": 1.0, "freestone": 0.8})
    assert summarise(experiment, records + records) == summarise(experiment, records)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(order=st.randoms())
def test_the_order_of_records_has_no_influence(
    measured: Callable[..., tuple[Experiment, list[TrialRecord]]], order: random.Random
) -> None:
    experiment, records = measured({"glibc": 1.0, "freestone": 0.8, "jemalloc": 1.25}, rounds=5)
    mixed = list(records)
    order.shuffle(mixed)
    assert summarise(experiment, mixed) == summarise(experiment, records)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(keep=st.sets(st.integers(0, 23)))
def test_any_part_of_an_experiment_can_be_summarised(
    measured: Callable[..., tuple[Experiment, list[TrialRecord]]], keep: set[int]
) -> None:
    experiment, records = measured({"glibc": 1.0, "freestone": 0.8, "jemalloc": 1.25}, rounds=6)
    summary = summarise(experiment, [record for index, record in enumerate(records) if index in keep])
    assert sum(cell.trials_total for cell in summary.cells) == len(keep)
    assert summary.headline.endswith(".")
    assert Summary.model_validate_json(summary.model_dump_json()) == summary


def test_other_output_than_the_baselines_is_shown_and_not_ranked(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    experiment = make_experiment(("a", "b"))
    baseline = [make_record("a", number, repeat=repeat) for number in range(5) for repeat in (0, 1)]
    other = [make_record("b", number, said="other" if number == 3 else "same") for number in range(5)]
    summary = summarise(experiment, [*baseline, *other])
    cell = _cell(summary, "b")
    assert (cell.status, cell.ratio) == ("different", {})
    assert cell.median["wall_s"] == 1.0
    assert cell.reason is not None
    assert cell.reason.startswith("1 of 5 differ: ")
    assert summary.headline == "No comparison: under b the output differs from that under a."
    restless = [
        record.model_copy(update={"output": make_record("a", 0, said=str(i)).output})
        for i, record in enumerate(baseline)
    ]
    assert _cell(summarise(experiment, [*restless, *other]), "b").status == "ok"


def test_a_trial_that_lost_its_output_is_a_failed_one(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    experiment = make_experiment(("a", "b", "c"))

    def writing(name: str, number: int, size: int, repeat: int = 0) -> TrialRecord:
        record = make_record(name, number, repeat=repeat)
        assert record.output is not None
        return record.model_copy(update={"output": record.output.model_copy(update={"stdout_bytes": size})})

    records = [writing("a", number, 27, repeat) for number in range(5) for repeat in (0, 1)]
    records += [writing("b", number, 0) for number in range(5)]
    records += [writing("c", number, 0 if number == 2 else 27) for number in range(5)]
    summary = summarise(experiment, records)
    lost = _cell(summary, "b")
    assert (lost.status, lost.reason) == ("failed", "lost output: it wrote nothing where a writes 27 bytes")
    assert lost.median == {}
    assert lost.ratio == {}
    assert _cell(summary, "c").trials_ok == 4
    silent = summarise(experiment, [make_record(name, n) for name in "abc" for n in range(5)])
    assert all(cell.status == "ok" for cell in silent.cells), "a program may have nothing to say"


def test_what_a_machine_does_not_measure_is_absent(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    bare = Metrics(wall_s=1.0, user_s=1.0, sys_s=0.0)
    records = [make_record(name, number, metrics=bare) for name in ("a", "b") for number in range(5)]
    cell = _cell(summarise(make_experiment(("a", "b")), records), "b")
    assert set(cell.median) == {"wall_s", "user_s", "sys_s"}
    assert set(cell.ratio) == {"wall_s", "user_s"}, "zero seconds have no ratio"


def test_hardware_counters_are_summarised_under_their_names(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    counted = Metrics(wall_s=1.0, user_s=1.0, sys_s=1.0, counters={"instructions": 50})
    records = [make_record(name, number, metrics=counted) for name in ("a", "b") for number in range(5)]
    cell = _cell(summarise(make_experiment(("a", "b")), records), "b")
    assert cell.median["instructions"] == 50
    assert cell.ratio["instructions"].value == 1


def test_the_buckets_of_a_histogram_are_no_metrics(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    records = [
        make_record(
            name, number, figures={"seconds": 1.0, "free_ns/longest": 9.0 + number, "free_calls/64": 5.0 + number}
        )
        for name in ("a", "b")
        for number in range(5)
    ]
    cell = _cell(summarise(make_experiment(("a", "b")), records), "b")
    assert cell.median["figure:free_ns/longest"] == 11
    assert not [name for name in cell.median if "free_calls" in name]


def _headline(experiment: Experiment, records: list[TrialRecord]) -> str:
    return summarise(experiment, records).headline


def test_the_headline_names_the_best_with_its_ratio(
    measured: Callable[..., tuple[Experiment, list[TrialRecord]]],
) -> None:
    headline = _headline(*measured({"glibc": 1.0, "freestone": 0.8, "jemalloc": 1.25}))
    assert headline.startswith("Best in time: freestone 0.80× glibc [0.")
    assert "] (real), at 1.25× the peak memory;" in headline
    assert "best in peak memory: jemalloc 0.80× glibc [0.80, 0.80] (real), at 1.25× the time" in headline
    assert headline.endswith("page faults: no difference seen.")


def test_the_headline_names_who_is_level_with_the_best(
    measured: Callable[..., tuple[Experiment, list[TrialRecord]]],
) -> None:
    headline = _headline(*measured({"glibc": 1.0, "freestone": 0.8, "jemalloc": 0.801}, noise=0.01))
    assert "not told apart from it" in headline


def test_the_headline_says_when_the_baseline_is_best(
    measured: Callable[..., tuple[Experiment, list[TrialRecord]]],
) -> None:
    assert "Best in time: glibc (real)" in _headline(*measured({"glibc": 1.0, "freestone": 1.5}))


def test_the_headline_claims_nothing_where_nothing_differs(
    measured: Callable[..., tuple[Experiment, list[TrialRecord]]],
) -> None:
    headline = _headline(*measured({"glibc": 1.0, "freestone": 1.0}, noise=0.02))
    assert headline == "No difference seen between glibc and freestone in time, peak memory and page faults."


def test_the_headline_claims_nothing_from_three_rounds(
    measured: Callable[..., tuple[Experiment, list[TrialRecord]]],
) -> None:
    headline = _headline(*measured({"glibc": 1.0, "freestone": 0.1}, rounds=3))
    more = "ask for more by --rounds 10 (make compare ROUNDS=10)"
    assert headline == f"Too few rounds to tell any difference (3 rounds; 4 are the fewest): {more}."


def test_the_headline_says_why_nothing_could_be_measured(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    experiment = make_experiment(("a", "b"))
    assert _headline(experiment, []) == "Nothing was measured yet."
    records = [make_record(name, 0, status="invalid", reason="static binary") for name in ("a", "b")]
    assert _headline(experiment, records) == "Nothing could be measured: static binary."


def test_a_reason_that_ends_in_a_full_stop_gets_no_other(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    for reason, end in (("it left.", "it left."), ("it left...", "it left..."), ("it left", "it left.")):
        records = [make_record("glibc", number, status="failed", reason=reason) for number in range(2)]
        assert _headline(make_experiment(("glibc",)), records) == f"Nothing could be measured: {end}"


def test_other_reasons_are_spoken_of_once(make_experiment: Callable[..., Experiment], make_record: MakeRecord) -> None:
    reasons = {"glibc": ["a", "a", "b"], "freestone": ["c", "c", "c"]}
    records = [
        make_record(name, number, status="failed", reason=reason)
        for name, each in reasons.items()
        for number, reason in enumerate(each)
    ]
    assert _headline(make_experiment(("glibc", "freestone")), records) == (
        "Nothing could be measured: a (and other reasons)."
    )
    alone = [record for record in records if record.configuration == "glibc"]
    assert _headline(make_experiment(("glibc",)), alone) == "Nothing could be measured: a (and 1 other reason)."


def test_a_program_that_never_ends_may_be_a_server(
    make_experiment: Callable[..., Experiment], make_record: MakeRecord
) -> None:
    records = [make_record("glibc", 0, status="timeout", reason="still running after 5 s")]
    assert _headline(make_experiment(("glibc",)), records).startswith(
        "Nothing could be measured: still running after 5 s; a server? it needs --ready and --load"
    )


def test_where_there_is_a_setup_nothing_measured_speaks_of_it(make_experiment: Callable[..., Experiment]) -> None:
    workload = Workload(name="work", command=["true"], stages=Stages(setup="make"))
    experiment = make_experiment(("glibc",), workloads=[workload])
    assert _headline(experiment, []) == "Nothing was measured: setup failed, or it was stopped before the first run."


def test_the_headline_of_several_workloads_speaks_of_each(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    workloads = [Workload(name=name, command=[name]) for name in ("one", "two")]
    experiment = make_experiment(("a",), workloads=workloads)
    headline = _headline(experiment, [make_record("a", 0, workload="one")])
    assert headline == "one: a was measured against nothing but itself. two: Nothing was measured yet."


def test_a_row_and_its_ratio_never_contradict_each_other(
    measured: Callable[..., tuple[Experiment, list[TrialRecord]]],
) -> None:
    """Also where rounds are missing that were slow for everybody."""
    experiment, records = measured({"glibc": 1.0, "freestone": 0.8, "jemalloc": 1.25}, noise=0.3)
    for left_out in (set[int](), {0}, {5, 6, 7}):
        kept = [each for each in records if each.configuration != "freestone" or each.round not in left_out]
        summary = summarise(experiment, kept)
        base = _cell(summary, "glibc").mean
        for name in ("freestone", "jemalloc"):
            cell = _cell(summary, name)
            for metric, ratio in cell.ratio.items():
                assert cell.mean[metric] / base[metric] == pytest.approx(ratio.value), (name, metric)


def test_a_round_of_no_system_time_that_others_lack_stops_nothing(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    """As where a record is damaged: the baseline's zero lies in a round in which the other has nothing."""
    records = [
        make_record(name, number, metrics=Metrics(wall_s=1.0, user_s=0.5, sys_s=0.0 if number == 0 else 0.5))
        for number in range(6)
        for name in ("glibc", "freestone")
        if (name, number) != ("freestone", 0)
    ]
    summary = summarise(make_experiment(("glibc", "freestone"), rounds=6), records)
    assert _cell(summary, "freestone").mean["sys_s"] == pytest.approx(0.5)


def test_the_fewest_faults_are_no_crown_and_come_with_their_price(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    draw = random.Random(3)
    records = []
    for number in range(10):
        for name, repeat in (("glibc", 0), ("glibc", 1), ("hoarder", 0)):
            bare = make_record(name, number, repeat=repeat, wall_s=draw.lognormvariate(0, 0.01))
            assert bare.metrics is not None
            few = {"minor_faults": 100, "peak_rss_kib": 3000} if name == "hoarder" else {"minor_faults": 1000}
            metrics = bare.metrics.model_copy(update={"peak_rss_kib": 1000, **few})
            records.append(bare.model_copy(update={"metrics": metrics}))
    headline = _headline(make_experiment(("glibc", "hoarder"), rounds=10), records)
    assert headline.endswith(
        "fewest page faults: hoarder 0.10× glibc, at peak memory 3.00×, with no difference seen in time."
    )
    assert "best in page faults" not in headline


def test_the_noise_of_the_baseline_hides_no_difference(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    """Its second runs are half as slow again: the check says so, and the ratio of another stays what it is."""
    draw = random.Random(4)
    records = [
        make_record(name, number, repeat=repeat, wall_s=at * draw.lognormvariate(0, 0.005))
        for number in range(10)
        for name, repeat, at in (("glibc", 0, 1.0), ("glibc", 1, 1.5), ("freestone", 0, 1.0))
    ]
    summary = summarise(make_experiment(("glibc", "freestone"), rounds=10), records)
    assert summary.noise["work"]["wall_s"].different
    assert _cell(summary, "freestone").ratio["wall_s"].different
