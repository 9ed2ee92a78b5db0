"""Several programs, lines for a shell and parameters, and the files a comparison is written into."""

from __future__ import annotations

import csv
import json
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.records import store

Tool = Callable[..., subprocess.CompletedProcess[str]]

ASKED = ("compare", "-a", "freestone", "-n", "2", "--no-report")


def test_every_process_of_a_line_for_a_shell_is_proved(freestone: Tool, only_folder: Callable[[], Path]) -> None:
    done = freestone(*ASKED, "--shell", "--", "seq 1000 | sort -r | head -n 1 > top; cat top")
    assert done.returncode == 0, done.stderr
    experiment, reading = store.read_experiment(only_folder()), store.read_trials(only_folder())
    (workload,) = experiment.workloads
    assert (workload.name, workload.shell) == ("seq", True)
    libraries = {each.name: each.allocator.build_id for each in experiment.configurations}
    for record in reading.records:
        assert record.status == "ok", record.reason
        programs = {Path(process.exe).name for process in record.proof.processes}
        assert {"seq", "sort", "head", "cat"} <= programs
        assert len(programs) == 5, "and the shell itself"
        served = {entry.build_id for process in record.proof.processes for entry in process.entries}
        assert served == {libraries[record.configuration]}
    assert "the time is that of the whole line, the shell's own start included" in done.stdout


def test_a_line_that_fails_says_what_its_shell_said(freestone: Tool, only_folder: Callable[[], Path]) -> None:
    done = freestone(*ASKED, "--shell", "--", "no-such-command-here 1 | cat; exit 5")
    assert done.returncode == 3
    (reason,) = {record.reason for record in store.read_trials(only_folder()).records}
    assert reason is not None
    assert reason.startswith("exit status 5: ")
    assert "no-such-command-here" in reason


def test_a_static_program_in_a_line_is_no_number(
    freestone: Tool, compile_c: Callable[..., Path], only_folder: Callable[[], Path]
) -> None:
    program = compile_c("int main(void) { return 0; }", "-static", name="fixed")
    done = freestone(*ASKED, "--shell", "--", f"true | {program}")
    assert done.returncode == 3
    (reason,) = {record.reason for record in store.read_trials(only_folder()).records}
    assert reason == f"static binary: {program} loads no shared library, so nothing can be preloaded"


def test_several_programs_are_one_experiment_with_a_table_for_each(
    freestone: Tool, only_folder: Callable[[], Path]
) -> None:
    done = freestone(*ASKED, "--command", "seq 10", "--command", "seq 'a b' 10", "--", "echo", "x y")
    assert done.returncode == 4, "the second is no number to seq"
    experiment = store.read_experiment(only_folder())
    assert [(each.name, each.command) for each in experiment.workloads] == [
        ("echo", ["echo", "x y"]),
        ("seq 10", ["seq", "10"]),
        ("seq 'a b' 10", ["seq", "a b", "10"]),
    ]
    status = {(cell.workload, cell.status) for cell in store.read_summary(only_folder()).cells}
    assert status == {("echo", "ok"), ("seq 10", "ok"), ("seq 'a b' 10", "failed")}
    for name in ("echo", "seq 10", "seq 'a b' 10"):
        assert name in done.stdout.splitlines()


def test_a_scan_measures_every_combination_and_ends_with_a_table_by_parameter(
    freestone: Tool, only_folder: Callable[[], Path], tmp_path: Path
) -> None:
    done = freestone(
        *ASKED,
        *("--scan", "n=1..100*10", "--scan", "with=-w,-s+", "--setup", "echo {n}{with} >> log", "--env", "N={n}"),
        *("--command", "seq {with} {n}", "--command", "sh -c 'env | grep ^N='"),
    )
    assert done.returncode == 0, done.stderr
    workloads = store.read_experiment(only_folder()).workloads
    assert len([each for each in workloads if each.series == "seq"]) == 6
    assert workloads[0].name == "seq n=1 with=-w"
    assert (workloads[0].command, workloads[0].environment) == (["seq", "-w", "1"], {"N": "1"})
    lines = done.stdout.splitlines()
    assert "seq: time by n, with" in lines
    assert "seq: peak memory by n, with" in lines
    table = lines[lines.index("seq: time by n, with") :]
    assert [line.split("  ")[0].strip() for line in table[4:10]] == [
        f"{n}, {how}" for n in (1, 10, 100) for how in ("-w", "-s+")
    ]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--scan", "n=1,2", "--", "true"), 2, "nothing uses --scan n"),
        (("--scan", "size=1,2", "--", "echo", "{sizes}", "{size}"), 2, "did you mean {size}?"),
        (("--scan", "n", "--", "true"), 2, "--scan takes NAME=VALUES"),
        (("--command", "a | b"), 2, "--command 'a | b' has '|', which only a shell understands: add --shell"),
        (("--command", "a 'b"), 2, "no closing quotation"),
        (("--command", " "), 2, "a command is empty"),
        (("--command", "true", "--", "true"), 2, "two commands are the same: true"),
        (("--command", "no-such-program-here"), 127, "program 'no-such-program-here' not found"),
        (("--", "seq 3 | cat"), 127, "freestone compare --shell -- 'seq 3 | cat'"),
        (("--", "seq '3'"), 127, "words of their own: freestone compare -- seq 3"),
        (("--", "seq '3"), 127, "freestone compare --shell -- 'seq '\"'\"'3'"),
        (("seq 3", "seq 4"), 127, "given so: freestone compare --command 'seq 3' --command 'seq 4'"),
        (("--", "seq 3", "seq 4 | cat"), 127, "freestone compare --shell --command 'seq 3' --command 'seq 4 | cat'"),
        (("--shell", "--", "seq", "3"), 2, "--shell takes one word"),
        (("--shell",), 2, "no program given"),
        (("--shell", "--ready", "true", "--load", "true", "--", "x"), 2, "a server is started without --shell"),
        (("--export-csv", "no-folder/a.csv", "--", "true"), 5, "cannot write no-folder/a.csv: no such file"),
        (("--export-csv", ".", "--", "true"), 5, "cannot write .: it is a folder"),
        (("--export-csv", "a", "--export-json", "./a", "--", "true"), 2, "two exports go to a"),
    ],
)
def test_what_cannot_be_run_or_written_is_one_line_before_anything_runs(
    freestone: Tool, tmp_path: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    done = freestone(*ASKED, *words)
    assert done.returncode == status
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "results").exists()


def test_exports_hold_what_the_table_holds(freestone: Tool, only_folder: Callable[[], Path], tmp_path: Path) -> None:
    (tmp_path / "t.md").write_text("an earlier one")
    files = ("--export-markdown", "t.md", "--export-csv", "t.csv", "--export-json", "t.json")
    done = freestone(*ASKED, *files, "--scan", "n=1,x", "--", "seq", "{n}")
    assert done.returncode == 4, "x is no number to seq"
    summary = store.read_summary(only_folder())
    rows = list(csv.DictReader((tmp_path / "t.csv").open()))
    results = json.loads((tmp_path / "t.json").read_text())["results"]
    assert [row["command"] for row in rows] == [result["command"] for result in results]
    assert [(row["workload"], row["configuration"], row["status"]) for row in rows] == [
        (cell.workload, cell.configuration, cell.status) for cell in summary.cells
    ]
    for cell, row, result in zip(summary.cells, rows, results, strict=True):
        assert row["parameter_n"] == result["parameters"]["n"] == cell.workload.removeprefix("seq n=")
        if cell.status != "ok":
            assert (row["mean_s"], row["geometric_mean_s"], result["mean"], result["times"]) == ("", "", None, [])
            assert row["reason"] == result["reason"] == cell.reason
            continue
        assert len(result["times"]) == cell.trials_ok
        assert float(row["mean_s"]) == result["mean"] == statistics.fmean(result["times"])
        assert float(row["geometric_mean_s"]) == result["geometric_mean"] == cell.mean["wall_s"]
        assert result["exit_codes"] == [0] * cell.trials_ok
    again = ("--export-markdown", "r.md", "--export-csv", "r.csv", "--export-json", "r.json")
    done = freestone("report", only_folder(), "--no-html", *again)
    assert "seq: time by n" in done.stdout
    for kind in ("md", "csv", "json"):
        assert (tmp_path / f"r.{kind}").read_text() == (tmp_path / f"t.{kind}").read_text()
    page = (tmp_path / "t.md").read_text()
    assert "| allocator | wall" in page
    assert "### seq: time by n" in page
    assert "exit status 1" in page


def test_exports_are_written_of_what_there_is_and_a_full_disk_loses_nothing(
    freestone: Tool, only_folder: Callable[[], Path]
) -> None:
    done = freestone(*ASKED, "--export-csv", "/dev/full", "--", "true")
    assert done.returncode == 5
    assert done.stderr.splitlines()[-1].startswith("freestone: cannot write /dev/full: no space left on device")
    assert store.read_summary(only_folder()).rounds_complete == 2
    assert Path("/dev/full").is_char_device(), "a device is written to and never replaced"
