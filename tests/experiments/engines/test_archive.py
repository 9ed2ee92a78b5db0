"""An archive from elsewhere puts files into the folder and nowhere else."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from freestone.experiments.engines import Unreachable
from freestone.experiments.engines.archive import unpacked


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
    unpacked(_archive((tarfile.TarInfo("./trials.jsonl"), b"one\ntwo\n"), (tarfile.TarInfo("a/b"), b"x")), folder)
    assert (folder / "trials.jsonl").read_bytes() == b"one\ntwo\n"
    assert (folder / "a" / "b").read_bytes() == b"x"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["place"], "no scratch is left"


@pytest.mark.parametrize("name", ["../out", "/tmp/freestone-out", "a/../../out"])
def test_nothing_is_written_outside(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unreachable, match="could not be brought here"):
        unpacked(_archive((tarfile.TarInfo(name), b"x")), tmp_path / "place")
    assert not (tmp_path / "out").exists()


def test_links_are_left_out(tmp_path: Path) -> None:
    unpacked(_archive((_link("way", "/etc"), b""), (tarfile.TarInfo("fine"), b"x")), tmp_path / "place")
    assert [each.name for each in (tmp_path / "place").iterdir()] == ["fine"]


def test_no_archive_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(Unreachable) as error:
        unpacked(b"no archive", tmp_path / "place")
    assert "\n" not in str(error.value)
