"""Hazards: the list is whole, a verdict says what was seen, the table is made of answers, and programs can fail."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import control_group
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import hazard_list, hazards, process
from conformance.__main__ import main
from conformance.columns import Column
from conformance.hazard_list import CatalogueError, Hazard, Run
from conformance.hazards import Hazards
from conformance.process import Ended
from conformance.suite import run as run_suite
from conformance.verdict import WORST_FIRST, Kind, Verdict, compare, figure_of, judge, last_line, worst
from freestone.allocators import discovery
from freestone.records.schema import Allocator, Configuration

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = REPOSITORY / "tests" / "hazards"
EVERY = hazard_list.read(SOURCES / "hazards.toml")

HEAD = '[[hazard]]\nnumber = "1"\nname = "one"\nright = "r"\nsource = "s"\n'


def hazard(number: str = "1", **more: object) -> Hazard:
    values = {"name": f"name-{number}", "right": "it holds", "source": "x#1", "programs": ("p.c",), **more}
    return Hazard(number=number, **values)  # type: ignore[arg-type]


# --- the list -------------------------------------------------------------------------------------------------------


def test_every_hazard_has_a_row() -> None:
    expected = [str(number) for number in range(1, 46)] + [f"F{number}" for number in range(1, 14)]
    for half in ("34", "F7"):  # the other half of the sentence, a figure beside another allocator's
        expected.insert(expected.index(half) + 1, f"{half}b")
    assert [each.number for each in EVERY] == expected


@pytest.mark.parametrize("each", EVERY, ids=lambda each: each.name)
def test_what_a_hazard_names_exists(each: Hazard) -> None:
    named = [*each.programs, *each.libraries, *each.reads, *(name for name in each.link if name.endswith(".c"))]
    assert not [name for name in named if not (REPOSITORY / name).is_file()]
    built = {Path(name).stem for name in each.programs} | {Path(name).name for name in each.programs}
    for run in each.runs:
        assert built & {Path(word).name for word in run.command.split()}, f"{run.command} runs none of its programs"


def test_every_program_here_belongs_to_a_hazard() -> None:
    named = {Path(name).name for each in EVERY for name in (*each.programs, *each.libraries, *each.reads)}
    beside = {"hazards.toml", "hazard.h", "profiles.h", "serving.c", "planted_library.c"}
    assert {path.name for path in SOURCES.iterdir()} - named == beside


def test_every_planted_fault_is_one_the_library_knows() -> None:
    known = set(re.findall(r'\bis\("([\w-]+)"\)', (SOURCES / "planted_library.c").read_text(encoding="utf-8")))
    # Properties of the library or of libc under it: no entries beyond a few, sizes before every block.
    properties = {"four-entries", "headers"}
    used = {run.planted for each in EVERY for run in each.runs if run.planted}
    assert used == known - {"block-for-zero"} | properties


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + 'program = ["a.c"]', "cannot be read: .*'program'"),
        ('[[hazard]]\nname = "one"', "cannot be read: .*missing"),
        (HEAD, "neither a program nor a reason"),
        (HEAD + 'programs = ["a.c"]\nonly = ["x"]', "no reason"),
        (HEAD + 'programs = ["a.c"]\nneeds = "luck"', "nothing that can be needed"),
        (HEAD + 'programs = ["a.c"]', "either a planted fault or why there is none"),
        (
            HEAD + 'programs = ["a.c"]\nplanted = "p"\nruns = [{command = "a", unplaned = "u"}]',
            "be read: .*unplaned",
        ),
        ((HEAD + 'otherwise = "o"\n') * 2, "two hazards have the number 1"),
        ("hazard", "cannot be read"),
    ],
)
def test_a_list_that_cannot_be_meant_is_refused(text: str, said: str) -> None:
    with pytest.raises(CatalogueError, match=said):
        hazard_list.parse(text)


def test_hazards_are_chosen_by_number_and_name() -> None:
    assert [each.number for each in hazard_list.choose(EVERY, ["stall", "6"])] == ["6", "F7"]
    assert hazard_list.choose(EVERY, []) == EVERY
    with pytest.raises(CatalogueError, match="there is no hazard stal;"):
        hazard_list.choose(EVERY, ["stal"])


def test_each_run_has_the_fault_of_its_own_or_of_its_hazard_or_a_reason() -> None:
    runs = '["a", {command = "b", planted = "q"}, {command = "c", unplanted = "it waits"}]'
    (one,) = hazard_list.parse(HEAD + f'programs = ["a.c"]\nplanted = "p"\nruns = {runs}')
    assert one.runs == (Run("a", planted="p"), Run("b", planted="q"), Run("c", unplanted="it waits"))
    (alone,) = hazard_list.parse(HEAD + 'programs = ["x/a.c"]\nplanted = "p"')
    assert alone.runs == (Run("a", planted="p"),)


def test_a_hazard_in_two_parts_is_chosen_by_its_number() -> None:
    assert [each.number for each in hazard_list.choose(EVERY, ["34"])] == ["34", "34b"]


# --- verdicts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ended", "kind", "figure"),
    [
        (Ended(0, "all well\n"), Kind.PASS, "all well"),
        (Ended(0, "", "noise"), Kind.PASS, ""),
        (Ended(1, "", "/a/b.c:3: does not hold: x < 2: 5 KiB\n"), Kind.FAIL, "5 KiB"),
        (Ended(1), Kind.FAIL, "without a figure"),
        (Ended(3, "", "odd"), Kind.FAIL, "exit status 3: odd"),
        (Ended(77, "", "skipped: no clone\n"), Kind.NOT_TRIED, "no clone"),
        (Ended(75, "none here"), Kind.NOT_APPLICABLE, "none here"),
        (Ended(78, "", "malloc is served by libc"), Kind.INVALID, "malloc is served by libc"),
        (Ended(-11, "", "last word"), Kind.CRASH, "SIGSEGV: last word"),
        (Ended(-14), Kind.HANG, "its alarm ended it"),
        (Ended(None), Kind.HANG, "not ended after 5 s"),
    ],
)
def test_the_end_of_a_program_is_a_verdict(ended: Ended, kind: Kind, figure: str) -> None:
    assert judge(ended, 5.0) == Verdict(kind, figure)


@given(st.lists(st.sampled_from(list(Kind)), min_size=1, max_size=5))
def test_the_worst_run_counts(kinds: list[Kind]) -> None:
    verdict = worst([(f"run {i}", Verdict(kind, f"figure {i}")) for i, kind in enumerate(kinds)])
    assert verdict.kind is min(kinds, key=WORST_FIRST.index)
    assert f"figure {kinds.index(verdict.kind)}" in verdict.figure


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(0.1, 10), st.floats(0, 1e6))
def test_a_ratio_to_glibc_fails_above_its_bound(own: float, floor: float, times: float, slack: float) -> None:
    verdict = compare(own, floor, times=times, slack=slack)
    assert verdict.bad == (own > floor * times + slack)
    assert "snmalloc" in compare(own, floor, times=times, slack=slack, beside="snmalloc").figure


def test_a_number_is_taken_from_a_program_that_ended_well_only() -> None:
    assert figure_of(Ended(0, "noise\n12.5\n")) == 12.5
    assert figure_of(Ended(1, "12.5")) is None
    assert figure_of(Ended(0, "12 KiB")) is None


def test_folders_of_this_machine_are_left_out() -> None:
    assert last_line("/home/one/cache/lib.so: cannot be loaded") == "lib.so: cannot be loaded"
    assert last_line("it opens /sys/devices/system/node") == "it opens /sys/devices/system/node"


# --- the table and the store ----------------------------------------------------------------------------------------


def test_the_tables_say_what_was_seen() -> None:
    every = one, two, three = [
        hazard("1"),
        hazard("2", scaled="smaller", runs=(Run("p", planted="lock"), Run("p 2", unplanted="it waits"))),
        hazard("3", programs=(), otherwise="no means"),
    ]
    answers = {
        (one, "freestone"): Verdict(Kind.PASS, "1.0"),
        (one, "theirs"): Verdict(Kind.FAIL, "2 | 3"),
        (two, "freestone"): Verdict(Kind.CRASH, "SIGSEGV"),
        (two, "theirs"): Verdict(Kind.PASS),
        (three, "freestone"): Verdict(Kind.NOT_TRIED, "no means"),
        (three, "theirs"): Verdict(Kind.NOT_TRIED, "no means"),
    }
    allocators = [Allocator(name=name, title=name, version="1") for name in ("freestone", "theirs")]
    found = [Column(Configuration(name=each.name, allocator=each, environment={})) for each in allocators]
    parts = Hazards().parts(every, found, answers)
    assert "| 1 | name-1 | pass | **fail** |" in parts["matrix"]
    assert "| 2 | name-2 | **crash** | pass |" in parts["matrix"]
    assert "|  | passed, of those tried | 1 of 2 | 1 of 2 |" in parts["matrix"]
    assert "| 1 | name-1 | theirs | fail | 2 \\| 3 |" in parts["figures"]
    assert "| freestone, planted: lock, nothing planted: it waits | smaller |" in parts["criteria"]
    assert "| 3 | name-3 | all | not tried | no means |" in parts["reasons"]
    assert parts["versions"] == "freestone 1, theirs 1."


def test_an_answer_that_is_missing_is_no_pass() -> None:
    text = hazards.matrix([hazard("1")], ["ours"], {})
    assert "| 1 | name-1 | ? |" in text
    assert "0 of 0" in text


def test_answers_survive_an_interruption(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    hazards.append(file, hazard("1"), "ours", "key", Verdict(Kind.FAIL, "5"))
    hazards.append(file, hazard("1"), "ours", "new", Verdict(Kind.PASS))
    with file.open("a") as cut:
        cut.write('{"hazard": "2", "alloc')
    assert hazards.read(file) == {("1", "ours"): ("new", Verdict(Kind.PASS))}


def test_a_changed_library_is_another_question(tmp_path: Path) -> None:
    library = tmp_path / "lib.so"
    allocator = Allocator(name="lib", title="lib", file=str(library))
    library.write_bytes(b"one")
    before = hazards.key_of(EVERY[0], allocator)
    library.write_bytes(b"two")
    assert hazards.key_of(EVERY[0], allocator) != before
    assert hazards.key_of(EVERY[1], allocator) != hazards.key_of(EVERY[0], allocator)


def _of_the_list(rows: str) -> list[list[str]]:
    """Of rows of the criteria, what comes from the list of hazards: all but what was seen, and the faults planted."""
    cells = [re.split(r" ?(?<!\\)\| ?", line)[1:-1] for line in rows.splitlines()[2:]]
    faults = [re.search(r"((?:, )?(?:nothing )?planted: .*)?$", row[4]).group().removeprefix(", ") for row in cells]
    return [[*row[:3], fault, *row[5:]] for row, fault in zip(cells, faults, strict=True)]


def test_the_page_says_what_the_list_says() -> None:
    """Also where the list was changed and nobody tried again."""
    text = (REPOSITORY / "docs" / "hazards.md").read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- made by make hazards: (.*) -->", text)) == {"origin", *Hazards().parts([], [], {})}
    tables = [part for part in text.split("\n\n") if part.startswith("| # | hazard |")]
    matrix, criteria = tables[0], next(part for part in tables if "| right is |" in part)
    rows = [line.split(" | ")[:2] for line in matrix.splitlines()[2:-1]]
    assert rows == [[f"| {each.number}", each.name] for each in EVERY]
    assert _of_the_list(criteria) == _of_the_list(hazards.criteria(EVERY, [], {}))


# --- the conditions -------------------------------------------------------------------------------------------------


def test_the_group_of_memory_is_found() -> None:
    assert control_group.own_group("4:memory:/a\n3:cpu:/b\n0::/c") == (1, "/a")
    assert control_group.own_group("0::/c") == (2, "/c")
    assert control_group.own_group("3:cpu:/b") is None


def test_what_is_said_of_the_time_for_giving_back_is_what_the_programs_wait() -> None:
    (waited,) = re.findall(r"RETURNED_S = (\d+)", (SOURCES / "hazard.h").read_text())
    (idle,) = [each for each in EVERY if each.name == "idle"]
    assert re.findall(r"in (\d+) s", idle.right) == [waited]
    for file in SOURCES.glob("*.c"):
        assert not re.search(r"IDLE_MS|tasks_await_resident", file.read_text()), f"{file.name}: as long as tests wait"
    for each in EVERY:
        assert each.limit_s > int(waited), f"{each.name} would hang where it fails"


def test_a_missing_program_is_named() -> None:
    with hazards.met(hazard(commands=("sh",))):
        pass
    with (
        pytest.raises(hazards.Unmet, match="there is no no-such-program here"),
        hazards.met(hazard(commands=("no-such-program",))),
    ):
        pass


# --- end to end -----------------------------------------------------------------------------------------------------

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
of_built = pytest.mark.xdist_group("hazards")  # what they share is made once
FAST = ("entries", "zero-sizes", "errno", "usable-size", "foreign-free", "sandbox")
SLOW = ("stall", "sleepers", "figures")
"""Of which one run is made at a time."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hazards")
    hazards.build(hazard_list.choose(EVERY, (*FAST, *SLOW)), folder, [hazards.FAULTY])
    return folder


@pytest.fixture(scope="module")
def glibc() -> Configuration:
    (system,) = discovery.find([discovery.SYSTEM])
    return discovery.configuration_for(system)


@pytest.fixture(scope="module")
def freestone(freestone_library: Path) -> Configuration:
    return discovery.configuration_for(discovery.from_path(f"freestone={freestone_library}"))


@pytest.mark.long
@needs_compiler
@of_built
@pytest.mark.parametrize("name", FAST)
def test_libfreestone_passes(name: str, built: Path, freestone: Configuration, glibc: Configuration) -> None:
    (each,) = hazard_list.choose(EVERY, [name])
    assert hazards.answer(each, freestone, glibc, built).kind is Kind.PASS


PLANTED_LIMIT_S = 15
"""A heap with a fault may hang, which is seen too: not waited for as long as an allocator is that may be slow."""


@needs_compiler
@of_built
@pytest.mark.parametrize("name", FAST)
def test_a_planted_fault_is_seen(name: str, built: Path, glibc: Configuration) -> None:
    (each,) = hazard_list.choose(EVERY, [name])
    each = replace(each, limit_s=min(each.limit_s, PLANTED_LIMIT_S))
    assert hazards.answer(each, hazards.faulty(each.planted, built), glibc, built).bad


@needs_compiler
@of_built
@pytest.mark.long
@pytest.mark.parametrize(
    ("run", "fault"),
    [
        ("stall free 65536 64", "holds-lock"),  # who waits uses no processor time
        ("stall free 65536 64", "stall"),
        ("stall births", "holds-lock"),
        ("stall forks", "holds-lock"),
        ("sleepers instructions", "walks-threads"),
        ("sleepers memory", "keeps"),
        ("stats_gap freed", "half-told"),
        ("stats_gap returned", "never-less"),
    ],
)
def test_one_run_sees_one_fault(run: str, fault: str, built: Path, glibc: Configuration) -> None:
    (each,) = [one for one in hazard_list.choose(EVERY, SLOW) if Path(one.programs[0]).stem == run.split()[0]]
    each = replace(each, runs=(Run(run, planted=fault),), only=())
    assert hazards.answer(each, hazards.faulty(fault, built), glibc, built).kind is Kind.FAIL


@needs_compiler
@of_built
@pytest.mark.parametrize("run", ["stats_gap freed", "stats_gap returned"])
def test_figures_that_are_true_pass(run: str, built: Path, glibc: Configuration) -> None:
    (each,) = hazard_list.choose(EVERY, ["figures"])
    each = replace(each, runs=(Run(run, planted="none"),))
    verdict = hazards.answer(replace(each, only=()), hazards.faulty("none", built), glibc, built)
    assert verdict.kind is Kind.PASS, verdict.figure


@pytest.mark.long
@needs_compiler
@of_built
def test_a_machine_with_other_work_is_no_fault_of_the_allocator(
    built: Path, freestone: Configuration, glibc: Configuration
) -> None:
    """Twice as many loops as CPUs run beside it: being preempted does not count."""
    (each,) = hazard_list.choose(EVERY, ["stall"])
    each = replace(each, runs=(Run("stall free 65536 64", planted="stall"),))
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        verdict = hazards.answer(each, freestone, glibc, built)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    assert verdict.kind is Kind.PASS, verdict.figure


def scripted(folder: Path, name: str, text: str) -> str:
    script = folder / name
    script.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    script.chmod(0o755)
    return name


def test_a_run_that_is_blind_is_told_though_another_sees(
    tmp_path: Path, glibc: Configuration, capsys: pytest.CaptureFixture[str]
) -> None:
    sees = scripted(tmp_path, "sees", '[ "$PLANTED" != odd ]')
    blind, unserved = scripted(tmp_path, "blind", "exit 0"), scripted(tmp_path, "unserved", "exit 78")
    runs = Run(sees, planted="odd"), Run(blind, planted="odd"), Run(unserved, planted="odd"), Run("x", unplanted="why")
    assert hazards.planted(hazard("1", runs=runs[::3]), glibc, tmp_path) == 0
    assert hazards.planted(hazard("1", runs=runs[:2]), glibc, tmp_path) == 1
    assert hazards.planted(hazard("1", runs=runs[2:]), glibc, tmp_path) == 1
    told = capsys.readouterr().out
    assert "sees: odd: seen" in told
    assert "blind: odd: NOT SEEN" in told
    assert "unserved: odd: NOT SEEN: invalid" in told
    assert "x: nothing planted: why" in told


def named(configuration: Configuration, name: str) -> Configuration:
    return Configuration(name=name, allocator=configuration.allocator, environment=configuration.environment)


def test_a_crash_of_glibc_is_no_answer_of_the_allocator(tmp_path: Path, glibc: Configuration) -> None:
    crash = scripted(tmp_path, "crash", f'[ "$HAZARD_NAME" = {glibc.name} ] && kill -SEGV $$; echo 5')
    one = hazard("1", runs=(Run(crash, planted="p"),), times=1.0)
    verdict = hazards.answer(one, named(glibc, "ours"), glibc, tmp_path)
    assert (verdict.kind, verdict.bad) == (Kind.NOT_TRIED, False)
    assert "glibc beside it: crash" in verdict.figure
    assert hazards.answer(one, glibc, glibc, tmp_path).kind is Kind.CRASH
    other = hazard("1", runs=(Run(scripted(tmp_path, "own", "kill -SEGV $$"), planted="p"),), times=1.0)
    assert hazards.answer(other, named(glibc, "ours"), glibc, tmp_path).kind is Kind.CRASH


def test_an_allocator_that_is_not_here_to_ask_beside_is_no_answer(tmp_path: Path, glibc: Configuration) -> None:
    one = hazard("1", runs=(Run("p", planted="p"),), times=2.0, beside="another")
    suite = Hazards()
    suite.built, suite.floors = tmp_path, {"glibc": glibc}
    assert suite.answer(one, Column(glibc)) == Verdict(Kind.NOT_TRIED, "there is no another here to ask it beside")


def test_what_was_answered_before_an_interruption_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def answer(each: Hazard, *_: object) -> Verdict:
        asked.append(each.number)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return Verdict(Kind.PASS, "all well")

    monkeypatch.setattr(hazards, "build", lambda *_: None)
    suite = Hazards()
    suite.built = tmp_path
    monkeypatch.setattr(hazards, "answer", answer)
    assert run_suite(suite, ["--only", "6 20 44", "--allocators", "glibc"]) == 130
    out, err = capsys.readouterr()
    assert "| 6 | fork-under-load | pass |" in out
    assert "zero-sizes" not in out
    assert "20 zero-sizes, glibc ..." in err, "what is being tried is told before it is"
    assert "interrupted; answers so far: 1" in err
    assert set(hazards.read(tmp_path / "answers.jsonl")) == {("6", "glibc")}


@pytest.mark.usefixtures("heard_signals")
@needs_compiler
def test_an_interruption_ends_the_program_that_is_tried(tmp_path: Path) -> None:
    """It is in a session of its own, where the terminal's signal does not come."""
    script = (
        "import sys; sys.path.insert(0, 'tools'); from conformance import process\n"
        f"process.ended(['sh', '-c', 'echo $$ >{tmp_path}/pid; exec sleep 60'], {{}}, 60)"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=REPOSITORY, stderr=subprocess.DEVNULL) as tool:
        try:
            for _ in range(200):
                if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip():
                    break
                time.sleep(0.05)
            pid = int((tmp_path / "pid").read_text())
            tool.send_signal(signal.SIGINT)
            assert tool.wait(timeout=20) != 0
        finally:
            tool.kill()
    for _ in range(100):
        if not _lives(pid):
            break
        time.sleep(0.05)
    assert not _lives(pid)


def _lives(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_an_answer_is_asked_again_when_anything_it_comes_from_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, glibc: Configuration
) -> None:
    header, judge_code = tmp_path / "hazard.h", tmp_path / "verdict.py"
    header.write_text("one")
    judge_code.write_text("one")
    monkeypatch.setattr(hazards, "headers", lambda: [header])
    monkeypatch.setattr(hazards, "JUDGES", (judge_code,))
    (one,) = hazard_list.choose(EVERY, ["errno"])

    def key(of: Hazard = one) -> str:
        return hazards.key_of(of, glibc.allocator)

    first = key()
    assert key() == first
    assert key(replace(one, limit_s=one.limit_s + 1)) != first
    assert key(replace(one, reads=("tests/hazards/sanitized.c",))) != first
    for changed in (header, judge_code):
        changed.write_text("two")
        assert key() != first
        changed.write_text("one")


@needs_compiler
def test_a_convention_counts_only_where_it_is_asked_for(tmp_path: Path, glibc: Configuration) -> None:
    """realloc(p, 0) may give a block, as some allocators' does, but for hazard 20."""
    (entries, zero, deferred) = hazard_list.choose(EVERY, ["entries", "zero-sizes", "deferred-free"])
    hazards.build([entries, zero, deferred], tmp_path, [hazards.FAULTY])
    under = hazards.faulty("block-for-zero", tmp_path)
    free, trace = replace(entries, runs=(Run("every_free"),)), replace(deferred, runs=(Run("trace 1 21 2000"),))
    assert [hazards.answer(each, under, glibc, tmp_path).kind for each in (free, trace)] == [Kind.PASS] * 2
    assert hazards.answer(zero, under, glibc, tmp_path).bad


@needs_compiler
@pytest.mark.parametrize(("options", "least"), [((), "16 16 16"), (("-DFREESTONE_TESTS_ANY_ALLOCATOR",), "1 8 16")])
def test_any_allocator_aligns_a_block_by_what_it_can_hold(tmp_path: Path, options: tuple[str, ...], least: str) -> None:
    source, output = tmp_path / "least.c", tmp_path / "least"
    source.write_text(
        '#include "conventions.h"\nint main(void) { printf("%zu %zu %zu\\n", least_alignment(1), least_alignment(8),'
        " least_alignment(100)); return 0; }\n"
    )
    folders = [f"-I{REPOSITORY / name}" for name in hazards.HEADERS]
    subprocess.run(["gcc", "-D_GNU_SOURCE", *options, *folders, str(source), "-o", str(output)], check=True)
    assert subprocess.check_output([output], text=True).strip() == least


@needs_compiler
def test_what_holds_more_than_ever_has_given_back_nothing(tmp_path: Path) -> None:
    """The difference is one of sizes without a sign."""
    source, output = tmp_path / "percent.c", tmp_path / "percent"
    source.write_text(
        '#include "hazard.h"\nint main(void) { printf("%zu %zu %zu\\n", percent_given_back(100, 50, 200),'
        " percent_given_back(100, 50, 110), percent_given_back(100, 0, 100)); return 0; }\n"
    )
    folders = [f"-I{REPOSITORY / name}" for name in hazards.HEADERS]
    subprocess.run(["gcc", "-D_GNU_SOURCE", *folders, str(source), "-o", str(output)], check=True)
    assert subprocess.check_output([output], text=True).split() == ["0", "80", "0"]


@needs_compiler
@of_built
def test_an_allocator_that_does_not_serve_is_no_answer(built: Path, glibc: Configuration) -> None:
    """The proof is inside the program: with the preload taken away it is libc that serves."""
    (each,) = hazard_list.choose(EVERY, ["errno"])
    without = Configuration(
        name="planted",
        allocator=hazards.faulty("", built).allocator.model_copy(update={"preload": []}),
        environment={},
    )
    verdict = hazards.answer(each, without, glibc, built)
    assert verdict.kind is Kind.INVALID
    assert "malloc is served by libc" in verdict.figure


@needs_compiler
def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    ended = process.ended(["sh", "-c", "sleep 60 & sleep 60"], {}, 0.3)
    assert judge(ended, 0.3).kind is Kind.HANG


@pytest.mark.parametrize(
    ("before", "worked", "on"),
    [(0.0, 3.0, True), (3.0, 3.2, True), (3.0, 3.0, False), (0.0, 0.0, False), (9.0, 10.0, False)],
)
def test_a_hang_is_told_by_work_done_and_not_by_a_busy_machine(before: float, worked: float, on: bool) -> None:
    assert process.goes_on(before, worked, 10.0) == on


def test_a_program_that_got_too_little_of_the_machine_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LOOK_S", 0.05)
    monkeypatch.setattr(process, "WORK_LEAST_S", 0.00001)
    work = itertools.count(1)
    monkeypatch.setattr(process, "worked_s", lambda _: 0.00001 * next(work))
    assert process.ended(["sh", "-c", "sleep 0.6; echo done"], {}, 0.15) == Ended(0, "done\n", "")
    monkeypatch.setattr(process, "worked_s", lambda _: 0.0)
    assert process.ended(["sleep", "60"], {}, 0.15).status is None


def test_the_work_of_a_group_counts_that_of_its_children() -> None:
    child = "if os.fork() == 0:\n    while time.process_time() < 0.3: pass\n    os._exit(0)\n"
    program = f"import os, time\n{child}os.wait(); print(1, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"1\n"
        assert process.worked_s(worker.pid) >= 0.2  # the kernel counts in ticks
        worker.kill()


def test_the_figures_of_what_did_not_pass_stand_there_where_something_did_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where all passed a line ``Nothing.`` stood below the table, and nobody knew of what."""
    monkeypatch.setattr(hazards, "build", lambda *_: None)
    suite = Hazards()
    suite.built = tmp_path
    for kind, told in ((Kind.PASS, False), (Kind.FAIL, True)):
        monkeypatch.setattr(hazards, "answer", lambda *_, kind=kind: Verdict(kind, "a figure"))
        run_suite(suite, ["--only", "6", "--allocators", "glibc"])
        out = capsys.readouterr().out
        assert ("| 6 | fork-under-load | glibc | fail | a figure |" in out) == told
        assert "Nothing" not in out


def test_a_page_needs_all_hazards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hazards", "--only", "6", "--page", str(tmp_path / "page.md")]) == 2
    assert "a run of all hazards" in capsys.readouterr().err
