"""What is unpacked is gone behind whoever does it; what one leaves who was killed is removed, and nobody else's."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from freestone.experiments.engines import scratch


def test_it_is_gone_whatever_happens(tmp_path: Path) -> None:
    with scratch.made(tmp_path) as folder:
        (folder / "file").touch()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="slip"), scratch.made(tmp_path):
        raise ValueError("slip")
    assert list(tmp_path.iterdir()) == []


def test_what_was_left_is_removed_and_what_somebody_works_in_is_not(tmp_path: Path) -> None:
    process = os.fork()
    if process == 0:
        with scratch.made(tmp_path) as folder:
            (folder / "file").touch()
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(process, 0)
    (left,) = tmp_path.iterdir()
    (tmp_path / "board").mkdir()
    with scratch.made(tmp_path) as folder:
        scratch.remove_left(tmp_path)
        assert not left.exists()
        assert folder.is_dir()
    assert [each.name for each in tmp_path.iterdir()] == ["board"]


def test_what_is_no_folder_and_what_is_not_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".fetched-link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / ".fetched-file").touch()
    before = sorted(tmp_path.iterdir())
    scratch.remove_left(tmp_path)
    scratch.remove_left(tmp_path / "nowhere")
    assert sorted(tmp_path.iterdir()) == before


def test_no_folder_is_removed_between_its_making_and_its_lock(tmp_path: Path) -> None:
    over = threading.Event()

    def remove() -> None:
        while not over.is_set():
            scratch.remove_left(tmp_path)

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        for _ in range(200):
            with scratch.made(tmp_path) as folder:
                (folder / "file").touch()
    finally:
        over.set()
        remover.join()
    assert list(tmp_path.iterdir()) == []
