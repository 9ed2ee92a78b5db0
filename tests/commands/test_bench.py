"""Many workloads in one run, from end to end: real programs, real allocators, one scoreboard."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.analysis import score
from freestone.records import store
from freestone.records.schema import Score, Summary

Tool = Callable[..., subprocess.CompletedProcess[str]]

SUITE = """
title = "two little programs"

[[workload]]
name = "own-{size}"
command = ["{python}", "-I", "-S", "-c", "{script}", "{size}"]
reads = "json"
matrix = { size = [100, 20000] }
quick = { size = 1 }
[workload.values]
script = '''
import sys, time
begun = time.perf_counter()
kept = [str(i) for i in range(int(sys.argv[1]))]
print('{"program": "own", "seconds": %.9f, "rss_kib_idle": 4096}' % (time.perf_counter() - begun))
'''

[[workload]]
name = "whole"
command = ["ls", "/"]

[[workload]]
name = "elsewhere"
command = ["true"]
needs = [{ program = "no-such-program", package = "some-package" }]
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(SUITE.replace("quick = { size = 1 }", ""))
    return path


@pytest.mark.long
def test_every_workload_runs_under_every_allocator_in_one_experiment(
    freestone: Tool, only_folder: Callable[[], Path], suite: Path, tmp_path: Path
) -> None:
    done = freestone("bench", "mine.toml", "-a", "freestone", "-n", "4", "--seed", "3", "--markdown", "board.md")
    assert done.returncode == 0, done.stderr
    assert "elsewhere is left out: no-such-program is not here; Debian's package some-package brings it" in done.stderr
    folder = only_folder()
    assert folder.name.endswith("-mine")
    assert "freestone against the best peer of each workload" in done.stdout
    assert f"Records: results/{folder.name}" in done.stdout

    experiment, reading = store.read_experiment(folder), store.read_trials(folder)
    assert [(w.name, w.reads) for w in experiment.workloads] == [
        ("own-100", "json"),
        ("own-20000", "json"),
        ("whole", "process"),
    ]
    assert len(reading.records) == 4 * 3 * 3
    first = sorted((r for r in reading.records if r.round == 0), key=lambda record: record.position)
    assert len({record.workload for record in first[:5]}) > 1, "workloads are interleaved"
    for record in reading.records:
        assert (record.status, record.proof.valid) == ("ok", True), record.reason
        assert (record.figures is None) == (record.workload == "whole")
        if record.figures is not None and record.metrics is not None:
            assert 0 < record.figures["seconds"] < record.metrics.wall_s

    board = score(experiment, reading.records, "freestone")
    assert board.aspects[0].name == "time"
    assert {row.workload for row in board.aspects[0].rows} == {"own-100", "own-20000", "whole"}
    idle = next(aspect for aspect in board.aspects if aspect.name == "RSS after idle")
    assert {row.workload for row in idle.rows} == {"own-100", "own-20000"}
    written = (tmp_path / "board.md").read_text()
    assert written.startswith("# Scoreboard: 3 workloads, 2 allocators\n")
    assert "freestone bench mine.toml -a freestone -n 4" in written
    assert "| own-20000 |" in written

    again = freestone("report", str(folder), "--json", "--no-html")
    (told,) = json.loads(again.stdout)
    assert Score.model_validate(told.pop("score")) == board
    assert Summary.model_validate(told) == store.read_summary(folder)
    other = freestone("report", str(folder), "--subject", "glibc", "--markdown", "other.md", "--no-html")
    assert other.stdout.startswith("glibc against the best peer of each workload")
    assert not (folder / store.REPORT_FILE).exists()
    assert "## Time: glibc's ratio to every peer" in (tmp_path / "other.md").read_text()

    report = freestone("report", str(folder))
    assert report.returncode == 0, report.stderr
    assert report.stdout.startswith("freestone against the best peer of each workload")
    assert "own-20000" in report.stdout
    assert (folder / store.REPORT_FILE).exists()


def test_a_program_that_breaks_its_promise_is_a_failed_trial(
    freestone: Tool, only_folder: Callable[[], Path], tmp_path: Path
) -> None:
    (tmp_path / "mute.toml").write_text(
        'title = "t"\n[[workload]]\nname = "mute"\ncommand = ["true"]\nreads = "json"\n'
        '[[workload]]\nname = "damaged"\ncommand = ["echo", "{\\"seconds\\": "]\nreads = "json"\n'
    )
    done = freestone("bench", "mute.toml", "-a", "glibc", "-n", "2")
    assert done.returncode == 3, done.stderr
    reasons = {record.workload: record.reason for record in store.read_trials(only_folder()).records}
    assert {record.status for record in store.read_trials(only_folder()).records} == {"failed"}
    assert reasons["mute"] == "it printed no line of JSON"
    assert reasons["damaged"].startswith("the last line it printed is not JSON")
    assert "glibc is left out on mute: failed: it printed no line of JSON" in done.stdout


def test_json_alone_is_on_standard_output(freestone: Tool, suite: Path, tmp_path: Path) -> None:
    done = freestone(
        "bench", "mine.toml", "-a", "glibc", "-n", "1", "--only", "whole", "--json", "--markdown", "board.md"
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "board.md").read_text().startswith("# Scoreboard: 1 workload, 1 allocator\n")
    board = Score.model_validate_json(done.stdout)
    assert board.subject == "glibc"
    assert [row.workload for row in board.aspects[0].rows] == ["whole"]


def test_a_suite_is_listed_without_being_run(freestone: Tool, suite: Path, tmp_path: Path) -> None:
    done = freestone("bench", "mine.toml", "--list")
    assert done.returncode == 0
    assert done.stdout.splitlines()[:3] == ["own-100", "own-20000", "whole"]
    assert done.stdout.splitlines()[3].startswith("elsewhere  (left out: no-such-program is not here")
    every = freestone("bench", "all", "--list").stdout.splitlines()
    assert "suite field:" in every
    assert "perl-keys" in [line.split()[0] for line in every]
    names = freestone("bench", "--list").stdout
    assert {line.split()[0] for line in names.splitlines()} >= {"field", "apps", "curves", "idle", "patterns"}
    assert not (tmp_path / "results").exists()


def test_inputs_that_cannot_be_kept_cost_the_workloads_that_read_them_alone(
    freestone: Tool, only_folder: Callable[[], Path], tmp_path: Path
) -> None:
    (tmp_path / "reads.toml").write_text(
        'title = "t"\n[[workload]]\nname = "reads"\ncommand = ["ls", "{inputs}"]\n'
        '[[workload]]\nname = "other"\ncommand = ["true"]\n'
    )
    (tmp_path / "file").touch()
    done = freestone("bench", "reads.toml", "-a", "glibc", "-n", "1", env={"XDG_CACHE_HOME": "file"})
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(f"freestone: reads is left out: cannot keep inputs in {tmp_path}/file/freestone/")
    assert [workload.name for workload in store.read_experiment(only_folder()).workloads] == ["other"]


def test_several_suites_are_one_experiment(
    freestone: Tool, only_folder: Callable[[], Path], suite: Path, tmp_path: Path
) -> None:
    (tmp_path / "more.toml").write_text('title = "t"\n[[workload]]\nname = "more"\ncommand = ["true"]\n')
    done = freestone("bench", "mine.toml", "more.toml", "-a", "glibc", "-n", "1", "--only", "whole", "--only", "more")
    assert done.returncode == 0, done.stderr
    assert [w.name for w in store.read_experiment(only_folder()).workloads] == ["whole", "more"]
    assert only_folder().name.endswith("-mine-more")


@pytest.mark.long
def test_quick_is_as_many_rounds_as_fit_into_a_minute_where_nobody_says_how_many(
    freestone: Tool, tmp_path: Path
) -> None:
    (tmp_path / "short.toml").write_text('title = "t"\n[[workload]]\nname = "short"\ncommand = ["true"]\n')
    asked = ("bench", "short.toml", "--quick", "-a", "glibc", "--results")
    assert freestone(*asked, "free").returncode == 0
    assert freestone(*asked, "told", "-n", "1").returncode == 0
    assert freestone(*asked, "timed", "--time-budget", "1").returncode == 0
    heads = {name: store.read_experiment(*(tmp_path / name).iterdir()) for name in ("free", "told", "timed")}
    assert {name: head.time_budget_s for name, head in heads.items()} == {"free": 60, "told": None, "timed": 1}
    assert heads["told"].rounds == 1 < heads["free"].rounds == heads["timed"].rounds


@pytest.mark.long
def test_the_quick_field_runs_under_libfreestone(freestone: Tool, only_folder: Callable[[], Path]) -> None:
    """One pattern of each kind of program, so that the suite and the programs agree about options."""
    done = freestone(
        "bench", "field", "idle", "--quick", "-a", "glibc", "-n", "1", "--timeout", "60",
        "--only", "lifo-*", "--only", "big-random", "--only", "pipeline-*", "--only", "server-1*", "--only", "graph",
        "--only", "idle-span-1M",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {record.status for record in store.read_trials(only_folder()).records} == {"ok"}


def test_programs_that_do_not_measure_themselves_are_kept_at_their_end(
    freestone: Tool, only_folder: Callable[[], Path]
) -> None:
    asked = ("bench", "apps", "--quick", "--idle", "1", "--only", "perl-keys", "-a", "glibc", "-n", "2")
    done = freestone(*asked, "--idle-rounds", "1", "--json")
    assert done.returncode == 0, done.stderr
    board = Score.model_validate_json(done.stdout)
    assert [[row.workload for row in each.rows] for each in board.aspects if each.name == "RSS after idle"] == [
        ["perl-keys"]
    ]
    for record in store.read_trials(only_folder()).records:
        assert record.metrics is not None
        rested = record.round == 0
        assert (record.metrics.rested_s > 0.5) == rested
        assert (record.figures is not None) == rested


@pytest.mark.long
def test_the_field_sleeps_when_told_to_and_has_its_rss_after_idle(
    freestone: Tool, only_folder: Callable[[], Path]
) -> None:
    asked = ("bench", "field", "--quick", "--idle", "1", "--only", "span-loop-1K", "--only", "lifo-*")
    listed = freestone(*asked, "--list")
    assert (listed.returncode, listed.stdout.split()) == (0, ["lifo-64-10000", "span-loop-1K"])
    done = freestone(*asked, "-a", "glibc", "-n", "2", "--idle-rounds", "1", "--json")
    assert done.returncode == 0, done.stderr
    board = Score.model_validate_json(done.stdout)
    idle = next(aspect for aspect in board.aspects if aspect.name == "RSS after idle")
    assert {row.workload for row in idle.rows} == {"lifo-64-10000", "span-loop-1K"}
    assert all(workload.idle == ["--idle", "1"] for workload in store.read_experiment(only_folder()).workloads)
    for record in store.read_trials(only_folder()).records:
        assert record.figures is not None
        assert record.metrics is not None
        assert (record.figures["seconds"] + 1 < record.metrics.wall_s) == (record.round == 0)
        assert ("rss_kib_idle" in record.figures) == (record.round == 0)
    refused = freestone("bench", "--resume", str(only_folder()), "--idle", "2")
    assert (refused.returncode, "leave out --idle" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no suite given; there are apps, curves, faults, field, "),
        (("feild",), "no suite is called 'feild'; did you mean field?"),
        (("none.toml",), "cannot read the suite none.toml: no such file or directory"),
        (("mine.toml", "--only", "hole"), "no workload matches 'hole'; did you mean whole?"),
        (("mine.toml", "--only", "elsewhere"), "none of the workloads of mine.toml can be measured here"),
        (("mine.toml", "-n", "1.5"), "Invalid value for -n: a whole number, not '1.5'"),
        (("mine.toml", "-n", "99999999"), "99999999 rounds never end; --rounds takes 100000 at most"),
        (("mine.toml", "--seed", "0.5"), "Invalid value for --seed: a whole number, not '0.5'"),
        (("field", "--idle", "1.5"), "Invalid value for --idle: a whole number of seconds, not '1.5'"),
        (
            ("faults", "-a", "freestone", "--baseline", "freestone", "--settings", "trim-0"),
            "the setting trim-0 is for glibc; compare that too, or leave the setting out",
        ),
        (("all", "--settings", "trim-1"), "no setting is called 'trim-1'; did you mean trim-0?"),
        (
            ("all", "--settings", "arenas-1", "-a", "freestone", "--baseline", "freestone"),
            "the setting arenas-1 is for glibc; compare that too, or leave the setting out",
        ),
        (("all", "-a", "jemallok"), "unknown allocator 'jemallok'; did you mean jemalloc"),
        (("all", "-n", "0"), "0 rounds measure nothing"),
        (("mine.toml", "-n", "0"), "0 rounds measure nothing"),
        (("mine.toml", "-a", "glibc", "--subject", "glib"), "'glib' is not measured; did you mean glibc?"),
        (("mine.toml", "-a", "jemallok"), "jemallok"),
        (("field", "--idle", "0"), "--idle: it takes from 1 s to 1 h, not '0'"),
        (("field", "--idle-rounds", "1"), "--idle-rounds is a number of rounds from 1 on, beside --idle, not 1"),
        (
            ("field", "--idle", "1", "--idle-rounds", "0"),
            "--idle-rounds is a number of rounds from 1 on, beside --idle",
        ),
        (("mine.toml", "--idle", "1"), "--idle is for suites whose programs sleep when told to"),
        (("mine.toml", "mine.toml"), "two workloads are named 'own-100'"),
    ],
)
def test_what_cannot_be_is_one_line(
    freestone: Tool, suite: Path, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = freestone("bench", *arguments)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if "is left out: no-such-program" not in line]
    assert said in line
    assert not (tmp_path / "results").exists(), "nothing is written before that"


def test_a_subject_that_is_not_measured_is_one_line(
    freestone: Tool, only_folder: Callable[[], Path], suite: Path
) -> None:
    assert freestone("bench", "mine.toml", "-a", "glibc", "-n", "1", "--only", "whole").returncode == 0
    done = freestone("report", only_folder(), "--subject", "glbc")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "freestone: 'glbc' is not measured; did you mean glibc?\n"


def test_markdown_that_cannot_be_written_costs_no_record(
    freestone: Tool, only_folder: Callable[[], Path], suite: Path
) -> None:
    done = freestone(
        "bench", "mine.toml", "-a", "glibc", "-n", "1", "--only", "whole", "--markdown", "no/such/folder.md"
    )
    assert done.returncode == 5
    assert "cannot write no/such/folder.md: no such file or directory" in done.stderr
    assert len(store.read_trials(only_folder()).records) == 2
    assert (only_folder() / store.SUMMARY_FILE).exists()


@pytest.mark.long
@pytest.mark.usefixtures("heard_signals")
def test_what_was_interrupted_goes_on(
    freestone: Tool, only_folder: Callable[[], Path], tmp_path: Path, command: list[str], environment: dict[str, str]
) -> None:
    # Interrupts the tool in its fourth run, rehearsals counted.
    script = "echo >> runs; if [ ! -e go ] && [ $(wc -l < runs) -ge 4 ]; then kill -INT $(cat tool); sleep 60; fi"
    (tmp_path / "stop.toml").write_text(
        f'title = "t"\n[[workload]]\nname = "w-{{n}}"\ncommand = ["sh", "-c", {json.dumps(script)}, "{{n}}"]\n'
        "matrix = { n = [1, 2] }\n"
    )
    arguments = [*command, "bench", "stop.toml", "-a", "glibc", "-n", "2"]
    tool = subprocess.Popen(
        ["sh", "-c", 'echo $$ >tool; exec "$@"', "sh", *arguments],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    _, said = tool.communicate(timeout=60)
    assert tool.returncode == 128 + signal.SIGINT, said
    folder = only_folder()
    assert f"go on with: freestone bench --resume results/{folder.name}" in said
    kept = len(store.read_trials(folder).records)
    assert 0 < kept < 8
    (tmp_path / "go").touch()
    refused = freestone("bench", "stop.toml", "--resume", str(folder))
    assert (refused.returncode, "leave out SUITE" in refused.stderr) == (2, True)
    done = freestone("bench", "--resume", str(folder))
    assert done.returncode == 0, done.stderr
    assert len(store.read_trials(folder).records) == 8


LITTLE_ROOM = """
import sys
from pathlib import Path
from freestone.suites import room
free = Path("free_mib").read_text()
room.free = lambda folder, **more: room.Room(*(int(each) for each in free.split()))
from freestone.cli import main
sys.exit(main())
"""
"""The tool on a machine that says what is free in it: memory, disk."""


@pytest.mark.long
@pytest.mark.usefixtures("heard_signals")
def test_what_there_is_no_room_for_any_more_is_left_out_and_named_and_nothing_is_lost(
    only_folder: Callable[[], Path], tmp_path: Path, environment: dict[str, str]
) -> None:
    def tool(*arguments: str, free: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "free_mib").write_text(free)
        return subprocess.run(
            ["sh", "-c", 'echo $$ >tool; exec "$@"', "sh", sys.executable, "-c", LITTLE_ROOM, *arguments],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120,
        )  # fmt: skip

    # Interrupts the tool in its ninth run, rehearsals counted; names no file that changes from call to call.
    script = "echo >> runs; if [ ! -e go ] && [ $(wc -l < runs) -ge 9 ]; then kill -INT $(cat too[l]); sleep 60; fi"
    (tmp_path / "rooms.toml").write_text(
        f'title = "t"\n[[workload]]\nname = "w-{{n}}"\ncommand = ["sh", "-c", {json.dumps(script)}, "{{n}}"]\n'
        'memory_mib = "{memory}"\ndisk_mib = "{disk}"\n'
        "cases = [{ n = 1, memory = 10, disk = 1 }, { n = 2, memory = 4000, disk = 1 },"
        " { n = 3, memory = 10, disk = 700 }]\n"
    )
    begun = tool("bench", "rooms.toml", "-a", "glibc", "-n", "3", free="5000 1000")
    assert begun.returncode == 128 + signal.SIGINT, begun.stderr
    assert "left out" not in begun.stderr
    folder = only_folder()
    written = (folder / store.TRIALS_FILE).read_bytes()
    kept = store.read_trials(folder).records
    assert 0 < len(kept) < 18
    (tmp_path / "go").touch()

    less = tool("bench", "--resume", str(folder), free="1500 200")
    assert "Traceback" not in less.stderr
    lines = [line for line in less.stderr.splitlines() if "is left out" in line]
    for line, name, lack in zip(
        lines,
        ("w-2", "w-3"),
        ("it needs 4,000 MiB of memory, where 1,500 MiB are free", "it needs 700 MiB of disk below "),
        strict=True,
    ):
        trials = sum(record.workload == name for record in kept)
        assert line.startswith(f"freestone: {name} is left out: {lack}")
        assert f"its {trials} finished trial{'' if trials == 1 else 's'} are kept" in line
    assert "where 200 MiB are free" in lines[1]
    assert (folder / store.TRIALS_FILE).read_bytes().startswith(written)
    now = store.read_trials(folder).records
    assert {record.workload for record in now[len(kept) :]} == {"w-1"}
    assert sum(record.workload == "w-1" for record in now) == 6
    assert "w-1" in less.stdout

    none = tool("bench", "--resume", str(folder), free="1 0")
    assert "w-1 is left out" not in none.stderr, "it is finished"
    assert len(store.read_trials(folder).records) == len(now)

    again = tool("bench", "--resume", str(folder), free="5000 1000")
    assert (again.returncode, "left out" in again.stderr) == (0, False), again.stderr
    assert len(store.read_trials(folder).records) == 18
