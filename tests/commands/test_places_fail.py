"""What goes wrong at a place costs that place, and never what was measured, there or elsewhere."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_results import make_results
from reached_hosts import only, stand_in, trials
from waiting import soon

from freestone.commands import on_places
from freestone.experiments.engines import Carried, Unreachable, scratch
from freestone.records import store
from freestone.records.schema import Place

pytestmark = pytest.mark.long

Tool = Callable[..., subprocess.CompletedProcess[str]]

ASKED = ("compare", "--on", "ssh:board", "-n", "2", "-a", "glibc,freestone", "--", "true")
TRIALS = 6


def orders(tmp_path: Path) -> Path:
    return tmp_path / "board" / ".cache" / "freestone" / "orders"


def test_a_place_that_has_lost_its_results_is_given_them_back_and_goes_on(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]
) -> None:
    assert freestone(*ASKED, env=by_ssh).returncode == 0
    folder = only(tmp_path / "results")
    kept = (folder / "board" / store.TRIALS_FILE).read_bytes()
    begun = b"".join(kept.splitlines(keepends=True)[:4])  # as if it had been interrupted then
    (folder / "board" / store.TRIALS_FILE).write_bytes(begun)
    shutil.rmtree(tmp_path / "board")
    again = freestone("compare", "--resume", folder, env=by_ssh)
    assert again.returncode == 0, again.stderr
    assert "board: holds nothing of it any more: it is given what was brought from it, and goes on" in again.stderr
    assert trials(folder / "board") == TRIALS
    assert (folder / "board" / store.TRIALS_FILE).read_bytes().startswith(begun)


@pytest.mark.parametrize("what", ["fewer", "damaged"])
def test_a_place_that_holds_less_than_is_here_measures_nothing(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str], what: str
) -> None:
    assert freestone(*ASKED, env=by_ssh).returncode == 0
    folder = only(tmp_path / "results")
    kept = {name: (folder / "board" / name).read_bytes() for name in (store.EXPERIMENT_FILE, store.TRIALS_FILE)}
    there = orders(tmp_path) / f"{store.read_order(folder).id}-board"
    shutil.copytree(folder / "board", there)  # as where it was not complete
    if what == "fewer":
        (there / store.TRIALS_FILE).write_bytes(kept[store.TRIALS_FILE].splitlines(keepends=True)[0])
    else:
        (there / store.EXPERIMENT_FILE).write_text("{]")
    again = freestone("compare", "--resume", folder, env=by_ssh)
    assert again.returncode == 4, again.stderr
    (line,) = [line for line in again.stderr.splitlines() if line.startswith("board: ")]
    assert ("lacks 5 of the 6 trials" if what == "fewer" else "experiment.json is damaged") in line
    assert "and what is here is given back to it" in line
    assert {name: (folder / "board" / name).read_bytes() for name in kept} == kept
    assert trials(there) == (1 if what == "fewer" else TRIALS), "nothing was measured"
    shutil.rmtree(there)  # as it says
    assert freestone("compare", "--resume", folder, env=by_ssh).returncode == 0
    assert trials(folder / "board") == TRIALS
    assert not there.exists()


def test_what_is_complete_and_here_is_left_at_no_place(freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]) -> None:
    assert freestone(*ASKED, env=by_ssh).returncode == 0
    folder = only(tmp_path / "results")
    assert list(orders(tmp_path).iterdir()) == []
    held = {file.name: file.read_bytes() for file in (folder / "board").iterdir()}
    again = freestone("compare", "--resume", folder, env=by_ssh)
    assert again.returncode == 0, again.stderr
    assert "nothing was left to measure" in again.stderr
    assert held[store.TRIALS_FILE] == (folder / "board" / store.TRIALS_FILE).read_bytes()
    assert list(orders(tmp_path).iterdir()) == []


@pytest.mark.parametrize("what", ["interrupted", "added", "beside"])
def test_what_is_not_here_is_removed_at_no_place(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str], command: list[str], what: str
) -> None:
    order = '"$HOME"/.cache/freestone/orders/*'
    lab = " ".join(command)
    if what == "added":  # by another session, as this one looks
        stand_in(tmp_path, "wc", f'echo more >>$(echo {order})/{store.TRIALS_FILE}\nexec /usr/bin/wc "$@"')
    else:
        then = "exit 130" if what == "interrupted" else f'cd "$(echo {order})"; mkdir mine; touch mine/file'
        stand_in(tmp_path, "freestone", f'{lab} "$@" || exit\ncase "$*" in *--into*) {then};; esac')
    freestone(*ASKED, env=by_ssh)
    kept = only(orders(tmp_path))
    assert trials(only(tmp_path / "results") / "board") == TRIALS
    if what == "beside":
        assert [file.name for file in kept.iterdir()] == ["mine"]
        assert (kept / "mine" / "file").exists()
    else:
        assert len((kept / store.TRIALS_FILE).read_text().splitlines()) == TRIALS + (what == "added")


def test_what_a_shell_says_to_whoever_comes_in_is_no_part_of_an_answer(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]
) -> None:
    (tmp_path / "board").mkdir()
    (tmp_path / "board" / "greeting").write_text("Welcome\nto 1 board\n")
    done = freestone(*ASKED, env=by_ssh)
    assert (done.returncode, trials(only(tmp_path / "results") / "board")) == (0, TRIALS), done.stderr


def test_a_shell_that_does_nothing_is_one_line(freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]) -> None:
    stand_in(tmp_path, "ssh", "echo This account is not available.")
    done = freestone(*ASKED, env=by_ssh)
    assert done.returncode == 3
    assert "board: its shell ends before it does what it is asked for" in done.stderr


def test_a_tool_that_is_missing_there_is_not_taken_for_the_lab(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]
) -> None:
    stand_in(tmp_path, "tar", "echo 'sh: 1: tar: not found' >&2; exit 127")
    done = freestone(*ASKED, env=by_ssh)
    assert "board: sh: 1: tar: not found" in done.stderr
    assert "no freestone" not in done.stderr


def test_a_host_that_hangs_holds_nobody_who_asks_to_stop(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str], command: list[str]
) -> None:
    (tmp_path / "board").mkdir()
    (tmp_path / "board" / "hangs").touch()
    words = [*command, "compare", "--on", "local", *ASKED[1:]]
    with subprocess.Popen(words, cwd=tmp_path, env=by_ssh, stderr=subprocess.PIPE, text=True) as tool:
        results = tmp_path / "results"
        assert soon(lambda: any(results.glob("*")) and trials(only(results) / "local") == TRIALS, 120)
        tool.send_signal(signal.SIGINT)
        _, said = tool.communicate(timeout=100)
    assert tool.returncode == 130
    assert said.splitlines()[-1].startswith("freestone: interrupted; what was measured is kept, go on with: ")
    assert (only(results) / store.REPORT_FILE).exists()


def test_more_places_than_files_can_be_opened_are_worked_at_by_and_by(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str], command: list[str]
) -> None:
    stand_in(tmp_path, "ssh", "sleep 0.2; echo 'no route' >&2; exit 255")
    hosts = ",".join(f"host{number}" for number in range(30))
    done = subprocess.run(
        [*command, *ASKED[:1], "--on", f"ssh:{hosts}", "--on", "local", *ASKED[3:]],
        cwd=tmp_path,
        env=by_ssh,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96)),
    )
    assert done.returncode == 4, done.stderr
    assert "4 of the 31 places at once, since a process may have 96 files open: for more, ulimit -n" in done.stderr
    assert done.stderr.count(": no route") == 30
    assert trials(only(tmp_path / "results") / "local") == TRIALS


def test_a_fault_of_whatever_kind_costs_one_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken:
        def carry_out(self, order: object, place: object, folder: Path, tell: object, stop: object) -> Carried:
            raise ValueError("what nobody\nthought of")

    class Fine:
        def carry_out(self, order: object, place: object, folder: Path, tell: object, stop: object) -> Carried:
            return Carried(0, None)

    monkeypatch.setattr(on_places, "engine_of", lambda name: Broken() if name == "ssh" else Fine())
    monkeypatch.setattr("sys.argv", ["freestone", *ASKED])
    assert on_places.measure("x", ["ssh:board", "local"], tmp_path / "results", None, 1, []) == 3
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "board: ValueError: what nobody thought of"
    assert said[1].startswith("freestone: not finished: board; go on with: ")


def test_one_that_sends_too_much_costs_the_others_nothing(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]
) -> None:
    """A file of holes is large, and sent in a few bytes."""
    hollow = 'truncate -s 4G "$HOME/trials.jsonl"; exec /usr/bin/tar -C "$HOME" --sparse -cf - trials.jsonl'
    tar = stand_in(tmp_path, "tar", f'case $HOME in */board) {hollow};; esac\nexec /usr/bin/tar "$@"')
    asked = ["compare", "--on", "ssh:board,other", "-n", "2", "-a", "glibc,freestone", "--", "true"]
    done = freestone(*asked, env=by_ssh)
    assert done.returncode == 4, done.stderr
    assert "board: what it has measured is more than 1024 MiB, which is not brought here\n" in done.stderr
    assert "not finished: board; go on with: " in done.stderr
    folder = only(tmp_path / "results")
    assert trials(folder / "other") == TRIALS
    assert not list(folder.glob(".*"))
    tar.unlink()
    assert freestone("compare", "--resume", folder, env=by_ssh).returncode == 0
    assert trials(folder / "board") == TRIALS, "it is kept there"


def test_what_a_fetch_leaves_that_is_killed_is_no_place(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]
) -> None:
    asked = ["compare", "--on", "ssh:board,other", "-n", "2", "-a", "glibc,freestone", "--", "true"]
    assert freestone(*asked, env=by_ssh).returncode == 0
    folder = only(tmp_path / "results")
    process = os.fork()
    if process == 0:
        with scratch.made(folder) as left:
            shutil.copytree(folder / "board", left, dirs_exist_ok=True)
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(process, 0)
    (left,) = folder.glob(".*")
    said = freestone("report", folder, "--no-html")
    assert said.returncode == 0, said.stderr
    assert "fetched" not in said.stdout + said.stderr
    shown = json.loads(freestone("list", tmp_path / "results", "--json").stdout)
    assert {Path(each["folder"]).name for each in shown} == {"board", "other"}
    again = freestone("compare", "--resume", folder, env=by_ssh)
    assert again.returncode == 0, again.stderr
    assert not left.exists()


def test_one_damaged_place_takes_neither_the_report_nor_the_last_line(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]
) -> None:
    line = ("compare", "--on", "ssh:board", "--on", "local", *ASKED[3:])
    assert freestone(*line, env=by_ssh).returncode == 0
    folder = only(tmp_path / "results")
    (folder / "local" / store.EXPERIMENT_FILE).write_text("{]")
    (folder / store.REPORT_FILE).unlink()
    again = freestone("compare", "--resume", folder, env=by_ssh)
    assert again.returncode == 5, again.stderr
    assert "freestone: local is left out: " in again.stderr
    assert again.stderr.splitlines()[-1].startswith("freestone: not finished: local; go on with: ")
    assert "glibc" in again.stdout
    assert (folder / store.REPORT_FILE).exists()
    report = freestone("report", folder)
    assert report.returncode == 5
    assert report.stderr.count("\n") == 1
    assert "Report:  " in report.stdout
    listed = freestone("report", folder, "--json", "--no-html")
    assert len(json.loads(listed.stdout)) == 1
    (folder / "board" / store.EXPERIMENT_FILE).write_text("{]")
    none = freestone("report", folder)
    assert (none.returncode, none.stdout) == (5, "")
    assert none.stderr.splitlines()[-1] == f"freestone: none of the 2 results folders of {folder} can be read"


def test_places_that_are_one_machine_are_measured_one_after_the_other(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]
) -> None:
    line = ("compare", "--on", "ssh:board,twin", "-n", "3", "-a", "glibc", "--", "sleep", "0.3")
    done = freestone(*line, env=by_ssh)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("another place of an order is this very machine: waits until it has measured") == 1
    spans = []
    for name in ("board", "twin"):
        records = store.read_trials(only(tmp_path / "results") / name).records
        began = [datetime.fromisoformat(each.started_at) for each in records]
        spans.append((min(began), max(began) + timedelta(seconds=0.3)))
    first, second = sorted(spans)
    assert first[1] <= second[0]


HOLDS = """
import sys
from freestone.experiments import turns
with turns.taken(lambda: False, print):
    print("has it", flush=True)
    sys.stdin.read()
"""


def test_one_that_waits_for_its_turn_can_be_interrupted(
    tmp_path: Path, environment: dict[str, str], command: list[str]
) -> None:
    words = [*command, "compare", "--into", "here", "-n", "1", "-a", "glibc", "--no-report", "--", "true"]
    env = {**environment, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLDS], env=env, stdin=pipe, stdout=pipe) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"has it\n"
        with subprocess.Popen(words, cwd=tmp_path, env=env, stdout=pipe, stderr=pipe) as tool:
            assert tool.stderr is not None
            assert b"waits until it has measured" in tool.stderr.readline()
            tool.send_signal(signal.SIGINT)
            _, said = tool.communicate(timeout=60)
        other.communicate()
    assert tool.returncode == 130
    assert b"go on with: " in said
    assert trials(tmp_path / "here") == 0


@pytest.mark.parametrize("what", ["fails", "lacks libraries"])
def test_how_to_go_on_is_said_whatever_becomes_of_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    class Brings:
        def carry_out(self, order: object, place: Place, folder: Path, tell: object, stop: object) -> Carried:
            if place.engine == "ssh":
                raise Unreachable("is away")
            make_results().write(folder)
            return Carried(0, None)

    def fail(*_: object, **__: object) -> int:
        raise KeyError("nobody")

    monkeypatch.setattr(on_places, "engine_of", lambda name: Brings())
    monkeypatch.setattr("sys.argv", ["freestone", *ASKED])
    if what == "fails":
        monkeypatch.setattr("freestone.commands.report.report", fail)
    else:
        monkeypatch.setattr("freestone.reports.extras.missing", lambda: "something is missing")
    status = on_places.measure("x", ["ssh:board", "local"], tmp_path / "results", None, 1, [])
    said = capsys.readouterr().err.splitlines()
    assert said[-1].startswith("freestone: not finished: board; go on with: ")
    if what == "fails":
        assert (status, said[-2]) == (5, "freestone: no report: KeyError: 'nobody'; every record is kept")
    else:
        assert (status, said[-2]) == (4, "freestone: no report.html: something is missing")


@given(st.text())
def test_no_line_of_a_place_steers_the_terminal(line: str) -> None:
    told = on_places.passed_on(line)
    assert not any(unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp") for each in told)
    assert len(told) <= len(line)


def test_a_line_is_told_as_it_is() -> None:
    assert on_places.passed_on("freestone: glibc is größer: 3\u202f%, \x1b[31mred; go on with: x") == (
        "glibc is größer: 3\u202f%, ?[31mred"
    )
