"""Planted regressions: the libraries differ in what is planted, the windows that are asked share nothing."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import callgrind
from freestone import native

CAMPAIGN = Path(__file__).resolve().parents[2] / "tools" / "planted" / "campaign.py"


def load() -> ModuleType:
    found = importlib.util.spec_from_file_location("planted_campaign", CAMPAIGN)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["planted_campaign"] = module  # dataclasses look their module up
    found.loader.exec_module(module)
    return module


campaign = load()


@given(st.integers(0, 300), st.integers(1, 60))
def test_windows_share_no_round_and_leave_less_than_one_out(rounds: int, size: int) -> None:
    found = list(campaign.windows(rounds, size))
    every = [number for window in found for number in window]
    assert every == list(range(len(every)))
    assert all(len(window) == size for window in found)
    assert rounds - len(every) < size


def test_a_planted_library_serves_and_does_what_was_planted(tmp_path: Path) -> None:
    if shutil.which("objcopy") is None or not campaign.ARCHIVE.exists():
        pytest.skip("needs binutils and build/libfreestone.a")
    sound = campaign.build("sound", tmp_path)
    heavy = campaign.build("heavy", tmp_path, turns=40000, kib=4096)
    assert sound.read_bytes() != campaign.build("same", tmp_path).read_bytes(), "two builds, two build-ids"
    more = instructions(heavy) - instructions(sound)
    calls = 2 * 10000
    turns = calls // 512 * 40000
    assert turns < more < 8 * turns + 4096 * 1024, "40,000 turns in every 512th call, and 4 MiB written"


def instructions(library: Path) -> int:
    """Of a program that makes some 20,000 calls, as callgrind counts them: no clock is asked."""
    if shutil.which("valgrind") is None:
        pytest.skip("needs valgrind")
    program = native.folder("workloads") / "patterns"
    command = [str(program), "--live", "100", "--operations", "20000", "--no-floor"]
    return callgrind.instructions(command, {**os.environ, "LD_PRELOAD": str(library)})


def test_a_missing_library_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(campaign, "ARCHIVE", tmp_path / "nothing.a")
    with pytest.raises(campaign.Refused, match="run make build"):
        campaign.campaign(4, 2, tmp_path, 1)
