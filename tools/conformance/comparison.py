"""The verdict on a program: what it did under glibc beside what it did under libfreestone. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

END = "the end"
"""The fact that is there only when a program came to an end before its work was done."""
NOTHING = "nothing"
"""What a fact says where there is none."""
TIMES_LOOKED_AT = 3.0
"""So many times the time under glibc is no noise of a machine: somebody has to look."""


@dataclass(frozen=True)
class Outcome:
    """One trial. ``void`` says why it shows nothing; ``peak_kib`` is told, never judged."""

    facts: Mapping[str, str] = field(default_factory=dict)
    void: str | None = None
    wall_s: float = 0.0
    peak_kib: int = 0
    complaints: Sequence[str] = ()


@dataclass(frozen=True)
class Verdict:
    """``differences`` are facts that differ by allocator, ``unsteady`` those that differ under glibc alone.

    ``to_look_at`` is a difference that a noisy machine may have made: it is shown, and fails nothing.
    """

    differences: tuple[str, ...] = ()
    unsteady: tuple[str, ...] = ()
    to_look_at: tuple[str, ...] = ()
    void: str | None = None

    @property
    def agrees(self) -> bool:
        return not self.differences and self.void is None


def compare(reference: Sequence[Outcome], served: Sequence[Outcome]) -> Verdict:
    """Every fact of the trials under glibc beside the same of those under libfreestone.

    A fact that is the same in every trial under glibc has to be that in every trial under libfreestone: one that
    strays once is a fault that comes and goes. A fact that varies under glibc alone is unsteady, and shows nothing;
    but an early end that is unsteady there hides neither one in every trial here, nor one that was never seen there.
    """
    if not reference or not served:
        return Verdict(void="nothing was run")
    void = next((one.void for one in (*reference, *served) if one.void is not None), None)
    if void is None and all(END in one.facts for one in reference):
        # What does not even work under glibc shows nothing of libfreestone.
        void = f"it fails under glibc as well: {said(values(reference, END))}"
    if void is not None:
        return Verdict(void=void)
    differences, unsteady = [], []
    for name in sorted({name for one in (*reference, *served) for name in one.facts}):
        there, here = (values(side, name) for side in (reference, served))
        told = f"{name}: {said(there)} under glibc, {said(here)} under libfreestone"
        worse_end = name == END and (NOTHING not in here or not set(here) <= {*there, NOTHING})
        if len(set(there)) > 1 and not worse_end:
            unsteady.append(told)
        elif set(here) != set(there):
            strayed = sum(value != NOTHING if name == END else value != there[0] for value in here)
            differences.append(f"{told} ({strayed} of {len(here)} trials)")
    times = time_ratio(reference, served)
    slow = (f"{times:.1f} times the time under glibc: to be looked at",) if times > TIMES_LOOKED_AT else ()
    return Verdict(tuple(differences), tuple(unsteady), slow)


def time_ratio(reference: Sequence[Outcome], served: Sequence[Outcome]) -> float:
    """How many times as long the trials took, by their medians; 0 where nothing was timed."""
    there, here = (statistics.median([one.wall_s for one in side] or [0.0]) for side in (reference, served))
    return here / there if there > 0 else 0.0


def values(side: Sequence[Outcome], name: str) -> list[str]:
    return [one.facts.get(name, NOTHING) for one in side]


def said(values_seen: Sequence[str]) -> str:
    return " / ".join(dict.fromkeys(value if len(value) <= 300 else f"{value[:300]}..." for value in values_seen))
