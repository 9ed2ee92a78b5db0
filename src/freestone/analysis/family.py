"""How sure each claim of a table has to be, so that all of them hold at once. Pure functions.

A table of nine allocators in ten quantities makes ninety claims; at 95 % each, four of them would be wrong. Its 5 % are
dealt out instead (C. E. Bonferroni's inequality, with weights that are settled before anything is measured): most to
what is looked at first. Whatever the claims have to do with one another, all of them together are right in at least 95
of 100 tables.
"""

from __future__ import annotations

from typing import Final

from freestone.analysis.statistics import CONFIDENCE

TIME: Final = 0.4
"""Of the 5 %: the time of every configuration."""
COLUMNS: Final = 0.2
"""The other quantities that a table has columns for."""
OTHERS: Final = 0.1
"""Everything else that was measured: hardware counters, figures of the program's own."""
RIVALS: Final = 0.1
"""Who of two is really lower, where a headline names a winner."""
# The last fifth is kept back: so far out Student's t is a little too sure of counts that hardly differ.

MEANS: Final = 0.5
"""Where many workloads are looked at: the means over all of them."""
ROWS: Final = 0.5
"""The single workloads."""


def confidence(share: float, claims: int) -> float:
    """Of each of so many claims that share a part of the 5 %.

    Args:
        share: which part, above 0 and at most 1.
        claims: how many there are; none are as good as one.
    """
    return 1 - (1 - CONFIDENCE) * share / max(1, claims)


def pairs(count: int) -> int:
    """How many pairs can be made of so many."""
    return count * (count - 1) // 2
