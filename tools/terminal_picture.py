"""What a terminal showed, as an SVG: text stays text, and nothing is fetched from a network when it is looked at."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from freestone.reports.theme import Theme

# Rich fills in the places in braces. Its own frame loads a font from a server, which pages that show pictures refuse.
FRAME = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<style>
.{unique_id}-matrix {{
  font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
.{unique_id}-title {{ font-family: sans-serif; font-size: 18px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def colours(theme: Theme) -> TerminalTheme:
    """A terminal's 16 colours in the figures' theme, the bright ones like the others."""
    paper, ink = _rgb(theme.paper), _rgb(theme.ink)
    grey, blue, red, green, magenta, yellow, cyan = map(_rgb, theme.palette)
    normal = [paper, red, green, yellow, blue, magenta, cyan, ink]
    return TerminalTheme(paper, ink, normal, [grey, *normal[1:]])


def draw(command: str, output: str, destination: Path, theme: Theme) -> Path:
    """Writes the picture of a prompt, a command and its output.

    Args:
        command: as it was typed.
        output: lines with the escape codes of the 16 standard colours; the longest makes the picture's width.
        destination: the file, whose folder exists.

    Returns:
        The file.
    """
    prompt = Text.assemble(("$ ", "bold green"), (command, "bold"))
    shown = [prompt, Text(""), *(Text.from_ansi(line) for line in output.rstrip("\n").split("\n"))]
    console = Console(record=True, width=max(line.cell_len for line in shown), file=io.StringIO(), _environ={})
    for line in shown:
        console.print(line, highlight=False)
    console.save_svg(
        str(destination), title="", theme=colours(theme), code_format=FRAME, unique_id=f"terminal-{destination.stem}"
    )
    return destination


def _rgb(colour: str) -> tuple[int, int, int]:
    """``#4477AA`` as three numbers from 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
