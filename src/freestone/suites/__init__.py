"""Suites: many workloads in one file, for one interleaved experiment."""

from freestone.suites.reading import leaders, load, names
from freestone.suites.schema import Setting, Suite, SuiteError
from freestone.suites.selection import Absent, Selection, matching, prepare, select, settings, too_large

__all__ = [
    "Absent",
    "Selection",
    "Setting",
    "Suite",
    "SuiteError",
    "leaders",
    "load",
    "matching",
    "names",
    "prepare",
    "select",
    "settings",
    "too_large",
]
