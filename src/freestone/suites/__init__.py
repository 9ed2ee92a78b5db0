"""Suites: many workloads in one file, for one interleaved experiment."""

from freestone.suites.reading import load, names
from freestone.suites.schema import Suite, SuiteError
from freestone.suites.selection import Absent, Selection, prepare, select

__all__ = ["Absent", "Selection", "Suite", "SuiteError", "load", "names", "prepare", "select"]
