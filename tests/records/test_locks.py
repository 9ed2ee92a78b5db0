"""Who is seen to hold a file: that very file, and not another one of the same number."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from freestone.records import locks, store


def test_a_file_of_the_same_number_on_another_file_system_is_another_file(tmp_path: Path) -> None:
    found = os.stat(tmp_path)
    elsewhere = found.st_dev + 1
    assert locks.is_held(tmp_path, frozenset({(found.st_dev, found.st_ino)}))
    assert not locks.is_held(tmp_path, frozenset({(elsewhere, found.st_ino)}))
    assert not locks.is_held(tmp_path, frozenset({(found.st_dev, found.st_ino + 1)}))
    assert locks.is_held(tmp_path, frozenset({(elsewhere, found.st_ino), (found.st_dev, found.st_ino)}))
    assert not locks.is_held(tmp_path / "nothing", frozenset({(found.st_dev, found.st_ino)}))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a file system")
@pytest.mark.parametrize("kind", ["tmpfs", "overlay"])
def test_whoever_writes_is_seen_on_file_systems_of_their_own(tmp_path: Path, kind: str) -> None:
    """Also where the device of a file is not that of its file system."""
    parts = {name: tmp_path / name for name in ("base", "lower", "upper", "work", "whole")}
    for each in parts.values():
        each.mkdir()
    options = "size=1m"
    if kind == "overlay":  # its parts on one of their own: below a container's overlay there may be none
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "base", parts["base"]], check=True)
        parts = {name: parts["base"] / name if name != "whole" else path for name, path in parts.items()}
        for name in ("lower", "upper", "work"):
            parts[name].mkdir()
        (parts["lower"] / store.TRIALS_FILE).touch()
        options = f"lowerdir={parts['lower']},upperdir={parts['upper']},workdir={parts['work']}"
    whole = tmp_path / "whole"
    try:
        mounted = subprocess.run(["mount", "-t", kind, "-o", options, kind, whole], check=False, capture_output=True)
        if mounted.returncode != 0:
            pytest.skip(f"no {kind} can be mounted here")
        try:
            with (whole / store.TRIALS_FILE).open("ab") as log:
                fcntl.flock(log, fcntl.LOCK_EX)
                if not locks.held_files():
                    pytest.skip("/proc/locks does not show locks here")
                assert store.is_being_written(whole)
            assert not store.is_being_written(whole)
        finally:
            subprocess.run(["umount", whole], check=True)
    finally:
        if kind == "overlay":
            subprocess.run(["umount", tmp_path / "base"], check=True)
