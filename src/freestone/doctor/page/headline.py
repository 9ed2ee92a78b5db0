"""A diagnosis in one sentence: what it suffers from, and what helps. Pure."""

from __future__ import annotations

from freestone.doctor import symptoms, words
from freestone.doctor.diagnosis import Diagnosis

GOALS = {"time": "time", "memory": "memory", "balanced": "time and memory together"}
"""As they stand in a sentence."""


def headline(told: Diagnosis) -> str:
    """The verdict first: ``glibc:MALLOC_... helps: time 0.42×, ... Against mapping-churn (93 % ...)``."""
    seen, found = told.seen, told.found
    if seen.cost is None and not seen.own_heaps:
        return f"Nothing could be observed: {seen.unseen.get('cost', 'the runs were broken off')}"
    unnamed = words.unnamed(found, seen)
    if unnamed is not None:
        return unnamed
    sick = words.suffering(found)
    if not sick:
        (healthy,) = found
        said = words.plain(healthy, symptoms.unjudged(seen))
        return said[0].upper() + said[1:]
    if told.verdict is None:
        return f"It suffers from {sick}{_untried(told)}"
    best = told.verdict.best
    if best is None:
        return f"It suffers from {sick}; nothing that was tried is really better for {GOALS[told.goal]}"
    return f"{best.configuration} helps: {words.gains(best, told.verdict.memory)}. It suffered from {sick}"


def _untried(told: Diagnosis) -> str:
    """Why there is no verdict."""
    if told.chart is None or told.chart.observe_only:
        return "; nothing was tried"
    if told.chart.remedies == {}:
        return "; there is nothing to try: no setting and no allocator is known to help"
    return "; nothing has been tried yet"
