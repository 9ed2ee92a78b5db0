"""An experiment of two configurations in three orders."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from invented_orders import Measured, measured, ordered


@pytest.fixture(scope="module")
def made() -> Measured:
    """Two configurations: freestone's random takes twice LIFO's time net of the floor, glibc's is eaten."""
    workloads = [ordered("random"), ordered("lifo"), ordered("random", 16, 100, "--shuffle-inside")]
    wobble = [1.0, 1.01, 0.99, 1.02, 0.98]
    cells: dict[tuple[str, str], Sequence[tuple[float, float | None]]] = {
        ("lifo-16-100", "glibc"): [(5.0 * w, 2.0) for w in wobble],
        ("random-16-100", "glibc"): [(2.0, 2.1) for _ in wobble],
        ("random-16-100--shuffle-inside", "glibc"): [(10.0 * w, 6.0) for w in wobble],
        ("lifo-16-100", "freestone"): [(2.0 * w + 1, 1.0) for w in wobble],
        ("random-16-100", "freestone"): [(4.0 * w + 3, 3.0) for w in wobble],
    }
    return measured(cells, workloads)
