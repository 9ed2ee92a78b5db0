"""An archive from elsewhere puts files into the folder and nowhere else, and never takes the place of more."""

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

from freestone.experiments.engines import Unreachable, limits
from freestone.experiments.engines.archive import given_back, lost, packed, secured, unpacked
from freestone.records import store


def _archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def _link(name: str, to: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, to
    return member


def test_what_was_there_is_replaced_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "place"
    unpacked(_archive((tarfile.TarInfo("./trials.jsonl"), b"one\n")), folder)
    unpacked(_archive((tarfile.TarInfo("./trials.jsonl"), b"one\ntwo\n")), folder)
    assert (folder / "trials.jsonl").read_bytes() == b"one\ntwo\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["place"], "no scratch is left"


@pytest.mark.parametrize("name", ["../out", "{outside}/out", "a/../../out"])
def test_nothing_is_written_outside(tmp_path: Path, name: str) -> None:
    name = name.format(outside=tmp_path)
    with pytest.raises(Unreachable, match="could not be brought here"):
        unpacked(_archive((tarfile.TarInfo(name), b"x")), tmp_path / "place")
    assert list(tmp_path.rglob("*")) == [tmp_path / "place"]


def test_only_files_with_a_plain_name_are_taken(tmp_path: Path) -> None:
    """A results folder holds nothing else, and what is half written begins with a dot."""
    names = ["./fine", "a/b", ".half", "./a/b/c"]
    unpacked(_archive(*[(tarfile.TarInfo(name), b"x") for name in names]), tmp_path / "place")
    assert [each.name for each in (tmp_path / "place").rglob("*")] == ["fine"]


RESULTS = make_results()
COUNT = 12


def _folder(folder: Path, records: range | list[int], **changes: object) -> Path:
    experiment = RESULTS.experiment.model_copy(update=changes)
    measured = [RESULTS.records[number].model_copy(update={"experiment": experiment.id}) for number in records]
    return Results(experiment, measured, RESULTS.summary).write(folder)


NUMBERS = st.sets(st.integers(0, COUNT - 1))


@given(NUMBERS, NUMBERS)
@settings(max_examples=30)
def test_no_trial_that_is_here_is_ever_lost(here: set[int], there: set[int]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = _folder(Path(scratch) / "here", sorted(here))
        brought = packed(_folder(Path(scratch) / "there", sorted(there)))
        less = lost(brought, folder)
        if less is None:
            unpacked(brought, folder)
            assert store.read_trials(folder).records == [RESULTS.records[number] for number in sorted(there)]
        else:
            before = packed(folder)
            with pytest.raises(Unreachable, match="is left as it is") as error:
                unpacked(brought, folder)
            assert "\n" not in str(error.value)
            assert packed(folder) == before
        assert (less is None) == (here <= there)


@pytest.mark.parametrize("what", ["another", "damaged", "missing"])
def test_a_head_that_is_here_is_replaced_by_no_other(tmp_path: Path, what: str) -> None:
    here = _folder(tmp_path / "here", range(3))
    there = _folder(tmp_path / "there", range(5), **({"id": "other"} if what == "another" else {}))
    if what == "damaged":
        (there / store.EXPERIMENT_FILE).write_text("{]")
    if what == "missing":
        (there / store.EXPERIMENT_FILE).unlink()
    told = {"another": "holds another experiment", "damaged": "is damaged", "missing": "has lost the 3 trials"}[what]
    with pytest.raises(Unreachable, match=told):
        unpacked(packed(there), here)
    assert store.read_experiment(here) == RESULTS.experiment
    assert len(store.read_trials(here).records) == 3


def test_a_place_that_has_lost_its_results_is_given_them_back(tmp_path: Path) -> None:
    here = _folder(tmp_path / "here", range(3))
    there = tmp_path / "there"
    there.mkdir()
    given_back(packed(here), there)
    assert store.read_trials(there) == store.read_trials(here)
    more = _folder(tmp_path / "more", range(4))
    given_back(packed(here), more)
    assert len(store.read_trials(more).records) == 4, "what it has measured since is left"
    less = _folder(tmp_path / "less", range(2))
    with pytest.raises(Unreachable, match=r"it lacks 1 of the 3 trials that are here: take .*/less away there"):
        given_back(packed(here), less)
    assert len(store.read_trials(less).records) == 2


def test_links_are_left_out(tmp_path: Path) -> None:
    unpacked(_archive((_link("way", "/etc"), b""), (tarfile.TarInfo("fine"), b"x")), tmp_path / "place")
    assert [each.name for each in (tmp_path / "place").iterdir()] == ["fine"]


def test_no_archive_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(Unreachable) as error:
        unpacked(b"no archive", tmp_path / "place")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["sizes", "holes", "files"])
def test_more_than_is_taken_of_a_place_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(limits, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(limits, "MOST_FILES", 8)
    half, less = b"x" * (1 << 19), _folder(tmp_path / "place", range(3))
    before = packed(less)
    if kind == "holes":
        sent = _holes(tmp_path, 1 << 30)
        assert len(sent) < 1 << 16
    else:
        sizes = [half, half, b"x"] if kind == "sizes" else [b""] * 9
        sent = _archive(*((tarfile.TarInfo(f"{number}"), each) for number, each in enumerate(sizes)))
    told = "more than 8 files" if kind == "files" else "more than 1 MiB"
    for read in (unpacked, lost, given_back):
        with pytest.raises(Unreachable, match=told) as error:
            read(sent, less)
        assert "\n" not in str(error.value)
    assert secured(sent, less) == []
    assert packed(less) == before
    assert [each.name for each in tmp_path.iterdir() if each.is_dir()] == ["place"], "no scratch is left"


def _holes(folder: Path, size: int) -> bytes:
    """A file that says it is large, of nothing but holes, as GNU's tar packs it."""
    file = folder / "trials.jsonl"
    with file.open("wb") as hollow:
        hollow.truncate(size)
    done = subprocess.run(["tar", "-C", folder, "--sparse", "-cf", "-", file.name], capture_output=True, check=True)
    file.unlink()
    return done.stdout


def test_what_was_compressed_is_no_archive(tmp_path: Path) -> None:
    """A thousandth of what comes of it is sent."""
    sent = gzip.compress(_archive((tarfile.TarInfo("trials.jsonl"), bytes(1 << 20))))
    with pytest.raises(Unreachable, match="could not be brought here"):
        unpacked(sent, tmp_path / "place")


def test_as_much_as_is_taken_of_a_place_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = _archive(*((tarfile.TarInfo(name), b"x" * 512) for name in ("one", "two")))
    monkeypatch.setattr(limits, "MOST_BYTES", 1024)
    monkeypatch.setattr(limits, "MOST_FILES", 2)
    unpacked(sent, tmp_path / "place")
    assert len(packed(tmp_path / "place")) > 1024
    monkeypatch.setattr(limits, "MOST_BYTES", 1023)
    with pytest.raises(Unreachable, match="is not brought here"):
        packed(tmp_path / "place")
