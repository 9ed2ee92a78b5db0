"""What several machines say of the same work, each measured where it was: side by side, by kind, and all together."""

from freestone.analysis.across.tables import ABSENT, Across, LeftOut, across

__all__ = ["ABSENT", "Across", "LeftOut", "across"]
