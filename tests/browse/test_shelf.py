"""A folder in which nothing has changed is not read again; what has changed is seen."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest
from untouched import settle

from freestone.browse.shelf import Shelf
from freestone.records import store

MakeResult = Callable[..., Path]

FOLDERS = 1000


def test_of_a_thousand_folders_the_second_look_opens_none(
    place: Path, make_result: MakeResult, opens: list[str]
) -> None:
    made = [make_result(number) for number in range(FOLDERS)]
    settle(place)
    shelf = Shelf(place)
    opens.clear()
    first = shelf.look()
    assert len(first) == FOLDERS
    assert [each.name for each in first] == [each.name for each in reversed(made)]
    assert len({name for name in opens if name.endswith(store.EXPERIMENT_FILE)}) == FOLDERS
    opens.clear()
    assert shelf.look() == first
    assert opens == []


def test_of_those_that_changed_each_is_read(place: Path, make_result: MakeResult, opens: list[str]) -> None:
    made = [make_result(number) for number in range(5)]
    settle(place)
    shelf = Shelf(place)
    shelf.look()
    summary = store.read_summary(made[3]).model_copy(update={"headline": "now another"})
    store.write_summary(made[3], summary)
    opens.clear()
    assert [each.headline for each in shelf.look()][1] == "now another"
    assert {Path(name).parent for name in opens} == {made[3]}


def test_what_comes_and_goes_is_seen(place: Path, make_result: MakeResult) -> None:
    made = make_result(1)
    settle(place)
    shelf = Shelf(place)
    assert [each.name for each in shelf.look()] == [made.name]
    newer = make_result(2)
    assert [each.name for each in shelf.look()] == [newer.name, made.name]
    made.rename(place.parent / "elsewhere")
    assert [each.name for each in shelf.look()] == [newer.name]


def test_places_of_an_order_come_one_by_one(place: Path, make_result: MakeResult, opens: list[str]) -> None:
    first = make_result(1, below="fleet")
    (place / "fleet" / store.ORDER_FILE).write_text("{}")
    settle(place)
    shelf = Shelf(place)
    assert [each.folder for each in shelf.look()] == [str(first)]
    opens.clear()
    shelf.look()
    assert opens == []
    second = make_result(2, below="fleet")
    assert [each.folder for each in shelf.look()] == [str(second), str(first)]


def test_one_that_is_measured_is_running_though_no_file_has_changed(place: Path, make_result: MakeResult) -> None:
    folder = make_result(1)
    (folder / store.SUMMARY_FILE).unlink()
    (folder / store.TRIALS_FILE).touch()
    settle(place)
    shelf = Shelf(place)
    assert [each.state for each in shelf.look()] == ["interrupted"]
    with (folder / store.TRIALS_FILE).open("ab") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        if not store.is_being_written(folder):
            pytest.skip("/proc/locks does not show the locks of other processes here")
        assert [each.state for each in shelf.look()] == ["running"]
    assert [each.state for each in shelf.look()] == ["interrupted"]


def test_two_changes_within_one_tick_of_the_clock_are_both_seen(place: Path, make_result: MakeResult) -> None:
    folder = make_result(1, verdict="one")
    summary = folder / store.SUMMARY_FILE
    settle(place)
    changed = summary.stat()
    shelf = Shelf(place, clock=lambda: changed.st_mtime + 0.5)
    assert shelf.look()[0].headline == "one"
    with summary.open("r+") as file:  # the same inode, size and time
        text = file.read()
        file.seek(0)
        file.write(text.replace('"one"', '"two"'))
    settle(place)
    assert summary.stat().st_mtime_ns == changed.st_mtime_ns
    assert shelf.look()[0].headline == "two"
