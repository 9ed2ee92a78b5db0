"""Results for a notebook: ``import freestone; results = freestone.load("results/...")``."""

from freestone.notebook.frames import MissingLibrary

try:
    from freestone.notebook.results import Results, load
except ModuleNotFoundError as error:
    if error.name != "altair":
        raise
    raise MissingLibrary("the charts need altair: pip install '.[notebook]' in the clone") from error

__all__ = ["MissingLibrary", "Results", "load"]
