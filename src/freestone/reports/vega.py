"""Charts as Vega-Lite documents: for the page, and drawn into files."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import altair as alt
from altair.utils import schemapi

from freestone.reports import theme as themes
from freestone.reports.theme import LIGHT, Theme

Chart = alt.Chart | alt.LayerChart | alt.HConcatChart | alt.VConcatChart | alt.ConcatChart

VEGA_LITE = ".".join(alt.SCHEMA_VERSION.split(".")[:2])
"""The Vega-Lite that the figures are written for, as vl-convert names it."""


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """Charts that are made meanwhile are not held against Vega-Lite's schema, which takes longer than all else.

    The tests do that, for every kind of figure.
    """
    with schemapi.debug_mode(False):
        yield


def specification(chart: Chart, theme: Theme) -> dict[str, Any]:
    """The chart as a Vega-Lite document with the theme in it."""
    if isinstance(chart, alt.LayerChart) and chart.data is alt.Undefined and not schemapi.DEBUG_MODE:
        document = _assembled(chart)
    else:
        document = chart.to_dict(validate=schemapi.DEBUG_MODE)
    document["config"] = theme.config()
    return document


def _assembled(chart: alt.LayerChart) -> dict[str, Any]:
    """What ``chart.to_dict()`` says, layer by layer; that copies every layer twice, half the time of a report."""
    document: dict[str, Any] = {"layer": [], "datasets": {}}
    for mark in chart.layer:
        layer = mark.to_dict(validate=False)
        document["$schema"] = layer.pop("$schema")
        document["datasets"] |= layer.pop("datasets", {})
        del layer["config"]
        document["layer"].append(layer)
    for key in ("width", "height", "resolve"):
        value = getattr(chart, key)
        if value is not alt.Undefined:
            document[key] = value.to_dict() if isinstance(value, schemapi.SchemaBase) else value
    return document


def save_document(document: dict[str, Any], destination: Path, *, theme: Theme = LIGHT, width: int = 760) -> Path:
    """Draw a figure of the page into a ``.svg`` or ``.png`` file, in a theme of its own."""
    import vl_convert

    alone = _sized({**document, "config": theme.config()}, width)
    if destination.suffix == ".svg":
        destination.write_text(vl_convert.vegalite_to_svg(alone, vl_version=VEGA_LITE), encoding="utf-8")
    else:
        destination.write_bytes(vl_convert.vegalite_to_png(alone, scale=2, vl_version=VEGA_LITE))
    return destination


def save_svg(chart: Chart, destination: Path, *, theme: Theme = LIGHT, width: int = 560) -> Path:
    """Draw the chart into an SVG file, without a browser; ``width`` pixels where the chart fits its container."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(_sized(specification(chart, theme), width), vl_version=VEGA_LITE)
    destination.write_text(svg, encoding="utf-8")
    return destination


def save_png(chart: Chart, destination: Path, *, theme: Theme = LIGHT, width: int = 560, scale: float = 2) -> Path:
    """Draw the chart into a PNG file, without a browser, at ``scale`` pixels per pixel."""
    import vl_convert

    document = _sized(specification(chart, theme), width)
    destination.write_bytes(vl_convert.vegalite_to_png(document, scale=scale, vl_version=VEGA_LITE))
    return destination


def _sized(document: dict[str, Any], width: int) -> dict[str, Any]:
    # Nothing contains the figure here, so its width has to be said.
    sized = {**document, "padding": 16}
    return {**sized, "width": width} if document.get("width") == "container" else sized


def document(chart: Chart) -> str:
    """Vega-Lite as JSON that is safe inside a script element, without :func:`look`, which all figures share."""
    return _inside_script({k: v for k, v in specification(chart, themes.PAGE).items() if k != "config"})


def look() -> str:
    """The Vega-Lite config of every figure as JSON that is safe inside a script element: the page's own colours."""
    return _inside_script(themes.PAGE.config())


def _inside_script(value: dict[str, Any]) -> str:
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")  # nothing inside may end the script element
