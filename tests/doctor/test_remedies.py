"""What is tried against a symptom: no setting without the allocator alone, and nothing where malloc gave no memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.doctor import in_code, remedies
from freestone.doctor.finding import Finding
from freestone.doctor.observations import Observations, Platform
from freestone.doctor.remedies import CANDIDATES, Remedy

SEEN = Observations(command=["x"], platform=Platform(libc_version="2.41", huge_pages="madvise"))


def is_plain(each: Remedy) -> bool:
    return not (each.settings or each.kernel or each.huge_pages_off)


@pytest.mark.parametrize("symptom", sorted(CANDIDATES))
def test_an_allocator_with_a_setting_stands_behind_the_allocator_alone(symptom: str) -> None:
    """jemalloc with thp:always was prescribed for what jemalloc alone does, which had not been tried."""
    row = CANDIDATES[symptom]
    for place, each in enumerate(row):
        if each.allocator != "glibc" and not is_plain(each):
            before = row[:place]
            alone = max(at for at, one in enumerate(before) if one.allocator == each.allocator and is_plain(one))
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
        if each.allocator != "glibc" and not is_plain(each):
            assert any(one.allocator == each.allocator and is_plain(one) for one in tried[:place])


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
