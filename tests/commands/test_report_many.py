"""Reports of more machines than a page can hold whole."""

from __future__ import annotations

import json
import shutil
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
    damaged = store.places(order)[0]
    (damaged / store.EXPERIMENT_FILE).write_text("{")
    done = freestone("report", order)
    assert done.returncode == 5
    assert done.stdout.startswith(f"solve on {MACHINES - 1} of {MACHINES} places\n")
    assert f"Left out: {damaged.name}: cannot be read." in done.stdout
    assert "is left out: " in done.stderr
    assert done.stderr.count("\n") == 1


def test_places_that_have_nothing_are_named(freestone: Tool, order: Path) -> None:
    lost, *others = store.read_order(order).places
    shutil.rmtree(order / lost.name)
    done = freestone("report", order)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"solve on {MACHINES - 1} of {MACHINES} places\n")
    assert f"Left out: {lost.name}: nothing measured yet." in done.stdout
    assert "everywhere" not in done.stdout
    for place in others[1:]:
        shutil.rmtree(order / place.name)
    done = freestone("report", order, "--no-html")
    assert done.returncode == 0
    assert done.stderr.startswith(f"freestone: nothing measured yet at {lost.name}, ")
    assert done.stderr.count("\n") == 1


def test_one_machine_measured_twice_counts_once_and_kinds_stay(freestone: Tool, order: Path) -> None:
    first, second = store.places(order)[:2]
    machine = json.loads((first / store.EXPERIMENT_FILE).read_text())["machine"]
    other = json.loads((second / store.EXPERIMENT_FILE).read_text())
    (second / store.EXPERIMENT_FILE).write_text(json.dumps({**other, "machine": machine}))
    done = freestone("report", order)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"solve in {MACHINES} results of {MACHINES - 1} machines\n")
    assert " kind " in done.stdout
    assert f"<h1>{MACHINES - 1} machines</h1>" in (order / store.REPORT_FILE).read_text()


def test_a_copy_of_a_measurement_counts_once(freestone: Tool, order: Path) -> None:
    one, other = store.places(order)[:2]
    copy = order.parent / "copy"
    shutil.copytree(one, copy)
    trials = copy / store.TRIALS_FILE
    trials.write_text("".join(trials.read_text().splitlines(keepends=True)[:-1]))
    done = freestone("report", copy, other, one, "--no-html")
    assert done.returncode == 0
    assert done.stderr == f"freestone: {copy} is the same measurement as {one}: it counts once\n"
    assert "solve on 2 machines" in done.stdout
    assert "more than once" not in done.stdout
    shutil.copytree(one, order / "copy")
    done = freestone("report", order, "--no-html")
    assert done.stdout.startswith(f"solve on {MACHINES} machines\n")
    assert done.stderr.count("is the same measurement as") == 1


def test_parts_of_one_machine_are_one_machine_at_the_top(freestone: Tool, tmp_path: Path) -> None:
    few = fleet.write(tmp_path, 2, seed=1, rounds=4)
    one, other = (json.loads((place / store.EXPERIMENT_FILE).read_text()) for place in store.places(few))
    facts = {**one["machine"]["facts"], "cores_allowed": 1}  # another set of its processors
    other["machine"] = {**one["machine"], "id": "another", "facts": facts}
    (store.places(few)[1] / store.EXPERIMENT_FILE).write_text(json.dumps(other))
    done = freestone("report", few)
    assert "solve in 2 results of one machine" in done.stdout
    assert "<h1>2 experiments on 1 machine</h1>" in (few / store.REPORT_FILE).read_text()


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
