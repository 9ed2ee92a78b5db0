"""Looking from outside takes a bounded share of a processor, and waiting for one makes nobody look seldom."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from freestone.doctor.course import Course
from freestone.trials.tree import TreeReading

LOOK_S = 0.006


def works() -> None:
    until = time.thread_time() + LOOK_S
    while time.thread_time() < until:
        pass


def waits() -> None:
    time.sleep(LOOK_S)


def looked(how: Callable[[], None], seconds: float) -> int:
    def look(number: int) -> TreeReading:
        how()
        return TreeReading(processes=1, virtual_kib=1, rss_kib=1)

    with Course(look=look) as course:
        course.begin(1)
        time.sleep(seconds)
    return len(course.points)


def test_a_look_that_works_is_taken_seldom() -> None:
    assert looked(works, 1.0) <= 1 + 1.0 / (50 * LOOK_S) + 1, "2 % of a processor"


def test_a_look_that_waits_is_taken_as_often_as_any() -> None:
    assert looked(waits, 1.0) > 10


@pytest.mark.parametrize("how", [works, waits])
def test_it_ends_with_its_block(how: Callable[[], None]) -> None:
    begun_s = time.thread_time()
    looked(how, 0.0)
    assert time.thread_time() - begun_s < 1
