"""glibc's settings in combination: none is left that freezes another, or that the program overwrites."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.doctor import knobs, remedies, words
from freestone.doctor.finding import Finding
from freestone.doctor.knobs import Unfit
from freestone.doctor.observations import HeapUse, Observations, Platform, Settings
from freestone.doctor.remedies import CANDIDATES, KEEP_LARGE, Remedy

GLIBC = {each for rows in CANDIDATES.values() for each in rows if each.allocator == "glibc"}
NUMBERS = sorted(knobs.PARAMETERS)


def seen(*calls: int, **settings: object) -> Observations:
    """A program that turns these knobs itself, under these settings."""
    return Observations(
        command=["x"],
        platform=Platform(libc_version="2.36", huge_pages="madvise", folios={16: "never", 64: "never"}),
        settings=Settings.model_validate(settings),
        heap=HeapUse(wall_s=1, mallopts=[(number, 1) for number in calls]),
    )


def in_force(environment: dict[str, str], calls: list[int]) -> frozenset[str]:
    return knobs.knobs(environment) | knobs.by_mallopt([(number, 1) for number in calls])


@given(
    st.sampled_from(sorted(GLIBC, key=lambda each: each.why)),
    st.lists(st.sampled_from(NUMBERS), max_size=3),
    st.dictionaries(st.sampled_from(sorted(knobs.VARIABLES)), st.just("7"), max_size=3),
)
def test_whatever_the_program_sets_no_remedy_leaves_a_threshold_frozen(
    each: Remedy, calls: list[int], environment: dict[str, str]
) -> None:
    found = remedies.fit(each, seen(*calls, environment=environment))
    if isinstance(found, Unfit) or found is None:
        return
    settings = dict(found.settings)
    assert not knobs.knobs(settings) & knobs.by_mallopt([(number, 1) for number in calls]), "it would be overwritten"
    if knobs.knobs(settings) & knobs.FREEZING:
        assert knobs.is_whole(in_force({**environment, **settings}, calls))


@given(st.sets(st.sampled_from(sorted(knobs.FREEZING))))
def test_whole_is_both_thresholds_or_no_mapping(names: set[str]) -> None:
    trims, maps = "trim_threshold" in names, bool(names & {"mmap_threshold", "mmap_max"})
    assert knobs.is_whole(names) == (not names or (trims and maps))


def test_what_the_program_sets_itself_is_left_out_of_a_remedy() -> None:
    found = knobs.combined(KEEP_LARGE, seen(-1), glibc=True)
    assert found == {"MALLOC_MMAP_THRESHOLD_": KEEP_LARGE["MALLOC_MMAP_THRESHOLD_"]}
    told = knobs.combined({"MALLOC_ARENA_MAX": "2"}, seen(-8), glibc=True)
    assert told == Unfit("the program sets M_ARENA_MAX itself, by mallopt")


def test_a_tunable_stands_among_those_in_force() -> None:
    before = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=3:glibc.malloc.arena_max=9"}
    asked = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    found = knobs.combined(asked, seen(environment=before), glibc=True)
    assert isinstance(found, dict)
    assert knobs.tunables(found["GLIBC_TUNABLES"]) == {
        "glibc.malloc.tcache_count": "3",
        "glibc.malloc.arena_max": "9",
        "glibc.malloc.hugetlb": "1",
    }


def test_an_old_name_gives_way_to_the_tunable_that_is_in_force() -> None:
    """GLIBC_TUNABLES counts over MALLOC_*: a remedy by the old name alone would do nothing."""
    found = knobs.combined(
        {"MALLOC_ARENA_MAX": "2"}, seen(environment={"GLIBC_TUNABLES": "glibc.malloc.arena_max=9"}), glibc=True
    )
    assert isinstance(found, dict)
    assert found["GLIBC_TUNABLES"] == "glibc.malloc.arena_max=2"


def test_what_its_own_scripts_set_is_out_of_reach() -> None:
    told = knobs.combined({"MALLOC_CONF": "thp:always"}, seen(scripts={"MALLOC_CONF": "x"}), glibc=False)
    assert told == Unfit("its own scripts set MALLOC_CONF")


def test_a_program_that_forbids_large_pages_is_not_offered_any() -> None:
    found = Finding("first-touch-faults", (), time=0.5)
    plan = remedies.plan([found], seen(huge_pages_off=True), 8)
    assert plan.tried
    assert not [each for each in plan.tried if each.wants_large_pages]
    assert {why for _, why in plan.left_out} == {
        "the program forbids itself huge pages and folios: prctl(PR_SET_THP_DISABLE)"
    }


def test_the_kernels_switches_are_tried_with_consent_alone() -> None:
    found = Finding("first-touch-faults", (), time=0.5)
    asked = remedies.plan([found], seen(), 8)
    assert {dict(each.kernel).popitem()[0] for each in asked.tried if each.kernel} == {
        "hugepages-16kB",
        "hugepages-64kB",
    }
    refused = remedies.plan([found], seen(), 8, kernel="no consent")
    assert not [each for each in refused.tried if each.kernel]
    assert {why for _, why in refused.left_out} == {"no consent"}
    assert "Not tried: glibc hugepages-64kB=always, " in words.left_out(refused.left_out, width=1000)


def test_what_no_setting_cures_keeps_nothing_else_from_being_tried() -> None:
    """A program that builds something up looks like a leak of most of its memory, and pays for first touches."""
    found = [Finding("leak", (), memory=0.9), Finding("first-touch-faults", (), time=0.1)]
    assert remedies.plan(found, seen(), 8).tried


def test_folios_that_are_given_already_are_no_remedy() -> None:
    given = seen().model_copy(update={"platform": Platform(folios={64: "always", 16: "never"})})
    assert remedies.fit(remedies.folios("glibc", 64), given) is None
    assert remedies.fit(remedies.folios("glibc", 16), given) is not None


@pytest.mark.parametrize(
    ("huge_pages", "version", "tried"),
    [("madvise", "2.36", True), ("always", "2.36", True), ("never", "2.36", False), ("madvise", "2.31", False)],
)
def test_huge_pages_are_asked_for_where_the_kernel_and_glibc_know_how(
    huge_pages: str, version: str, tried: bool
) -> None:
    each = remedies.remedy("glibc", "", {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"})
    platform = Platform(huge_pages=huge_pages, libc_version=version)
    assert (remedies.fit(each, seen().model_copy(update={"platform": platform})) is not None) == tried


def test_no_huge_pages_are_a_remedy_where_they_are_given() -> None:
    plan = remedies.plan([Finding("huge-page-bloat", (), memory=0.6)], seen(), 8)
    assert plan.tried[0] == remedies.NO_HUGE_PAGES
    off = remedies.plan([Finding("huge-page-bloat", (), memory=0.6)], seen(huge_pages_off=True), 8)
    assert remedies.NO_HUGE_PAGES not in off.tried


def test_a_constant_that_was_taken_for_another_is_pointed_out() -> None:
    (line,) = knobs.slips([(-4, 131072), (-3, 131072), (-4, 65536)])
    assert line.startswith("mallopt(M_MMAP_MAX, 131072) reads like bytes")


def test_what_a_program_sets_itself_is_told() -> None:
    told = words.by_itself(
        seen(
            -1, environment={"MALLOC_ARENA_MAX": "2"}, taken_out={"MALLOC_CONF": "x"}, huge_pages_off=True, locked=True
        )
    )
    text = "; ".join(told)
    for part in (
        "MALLOC_ARENA_MAX=2",
        "mallopt(M_TRIM_THRESHOLD, 1)",
        "MALLOC_CONF=x",
        "PR_SET_THP_DISABLE",
        "mlockall",
    ):
        assert part in text
    assert words.by_itself(seen()) == []
