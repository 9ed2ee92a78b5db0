"""Results copied together: whole, or nothing that looks like results."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freestone.commands.listed import folders
from freestone.records import store
from freestone.records.copies import Original, copy_together
from freestone.records.schema import Experiment, Order, Place, TrialRecord
from freestone.records.store import StoreError

PLACES = [Place(name="a", engine="merged")]
ORDER = Order(id="o", created_at="", freestone_version="1", words=["compare"], places=PLACES)

SYNCS = 9
"""Of four files, two folders, the order, all of it; and, when it has its name, of the folder that it is in."""


MakeExperiment = Callable[..., Experiment]
MakeRecord = Callable[..., TrialRecord]


@pytest.fixture
def original(tmp_path: Path, make_experiment: MakeExperiment, make_record: MakeRecord) -> Original:
    """A results folder with a record, a report, a folder of its owner's and what a killed write left."""
    folder = tmp_path / "one"
    folder.mkdir()
    experiment, record = make_experiment(), make_record("glibc", 0)
    store.write_experiment(folder, experiment)
    with store.TrialLog(folder) as log:
        log.append(record)
    (folder / store.REPORT_FILE).write_text("report")
    (folder / "notes").mkdir()
    (folder / "notes" / "mine.txt").write_bytes(os.urandom(300_000))
    (folder / ".summary.json.x1").write_text("half")
    return Original("a", folder, experiment, [record])


def content(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def test_copies_are_the_same_and_originals_stay(original: Original, tmp_path: Path) -> None:
    before = content(original.folder)
    second = Original("b", original.folder, original.experiment, original.records)
    copy_together([original, second], ORDER, tmp_path / "below" / "both")
    made = tmp_path / "below" / "both"
    assert content(original.folder) == before
    assert sorted(each.name for each in made.iterdir()) == ["a", "b", store.ORDER_FILE]
    left_behind = before.pop(".summary.json.x1")
    assert left_behind
    assert content(made / "a") == content(made / "b") == before
    assert store.read_order(made) == ORDER
    assert list(made.parent.iterdir()) == [made], "nothing else is left there"
    assert stat.S_IMODE(made.stat().st_mode) == stat.S_IMODE(made.parent.stat().st_mode)
    for name in (store.REPORT_FILE, store.TRIALS_FILE):
        assert (made / "a" / name).stat().st_mtime_ns == (original.folder / name).stat().st_mtime_ns


@pytest.mark.parametrize("kind", ["folder", "full", "file", "dangling"])
def test_what_is_there_is_left_alone(original: Original, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "both"
    if kind == "file":
        target.write_text("mine")
    elif kind == "dangling":
        target.symlink_to(tmp_path / "nowhere")
    else:
        target.mkdir()
        if kind == "full":
            (target / "mine").write_text("mine")
    before = content(tmp_path)
    with pytest.raises(StoreError, match="exists already; nothing is overwritten"):
        copy_together([original], ORDER, target)
    assert content(tmp_path) == before
    assert os.path.lexists(target)


def test_who_puts_something_there_meanwhile_keeps_it(
    original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "both"
    write = store.write_order

    def late(folder: Path, order: Order) -> None:
        write(folder, order)
        (target / "mine").write_text("mine")

    monkeypatch.setattr(store, "write_order", late)
    with pytest.raises(StoreError, match="cannot copy results into"):
        copy_together([original], ORDER, target)
    assert content(target) == {"mine": b"mine"}


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, SYNCS + 1), st.sampled_from([errno.ENOSPC, errno.EIO, errno.EDQUOT]))
def test_a_disk_that_is_full_at_any_moment_leaves_nothing(
    original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int, error: int
) -> None:
    target = tmp_path / "both"
    counted = [0]

    def fails(descriptor: object) -> None:
        counted[0] += 1
        if counted[0] > moment:
            raise OSError(error, os.strerror(error))

    said: str | None = None
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        try:
            copy_together([original], ORDER, target)
        except StoreError as refused:
            said = str(refused)
    if moment < SYNCS - 1:
        assert said is not None
        assert os.strerror(error).lower() in said
        assert sorted(each.name for each in tmp_path.iterdir()) == ["one"]
        return
    assert said is None
    assert store.read_order(target) == ORDER
    for each in sorted(target.rglob("*"), reverse=True):
        each.rmdir() if each.is_dir() else each.unlink()
    target.rmdir()


@pytest.mark.parametrize("moment", range(SYNCS + 1))
def test_one_that_is_killed_at_any_moment_leaves_nothing_that_is_listed(
    original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    place = tmp_path / "results"
    place.mkdir()
    process = os.fork()
    if process == 0:
        counted = [0]

        def ends(descriptor: object) -> None:
            counted[0] += 1
            if counted[0] > moment:
                os._exit(9)

        monkeypatch.setattr(os, "fsync", ends)
        copy_together([original], ORDER, place / "both")
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    whole = (place / "both" / store.ORDER_FILE).exists()
    assert [str(each.relative_to(place)) for each in folders(place)] == (["both/a"] if whole else [])
    assert whole == (moment >= SYNCS - 1)
    assert status == (0 if moment == SYNCS else 9)


def test_an_original_that_changes_meanwhile_is_told(
    original: Original, tmp_path: Path, make_record: MakeRecord
) -> None:
    with store.TrialLog(original.folder) as log:
        log.append(make_record("glibc", 1))
    with pytest.raises(StoreError, match="has changed while it was copied"):
        copy_together([original], ORDER, tmp_path / "both")
    assert not (tmp_path / "both").exists()


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_is_no_file_is_named_and_not_followed(original: Original, tmp_path: Path, kind: str) -> None:
    strange = original.folder / "strange"
    if kind == "link":
        strange.symlink_to("/etc/passwd")
    else:
        os.mkfifo(strange)
    with pytest.raises(StoreError, match="strange is neither a file nor a folder"):
        copy_together([original], ORDER, tmp_path / "both")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["one"]
