"""What is read off the witness's words about a rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.records.schema import Metrics, Sample
from freestone.trials import meters, witness
from freestone.trials.launch import LaunchReading
from freestone.trials.witness import Departure, Memory, Rest

pytestmark = pytest.mark.xdist_group("measured")  # what they measure or look for, others would disturb

moments = st.integers(0, 1000).map(lambda tenth: tenth / 10)


def ended(rest: Rest | None, resident_kib: int | None = 100) -> witness.Testimony:
    return witness.Testimony(pid=1, parent=0, at_s=0.0, departure=Departure(0.0, 1, resident_kib, rest=rest))


def rested(from_s: float, until_s: float) -> witness.Testimony:
    return ended(Rest(from_s, until_s, 1))


@given(st.lists(st.tuples(moments, moments).map(sorted)), moments, moments)
def test_moments_in_which_somebody_rested_are_counted_once(rests, started_s, wall_s):
    """Against counting the tenths of a second one by one."""
    tenths = {
        tenth
        for from_s, until_s in rests
        for tenth in range(round(from_s * 10), round(until_s * 10))
        if started_s * 10 <= tenth + 0.5 <= (started_s + wall_s) * 10
    }
    said = meters.rested_s([rested(*each) for each in rests], started_s, wall_s)
    assert said == pytest.approx(len(tenths) / 10, abs=1e-6)


def test_the_process_that_had_most_at_its_end_is_the_one_that_counts():
    shell, compiler = ended(Rest(0, 1, 900), 1000), ended(Rest(0, 1, 500), 60000)
    assert meters.idle([shell, compiler]) == {"rss_kib_idle": 500}


def test_without_a_rest_there_is_no_figure():
    silent = witness.Testimony(pid=1, parent=0, at_s=0.0)
    assert meters.idle([silent, ended(None)]) is None
    assert meters.rested_s([silent, ended(None)], 0.0, 10.0) == 0


def test_what_the_kernel_adds_up_is_told_before_and_after_the_rest():
    rest = Rest(0, 1, 900, end=Memory(800, 0, 50), idle=Memory(700, 2048, 0), looked_s=0.25)
    assert meters.idle([ended(rest)]) == {
        "rss_kib_idle": 900,
        "pss_kib": 800,
        "huge_kib": 0,
        "lazy_free_kib": 50,
        "pss_kib_idle": 700,
        "huge_kib_idle": 2048,
        "lazy_free_kib_idle": 0,
    }
    assert meters.looked_s([ended(rest), ended(rest), ended(None)]) == 0.5


def _metrics(**values):
    return Metrics(**{"wall_s": 1.0, "user_s": 0.5, "sys_s": 0.1, "peak_rss_kib": 5000, **values})


def test_work_that_is_taken_for_rest_is_no_time():
    """A pipe whose first process is kept at its end while the second works."""
    assert meters.contradiction(_metrics(rested_s=1.0), [], 2) is None
    said = meters.contradiction(_metrics(wall_s=0.01, rested_s=1.0), [], 2)
    assert said is not None
    assert "without --idle" in said
    assert meters.contradiction(_metrics(wall_s=0.01), [], 2) is None, "clocks of processors are coarse"


def test_more_memory_than_anybody_waited_for_is_told():
    """Children of a parent that ignores SIGCHLD are in no sum of the kernel's."""
    series = [Sample(at_s=0.1, rss_kib=300_000, processes=2)]
    said = meters.contradiction(_metrics(peak_rss_kib=1400, series=series), [], 2)
    assert said is not None
    assert "SIGCHLD" in said
    assert meters.contradiction(_metrics(peak_rss_kib=160_000, series=series), [], 2) is None


def test_rests_that_nobody_asked_for_are_taken_from_no_time():
    """Whoever writes into the witness's report cannot make himself faster."""
    reading = LaunchReading(version=1, state="exited", pid=1, wall_s=3.0, started_monotonic_s=10.0)
    forged = [rested(10.0, 12.9)]
    assert meters.read(reading, forged).wall_s == 3.0
    assert meters.read(reading, forged, rest_s=2.9).wall_s == pytest.approx(0.1)


@given(st.none() | st.integers(0, 10**6), st.integers(2000, 10**6))
def test_a_tree_peaks_no_lower_than_its_largest_process(sampled_kib, peak_kib):
    reading = LaunchReading(
        version=1, state="exited", wall_s=1.0, peak_rss_kib=peak_kib, floor_kib=1000, tree_peak_rss_kib=sampled_kib
    )
    said = meters.read(reading, []).tree_peak_rss_kib
    assert said == (None if sampled_kib is None else max(sampled_kib, peak_kib))
