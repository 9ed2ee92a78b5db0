"""libc's complaint of a pointer is explained where another malloc was preloaded."""

from __future__ import annotations

import pytest

from freestone.trials.libc_complaint import explained


@pytest.mark.parametrize(
    "line", ["free(): invalid pointer", "munmap_chunk(): invalid pointer", "realloc(): invalid pointer"]
)
def test_a_complaint_of_libc_s_malloc_names_deepbind(line):
    assert "RTLD_DEEPBIND" in (explained(f"starting\n{line}\n") or "")


@pytest.mark.parametrize("text", ["", "ready\n", "no free(): invalid pointer was seen\n"])
def test_other_words_are_left_alone(text):
    assert explained(text) is None
