"""The classic case: glibc's rule is the published one and the counted one, and what does not hold is said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classic_case import counted, page, picture
from classic_case.counted import CURED, OURS, SETTINGS, THEN, TODAY, Case, NotCounted
from classic_case.rule import BELOW, KIB, PerCall, Setting, per_call
from classic_case.said import Diagnosis, Story, text
from freestone.doctor.observations import Point
from freestone.records.schema import (
    Allocator,
    CallCount,
    CallCounts,
    Cell,
    Configuration,
    Experiment,
    Machine,
    Ratio,
    Summary,
    Workload,
)

CALLS = 1000
COUNTED = {
    (1, 124, THEN): (0.031, 1, 0), (1, 126, THEN): (0.031, 1, 0), (1, 127, THEN): (32, 2000, 0),
    (1, 128, THEN): (33, 0, 1000), (1, 132, THEN): (34, 0, 1000), (1, 127, TODAY): (0.032, 0, 0),
    (1, 130, TODAY): (0.032, 0, 0), (1, 131, TODAY): (0.065, 1, 1), (4, 124, TODAY): (92.032, 6000, 0),
    (4, 127, TODAY): (95.032, 6000, 0), (4, 128, TODAY): (96.035, 3996, 3), (4, 129, TODAY): (65.098, 1999, 3),
    (4, 131, TODAY): (99.065, 4995, 4), (4, 132, TODAY): (100.068, 5994, 4), (4, 126, THEN): (95.032, 5001, 0),
    (4, 127, THEN): (127, 7000, 0), (4, 128, THEN): (132, 0, 4000), (4, 127, CURED): (0.127, 2, 0),
    (4, 132, CURED): (0.131, 4, 0),
}  # fmt: skip
"""(matrices, KiB, setting) -> faults a call, brk and mmap in 1000 calls: seen by getrusage and strace, glibc 2.36."""


@pytest.mark.parametrize(("case", "seen"), COUNTED.items())
def test_the_rule_says_what_was_counted(case: tuple[int, int, str], seen: tuple[float, int, int]) -> None:
    matrices, kib, name = case
    found = per_call(kib * KIB, matrices, SETTINGS[name], calls=CALLS)
    assert (round(found.brk * CALLS), round(found.mmap * CALLS)) == seen[1:]
    assert found.faults == pytest.approx(seen[0], abs=0.005)


def edges(setting: Setting, below: int = BELOW) -> tuple[str, ...]:
    """What becomes of one matrix a call of 126, 127 and 128 KiB."""
    found = (per_call(kib * KIB, 1, setting, below=below) for kib in (126, 127, 128))
    return tuple("mmap" if each.mmap > 0.5 else "brk changes" if each.brk > 0.5 else "brk stays" for each in found)


@given(below=st.integers(1, 255).map(lambda n: 16 * n))
def test_the_edge_at_127_kib_is_there_while_977_to_2000_bytes_live_on(below: int) -> None:
    published = edges(SETTINGS[THEN], below) == ("brk stays", "brk changes", "mmap")
    assert published == (977 <= below <= 2000)


def test_the_edges_are_the_published_ones() -> None:
    rows = [page.PUBLISHED[f"{kib} KiB"] for kib in (126, 127, 128)]
    said = tuple(
        "mmap" if row["method"] == "mmap" else f"brk {'changes' if row['footprint_changes'] == 'yes' else 'stays'}"
        for row in rows
    )
    assert edges(SETTINGS[THEN]) == said


@given(kib=st.integers(65, 4096), matrices=st.integers(1, 64))
def test_the_cure_takes_each_page_once(kib: int, matrices: int) -> None:
    found = per_call(kib * KIB, matrices, SETTINGS[CURED], calls=10)
    assert found.mmap == 0
    assert round(found.faults * 10) <= matrices * (kib // 4 + 2)
    assert found.brk * 10 <= matrices


LARGEST_THAT_MOVES = 32763
"""KiB: seen under glibc 2.36, where matrices of 32764 were mapped in each call."""


@given(kib=st.integers(LARGEST_THAT_MOVES + 1, 256 * 1024))
def test_one_matrix_of_32_mib_with_its_header_is_mapped_in_each_call_today(kib: int) -> None:
    assert per_call(kib * KIB, 1, SETTINGS[TODAY]).mmap == 1


@given(kib=st.integers(65, LARGEST_THAT_MOVES))
def test_one_smaller_matrix_never_churns_today(kib: int) -> None:
    first, more = (per_call(kib * KIB, 1, SETTINGS[TODAY], calls=calls) for calls in (4, 40))
    assert round(first.faults * 4) == round(more.faults * 40)


@given(kib=st.integers(65, 8 * 1024), matrices=st.integers(1, 16), name=st.sampled_from([*SETTINGS]))
def test_no_call_costs_less_than_nothing_or_more_than_all_its_pages(kib: int, matrices: int, name: str) -> None:
    found = per_call(kib * KIB, matrices, SETTINGS[name], calls=5)
    assert 0 <= found.brk <= 2 * matrices
    assert 0 <= found.mmap <= matrices
    assert 0 < found.faults <= matrices * (kib // 4 + 2)


def experiment() -> tuple[Experiment, Summary, CallCounts]:
    workloads = {"full": ["build/matrices", "127", "1", "10"], "start": ["build/matrices", "127", "1", "0"]}
    return (
        Experiment(
            id="x", created_at="2026-11-20T13:00:00Z", freestone_version="1", command_line=[],
            machine=Machine(id="here", facts={}), baseline=THEN, rounds=1, seed=1,
            workloads=[Workload(name=name, command=command) for name, command in workloads.items()],
            configurations=[Configuration(name=THEN, allocator=Allocator(name="glibc", title="glibc"))],
        ),
        Summary(
            experiment="x", baseline=THEN, rounds_complete=1, headline="",
            cells=[cell(THEN, "full", 400.0), cell(THEN, "start", 80.0)],
        ),
        CallCounts(
            experiment="x",
            counts=[
                CallCount(workload="full", configuration=THEN, status="ok", calls={"brk": 24, "mmap": 12}),
                CallCount(workload="start", configuration=THEN, status="ok", calls={"brk": 4, "mmap": 12}),
            ],
        ),
    )  # fmt: skip


def cell(name: str, workload: str = "w", faults: float = 1.0, wall_s: float = 1.0, rss: float = 2000) -> Cell:
    metrics = {"minor_faults": faults, "wall_s": wall_s, "user_s": 0.5, "sys_s": 0.5, "peak_rss_kib": rss}
    ratio = Ratio(value=wall_s / 2, low=wall_s / 2.2, high=wall_s / 1.8, pairs=6, different=wall_s < 1.8)
    return Cell(
        workload=workload, configuration=name, status="ok", trials_ok=1, trials_total=1, median=metrics,
        ratio={} if name == TODAY else {"wall_s": ratio},
    )  # fmt: skip


def test_the_start_is_taken_off_and_the_rest_is_by_call() -> None:
    found = counted.counted(*experiment())
    assert found == {Case(127, 1, THEN): PerCall(brk=2, mmap=0, faults=32)}
    assert counted.against_the_rule(found, 10) == []


@pytest.mark.parametrize(
    "other", [PerCall(brk=1.9, mmap=0, faults=32), PerCall(2, 0.1, 32), PerCall(brk=2, mmap=0, faults=31.8)]
)
def test_one_system_call_or_a_fault_in_five_calls_is_not_what_the_rule_says(other: PerCall) -> None:
    lines = counted.against_the_rule({Case(127, 1, THEN): other}, 10)
    assert len(lines) == 1
    assert "1 x 127 KiB" in lines[0]


def test_what_was_not_counted_is_no_number() -> None:
    head, summary, calls = experiment()
    with pytest.raises(NotCounted, match=r"start.*not counted"):
        counted.counted(head, summary, calls.model_copy(update={"counts": calls.counts[:1]}))
    failed = calls.counts[0].model_copy(update={"status": "failed", "reason": "no strace"})
    with pytest.raises(NotCounted, match="no strace"):
        counted.counted(head, summary, calls.model_copy(update={"counts": [failed, calls.counts[1]]}))
    with pytest.raises(NotCounted, match="start alone"):
        counted.counted(head.model_copy(update={"workloads": head.workloads[:1]}), summary, calls)


def story() -> Story:
    found = {
        Case(kib, matrices, name): PerCall(2.0, 0.0, 32.0)
        for kib in (126, 127, 128)
        for matrices in (1, 4)
        for name in (TODAY, THEN, CURED, OURS)
    }
    finding = {"symptom": "trim-churn", "evidence": ["the end came 3 times"], "time": 0.4}
    tried = {"configuration": CURED, "discarded": None, "time": {"value": 0.5, "low": 0.4, "high": 0.6}}
    return Story(
        day="2026-11-26", facts={"cpu": "A processor"}, rounds=6, program="build/matrices 127 4 4000", many="many",
        diagnosis=Diagnosis.of({"findings": [finding], "best": CURED, "tried": [tried]}),
        after=Diagnosis.of({"findings": [], "best": None, "tried": []}),
        cells={TODAY: cell(TODAY, wall_s=2.0, faults=4000.0), CURED: cell(CURED), OURS: cell(OURS)},
        promises=[page.Promise(127, 64, 0.001, 1.05)], found=found, calls=500, apart=[], picture="p.svg",
    )  # fmt: skip


def test_the_page_holds_published_figures_beside_ours() -> None:
    said = text(story())
    assert "2.00 times as fast here" in said
    assert "| minor faults | 23,099,385 | 16,820 | 0.073 % | 4,000 | 1 | 0.025 % | 1 | 0.025 % |" in said
    assert "| elapsed | 389.2 s | 221.7 s | 0.57 |" in said
    assert "| 127 | brk; footprint changes, many faults | 2 brk; 32.0 |" in said
    assert "| 4 | 508 KiB | 2 brk; 32.0 |" in said
    assert "with 40 % of the processor time" in said
    assert story().wrong == []


def test_too_few_rounds_for_an_interval_show_as_such() -> None:
    ratio = {"value": 0.5, "low": 0.0, "high": "Infinity"}  # as the doctor writes it
    tried = [{"configuration": "a", "discarded": None, "time": ratio}]
    said = Diagnosis.of({"findings": [], "best": None, "tried": tried})
    assert "| `a` | 0.50 [?] |" in text(replace(story(), diagnosis=said))


def test_what_does_not_hold_is_said() -> None:
    well = story()
    nothing = Diagnosis((), (), None, None, ())
    assert replace(well, diagnosis=nothing).wrong == ["the doctor names no churn: nothing", "the doctor keeps no cure"]
    assert "still names trim-churn" in replace(well, after=well.diagnosis).wrong[0]
    broken = replace(well, promises=[page.Promise(127, 4, 0.02, 1.0)])
    assert "does not keep 1 %" in broken.wrong[0]
    assert "**It does not hold everywhere**" in text(broken)
    assert "**Not as the rule says:**\n\n- a line" in text(replace(well, apart=["a line"]))


@pytest.mark.parametrize(("faults", "over", "kept"), [(0.0099, 1.1, True), (0.01, 1.0, False), (0.0, 1.11, False)])
def test_the_promise_has_both_edges(faults: float, over: float, kept: bool) -> None:
    assert page.Promise(127, 4, faults, over).kept is kept


def test_a_promise_leaves_out_the_start() -> None:
    cells = {TODAY: cell(TODAY, faults=4080.0), OURS: cell(OURS, faults=120.0, rss=2080 + 508)}
    start = {TODAY: cell(TODAY, faults=80.0), OURS: cell(OURS, faults=100.0, rss=2080)}
    found = page.promise((127, 4, 40), cells, start)
    assert (found.faults, found.over_live) == (pytest.approx(0.005), 1.0)


def test_both_courses_begin_at_no_fault_and_no_time() -> None:
    def look(at_s: float, faults: int) -> Point:
        return Point(at_s=at_s, virtual_kib=0, rss_kib=10, faults=faults)

    sizes, faults = picture.tracks({"a": [look(1.0, 100), look(1.5, 90), look(2.0, 400)]})
    assert list(faults["a"]) == [(0.0, 0.0), (0.5, 0.0), (1.0, 300.0)]
    assert list(sizes["a"]) == [(0.0, 10.0), (0.5, 10.0), (1.0, 10.0)]
