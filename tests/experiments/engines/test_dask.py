"""What a worker of Dask does, without a scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest

import freestone
from freestone.experiments.engines import command
from freestone.experiments.engines.dask import work


def test_a_worker_with_another_lab_measures_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(RuntimeError) as error:
        work("0.0.1", ["compare", "--", "true"], "order-place", str(tmp_path))
    assert str(error.value) == (
        f"has freestone {freestone.__version__}, and the order is of 0.0.1: install the same on both"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("directory", "started_in"), [("here", "here"), ("gone", "home")])
def test_a_program_is_started_where_it_was_ordered_or_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: str, started_in: str
) -> None:
    """And not where the worker happens to run."""
    for name in ("here", "home"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(command, "held", lambda line: "pwd >&2")
    status, last, _ = work(freestone.__version__, ["compare"], "order-place", str(tmp_path / directory))
    assert (status, last) == (0, str(tmp_path / started_in))
