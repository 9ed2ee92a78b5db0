"""A results folder in any state is a row of the list, and hides no other one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.commands import listed as module
from freestone.commands.list_results import going_on, list_results, when
from freestone.commands.listed import listed
from freestone.records import store
from freestone.records.schema import Experiment, Order, Place, Summary

MakeResult = Callable[..., Path]


@pytest.fixture
def make_result(tmp_path: Path, make_experiment: Callable[..., Experiment]) -> MakeResult:
    """``make_result(name)`` makes a results folder with a summary and gives it."""

    def make(name: str) -> Path:
        folder = tmp_path / "results" / name
        folder.mkdir(parents=True)
        store.write_experiment(folder, make_experiment(id=folder.name))
        verdict = f"verdict of {folder.name}"
        summary = Summary(experiment=folder.name, baseline="glibc", rounds_complete=5, cells=[], headline=verdict)
        store.write_summary(folder, summary)
        return folder

    return make


def _head(folder: Path, **changes: object) -> None:
    file = folder / store.EXPERIMENT_FILE
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def _pipe(folder: Path) -> None:
    (folder / store.EXPERIMENT_FILE).unlink()
    os.mkfifo(folder / store.EXPERIMENT_FILE)


def _endless(folder: Path) -> None:
    (folder / store.SUMMARY_FILE).unlink()
    (folder / store.SUMMARY_FILE).symlink_to("/dev/zero")


def _endless_trials(folder: Path) -> None:
    (folder / store.SUMMARY_FILE).unlink()
    (folder / store.TRIALS_FILE).symlink_to("/dev/zero")


STRANGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "before the first year": (lambda folder: _head(folder, created_at="0001-01-01T00:00:00+14:00"), "complete"),
    "after the last year": (lambda folder: _head(folder, created_at="9999-12-31T23:59:59-14:00"), "complete"),
    "no time": (lambda folder: _head(folder, created_at="yesterday"), "complete"),
    "no workload": (lambda folder: _head(folder, workloads=[]), "damaged"),
    "a pipe": (_pipe, "damaged"),
    "an endless summary": (_endless, "interrupted"),
    "endless trials": (_endless_trials, "damaged"),
}


@pytest.mark.parametrize(("make", "state"), STRANGE.values(), ids=STRANGE)
def test_a_strange_folder_is_a_row_and_the_others_stand(
    make_result: MakeResult, capsys: pytest.CaptureFixture[str], make: Callable[[Path], None], state: str
) -> None:
    strange, plain = make_result("20261120T000001Z-strange"), make_result("20261120T000002Z-plain")
    make(strange)
    assert listed(strange).state == state
    assert list_results(plain.parent) == 0
    out, err = capsys.readouterr()
    assert "verdict of 20261120T000002Z-plain" in out
    assert strange.name in (err if state == "damaged" else out)


def test_what_nobody_thought_of_is_damage_with_its_name(
    make_result: MakeResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_result("one")

    def fails(*_: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(module, "_told", fails)
    row = listed(folder)
    assert (row.state, row.reason) == ("damaged", f"cannot tell what {folder} holds: RuntimeError: two lines")


def test_a_time_that_no_clock_of_ours_has_is_told_as_it_stands() -> None:
    for text in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "?"):
        assert when(text) == text


@pytest.mark.parametrize("engine", ["ssh", "merged", None])
def test_a_place_goes_on_by_its_order(make_result: MakeResult, engine: str | None) -> None:
    folder = make_result("order/one")
    (folder / store.SUMMARY_FILE).unlink()
    if engine is not None:
        words = ["compare", "--", "true"]
        places = [Place(name=folder.name, engine=engine, address="board")]
        order = Order(id="o", created_at="", freestone_version="0", words=words, places=places)
        store.write_order(folder.parent, order)
    row = listed(folder)
    assert row.state == "interrupted"
    wanted = folder.parent if engine == "ssh" else folder
    assert going_on(row, "freestone") == f"freestone compare --resume {wanted}"
