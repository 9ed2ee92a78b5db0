"""What was seen over time: no fault is lost or made up, whenever somebody looked; and it fits the terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.doctor.observations import Observations, Platform, Point
from freestone.doctor.over_time import drawn, fault_rates, faults_between, lacking


@st.composite
def courses(draw: st.DrawFn) -> list[Point]:
    times = draw(st.lists(st.floats(0, 1000, allow_subnormal=False), max_size=60))
    return [
        Point(
            at_s=at,
            virtual_kib=draw(st.integers(0, 1 << 40)),
            rss_kib=draw(st.integers(0, 1 << 32)),
            faults=draw(st.integers(0, 1 << 40)),
        )
        for at in sorted(times)
    ]


def seen(course: list[Point], **more: object) -> Observations:
    return Observations(command=["x"], platform=Platform(), course=course, done=["course"], **more)


@given(courses(), st.integers(1, 300))
def test_stretches_add_up_to_all_faults_and_to_all_of_the_time(course: list[Point], stretches: int) -> None:
    rates = fault_rates(course, stretches)
    if lacking(seen(course)) is not None:
        assert rates == []
        return
    assert 1 <= len(rates) <= stretches
    assert all(each.per_s >= 0 for each in rates)
    total = sum(each.per_s * (each.end_s - each.begin_s) for each in rates)
    assert total == pytest.approx(faults_between(course), rel=1e-6)
    assert rates[0].begin_s == course[0].at_s
    assert rates[-1].end_s == pytest.approx(course[-1].at_s)


def test_faults_between_two_looks_are_spread_evenly() -> None:
    looks = ((0.0, 0), (1.0, 100), (4.0, 400), (4.0, 400))
    course = [Point(at_s=at, virtual_kib=1, rss_kib=1, faults=faults) for at, faults in looks]
    assert [each.per_s for each in fault_rates(course, 4)] == pytest.approx([100.0] * 3)


def test_a_process_whose_faults_nobody_took_over_takes_none_off() -> None:
    looks = ((0.0, 500), (1.0, 100), (2.0, 150))
    course = [Point(at_s=at, virtual_kib=1, rss_kib=1, faults=faults) for at, faults in looks]
    assert faults_between(course) == 50
    assert [each.per_s for each in fault_rates(course)] == [0.0, 50.0]


@given(courses(), st.integers(20, 200), st.booleans())
def test_it_fits_the_terminal_and_draws_nothing_that_it_lacks(
    course: list[Point], width: int, ascii_only: bool
) -> None:
    text = drawn(seen(course), width=width, ascii_only=ascii_only)
    assert (text == "") == (lacking(seen(course)) is not None)
    assert all(len(line) <= width for line in text.splitlines())
    assert not ascii_only or text.isascii()


@pytest.mark.parametrize(
    ("observed", "line"),
    [
        (seen([], unseen={"course": "it ends after 3 ms, too soon to be looked at"}), "it ends after 3 ms, too soon"),
        (Observations(command=["x"], platform=Platform()), "it was not looked at from outside"),
        (seen([Point(at_s=0, virtual_kib=1, rss_kib=1, faults=1)]), "it was looked at 1 time only"),
    ],
)
def test_what_is_lacking_is_one_line(observed: Observations, line: str) -> None:
    said = lacking(observed)
    assert said is not None
    assert line in said
    assert "\n" not in said


def test_the_largest_and_the_last_are_told() -> None:
    sizes = [1024, 4096, 2048]
    course = [Point(at_s=at, virtual_kib=8 * size, rss_kib=size, faults=10 * at) for at, size in enumerate(sizes)]
    resident = drawn(seen(course), width=100, ascii_only=True).splitlines()[1]
    assert resident.endswith("up to 4.00 MiB; 2.00 MiB at the last look")
