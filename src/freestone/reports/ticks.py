"""Where an axis is labelled, and with what. Pure functions."""

from __future__ import annotations

import math

from freestone.reports.quantities import Kind, Scale

MOST = 7
"""Labels on an axis."""


def text(kind: Kind, value: float) -> str:
    """A value in the unit that suits it, without digits that say nothing: ``100 ns``, ``1.5 MiB``, ``0.001``."""
    if value == 0:
        return "0"
    scale = Scale.over(kind, [value])
    return f"{value / scale.divisor:,.10g} {scale.unit}".rstrip()


def brief(kind: Kind, value: float) -> str:
    """A measured value in the unit that suits it, three digits of it: ``8.42 MiB``, ``12.3 ns``."""
    divisor = Scale.over(kind, [value]).divisor
    return text(kind, float(f"{value / divisor:.3g}") * divisor)


def logarithmic(kind: Kind, low: float, high: float) -> list[float]:
    """Powers of ten, of two for memory, from ``low`` to ``high``; over few decades 1, 2 and 5 as well. Both above 0."""
    base = 2.0 if kind == "memory" else 10.0
    first, last = math.floor(math.log(low, base)) - 1, math.ceil(math.log(high, base)) + 1
    powers = [power for power in range(first, last + 1) if low <= base**power <= high]
    if base == 10 and len(powers) < 3:
        found = [part * 10.0**power for power in range(first, last + 1) for part in (1, 2, 5)]
        return [value for value in found if low <= value <= high]
    step = max(1, math.ceil(len(powers) / MOST))
    return [base**power for power in powers if power % step == 0]


def linear(kind: Kind, high: float) -> list[float]:
    """From 0 to ``high``, above 0, by a step of 1, 2 or 5 times a power of ten of the unit that suits it."""
    unit = Scale.over(kind, [high]).divisor
    rough = high / unit / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(part * power for part in (1, 2, 5, 10) if part * power >= rough * (1 - 1e-9))
    return [number * step * unit for number in range(int(high / unit / step * (1 + 1e-9)) + 1)]
