"""From what is to be compared to its records: rounds, schedule, run."""

from freestone.experiments.interruption import Interruption
from freestone.experiments.local import LocalTrials
from freestone.experiments.run import Measurement, Outcome, mismatch, run
from freestone.experiments.schedule import unfinished

__all__ = ["Interruption", "LocalTrials", "Measurement", "Outcome", "mismatch", "run", "unfinished"]
