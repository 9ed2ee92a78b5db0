"""The figures people look for, each a pure function from records and summary to a chart.

Design rules, the same for every figure: every raw point is shown; configurations keep their order and their colour
from figure to figure and are named where they are drawn, so no legend has to be matched and no colour has to be told
apart; a configuration without a valid trial keeps its row, with its status in words instead of a mark.
"""

from freestone.reports.figures.for_readme import overview
from freestone.reports.figures.intervals import noise, ratios
from freestone.reports.figures.memory_over_time import series
from freestone.reports.figures.time_and_memory import trade
from freestone.reports.figures.trials import points

__all__ = ["noise", "overview", "points", "ratios", "series", "trade"]
