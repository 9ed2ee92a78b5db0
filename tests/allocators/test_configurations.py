"""Configurations that a user asks for, and those that are one build."""

from __future__ import annotations

import shutil
from pathlib import Path

from freestone import native
from freestone.allocators import configurations, twins


def test_one_build_under_two_names_is_told(tmp_path: Path) -> None:
    copy = tmp_path / "libcopy.so"
    shutil.copy(native.path("libfreestone.so"), copy)
    found = configurations(["glibc", "freestone", f"mine={copy}", "freestone:FREESTONE_OPTIONS=keeper=0"])
    assert twins(found) == ["freestone and mine are one build with the same settings: what differs is noise"]
    assert twins(found[:2]) == []
