"""The verdict on foreign programs: what counts as a difference, what proves an allocator, what the table says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from conformance.__main__ import main
from conformance.comparison import END, Outcome, compare
from conformance.foreign import Foreign, Row, Work, conduct, markdown
from foreign_programs.catalogue import PROGRAMS
from foreign_programs.cpython import verdicts
from foreign_programs.program import Program
from foreign_programs.proof import lack
from foreign_programs.room import Failure, Room

LIBRARY = "/x/libfreestone.so"


def outcomes(*values: str) -> list[Outcome]:
    return [Outcome(facts={"digest": value}) for value in values]


def works(name: str) -> Work:
    return Work(Program(name, "works", name, (), (), lambda room: None, ("echo", "1.0")))


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
    (line,) = markdown([(works("a"), Row(*sides, verdict))]).splitlines()[2:]
    assert f"| {here:.2f} x |" in line
    assert ("to be looked at" in line) == looked_at


def test_no_line_of_git_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foreign_programs.git.SCRIPT", "echo first; echo packed-refs; echo pack; echo last")
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
        (works("a"), Row(outcomes("x"), outcomes("y"), compare(outcomes("x"), outcomes("y")))),
        (works("b"), Row(skipped="b is not here (Debian: b)")),
    ]
    lines = markdown(rows).splitlines()
    assert "x under glibc, y under libfreestone" in lines[2]
    assert "not run: b is not here" in lines[3]


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
    assert main(["foreign", "--only", "git nosuch"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("foreign: there is no nosuch among redis, git, ")


def leave_a_child_and_fail(room: Room) -> None:
    room.start(["sh", "-c", "setsid sleep 600 & echo $! >child; wait"], "log")
    room.wait(lambda: (room.folder / "child").exists() and bool((room.folder / "child").read_text()))
    (room.folder.parent / "child").write_text((room.folder / "child").read_text())
    raise Failure("it is broken")


@pytest.mark.parametrize(("limit_s", "end"), [(60.0, "it is broken"), (-20.0, "did not come within the limit")])
def test_a_trial_ends_with_its_failure_or_its_limit_and_leaves_no_process(
    tmp_path: Path, limit_s: float, end: str
) -> None:
    work = leave_a_child_and_fail if limit_s > 0 else lambda room: room.wait(lambda: False)
    program = Program("p", "w", "p", (), ("p",), work, ("echo", "1"), limit_s=limit_s)
    outcome = conduct(Work(program), tmp_path / "library", tmp_path, tmp_path / "preload", seconds=1)
    assert outcome.facts == {END: end}
    if limit_s > 0:
        assert not Path(f"/proc/{(tmp_path / 'child').read_text().strip()}").exists()


def test_a_trial_that_fails_by_itself_is_void(tmp_path: Path) -> None:
    program = Program("p", "w", "p", (), (), lambda room: room.nothing, ("echo", "1"))  # type: ignore[attr-defined]
    outcome = conduct(Work(program), tmp_path, tmp_path, tmp_path, seconds=1)
    assert outcome.void == f"the trial itself failed (p, {tmp_path.name})"


def test_the_page_has_a_place_for_each_part() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "foreign-programs.md").read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- made by make foreign: (.*) -->", page)) == {"origin", *Foreign().parts([], [], {})}
