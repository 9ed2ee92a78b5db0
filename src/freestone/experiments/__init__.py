"""From what is to be compared to what the measurements say: rounds, schedule, run, statistics, summary."""

from freestone.experiments.interruption import Interruption
from freestone.experiments.local import LocalTrials
from freestone.experiments.run import Measurement, Outcome, mismatch, run
from freestone.experiments.schedule import unfinished
from freestone.experiments.score import score
from freestone.experiments.summary import summarise

__all__ = [
    "Interruption",
    "LocalTrials",
    "Measurement",
    "Outcome",
    "mismatch",
    "run",
    "score",
    "summarise",
    "unfinished",
]
