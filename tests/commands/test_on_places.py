"""Comparisons at several places: what each measured stays its own, and what one lacks, others have."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import others_modules
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reached_hosts import only, stand_in, trials
from waiting import soon

from freestone import native
from freestone.commands.on_places import ordered
from freestone.records import store

Tool = Callable[..., subprocess.CompletedProcess[str]]

OPTIONS = (
    *(["--on", "local"], ["--on=local"], ["--results", "r"], ["--json"], ["-n", "3"], ["--resume=x"]),
    *(["--subject", "s"], ["--markdown=x"]),
)
OF_THIS_PLACE = ("--on", "--results", "--json", "--resume", "--subject", "--markdown")
WORDS = st.lists(st.sampled_from(OPTIONS)).map(lambda parts: [word for part in parts for word in part])


@given(WORDS, st.lists(st.text(min_size=1)))
def test_an_order_says_everything_but_where(options: list[str], command: list[str]) -> None:
    found = ordered(["compare", *options, "--", *command])
    split = found.index("--")
    assert found[0] == "compare"
    assert found[split + 1 :] == command, "the program is nobody else's to read"
    assert not any(each.partition("=")[0] in OF_THIS_PLACE for each in found[1:split])


def test_modules_of_the_folder_are_not_the_labs(freestone: Tool, tmp_path: Path) -> None:
    others_modules.put_into(tmp_path)
    done = freestone("compare", "--on", "local", "-n", "1", "-a", "glibc", "--", "/bin/true")
    assert (done.returncode, others_modules.SAID in done.stderr) == (0, False), done.stderr


def test_the_same_line_again_measures_what_is_missing(freestone: Tool, tmp_path: Path) -> None:
    line = ["compare", "--into", "here", "-n", "2", "-a", "glibc,freestone", "--no-report", "--", "true"]
    assert freestone(*line).returncode == 0
    assert trials(tmp_path / "here") == 6
    kept = (tmp_path / "here" / store.TRIALS_FILE).read_bytes()
    again = freestone(*line)
    assert (again.returncode, "is complete" in again.stderr) == (0, True)
    assert (tmp_path / "here" / store.TRIALS_FILE).read_bytes() == kept
    other = freestone(*line[:-1], "ls")
    assert other.returncode == 2
    assert "it measured another command (true)" in other.stderr


def test_an_order_goes_on_in_its_own_folder_wherever_that_is_asked_for(freestone: Tool, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    asked = ("compare", "--on", "local", "-n", "1", "-a", "glibc", "--setup", "test -f there")
    freestone(*asked, "--", "true")  # the setup fails: nothing is measured yet
    folder = only(tmp_path / "results")
    shutil.rmtree(folder / "local")
    (tmp_path / "there").touch()
    done = freestone("compare", "--resume", folder, cwd=tmp_path / "elsewhere")
    assert done.returncode == 0, done.stderr
    assert trials(folder / "local") == 2


ABSENT = "mimalloc3"
"""An allocator of the catalogue that the home of a test does not have."""


def test_what_is_not_at_a_place_is_left_out_there_and_not_all_was_measured(freestone: Tool, tmp_path: Path) -> None:
    done = freestone("compare", "--on", "local", "-n", "1", "-a", f"glibc,{ABSENT},/nowhere/lib.so", "--", "true")
    assert done.returncode == 4, done.stderr
    assert f"local: left out here: allocator '{ABSENT}' is not available: " in done.stderr
    assert "local: left out here: allocator library /nowhere/lib.so does not exist" in done.stderr
    folder = only(tmp_path / "results")
    assert [each.name for each in store.read_experiment(folder / "local").configurations] == ["glibc"]
    assert (folder / store.REPORT_FILE).exists()
    listed = json.loads(freestone("list", "--json").stdout)
    assert [each["folder"] for each in listed] == [f"results/{folder.name}/local"]


def test_settings_with_commas_are_left_whole_where_another_allocator_is_missing(
    freestone: Tool, tmp_path: Path
) -> None:
    asked = f"freestone:FREESTONE_OPTIONS=harden=1,keeper=0,{ABSENT},glibc"
    done = freestone("compare", "--into", "here", "-n", "1", "-a", asked, "--no-report", "--", "true")
    assert done.returncode == 4, done.stderr
    measured = store.read_experiment(tmp_path / "here").configurations
    assert [each.environment for each in measured] == [{"FREESTONE_OPTIONS": "harden=1,keeper=0"}, {}]
    assert f"left out here: allocator '{ABSENT}' is not available" in done.stderr


@pytest.mark.parametrize("where", [["--on", "local"], ["--into", "here"]])
@pytest.mark.parametrize("asked", [["-a", "glibc,freestnoe"], ["-a", "glibc", "--baseline", "freestnoe"]])
@pytest.mark.parametrize("verb", [["compare", "--", "true"], ["bench", "field"]])
def test_a_slip_is_told_before_anything_is_ordered_or_run(
    freestone: Tool, tmp_path: Path, verb: list[str], asked: list[str], where: list[str]
) -> None:
    done = freestone(verb[0], *where, *asked, "-n", "1", *verb[1:])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("freestone: unknown allocator 'freestnoe'; did you mean freestone")
    assert done.stderr.count("\n") == 1
    assert not any((tmp_path / each).exists() for each in ("results", "here"))


def test_the_baseline_of_an_order_may_be_a_library_that_is_elsewhere(freestone: Tool, tmp_path: Path) -> None:
    words = ("compare", "--on", "local", "-n", "1", "-a", "glibc,mine=/nowhere/lib.so", "--baseline", "mine")
    assert "unknown allocator 'mine'" in freestone(*words, "--", "true").stderr, "told by the place"
    assert (only(tmp_path / "results") / store.ORDER_FILE).exists()


def test_the_same_line_again_says_again_that_not_all_is_measured(freestone: Tool, tmp_path: Path) -> None:
    line = ["compare", "--into", "here", "-n", "1", "-a", "glibc,./later.so", "--no-report", "--", "true"]
    for _ in range(2):
        done = freestone(*line)
        assert (done.returncode, "left out here: allocator library later.so does not exist" in done.stderr) == (4, True)
    shutil.copy(native.path("libfreestone.so"), tmp_path / "later.so")
    late = freestone(*line)
    assert late.returncode == 4
    assert "left out of here: it was begun without later.so; give a folder that is not there yet" in late.stderr


@pytest.mark.long
def test_a_program_that_measures_itself_is_not_waited_for(freestone: Tool, tmp_path: Path, command: list[str]) -> None:
    inner = shlex.join([*command, "compare", "--into", "inner", "-n", "1", "-a", "glibc", "--no-report", "--", "true"])
    words = ["compare", "--into", "outer", "-n", "1", "-a", "glibc", "--timeout", "60", "--no-report", "--"]
    done = freestone(*words, "sh", "-c", f"rm -rf inner; {inner}")
    assert "very machine" not in done.stderr
    assert trials(tmp_path / "inner") == 2, "the rehearsal, and the round"
    assert all(each.status != "failed" for each in store.read_trials(tmp_path / "outer").records), done.stdout


def test_a_report_of_an_order_that_nobody_has_carried_out_is_one_line(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]
) -> None:
    freestone("compare", "--on", "ssh:nowhere", "-n", "1", "-a", "glibc", "--", "true", env=by_ssh)
    done = freestone("report", str(only(tmp_path / "results")))
    assert (done.returncode, done.stdout) == (3, "")
    assert "no place has measured anything yet" in done.stderr
    assert not (tmp_path / "freestone-report.html").exists()


def test_one_that_cannot_be_reached_costs_the_others_nothing(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]
) -> None:
    asked = ["compare", "--on", "ssh:board,nowhere", "-n", "1", "-a", "glibc,freestone", "--seed", "3", "--", "true"]
    done = freestone(*asked, env=by_ssh)
    folder = only(tmp_path / "results")
    assert done.returncode == 4, done.stderr
    assert "nowhere: ssh: Could not resolve hostname nowhere" in done.stderr
    assert "not finished: nowhere; go on with: " in done.stderr
    assert trials(folder / "board") == 3
    assert store.read_experiment(folder / "board").seed == 3
    assert not (folder / "nowhere").exists()
    again = freestone("compare", "--resume", str(folder), env=by_ssh)
    assert again.returncode == 4
    assert trials(folder / "board") == 3


def test_another_lab_measures_nothing(freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]) -> None:
    (tmp_path / "tools" / "freestone").write_text("#!/bin/sh\necho freestone 0.0.1\n")
    done = freestone("compare", "--on", "ssh:board", "-n", "1", "-a", "glibc", "--", "true", env=by_ssh)
    assert done.returncode == 3
    assert "board: has freestone 0.0.1, and this one is" in done.stderr
    (tmp_path / "tools" / "freestone").unlink()
    missing = freestone("compare", "--on", "ssh:board", "-n", "1", "-a", "glibc", "--", "true", env=by_ssh)
    assert "board: there is no freestone on its path: install the wheel there" in missing.stderr


@pytest.fixture
def other_script(tmp_path: Path, by_ssh: dict[str, str]) -> dict[str, str]:
    """An environment in which the program ``work`` is one script here and another one on the board."""
    stand_in(tmp_path, "work", "exit 0 # as the board has it")
    mine = tmp_path / "mine" / "work"
    mine.parent.mkdir()
    mine.write_text("#!/bin/sh\nexit 0\n")
    mine.chmod(0o755)
    return {**by_ssh, "PATH": f"{mine.parent}:{by_ssh['PATH']}"}


def test_another_program_of_the_same_name_stands_beside_nobody(
    freestone: Tool, tmp_path: Path, other_script: dict[str, str]
) -> None:
    asked = ["compare", "--on", "local", "--on", "ssh:board", "-n", "3", "-a", "glibc,freestone", "--", "work"]
    done = freestone(*asked, env=other_script)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "Left out: local: another content of work." in said
    assert "on 2 machines" not in said
    assert "ranking" not in said
    page = (only(tmp_path / "results") / store.REPORT_FILE).read_text()
    assert "Left out: local: another content of work." in page


@pytest.mark.parametrize("failing", ["board", "local"])
def test_one_that_failed_puts_no_others_side_by_side(
    freestone: Tool, tmp_path: Path, other_script: dict[str, str], failing: str
) -> None:
    """Whichever is read first."""
    asked = ["compare", "--on", "local", "--on", "ssh:board,other", "-n", "3", "-a", "glibc,freestone", "--", "work"]
    assert freestone(*asked, env=other_script).returncode in (0, 4)
    order = only(tmp_path / "results")
    for place in ("board", "local", "other"):
        rewritten(order / place, content=place, failed=place == failing)
    said = " ".join(freestone("report", order, "--no-html").stdout.split())
    one, other = sorted({"board", "local", "other"} - {failing})
    assert "on 2 of 3 places" in said
    assert (
        f"Left out: {one}: another content of work." in said or f"Left out: {other}: another content of work." in said
    )


def rewritten(folder: Path, *, content: str, failed: bool) -> None:
    """As if the script had held something else there, or all of its runs had failed."""
    lines = []
    for record in store.read_trials(folder).records:
        files = {"files": dict.fromkeys(record.files, content)}
        gone = {"status": "failed", "reason": "exit status 1", "metrics": None} if failed else {}
        lines.append(record.model_copy(update={**files, **gone}).model_dump_json())
    (folder / store.TRIALS_FILE).write_text("".join(f"{line}\n" for line in lines))
    (folder / store.SUMMARY_FILE).unlink()


@pytest.mark.long
def test_a_variable_has_everywhere_the_value_that_it_has_here(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]
) -> None:
    lab = tmp_path / "tools" / "freestone"
    lab.write_text(lab.read_text().replace("\nexec", "\nexport FOO=there\nexec"))
    asked = ["compare", "--on", "ssh:board", "-n", "1", "-a", "glibc", "--env", "FOO", "--env=BAR", "--", "true"]
    done = freestone(*asked, env={**by_ssh, "FOO": "here", "BAR": "x=y"})
    assert done.returncode == 0, done.stderr
    order = only(tmp_path / "results")
    (workload,) = store.read_experiment(order / "board").workloads
    assert workload.environment == {"FOO": "here", "BAR": "x=y"}
    unset = freestone(*asked, env=by_ssh)
    assert unset.returncode == 2
    assert "--env takes NAME=VALUE, or NAME of a variable that is set, not 'FOO'" in unset.stderr
    assert only(tmp_path / "results") == order, "nothing is ordered"


def test_an_order_goes_on_by_the_version_that_began_it(freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]) -> None:
    freestone("compare", "--on", "ssh:nowhere", "-n", "1", "-a", "glibc", "--", "true", env=by_ssh)
    folder = only(tmp_path / "results")
    store.write_order(folder, store.read_order(folder).model_copy(update={"freestone_version": "0.0.1"}))
    done = freestone("compare", "--resume", folder, env=by_ssh)
    assert done.returncode == 2
    assert f"{folder} was begun by freestone 0.0.1, and this one is " in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.long
def test_a_clock_that_is_apart_is_told(freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]) -> None:
    stand_in(tmp_path, "date", "echo 1000000000")
    done = freestone("compare", "--on", "ssh:board", "-n", "1", "-a", "glibc", "--", "true", env=by_ssh)
    assert done.returncode == 0, done.stderr
    assert "s apart from this one; the times of day in its records are its own" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_costs_one_place_and_keeps_what_fits(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]
) -> None:
    cache = tmp_path / "board" / ".cache" / "freestone" / "orders"
    cache.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "small", cache], check=True)
    try:
        asked = ["compare", "--on", "ssh:board", "--on", "local", "-n", "12", "-a", "glibc,freestone", "--", "true"]
        done = freestone(*asked, env=by_ssh)
    finally:
        subprocess.run(["umount", cache], check=True)
    assert done.returncode == 4, done.stderr
    told = [line for line in done.stderr.splitlines() if "no space left on device" in line]
    assert len(told) == 1, done.stderr
    assert told[0].startswith("board: cannot write ")
    assert told[0].endswith("finished trials kept"), "how to go on is the order's to tell"
    assert done.stderr.splitlines()[-1].startswith("freestone: not finished: board; go on with: ")
    folder = only(tmp_path / "results")
    assert trials(folder / "local") == 36
    assert 0 < trials(folder / "board") < 36
    assert store.read_trials(folder / "board").damage == []


@pytest.mark.long
def test_results_that_cannot_be_fetched_are_not_taken_for_measured(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]
) -> None:
    tar = stand_in(tmp_path, "tar", "echo 'tar: the connection is gone' >&2\nexit 2")
    done = freestone("compare", "--on", "ssh:board", "-n", "1", "-a", "glibc", "--", "true", env=by_ssh)
    assert done.returncode == 3, done.stderr
    assert "board: tar: the connection is gone" in done.stderr
    assert "not finished: board; go on with: " in done.stderr
    tar.unlink()
    again = freestone("compare", "--resume", str(only(tmp_path / "results")), env=by_ssh)
    assert again.returncode == 0, again.stderr
    assert trials(only(tmp_path / "results") / "board") == 2


def test_a_place_without_any_of_the_allocators_is_one_line(freestone: Tool, tmp_path: Path) -> None:
    done = freestone("compare", "--on", "local", "-n", "1", "-a", ABSENT, "--", "true")
    assert done.returncode == 3
    assert done.stderr.count(f"allocator '{ABSENT}' is not available") == 1
    assert done.stderr.count("\n") == 2, done.stderr


def test_a_host_that_refuses_is_one_line(freestone: Tool, tmp_path: Path) -> None:
    if shutil.which("ssh") is None:
        pytest.skip("no ssh here (Debian: openssh-client)")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # a port that nobody listens on
        done = freestone(
            *("compare", "--on", f"ssh:me@127.0.0.1:{closed.getsockname()[1]}", "--on", "local"),
            *("-n", "1", "-a", "glibc", "--", "true"),
        )
    assert done.returncode == 4
    (told,) = [line for line in done.stderr.splitlines() if "onnection refused" in line]
    assert told.startswith("me-127.0.0.1-")
    assert trials(only(tmp_path / "results") / "local") == 2


@pytest.mark.long
def test_a_lost_connection_costs_a_trial(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str], command: list[str]
) -> None:
    asked = ["compare", "--on", "ssh:board", "-n", "4", "-a", "glibc,freestone", "--", "sleep", "0.3"]
    with subprocess.Popen([*command, *asked], cwd=tmp_path, env=by_ssh, stderr=subprocess.DEVNULL) as tool:
        there = tmp_path / "board" / ".cache" / "freestone" / "orders"
        soon(lambda: any(len(each.read_text().splitlines()) > 2 for each in there.glob("*/trials.jsonl")), 60)
        tool.kill()  # nobody tells the board
    (left,) = there.iterdir()
    soon(lambda: not store.is_being_written(left), 60)
    begun = trials(left)
    first = (left / store.TRIALS_FILE).read_text().splitlines()[:begun]
    assert 2 < begun < 12
    folder = only(tmp_path / "results")
    done = freestone("compare", "--resume", str(folder), env=by_ssh)
    assert done.returncode == 0, done.stderr
    assert trials(folder / "board") == 12
    assert (folder / "board" / store.TRIALS_FILE).read_text().splitlines()[:begun] == first, "nothing is measured twice"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--on", "cloud"], "--on takes local, ssh, slurm, dask"),
        (
            ["--on", "local", "--export-csv", "x.csv"],
            "--export-csv: that is of one machine's results: freestone report",
        ),
    ],
)
def test_what_cannot_be_ordered_is_one_line(freestone: Tool, tmp_path: Path, more: list[str], told: str) -> None:
    done = freestone("compare", *more, "--", "true")
    assert done.returncode == 2
    assert told in done.stderr
    assert not (tmp_path / "results").exists()
