"""The cache of built peers: only what is whole is found, whatever happened to a build."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freestone.allocators.peers import CacheError, Receipt, at, built, cache, remove, root


def receipt(name: str = "bump", built_at: str = "2026-11-20T12:00:00.000+00:00") -> Receipt:
    return Receipt(
        name=name,
        version="1.0",
        library=f"lib{name}.so",
        package="bump-sys",
        package_version="0.1.0+1.0",
        package_sha256="0" * 64,
        compilers={"C compiler": "cc 12"},
        commands=["cc -shared bump.c"],
        environment={"BUMP": "1"},
        built_at=built_at,
        build_s=1.5,
    )


def put(folder: Path, made: Receipt, place: str) -> cache.Built:
    with cache.building(made.name, folder) as work:
        parts = work / "parts"
        parts.mkdir()
        (parts / made.library).write_bytes(b"library")
        return cache.store(parts, made, folder / place)


def test_the_cache_is_where_the_user_has_caches() -> None:
    assert root({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/freestone/peers")
    assert root({"HOME": "/h"}) == Path("/h/.cache/freestone/peers")


def test_a_stored_peer_is_found(tmp_path: Path) -> None:
    there = put(tmp_path, receipt(), "bump-1.0-a")
    assert built(tmp_path) == {"bump": there}
    assert there.library.read_bytes() == b"library"
    assert at(there.library) == receipt()
    assert receipt().origin == "built from bump-sys 0.1.0"


def test_an_empty_or_absent_cache_holds_nothing(tmp_path: Path) -> None:
    assert built(tmp_path) == {}
    assert built(tmp_path / "absent") == {}


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_damaged_receipt_is_no_peer(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        there = put(Path(folder), receipt(), "bump-1.0-a")
        whole = (there.folder / cache.RECEIPT).read_bytes()
        cut = data.draw(st.integers(0, len(whole.rstrip()) - 1))
        (there.folder / cache.RECEIPT).write_bytes(whole[:cut])
        assert built(Path(folder)) == {}
        assert at(there.library) is None


@pytest.mark.parametrize("library", ["../libbump.so", "/etc/passwd", "absent.so"])
def test_a_receipt_for_a_file_elsewhere_is_no_peer(tmp_path: Path, library: str) -> None:
    there = put(tmp_path, receipt(), "bump-1.0-a")
    changed = receipt().model_copy(update={"library": library})
    (there.folder / cache.RECEIPT).write_text(changed.model_dump_json())
    assert built(tmp_path) == {}


def test_any_other_library_has_no_receipt(tmp_path: Path) -> None:
    there = put(tmp_path, receipt(), "bump-1.0-a")
    (there.folder / "other.so").write_bytes(b"")
    assert at(there.folder / "other.so") is None
    assert at(tmp_path / "nowhere.so") is None
    assert at(None) is None


def test_a_new_build_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    put(tmp_path, receipt(), "bump-1.0-a")
    put(tmp_path, receipt("other"), "other-1.0-a")
    new = put(tmp_path, receipt(built_at="2026-11-21T12:00:00.000+00:00"), "bump-1.0-b")
    assert built(tmp_path)["bump"] == new
    assert sorted(place.name for place in tmp_path.iterdir()) == ["bump-1.0-b", "other-1.0-a"]


def test_of_two_builds_the_later_counts(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    late = put(tmp_path / "1", receipt(built_at="2026-11-21T12:00:00.000+00:00"), "a")
    early = put(tmp_path / "2", receipt(), "b")
    for place in (late.folder, early.folder):
        place.rename(tmp_path / place.name)
    assert built(tmp_path)["bump"].receipt == late.receipt


def test_whoever_is_second_keeps_what_the_first_has_built(tmp_path: Path) -> None:
    first = put(tmp_path, receipt(), "bump-1.0-a")
    os.utime(first.library, (1, 1))
    put(tmp_path, receipt(), "bump-1.0-a")
    assert first.library.stat().st_mtime == 1


def test_a_damaged_folder_gives_way(tmp_path: Path) -> None:
    (tmp_path / "bump-1.0-a").mkdir()
    (tmp_path / "bump-1.0-a" / "rest").write_text("half a peer")
    there = put(tmp_path, receipt(), "bump-1.0-a")
    assert built(tmp_path) == {"bump": there}


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with cache.building("bump", tmp_path) as work:
            (work / "half").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_build_that_is_going_on_is_not_found(tmp_path: Path) -> None:
    with cache.building("bump", tmp_path) as work:
        (work / "libbump.so").write_bytes(b"half")
        (work / cache.RECEIPT).write_text(receipt().model_dump_json())
        assert built(tmp_path) == {}


def test_what_a_killed_build_left_is_swept_and_a_living_one_is_not(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from freestone.allocators.peers import cache\n"
        "with cache.building('bump', Path(sys.argv[1])) as work:\n"
        "    (work / 'half').write_text('half'); print(work, flush=True); time.sleep(60)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    work = Path(other.stdout.readline().strip())
    with cache.building("bump", tmp_path):
        assert (work / "half").exists(), "its process lives"
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert work.exists()
    with cache.building("bump", tmp_path):
        assert not work.exists()


def test_what_was_never_locked_is_swept_when_it_is_old(tmp_path: Path) -> None:
    for name, age_s in (("young", 0), ("old", 7200)):
        place = tmp_path / f".new-{name}"
        place.mkdir()
        os.utime(place, (time.time() - age_s,) * 2)
    with cache.building("bump", tmp_path):
        assert [place.name for place in tmp_path.glob(".new-*")] == [".new-young"]


def test_half_a_peer_may_go_while_another_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "bump-1.0-a"
    target.mkdir()
    real = cache.read

    def read(folder: Path) -> cache.Built | None:
        peer = real(folder)
        if folder == target and peer is None:
            target.rmdir()  # as another process would
        return peer

    monkeypatch.setattr(cache, "read", read)
    put(tmp_path, receipt(), target.name)
    monkeypatch.undo()
    assert built(tmp_path)["bump"].library.read_bytes() == b"library"


def test_many_processes_may_build_the_same_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from freestone.allocators.peers import Receipt, cache\n"
        "made = Receipt.model_validate_json(sys.argv[2])\n"
        "for number in range(20):\n"
        "    with cache.building('bump', Path(sys.argv[1])) as work:\n"
        "        parts = work / 'parts'; parts.mkdir(); (parts / made.library).write_bytes(b'library')\n"
        "        cache.store(parts, made, Path(sys.argv[1]) / f'bump-1.0-{number % 3}')\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path), receipt().model_dump_json()]
    others = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for other in others:
        _, said = other.communicate(timeout=60)
        assert other.returncode == 0, said
    assert built(tmp_path)["bump"].library.read_bytes() == b"library"
    assert not list(tmp_path.glob(".*"))


def test_remove_takes_every_build_and_the_log_away(tmp_path: Path) -> None:
    put(tmp_path, receipt(), "bump-1.0-a")
    other = put(tmp_path, receipt("other"), "other-1.0-a")
    cache.log_of("bump", tmp_path).write_text("log")
    assert [place.name for place in remove("bump", tmp_path)] == ["bump-1.0-a"]
    assert remove("bump", tmp_path) == []
    assert list(tmp_path.iterdir()) == [other.folder]


def test_a_cache_that_is_no_folder_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError, match="is no folder; set XDG_CACHE_HOME"), cache.building("b", tmp_path / "file"):
        pass


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def full(*_: object, **__: object) -> str:
        raise OSError(number, os.strerror(number))

    with cache.building("bump", tmp_path) as work:
        (work / "libbump.so").write_bytes(b"library")
        monkeypatch.setattr(cache, "write_whole", full)
        with pytest.raises(CacheError, match=r"no space left for peers in .*; make room there"):
            cache.store(work, receipt(), tmp_path / "bump-1.0-a")
    assert built(tmp_path) == {}
