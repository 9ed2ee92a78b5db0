"""Cures on the page: each with what came of it, its numbers those of the summary, none under another's name."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from invented_summaries import any_summary

from freestone.analysis.pareto import Goal
from freestone.doctor import judgement, symptoms
from freestone.doctor.chart import Chart
from freestone.doctor.diagnosis import Diagnosis, judge, ungiven, without
from freestone.doctor.observations import Observations, Platform
from freestone.doctor.page import cures, diagnosis_part, short
from freestone.doctor.remedies import Remedy, folios
from freestone.records.schema import (
    Allocator,
    Cell,
    Configuration,
    Experiment,
    Machine,
    Ratio,
    Summary,
    Workload,
)
from freestone.reports import html, quantities
from freestone.reports.source import Source

GOALS: tuple[Goal, ...] = ("time", "memory", "balanced")
LONG = "glibc:MALLOC_MMAP_THRESHOLD_=33554432"
LONGER = "glibc:MALLOC_MMAP_THRESHOLD_=65536:MALLOC_TRIM_THRESHOLD_=65536"


def experiment(names: list[str], baseline: str, workload: str = "w") -> Experiment:
    return Experiment(
        id="e",
        created_at="2026-11-26T00:00:00+00:00",
        freestone_version="0",
        command_line=["freestone", "doctor", "--", "x"],
        machine=Machine(id="m", facts={}),
        workloads=[Workload(name=workload, command=["x"])],
        configurations=[
            Configuration(name=name, allocator=Allocator(name=name.partition(":")[0] or "a", title=name))
            for name in names
        ],
        baseline=baseline,
        rounds=5,
        seed=0,
    )


def diagnosis(summary: Summary, goal: Goal, given_folios: dict[str, int] | None = None) -> Diagnosis:
    """Of a summary of one workload, every configuration but the baseline a remedy."""
    names = [cell.configuration for cell in summary.cells]
    head = experiment(names, summary.baseline, summary.cells[0].workload)
    remedies = {name: Remedy("glibc", (), f"why {name}") for name in names if name != summary.baseline}
    if given_folios is not None:
        remedies = dict.fromkeys(remedies, folios("glibc", 64))
    chart = Chart(experiment=head, goal=goal, remedies=remedies, given=given_folios or {})
    seen = Observations(command=["x"], platform=Platform())
    found = symptoms.name(seen)
    shown = without(summary, ungiven(remedies, chart.given))
    return Diagnosis("n", chart, seen, found, goal, Source(head, shown, []), judge(shown, chart, found, goal))


@st.composite
def summaries_of_one(draw: st.DrawFn) -> Summary:
    summary = draw(any_summary())
    workload = summary.cells[0].workload
    cells = [cell for cell in summary.cells if cell.workload == workload]
    noise = {workload: summary.noise[workload]} if workload in summary.noise else {}
    return summary.model_copy(update={"cells": cells, "noise": noise})


@settings(max_examples=40, deadline=None)
@given(summaries_of_one(), st.sampled_from(GOALS))
def test_any_summary_has_a_page_whose_numbers_are_its_own(summary: Summary, goal: Goal) -> None:
    told = diagnosis(summary, goal)
    part = diagnosis_part(told)
    assert part.tried is not None
    assert told.verdict is not None
    called = short.names(experiment([cell.configuration for cell in summary.cells], summary.baseline))
    by_name = {called[cell.configuration]: cell for cell in summary.cells}
    assert {each.name for each in part.tried.cures} == set(by_name) - {called[summary.baseline]}
    for cure in part.tried.cures:
        cell = by_name[cure.name]
        assert (cure.outcome == "discarded") == (cell.status != "ok")
        assert bool(cure.values) == (cell.status == "ok")
        keys = [quantities.time_of(by_name.values()), told.verdict.memory, "minor_faults"]
        for value, key in zip(cure.values, keys, strict=False):
            if key in cell.ratio:
                assert value.figure == f"×{quantities.ratio_number(cell.ratio[key])}"
                assert value.interval == quantities.interval(cell.ratio[key])
            else:
                assert value.figure == "–"
    outcomes = [each.outcome for each in part.tried.cures]
    assert outcomes.count("best") == (told.verdict.best is not None)
    assert (part.tried.before_after is None) == (told.verdict.best is None)
    assert html.render([part]).rstrip().endswith("</html>")


@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=12, unique=True), st.data())
def test_short_names_are_short_and_none_is_given_twice(names: list[str], data: st.DataObject) -> None:
    baseline = data.draw(st.sampled_from(names))
    found = short.names(experiment(names, baseline))
    assert set(found) == set(names)
    assert len(set(found.values())) == len(names)
    assert found[baseline] == baseline
    assert all(found[name] == name for name in names if len(name) <= short.LONGEST)


def test_settings_are_numbered_within_their_allocator() -> None:
    found = short.names(experiment(["glibc", LONG, "freestone", LONGER], "glibc"))
    assert found == {"glibc": "glibc", "freestone": "freestone", LONG: "glibc 1", LONGER: "glibc 2"}


def ratio(value: float, *, different: bool = True) -> Ratio:
    return Ratio(
        value=value,
        low=value * 0.98 if different else 0.9,
        high=value * 1.02 if different else 1.1,
        pairs=8,
        different=different,
    )


def cell(name: str, time: Ratio | None, memory: Ratio | None, **more: object) -> Cell:
    ratios = {key: each for key, each in (("wall_s", time), ("peak_rss_kib", memory)) if each is not None}
    whole = {"workload": "w", "status": "ok", "trials_ok": 8, "trials_total": 8, "ratio": ratios, **more}
    return Cell.model_validate({"configuration": name, **whole})


def summary_of(*cells: Cell) -> Summary:
    plain = {"wall_s": 2.0, "peak_rss_kib": 4096.0, "sys_s": 0.5, "major_faults": 0.0}
    base = cell("glibc", None, None, mean=plain)
    return Summary(experiment="e", baseline="glibc", rounds_complete=8, cells=[base, *cells], headline="h")


def test_each_cure_is_told_by_what_came_of_it() -> None:
    same = ratio(1.0, different=False)
    summary = summary_of(
        cell("quick", ratio(0.5), same),
        cell("lean", ratio(1.3), ratio(0.4)),
        cell("slower", ratio(0.7), same),
        cell("nothing", same, same),
        cell("worse", ratio(1.2), same),
        cell("broken", None, None, status="failed", reason="exit status 5"),
    )
    tried = cures.tried(diagnosis(summary, "time"))
    assert tried is not None
    assert [(each.name, each.outcome) for each in tried.cures] == [
        ("quick", "best"),
        ("lean", "kept"),
        ("slower", "beaten"),
        ("nothing", "no gain"),
        ("worse", "no gain"),
        ("broken", "discarded"),
    ]
    reasons = {each.name: each.reason for each in tried.cures}
    assert reasons["broken"] == "exit status 5"
    assert reasons["worse"] == "really worse in time, and better in nothing"
    assert "for time it is no cure" in reasons["lean"]
    assert reasons["slower"] == "really better, but quick is as good in both time and memory, and better in one"


def test_before_and_after_are_the_means_and_the_price_is_what_rose() -> None:
    after = {"wall_s": 0.0125, "peak_rss_kib": 8192.0, "sys_s": 0.25, "major_faults": 0.0}
    summary = summary_of(cell("quick", ratio(0.00625), ratio(2.0), mean=after))
    table = cures.before_after(summary, "w", "quick")
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["Wall time"][:3] == ["2.00 s", "12.5 ms", "×0.006"]
    assert rows["Peak RSS"][:2] == ["4.00 MiB", "8.00 MiB"]
    assert rows["System time"] == ["500 ms", "250 ms", "–", "–", "–"]
    assert "Major faults" not in rows, "0 before and 0 after is no row"
    assert judgement.price(summary.cells[1]).startswith("Its price: peak RSS ×2.000 [1.960, 2.040]")
    assert judgement.price(summary.cells[0]) == "Its price: none was seen, in time or in memory."


def test_a_median_among_means_is_marked() -> None:
    median = {"sys_s": 0.004}
    summary = summary_of(cell("quick", ratio(0.5), None, mean={"wall_s": 1.0}, median=median))
    rows = {row[0]: row[1:] for row in cures.before_after(summary, "w", "quick").rows}
    assert rows["System time"][:2] == ["500 ms", "4.00 ms*"]


def test_a_switch_that_the_kernel_did_not_act_upon_has_no_figures_anywhere() -> None:
    told = diagnosis(summary_of(cell("folios", ratio(0.5), None)), "time", {"hugepages-64kB": 0})
    part = diagnosis_part(told)
    assert part.tried is not None
    (cure,) = part.tried.cures
    assert (cure.outcome, cure.values) == ("discarded", [])
    assert "the kernel gave no folio of that size" in cure.reason
    assert part.rounds is not None
    assert [row.status for row in part.rounds.workloads[0].rows if row.name.text == "folios"] == ["INVALID"]


effects = st.tuples(st.floats(0.2, 3.0), st.booleans(), st.floats(0.2, 3.0), st.booleans())


@given(st.lists(effects, min_size=1, max_size=6), st.sampled_from(GOALS))
def test_what_is_prescribed_stands_first_and_the_front_before_what_it_beats(
    effects: list[tuple[float, bool, float, bool]], goal: Goal
) -> None:
    cells = [
        cell(f"c{number}", ratio(time, different=is_time), ratio(memory, different=is_memory))
        for number, (time, is_time, memory, is_memory) in enumerate(effects)
    ]
    verdict = diagnosis(summary_of(*cells), goal).verdict
    assert verdict is not None
    ranked = cures.ranked(verdict)
    called = {each.configuration: each.configuration for each in cells}
    outcomes = [cures.outcome(each, verdict, called)[0] for each in ranked]
    assert sorted(each.configuration for each in ranked) == [each.configuration for each in cells]
    assert outcomes == sorted(outcomes, key=("best", "kept", "beaten", "no gain").index)
    if verdict.best is not None:
        assert ranked[0] is verdict.best
