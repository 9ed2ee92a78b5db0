"""What tests of reports ask for: results that were made up, and what makes more of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from invented_results import Results, make_family, make_results
from invented_summaries import any_summary

from freestone.records.schema import Summary


@pytest.fixture(scope="session")
def summaries() -> st.SearchStrategy[Summary]:
    """Any summary at all: names and reasons from anywhere, cells that lack what they like."""
    return any_summary()


@pytest.fixture(scope="session")
def results() -> Results:
    return make_results()


@pytest.fixture(scope="session")
def results_maker() -> Callable[..., Results]:
    return make_results


@pytest.fixture(scope="session")
def family_maker() -> Callable[..., Results]:
    return make_family
