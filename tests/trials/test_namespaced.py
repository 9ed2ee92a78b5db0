"""Processes in a pid namespace of their own: their words are matched by program and time, and never to too many."""

from __future__ import annotations

import math
import shutil
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.trials.census import Ending, Image
from freestone.trials.evidence import Evidence, Provider
from freestone.trials.proof import prove
from freestone.trials.witness import ENTRIES, Departure, Entry
from freestone.trials.witness import Testimony as Report

ALLOCATOR = Provider("swift", "/lib/libswift.so", "aa11", (8, 1), 77)
SERVED = tuple(Entry(symbol, ALLOCATOR.file, ALLOCATOR.build_id, (8, 1), 77) for symbol in ENTRIES)


def said(pid: int, at_s: float, exe: str = "/bin/ls") -> Report:
    departure = Departure(at_s + 0.5, pid)
    return Report(pid, 0, at_s, exe, "ee", heap_works=True, entries=SERVED, departure=departure)


def evidence(
    images: list[Image], testimonies: list[Report], endings: list[Ending] | None = None, gap: str | None = None
) -> Evidence:
    return Evidence(ALLOCATOR, testimonies, lambda _: None, images=images, endings=endings, census_gap=gap)


def test_an_image_of_a_namespace_is_found_by_its_program_and_time():
    images = [Image(40, 1, 1.0, 9.0, "unshare", "/bin/unshare"), Image(41, 40, 2.0, 8.0, "ls", "/bin/ls")]
    fork = replace(said(2, 5.0), exe="", entries=(), fork_of=(1, 2.5), departure=Departure(5.0, 2))
    endings = [Ending(42, 4.0, 5.1, "/bin/ls"), Ending(41, 1.5, 8.0, "/bin/ls"), Ending(40, 1.0, 9.0, "/bin/unshare")]
    verdict = prove(evidence(images, [said(40, 1.5, "/bin/unshare"), said(1, 2.5), fork], endings))
    assert verdict.finding is None
    assert [(row.pid, row.exe) for row in verdict.proof.processes] == [(40, "/bin/unshare"), (41, "/bin/ls")]
    assert verdict.proof.silent == {}, "each has spoken, the fork too"


@pytest.mark.parametrize("other", [said(1, 2.5, "/root/bin/ls"), said(1, 200.0), said(1, 0.5)])
def test_what_speaks_of_the_same_program_and_cannot_be_matched_is_explained(other):
    verdict = prove(evidence([Image(41, 40, 2.0, 8.0, "ls", "/bin/ls")], [other]))
    assert verdict.proof.reason is not None
    assert verdict.proof.reason.startswith("unseen process: /bin/ls runs in namespaces of its own")


def test_nothing_is_matched_so_by_a_census_with_a_gap():
    verdict = prove(evidence([Image(41, 40, 2.0, 8.0, "ls", "/bin/ls")], [said(1, 2.5)], gap="records were lost"))
    assert not verdict.proof.valid


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["/bin/ls", "/bin/sh"]), st.floats(1, 9), st.floats(0.1, 9), st.booleans(), st.booleans()
        ),
        max_size=8,
    )
)
def test_a_tree_is_proved_exactly_where_every_image_has_spoken(images):
    """Whatever numbers they say, and however many of one program run at a time."""
    census, reports = [], []
    for number, (exe, begin_s, lasts_s, speaks, apart) in enumerate(images):
        census.append(Image(100 + number, 1, begin_s, begin_s + lasts_s, exe[5:], exe))
        if speaks:
            reports.append(said(1 + number % 3 if apart else 100 + number, begin_s + lasts_s / 2 + number / 1000, exe))
    verdict = prove(evidence([*census, Image(99, 1, 0.0, math.inf, "unshare", "/bin/unshare")], [
        said(99, 0.1, "/bin/unshare"), *reports
    ]))  # fmt: skip
    assert verdict.proof.valid == all(speaks for _, _, _, speaks, _ in images), verdict.proof.reason


@pytest.fixture
def unshare(needs_perf: None) -> str:
    found = shutil.which("unshare")
    if found is None or subprocess.run([found, "--pid", "--fork", "true"], check=False).returncode != 0:
        pytest.skip("no pid namespace may be made here")
    return found


@pytest.mark.parametrize("more", [[], ["--mount-proc"]])
def test_a_program_in_a_pid_namespace_is_proved(attempt, unshare, more):
    record = attempt(unshare, "--pid", "--fork", *more, "sh", "-c", "(:); ls / | cat")
    assert (record.status, record.reason) == ("ok", None)
    assert record.proof.silent == {}
    assert {row.exe.rpartition("/")[2] for row in record.proof.processes} >= {"unshare", "ls", "cat"}
