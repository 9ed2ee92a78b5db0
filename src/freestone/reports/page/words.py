"""Facts as the page writes them: variables, moments, sizes."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime

_BYTES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def settings(environment: dict[str, str]) -> str:
    """Variables as a shell takes them: ``NAME=value``."""
    return " ".join(f"{key}={shlex.quote(value)}" for key, value in environment.items())


def moment(text: str) -> str:
    """A moment of ISO 8601 to the minute; what is none as it stands."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError):  # of a clock far from ours
        return text


def title_of_fact(key: str) -> str:
    """``l2_bytes`` as ``l2``."""
    for suffix in ("_bytes", "_kib", "_s"):
        key = key.removesuffix(suffix)
    return key.replace("_", " ")


def fact(key: str, value: str | int | float | bool | None) -> str:
    """A fact of the machine: sizes in the unit that suits them, yes and no, ``not known``."""
    if value is None or value == "":
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float) and key.endswith(("_bytes", "_kib")):
        size = value * (1024 if key.endswith("_kib") else 1)
        divisor, unit = next(((step, name) for step, name in _BYTES if size >= step), (1, "bytes"))
        return f"{size / divisor:.4g} {unit}"
    return str(value)
