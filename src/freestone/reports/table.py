"""A summary as text for a terminal: the answer first, then a table that fits, then what was not measured and why.

Nothing is cut off to fit: on a wide terminal all columns stand in one table, on a narrower one they are dealt over
several, and where not even the wall time and its ratio fit side by side they become a list.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from freestone.records.schema import Cell, Ratio, Summary
from freestone.reports import quantities, screen, table_notes
from freestone.reports.quantities import MEDIAN, Scale, quantity_of
from freestone.reports.shown import columns_of, has_switches, switches
from freestone.reports.table_notes import Tone

_NOTHING = "–"
_PLAIN = str.maketrans(
    {"≈": "~", "–": "-", "—": "-", "×": "x", "µ": "u", "·": "|", "…": ".", "’": "'", "‘": "'", "“": '"', "”": '"'}
)


def render(summary: Summary, *, width: int, colour: bool, ascii_only: bool = False) -> str:
    """The summary as lines of at most ``width`` columns, ending in a newline; the first line begins the headline.

    Args:
        width: columns of the terminal; at least 20 are assumed.
        colour: use ANSI colours. What colour says is also said in words or signs.
        ascii_only: for terminals whose encoding has nothing else.
    """
    width = max(20, width)
    parts: list[RenderableType] = [Text(_clean(summary.headline, ascii_only), style="bold")]
    for workload in dict.fromkeys(cell.workload for cell in summary.cells):
        cells = [cell for cell in summary.cells if cell.workload == workload]
        parts += ["", *_Workload(summary, workload, cells, ascii_only).parts(width)]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(screen.lines(*parts, width=width, colour=colour)) + "\n")
    return text.translate(_PLAIN).encode("ascii", "replace").decode() if ascii_only else text


_TONES: dict[Tone, str] = {"": "", "aside": "dim", "warning": "yellow", "bad": "red"}


@dataclass(frozen=True)
class _Column:
    """One thing to know of each configuration: a column of a table or several side by side, or a line of a list."""

    titles: tuple[str, ...]
    pieces: Callable[[Cell], list[Text]]


@dataclass(frozen=True)
class _Workload:
    """One workload's part of a summary."""

    summary: Summary
    workload: str
    cells: Sequence[Cell]
    ascii_only: bool

    def parts(self, width: int) -> Iterable[RenderableType]:
        if len({cell.workload for cell in self.summary.cells}) > 1:
            yield Text(self.clean(self.workload), style="bold")
        yield from self.tables(width) or self.paragraphs()
        yield ""
        for note in table_notes.below(self.summary, self.workload, self.cells):
            yield self.line(note.text, _TONES[note.tone])

    # --- layouts -----------------------------------------------------------------------------------------------------

    def tables(self, width: int) -> list[RenderableType]:
        """As few tables as hold all columns at this width; none when not even the wall time and its ratio fit."""
        bare = screen.width_of(self.table([]))
        groups: list[list[_Column]] = []
        used = bare
        for column in self.columns():
            added = screen.width_of(self.table([column])) - bare  # as much, whatever stands beside it
            if bare + added > width:
                return []
            if not groups or used + added > width:
                groups.append([])
                used = bare
            groups[-1].append(column)
            used += added
        return [self.table(group) for group in groups]

    def paragraphs(self) -> list[RenderableType]:
        """A list: each configuration a paragraph, each quantity a line."""
        paragraphs: list[RenderableType] = []
        for cell in self.cells:
            lines = [self.name(cell)]
            if cell.status != "ok":
                lines.append(Text("  ") + Text(quantities.status_of(cell), style="bold red"))
            if quantities.has_figures(cell):
                for column in self.columns():
                    pieces = [piece for piece in column.pieces(cell) if piece.plain]
                    if pieces and pieces[0].plain != _NOTHING:
                        title = " ".join(word for word in column.titles[0].split("\n") if word)
                        lines.append(Text(f"  {title} ") + Text(" ").join(pieces[:2]))
                        lines += [Text("  ") + piece for piece in pieces[2:]]
            paragraphs.append(Text("\n").join(lines))
        return paragraphs

    def table(self, columns: Sequence[_Column]) -> Table:
        style = box.ASCII2 if self.ascii_only else box.SIMPLE_HEAD
        table = Table(box=style, pad_edge=False, padding=(0, 1), expand=False)
        table.add_column("", no_wrap=True)
        rows: list[list[RenderableType]] = [[self.name(cell)] for cell in self.cells]
        for column in columns:
            for title in column.titles:
                table.add_column(Text(title, justify="right"), no_wrap=True)
            pieces = [column.pieces(cell) for cell in self.cells]
            for row, aligned in zip(rows, _aligned(pieces), strict=True):
                row += aligned if len(column.titles) > 1 else [Text(" ").join(aligned)]
        for row in rows:
            table.add_row(*row)
        return table

    def columns(self) -> list[_Column]:
        """The time with its ratio and verdict, then what else was measured, each with its ratio."""
        baseline = self.clean(self.summary.baseline)
        columns = [_Column((self.header(self.time), f"to {baseline}\n[95 %]", ""), self.wall)]
        for key in self.shown():
            columns.append(_Column((self.header(key),), functools.partial(self.value_with_factor, key=key)))
        if has_switches(self.cells):
            columns.append(_Column(("switches\n",), lambda cell: [self.switches(cell)]))
        return columns

    @property
    def time(self) -> str:
        """The metric that is this workload's time."""
        return quantities.time_of(self.cells)

    # --- pieces of a row ---------------------------------------------------------------------------------------------

    def shown(self) -> list[str]:
        """The quantities that at least one configuration has."""
        return columns_of(self.cells)

    def scale(self, key: str) -> Scale:
        values = (cell.figure(key) for cell in self.cells if quantities.has_figures(cell))
        return Scale.over(quantity_of(key).kind, (value for value in values if value is not None))

    def header(self, key: str) -> str:
        return f"{quantity_of(key).short}\n{self.scale(key).unit}"

    def name(self, cell: Cell) -> Text:
        style = "bold" if cell.configuration == self.summary.baseline else ""
        return Text(self.clean(cell.configuration), style=style)

    def wall(self, cell: Cell) -> list[Text]:
        if quantities.has_figures(cell) and cell.status != "ok":
            return [self.value(cell, self.time), Text(""), Text(quantities.status_of(cell), style="bold red")]
        if cell.status != "ok":
            return [Text(quantities.status_of(cell), style="bold red"), Text(""), Text("")]
        return [self.value(cell, self.time), self.interval(cell, self.time), self.verdict(cell, self.time)]

    def value_with_factor(self, cell: Cell, key: str) -> list[Text]:
        return [self.value(cell, key), self.factor(cell, key)]

    def value(self, cell: Cell, key: str) -> Text:
        value = cell.figure(key) if quantities.has_figures(cell) else None
        if value is None:
            return Text(_NOTHING, style="dim")
        return Text(self.scale(key).number(value) + (MEDIAN if cell.is_median(key) else ""))

    def ratio(self, cell: Cell, key: str) -> Ratio | None:
        return quantities.ratio_of(cell, key, self.summary.baseline)

    def interval(self, cell: Cell, key: str) -> Text:
        ratio = self.ratio(cell, key)
        if ratio is None:
            return Text("")
        number = quantities.ratio_number(ratio)
        return Text(f"{number} {quantities.interval(ratio)}", style=_style(ratio))

    def verdict(self, cell: Cell, key: str) -> Text:
        ratio = self.ratio(cell, key)
        return Text("") if ratio is None else Text(quantities.verdict(quantity_of(key), ratio), style=_style(ratio))

    def factor(self, cell: Cell, key: str) -> Text:
        ratio = self.ratio(cell, key)
        return Text("") if ratio is None else Text(quantities.factor(ratio), style=_style(ratio))

    def switches(self, cell: Cell) -> Text:
        counts = switches(cell)
        return Text(_NOTHING, style="dim") if counts is None else Text(counts)

    def line(self, text: str, style: str) -> RenderableType:
        return Padding(Text(self.clean(text), style=style), (0, 0))

    def clean(self, text: str) -> str:
        return _clean(text, self.ascii_only)


def _aligned(rows: list[list[Text]]) -> list[list[Text]]:
    """The pieces of a column with each kind of piece as wide as its widest: the first to the right, others to the left.

    Done here and not by the table, which would set a value without a ratio above the ratios of the others.
    """
    widths = [
        max((cell_len(row[place].plain) for row in rows), default=0) for place in range(len(rows[0]) if rows else 0)
    ]
    aligned = []
    for row in rows:
        padded = []
        for place, (piece, width) in enumerate(zip(row, widths, strict=True)):
            space = Text(" " * (width - cell_len(piece.plain)))
            padded.append(space + piece if place == 0 else piece + space)
        aligned.append(padded)
    return aligned


def _style(ratio: Ratio) -> str:
    if not ratio.different:
        return "dim"
    return "green" if ratio.value < 1 else "red"


def _clean(text: str, ascii_only: bool) -> str:
    """One line without control characters: names and reasons come from outside and must not steer the terminal."""
    line = " ".join(text.split())
    if ascii_only:
        line = line.translate(_PLAIN).encode("ascii", "replace").decode()
    return "".join("?" if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn") else letter for letter in line)
