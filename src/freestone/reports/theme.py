"""The colours and letters of figures and page, light and dark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

COLOURS = 7
"""In a palette. Where it begins anew, lines have the next dash and points the next shape."""


# After Paul Tol's "bright" scheme, led by a grey for the baseline, and moved until any two are told apart by every eye
# (CIEDE2000 at least 10, also where one kind of cones is missing) and each stands out from the paper by 3:1;
# tests/reports/test_colours.py measures it.
PALETTE_LIGHT = ("#525865", "#4477AA", "#EE6677", "#0E7916", "#C11C7C", "#AA9305", "#22A0C2")
PALETTE_DARK = ("#BBC8CB", "#59A6FF", "#F1949B", "#44A756", "#C95CA5", "#D9C17F", "#87DDFF")
FONT = "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', sans-serif"


@dataclass(frozen=True)
class Theme:
    """Colours of a figure; any CSS colour, so that a page can give variables and change them without drawing anew."""

    ink: str
    faint: str
    line: str
    paper: str
    palette: tuple[str, ...]

    def config(self) -> dict[str, Any]:
        """As a Vega-Lite config."""
        return {
            "background": self.paper,
            "font": FONT,
            "view": {"stroke": None},
            "range": {"category": list(self.palette)},
            "axis": {
                "labelColor": self.ink,
                "titleColor": self.faint,
                "gridColor": self.line,
                "domainColor": self.line,
                "tickColor": self.line,
                "labelFontSize": 12,
                "titleFontSize": 12,
                "titleFontWeight": "normal",
                "labelLimit": 130,
                "tickCount": 5,
            },
            "axisX": {"domain": False, "ticks": False, "labelColor": self.faint, "labelPadding": 6, "titlePadding": 8},
            "axisY": {"domain": False, "ticks": False, "grid": False, "labelPadding": 8},
            "axisYQuantitative": {"labelColor": self.faint},
            "title": {"color": self.ink, "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 10},
            "rule": {"color": self.faint},
            "style": {
                "label": {"color": self.ink, "fontSize": 12},
                "faint": {"color": self.faint, "fontSize": 12},
                "leader": {"color": self.faint, "strokeWidth": 0.7},
            },
        }


LIGHT = Theme("#1F2933", "#5F6B7A", "#E3E7EC", "#FFFFFF", PALETTE_LIGHT)
DARK = Theme("#E6EAF0", "#9AA5B4", "#2E3640", "#14181D", PALETTE_DARK)

# The page's own variables: light, dark and print change them, and the figures follow without being drawn again.
PAGE = Theme(
    "var(--ink)",
    "var(--faint)",
    "var(--line)",
    "transparent",
    tuple(f"var(--c{index})" for index in range(COLOURS)),
)
