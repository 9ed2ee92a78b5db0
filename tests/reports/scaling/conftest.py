"""A family of workloads that differ in their number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from freestone.reports.families import Family, families


@pytest.fixture(scope="module")
def scaled(family_maker: Callable[..., Any]) -> Any:
    return family_maker("server-{}", ["server", "--threads", "{}"], ("1", "2", "16"), operations=1000.0)


@pytest.fixture(scope="module")
def family(scaled: Any) -> Family:
    (only,) = families(scaled.experiment.workloads)
    return only
