"""What changed, and whether that is allowed: real results, from the command line."""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from freestone.records import store
from freestone.records.schema import Difference, Gate

Tool = Callable[..., subprocess.CompletedProcess[str]]
Document = dict[str, Any]
Edit = Callable[[Document], Document]

SUITE = """
title = "one little program"

[[setting]]
name = "one-heap"
allocators = ["freestone"]
environment = { FREESTONE_OPTIONS = "heaps=1" }

[[workload]]
name = "listing"
command = ["ls", "/"]

[[workload]]
name = "{word}"
command = ["echo", "{word}"]
matrix = { word = ["one", "two"] }
"""


@pytest.fixture
def measured(freestone: Tool, tmp_path: Path) -> Callable[[str], Path]:
    """``measured("before")`` runs the suite and gives its folder."""
    (tmp_path / "mine.toml").write_text(SUITE)

    def run(name: str, *more: str) -> Path:
        done = freestone("bench", "mine.toml", "-a", "freestone", "-n", "4", "--results", name, *more)
        assert done.returncode == 0, done.stderr
        (folder,) = (tmp_path / name).iterdir()
        return folder

    return run


def test_a_result_against_itself_has_no_change(freestone: Tool, measured: Callable[..., Path], tmp_path: Path) -> None:
    before, after = measured("before"), measured("after")
    done = freestone("diff", str(before), str(after), "--subject", "freestone", "--json", "--markdown", "diff.md")
    assert done.returncode == 0, done.stderr
    found = Difference.model_validate_json(done.stdout)
    assert found.subjects == {"freestone": "the same on both sides"}
    assert found.controls == ["glibc", "freestone+one-heap"]
    assert {(each.workload, each.aspect) for each in found.changes} == {
        (workload, aspect)
        for workload in (None, "listing", "one", "two")
        for aspect in ("time", "peak RSS", "minor faults")
    }
    text = (tmp_path / "diff.md").read_text()
    assert "| listing |" in text
    assert "## What the machine did in between" in text


def test_more_memory_is_found_and_the_gate_closes(
    freestone: Tool, measured: Callable[..., Path], tmp_path: Path
) -> None:
    """The second result is the first with a tenth more memory under another build: what a fatter library does."""
    before = measured("before")
    after = tmp_path / "fatter"
    shutil.copytree(before, after)
    _edit(after, _other_build, _fatter)
    done = freestone("diff", str(before), str(after))
    assert done.returncode == 0, done.stderr
    assert "freestone: +10.0 % peak RSS" in done.stdout.splitlines()[0]

    closed = freestone("diff", str(before), str(after), "--max-rss", "5%", "--markdown", "gate.md")
    assert closed.returncode == 6, closed.stderr
    assert closed.stdout.startswith("Exceeded: freestone, ")
    assert (tmp_path / "gate.md").read_text().startswith("# A limit is exceeded")
    opened = freestone("diff", str(before), str(after), "--max-rss", "12%", "--json")
    assert opened.returncode == 0, opened.stderr
    assert Gate.model_validate_json(opened.stdout).outcome in ("kept", "open")


@pytest.mark.long
def test_two_settings_of_one_result(freestone: Tool, measured: Callable[..., Path]) -> None:
    folder = measured("before")
    done = freestone("diff", str(folder), "--before", "freestone", "--after", "freestone+one-heap")
    assert done.returncode == 0, done.stderr
    assert "freestone (FREESTONE_OPTIONS unset) -> freestone+one-heap (FREESTONE_OPTIONS=heaps=1)\n" in done.stdout
    assert "paired within rounds" in done.stdout
    judged = freestone(
        "diff",
        str(folder),
        "--before",
        "freestone",
        "--after",
        "freestone+one-heap",
        "--max-faults",
        "1000%",
        "--strict",
    )
    assert judged.returncode in (0, 6), judged.stderr


@pytest.mark.long
def test_two_arms_of_one_result_are_told_with_what_each_is_held_against(
    freestone: Tool, measured: Callable[..., Path]
) -> None:
    folder = measured("before")
    _edit(folder, _changed_nothing, _fatter)
    done = freestone("diff", str(folder), "--before", "glibc", "--after", "freestone")
    assert done.returncode == 0, done.stderr
    first, _, sides = done.stdout.splitlines()[:3]
    assert first.startswith("freestone against glibc: ")
    assert first.count("against") == 1, "once for all of its changes"
    assert re.fullmatch(r"glibc \(.*build \w+\) -> freestone \(libfreestone .*build \w+\)", sides)


@pytest.mark.long
def test_settings_are_measured_beside_the_plain_allocator_and_can_be_left_out(
    measured: Callable[..., Path], freestone: Tool
) -> None:
    head = store.read_experiment(measured("with"))
    assert [(each.name, each.environment.get("FREESTONE_OPTIONS")) for each in head.configurations] == [
        ("glibc", None),
        ("freestone", None),
        ("freestone+one-heap", "heaps=1"),
    ]
    head = store.read_experiment(measured("without", "--settings", "none"))
    assert [each.name for each in head.configurations] == ["glibc", "freestone"]
    done = freestone("bench", "mine.toml", "--settings", "one-hep")
    assert (done.returncode, done.stderr) == (2, "freestone: no setting is called 'one-hep'; did you mean one-heap?\n")
    assert (
        "setting one-heap: freestone with FREESTONE_OPTIONS=heaps=1" in freestone("bench", "mine.toml", "--list").stdout
    )


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["diff", "{a}", "{a}", "--strict"], 2, "--strict needs a limit"),
        (
            ["diff", "{a}", "{a}", "--max-rss", "5"],
            2,
            "--max-rss takes a percentage from 0 % up, as in --max-rss 3%, not '5'",
        ),
        (["diff", "{a}", "{a}", "--max-slowdown", "-3%"], 2, "--max-slowdown takes a percentage from 0 % up"),
        (["diff"], 2, "give two results folders"),
        (["diff", "{a}"], 2, "one results folder is compared with --before and --after"),
        (["diff", "{a}", "--before", "glibc"], 2, "--before and --after go together"),
        (["diff", "{a}", "{a}", "--before", "glibc", "--after", "freestone"], 2, "--before and --after go together"),
        (["diff", "{a}", "--before", "glibc", "--after", "tbb"], 2, "'tbb' is not measured in"),
        (["diff", "{a}", "--before", "glibc", "--after", "freestone", "--subject", "glibc"], 2, "--subject is for two"),
        (["diff", "{a}", "{a}", "--subject", "tbb"], 2, "'tbb' is not in both results"),
        (["diff", "{a}", "no/such"], 5, "no/such does not exist"),
        (["diff", "{a}", "{other}"], 2, "results of different machines are never compared"),
        (["diff", "{a}", "{newer}"], 5, "schema version 99"),
        (["diff", "{a}", "{a}", "--markdown", "no/such/file.md"], 5, "cannot write no/such/file.md"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    freestone: Tool, few_results: dict[str, str], arguments: list[str], status: int, said: str
) -> None:
    done = freestone(*(word.format(**few_results) if "{" in word else word for word in arguments))
    assert (done.returncode, done.stderr.count("\n")) == (status, 1), done.stderr
    assert said in done.stderr
    assert done.stdout == ""


def test_a_damaged_record_is_named_and_the_rest_compared(freestone: Tool, few_results: dict[str, str]) -> None:
    path = Path(few_results["a"]) / store.TRIALS_FILE
    path.write_text(path.read_text() + "{half a rec\n")
    done = freestone("diff", few_results["a"], few_results["a"], "--subject", "freestone")
    assert done.returncode == 0
    assert "1 damaged, left out" in done.stderr


@pytest.fixture(scope="module")
def few_measured(forked_tool: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One round of one program."""
    place = tmp_path_factory.mktemp("few")
    (place / "few.toml").write_text('title = "t"\n[[workload]]\nname = "w"\ncommand = ["true"]\n')
    words = ["bench", "few.toml", "-a", "freestone", "-n", "1"]
    assert forked_tool.call(words, place, forked_tool.environment, 120).returncode == 0
    (folder,) = (place / "results").iterdir()
    return folder


@pytest.fixture
def few_results(few_measured: Path, tmp_path: Path) -> dict[str, str]:
    """One round of one program; the same from another machine, and from a Freestone that is not written yet."""
    folder = Path(shutil.copytree(few_measured, tmp_path / "few"))
    places = {"a": str(folder)}
    changes: dict[str, Document] = {
        "other": {"machine": {"id": "x", "facts": {"cpu": "x"}}},
        "newer": {"schema_version": 99},
    }
    for name, change in changes.items():
        shutil.copytree(folder, tmp_path / name)
        _edit(tmp_path / name, functools.partial(_changed, change), functools.partial(_changed, {}))
        places[name] = str(tmp_path / name)
    return places


def _edit(folder: Path, head: Edit, record: Edit) -> None:
    first, trials = folder / store.EXPERIMENT_FILE, folder / store.TRIALS_FILE
    first.write_text(json.dumps(head(json.loads(first.read_text()))))
    lines = [json.dumps(record(json.loads(line))) for line in trials.read_text().splitlines()]
    trials.write_text("\n".join(lines) + "\n")


def _changed(change: Document, document: Document) -> Document:
    return {**document, **change}


def _changed_nothing(head: Document) -> Document:
    return head


def _other_build(head: Document) -> Document:
    for configuration in head["configurations"]:
        if configuration["name"] == "freestone":
            configuration["allocator"]["build_id"] = "feed"
    return head


def _fatter(record: Document) -> Document:
    if record["configuration"] == "freestone":
        record["metrics"]["peak_rss_kib"] = round(record["metrics"]["peak_rss_kib"] * 1.1)
    return record
