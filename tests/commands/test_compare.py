"""The main job from end to end: real programs, real allocators, a results folder, and what is refused a number."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from freestone import native
from freestone.analysis import summarise
from freestone.records import store
from freestone.records.schema import Cell, Summary

Tool = Callable[..., subprocess.CompletedProcess[str]]

PROGRAM = [sys.executable, "-I", "-S", "-c", "print(len([str(i) for i in range(20000)]))"]

STATIC = "int main(void) { return 0; }"

OWN_MALLOC = r"""
#include <stddef.h>
#include <string.h>
#include <stdio.h>
static _Alignas(16) char pool[1 << 20];
static size_t used;
void *malloc(size_t n) {
    size_t at = used;
    used += (n + 15) & ~(size_t)15;
    return used <= sizeof pool ? pool + at : NULL;
}
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t size) { return malloc(n * size); }
void *realloc(void *p, size_t n) { void *q = malloc(n); return p && q ? memcpy(q, p, n) : q; }
int main(void) { puts("served by myself"); return malloc(10) == NULL; }
"""

UNLOADABLE = r"""
#include <stddef.h>
extern int nobody_defines_this(void);
int (*needs)(void) = nobody_defines_this;
void *malloc(size_t n) { (void)n; return NULL; }
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t size) { (void)n; (void)size; return NULL; }
void *realloc(void *p, size_t n) { (void)p; (void)n; return NULL; }
"""


def _summary(folder: Path) -> Summary:
    return store.read_summary(folder)


def _cell(summary: Summary, configuration: str) -> Cell:
    (cell,) = (cell for cell in summary.cells if cell.configuration == configuration)
    return cell


def test_a_real_program_is_compared_and_every_trial_proved(freestone: Tool, only_folder: Callable[[], Path]) -> None:
    done = freestone("compare", "-a", "freestone", "-n", "4", "--name", "numbers", "--", *PROGRAM)
    assert done.returncode == 0, done.stderr
    folder = only_folder()
    summary = _summary(folder)
    assert done.stdout.splitlines()[0] == " ".join(summary.headline.split())[: len(done.stdout.splitlines()[0])]
    assert f"Records: results/{folder.name}" in done.stdout

    experiment, reading = store.read_experiment(folder), store.read_trials(folder)
    assert reading.damage == []
    assert len(reading.records) == 4 * 3, "four rounds of two allocators and the baseline once more"
    libraries = {each.name: each.allocator for each in experiment.configurations}
    assert libraries["freestone"].file == str(native.path("libfreestone.so"))
    for record in reading.records:
        assert record.status == "ok", record.reason
        assert record.proof.valid
        entries = [entry for process in record.proof.processes for entry in process.entries]
        assert {entry.symbol for entry in entries} >= {"malloc", "calloc", "realloc", "free"}
        assert {entry.build_id for entry in entries} == {libraries[record.configuration].build_id}
        assert record.metrics is not None
        assert record.metrics.wall_s > 0
        assert record.output is not None
        assert record.output.stdout_bytes == len("20000\n")

    assert summary == summarise(experiment, reading.records)
    assert summary.rounds_complete == 4
    for cell in summary.cells:
        assert {"wall_s", "user_s", "sys_s", "peak_rss_kib", "end_rss_kib", "minor_faults"} <= cell.median.keys()
    assert _cell(summary, "freestone").ratio["wall_s"].pairs == 4
    rows = duckdb.sql(f"SELECT count(*), sum(metrics.minor_faults) FROM '{folder / store.PARQUET_FILE}'").fetchall()
    assert rows == [(12, sum(r.metrics.minor_faults or 0 for r in reading.records if r.metrics))]
    assert "<html" in (folder / store.REPORT_FILE).read_text()


def test_json_alone_is_on_standard_output(freestone: Tool, only_folder: Callable[[], Path]) -> None:
    done = freestone("compare", "-a", "freestone", "-n", "1", "--json", "--", *PROGRAM)
    assert done.returncode == 0, done.stderr
    assert Summary.model_validate_json(done.stdout) == _summary(only_folder())


def test_nothing_is_overwritten_by_a_second_experiment(freestone: Tool, tmp_path: Path) -> None:
    for _ in range(2):
        assert freestone("compare", "-a", "glibc", "-n", "1", "--no-report", "--", *PROGRAM).returncode == 0
    folders = list((tmp_path / "results").iterdir())
    assert len(folders) == 2
    assert all(len(store.read_trials(folder).records) == 2 for folder in folders)


def test_settings_are_configurations_that_reach_the_program(freestone: Tool, only_folder: Callable[[], Path]) -> None:
    asked = "glibc:MALLOC_ARENA_MAX=2,glibc:MALLOC_ARENA_MAX=1,freestone:FREESTONE_OPTIONS=heaps=1,keeper=0"
    program = ["sh", "-c", 'echo "$MALLOC_ARENA_MAX|$FREESTONE_OPTIONS" >> said']
    done = freestone("compare", "-a", asked, "--baseline", "glibc:MALLOC_ARENA_MAX=1", "-n", "2", "--", *program)
    assert done.returncode == 0, done.stderr
    folder = only_folder()
    experiment = store.read_experiment(folder)
    assert experiment.baseline == "glibc:MALLOC_ARENA_MAX=1"
    assert [each.name for each in experiment.configurations] == [
        "glibc:MALLOC_ARENA_MAX=2",
        "glibc:MALLOC_ARENA_MAX=1",
        "freestone:FREESTONE_OPTIONS=heaps=1,keeper=0",
    ]
    said = (folder.parent.parent / "said").read_text().splitlines()
    assert set(said) == {"2|", "1|", "|heaps=1,keeper=0"}
    assert "freestone:FREESTONE_OPTIONS=heaps=1,keeper=0" in (folder / store.REPORT_FILE).read_text()
    again = freestone("compare", "--resume", folder, "--no-report")
    assert again.returncode == 0, again.stderr


def test_the_baseline_can_be_a_library_given_by_name_and_path(
    freestone: Tool, only_folder: Callable[[], Path], freestone_library: Path
) -> None:
    mine = f"mine={freestone_library}"
    done = freestone(
        "compare", "-a", "glibc", "-a", mine, "--baseline", "mine", "-n", "1", "--no-report", "--", *PROGRAM
    )
    assert done.returncode == 0, done.stderr
    assert _summary(only_folder()).baseline == "mine"


def test_the_baseline_can_be_chosen(freestone: Tool, only_folder: Callable[[], Path]) -> None:
    done = freestone("compare", "-a", "glibc", "--baseline", "freestone", "-n", "1", "--no-report", "--", *PROGRAM)
    assert done.returncode == 0, done.stderr
    assert _summary(only_folder()).baseline == "freestone"


def test_the_environment_and_the_seed_are_the_experiments(freestone: Tool, only_folder: Callable[[], Path]) -> None:
    script = "import os; print(os.environ['COLOUR'], os.getcwd())"
    done = freestone(
        "compare", "-a", "glibc", "-n", "1", "--seed", "42", "--env", "COLOUR=red=blue", "--no-report",
        "--", sys.executable, "-c", script,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    experiment = store.read_experiment(only_folder())
    assert experiment.seed == 42
    assert experiment.workloads[0].environment == {"COLOUR": "red=blue"}
    for record in store.read_trials(only_folder()).records:
        assert record.output is not None
        assert record.output.stdout_bytes == len(f"red=blue {only_folder().parent.parent}\n")


def test_a_time_budget_ends_after_a_whole_round(freestone: Tool, only_folder: Callable[[], Path]) -> None:
    done = freestone("compare", "-a", "freestone", "--time-budget", "0.1", "--no-report", "--", *PROGRAM)
    assert done.returncode == 0, done.stderr
    assert "time budget spent after 1 round" in done.stderr
    assert len(store.read_trials(only_folder()).records) == 3
    assert "Too few rounds" in done.stdout


def test_a_static_program_is_invalid_and_has_no_number(
    freestone: Tool, only_folder: Callable[[], Path], compile_c: Callable[..., Path]
) -> None:
    done = freestone("compare", "-a", "freestone", "-n", "3", "--", str(compile_c(STATIC, "-static")))
    assert done.returncode == 3
    assert "static binary" in done.stdout.splitlines()[0]
    assert "INVALID" in done.stdout
    for cell in _summary(only_folder()).cells:
        assert cell.status == "invalid"
        assert "static binary" in (cell.reason or "")
        assert (cell.median, cell.ratio) == ({}, {})
    assert (only_folder() / store.REPORT_FILE).exists()


def test_a_program_with_its_own_malloc_is_invalid_and_has_no_number(
    freestone: Tool, only_folder: Callable[[], Path], compile_c: Callable[..., Path]
) -> None:
    program = compile_c(OWN_MALLOC, "-fno-builtin", "-rdynamic")
    done = freestone("compare", "-a", "freestone", "-n", "3", "--no-report", "--", str(program))
    assert done.returncode == 3
    for cell in _summary(only_folder()).cells:
        assert cell.status == "invalid"
        assert "own malloc" in (cell.reason or "")
        assert (cell.median, cell.ratio) == ({}, {})


def test_one_invalid_process_in_the_tree_makes_the_trial_invalid(
    freestone: Tool, only_folder: Callable[[], Path], compile_c: Callable[..., Path]
) -> None:
    program = compile_c(STATIC, "-static")
    done = freestone(
        "compare", "-a", "freestone", "-n", "2", "--no-report", "--", "sh", "-c", f"{program}; ls / >/dev/null"
    )
    assert done.returncode == 3
    assert {cell.status for cell in _summary(only_folder()).cells} == {"invalid"}


def test_a_library_that_does_not_load_makes_its_cell_invalid_and_leaves_the_others(
    freestone: Tool, only_folder: Callable[[], Path], compile_c: Callable[..., Path]
) -> None:
    library = compile_c(UNLOADABLE, "-shared", "-fPIC", "-fno-builtin", name="libunloadable.so")
    done = freestone("compare", "-a", str(library), "-n", "4", "--no-report", "--", *PROGRAM)
    assert done.returncode in (3, 4), done.stderr
    cell = _cell(_summary(only_folder()), "libunloadable.so")
    assert cell.status in ("invalid", "failed")
    assert cell.median == {}


def test_a_program_that_fails_under_one_allocator_only_costs_that_cell(
    freestone: Tool, only_folder: Callable[[], Path]
) -> None:
    script = 'case "$LD_PRELOAD" in *libfreestone.so*) exit 3;; esac; echo fine'
    done = freestone("compare", "-a", "freestone", "-n", "4", "--no-report", "--", "sh", "-c", script)
    assert done.returncode == 4, done.stderr
    assert done.stderr.count("freestone, round") == 1, "named once"
    summary = _summary(only_folder())
    good, bad = _cell(summary, "glibc"), _cell(summary, "freestone")
    assert (good.status, good.trials_ok) == ("ok", 8)
    assert (bad.status, bad.median, bad.trials_total) == ("failed", {}, 2)
    assert "exit status 3" in (bad.reason or "")


def test_a_program_that_does_not_end_is_timed_out(freestone: Tool, only_folder: Callable[[], Path]) -> None:
    done = freestone("compare", "-a", "glibc", "-n", "1", "--timeout", "0.5", "--no-report", "--", "sleep", "50")
    assert done.returncode == 3
    assert {cell.status for cell in _summary(only_folder()).cells} == {"timeout"}


@pytest.mark.long
def test_an_experiment_that_was_killed_goes_on_where_it_stopped(
    freestone: Tool, only_folder: Callable[[], Path], tmp_path: Path, command: list[str], environment: dict[str, str]
) -> None:
    # The program counts its runs and, until it is allowed to, kills the tool in the sixth.
    script = "echo >> runs; if [ ! -e go ] && [ $(wc -l < runs) -ge 6 ]; then kill -9 $(cat tool); sleep 60; fi"
    arguments = [*command, "compare", "-a", "freestone", "-n", "4", "--no-report", "--", "sh", "-c", script]
    tool = subprocess.Popen(arguments, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    (tmp_path / "tool").write_text(str(tool.pid))
    assert tool.wait(60) == -9
    tool.communicate()
    before = (only_folder() / store.TRIALS_FILE).read_bytes()
    kept = len(store.read_trials(only_folder()).records)
    assert 0 < kept < 6
    (tmp_path / "go").touch()
    done = freestone("compare", "--resume", str(only_folder()), "--no-report")
    assert done.returncode == 0, done.stderr
    assert (only_folder() / store.TRIALS_FILE).read_bytes().startswith(before)
    records = store.read_trials(only_folder()).records
    assert len({(r.configuration, r.round, r.repeat) for r in records}) == len(records) == 12


@pytest.fixture
def finished(freestone: Tool, only_folder: Callable[[], Path]) -> Path:
    done = freestone("compare", "-a", "glibc", "-n", "1", "--no-report", "--", *PROGRAM)
    assert done.returncode == 0, done.stderr
    return only_folder()


def test_resuming_what_is_finished_measures_nothing(freestone: Tool, finished: Path) -> None:
    before = (finished / store.TRIALS_FILE).read_bytes()
    done = freestone("compare", "--resume", str(finished), "--no-report", "--", *PROGRAM)
    assert done.returncode == 0
    assert f"{finished} is complete: nothing was left to measure\n" in done.stderr
    assert (finished / store.TRIALS_FILE).read_bytes() == before


def test_resuming_what_is_finished_has_the_status_of_what_was_measured(
    freestone: Tool, only_folder: Callable[[], Path]
) -> None:
    script = 'case "$LD_PRELOAD" in *libfreestone.so*) exit 3;; esac; echo fine'
    first = freestone("compare", "-a", "freestone", "-n", "2", "--no-report", "--", "sh", "-c", script)
    again = freestone("compare", "--resume", only_folder(), "--no-report")
    assert (first.returncode, again.returncode) == (4, 4)
    assert "is complete" not in first.stderr
    assert "is complete: nothing was left to measure" in again.stderr


def test_resuming_what_has_spent_its_budget_says_so(freestone: Tool, only_folder: Callable[[], Path]) -> None:
    words = ("compare", "-a", "glibc", "--time-budget", "0.1", "--no-report", "--", *PROGRAM)
    assert freestone(*words).returncode == 0
    done = freestone("compare", "--resume", only_folder(), "--no-report")
    assert done.returncode == 0
    assert "has spent its time budget: nothing was left to measure" in done.stderr


def test_exports_of_nothing_are_no_success(freestone: Tool, only_folder: Callable[[], Path], tmp_path: Path) -> None:
    assert freestone("compare", "-a", "freestone", "-n", "2", "--no-report", "--", "false").returncode == 3
    done = freestone("report", only_folder(), "--no-html", "--export-csv", "t.csv")
    assert done.returncode == 3
    assert "what is exported holds reasons and no figure" in done.stderr
    assert "exit status 1" in (tmp_path / "t.csv").read_text()
    assert freestone("report", only_folder(), "--no-html").returncode == 0, "nothing was to be exported"
    (only_folder() / store.TRIALS_FILE).write_bytes(b"")
    done = freestone("report", only_folder(), "--no-html", "--export-json", "t.json")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "nothing to export: " in done.stderr
    assert not (tmp_path / "t.json").exists()


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (
            lambda head: head["machine"].update(id="elsewhere", facts=head["machine"]["facts"] | {"cpu": "another"}),
            "begun on another machine",
        ),
        (lambda head: head["configurations"][0]["allocator"].update(build_id="abcd"), "another one now"),
    ],
)
def test_an_experiment_is_not_resumed_where_it_would_be_another(
    freestone: Tool, finished: Path, change: Callable[[dict[str, object]], None], refusal: str
) -> None:
    head = json.loads((finished / store.EXPERIMENT_FILE).read_text())
    change(head)
    (finished / store.EXPERIMENT_FILE).write_text(json.dumps(head))
    done = freestone("compare", "--resume", str(finished))
    assert done.returncode == 2
    assert refusal in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_experiment_is_not_resumed_with_another_command_or_setting(freestone: Tool, finished: Path) -> None:
    other = freestone("compare", "--resume", str(finished), "--", "ls")
    assert (other.returncode, other.stderr.count("\n")) == (2, 1)
    assert "another command" in other.stderr
    setting = freestone("compare", "--resume", str(finished), "-n", "9", "--seed", "1")
    assert (setting.returncode, setting.stderr.count("\n")) == (2, 1)
    assert "leave out -n, --seed" in setting.stderr


def test_what_steers_an_allocator_is_taken_out_with_a_line_and_recorded(
    freestone: Tool, only_folder: Callable[[], Path]
) -> None:
    """An arena limit left in a shell slows one allocator of all, and nobody sees it in the table."""
    steering = {"MALLOC_ARENA_MAX": "1", "MIMALLOC_VERBOSE": "0"}
    words = ("compare", "-a", "glibc", "-n", "1", "--no-report", "--env", "MIMALLOC_VERBOSE")
    done = freestone(*words, "--", "sh", "-c", 'test "$MALLOC_ARENA_MAX$MIMALLOC_VERBOSE" = 0', env=steering)
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stderr.splitlines() if "taken out" in line)
    assert "MALLOC_ARENA_MAX=1;" in line
    assert "MIMALLOC" not in line
    told = store.read_experiment(only_folder()).environment
    assert told is not None
    assert told.taken_out["MALLOC_ARENA_MAX"] == "1"


def test_what_steers_an_allocator_is_kept_on_demand(freestone: Tool) -> None:
    done = freestone(
        "compare", "-a", "glibc", "-n", "1", "--no-report", "--keep-env", "--",
        "sh", "-c", 'test "$MALLOC_ARENA_MAX" = 1', env={"MALLOC_ARENA_MAX": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "kept in every program's environment: MALLOC_ARENA_MAX=1" in " ".join(done.stderr.split())


@pytest.mark.long
def test_an_experiment_is_not_resumed_in_another_environment(freestone: Tool, finished: Path) -> None:
    done = freestone("compare", "--resume", str(finished), env={"MALLOC_ARENA_MAX": "1"})
    assert done.returncode == 0, "it is in force on neither side"
    for other in ({"LANG": "de_DE"}, {"MY_SETTING": "1"}):
        done = freestone("compare", "--resume", str(finished), env=other)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert next(iter(other)) in done.stderr


def test_an_experiment_is_resumed_from_anywhere(
    freestone: Tool, only_folder: Callable[[], Path], tmp_path: Path
) -> None:
    """The program is looked for where it was measured, and runs there."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\npwd\n")
    program.chmod(0o755)
    done = freestone(
        "compare", "-a", f"mine={native.path('libfreestone.so')}", "-n", "2", "--no-report", "--", "./program"
    )
    assert done.returncode == 0, done.stderr
    path = only_folder() / store.TRIALS_FILE
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    done = freestone("compare", "--resume", str(only_folder()), "--no-report", cwd="/")
    assert done.returncode == 0, done.stderr
    said = {record.output.stdout_sha256 for record in store.read_trials(only_folder()).records if record.output}
    assert (len(said), len(store.read_trials(only_folder()).records)) == (1, 6)
