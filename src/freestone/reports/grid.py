"""A small table of words and numbers, for a terminal or for Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from freestone.reports import screen

Mark = Literal["", "better", "worse", "same", "title"]
_STYLES: dict[Mark, str] = {"": "", "better": "green", "worse": "red", "same": "dim", "title": "bold"}


@dataclass(frozen=True)
class Piece:
    """What stands in one place; the mark says in colour what the words say too."""

    text: str
    mark: Mark = ""


@dataclass(frozen=True)
class Grid:
    """A title, column heads, rows and a line below. The first column is set to the left, the others to the right."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Piece]]
    note: str = ""
    left: frozenset[int] = field(default_factory=lambda: frozenset({0}))
    """Columns set to the left."""
    together: int = 0
    """So many columns, counted from the second, belong together; 0 for all. Where the grid is too wide for a terminal,
    such groups are dealt over several tables, each with the first column."""


def text(grid: Grid, *, width: int, colour: bool, ascii_only: bool) -> str:
    """The grid for a terminal; what does not fit is broken or stands in a table of its own, and is never cut."""
    shown: list[RenderableType] = [Text(grid.title, style="bold"), *_tables(grid, width, ascii_only)]
    if grid.note:
        shown.append(Text(grid.note, style="dim"))
    return "\n".join(screen.lines(*shown, width=width, colour=colour)) + "\n"


def _tables(grid: Grid, width: int, ascii_only: bool) -> list[Table]:
    """As few tables as hold all groups of columns at this width."""
    step = grid.together or max(1, len(grid.heads) - 1)
    groups = [list(range(start, start + step)) for start in range(1, len(grid.heads), step)]
    dealt: list[list[int]] = []
    for group in groups:
        wider = [*dealt[-1], *group] if dealt else group
        if dealt and screen.width_of(_table(grid, wider, ascii_only)) <= width:
            dealt[-1] = wider
        else:
            dealt.append(group)
    return [_table(grid, columns, ascii_only) for columns in dealt]


def _table(grid: Grid, columns: Sequence[int], ascii_only: bool) -> Table:
    table = Table(box=box.ASCII2 if ascii_only else box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), expand=False)
    for number in (0, *columns):
        justify: Literal["left", "right"] = "left" if number in grid.left else "right"
        table.add_column(Text(grid.heads[number], justify=justify), justify=justify, overflow="fold")
    for row in grid.rows:
        pieces = (row[number] for number in (0, *columns))
        table.add_row(*(Text(piece.text, style=_STYLES[piece.mark]) for piece in pieces))
    return table


def markdown(grid: Grid, *, level: int = 2) -> str:
    """The grid as Markdown under a heading of a level; what is ``better`` stands in bold."""
    lines = [f"{'#' * level} {escaped(grid.title)}", ""]
    lines.append("| " + " | ".join(escaped(head) for head in grid.heads) + " |")
    rule = ("---" if number in grid.left else "---:" for number in range(len(grid.heads)))
    lines.append("| " + " | ".join(rule) + " |")
    for row in grid.rows:
        lines.append("| " + " | ".join(_said(piece) for piece in row) + " |")
    if grid.note:
        lines += ["", escaped(grid.note)]
    return "\n".join(lines) + "\n"


def _said(piece: Piece) -> str:
    words = escaped(piece.text)
    return f"**{words}**" if words and piece.mark in ("better", "title") else words


def escaped(words: str) -> str:
    """Words as they stand in one line of Markdown, without any meaning of their own there."""
    line = " ".join(words.split())
    for sign in ("\\", "|", "*", "_", "`", "<"):
        line = line.replace(sign, f"\\{sign}")
    return line
