"""A folder that nobody expected is a row of its own, and takes no other one from the list or the page."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.browse import listed as module
from freestone.browse.listed import listed
from freestone.browse.server import Server
from freestone.browse.shelf import Shelf
from freestone.browse.words import going_on, when
from freestone.records import store
from freestone.records.schema import Order, Place

MakeResult = Callable[..., Path]


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
    place: Path, make_result: MakeResult, server: Server, make: Callable[[Path], None], state: str
) -> None:
    strange = make_result(1, program="strange")
    make_result(2, program="plain")
    make(strange)
    found = {Path(each.folder).name: each for each in Shelf(place).look()}
    assert found[strange.name].state == state
    with urllib.request.urlopen(server.address, timeout=30) as answer:
        page = answer.read().decode()
    assert "verdict 2" in page
    assert strange.name in page


def test_what_nobody_thought_of_is_damage_with_its_name(
    make_result: MakeResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_result(1)

    def fails(*_: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(module, "_told", fails)
    row = listed(folder)
    assert (row.state, row.reason) == ("damaged", f"cannot tell what {folder} holds: RuntimeError: two lines")


def test_a_time_that_no_clock_of_ours_has_is_told_as_it_stands() -> None:
    for text in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "?"):
        assert when(text) == text


@pytest.mark.parametrize("engine", ["ssh", "merged", None])
def test_a_place_goes_on_by_its_order(place: Path, make_result: MakeResult, engine: str | None) -> None:
    folder = make_result(1, below="order")
    (folder / store.SUMMARY_FILE).unlink()
    if engine is not None:
        words = ["compare", "--", "./work"]
        places = [Place(name=folder.name, engine=engine, address="board")]
        order = Order(id="o", created_at="", freestone_version="0", words=words, places=places)
        store.write_order(place / "order", order)
    row = listed(folder)
    assert row.state == "interrupted"
    wanted = place / "order" if engine == "ssh" else folder
    assert going_on(row, "freestone") == f"freestone compare --resume {wanted}"
