"""Misuses: the list is whole, an end tells when a bug was stopped, and the default stops what its page says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.records.schema import Allocator
from misuses import cases, page
from misuses.__main__ import main
from misuses.judging import EXIT_UNFIT, EXIT_USAGE, Stop, judge

REPOSITORY = Path(__file__).resolve().parents[2]
EVERY = cases.every()


def test_every_bug_is_there_once_and_has_its_program() -> None:
    assert len({case.words for case in EVERY}) == len(EVERY)
    programs = {source.stem for source in (REPOSITORY / "tests" / "misuses").glob("*.cpp")}
    assert {case.words[0] for case in EVERY} == programs


@given(
    st.one_of(st.none(), st.integers(-64, 255)),
    st.sampled_from(["", "doing", "doing\ndone", "doing\nharmless", "doing\ndone\nfreed", "done"]),
)
def test_an_end_tells_when_it_was_stopped(status: int | None, said: str) -> None:
    seen = judge(status, said)
    if not said.startswith("doing") or status in (EXIT_USAGE, EXIT_UNFIT):
        assert seen is Stop.INVALID
    elif status == 0:
        assert seen is (Stop.HARMLESS if "harmless" in said else Stop.NEVER)
    elif status is None:
        assert seen is Stop.NEVER, "who hangs has not stopped it"
    else:
        assert seen is (Stop.AT_ONCE if said == "doing" else Stop.LATE)


@given(st.lists(st.sampled_from(list(Stop)), min_size=len(EVERY), max_size=len(EVERY)))
def test_the_table_counts_each_bug_once(stops: list[Stop]) -> None:
    answers = {(case, "one"): stop for case, stop in zip(EVERY, stops, strict=True)}
    rows = re.findall(
        r"^\| (\S.*?) \| (\d+) \| \**(\d+) \((\d+)\+(\d+)\+(\d+)\)\** \|$", page.families(EVERY, ["one"], answers), re.M
    )
    *inside, whole = [tuple(map(int, row[1:])) for row in rows]
    assert whole == tuple(map(sum, zip(*inside, strict=True)))
    assert whole[0] == len(EVERY)
    assert whole[1] == sum(stop.counts for stop in stops) == sum(whole[2:])
    assert page.each(EVERY, ["one"], answers).count("\n") == len(EVERY) + 2


def test_the_page_says_how_it_came_about() -> None:
    answers = {(case, "one"): Stop.LATE for case in EVERY}
    allocator = Allocator(name="one", title="One", version="1.0", file="/lib/one.so", preload=["/lib/one.so"])
    text = page.text(EVERY, ["one"], [allocator], answers, day="2026-11-25")
    assert "make misuses" in text
    assert "one 1.0" in text


def test_a_page_of_some_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "double free", "--page", str(tmp_path / "page.md")]) == 2
    assert "all bugs under all allocators" in capsys.readouterr().err
    assert not (tmp_path / "page.md").exists()


def test_no_such_bug_is_one_line_and_nothing_is_built_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("misuses.__main__._build", lambda: pytest.fail("built"))
    assert main(["--only", "nonsense"]) == 2
    told = capsys.readouterr()
    assert re.fullmatch(r"misuses: no bug has 'nonsense' in its name; .*double free.*\n", told.err)
    assert told.out == ""


def test_bugs_are_chosen_by_any_part_of_family_program_and_arguments() -> None:
    assert cases.choose("") == EVERY
    assert {case.family for case in cases.choose("double free")} == {"double free"}
    assert {case.words[-1] for case in cases.choose("malloc medium")} == {"medium"}
    assert [" ".join(case.words) for case in cases.choose("mismatch free-new")] == ["mismatch free-new small"]


def test_no_such_allocator_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "double free", "--allocators", "nonesuch"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler (package g++)")
def test_the_terminal_says_what_the_signs_stand_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "double_free at-once malloc small", "--allocators", "glibc"]) == 0
    legend = capsys.readouterr().out.splitlines()[-1]
    assert legend.split(", ") == [f"{mark} {stop.value}" for stop, mark in page.MARKS.items()]


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler (package g++)")
def test_the_default_stops_double_frees(freestone_library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At once and interleaved, of small and medium blocks: in the second free. The others: late rather than never."""
    assert main(["--only", "double free", "--allocators", str(freestone_library)]) == 0
    seen = dict(re.findall(r"^\| double_free (\S+ \S+ \S+) \| (\S+) \| ", capsys.readouterr().out, re.M))
    assert len(seen) == sum(case.words[0] == "double_free" for case in EVERY)
    marks = {stop.value: mark for stop, mark in page.MARKS.items()}
    for bug, mark in seen.items():
        when, _, _ = bug.split()
        wanted = {marks["at once"]} if when in ("at-once", "interleaved") else {marks["at once"], marks["late"]}
        assert mark in wanted, f"double_free {bug}: {mark}"
