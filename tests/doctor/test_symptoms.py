"""Each patient's symptom is found in what was recorded of it, and none in those that are well."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.doctor import evidence, in_code, remedies, shares, symptoms, touched, words
from freestone.doctor.lasting import lasting
from freestone.doctor.observations import (
    CallSite,
    Growth,
    HeapPoint,
    HeapUse,
    Kept,
    MemoryCalls,
    Observations,
    OwnHeap,
    Platform,
    Sizes,
)

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
        assert remedies.CANDIDATES[name] or in_code.ADVICE.get(name) or name == "own-allocator"


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
    assert found or symptoms.unexplained(seen) is not None
    assert all((each.time or 0) < 0.03 for each in found if each.symptom == "healthy"), "never healthy at such a price"
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


def touching(*, rss_kib: int, anonymous_kib: int, faults: int, live_kib: int, sys_s: float = 0.2) -> Observations:
    """A program that touches memory once, with the prices and the rules of a recorded one."""
    like = RECORDED["first-touch-faults"]
    assert like.cost is not None
    cost = like.cost.model_copy(
        update={"peak_rss_kib": rss_kib, "minor_faults": faults, "sys_s": sys_s, "user_s": 0.05, "processes": 1}
    )
    kept = Kept(at_s=0.1, rss_kib=rss_kib, anonymous_kib=anonymous_kib)
    heap = HeapUse(wall_s=0.3, mallocs=200, frees=200, peak_live_kib=live_kib)
    return like.model_copy(update={"cost": cost, "kept_at_peak": kept, "kept_at_end": kept, "heap": heap})


def test_pages_of_a_mapped_file_are_no_heap() -> None:
    """One fault for 16 pages of a file was told as one for each page of the heap, with remedies of malloc."""
    seen = touching(rss_kib=205_824, anonymous_kib=200, faults=3_275, live_kib=1, sys_s=0.02)
    (found,) = symptoms.name(seen)
    assert (found.symptom, found.outside_malloc) == ("first-touch-faults", True)
    told = " ".join(found.evidence)
    assert "one for every 15.8 pages of its 201 MiB" in told
    assert "about one for each" not in told
    assert "at most 0% of these faults were in malloc's memory" in told
    assert remedies.plan([found], seen, 8).tried == []
    assert "did not come from malloc" in words.findings([found], seen, width=300)


def test_memory_of_raw_mappings_is_no_heap() -> None:
    seen = touching(rss_kib=205_824, anonymous_kib=204_800, faults=51_500, live_kib=1)
    (found,) = symptoms.name(seen)
    assert found.outside_malloc
    assert remedies.plan([found], seen, 8).tried == []


def test_a_heap_beside_a_large_file_is_still_a_heap() -> None:
    """Twelve faults of thirteen are the heap's, though more of what is resident is the file's."""
    seen = touching(rss_kib=358_400, anonymous_kib=154_000, faults=41_600, live_kib=153_600)
    found = {each.symptom: each for each in symptoms.name(seen)}
    told = found["first-touch-faults"]
    assert not told.outside_malloc
    assert any("about one for each page of its 150 MiB that are no file's" in line for line in told.evidence)
    assert remedies.plan([told], seen, 8).tried


def test_a_heap_that_nobody_touches_has_no_faults() -> None:
    """malloc of a GiB that stays untouched, beside a file that is read: what was given out bounds nothing by itself."""
    seen = touching(rss_kib=205_824, anonymous_kib=200, faults=3_275, live_kib=1 << 20, sys_s=0.02)
    (found,) = symptoms.name(seen)
    assert found.outside_malloc


def test_where_the_heap_was_not_seen_nothing_is_said_of_whose_memory_it_is() -> None:
    seen = touching(rss_kib=205_824, anonymous_kib=204_800, faults=51_500, live_kib=1).model_copy(update={"heap": None})
    (found,) = symptoms.name(seen)
    assert not found.outside_malloc
    assert "how much of that memory came from malloc was not seen" in found.evidence


def test_a_resident_file_does_not_hide_what_was_mapped_again_and_again() -> None:
    """A page of a file was taken for a fault of its own: 51,200 of churn's faults were hidden behind 200 MiB."""
    seen = RECORDED["mapping-churn"]
    assert seen.cost is not None
    assert seen.kept_at_peak is not None
    more = 200 << 10
    cost = seen.cost.model_copy(update={"peak_rss_kib": (seen.cost.peak_rss_kib or 0) + more})
    kept = seen.kept_at_peak.model_copy(update={"rss_kib": seen.kept_at_peak.rss_kib + more})
    beside = seen.model_copy(update={"cost": cost, "kept_at_peak": kept})
    assert touched.again(beside, "munmap") > 0.95 * touched.again(seen, "munmap")


def test_the_same_faults_are_told_once() -> None:
    """Two symptoms of 76 % each on one line of evidence read like 152 %."""
    first, second = symptoms.name(RECORDED["huge-pages-missing"])
    assert {first.symptom, second.symptom} == NEW_MEMORY
    assert second.same_faults_as == first.symptom
    assert "the same faults as those of huge-pages-missing" in second.evidence[0]
    assert not [line for line in second.evidence if "ns" in line.split()]
    assert words.suffering([first, second]).count("%") == 1


@given(st.sampled_from(sorted(RECORDED)))
def test_shares_of_page_faults_add_up_to_no_more_than_the_kernels_time(patient: str) -> None:
    seen = RECORDED[patient]
    assert seen.cost is not None
    again = sum(shares.refaulted_s(seen, how) for how in ("munmap", "brk", "heaps"))
    new = (touched.first(seen) or 0.0) * shares.fault_ns(seen) / 1e9
    assert again + new <= seen.cost.sys_s * 1.000001


@given(st.integers(1, 10**6), st.floats(0.001, 10))
def test_a_price_that_was_capped_is_said_to_be(faults: int, sys_s: float) -> None:
    """49,683 faults at 4,098 ns are 0.204 s, and '0.17 s in the kernel' stood beside them."""
    seen = touching(rss_kib=4 * faults, anonymous_kib=4 * faults, faults=faults, live_kib=4 * faults, sys_s=sys_s)
    assert seen.prices is not None
    (told,) = evidence.faults(seen)
    capped = faults * seen.prices.small.ns / 1e9 > sys_s
    assert ("which is more: counted at" in told) == capped
    assert shares.faults_s(seen) == pytest.approx(min(sys_s, faults * seen.prices.small.ns / 1e9))


@given(st.integers(1, 10**6), st.integers(1000, 10**6))
def test_one_for_each_page_is_said_only_where_it_is_so(faults: int, kib: int) -> None:
    seen = touching(rss_kib=kib, anonymous_kib=kib, faults=faults, live_kib=kib).model_copy(update={"calls": None})
    told = " ".join(evidence.once(seen, outside_malloc=False))
    assert ("about one for each page" in told) == (0.7 <= faults * 4 / kib <= 1.5)


def _with_calls(seen: Observations, **kib: int) -> Observations:
    assert seen.calls is not None
    kinds = [each.model_copy(update={"kib": kib.get(each.name, each.kib)}) for each in seen.calls.by_kind]
    return seen.model_copy(update={"calls": seen.calls.model_copy(update={"by_kind": kinds})})


def test_what_moved_brings_no_more_faults_than_it_has_pages() -> None:
    """300,000 faults of madvise were laid on thirty mappings of a page each; and the rest is not called healthy."""
    seen = _with_calls(RECORDED["mapping-churn"], munmap=120)
    found = symptoms.name(seen)
    assert found == []
    assert (symptoms.unexplained(seen) or 0) > 0.3
    assert "none of the calls that were seen explains them" in " ".join(words.findings(found, seen, width=999).split())


def test_a_few_sleeps_are_no_share_of_time() -> None:
    """Three sleeps of 27,000 calls were reckoned to be all the time that 25 threads had lived."""
    seen = RECORDED["lock-contention"]
    assert seen.heap is not None
    few = seen.heap.model_copy(update={"waited": 3, "waited_s": 3 * seen.heap.wall_s / 8})
    found = next(
        each for each in symptoms.name(seen.model_copy(update={"heap": few})) if each.symptom == "lock-contention"
    )
    assert found.time is None
    assert "too few to reckon" in found.evidence[-1]


def test_mappings_of_other_sizes_than_malloc_s_blocks_are_not_its() -> None:
    """An interpreter's own arenas of 1 MiB, in a program that asks malloc for many large blocks of other sizes."""
    seen = RECORDED["mapping-churn"]
    assert seen.heap is not None
    assert seen.calls is not None
    pairs = seen.calls.growth.map_unmap_pairs
    other = [Sizes(to_bytes=1 << 18, calls=3 * pairs, kib=200 * pairs)]
    heap = seen.heap.model_copy(update={"sizes": other, "mallocs": 3 * pairs})
    found = next(
        each for each in symptoms.name(seen.model_copy(update={"heap": heap})) if each.symptom == "mapping-churn"
    )
    assert found.outside_malloc
    assert "blocks of these sizes" in found.evidence[-1]


def test_several_processes_are_named_where_nothing_else_can_be() -> None:
    seen = _with_calls(RECORDED["mapping-churn"], munmap=120)
    assert seen.cost is not None
    several = seen.model_copy(update={"cost": seen.cost.model_copy(update={"processes": 4})})
    assert "its 4 processes each touch memory that is new" in (words.unnamed([], several) or "")


def test_who_gives_memory_back_itself_is_told_so() -> None:
    """A loop over madvise(MADV_DONTNEED) is no illness of malloc's, and no riddle either."""
    seen = _with_calls(RECORDED["mapping-churn"], munmap=120)
    assert seen.calls is not None
    given = MemoryCalls(name="madvise", calls=40, kib=40 << 15, sites=[CallSite(frames=["main (dn)"], calls=40)])
    calls = seen.calls.model_copy(update={"by_kind": [*seen.calls.by_kind, given]})
    told = words.unnamed([], seen.model_copy(update={"calls": calls}))
    assert told is not None
    assert "It calls madvise 40 times over 1,280.0 MiB in all, most often from main (dn): what is given back" in told
    assert "none of the calls" not in told


def test_two_parts_that_are_each_too_little_are_told_as_such() -> None:
    """New memory at 2.7 %, and half a per cent that nothing explains: neither well nor "none of the calls explains"."""
    seen = RECORDED["healthy"]
    assert seen.cost is not None
    assert seen.prices is not None
    pages = touched.pages(seen)
    faults = int(1.15 * pages)
    fault_s = faults * seen.prices.small.ns / 1e9
    cost = seen.cost.model_copy(update={"minor_faults": faults, "user_s": fault_s / 0.0315, "sys_s": fault_s})
    seen = seen.model_copy(update={"cost": cost.model_copy(update={"user_s": cost.user_s - fault_s})})
    found = symptoms.name(seen)
    assert found == []
    told = " ".join(words.findings(found, seen, width=999).split())
    assert "page faults are 3% of its processor time: 2.7% on memory that was new, which alone is too little" in told
    assert "and 0.4% that none of the calls that were seen explains" in told


def test_mappings_that_malloc_was_not_asked_for_are_not_its_illness() -> None:
    seen = RECORDED["mapping-churn"]
    assert seen.heap is not None
    assert not next(each for each in symptoms.name(seen) if each.symptom == "mapping-churn").outside_malloc
    small = [each for each in seen.heap.sizes if each.to_bytes <= 4096]
    heap = seen.heap.model_copy(update={"sizes": small})
    found = next(
        each for each in symptoms.name(seen.model_copy(update={"heap": heap})) if each.symptom == "mapping-churn"
    )
    assert found.outside_malloc
    # Where the program has set the threshold, its small blocks may be mapped.
    told = heap.model_copy(update={"mallopts": [(-3, 1024)], "mallocs": 10**6})
    lowered = symptoms.name(seen.model_copy(update={"heap": told}))
    assert not next(each for each in lowered if each.symptom == "mapping-churn").outside_malloc


@given(st.floats(0, 100), st.integers(2, 1000), st.integers(0, 10**6))
def test_threads_wait_no_longer_than_they_live_nor_sleep_more_often_than_was_counted(
    waited_s: float, waited: int, times: int
) -> None:
    seen = RECORDED["lock-contention"]
    assert seen.heap is not None
    assert seen.cost is not None
    heap = seen.heap.model_copy(update={"waited_s": waited_s, "waited": waited})
    cost = seen.cost.model_copy(update={"voluntary_switches": times})
    for each in symptoms.name(seen.model_copy(update={"heap": heap, "cost": cost})):
        if each.symptom == "lock-contention":
            assert each.time is None or each.time_of == "its threads' time"
            assert (each.time or 0) * heap.wall_s * heap.threads <= waited_s * times / max(1, heap.waited) + 1e-9


def test_threads_that_hardly_met_in_one_run_may_have_met_in_another() -> None:
    """Seen on a busy machine: 138 switches in one of three runs, and thousands in the others."""
    seen = RECORDED["lock-contention"]
    assert seen.cost is not None
    assert seen.heap is not None
    quiet = seen.cost.model_copy(update={"voluntary_switches": 1})
    assert "lock-contention" not in named(seen.model_copy(update={"cost": quiet}))
    one_of_several = quiet.model_copy(update={"most_voluntary_switches": seen.cost.voluntary_switches})
    assert "lock-contention" in named(seen.model_copy(update={"cost": one_of_several}))


def test_a_moment_is_not_taken_for_the_time_in_which_nobody_looked() -> None:
    """Between two looks 1.8 s apart 56 MB were asked for: what was idle at the first lasted for a moment."""
    points = [
        HeapPoint(at_s=at_s, live_kib=live, asked_kib=asked, rss_kib=30_000)
        for at_s, live, asked in ((0.1, 29_000, 1), (0.2, 29_000, 2), (0.3, 29_000, 3), (0.4, 500, 4), (2.2, 29_000, 9))
    ]
    seen = Observations(command=["x"], platform=Platform(), heap=HeapUse(wall_s=2.3, points=points))
    state = lasting(seen)
    assert state is not None
    assert state.point.live_kib == 29_000
    still = [each.model_copy(update={"asked_kib": 4}) if each.at_s > 2 else each for each in points]
    quiet = lasting(seen.model_copy(update={"heap": HeapUse(wall_s=2.3, points=still)}))
    assert quiet is not None
    assert quiet.point.live_kib == 500, "nothing was asked for: it was so all the time"


def test_what_is_freed_as_the_program_ends_was_not_idle() -> None:
    """Five threads used all of their blocks to the end; 98 % was said to be idle."""
    points = [
        HeapPoint(at_s=at_s, live_kib=live, asked_kib=1, rss_kib=98_000)
        for at_s, live in ((0.1, 96_000), (1.0, 96_000), (2.0, 96_000), (2.99, 0))
    ]
    kept = Kept(at_s=2.9, rss_kib=98_500, anonymous_kib=98_000, thread_heaps=5, thread_heaps_kib=98_000)
    heap = HeapUse(wall_s=3.0, points=points, threads=6, peak_live_kib=96_000)
    blank = Observations(command=["x"], platform=Platform())
    assert "arena-bloat" not in named(
        blank.model_copy(update={"heap": heap, "kept_at_peak": kept, "kept_at_end": kept})
    )
