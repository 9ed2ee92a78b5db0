"""Results for a notebook: ``import freestone; results = freestone.load("results/...")``."""

from freestone.notebook.frames import MissingLibrary
from freestone.notebook.results import Results, load

__all__ = ["MissingLibrary", "Results", "load"]
