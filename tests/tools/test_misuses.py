"""Misuses: the list is whole, the evidence tells what became of a bug, and the default stops what its page says."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import misuses
from conformance.__main__ import main
from conformance.columns import HARDENED, USUAL, Column
from conformance.misuses import NO_BUG, Misuses, answer, build, gather
from conformance.stop import COUNTED, EXIT_UNFIT, EXIT_USAGE, MARKS, Evidence, Fault, Stop, judge, read
from freestone.allocators.discovery import configuration_for, find, from_path
from freestone.records.schema import Allocator, Configuration

REPOSITORY = Path(__file__).resolve().parents[2]
EVERY = misuses.every()


def test_every_bug_is_there_once_and_has_its_program() -> None:
    assert len({case.words for case in EVERY}) == len(EVERY)
    programs = {source.stem for source in (REPOSITORY / "tests" / "misuses").glob("*.cpp")}
    assert {case.words[0] for case in (*EVERY, *NO_BUG)} == programs


DOING, DONE = "doing\n", "doing\ndone\n"
HARMED, UNHARMED = "doing\ndone\nharmed\n", "doing\ndone\nunharmed\n"
LINE = "doing\nallocator: double free\n"
GUARD, HOLE = "fault ---p 0\n", "fault hole 0\n"
ABORT, SEGV = -signal.SIGABRT, -signal.SIGSEGV


@pytest.mark.parametrize(
    ("status", "output", "errors", "wanted"),
    [
        # It said what it saw, and ended the program.
        (ABORT, DOING, LINE, Stop.REPORTED),
        (ABORT, DONE, LINE, Stop.REPORTED_LATE),
        (ABORT, UNHARMED, LINE, Stop.REPORTED_LATE),
        (ABORT, HARMED, LINE, Stop.REPORTED_LATE),
        (1, DOING, LINE, Stop.REPORTED),
        (SEGV, DOING + GUARD, LINE, Stop.REPORTED),
        # Without a word, by a signal that no spoilt heap leads to.
        (ABORT, DOING, "doing\n", Stop.REPORTED),
        (-signal.SIGILL, DONE, "doing\n", Stop.REPORTED_LATE),
        (-signal.SIGTRAP, DOING, "doing\n", Stop.REPORTED),
        # By the C++ library, for another reason; by nobody knows whom.
        (ABORT, DONE, "doing\nterminate called after throwing an instance of 'std::bad_alloc'\n", Stop.CRASHED),
        (ABORT, DONE, "doing\n*** stack smashing detected ***: terminated\n", Stop.CRASHED),
        (1, DONE, "doing\n", Stop.CRASHED),
        # A fault, by what lies at its address.
        (SEGV, DOING + GUARD, "doing\n", Stop.GUARDED),
        (-signal.SIGBUS, DOING + GUARD, "doing\n", Stop.GUARDED),
        (SEGV, DONE + GUARD, "doing\n", Stop.GUARDED_LATE),
        (SEGV, DOING + HOLE, "doing\n", Stop.CRASHED),
        (SEGV, DOING + "fault ---p 1234\n", "doing\n", Stop.CRASHED),
        (SEGV, DOING + "fault r-xp 1234\n", "doing\n", Stop.CRASHED),
        (SEGV, DOING + "fault rw-p 0\n", "doing\n", Stop.CRASHED),
        (SEGV, DOING, "doing\n", Stop.CRASHED),
        # A fault that was survived, and another end.
        (ABORT, DOING + GUARD, LINE, Stop.REPORTED),
        (0, DOING + GUARD + "done\nunharmed\n", LINE, Stop.TOLD),
        # It said so and went on, or crashed for all it had said.
        (0, UNHARMED, LINE, Stop.TOLD),
        (0, HARMED, LINE, Stop.TOLD),
        (SEGV, DONE + HOLE, LINE, Stop.TOLD),
        (None, DONE, LINE, Stop.TOLD),
        # What was said before the bug says nothing of it.
        (0, HARMED, "allocator: settings\ndoing\n", Stop.NEVER),
        (SEGV, DONE + HOLE, "allocator: settings\ndoing\n", Stop.CRASHED),
        # Nobody did anything.
        (0, UNHARMED, "doing\n", Stop.HARMLESS),
        (0, HARMED, "doing\n", Stop.NEVER),
        (0, DONE, "doing\n", Stop.NEVER),
        (None, DONE, "doing\n", Stop.CRASHED),
        (-signal.SIGXCPU, DONE, "doing\n", Stop.CRASHED),
        # No verdict.
        (0, "", "", Stop.INVALID),
        (SEGV, HOLE, "", Stop.INVALID),
        (EXIT_USAGE, "", "", Stop.INVALID),
        (EXIT_UNFIT, DOING, "doing\n", Stop.INVALID),
    ],
)
def test_the_evidence_tells_what_became_of_it(status: int | None, output: str, errors: str, wanted: Stop) -> None:
    assert judge(read(status, output, errors)) is wanted


def test_a_free_that_did_nothing_was_refused() -> None:
    assert judge(read(0, UNHARMED, "doing\n"), frees=True) is Stop.TOLD
    assert judge(read(0, HARMED, "doing\n"), frees=True) is Stop.NEVER
    assert {case.family for case in EVERY if case.frees} == {"double free", "free of what is no block"}


@given(
    st.one_of(st.none(), st.integers(-64, 255)),
    st.frozensets(st.sampled_from(["doing", "done", "harmed", "unharmed"])),
    st.lists(st.text(min_size=1), max_size=2).map(tuple),
    st.one_of(st.none(), st.builds(Fault, st.sampled_from(["hole", "---p", "rw-p"]), st.integers(0, 2))),
    st.booleans(),
)
def test_luck_never_counts(
    status: int | None, words: frozenset[str], lines: tuple[str, ...], fault: Fault | None, frees: bool
) -> None:
    seen = judge(Evidence(status, words, lines, fault), frees=frees)
    assert seen.counts == (seen in COUNTED)
    if seen.counts and not lines:
        on_purpose = status is not None and -status in (signal.SIGABRT, signal.SIGTRAP, signal.SIGILL, signal.SIGSYS)
        guarded = fault is not None and fault.is_guarded
        assert on_purpose or guarded or (status == 0 and frees and "harmed" not in words)


def _column(name: str, group: str = USUAL) -> Column:
    allocator = Allocator(name=name, title=name, version="1.0", file=f"/lib/{name}.so", preload=[f"/lib/{name}.so"])
    return Column(Configuration(name=name, allocator=allocator, environment={}), group, by_chance=False)


@given(st.lists(st.lists(st.sampled_from(list(Stop)), min_size=1, max_size=4), min_size=8, max_size=8))
def test_a_total_is_the_mean_of_the_runs_and_lies_in_their_range(runs: list[Sequence[Stop]]) -> None:
    chosen = EVERY[: len(runs)]
    answers = {(case, "one"): stops for case, stops in zip(chosen, runs, strict=True)}
    whole = misuses.mean(chosen, "one", answers, list(Stop))
    assert whole == pytest.approx(len(chosen)), "every bug ends in one way or another"
    same = {key: [stops[0]] * 3 for key, stops in answers.items()}
    assert misuses.spread(chosen, "one", same) == (misuses.mean(chosen, "one", same, COUNTED),) * 2
    even = {key: [stops[i % len(stops)] for i in range(12)] for key, stops in answers.items()}
    least, most = misuses.spread(chosen, "one", even)
    assert least - 1e-9 <= misuses.mean(chosen, "one", even, COUNTED) <= most + 1e-9


def test_what_is_no_bug_is_not_counted() -> None:
    answers = {(case, "one"): [Stop.REPORTED] for case in EVERY}
    bugs = [case for case in EVERY if not case.worse]
    assert f"of {len(bugs)} bugs" in misuses.totals(EVERY, ["one"], answers)
    assert f"| one | **{len(bugs)}** | {len(bugs)} | 0 |" in misuses.totals(EVERY, ["one"], answers)
    assert {case.words[0] for case in EVERY if case.worse} == {"reuse"}
    assert misuses.each(EVERY, ["one"], answers).count("\n") == len(EVERY) + 2


def test_runs_that_differ_are_marked() -> None:
    answers = {(EVERY[0], "one"): [Stop.NEVER] * 3 + [Stop.GUARDED] * 7}
    assert "| ■7 ·3 |" in misuses.each(EVERY[:1], ["one"], answers)
    assert "**0.7** (0–1)" in misuses.totals(EVERY[:1], ["one"], answers)


def test_the_page_has_tables_for_the_hardened_and_for_the_usual_and_says_which_versions_they_are() -> None:
    found = [_column("safe", HARDENED), _column("plain")]
    answers = {(case, column.name): [Stop.REPORTED_LATE] for case in EVERY for column in found}
    parts = Misuses().parts(EVERY, found, answers)
    assert re.findall(r"\| (\w+) \| \*\*", parts["hardened"]) == ["safe"]
    assert re.findall(r"\| (\w+) \| \*\*", parts["usual"]) == ["plain"]
    assert parts["versions"] == "safe 1.0, plain 1.0."
    page = (REPOSITORY / "docs" / "misuses.md").read_text(encoding="utf-8")
    of_page = set(re.findall(r"<!-- made by make misuses: (.*) -->", page))
    assert of_page == {"origin", *parts} - {"totals", "families", "each"}


def test_a_page_of_some_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["misuses", "--only", "double free", "--page", str(tmp_path / "page.md")]) == 2
    assert "all bugs under all allocators" in capsys.readouterr().err
    assert not (tmp_path / "page.md").exists()


def test_no_such_bug_is_one_line_and_nothing_is_built_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("conformance.misuses.build", lambda: pytest.fail("built"))
    assert main(["misuses", "--only", "nonsense"]) == 2
    told = capsys.readouterr()
    assert re.fullmatch(r"misuses: no bug has 'nonsense' in its name; .*double free.*\n", told.err)
    assert told.out == ""


def test_bugs_are_chosen_by_any_part_of_family_program_and_arguments() -> None:
    assert misuses.choose("") == EVERY
    assert {case.family for case in misuses.choose("double free")} == {"double free"}
    assert {case.words[-1] for case in misuses.choose("malloc medium")} == {"medium"}
    assert [str(case) for case in misuses.choose("mismatch free-new")] == ["mismatch free-new small"]


def test_no_such_allocator_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["misuses", "--only", "double free", "--allocators", "nonesuch"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler (package g++)")


def _way(library: Path, options: str) -> Configuration:
    if options == "glibc":
        return configuration_for(find(["glibc"])[0])
    return configuration_for(from_path(str(library)), environment={"FREESTONE_OPTIONS": options} if options else {})


@pytest.fixture(scope="module")
def under(freestone_library: Path) -> Callable[[str, str], dict[str, Stop]]:
    """What becomes, in one run, of the bugs whose name begins so, under libfreestone with such options, or glibc."""
    build()

    def tried(options: str, beginning: str) -> dict[str, Stop]:
        way = _way(freestone_library, options)
        named = {str(case): case for case in [*EVERY, *NO_BUG]}
        return {name: answer(case, way) for name, case in named.items() if name.startswith(beginning)}

    return tried


@needs_compiler
@pytest.mark.parametrize("options", ["", "harden=1", "guard=1", "glibc"])
def test_a_program_without_a_bug_is_left_alone(under: Callable[[str, str], dict[str, Stop]], options: str) -> None:
    seen = under(options, "nobug")
    assert len(seen) == len(NO_BUG)
    assert set(seen.values()) == {Stop.HARMLESS}


@needs_compiler
def test_the_default_stops_double_frees(under: Callable[[str, str], dict[str, Stop]]) -> None:
    """At once and interleaved: in the second free. Delayed: late rather than never. The others: never by a crash."""
    for bug, stop in under("", "double_free").items():
        when = bug.split()[1]
        wanted = {Stop.REPORTED}
        if when not in ("at-once", "interleaved"):
            wanted |= {Stop.REPORTED_LATE} if when == "delayed" else {Stop.REPORTED_LATE, Stop.NEVER}
        assert stop in wanted, bug


@needs_compiler
@pytest.mark.parametrize(
    ("options", "bug", "wanted"),
    [
        ("harden=1", "double_free at-once malloc large", Stop.REPORTED),
        ("harden=1,guard_small=0", "after_free write at-once call small", Stop.REPORTED_LATE),
        ("harden=1", "after_free read at-once call large", Stop.REPORTED),
        ("harden=1,guard_small=0", "after_free read at-once call small", Stop.HARMLESS),
        ("harden=1", "mismatch free-new small", Stop.REPORTED),
        ("harden=1", "reuse address small", Stop.HARMLESS),
        ("guard=1", "after_free write at-once direct small", Stop.REPORTED),
        ("guard=1", "after_free read at-once direct large", Stop.REPORTED),
        ("", "after_free read at-once direct small", Stop.NEVER),
        ("", "out_of_bounds write over 1 call small", Stop.HARMLESS),
        ("", "out_of_bounds write over 32 call small", Stop.NEVER),
        ("", "out_of_bounds read over 32 call small", Stop.NEVER),
        ("", "mismatch free-new small", Stop.HARMLESS),
        ("", "reuse address small", Stop.NEVER),
        # Unmapped by the free: whatever is mapped next may lie there.
        ("glibc", "after_free read at-once direct large", Stop.CRASHED),
    ],
)
def test_a_bug_becomes_what_it_should(
    under: Callable[[str, str], dict[str, Stop]], options: str, bug: str, wanted: Stop
) -> None:
    assert under(options, bug) == {bug: wanted}


@needs_compiler
@pytest.mark.parametrize(("options", "guarded"), [("harden=1", True), ("guard=1", True), ("glibc", False)])
def test_a_program_says_what_lies_where_it_faulted(freestone_library: Path, options: str, guarded: bool) -> None:
    """A freed block's pages: libfreestone's that nobody may touch; glibc has unmapped them."""
    build()
    case = next(case for case in EVERY if case.words == ("after_free", "read", "at-once", "direct", "large"))
    fault = gather(case, _way(freestone_library, options)).fault
    assert fault is not None
    assert fault.is_guarded == guarded
    assert fault.rights == ("---p" if guarded else "hole")


@needs_compiler
def test_the_terminal_says_what_the_signs_stand_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["misuses", "--only", "double_free at-once malloc small", "--allocators", "glibc"]) == 0
    legend = capsys.readouterr().out.splitlines()[-1]
    assert legend.split(", ") == [f"{mark} {stop.value}" for stop, mark in MARKS.items()]
