"""What records say: statistics, summary, score, difference, gate. Pure functions of records."""

from freestone.analysis.score import score
from freestone.analysis.summary import summarise

__all__ = ["score", "summarise"]
