"""Records of a program that tells histograms of its calls."""

from __future__ import annotations

import pytest
from invented_figures import call_by_call

from freestone.records.schema import TrialRecord


@pytest.fixture(scope="module")
def told(results) -> list[TrialRecord]:
    return call_by_call(
        results.records,
        malloc={8: 900, 64: 90, 1024: 9, 1 << 20: 1},
        malloc_and_write={16: 990, 1 << 20: 10},
        free={8: 990, 256: 10},
        nothing={1: 99, 64: 1},
    )
