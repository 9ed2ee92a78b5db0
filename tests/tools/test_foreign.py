"""The verdict on foreign programs: what counts as a difference, what proves an allocator, what the table says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from foreign.__main__ import main
from foreign.catalogue import PROGRAMS
from foreign.comparison import END, Outcome, compare
from foreign.page import BEGIN, with_table
from foreign.page import END as MARK
from foreign.program import Program
from foreign.programs.cpython import verdicts
from foreign.proof import lack
from foreign.room import Failure, Room
from foreign.table import Row, markdown

LIBRARY = "/x/libfreestone.so"


def outcomes(*values: str) -> list[Outcome]:
    return [Outcome(facts={"digest": value}) for value in values]


def told_by(*version: str) -> str:
    return Program("p", "w", "p", (), (), lambda room: None, version).told_version()


def test_a_version_is_the_number_among_what_a_command_says() -> None:
    assert told_by("echo", "2:2.6.2+samba4.17.12+dfsg-0+deb12u4") == "2.6.2"
    assert told_by("echo", "unknown option") == "?"
    assert told_by("/nowhere/at/all") == "?"


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="packages are named as Debian has them")
def test_every_program_that_is_here_tells_a_version() -> None:
    assert not [one.name for one in PROGRAMS.values() if not one.missing() and one.told_version() == "?"]


def test_equal_facts_agree() -> None:
    assert compare(outcomes("a", "a"), outcomes("a", "a")).agrees


def test_another_value_is_a_difference() -> None:
    verdict = compare(outcomes("a"), outcomes("b"))
    assert verdict.differences == ("digest: a under glibc, b under libfreestone (1 of 1 trials)",)
    assert not verdict.agrees


def test_a_fault_that_comes_once_in_three_trials_is_a_difference() -> None:
    assert not compare(outcomes("a", "a", "a"), outcomes("a", "b", "a")).agrees


def test_what_varies_under_glibc_alone_is_unsteady() -> None:
    verdict = compare(outcomes("a", "b"), outcomes("c", "d"))
    assert verdict.agrees
    assert len(verdict.unsteady) == 1


def test_a_fact_that_is_missing_differs_from_any() -> None:
    assert not compare(outcomes("a"), [Outcome()]).agrees


def test_an_early_end_under_libfreestone_is_a_difference() -> None:
    verdict = compare(outcomes("a"), [Outcome(facts={END: "redis-cli ended with -11"})])
    assert any("-11" in line for line in verdict.differences)


def test_an_end_unsteady_under_glibc_hides_no_end_in_every_trial() -> None:
    failed, well = Outcome(facts={END: "it ended with 1"}), Outcome(facts={"digest": "a"})
    other = Outcome(facts={END: "it ended with -11"})
    assert any(END in line for line in compare([failed, well, well], [failed] * 3).differences)
    assert any("(3 of 3 trials)" in line for line in compare([failed, well, well], [failed] * 3).differences)
    assert any("-11" in line for line in compare([failed, well, well], [well, other, well]).differences)
    assert any(END in line for line in compare([failed, well, well], [well, failed, well]).unsteady)


@pytest.mark.parametrize(("here", "looked_at"), [(2.9, False), (3.1, True)])
def test_three_times_the_time_is_shown_and_fails_nothing(here: float, looked_at: bool) -> None:
    sides = [Outcome(wall_s=1.0)], [Outcome(wall_s=here)]
    verdict = compare(*sides)
    assert bool(verdict.to_look_at) == looked_at
    assert verdict.agrees
    (line,) = markdown([Row("a", "1.0", "works", *sides, verdict)]).splitlines()[2:]
    assert f"| {here:.2f} x |" in line
    assert ("to be looked at" in line) == looked_at


def test_no_line_of_git_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foreign.programs.git.SCRIPT", "echo first; echo packed-refs; echo pack; echo last")
    here = room(tmp_path)
    PROGRAMS["git"].work(here)
    assert list(here.facts.values()) == ["first", "packed-refs", "pack", "last"]


def test_what_fails_under_glibc_as_well_shows_nothing() -> None:
    failed = [Outcome(facts={END: "it ended with 1"})]
    verdict = compare(failed, failed)
    assert "fails under glibc" in (verdict.void or "")
    assert not verdict.agrees


def test_an_unproved_trial_shows_nothing() -> None:
    assert compare(outcomes("a"), [Outcome(facts={"digest": "a"}, void="unseen")]).void == "unseen"


def test_no_trials_show_nothing() -> None:
    assert not compare([], []).agrees


def note(program: str, *providers: str) -> str:
    return "\t".join([f"/usr/bin/{program}", *providers])


def test_a_proof_needs_every_image_served_and_every_program_seen() -> None:
    whole = [note("git", *[LIBRARY] * 4)]
    assert lack(whole, LIBRARY, ["git"]) is None
    assert lack(whole, LIBRARY, ["git", "node"]) == "node ran without being seen"
    stranger = [*whole, note("sh", LIBRARY, LIBRARY, "/lib/libc.so.6", LIBRARY)]
    assert "/usr/bin/sh was served by" in (lack(stranger, LIBRARY, ["git"]) or "")


def test_the_last_try_of_a_test_counts() -> None:
    report = b"""<testsuites><testsuite>
        <testcase name="test.test_a.Case.test_one"><failure/></testcase><testcase name="test.test_a.Case.test_two"/>
        <testcase name="test.test_b.Case.test_one"><error/></testcase></testsuite>
        <testsuite><testcase name="test.test_a.Case.test_one"/></testsuite></testsuites>"""
    assert verdicts(report) == {
        "test_a": "2 run, failed: none",
        "test_b": "1 run, failed: test.test_b.Case.test_one",
    }


def test_the_table_tells_differences_and_what_was_left_out() -> None:
    rows = [
        Row("a", "1.0", "works", outcomes("x"), outcomes("y"), compare(outcomes("x"), outcomes("y"))),
        Row("b", "", "works", skipped="b is not here (Debian: b)"),
    ]
    lines = markdown(rows).splitlines()
    assert "x under glibc, y under libfreestone" in lines[2]
    assert "not run: b is not here" in lines[3]


def test_the_table_replaces_the_one_before() -> None:
    page = f"above\n{BEGIN}\nold\n{MARK}\nbelow\n"
    once = with_table(page, "here", "new\n")
    assert "old" not in once
    assert with_table(once, "here", "new\n") == once
    with pytest.raises(ValueError, match="no table"):
        with_table("above", "", "")


def room(folder: Path) -> Room:
    return Room(folder, "", folder / "notes", seconds=1)


def test_a_command_that_fails_ends_the_trial_with_its_name_and_status(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"^sh ended with 7$"):
        room(tmp_path).run(["sh", "-c", "exit 7"])


def test_a_server_that_ends_before_it_answers_is_a_failure(tmp_path: Path) -> None:
    with (
        pytest.raises(Failure, match="ended with 3"),
        room(tmp_path).server(["sh", "-c", "exit 3"], lambda: False, "log"),
    ):
        pass


def test_what_a_program_needs_and_is_not_here_is_named() -> None:
    program = Program("a", "", "a", ("sh", "no-such-command", "/no/such/*/file"), (), lambda _: None, ("sh",))
    assert program.missing() == ["no-such-command", "/no/such/*/file"]


def test_every_program_has_its_name_and_images() -> None:
    assert all(name == program.name and program.images for name, program in PROGRAMS.items())


def test_a_program_that_is_not_known_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["git", "nosuch"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("foreign: there is no nosuch among redis, git, ")
