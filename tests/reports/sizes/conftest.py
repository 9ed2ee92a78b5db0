"""Records of a program that tells costs by size."""

from __future__ import annotations

import pytest
from invented_figures import by_size

from freestone.records.schema import TrialRecord


@pytest.fixture(scope="module")
def told(results) -> list[TrialRecord]:
    return by_size(
        results.records,
        malloc={8: 4.0, 4096: 30.0, 1 << 30: 9e8},
        malloc_free={8: 7.0, 4096: 12.0, 1 << 30: 1.2e9},
        calloc={8: 5.0},
    )
