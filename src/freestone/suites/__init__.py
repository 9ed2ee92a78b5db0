"""Suites: many workloads in one file, for one interleaved experiment."""

from freestone.suites.reading import leaders, load, names
from freestone.suites.schema import Setting, Suite, SuiteError
from freestone.suites.selection import (
    NO_SETTING,
    Absent,
    Selection,
    matching,
    prepare,
    reads_inputs,
    select,
    settings,
    too_large,
)

__all__ = [
    "NO_SETTING",
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
    "reads_inputs",
    "select",
    "settings",
    "too_large",
]
