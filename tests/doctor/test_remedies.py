"""What is tried against a symptom: no setting without the allocator alone, and nothing where malloc gave no memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.doctor import in_code, remedies, words
from freestone.doctor.finding import Finding
from freestone.doctor.observations import CHOICE, Calls, Growth, Observations, Platform
from freestone.doctor.remedies import CANDIDATES

SEEN = Observations(command=["x"], platform=Platform(libc_version="2.41", huge_pages="madvise"))


@pytest.mark.parametrize("symptom", sorted(CANDIDATES))
def test_an_allocator_with_a_setting_stands_behind_the_allocator_alone(symptom: str) -> None:
    """jemalloc with thp:always was prescribed for what jemalloc alone does, which had not been tried."""
    row = CANDIDATES[symptom]
    for place, each in enumerate(row):
        if each.allocator != "glibc" and not each.is_plain:
            before = row[:place]
            alone = max(at for at, one in enumerate(before) if one.allocator == each.allocator and one.is_plain)
            assert {one.allocator for one in before[alone:]} == {each.allocator}


def test_nothing_is_a_candidate_twice() -> None:
    for row in CANDIDATES.values():
        bare = [(each.allocator, each.settings, each.kernel, each.huge_pages_off) for each in row]
        assert len(bare) == len(set(bare))


symptoms_found = st.lists(
    st.builds(Finding, st.sampled_from(sorted(CANDIDATES)), st.just(()), st.floats(0, 1), st.floats(0, 1)), max_size=4
)


@given(symptoms_found, st.integers(1, 12), st.sampled_from([None, "not here"]))
def test_a_setting_is_planned_only_where_its_allocator_alone_is(
    found: list[Finding], most: int, kernel: str | None
) -> None:
    tried = remedies.plan(found, SEEN, most, kernel=kernel).tried
    assert len(tried) <= most
    for place, each in enumerate(tried):
        if each.allocator != "glibc" and not each.is_plain:
            assert any(one.allocator == each.allocator and one.is_plain for one in tried[:place])


def test_what_the_goal_is_about_is_tried_first() -> None:
    contended, bloat = Finding("lock-contention", (), time=1.0), Finding("arena-bloat", (), memory=0.9)
    (first,) = remedies.plan([contended, bloat], SEEN, 1, goal="memory").tried
    assert first.settings == (("MALLOC_ARENA_MAX", "2"),)
    (first,) = remedies.plan([contended, bloat], SEEN, 1, goal="time").tried
    assert first.allocator == "freestone"


@given(symptoms_found, st.integers(1, 8))
def test_what_has_no_room_is_named_and_nothing_twice(found: list[Finding], most: int) -> None:
    few, all_ = remedies.plan(found, SEEN, most, no_room="no room"), remedies.plan(found, SEEN, 10**6)
    assert list(few.tried) == list(all_.tried)[:most]
    waiting = [each for each, why in few.left_out if why == "no room"]
    assert len(waiting) == len(all_.tried) - len(few.tried)


def test_a_threshold_that_cannot_reach_so_far_is_not_tried() -> None:
    """Blocks of 48 MiB: 32 MiB is the most that the threshold can be, and it was the only remedy there was time for."""
    churn = Finding("mapping-churn", (), time=0.9)
    growth = Growth(map_unmap_pairs=600, anonymous_maps=600)
    large = SEEN.model_copy(update={"calls": Calls(wall_s=1.0, growth=growth)})
    plan = remedies.plan([churn], large, 1)
    assert plan.tried[0].settings == tuple(remedies.NEVER_MAP.items())
    assert any("larger than 32 MiB" in why for _, why in plan.left_out)
    some = growth.model_copy(update={"pairs_128k_32m": 1})
    within = SEEN.model_copy(update={"calls": Calls(wall_s=1.0, growth=some)})
    assert dict(remedies.plan([churn], within, 1).tried[0].settings) == remedies.KEEP_LARGE


def test_under_a_static_program_nothing_is_put() -> None:
    static = SEEN.model_copy(update={"unseen": {CHOICE: "it is static"}})
    assert remedies.plan([Finding("mapping-churn", (), time=0.9)], static, 8).tried == []
    assert words.nothing_to_try([], static) == "Nothing can be tried: it is static"


def test_who_forbids_itself_huge_pages_is_told_where() -> None:
    missing = Finding("huge-pages-missing", (), time=0.5)
    assert not any("PR_SET_THP_DISABLE" in line for line in in_code.advice([missing], SEEN))
    forbidden = SEEN.model_copy(update={"settings": SEEN.settings.model_copy(update={"huge_pages_off": True})})
    assert "leave out prctl(PR_SET_THP_DISABLE)" in in_code.advice([missing], forbidden)[0]


def test_what_malloc_did_not_give_has_no_remedy_of_malloc() -> None:
    outside = Finding("first-touch-faults", (), time=0.9, outside_malloc=True)
    assert remedies.plan([outside], SEEN, 8).tried == []
    assert any("MAP_POPULATE" in line for line in in_code.advice([outside], SEEN))
    churn = Finding("mapping-churn", (), time=0.1)
    beside = remedies.plan([outside, churn], SEEN, 8).tried
    assert beside == remedies.plan([churn], SEEN, 8).tried
    assert beside
