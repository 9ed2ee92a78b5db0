"""The published tables that come along, row by row as they were published."""

from __future__ import annotations

import csv
import functools
import io
from importlib.resources import files

Row = dict[str, str]


@functools.cache
def rows(name: str) -> tuple[Row, ...]:
    """The rows of ``data/<name>.csv``: column -> text."""
    text = (files("freestone.reports.published") / "data" / f"{name}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(io.StringIO(text)))


def number(row: Row, column: str) -> float | None:
    """A number, also one of minutes and seconds (``7:46.35`` is 466.35); None where the table has none."""
    text = row[column]
    minutes, _, seconds = text.rpartition(":")
    try:
        return (60 * float(minutes) if minutes else 0.0) + float(seconds)
    except ValueError:
        return None
