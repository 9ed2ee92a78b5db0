"""Measurements on several machines: a fault costs one machine at most its current trial; the report has the rest."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_results import make_results
from reached_hosts import only, stand_in, trials
from waiting import soon

from freestone import native
from freestone.commands import into_folder, on_places
from freestone.experiments.engines import Carried, Unreachable
from freestone.records import store

Tool = Callable[..., subprocess.CompletedProcess[str]]

ASKED = ("compare", "--on", "ssh:board", "-n", "2", "-a", "glibc,freestone", "--", "true")
TRIALS = 6
ABSENT = "mimalloc3"
"""An allocator of the catalogue that the home of a test does not have."""

OPTIONS = st.sampled_from(
    (["--on", "local"], ["--on=local"], ["--results", "r"], ["--json"], ["-n", "3"], ["--into=x"])
)


@given(st.lists(OPTIONS), st.lists(st.text(min_size=1)))
def test_an_order_says_everything_but_where(options: list[list[str]], command: list[str]) -> None:
    words = [word for option in options for word in option]
    found = into_folder.measured(["compare", *words, "--", *command])
    assert found == ["compare", *(["-n", "3"] * options.count(["-n", "3"])), "--", *command]


def test_the_same_line_again_measures_whatever_is_missing(freestone: Tool, tmp_path: Path) -> None:
    line = ["compare", "--into", "here", "-n", "2", "-a", "glibc,./later.so", "--no-report", "--", "true"]
    done = freestone(*line)
    assert (done.returncode, "left out here: allocator library later.so does not exist" in done.stderr) == (4, True)
    trials_file = tmp_path / "here" / store.TRIALS_FILE
    kept = trials_file.read_bytes()
    trials_file.write_bytes(b"".join(kept.splitlines(keepends=True)[:2]))
    assert freestone(*line).returncode == 4
    assert trials(tmp_path / "here") == 4
    assert freestone(*line, "--json").returncode == 2, "behind -- it is the program's"
    shutil.copy(native.path("libfreestone.so"), tmp_path / "later.so")
    late = freestone(*line)
    assert (late.returncode, "is complete" in late.stderr) == (4, True)
    assert "left out of here: it was begun without later.so; give a folder that is not there yet" in late.stderr
    other = freestone(*line[:-1], "ls")
    assert (other.returncode, other.stdout, other.stderr.count("\n")) == (2, "", 1)
    assert (
        "cannot resume here: another line began it: freestone compare -n 2 -a glibc,./later.so -- true" in other.stderr
    )


def test_settings_with_commas_are_left_whole_if_another_allocator_is_missing(freestone: Tool, tmp_path: Path) -> None:
    asked = f"freestone:FREESTONE_OPTIONS=harden=1,keeper=0,{ABSENT},glibc"
    done = freestone("compare", "--into", "here", "-n", "1", "-a", asked, "--no-report", "--", "true")
    assert done.returncode == 4, done.stderr
    measured = store.read_experiment(tmp_path / "here").configurations
    assert [each.environment for each in measured] == [{"FREESTONE_OPTIONS": "harden=1,keeper=0"}, {}]


@pytest.mark.parametrize("where", [["--on", "local"], ["--into", "here"]])
@pytest.mark.parametrize("asked", [["-a", "glibc,freestnoe"], ["-a", "glibc", "--baseline", "freestnoe"]])
@pytest.mark.parametrize("verb", [["compare", "--", "true"], ["bench", "field"]])
def test_a_misspelt_allocator_is_refused_before_anything_runs(
    freestone: Tool, tmp_path: Path, verb: list[str], asked: list[str], where: list[str]
) -> None:
    done = freestone(verb[0], *where, *asked, "-n", "1", *verb[1:])
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("freestone: unknown allocator 'freestnoe'; did you mean freestone")
    assert not any((tmp_path / each).exists() for each in ("results", "here"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["compare", "--on", "cloud", "--", "true"], "--on takes local, ssh, slurm, dask"),
        (["compare", "--on", "local", "--export-csv", "x", "--", "true"], "--export-csv: that is of one machine's"),
        (["compare", "--on", "local", "--json", "--", "true"], "--json: that is of one machine's results"),
        (["compare", "--on", "local", "--no-report", "--", "true"], "--no-report: a report shows the results of"),
        (["compare", "--on", "local", "--into", "x", "--", "true"], "--on makes a results folder for each place"),
        (["compare", "--into", "x", "--resume", "y", "--", "true"], "--into and --resume both name the results folder"),
        (["bench", "nonesuch", "--on", "local"], "nonesuch"),
        (["bench", "--on", "local"], "no suite given"),
        (["bench", "all", "--on", "local"], "'all' makes a folder of each suite, and a place has one: name the suites"),
        (["bench", "all", "--into", "here"], "'all' makes a folder of each suite, and a place has one"),
        (["bench", "field", "--on", "local", "--markdown", "x.md"], "--markdown: that is of one machine's results"),
    ],
)
def test_whatever_cannot_be_ordered_is_one_line(freestone: Tool, tmp_path: Path, words: list[str], told: str) -> None:
    done = freestone(*words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert told in done.stderr
    assert list(tmp_path.glob("*")) in ([], [tmp_path / "home"])


def test_one_that_cannot_be_reached_costs_the_others_nothing(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]
) -> None:
    asked = ["compare", "--on", "ssh:board,nowhere", "--on", "local", "-n", "1", "-a", f"glibc,freestone,{ABSENT}"]
    done = freestone(*asked, "--seed", "3", "--", "true", env=by_ssh)
    folder = only(tmp_path / "results")
    assert done.returncode == 4, done.stderr
    assert "nowhere: ssh: Could not resolve hostname nowhere" in done.stderr
    assert f"local: left out here: allocator '{ABSENT}' is not available: " in done.stderr
    assert done.stderr.splitlines()[-1].startswith("freestone: not finished: nowhere; go on with: ")
    assert {each.name: trials(each) for each in store.places(folder)} == {"board": 3, "local": 3}
    assert store.read_experiment(folder / "board").seed == 3
    assert (folder / store.REPORT_FILE).exists()
    listed = json.loads(freestone("list", "--json").stdout)
    assert {Path(each["folder"]).name for each in listed} == {"board", "local"}
    (folder / "local" / store.EXPERIMENT_FILE).write_text("{]")
    again = freestone("compare", "--resume", folder, env=by_ssh)
    assert again.returncode == 5, again.stderr
    assert "freestone: local is left out: " in again.stderr
    assert again.stderr.splitlines()[-1].startswith("freestone: not finished: ")
    assert trials(folder / "board") == 3


def test_a_report_of_an_order_without_results_is_one_line(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]
) -> None:
    done = freestone("compare", "--on", "ssh:nowhere", "-n", "1", "-a", "glibc", "--", "true", env=by_ssh)
    assert (done.returncode, done.stderr.count("\n")) == (3, 2)
    done = freestone("report", str(only(tmp_path / "results")))
    assert (done.returncode, done.stdout) == (3, "")
    assert "no place has measured anything yet" in done.stderr


@pytest.mark.parametrize(
    ("tool", "script", "told"),
    [
        ("freestone", "echo freestone 0.0.1", "has freestone 0.0.1, and this one is"),
        ("freestone", "exit 127", "there is no freestone on its path: install the wheel there"),
        ("ssh", "echo This account is not available.", "its shell ends before it runs a command"),
        ("ssh", "echo 'me@board: Permission denied (publickey).' >&2; exit 255", "me@board: Permission denied"),
        ("tar", "echo 'sh: 1: tar: not found' >&2; exit 127", "sh: 1: tar: not found"),
    ],
)
def test_a_wrong_machine_is_one_clear_line_and_a_later_try_goes_on(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str], tool: str, script: str, told: str
) -> None:
    before = (tmp_path / "tools" / tool).read_text() if tool != "tar" else None
    stand_in(tmp_path, tool, script)
    done = freestone(*ASKED, env=by_ssh)
    assert done.returncode == 3
    (line,) = [line for line in done.stderr.splitlines() if told in line]
    assert line.startswith("board: ")
    assert done.stderr.splitlines()[-1].startswith("freestone: not finished: board; go on with: ")
    (tmp_path / "tools" / tool).unlink() if before is None else (tmp_path / "tools" / tool).write_text(before)
    again = freestone("compare", "--resume", only(tmp_path / "results"), env=by_ssh)
    assert (again.returncode, trials(only(tmp_path / "results") / "board")) == (0, TRIALS), again.stderr


def test_a_host_that_refuses_is_one_line(freestone: Tool) -> None:
    if shutil.which("ssh") is None:
        pytest.skip("no ssh here (Debian: openssh-client)")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # a port that nobody listens on
        host = f"me@127.0.0.1:{closed.getsockname()[1]}"
        done = freestone("compare", "--on", f"ssh:{host}", "-n", "1", "-a", "glibc", "--", "true")
    assert done.returncode == 3
    (line,) = [line for line in done.stderr.splitlines() if "onnection refused" in line]
    assert line.startswith("me-127.0.0.1-")


def test_a_complete_result_is_here_and_no_longer_there(freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]) -> None:
    (tmp_path / "board").mkdir()
    (tmp_path / "board" / "greeting").write_text("Welcome\nto 1 board\n")
    assert freestone(*ASKED, env=by_ssh).returncode == 0
    folder, there = only(tmp_path / "results"), tmp_path / "board" / ".cache" / "freestone" / "orders"
    assert list(there.iterdir()) == []
    kept = (folder / "board" / store.TRIALS_FILE).read_bytes()
    begun = b"".join(kept.splitlines(keepends=True)[:4])  # as if it had been interrupted, and the cache was lost
    (folder / "board" / store.TRIALS_FILE).write_bytes(begun)
    again = freestone("compare", "--resume", folder, env=by_ssh)
    assert again.returncode == 0, again.stderr
    assert trials(folder / "board") == TRIALS
    assert (folder / "board" / store.TRIALS_FILE).read_bytes().startswith(begun)
    assert list(there.iterdir()) == []


def test_a_machine_that_holds_less_than_is_here_replaces_nothing(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]
) -> None:
    assert freestone(*ASKED, env=by_ssh).returncode == 0
    folder = only(tmp_path / "results")
    kept = (folder / "board" / store.TRIALS_FILE).read_bytes()
    there = tmp_path / "board" / ".cache" / "freestone" / "orders" / f"{store.read_order(folder).id}-board"
    shutil.copytree(folder / "board", there)  # as if it were not complete
    (there / store.TRIALS_FILE).write_bytes(kept.splitlines(keepends=True)[3])
    again = freestone("compare", "--resume", folder, env=by_ssh)
    assert again.returncode == 4, again.stderr
    assert "board: its results do not continue those in " in again.stderr
    assert (folder / "board" / store.TRIALS_FILE).read_bytes() == kept
    assert there.exists()
    shutil.rmtree(there)  # as it says
    assert freestone("compare", "--resume", folder, env=by_ssh).returncode == 0
    assert (folder / "board" / store.TRIALS_FILE).read_bytes() == kept


@pytest.mark.long
@pytest.mark.parametrize("how", ["killed", "interrupted"])
def test_an_interruption_costs_a_trial(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str], command: list[str], how: str
) -> None:
    asked = ["compare", "--on", "ssh:board", "-n", "4", "-a", "glibc,freestone", "--", "sleep", "0.3"]
    with subprocess.Popen([*command, *asked], cwd=tmp_path, env=by_ssh, stderr=subprocess.PIPE, text=True) as tool:
        there = tmp_path / "board" / ".cache" / "freestone" / "orders"
        assert soon(lambda: any(len(each.read_text().splitlines()) > 2 for each in there.glob("*/trials.jsonl")), 60)
        tool.send_signal(signal.SIGKILL if how == "killed" else signal.SIGINT)
        _, said = tool.communicate(timeout=100)
    (left,) = there.iterdir()
    assert soon(lambda: not store.is_being_written(left), 60), "the lab there ends with the connection"
    begun = trials(left)
    first = (left / store.TRIALS_FILE).read_text().splitlines()[:begun]
    assert 2 < begun < 12
    folder = only(tmp_path / "results")
    if how == "interrupted":
        assert tool.returncode == 130
        assert said.splitlines()[-1].startswith("freestone: interrupted; finished trials are kept, go on with: ")
        assert trials(folder / "board") == begun
    done = freestone("compare", "--resume", str(folder), env=by_ssh)
    assert done.returncode == 0, done.stderr
    lines = (folder / "board" / store.TRIALS_FILE).read_text().splitlines()
    assert (len(lines), lines[:begun]) == (12, first), "nothing is measured twice"


@pytest.mark.long
def test_a_host_that_hangs_holds_nobody_who_stops(tmp_path: Path, by_ssh: dict[str, str], command: list[str]) -> None:
    (tmp_path / "board").mkdir()
    (tmp_path / "board" / "hangs").touch()
    words = [*command, "compare", "--on", "local", *ASKED[1:]]
    with subprocess.Popen(words, cwd=tmp_path, env=by_ssh, stderr=subprocess.PIPE, text=True) as tool:
        results = tmp_path / "results"
        assert soon(lambda: any(results.glob("*")) and trials(only(results) / "local") == TRIALS, 120)
        tool.send_signal(signal.SIGINT)
        _, said = tool.communicate(timeout=100)
    assert tool.returncode == 130
    assert said.splitlines()[-1].startswith("freestone: interrupted; ")
    assert (only(results) / store.REPORT_FILE).exists()


@pytest.mark.long
def test_places_that_are_one_machine_measure_one_after_the_other(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]
) -> None:
    done = freestone("compare", "--on", "ssh:board,twin", "-n", "3", "-a", "glibc", "--", "sleep", "0.3", env=by_ssh)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("another measurement is running on this machine: waits for it") == 1
    spans = []
    for name in ("board", "twin"):
        began = [datetime.fromisoformat(each.started_at) for each in store.read_trials(_place(tmp_path, name)).records]
        spans.append((min(began), max(began) + timedelta(seconds=0.3)))
    first, second = sorted(spans)
    assert first[1] <= second[0]


def _place(tmp_path: Path, name: str) -> Path:
    return only(tmp_path / "results") / name


def test_a_program_of_another_content_stands_beside_nobody(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]
) -> None:
    stand_in(tmp_path, "work", "exit 0 # as the board has it")
    mine = tmp_path / "mine" / "work"
    mine.parent.mkdir()
    mine.write_text("#!/bin/sh\nexit 0\n")
    mine.chmod(0o755)
    asked = ["compare", "--on", "local", "--on", "ssh:board", "-n", "3", "-a", "glibc,freestone", "--", "work"]
    done = freestone(*asked, env={**by_ssh, "PATH": f"{mine.parent}:{by_ssh['PATH']}"})
    assert done.returncode == 0, done.stderr
    assert "Left out: local: another content of work." in " ".join(done.stdout.split())
    assert "Left out: local: another content of work." in (only(tmp_path / "results") / store.REPORT_FILE).read_text()


@pytest.mark.long
def test_a_variable_has_everywhere_the_value_that_it_has_here(
    freestone: Tool, tmp_path: Path, by_ssh: dict[str, str]
) -> None:
    lab = tmp_path / "tools" / "freestone"
    lab.write_text(lab.read_text().replace("\nexec", "\nexport FOO=there\nexec"))
    asked = ["compare", "--on", "ssh:board", "-n", "1", "-a", "glibc", "--env", "FOO", "--env=BAR", "--", "true"]
    done = freestone(*asked, env={**by_ssh, "FOO": "here", "BAR": "x=y"})
    assert done.returncode == 0, done.stderr
    (workload,) = store.read_experiment(_place(tmp_path, "board")).workloads
    assert workload.environment == {"FOO": "here", "BAR": "x=y"}


def test_an_order_goes_on_as_it_was_begun(freestone: Tool, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    asked = ("compare", "--on", "local", "-n", "1", "-a", "glibc", "--setup", "test -f there", "--", "true")
    freestone(*asked)  # the setup fails: nothing is measured yet
    order = only(tmp_path / "results")
    for words, told in (
        (["compare", "--resume", order, "-n", "20"], f"--resume goes on with the settings of {order}; leave out -n"),
        (["compare", "--resume", order, "--on", "local"], "leave out --on"),
        (["compare", "--resume", order, "--", "ls"], "it measures another command"),
        (["compare", "--resume", order, "--json"], "--json: that is of one machine's results"),
        (["compare", "--resume", order, "--no-report"], "leave out --no-report"),
        (["bench", "field", "--resume", order], "was begun by freestone compare: go on with: "),
    ):
        done = freestone(*words)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), words
        assert told in done.stderr
    (tmp_path / "there").touch()
    done = freestone("compare", "--resume", order, "--", "true", cwd=tmp_path / "elsewhere")
    assert (done.returncode, trials(order / "local")) == (0, 2), done.stderr
    store.write_order(order, store.read_order(order).model_copy(update={"freestone_version": "0.0.1"}))
    done = freestone("compare", "--resume", order)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"{order} was begun by freestone 0.0.1, and this one is " in done.stderr


SUITE = """
title = "two little programs"
[[workload]]
name = "one"
command = ["true"]
[[workload]]
name = "other"
command = ["echo", "said"]
[[setting]]
name = "few"
allocators = ["mimalloc3"]
environment = { NONESUCH = "1" }
"""


def test_suites_are_ordered_and_go_on_too(freestone: Tool, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(SUITE)
    line = ["bench", "mine.toml", "--on", "local", "-n", "1", "-a", f"glibc,{ABSENT}", "--settings", "few"]
    done = freestone(*line)
    assert done.returncode == 4, done.stderr
    order = only(tmp_path / "results")
    assert order.name.endswith("-mine")
    (order / "local" / store.TRIALS_FILE).write_text("")
    again = freestone("bench", "--resume", str(order))
    assert (again.returncode, trials(order / "local")) == (4, 4), again.stderr
    other = freestone("bench", "mine.toml", "--into", order / "local", "-n", "1", "--only", "one")
    assert other.returncode == 2
    assert "it measured other workloads (other)" in other.stderr


@pytest.mark.parametrize("what", ["fails", "lacks libraries"])
def test_any_fault_costs_one_place_and_the_last_line_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    def engine(name: str) -> Callable[..., Carried]:
        def carry_out(order: object, place: object, folder: Path, tell: object, stop: object) -> Carried:
            if name == "ssh":
                raise ValueError("unexpected\nfault")
            if name == "slurm":
                raise Unreachable("is away")
            make_results().write(folder)
            return Carried(0, None)

        return carry_out

    def fail(*_: object, **__: object) -> int:
        raise KeyError("nobody")

    monkeypatch.setattr(on_places, "engine_of", engine)
    monkeypatch.setattr("sys.argv", ["freestone", *ASKED])
    if what == "fails":
        monkeypatch.setattr("freestone.commands.report.report", fail)
    else:
        monkeypatch.setattr("freestone.reports.extras.missing", lambda: "something is missing")
    status = on_places.measure("x", ["ssh:board", "slurm", "local"], tmp_path / "results", 1, [])
    said = capsys.readouterr().err.splitlines()
    assert {"board: ValueError: unexpected fault", "slurm: is away"} <= set(said)
    assert said[-1].startswith("freestone: not finished: ")
    told = {
        "fails": (5, "freestone: no report: KeyError: 'nobody'; every record is kept"),
        "lacks libraries": (4, "freestone: no report.html: something is missing"),
    }
    assert status == told[what][0]
    assert told[what][1] in said[-3:-1]


@given(st.text())
def test_no_line_of_a_place_steers_the_terminal(line: str) -> None:
    told = on_places.passed_on(line)
    assert all(each.isprintable() or each.isspace() for each in told)
    assert not set(told) & set("\n\r\x1b\x85\u2028\u2029\v\f")
    assert len(told) <= len(line)


def test_a_line_is_told_as_it_is() -> None:
    assert on_places.passed_on("freestone: glibc is größer: 3\u202f%, \x1b[31mred; go on with: x") == (
        "glibc is größer: 3\u202f%, ?[31mred"
    )
