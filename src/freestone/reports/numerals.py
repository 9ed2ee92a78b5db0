"""Numbers as people say them: sizes in bytes, counts. Pure functions."""

from __future__ import annotations

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def bytes_in_words(size: int) -> str:
    """``8 B``, ``64 KiB``, ``1 GiB``."""
    step, unit = next(((step, unit) for step, unit in _UNITS if size >= step), (1, "B"))
    return f"{size / step:g} {unit}"


def count_in_words(number: float) -> str:
    """``64``, ``10 k``, ``1 M``."""
    step, unit = next(((s, u) for s, u in ((10**9, " G"), (10**6, " M"), (10**4, " k")) if number >= s), (1, ""))
    step = 1000 if unit == " k" else step
    return f"{number / step:,g}{unit}"
