"""Limits and changes in, verdicts out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from freestone.analysis import gate
from freestone.records.schema import Apart, Change, ChangeVerdict, Difference
from freestone.reports import changes


def change(low: float, ratio: float, high: float, *, workload: str | None = "w", aspect: str = "time") -> Change:
    verdict: ChangeVerdict = "more" if low > 1 else "less" if high < 1 else "same"
    return Change(
        workload=workload,
        configuration="new",
        aspect=aspect,
        before=1.0,
        after=ratio,
        ratio=ratio,
        low=low,
        high=high,
        rounds=8,
        verdict=verdict,
    )


def difference(*changes: Change) -> Difference:
    return Difference(
        before="one",
        after="two",
        subjects={"new": "b1 -> b2"},
        controls=[],
        confidence=0.95,
        changes=list(changes),
        apart=[],
    )


def outcome(of: Change, limit: float = 0.03) -> str:
    return gate.judge(difference(of), {"time": limit}).outcome


def test_a_limit_is_exceeded_only_where_even_the_least_change_lies_above_it() -> None:
    assert outcome(change(1.04, 1.05, 1.06)) == "exceeded"
    assert outcome(change(1.02, 1.05, 1.08)) == "open", "a change for certain, of more than the limit perhaps"
    assert outcome(change(0.99, 1.00, 1.02)) == "kept"
    assert outcome(change(1.01, 1.02, 1.025)) == "kept", "slower for certain, and within the limit for certain"
    assert outcome(change(0.9, 0.95, 1.04)) == "open"


def test_the_gate_is_as_good_as_its_worst_row() -> None:
    kept, unsettled, over = change(0.99, 1.0, 1.01), change(0.9, 1.0, 1.1), change(1.2, 1.3, 1.4)
    limits = {"time": 0.03}
    assert gate.judge(difference(kept, over, unsettled), limits).outcome == "exceeded"
    assert gate.judge(difference(kept, unsettled), limits).outcome == "open"
    assert gate.judge(difference(kept), limits).outcome == "kept"
    assert gate.judge(difference(), limits).outcome == "open", "nothing measured proves nothing"


def test_what_has_no_result_any_more_is_within_no_limit() -> None:
    """A library under which the program crashes is not slower."""
    lost = [Apart(what="new on w2", reason="2 of 8 failed: killed by SIGSEGV")]
    found = difference(change(0.99, 1.0, 1.01)).model_copy(update={"lost": lost})
    judged = gate.judge(found, {"time": 0.03})
    assert judged.outcome == "exceeded"
    assert "new on w2 has no result any more: 2 of 8 failed: killed by SIGSEGV" in changes.gate_headline(judged)


def test_only_what_has_a_limit_is_judged() -> None:
    judged = gate.judge(difference(change(2.0, 2.1, 2.2), change(1.0, 1.0, 1.0, aspect="peak RSS")), {"peak RSS": 0.05})
    assert judged.outcome == "kept"
    assert len(judged.rows) == 1


def test_an_unknown_change_is_open() -> None:
    unknown = change(1.2, 1.3, 1.4).model_copy(update={"verdict": "unknown"})
    assert gate.judge(difference(unknown), {"time": 0.0}).outcome == "open"


@given(st.floats(0.5, 2), st.floats(1.0001, 1.5), st.floats(0, 0.5))
def test_more_room_is_never_worse(ratio: float, width: float, limit: float) -> None:
    order = ["kept", "open", "exceeded"]
    one = change(ratio / width, ratio, ratio * width)
    assert order.index(outcome(one, limit + 0.1)) <= order.index(outcome(one, limit))


@given(st.floats(0.9, 1.2), st.floats(1.001, 1.2))
def test_the_rounds_that_would_settle_it(ratio: float, width: float) -> None:
    (row,) = gate.judge(difference(change(ratio / width, ratio, ratio * width)), {"time": 0.03}).rows
    needed = row.rounds_needed
    if row.outcome != "open":
        assert needed is None
    elif needed is not None:
        assert needed > 8
        narrow = width ** ((8 / needed) ** 0.5)
        assert outcome(change(ratio / narrow, ratio, ratio * narrow * (1 - 1e-9))) != "open" or needed == 9


def test_a_gate_over_too_few_rounds_says_so() -> None:
    unknown = change(0.0, 1.3, float("inf")).model_copy(update={"verdict": "unknown", "rounds": 2})
    judged = gate.judge(difference(unknown), {"time": 0.03})
    (row,) = judged.rows
    assert row.reason == "too few rounds for an interval (2; 4 are the fewest)"
    assert row.reason in changes.gate_headline(judged)
    assert "open: 2 rounds" in changes.render_gate(judged, width=120, colour=False)


def test_a_row_that_is_known_needs_no_reason() -> None:
    for known in (change(0.9, 1.0, 1.1), change(0.99, 1.0, 1.01), change(1.2, 1.3, 1.4)):
        (row,) = gate.judge(difference(known), {"time": 0.03}).rows
        assert row.reason is None


def test_rounds_for_an_unknown_change_are_not_guessed() -> None:
    unknown = change(0.0, 1.3, float("inf")).model_copy(update={"verdict": "unknown"})
    (row,) = gate.judge(difference(unknown), {"time": 0.03}).rows
    assert row.rounds_needed is None


def test_of_what_is_another_program_nothing_is_kept() -> None:
    apart = [Apart(what="workload w1", reason="another content of job.sh")]
    found = difference(change(0.99, 1.0, 1.01)).model_copy(update={"apart": apart})
    assert gate.judge(found, {"time": 0.03}).outcome == "open"
    new = [Apart(what="workload w2", reason="only in two")]
    assert gate.judge(found.model_copy(update={"apart": new}), {"time": 0.03}).outcome == "kept"
