"""What a cure is sought for."""

from __future__ import annotations

from typing import Literal

Goal = Literal["time", "memory", "balanced"]
"""``balanced``: both, and neither may lose much."""
