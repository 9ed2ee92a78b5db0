"""A diagnosis in one sentence: what it suffers from, and what helps. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from freestone.doctor import judgement, symptoms, words
from freestone.doctor.diagnosis import Diagnosis
from freestone.doctor.finding import Finding
from freestone.doctor.observations import Observations


def headline(told: Diagnosis) -> str:
    """The verdict first: ``glibc:MALLOC_... helps: time 0.42×, ... It suffered from mapping-churn (93% ...)``."""
    sick = words.suffering(told.found)
    if not sick or _unobserved(told.seen):
        return condition(told.seen, told.found)
    if told.verdict is None:
        return f"It suffers from {sick}{_untried(told)}"
    best = told.verdict.best
    if best is None:
        said = judgement.nothing(told.verdict)
        return f"It suffers from {sick}; {said[0].lower()}{said[1:]}"
    return f"{best.configuration} helps: {words.gains(best, told.verdict.memory)}. It suffered from {sick}"


def condition(seen: Observations, found: Sequence[Finding]) -> str:
    """What it suffers from, without what was tried: one sentence, without a full stop."""
    if _unobserved(seen):
        return f"Nothing could be observed: {seen.unseen.get('cost', 'the runs were broken off')}"
    sick = words.suffering(found)
    if sick:
        return f"It suffers from {sick}"
    unnamed = words.unnamed(found, seen)
    if unnamed is not None:
        return unnamed.rstrip(".")
    said = words.plain(found[0], symptoms.unjudged(seen)) if found else "no symptom can be named"
    return said[0].upper() + said[1:]


def _unobserved(seen: Observations) -> bool:
    return seen.cost is None and not seen.own_heaps


def _untried(told: Diagnosis) -> str:
    """Why there is no verdict."""
    if told.chart is None or told.chart.observe_only:
        return "; nothing was tried"
    if told.chart.remedies == {}:
        said = words.nothing_to_try(told.found, told.seen)
        return f"; {said[0].lower()}{said[1:]}"
    return "; nothing has been tried yet"
