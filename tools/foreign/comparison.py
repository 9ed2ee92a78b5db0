"""The verdict on a program: what it did under glibc beside what it did under libfreestone. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

END = "the end"
"""The fact that is there only when a program came to an end before its work was done."""


@dataclass(frozen=True)
class Outcome:
    """One trial. ``void`` says why it shows nothing; ``wall_s`` and ``peak_kib`` are told, never judged."""

    facts: Mapping[str, str] = field(default_factory=dict)
    void: str | None = None
    wall_s: float = 0.0
    peak_kib: int = 0
    complaints: Sequence[str] = ()


@dataclass(frozen=True)
class Verdict:
    """``differences`` are facts that differ by allocator, ``unsteady`` those that differ under glibc alone."""

    differences: tuple[str, ...] = ()
    unsteady: tuple[str, ...] = ()
    void: str | None = None

    @property
    def agrees(self) -> bool:
        return not self.differences and self.void is None


def compare(reference: Sequence[Outcome], served: Sequence[Outcome]) -> Verdict:
    """Every fact of the trials under glibc beside the same of those under libfreestone.

    A fact that is the same in every trial under glibc has to be that in every trial under libfreestone: one that
    strays once is a fault that comes and goes. A fact that varies under glibc alone is unsteady, and shows nothing.
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
        if len(set(there)) > 1:
            unsteady.append(told)
        elif set(here) != set(there):
            strayed = sum(value != there[0] for value in here)
            differences.append(f"{told} ({strayed} of {len(here)} trials)")
    return Verdict(tuple(differences), tuple(unsteady))


def values(side: Sequence[Outcome], name: str) -> list[str]:
    return [one.facts.get(name, "nothing") for one in side]


def said(values_seen: Sequence[str]) -> str:
    return " / ".join(dict.fromkeys(value if len(value) <= 300 else f"{value[:300]}..." for value in values_seen))
