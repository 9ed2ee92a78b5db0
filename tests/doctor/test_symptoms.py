"""Each patient's symptom is found in what was recorded of it, and none in those that are well."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.doctor import remedies, shares, symptoms, words
from freestone.doctor.observations import CallSite, Growth, HeapPoint, HeapUse, Observations, OwnHeap, Platform

RECORDED = {
    file.stem: Observations.model_validate_json(file.read_bytes())
    for file in sorted((Path(__file__).parent / "recorded").glob("*.json"))
}

EXPECTED = tomllib.loads(
    (Path(__file__).parents[2] / "workloads" / "patients" / "expected.toml").read_text(encoding="utf-8")
)
HAS = {name: set(row["has"]) for name, row in EXPECTED.items()}
WELL = {name for name, has in HAS.items() if has == {"healthy"}}

NEW_MEMORY = {"first-touch-faults", "huge-pages-missing"}


def named(seen: Observations) -> list[str]:
    return [each.symptom for each in symptoms.name(seen)]


def test_what_is_recorded_is_expected() -> None:
    assert RECORDED.keys() <= EXPECTED.keys()
    assert set().union(*HAS.values()) - {"healthy"} == {rule.__name__.replace("_", "-") for rule in symptoms.RULES}


@pytest.mark.parametrize("patient", sorted(RECORDED.keys() - WELL))
def test_each_patient_has_what_it_should_and_nothing_else(patient: str) -> None:
    found = named(RECORDED[patient])
    assert HAS[patient] <= set(found)
    assert set(found) <= HAS[patient] | set(EXPECTED[patient].get("beside", ())) | NEW_MEMORY
    if not patient.startswith("case-") and not HAS[patient] & NEW_MEMORY:
        assert found[0] in HAS[patient]


@pytest.mark.parametrize("patient", sorted(RECORDED.keys() & WELL))
def test_who_is_well_has_nothing(patient: str) -> None:
    assert named(RECORDED[patient]) == ["healthy"]


def test_one_call_that_slept_is_no_contention() -> None:
    """A neighbour on the machine had the processor: a patient with 13 threads was said to wait for 8 seconds."""
    seen = RECORDED["lock-contention"]
    assert seen.heap is not None
    once = seen.heap.model_copy(update={"waited": 1, "waited_s": 0.5})
    assert "lock-contention" not in named(seen.model_copy(update={"heap": once}))


def test_few_moves_of_little_are_no_habit() -> None:
    seen = RECORDED["case-ciphertexts"]
    assert seen.calls is not None
    kinds = [each.model_copy(update={"kib": each.kib // 10}) for each in seen.calls.by_kind]
    assert "trim-churn" not in named(
        seen.model_copy(update={"calls": seen.calls.model_copy(update={"by_kind": kinds})})
    )


def test_what_caches_of_threads_hold_is_not_said_to_lie_below_a_block() -> None:
    """By the end the threads had gone, and malloc_trim gave back what had lain in their caches."""
    seen = RECORDED["pinned-top-fragmentation"]
    assert seen.heap is not None
    cached = [each.model_copy(update={"free_kib": 0}) for each in seen.heap.points]
    heap = seen.heap.model_copy(update={"points": cached})
    assert "pinned-top-fragmentation" not in named(seen.model_copy(update={"heap": heap}))


def test_there_is_a_rule_and_a_cure_or_advice_for_each() -> None:
    for rule in symptoms.RULES:
        name = rule.__name__.replace("_", "-")
        assert name in remedies.CANDIDATES
        assert remedies.CANDIDATES[name] or remedies.ADVICE.get(name) or name == "own-allocator"


def test_no_knob_of_glibc_freezes_what_another_leaves_open() -> None:
    """One of the four alone stops both thresholds from following the program: both are set, or mapping is off."""
    for rows in remedies.CANDIDATES.values():
        for each in rows:
            knobs = {name for name, _ in each.settings if name.startswith("MALLOC_") and name.endswith("_")}
            if each.allocator == "glibc" and knobs:
                assert "MALLOC_TRIM_THRESHOLD_" in knobs
                assert knobs & {"MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_"}


parts = ["settings", "prices", "cost", "course", "calls", "heap", "kept_at_peak", "kept_at_end", "own_heaps"]


@given(st.sampled_from(sorted(RECORDED)), st.sets(st.sampled_from(parts)))
def test_whatever_was_not_seen_there_is_an_answer(patient: str, lacking: set[str]) -> None:
    blank = Observations(command=["x"], platform=Platform())
    seen = RECORDED[patient].model_copy(update={part: getattr(blank, part) for part in lacking})
    found = symptoms.name(seen)
    assert found or "calls" in lacking
    assert all(0 <= (each.time or 0) <= 1 and 0 <= (each.memory or 0) <= 1 for each in found)
    assert all(line and "\n" not in line for each in found for line in each.evidence)


def test_a_program_that_pays_for_faults_is_not_well_where_nobody_saw_why() -> None:
    seen = RECORDED["mapping-churn"].model_copy(update={"calls": None, "heap": None})
    assert symptoms.name(seen) == []
    assert (symptoms.unexplained(seen) or 0) > 0.3
    assert "mapping-churn" in symptoms.unjudged(seen)
    assert "Nothing can be named: page faults are " in words.findings([], seen, width=100)


def test_what_every_rule_needs_is_known() -> None:
    assert set(symptoms.NEEDS) == {rule.__name__.replace("_", "-") for rule in symptoms.RULES}
    assert symptoms.unjudged(RECORDED["healthy"]) == []


def test_a_process_that_ran_already_has_touched_its_pages_before() -> None:
    """Few faults on a large resident set are no first touches, where it was resident from the beginning."""
    seen = RECORDED["first-touch-faults"]
    assert seen.cost is not None
    assert "first-touch-faults" in named(seen)
    peak = seen.cost.peak_rss_kib or 0
    cost = seen.cost.model_copy(update={"resident_before_kib": peak})
    assert "first-touch-faults" not in named(seen.model_copy(update={"cost": cost}))


def test_the_sites_with_the_largest_share_are_told() -> None:
    seen = RECORDED["mapping-churn"]
    assert seen.calls is not None
    sites = [CallSite(frames=["solve (prog)", "main (prog)"], calls=90), CallSite(frames=["start (x)"], calls=1)]
    by_kind = [each.model_copy(update={"sites": sites, "with_stack": 200}) for each in seen.calls.by_kind]
    seen = seen.model_copy(update={"calls": seen.calls.model_copy(update={"by_kind": by_kind})})
    (found,) = [each for each in symptoms.name(seen) if each.symptom == "mapping-churn"]
    assert "munmap comes from: 45% solve (prog) < main (prog)" in found.evidence


def test_the_knob_that_freezes_the_thresholds_is_named() -> None:
    (found,) = [each for each in symptoms.name(RECORDED["mapping-churn"]) if each.symptom == "mapping-churn"]
    assert any("mallopt(M_TRIM_THRESHOLD)" in line for line in found.evidence)


def test_a_runtime_with_a_heap_of_its_own_is_named() -> None:
    heap = OwnHeap(what="python3: CPython", share=0.2, remedy="--env PYTHONMALLOC=malloc")
    seen = RECORDED["healthy"].model_copy(update={"own_heaps": [heap]})
    (found,) = symptoms.name(seen)
    assert found.symptom == "own-allocator"
    assert "20% of its resident memory comes from malloc" in found.evidence[0]
    shared = seen.model_copy(update={"own_heaps": [heap.model_copy(update={"share": 0.9})]})
    assert named(shared) == ["healthy"]


def test_memory_close_to_its_limit_is_named() -> None:
    seen = RECORDED["slab-fragmentation"]
    assert seen.cost is not None
    assert seen.cost.peak_rss_kib is not None
    tight = seen.platform.model_copy(update={"memory_limit_kib": int(seen.cost.peak_rss_kib * 1.1)})
    assert "memory-limit-pressure" in named(seen.model_copy(update={"platform": tight}))
    roomy = seen.platform.model_copy(update={"memory_limit_kib": seen.cost.peak_rss_kib * 2})
    assert "memory-limit-pressure" not in named(seen.model_copy(update={"platform": roomy}))


def heap_of(points: list[HeapPoint], **more: Any) -> Observations:
    most = max(point.live_kib for point in points)
    use = HeapUse(
        wall_s=points[-1].at_s, mallocs=10**6, frees=10**6, peak_live_kib=most, end_live_kib=points[-1].live_kib,
        points=points, **more,
    )  # fmt: skip
    return Observations(command=["x"], platform=Platform(), heap=use)


def growing(step_kib: list[int]) -> Observations:
    live, points = 0, []
    for number, step in enumerate(step_kib):
        live += step
        points.append(HeapPoint(at_s=float(number), live_kib=live, asked_kib=live * 10, rss_kib=live + 2000))
    return heap_of(points)


def test_what_grows_at_one_pace_leaks_and_what_levels_off_does_not() -> None:
    assert named(growing([1000] * 40)) == ["leak"]
    assert "leak" not in named(growing([4000] * 8 + [0] * 32))
    assert "leak" not in named(growing([1000] * 20 + [-500] * 20))


def test_waste_that_does_not_last_is_none() -> None:
    """A program that frees everything just before it ends has kept nothing."""
    full = [HeapPoint(at_s=t / 10, live_kib=90_000, asked_kib=90_000, free_kib=0, top_kib=0, rss_kib=92_000)
            for t in range(10)]  # fmt: skip
    empty = HeapPoint(at_s=1.0, live_kib=0, asked_kib=90_000, free_kib=90_000, top_kib=90_000, rss_kib=92_000)
    assert "retention-after-peak" not in named(heap_of([*full, empty], trimmed_kib=90_000))
    late = [empty.model_copy(update={"at_s": 1.0 + t / 10}) for t in range(10)]
    assert "retention-after-peak" in named(heap_of([*full, *late], trimmed_kib=90_000))


def test_the_price_of_nothing_is_nothing() -> None:
    seen = RECORDED["healthy"]
    assert shares.calls_s(seen, Growth()) == 0
    assert shares.share(1.0, Observations(command=["x"], platform=Platform())) is None
