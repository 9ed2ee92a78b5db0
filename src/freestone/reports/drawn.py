"""A figure as the page holds it: drawn, named, in words and as a table."""

from __future__ import annotations

from dataclasses import dataclass

NOTHING = "–"


@dataclass(frozen=True)
class Name:
    """A configuration's name with its colour, an index into the palette."""

    text: str
    colour: int
    baseline: bool = False


@dataclass(frozen=True)
class Table:
    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Figure:
    """A drawn figure with everything it takes to do without seeing it."""

    title: str
    caption: str
    alternative: str
    document: str
    """Vega-Lite as JSON that is safe inside a script element."""
    numbers: Table


@dataclass(frozen=True)
class Panel:
    """One of several small charts that share their axes, one for each configuration."""

    name: Name
    alternative: str
    document: str
