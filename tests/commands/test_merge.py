"""``freestone merge``: what was measured apart, side by side; and what does not belong together, refused by name."""

from __future__ import annotations

import fcntl
import json
import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from freestone.records import store
from freestone.records.schema import Experiment, Machine

Tool = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.xdist_group("merge")  # what they share is made once

BOARD = Machine(id="feed", facts={"cpu": "Board CPU", "host": "beef"})


@pytest.fixture(scope="module")
def measured(forked_tool: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two results of one command, and one of another."""
    place = tmp_path_factory.mktemp("merge")
    for name, command in (("one", "true"), ("two", "true"), ("else", "ls")):
        words = ["compare", "-a", "freestone", "-n", "4", "--no-report", "--results", name, "--", command]
        done = forked_tool.call(words, place, forked_tool.environment, 120)
        assert done.returncode == 0, done.stderr
        (made,) = (place / name).iterdir()
        made.rename(place / f"{name}.made")
        (place / name).rmdir()
        (place / f"{name}.made").rename(place / name)
    head(place / "one", created_at="2026-11-20T13:15:00+00:00")
    head(place / "two", created_at="2026-11-21T09:00:00+00:00")
    return place


@pytest.fixture
def here(measured: Path, tmp_path: Path) -> Path:
    """Copies of them, for tests that change something: ``two`` is of another machine."""
    shutil.copytree(measured, tmp_path, dirs_exist_ok=True)
    head(tmp_path / "two", machine=BOARD)
    return tmp_path


def head(folder: Path, **changes: object) -> None:
    """Changes what was asked for."""
    path = folder / store.EXPERIMENT_FILE
    path.write_text(Experiment.model_validate_json(path.read_bytes()).model_copy(update=changes).model_dump_json())


def refused(freestone: Tool, *words: str, status: int = 2) -> list[str]:
    """The lines that a merge which makes nothing says."""
    done = freestone("merge", *words, "--into", "both")
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    return done.stderr.splitlines()


def test_two_machines_are_reported_side_by_side(freestone: Tool, here: Path) -> None:
    done = freestone("merge", "one", "board=two", "--into", "results/both")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    first, second, _, last = done.stdout.splitlines()
    name = first.removesuffix(": one")
    assert second == "board: two"
    assert last.startswith("Side by side: ")
    assert last.endswith(" report results/both")
    made = here / "results" / "both"
    assert [each.engine for each in store.read_order(made).places] == ["merged", "merged"]
    for copy, original in ((name, "one"), ("board", "two")):
        for file in (store.EXPERIMENT_FILE, store.TRIALS_FILE, store.SUMMARY_FILE):
            assert (made / copy / file).read_bytes() == (here / original / file).read_bytes()
    shown = freestone("report", "results/both")
    assert shown.returncode == 0, shown.stderr
    assert "true on 2 machines" in shown.stdout
    assert "Never pooled." in " ".join(shown.stdout.split())
    page = (made / store.REPORT_FILE).read_text()
    assert "true on 2 machines" in page
    assert "2 experiments on 2 machines" in page
    rows = json.loads(freestone("list", "--json").stdout)
    assert {each["folder"] for each in rows} == {f"results/both/{name}", "results/both/board"}


def test_one_machine_twice_is_two_places_and_the_report_says_so(freestone: Tool, here: Path, measured: Path) -> None:
    shutil.rmtree(here / "two")
    shutil.copytree(measured / "two", here / "two")
    done = freestone("merge", "one", "two", "--into", "both")
    assert done.returncode == 0, done.stderr
    names = [line.partition(":")[0] for line in done.stdout.splitlines()[:2]]
    assert [name[-10:] for name in names] == ["2026-11-20", "2026-11-21"]
    shown = " ".join(freestone("report", "both", "--no-html").stdout.split())
    assert "true in 2 results of one machine" in shown
    assert f"{names[0]} and {names[1]} are one machine, measured more than once." in shown


def test_what_was_merged_is_merged_with_more(freestone: Tool, here: Path) -> None:
    assert freestone("merge", "a=one", "b=two", "--into", "both").returncode == 0
    shutil.copytree(here / "two", here / "three")
    head(here / "three", id="third")
    done = freestone("merge", "both", "c=three", "--into", "all")
    assert done.returncode == 0, done.stderr
    assert sorted(each.name for each in store.places(here / "all")) == ["a", "b", "c"]
    again = freestone("merge", "both", "one", "--into", "more")
    assert again.returncode == 2
    assert again.stderr == "freestone: one is the same measurement as both/a; give it once\n"


def test_nobody_goes_on_in_copies(freestone: Tool, here: Path) -> None:
    assert freestone("merge", "one", "two", "--into", "both").returncode == 0
    done = freestone("compare", "--resume", "both")
    assert done.returncode == 2
    assert done.stderr == ("freestone: both was merged of others: go on where they were measured, and merge again\n")


def test_every_folder_that_does_not_belong_has_its_line(freestone: Tool, here: Path) -> None:
    lines = refused(freestone, "one", "else", "two", "one")
    assert lines == [
        "freestone: else does not belong to one: another command: ls, not true",
        "freestone: one is the same measurement as one; give it once",
    ]
    assert not (here / "both").exists()


def set_version(folder: Path) -> None:
    head(folder, freestone_version="0.0.9")


def set_timeout(folder: Path) -> None:
    head(folder, timeout_s=7.0)


def set_name(folder: Path) -> None:
    head(folder, command_line=["freestone", "doctor", "--", "true"])


def damage_head(folder: Path) -> None:
    (folder / store.EXPERIMENT_FILE).write_text("{")


def damage_trials(folder: Path) -> None:
    with (folder / store.TRIALS_FILE).open("a") as log:
        log.write("{half a rec\n")


def take_trials(folder: Path) -> None:
    (folder / store.TRIALS_FILE).write_text("")


def take_all(folder: Path) -> None:
    shutil.rmtree(folder)


def change_build(folder: Path) -> None:
    path = folder / store.TRIALS_FILE
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row["proof"]["processes"][0]["exe_build_id"] = "00ff"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(
    ("change", "status", "told"),
    [
        (set_version, 2, "two does not belong to one: another version of the lab: 0.0.9, not"),
        (set_timeout, 2, "two does not belong to one: another timeout: 7.0, not none"),
        (set_name, 2, "two is of freestone doctor; compare and bench can be merged"),
        (change_build, 2, "two does not belong to one: another build of the program; --any-build lets each machine"),
        (damage_head, 5, "two/experiment.json is damaged"),
        (damage_trials, 5, "two/trials.jsonl: 1 damaged"),
        (take_trials, 5, "two holds no trial"),
        (take_all, 5, "two does not exist"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_does_not_belong_is_one_line(
    freestone: Tool, here: Path, change: Callable[[Path], None], status: int, told: str
) -> None:
    change(here / "two")
    (line,) = refused(freestone, "one", "two", status=status)
    assert line.startswith(f"freestone: {told}")
    assert not (here / "both").exists()


def test_other_contents_of_a_named_file_are_refused(freestone: Tool, here: Path) -> None:
    for name, content in (("one", "aa"), ("two", "ff")):
        path = here / name / store.TRIALS_FILE
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps({**row, "files": {"/home/in.dat": content}}) + "\n" for row in rows))
    assert refused(freestone, "one", "two") == ["freestone: two does not belong to one: another content of in.dat"]


def test_folders_are_held_against_each_other_also_where_the_first_has_failed(freestone: Tool, here: Path) -> None:
    shutil.copytree(here / "one", here / "three")
    head(here / "three", id="third")
    path = here / "one" / store.TRIALS_FILE
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    failed = {"status": "failed", "reason": "exit status 3"}
    path.write_text("".join(json.dumps({**row, **failed}) + "\n" for row in rows))
    change_build(here / "two")
    (line,) = refused(freestone, "one", "two", "three")
    assert line.startswith("freestone: three does not belong to two: another build of the program")


def test_each_machine_may_have_a_build_of_its_own_where_that_is_asked_for(freestone: Tool, here: Path) -> None:
    change_build(here / "two")
    done = freestone("merge", "one", "two", "--any-build", "--into", "both")
    assert done.returncode == 0, done.stderr


def test_a_suite_has_as_many_threads_as_each_machine_has_cpus(freestone: Tool, here: Path) -> None:
    for name, cpus, machine in (("one", 64, BOARD), ("two", 2, Machine(id="else", facts={"host": "cafe"}))):
        experiment = store.read_experiment(here / name)
        (workload,) = experiment.workloads
        head(
            here / name,
            machine=machine.model_copy(update={"facts": {**machine.facts, "cores_allowed": cpus}}),
            command_line=["freestone", "bench", "field"],
            workloads=[workload.model_copy(update={"command": [*workload.command, "--threads", str(cpus)]})],
        )
    done = freestone("merge", "one", "two", "--into", "both")
    assert done.returncode == 0, done.stderr
    said = freestone("report", "both", "--no-html")
    assert "on 2 machines" in said.stdout, said.stdout + said.stderr
    assert "Left out" not in said.stdout


def test_one_that_is_being_measured_is_refused(freestone: Tool, here: Path) -> None:
    with (here / "two" / store.TRIALS_FILE).open("ab") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        if not store.is_being_written(here / "two"):
            pytest.skip("/proc/locks does not show the locks of other processes here")
        assert refused(freestone, "one", "two", status=5) == [
            "freestone: two is being measured; merge when it has ended"
        ]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_nothing_is_overwritten(freestone: Tool, here: Path, kind: str) -> None:
    (here / "both").mkdir() if kind == "folder" else (here / "both").touch()
    (line,) = refused(freestone, "one", "two", status=5)
    assert line == "freestone: both exists already; nothing is overwritten: give a folder that is not there"
    assert (here / "both").is_dir() == (kind == "folder")


def test_a_disk_that_takes_no_more_leaves_nothing(freestone: Tool, here: Path) -> None:
    with (here / "two" / "large").open("wb") as file:
        file.truncate(1 << 20)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, 1 << 19))  # noqa: E731
    done = freestone("merge", "one", "two", "--into", "both", preexec_fn=limit)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr == "freestone: cannot copy results into both: file too large; nothing is left there\n"
    assert not [each for each in here.iterdir() if "both" in each.name]


def test_a_merge_of_one_or_of_the_folder_of_all_is_one_line(freestone: Tool, here: Path) -> None:
    (line,) = refused(freestone, "one")
    assert line.startswith("freestone: give two or more results folders")
    (line,) = refused(freestone, "one", ".")
    assert "holds several; give one of them" in line
    (line,) = refused(freestone, "a=one", "a=two")
    assert line == "freestone: two places are called 'a'"
    done = freestone("merge", "one", "two")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
