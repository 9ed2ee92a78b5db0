"""Hazards: the list is whole, a verdict says what was seen, the table is made of answers, and programs can fail."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.allocators import discovery
from freestone.records.schema import Allocator, Configuration
from hazards import building, catalogue, conditions, page, planted, store, table, trial
from hazards.__main__ import main
from hazards.catalogue import CatalogueError, Hazard
from hazards.verdict import WORST_FIRST, Ended, Kind, Verdict, compare, figure_of, judge, last_line, worst

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = REPOSITORY / "tests" / "hazards"
EVERY = catalogue.read(SOURCES / "hazards.toml")

HEAD = '[[hazard]]\nnumber = "1"\nname = "one"\nright = "r"\nsource = "s"\n'


def hazard(number: str = "1", **more: object) -> Hazard:
    values = {"name": f"name-{number}", "right": "it holds", "source": "x#1", "programs": ("p.c",), **more}
    return Hazard(number=number, **values)  # type: ignore[arg-type]


# --- the list -------------------------------------------------------------------------------------------------------


def test_every_hazard_has_a_row() -> None:
    expected = [str(number) for number in range(1, 46)] + [f"F{number}" for number in range(1, 11)]
    expected.insert(expected.index("34") + 1, "34b")  # the other half of the sentence, a figure beside glibc's
    assert [each.number for each in EVERY] == expected


@pytest.mark.parametrize("each", EVERY, ids=lambda each: each.name)
def test_what_a_hazard_names_exists(each: Hazard) -> None:
    named = [*each.programs, *each.libraries, *(name for name in each.link if name.endswith(".c"))]
    assert not [name for name in named if not (REPOSITORY / name).is_file()]
    built = {Path(name).stem for name in each.programs} | {Path(name).name for name in each.programs}
    for run in each.runs:
        assert built & {Path(word).name for word in run.split()}, f"{run} runs none of its programs"


def test_every_program_here_belongs_to_a_hazard() -> None:
    named = {Path(name).name for each in EVERY for name in (*each.programs, *each.libraries)}
    beside = {"hazards.toml", "hazard.h", "serving.c", "planted_library.c", "sanitized.c"}
    assert {path.name for path in SOURCES.iterdir()} - named == beside


def test_every_planted_fault_is_one_the_library_knows() -> None:
    known = set(re.findall(r'\bis\("([\w-]+)"\)', (SOURCES / "planted_library.c").read_text(encoding="utf-8")))
    # Properties of the library or of libc under it: no entries beyond a few, sizes before every block.
    properties = {"four-entries", "headers"}
    used = {each.planted for each in EVERY if each.planted}
    assert used == known | properties


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + 'program = ["a.c"]', "nobody reads program"),
        ('[[hazard]]\nname = "one"', "is missing"),
        (HEAD, "neither a program nor a reason"),
        (HEAD + 'programs = ["a.c"]\nonly = ["x"]', "no reason"),
        (HEAD + 'programs = ["a.c"]\nneeds = "luck"', "nothing that can be needed"),
        ((HEAD + 'otherwise = "o"\n') * 2, "two hazards have the number 1"),
        ("hazard", "cannot be read"),
    ],
)
def test_a_list_that_cannot_be_meant_is_refused(text: str, said: str) -> None:
    with pytest.raises(CatalogueError, match=said):
        catalogue.parse(text)


def test_hazards_are_chosen_by_number_and_name() -> None:
    assert [each.number for each in catalogue.choose(EVERY, ["stall", "6"])] == ["6", "F7"]
    assert catalogue.choose(EVERY, []) == EVERY
    with pytest.raises(CatalogueError, match="there is no hazard stal;"):
        catalogue.choose(EVERY, ["stal"])


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


def test_a_number_is_taken_from_a_program_that_ended_well_only() -> None:
    assert figure_of(Ended(0, "noise\n12.5\n")) == 12.5
    assert figure_of(Ended(1, "12.5")) is None
    assert figure_of(Ended(0, "12 KiB")) is None


def test_folders_of_this_machine_are_left_out() -> None:
    assert last_line("/home/one/cache/lib.so: cannot be loaded") == "lib.so: cannot be loaded"
    assert last_line("it opens /sys/devices/system/node") == "it opens /sys/devices/system/node"


# --- the table and the store ----------------------------------------------------------------------------------------


def test_the_table_says_what_was_seen() -> None:
    hazards = [
        hazard("1"),
        hazard("2", scaled="smaller", planted="lock"),
        hazard("3", programs=(), otherwise="no means"),
    ]
    answers = {
        ("1", "ours"): Verdict(Kind.PASS, "1.0"),
        ("1", "theirs"): Verdict(Kind.FAIL, "2 | 3"),
        ("2", "ours"): Verdict(Kind.CRASH, "SIGSEGV"),
        ("2", "theirs"): Verdict(Kind.PASS),
        ("3", "ours"): Verdict(Kind.NOT_TRIED, "no means"),
        ("3", "theirs"): Verdict(Kind.NOT_TRIED, "no means"),
    }
    text = page.text(
        hazards,
        [Allocator(name=n, title=n, file=None, build_id=None, origin="", reason=None) for n in ("ours", "theirs")],
        answers,
        subject="ours",
        command="make hazards",
        commit="abc1234",
        facts={"cpu": "a processor"},
        day="2026-01-02",
    )
    assert "| 1 | name-1 | pass | **fail** |" in text
    assert "| 2 | name-2 | **crash** | pass |" in text
    assert "|  | passed, of those tried | 1 of 2 | 1 of 2 |" in text
    assert "| 1 | name-1 | theirs | fail | 2 \\| 3 |" in text
    assert "| ours, planted: lock | smaller |" in text
    assert "| 3 | name-3 | all | not tried | no means |" in text
    assert "abc1234" in text


def test_an_answer_that_is_missing_is_no_pass() -> None:
    text = table.matrix([hazard("1")], ["ours"], {})
    assert "| 1 | name-1 | ? |" in text
    assert "0 of 0" in text


def test_answers_survive_an_interruption(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    store.append(file, "1", "ours", "key", Verdict(Kind.FAIL, "5"))
    store.append(file, "1", "ours", "new", Verdict(Kind.PASS))
    with file.open("a") as cut:
        cut.write('{"hazard": "2", "alloc')
    assert store.read(file) == {("1", "ours"): ("new", Verdict(Kind.PASS))}


def test_a_changed_library_is_another_question(tmp_path: Path) -> None:
    library = tmp_path / "lib.so"
    library.write_bytes(b"one")
    before = store.key_of([library], "fact")
    library.write_bytes(b"two")
    assert store.key_of([library], "fact") != before
    assert store.key_of([library], "another") != store.key_of([library], "fact")


# --- the conditions -------------------------------------------------------------------------------------------------


def test_the_group_of_memory_is_found() -> None:
    assert conditions.own_group("4:memory:/a\n3:cpu:/b\n0::/c") == (1, "/a")
    assert conditions.own_group("0::/c") == (2, "/c")
    assert conditions.own_group("3:cpu:/b") is None


def test_a_missing_program_is_named() -> None:
    assert conditions.missing_commands(["sh"]) is None
    assert conditions.missing_commands(["no-such-program"]) == "there is no no-such-program here"


# --- end to end -----------------------------------------------------------------------------------------------------

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
FAST = ("entries", "zero-sizes", "errno", "usable-size", "foreign-free")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hazards")
    building.build(catalogue.choose(EVERY, FAST), folder, planted.LIBRARIES)
    return folder


@pytest.fixture(scope="module")
def glibc() -> Configuration:
    (system,) = discovery.find([discovery.SYSTEM])
    return discovery.configuration_for(system)


@pytest.fixture(scope="module")
def freestone(freestone_library: Path) -> Configuration:
    return discovery.configuration_for(discovery.from_path(f"freestone={freestone_library}"))


@needs_compiler
@pytest.mark.parametrize("name", FAST)
def test_libfreestone_passes(name: str, built: Path, freestone: Configuration, glibc: Configuration) -> None:
    (each,) = catalogue.choose(EVERY, [name])
    assert trial.answer(each, freestone, glibc, built).kind is Kind.PASS


PLANTED_LIMIT_S = 15
"""A heap with a fault may hang, which is seen too: not waited for as long as an allocator is that may be slow."""


@needs_compiler
@pytest.mark.parametrize("name", FAST)
def test_a_planted_fault_is_seen(name: str, built: Path, glibc: Configuration) -> None:
    (each,) = catalogue.choose(EVERY, [name])
    each = replace(each, limit_s=min(each.limit_s, PLANTED_LIMIT_S))
    assert trial.answer(each, planted.configuration(each.planted, built), glibc, built).bad


@needs_compiler
def test_an_allocator_that_does_not_serve_is_no_answer(built: Path, glibc: Configuration) -> None:
    """The proof is inside the program: with the preload taken away it is libc that serves."""
    (each,) = catalogue.choose(EVERY, ["errno"])
    without = Configuration(
        name="planted",
        allocator=planted.configuration("", built).allocator.model_copy(update={"preload": []}),
        environment={},
    )
    verdict = trial.answer(each, without, glibc, built)
    assert verdict.kind is Kind.INVALID
    assert "malloc is served by libc" in verdict.figure


@needs_compiler
def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    ended = trial.ended(["sh", "-c", "sleep 60 & sleep 60"], {}, 0.3)
    assert judge(ended, 0.3).kind is Kind.HANG


def test_a_page_needs_all_hazards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "6", "--page", str(tmp_path / "page.md")]) == 2
    assert "a run of all hazards" in capsys.readouterr().err
