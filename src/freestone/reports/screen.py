"""A terminal's lines as text: what is printed is broken to the width it is given and never cut."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType
from rich.measure import Measurement


def lines(*what: RenderableType, width: int, colour: bool) -> list[str]:
    """What a terminal of that width would show, line by line, without blanks at the ends.

    Args:
        colour: with the escape codes of the 16 standard colours.
    """
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},  # the caller has decided; the environment must not overrule it
    )
    for each in what:
        console.print(each)
    return [line.rstrip() for line in buffer.getvalue().splitlines()]


def width_of(what: RenderableType) -> int:
    """Columns that it takes when nothing has to be broken."""
    console = Console(width=10_000, _environ={})
    return Measurement.get(console, console.options, what).maximum
