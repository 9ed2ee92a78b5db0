"""What of a suite is measured here: patterns, missing programs, inputs that are made once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from freestone.records.schema import Input, Stages
from freestone.suites import SuiteError, inputs, select
from freestone.suites.schema import Entry, Need, Suite


def suite(*entries: Entry) -> Suite:
    return Suite(title="t", workload=list(entries))


def test_only_what_matches_is_taken() -> None:
    both = suite(Entry(name="one-a", command=["true"]), Entry(name="two-b", command=["true"]))
    assert [w.name for w in select([both], only=["one-*"], directory="/").workloads] == ["one-a"]
    assert [w.name for w in select([both], only=["one-*", "*b"], directory="/").workloads] == ["one-a", "two-b"]
    with pytest.raises(SuiteError, match="no workload matches 'one-b'; did you mean one-a"):
        select([both], only=["one-b"], directory="/")
    with pytest.raises(SuiteError, match="no workload matches 'zzz'; there are one-a, two-b"):
        select([both], only=["one-*", "zzz"], directory="/")


def test_what_a_program_is_missing_for_is_named_with_its_package_and_the_rest_stays() -> None:
    found = select(
        [
            suite(
                Entry(name="here", command=["true"], reads="json", counted=False),
                Entry(name="lacks", command=["true"], needs=[Need(program="no-such-program", package="some-package")]),
                Entry(name="unbuilt", command=["{workloads}/no-such-workload"]),
                Entry(name="unknown", command=["no-such-program"]),
                Entry(name="text", command=["/etc/passwd"]),
            )
        ],
        directory="/tmp",
    )
    (here,) = found.workloads
    assert (here.name, here.reads, here.counted, here.directory) == ("here", "json", False, "/tmp")
    reasons = {each.name: each.reason for each in found.absent}
    assert reasons["lacks"] == "no-such-program is not here; Debian's package some-package brings it"
    assert "no-such-workload is not built; run 'make build'" in reasons["unbuilt"]
    assert reasons["unknown"] == "no-such-program is not here"
    assert reasons["text"] == "/etc/passwd cannot be executed"


def test_what_no_machine_can_measure_says_why_even_where_all_it_needs_is_here() -> None:
    found = select([suite(Entry(name="never", command=["true"], cannot="there is no such thing"))], directory="/")
    assert found.workloads == []
    assert [(each.name, each.reason) for each in found.absent] == [("never", "there is no such thing")]


def test_a_program_outside_of_path_is_found_in_the_highest_version_and_stands_for_its_place(tmp_path: Path) -> None:
    for version in ("9", "15", "16"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "initdb").touch(0o755 if version != "16" else 0o644)
    need = Need(program="initdb", package="p", folder=f"{tmp_path}/*")
    (found,) = select([suite(Entry(name="w", command=["{initdb}", "-D"], needs=[need]))], directory="/").workloads
    assert found.command == [f"{tmp_path}/15/initdb", "-D"], "16 cannot be executed, and 9 is older than 15"


def test_a_program_that_is_in_no_folder_is_looked_for_in_path_and_named_where_it_is_nowhere(tmp_path: Path) -> None:
    here = Need(program="true", package="p", folder=f"{tmp_path}/*/bin")
    (found,) = select([suite(Entry(name="w", command=["{true}"], needs=[here]))], directory="/").workloads
    assert found.command == [shutil.which("true")]
    nowhere = here.model_copy(update={"program": "no_such_program"})
    (absent,) = select([suite(Entry(name="w", command=["{no_such_program}"], needs=[nowhere]))], directory="/").absent
    assert absent.reason == "no_such_program is not here; Debian's package p brings it"


@pytest.fixture
def workloads(tmp_path: Path) -> Path:
    folder = tmp_path / "workloads"
    (folder / "everyday").mkdir(parents=True)
    (folder / "everyday" / "make_inputs.py").write_text(
        "import pathlib, sys; pathlib.Path(sys.argv[1], 'numbers').write_text('1 2 3')"
    )
    return folder


def test_inputs_are_made_once_and_kept_for_everybody(tmp_path: Path, workloads: Path) -> None:
    target = inputs.folder(workloads, {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    inputs.ensure(workloads, target)
    assert (target / "numbers").read_text() == "1 2 3"
    assert target.stat().st_mode & 0o777 == 0o755
    (target / "numbers").write_text("kept")
    inputs.ensure(workloads, target)
    assert (target / "numbers").read_text() == "kept"
    assert [each.name for each in target.parent.iterdir()] == [target.name], "nothing half made is left"


def test_another_generator_has_another_folder(tmp_path: Path, workloads: Path) -> None:
    environment = {"HOME": str(tmp_path)}
    before = inputs.folder(workloads, environment)
    (workloads / "everyday" / "make_inputs.py").write_text("pass")
    assert inputs.folder(workloads, environment) != before
    assert before.is_relative_to(tmp_path / ".cache" / "freestone" / "inputs")


def test_a_generator_that_fails_is_one_line_and_leaves_nothing(tmp_path: Path, workloads: Path) -> None:
    (workloads / "everyday" / "make_inputs.py").write_text("raise SystemExit('no ink')")
    target = tmp_path / "inputs" / "x"
    with pytest.raises(SuiteError, match=r"inputs cannot be generated: make_inputs\.py: no ink"):
        inputs.ensure(workloads, target)
    assert list(target.parent.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path, workloads: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SuiteError, match="cannot keep inputs in"):
        inputs.ensure(workloads, tmp_path / "file" / "inputs" / "x")


def test_the_generator_that_comes_along_writes_what_the_suites_read(repository: Path, tmp_path: Path) -> None:
    inputs.ensure(repository / "workloads", tmp_path / "inputs" / "x")
    there = {each.name for each in (tmp_path / "inputs" / "x").iterdir()}
    text = (repository / "src" / "freestone" / "suites" / "apps.toml").read_text()
    assert {"functions-120.c", "pages.ps", "pages-1.ps", "pigeons-8.smt2", "pigeons-7.smt2"} <= there
    assert all(name in text for name in ("functions-120.c", "pages.ps", "pigeons-8.smt2"))


def test_what_counts_and_what_stands_around_the_runs_can_be_said_by_a_suite(tmp_path: Path) -> None:
    (tmp_path / "in-3").write_text("x")
    entry = Entry(
        name="one",
        command=["true"],
        values={"n": 3},
        setup="make {n}",
        prepare="rm -f out",
        conclude="test -e out-{n}",
        cleanup="make clean",
        warmup=2,
        input=f"{tmp_path}/in-{{n}}",
        keep_env=True,
        wait_tree=True,
        allow_failures=1,
        ignore_status=[1, 2],
        compare_output="grep {n}",
    )
    (workload,) = select([suite(entry)], directory="/tmp").workloads
    assert workload.stages == Stages(
        setup="make 3", prepare="rm -f out", conclude="test -e out-3", cleanup="make clean"
    )
    assert (workload.warmup, workload.input) == (2, Input(file=f"{tmp_path}/in-3"))
    assert (workload.keep_environment, workload.survivors, workload.allow_failures) == (True, "wait", 1)
    assert (workload.ignore_status, workload.compare_output) == ([1, 2], "grep 3")
    (other,) = select(
        [suite(Entry(name="one", command=["true"], allow_survivors=True, output_may_differ=True))], directory="/"
    ).workloads
    assert (other.survivors, other.output_may_differ) == ("allow", True)


def test_a_workload_without_its_input_is_left_out_unless_a_command_may_make_it() -> None:
    without = Entry(name="without", command=["true"], input="/nowhere/in")
    made = Entry(name="made", command=["/nowhere/program"], input="/nowhere/in", setup="make")
    found = select([suite(without, made)], directory="/")
    assert [each.name for each in found.workloads] == ["made"]
    assert [(each.name, each.reason) for each in found.absent] == [("without", "its input /nowhere/in is not here")]
