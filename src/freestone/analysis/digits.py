"""How many digits a ratio is written with: as few as say what was seen, and no fewer. Pure functions.

Whoever reads ``0.85 [0.72, 1.00]`` takes it for an interval that holds 1, and so for no difference seen. So nothing of
a ratio that is told apart from 1 is written as 1.
"""

from __future__ import annotations

import math
from typing import Final

MOST: Final = 6
"""Decimals that a ratio may have to be told from 1."""


def number(value: float, decimals: int, *, different: bool) -> str:
    """A ratio, or an end of its interval, with so many decimals.

    Args:
        value: what is written.
        decimals: as many as it deserves.
        different: whether the ratio is told apart from 1. Then it has more decimals where it would look like 1 in
            these, up to :data:`MOST`; and what still would is rounded away from 1.
    """
    said = f"{value:.{decimals}f}"
    if not different or value == 1:
        return said
    while float(said) == 1 and decimals < MOST:
        decimals += 1
        said = f"{value:.{decimals}f}"
    return f"{1 + math.copysign(10.0**-decimals, value - 1):.{decimals}f}" if float(said) == 1 else said


def seen(value: float, decimals: int) -> int:
    """So many decimals, or more where the value would look like 0 in them."""
    return max(decimals, min(9, -math.floor(math.log10(value)))) if 0 < value < 1 else decimals
