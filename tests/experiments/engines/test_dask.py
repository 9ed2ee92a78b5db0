"""What a worker of Dask does, without a scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest

import freestone
from freestone.experiments.engines.dask import work


def test_a_worker_with_another_lab_measures_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(RuntimeError) as error:
        work("0.0.1", ["compare", "--", "true"], "order-place")
    assert str(error.value) == (
        f"has freestone {freestone.__version__}, and the order is of 0.0.1: install the same on both"
    )
    assert list(tmp_path.iterdir()) == []
