"""An archive from elsewhere puts plain files into its folder alone, and never replaces more trials by fewer."""

from __future__ import annotations

import gzip
import io
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from invented_results import Results, make_results

from freestone.experiments.engines import Unreachable, archive
from freestone.records import store

RESULTS = make_results()
COUNT = 12


def _tar(*members: tuple[str, bytes]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, text in members:
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        tar.addfile(link)
    return content.getvalue()


def _folder(folder: Path, count: int, **changes: object) -> Path:
    experiment = RESULTS.experiment.model_copy(update=changes)
    measured = [record.model_copy(update={"experiment": experiment.id}) for record in RESULTS.records[:count]]
    return Results(experiment, measured, RESULTS.summary).write(folder)


def test_plain_files_are_taken_and_nothing_is_written_outside(tmp_path: Path) -> None:
    names = ["./fine", "a/b", ".half", "./a/b/c", "../out", f"{tmp_path}/out", "a/../../out"]
    archive.unpack(_tar(*[(name, b"x") for name in names]), tmp_path / "place")
    assert [each.relative_to(tmp_path) for each in tmp_path.rglob("*")] == [Path("place"), Path("place/fine")]


@given(st.integers(0, COUNT), st.integers(0, COUNT))
@settings(max_examples=20, deadline=None)
def test_no_trial_that_is_here_is_ever_lost(here: int, there: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = _folder(Path(scratch) / "here", here)
        with (folder / store.TRIALS_FILE).open("a") as file:
            file.write('{"half')  # as a crash leaves it
        before, sent = archive.pack(folder), archive.pack(_folder(Path(scratch) / "there", there))
        if there < here:
            with pytest.raises(Unreachable, match="do not continue those in "):
                archive.unpack(sent, folder)
            assert archive.pack(folder) == before
        else:
            archive.unpack(sent, folder)
            assert store.read_trials(folder).records == RESULTS.records[:there]


@pytest.mark.parametrize("what", ["another", "damaged", "missing"])
def test_a_head_that_is_here_is_replaced_by_no_other(tmp_path: Path, what: str) -> None:
    here = _folder(tmp_path / "here", 3)
    there = _folder(tmp_path / "there", 5, **({"id": "other"} if what == "another" else {}))
    sent = archive.pack(there)
    if what != "another":
        text = {} if what == "missing" else {store.EXPERIMENT_FILE: b"{]"}
        sent = _tar((store.TRIALS_FILE, (there / store.TRIALS_FILE).read_bytes()), *text.items())
    with pytest.raises(Unreachable, match="nothing was replaced"):
        archive.unpack(sent, here)
    assert store.read_experiment(here) == RESULTS.experiment
    assert len(store.read_trials(here).records) == 3


def test_a_folder_without_an_experiment_is_nothing(tmp_path: Path) -> None:
    assert archive.pack(tmp_path / "nowhere") == b""
    archive.unpack(b"", tmp_path / "place")
    assert not (tmp_path / "place").exists()


@pytest.mark.parametrize("kind", ["none", "compressed", "large", "holes"])
def test_no_archive_or_a_large_one_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 20)
    half = b"x" * (1 << 19)
    sent = {
        "none": b"no archive",
        "compressed": gzip.compress(_tar((store.TRIALS_FILE, bytes(1 << 20)))),
        "large": _tar(("1", half), ("2", half), ("3", b"x")),
        "holes": _hollow(tmp_path / "trials.jsonl", 1 << 30),
    }[kind]
    told = "more than 1 MiB" if kind in ("large", "holes") else "cannot be copied into"
    with pytest.raises(Unreachable, match=told) as error:
        archive.unpack(sent, tmp_path / "place")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "place").exists()


def _hollow(file: Path, size: int) -> bytes:
    """A large file of holes, as GNU tar packs it."""
    with file.open("wb") as hollow:
        hollow.truncate(size)
    words = ["tar", "-C", str(file.parent), "--sparse", "-cf", "-", file.name]
    return subprocess.run(words, capture_output=True, check=True).stdout
