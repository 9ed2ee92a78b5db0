"""Whether a change stays within limits: a difference and limits in, verdicts out. Pure functions.

A limit holds for every workload and for the mean over all of them. It is *exceeded* where even the least change that
the measurement allows lies above it, *kept* where even the largest lies below, and *open* in between: more rounds would
tell. The intervals are those that hold all at once, so that of twenty gates over a library that did not change one may
fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal

from freestone.analysis.statistics import FEWEST_PAIRS
from freestone.records.schema import Change, Difference, Gate, GateOutcome, GateRow


def judge(difference: Difference, limits: Mapping[str, float]) -> Gate:
    """Every change in an aspect that has a limit.

    Args:
        limits: aspect -> the largest increase allowed, as a fraction: 0.03 for 3 %. At least 0.
    """
    rows = [_row(change, limits[change.aspect]) for change in difference.changes if change.aspect in limits]
    # What fails, does other work or is not there any more has nothing to be held against a limit: it is within none.
    # Of what is another program now nobody knows.
    unknown = any(
        each.what.startswith("workload ") and not each.reason.startswith("only in ") for each in difference.apart
    )
    outcomes: list[GateOutcome] = [row.outcome for row in rows]
    outcome: GateOutcome = "exceeded" if difference.lost else _worst(outcomes + (["open"] if unknown else []))
    return Gate(limits=dict(limits), rows=rows, outcome=outcome, difference=difference)


def _row(change: Change, limit: float) -> GateRow:
    outcome = _outcome(change, limit)
    needed = _rounds_needed(change, limit) if outcome == "open" else None
    return GateRow(change=change, limit=limit, outcome=outcome, rounds_needed=needed, reason=_unknown(change))


def _unknown(change: Change) -> str | None:
    """Why nothing is known of a change; None where something is."""
    if change.verdict != "unknown":
        return None
    if change.rounds < FEWEST_PAIRS:
        return f"too few rounds for an interval ({change.rounds}; {FEWEST_PAIRS} are the fewest)"
    return "the two sides cannot be held against each other"


def _rounds_needed(change: Change, limit: float) -> int | None:
    """How many rounds would probably settle an open row; None where no number is known to.

    The width of an interval shrinks with the root of the rounds.
    """
    if change.verdict == "unknown" or not 0 < change.ratio <= change.high < math.inf:
        return None
    away = abs(math.log(change.ratio / (1 + limit)))
    half = math.log(change.high / change.ratio)
    if away <= half / 10:  # a hundred times the rounds: so close to the limit that nobody should wait
        return None
    return max(change.rounds + 1, math.ceil(change.rounds * (half / away) ** 2))


def _outcome(change: Change, limit: float) -> GateOutcome:
    if change.verdict == "unknown":
        return "open"
    if change.low > 1 + limit:
        return "exceeded"
    return "kept" if change.high <= 1 + limit else "open"


def _worst(outcomes: Iterable[GateOutcome]) -> GateOutcome:
    found = set(outcomes)
    order: tuple[Literal["exceeded", "open", "kept"], ...] = ("exceeded", "open", "kept")
    return next((each for each in order if each in found), "open")
