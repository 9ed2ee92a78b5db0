"""Programs that would fool a lab that looks less closely: each gets the right answer in every verb that tells it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.records import store
from freestone.records.schema import Summary

Tool = Callable[..., subprocess.CompletedProcess[str]]
Deceive = Callable[[str], Path]


@pytest.fixture
def deceive(compile_c: Callable[..., Path], repository: Path) -> Deceive:
    """``deceive("half_the_work")`` compiles that program, with every call of malloc left in it."""

    def build(name: str) -> Path:
        source = (repository / "tests" / "deceptions" / f"{name}.c").read_text()
        return compile_c(source, "-fno-builtin", name=name)

    return build


def _statuses(summary: Summary) -> dict[str, str]:
    return {cell.configuration: cell.status for cell in summary.cells}


def test_a_program_that_leaves_its_work_to_a_process_behind_it_has_failed(
    freestone: Tool, deceive: Deceive, only_folder: Callable[[], Path]
) -> None:
    worker = deceive("leaves_worker_behind")
    done = freestone("compare", "-a", "freestone", "-n", "2", "--", str(worker), "5000")
    assert done.returncode == 3, done.stdout
    assert _statuses(store.read_summary(only_folder())) == {"glibc": "failed", "freestone": "failed"}
    text = "".join(done.stdout.split())  # a long path is broken wherever the terminal ends
    assert f"runningbehinditsfirstone({worker}):--wait-tree" in text
    assert "--allow-survivors" in text


@pytest.mark.parametrize(("milliseconds", "option"), [(400, ["--wait-tree"]), (100, [])])
def test_work_behind_the_first_process_is_in_the_time(
    freestone: Tool, deceive: Deceive, only_folder: Callable[[], Path], milliseconds: int, option: list[str]
) -> None:
    worker = deceive("leaves_worker_behind")
    done = freestone("compare", "-a", "freestone", "-n", "2", *option, "--", str(worker), str(milliseconds))
    assert done.returncode == 0, done.stdout
    for record in store.read_trials(only_folder()).records:
        assert record.metrics is not None
        assert record.metrics.wall_s >= record.metrics.outlived_s >= 0.9 * milliseconds / 1000
    assert "the time is to the end of the last" in done.stdout


def test_survivors_that_are_allowed_are_told(
    freestone: Tool, deceive: Deceive, only_folder: Callable[[], Path]
) -> None:
    worker = deceive("leaves_worker_behind")
    done = freestone("compare", "-a", "freestone", "-n", "2", "--allow-survivors", "--json", "--", str(worker), "5000")
    assert done.returncode == 0, done.stderr
    for cell in json.loads(done.stdout)["cells"]:
        assert "the first process alone" in cell["note"]
        assert str(worker) in cell["note"]
        assert cell["median"]["wall_s"] < 5
    shown = freestone("report", str(only_folder()), "--output", "page.html", cwd=only_folder().parent.parent)
    assert shown.returncode == 0, shown.stderr
    assert "the first process alone" in (only_folder().parent.parent / "page.html").read_text()


def test_whoever_does_half_of_the_work_is_shown_and_not_ranked(
    freestone: Tool, deceive: Deceive, only_folder: Callable[[], Path]
) -> None:
    half = deceive("half_the_work")
    done = freestone("compare", "-a", "freestone", "-n", "4", "--", str(half))
    assert done.returncode == 4, done.stdout
    assert "freestone different output: it wrote" in done.stdout
    assert "(real)" not in done.stdout.splitlines()[0]
    cell = next(each for each in store.read_summary(only_folder()).cells if each.configuration == "freestone")
    assert (cell.status, cell.ratio) == ("different", {})
    assert cell.median["wall_s"] > 0, "shown"
    folder = str(only_folder())
    board = json.loads(freestone("report", folder, "--subject", "freestone", "--json").stdout)[0]["score"]
    assert [(each["configuration"], each["status"]) for each in board["left_out"]] == [("freestone", "different")]
    assert all("freestone" not in row["values"] for aspect in board["aspects"] for row in aspect["rows"])
    gate = freestone("diff", folder, "--before", "glibc", "--after", "freestone", "--max-slowdown", "5%")
    assert gate.returncode == 6, gate.stdout
    assert "no result any more" in gate.stdout
    exported = freestone("report", folder, "--benchmark-json", "exported")
    assert exported.returncode == 0, exported.stderr
    (written,) = Path(folder).resolve().parents[1].glob("exported/**/freestone.json")
    assert json.loads(written.read_text())["benchmarks"] == []
    assert "different output" in (only_folder() / "report.html").read_text()


def test_half_of_the_work_is_seen_past_a_clock_in_the_output(freestone: Tool, deceive: Deceive) -> None:
    half = deceive("half_the_work")
    done = freestone("compare", "-a", "freestone", "-n", "2", "--no-report", "--", str(half), "noon")
    assert done.returncode == 4
    assert "it wrote 21 lines where glibc writes 41" in done.stdout


def test_only_what_a_filter_leaves_is_compared(freestone: Tool, deceive: Deceive) -> None:
    words = ["compare", "-a", "freestone", "-n", "2", "--no-report", "--", str(deceive("half_the_work"))]
    assert freestone(*words[:6], "--compare-output", "head -n 3", *words[6:]).returncode == 0
    assert freestone(*words[:6], "--compare-output", "grep -v ^at", *words[6:], "noon").returncode == 4
    assert freestone(*words[:6], "--output-may-differ", *words[6:]).returncode == 0


def test_a_filter_that_fails_is_no_comparison(freestone: Tool) -> None:
    done = freestone("compare", "-a", "freestone", "-n", "1", "--compare-output", "grep nothing", "--", "echo", "x")
    assert done.returncode == 3
    assert "the filter --compare-output 'grep nothing' had exit status 1" in done.stdout


@pytest.mark.parametrize("more", [[], pytest.param(["--allow-failures", "10"], marks=pytest.mark.long)])
def test_the_quick_runs_of_a_program_with_a_slow_mode_are_not_what_it_costs(
    freestone: Tool, deceive: Deceive, tmp_path: Path, only_folder: Callable[[], Path], more: list[str]
) -> None:
    words = ["-n", "2", "--timeout", "2", "--no-report", *more, "--", str(deceive("slow_mode")), str(tmp_path / "runs")]
    done = freestone("compare", "-a", "glibc", *words)
    assert done.returncode == 3, done.stdout
    assert _statuses(store.read_summary(only_folder())) == {"glibc": "timeout"}
    assert "2 of 4 timed out" in done.stdout


def test_exit_statuses_that_are_ignored_are_as_good_as_0(freestone: Tool) -> None:
    words = ["compare", "-a", "freestone", "-n", "1", "--no-report", "--ignore-status"]
    assert freestone(*words, "3,4", "--", "sh", "-c", "exit 3").returncode == 0
    assert freestone(*words, "4", "--", "sh", "-c", "exit 3").returncode == 3
    wrong = freestone(*words, "none", "--", "true")
    assert wrong.returncode == 2
    assert "--ignore-status takes" in wrong.stderr


def test_another_exit_status_than_the_baselines_is_told_though_it_is_ignored(freestone: Tool) -> None:
    script = "case $LD_PRELOAD in *freestone.so*) exit 3;; esac"
    done = freestone(
        "compare", "-a", "freestone", "-n", "2", "--no-report", "--ignore-status", "3", "--", "sh", "-c", script
    )
    assert done.returncode == 4
    assert "exit status 3 where glibc has 0" in done.stdout


def test_workers_that_are_killed_before_their_last_words_are_counted_and_named(
    freestone: Tool, deceive: Deceive, only_folder: Callable[[], Path]
) -> None:
    worker = deceive("killed_worker")
    done = freestone("compare", "-a", "freestone", "-n", "1", "--no-report", "--", str(worker))
    assert done.returncode == 0, done.stdout
    assert f"3 processes of {worker}" in " ".join(done.stdout.split())
    for record in store.read_trials(only_folder()).records:
        assert record.proof.silent == {str(worker): 3}


def test_a_worker_that_is_killed_under_one_allocator_only_is_no_proof(freestone: Tool, deceive: Deceive) -> None:
    done = freestone(
        "compare", "-a", "freestone", "-n", "2", "--no-report", "--", str(deceive("killed_worker")), "here"
    )
    assert done.returncode == 4, done.stdout
    assert "freestone INVALID: no last words: 3 processes of" in done.stdout


def test_two_opposite_rules_are_refused(freestone: Tool) -> None:
    done = freestone("compare", "--wait-tree", "--allow-survivors", "--", "true")
    assert done.returncode == 2
    assert "opposite" in done.stderr


def test_a_script_that_is_edited_meanwhile_is_not_the_program_that_was_measured(
    freestone: Tool, tmp_path: Path, only_folder: Callable[[], Path]
) -> None:
    """It prints the same before and after, and an editor's new version comes in the third of some nine runs."""
    runs, script = tmp_path / "runs", tmp_path / "job.sh"
    count = f"n=$(cat {runs} 2>/dev/null || echo 0); echo $((n + 1)) >{runs}"
    edit = f"{count}; [ $n = 4 ] && mv {tmp_path}/new.sh {script}"
    script.write_text(f"{edit}\necho done\n")
    (tmp_path / "new.sh").write_text("echo done\n")
    done = freestone("compare", "-a", "freestone", "-n", "4", "--no-report", "--", "sh", str(script))
    assert done.returncode in (3, 4), done.stdout
    assert "job.sh is not what it was in the first trial: measure again" in " ".join(done.stdout.split())
    again = freestone("compare", "--resume", str(only_folder()))
    assert again.returncode == 2
    assert "job.sh is not what it was when it was begun" in again.stderr


def test_what_a_program_writes_to_is_no_input_that_changed(freestone: Tool, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("")
    command = f"date +%s%N >>{log}; tail -n 1 {log} >/dev/null; echo done"
    done = freestone("compare", "-a", "freestone", "-n", "3", "--no-report", "--", "sh", "-c", command)
    assert done.returncode == 0, done.stdout


def test_a_script_that_is_edited_while_it_runs_has_failed(freestone: Tool, tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("sleep 0.05; echo '#' >> job.sh\n")
    done = freestone("compare", "-n", "3", "-a", "glibc", "--no-report", "--json", "--", "sh", "job.sh", cwd=tmp_path)
    (cell,) = json.loads(done.stdout)["cells"]
    assert cell["status"] == "failed"
    assert cell["reason"].endswith("job.sh was changed while it ran")
