"""Packed rounds say what the rounds said."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from freestone.analysis import statistics
from freestone.analysis.across.packed_rounds import PackedRounds

ROUNDS = st.dictionaries(st.integers(0, 30), st.floats(0, 1e6), max_size=12)


@given(st.dictionaries(st.sampled_from("abc"), ROUNDS), st.sampled_from((0.0, 4.0)))
def test_any_two_are_held_against_each_other_as_their_rounds_are(
    took: dict[str, dict[int, float]], step: float
) -> None:
    packed = PackedRounds(took, step)
    for one in "abc":
        for other in "abc":
            first, second = (dict(sorted(took.get(name, {}).items())) for name in (one, other))
            assert packed.ratio(one, other) == statistics.within_rounds(first, second, step)
    assert set(packed.configurations) == {name for name, rounds in took.items() if rounds}
