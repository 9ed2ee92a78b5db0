"""No finished measurement is lost: whatever happens to the disk, the process or the file."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freestone.records import store
from freestone.records.schema import SCHEMA_VERSION, Experiment, Ratio, Summary, TrialRecord
from freestone.records.store import StoreError, TrialLog

NOW = datetime(2026, 11, 20, 13, 15, tzinfo=UTC)
fixed = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def _write(folder: Path, records: list[TrialRecord]) -> None:
    with TrialLog(folder) as log:
        for record in records:
            log.append(record)


def test_what_is_appended_is_read_back(tmp_path: Path, records: list[TrialRecord]) -> None:
    _write(tmp_path, records[:1])
    _write(tmp_path, records[1:])
    reading = store.read_trials(tmp_path)
    assert reading.records == records
    assert reading.damage == []


def test_a_folder_is_never_given_twice(tmp_path: Path) -> None:
    folders = [store.create_folder(tmp_path / "new" / "results", "json-sqlite", NOW) for _ in range(3)]
    assert [folder.name for folder in folders] == [
        "20261120T131500Z-json-sqlite",
        "20261120T131500Z-json-sqlite-2",
        "20261120T131500Z-json-sqlite-3",
    ]


@pytest.mark.parametrize("name", ["../../etc", "a b/c", "", "..", "ünï", "x" * 500, "-rf", "\0"])
def test_any_name_gives_a_folder_within_the_results(tmp_path: Path, name: str) -> None:
    folder = store.create_folder(tmp_path, name, NOW)
    assert folder.parent == tmp_path
    assert folder.is_dir()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot write results into .*file/results: not a directory") as caught:
        store.create_folder(tmp_path / "file" / "results", "name", NOW)
    assert "\n" not in str(caught.value)


def test_the_head_is_never_rewritten(tmp_path: Path, experiment: Experiment) -> None:
    store.write_experiment(tmp_path, experiment)
    assert store.read_experiment(tmp_path) == experiment
    with pytest.raises(StoreError, match="never rewritten"):
        store.write_experiment(tmp_path, experiment)


def test_a_head_that_is_not_seen_yet_is_not_rewritten_either(
    tmp_path: Path, experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a shared folder a look may say for a while that nothing is there; the file system itself knows."""
    store.write_experiment(tmp_path, experiment)
    monkeypatch.setattr(Path, "exists", lambda path: False)
    with pytest.raises(StoreError, match="never rewritten"):
        store.write_experiment(tmp_path, experiment.model_copy(update={"id": "another"}))
    monkeypatch.undo()
    assert store.read_experiment(tmp_path) == experiment
    assert [each.name for each in tmp_path.iterdir()] == [store.EXPERIMENT_FILE]


def test_a_file_system_without_links_has_a_head_too(
    tmp_path: Path, experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "operation not permitted")

    monkeypatch.setattr("os.link", refused)
    store.write_experiment(tmp_path, experiment)
    assert store.read_experiment(tmp_path) == experiment
    with pytest.raises(StoreError):
        store.write_experiment(tmp_path, experiment)


@fixed
@given(cut=st.integers(0, 5000), junk=st.binary(max_size=30))
def test_a_damaged_end_costs_one_line_and_the_next_record_is_whole(
    tmp_path_factory: pytest.TempPathFactory, records: list[TrialRecord], cut: int, junk: bytes
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    _write(folder, records[:2])
    path = folder / store.TRIALS_FILE
    whole = path.read_bytes()
    first_end = whole.index(b"\n") + 1
    damaged = whole[: max(first_end, len(whole) - cut)] + junk.replace(b"\n", b"")
    path.write_bytes(damaged)
    _write(folder, records[2:])
    reading = store.read_trials(folder)
    assert reading.records[0] == records[0]
    assert reading.records[-1] == records[2]
    assert len(reading.damage) <= 1
    assert path.read_bytes().startswith(damaged), "nothing that was there is taken away"


@fixed
@given(lines=st.lists(st.binary(max_size=60)))
def test_no_content_whatever_is_an_exception(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], records: list[TrialRecord]
) -> None:
    folder = tmp_path_factory.mktemp("junk")
    good = records[0].model_dump_json().encode()
    (folder / store.TRIALS_FILE).write_bytes(b"\n".join([*lines, good]))
    reading = store.read_trials(folder)
    assert reading.records[-1] == records[0]
    for damage in reading.damage:
        assert "\n" not in str(damage)


def test_damaged_lines_are_named_by_number(tmp_path: Path, records: list[TrialRecord]) -> None:
    good = records[0].model_dump_json()
    (tmp_path / store.TRIALS_FILE).write_text(f'{good}\n{good[:50]}\n\n{good}\n{{"experiment": 1}}\n\xff\n')
    reading = store.read_trials(tmp_path)
    assert len(reading.records) == 2
    assert [damage.line for damage in reading.damage] == [2, 5, 6]
    line = store.damage_line(tmp_path, reading.damage)
    assert line is not None
    assert line.startswith(f"{tmp_path / store.TRIALS_FILE}: 3 damaged, left out (line 2: ")


def test_a_line_of_a_newer_schema_is_left_out(tmp_path: Path, records: list[TrialRecord]) -> None:
    _write(tmp_path, [records[0].model_copy(update={"schema_version": SCHEMA_VERSION + 1}), records[1]])
    reading = store.read_trials(tmp_path)
    assert reading.records == records[1:2]
    assert "newer" in reading.damage[0].reason


def test_fields_of_a_later_minor_version_are_no_damage(tmp_path: Path, records: list[TrialRecord]) -> None:
    line = records[0].model_dump_json()
    (tmp_path / store.TRIALS_FILE).write_text(line[:-1] + ', "colour_of_the_sky": "grey"}\n')
    assert store.read_trials(tmp_path).records == records[:1]


def test_no_trials_file_is_no_record(tmp_path: Path) -> None:
    assert store.read_trials(tmp_path) == store.Reading([], [])


def test_two_writers_do_not_share_a_file(tmp_path: Path, records: list[TrialRecord]) -> None:
    with TrialLog(tmp_path), pytest.raises(StoreError, match="being written by another freestone"):
        TrialLog(tmp_path)
    _write(tmp_path, records)


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda folder: None, "holds no experiment.json; give a results folder"),
        (lambda folder: folder.rmdir(), "does not exist; give a results folder"),
        (lambda folder: (folder / "experiment.json").write_text("{"), "experiment.json is damaged: "),
        (lambda folder: (folder / "experiment.json").write_text("{}"), "experiment.json is damaged: id: "),
        (lambda folder: (folder / "experiment.json").mkdir(), "cannot read .*experiment.json: is a directory"),
    ],
)
def test_a_folder_without_a_good_head_is_one_line(tmp_path: Path, prepare: object, message: str) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    prepare(folder)  # type: ignore[operator]
    with pytest.raises(StoreError, match=message) as caught:
        store.read_experiment(folder)
    assert "\n" not in str(caught.value)


def test_a_head_of_a_newer_schema_is_refused(tmp_path: Path, experiment: Experiment) -> None:
    store.write_experiment(tmp_path, experiment.model_copy(update={"schema_version": SCHEMA_VERSION + 1}))
    with pytest.raises(StoreError, match="use a newer one"):
        store.read_experiment(tmp_path)


def test_a_newer_schema_is_named_before_what_of_it_makes_no_sense(tmp_path: Path) -> None:
    """What a newer one holds is not known here: it is newer, not damaged."""
    document = f'{{"schema_version": {SCHEMA_VERSION + 1}, "id": {{"session": 7}}}}'
    (tmp_path / store.EXPERIMENT_FILE).write_text(document)
    (tmp_path / store.TRIALS_FILE).write_text(document + "\n")
    with pytest.raises(StoreError, match=f"has schema version {SCHEMA_VERSION + 1}; .* use a newer one"):
        store.read_experiment(tmp_path)
    (damage,) = store.read_trials(tmp_path).damage
    assert damage.reason == f"schema version {SCHEMA_VERSION + 1} is newer than {SCHEMA_VERSION}: use a newer Freestone"


def test_an_unknown_interval_survives_the_file(tmp_path: Path) -> None:
    ratio = Ratio(value=1.0, low=0.0, high=float("inf"), pairs=1, different=False)
    summary = Summary(
        experiment="one", baseline="a", rounds_complete=1, cells=[], noise={"w": {"wall_s": ratio}}, headline="."
    )
    store.write_summary(tmp_path, summary)
    store.write_summary(tmp_path, summary)
    assert store.read_summary(tmp_path) == summary
    assert "Infinity" in (tmp_path / store.SUMMARY_FILE).read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == [store.SUMMARY_FILE], "no half file is left"


_FILL = """
import sys
from pathlib import Path
from freestone.records import store
from freestone.records.schema import TrialRecord
folder, record = Path(sys.argv[1]), TrialRecord.model_validate_json(sys.argv[2])
with store.TrialLog(folder) as log:
    for number in range(100000):
        try:
            log.append(record.model_copy(update={"round": number}))
        except store.StoreError as error:
            print(number)
            print(error)
            break
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = os.geteuid() == 0 and (
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True).returncode
        == 0
    )
    if not mounted:
        pytest.skip("mounting a small tmpfs needs root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def _fill(folder: Path, record: TrialRecord, limit: int | None) -> tuple[int, str]:
    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [sys.executable, "-c", _FILL, str(folder), record.model_dump_json()],
        capture_output=True,
        text=True,
        preexec_fn=limited,
        check=True,
    )
    number, message = done.stdout.splitlines()
    return int(number), message


def test_a_full_disk_keeps_what_was_measured(small_disk: Path, records: list[TrialRecord]) -> None:
    kept, message = _fill(small_disk, records[0], None)
    assert kept > 5
    assert message == f"cannot write {small_disk / store.TRIALS_FILE}: no space left on device"
    reading = store.read_trials(small_disk)
    assert [record.round for record in reading.records] == list(range(kept))
    assert reading.damage == []


def test_a_file_that_may_not_grow_keeps_what_was_measured(tmp_path: Path, records: list[TrialRecord]) -> None:
    kept, message = _fill(tmp_path, records[0], 20_000)
    assert kept > 5
    assert message == f"cannot write {tmp_path / store.TRIALS_FILE}: file too large"
    reading = store.read_trials(tmp_path)
    assert [record.round for record in reading.records] == list(range(kept))
    assert reading.damage == [], "half a record is taken back"
