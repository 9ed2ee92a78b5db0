"""What the page says of an experiment: records and summary turned into words, tables and figures.

The template only lays out what stands in the parts.
"""

from freestone.reports.page.experiment import experiment_part
from freestone.reports.page.parts import ExperimentPart

__all__ = ["ExperimentPart", "experiment_part"]
