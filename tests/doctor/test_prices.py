"""What the kernel's services cost is measured in processor time, and what cannot be is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.doctor import prices


def test_they_are_in_the_order_that_the_work_has() -> None:
    found = prices.take()
    assert found.small.kib >= found.page_kib
    assert found.small.ns < 1e9
    if found.advised is not None and found.advised.kib > 16 * found.small.kib:
        assert found.advised.ns > found.small.ns, "more is cleared at once"


@given(st.one_of(st.none(), st.integers(), st.text(), st.lists(st.integers()), st.dictionaries(st.text(), st.text())))
def test_what_is_no_price_is_refused_in_one_line(told: object) -> None:
    with pytest.raises(ValueError, match=r"^.+$") as refused:
        prices.read(json.dumps({"faults": told} if isinstance(told, dict) and told else told).encode())
    assert "\n" not in str(refused.value)
