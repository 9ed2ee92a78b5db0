"""Results for a notebook: ``import freestone; results = freestone.load("results/...")``."""

from freestone.notebook.frames import MissingLibrary
from freestone.records import installation

try:
    from freestone.notebook.results import Results, load
except ModuleNotFoundError as error:
    if error.name != "altair":
        raise
    raise MissingLibrary(f"the charts need: {installation.to_get('notebook', ['altair'])}") from error

__all__ = ["MissingLibrary", "Results", "load"]
