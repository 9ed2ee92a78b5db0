"""A worker of Dask, without a scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest
from invented_results import make_results

import freestone
from freestone.experiments.engines import archive, command
from freestone.experiments.engines.dask import work
from freestone.records import store


def test_a_worker_with_another_lab_measures_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(RuntimeError, match=f"has freestone {freestone.__version__}, and this order needs 0.0.1"):
        work("0.0.1", ["compare", "--", "true"], "order-place", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("directory", "started_in"), [("here", "here"), ("gone", "home")])
def test_a_worker_that_has_lost_its_cache_goes_on_where_the_order_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: str, started_in: str
) -> None:
    for name in ("here", "home"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(command, "held", lambda line: "pwd >&2")
    held = archive.pack(make_results().write(tmp_path / "held"))
    status, last, sent = work(freestone.__version__, ["compare"], "order-place", str(tmp_path / directory), held)
    assert (status, last) == (0, str(tmp_path / started_in))
    archive.unpack(sent, tmp_path / "back")
    assert store.read_trials(tmp_path / "back") == store.read_trials(tmp_path / "held")
