"""Where a library's pages lie is drawn anew for each trial."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from pathlib import Path

import pytest

from freestone.trials import placement

PAGES = 64


def frames(file: Path) -> list[int]:
    """The page frames that hold a file; only root is told."""
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
        buffer = ctypes.c_char.from_buffer(mapped)
        begin = ctypes.addressof(buffer)
        with open("/proc/self/pagemap", "rb") as pagemap:
            found = []
            for number in range(PAGES):
                mapped[number * mmap.PAGESIZE]
                pagemap.seek((begin // mmap.PAGESIZE + number) * 8)
                (entry,) = struct.unpack("Q", pagemap.read(8))
                found.append(entry & ((1 << 55) - 1))
        del buffer
    return found


@pytest.fixture
def library(tmp_path: Path) -> Path:
    file = tmp_path / "library.so"
    file.write_bytes(os.urandom(PAGES * mmap.PAGESIZE))
    return file


def test_each_time_it_lies_elsewhere(library: Path, needs_root: None) -> None:
    content = library.read_bytes()
    seen = set()
    for _ in range(4):
        placement.renew([str(library)])
        seen.add(tuple(frames(library)))
    if seen == {(0,) * PAGES}:
        pytest.skip("the kernel tells nobody where pages lie")
    assert len(seen) >= 3, "four times drawn"
    assert library.read_bytes() == content


def test_what_cannot_be_read_anew_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    (tmp_path / "closed").write_text("x")
    (tmp_path / "closed").chmod(0)
    strange = ["pipe", "empty", "closed", "gone", "."]
    placement.renew([*(str(tmp_path / each) for each in strange), "", "/dev/null", "/proc/self/mem"])


def test_it_holds_no_descriptor_and_no_memory(library: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        placement.renew([str(library)] * 3)
    assert len(os.listdir("/proc/self/fd")) == before
