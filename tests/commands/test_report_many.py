"""Reports of more machines than a page can hold whole."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.records import store
from simulated_fleet import fleet

Tool = Callable[..., subprocess.CompletedProcess[str]]

MACHINES = 20


@pytest.fixture
def order(tmp_path: Path) -> Path:
    return fleet.write(tmp_path, MACHINES, seed=1, rounds=5)


def test_kinds_come_first_and_every_machine_is_on_the_page(freestone: Tool, order: Path) -> None:
    done = freestone("report", order)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"solve on {MACHINES} machines\n")
    assert "AMD EPYC 9554 64-Core Processor" in done.stdout
    assert "epyc-0000" not in done.stdout, "the terminal has the kinds"
    page = (order / store.REPORT_FILE).read_text()
    assert all(f"<td>{place.name}</td>" in page for place in store.places(order))
    assert len(page) < 200_000, "no figures of single machines"


def test_a_damaged_machine_is_a_line_and_the_others_stand(freestone: Tool, order: Path) -> None:
    (store.places(order)[0] / store.EXPERIMENT_FILE).write_text("{")
    done = freestone("report", order)
    assert done.returncode == 5
    assert done.stdout.startswith(f"solve on {MACHINES - 1} machines\n")
    assert "is left out: " in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_damaged_one_of_those_that_were_typed_is_a_line_and_the_others_stand(freestone: Tool, order: Path) -> None:
    one, damaged, other = store.places(order)[:3]
    (damaged / store.EXPERIMENT_FILE).write_text("{")
    done = freestone("report", one, damaged, "nowhere", other)
    assert done.returncode == 5
    assert done.stdout.count("Records: ") == 2
    assert "solve on 2 machines" in done.stdout
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"freestone: {damaged.name} is left out: ")
    assert "experiment.json is damaged" in lines[0]
    assert lines[1].startswith("freestone: nowhere is left out: nowhere does not exist")
    assert (order.parent / "freestone-report.html").exists()
    none = freestone("report", damaged, "nowhere", "--no-html")
    assert (none.returncode, none.stdout) == (5, "")
    assert none.stderr.splitlines()[-1] == "freestone: none of the 2 results folders can be read"
    alone = freestone("report", damaged, "--no-html")
    assert (alone.returncode, alone.stderr.count("\n")) == (5, 1)
    assert "left out" not in alone.stderr


def test_as_json_there_is_a_summary_of_each(freestone: Tool, order: Path) -> None:
    done = freestone("report", order, "--json", "--no-html")
    assert done.returncode == 0, done.stderr
    assert [each["baseline"] for each in json.loads(done.stdout)] == ["glibc"] * MACHINES
    assert not (order / store.REPORT_FILE).exists()


@pytest.mark.parametrize("option", ["--figures", "--markdown", "--subject", "--benchmark-json"])
def test_what_is_of_one_machine_is_refused_in_a_line(freestone: Tool, order: Path, option: str) -> None:
    done = freestone("report", order, option, "x")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{option}: of one machine, as in freestone report " in done.stderr


def test_of_few_machines_each_stands_whole_and_is_linked(freestone: Tool, tmp_path: Path) -> None:
    few = fleet.write(tmp_path, 2, seed=1, rounds=4)
    done = freestone("report", few)
    assert done.returncode == 0, done.stderr
    page = (few / store.REPORT_FILE).read_text()
    first = store.places(few)[0].name
    assert f'<td><a href="#experiment-1">{first}</a></td>' in page
    assert '<article id="experiment-2"' in page
