"""Whatever is there under the name of a file holds up nobody, and takes nobody's memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.records import regular, store
from freestone.records.store import StoreError


def test_a_file_and_a_link_to_one_are_read_whole(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    link.symlink_to(file)

    @given(st.binary(max_size=100))
    def held(content: bytes) -> None:
        file.write_bytes(content)
        assert regular.content(file) == regular.content(link, most_bytes=100) == content

    held()


@pytest.mark.parametrize("what", ["pipe", "endless", "folder", "huge"])
def test_what_is_no_file_is_one_line_at_once(tmp_path: Path, what: str) -> None:
    path = tmp_path / store.EXPERIMENT_FILE
    if what == "pipe":
        os.mkfifo(path)
    elif what == "endless":
        path.symlink_to("/dev/zero")
    elif what == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(1 << 40)  # all of it a hole
    with pytest.raises(StoreError, match=f"^cannot read {path}: ") as error:
        store.read_experiment(tmp_path)
    assert "\n" not in str(error.value)


def test_trials_that_are_no_file_are_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / store.TRIALS_FILE)
    with pytest.raises(StoreError, match="it is no regular file"):
        store.read_trials(tmp_path)
