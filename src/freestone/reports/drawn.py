"""A figure as the page holds it: drawn, named, in words and as a table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from freestone.reports import figures, pieces
from freestone.reports.figures import Theme

# The page's own variables: light, dark and print change them, and the figures follow without being drawn again.
PAGE_THEME = Theme(
    "var(--ink)",
    "var(--faint)",
    "var(--line)",
    "transparent",
    tuple(f"var(--c{index})" for index in range(pieces.COLOURS)),
)

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


@dataclass(frozen=True)
class Multiple:
    """A figure that is several panels."""

    title: str
    caption: str
    panels: list[Panel]
    numbers: Table


def document(chart: figures.Chart) -> str:
    """Vega-Lite as JSON that is safe inside a script element, without :func:`look`, which all figures share."""
    return _inside_script({k: v for k, v in figures.specification(chart, PAGE_THEME).items() if k != "config"})


def look() -> str:
    """The Vega-Lite config of every figure as JSON that is safe inside a script element: the page's own colours."""
    return _inside_script(PAGE_THEME.config())


def _inside_script(value: dict[str, Any]) -> str:
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")  # nothing inside may end the script element
