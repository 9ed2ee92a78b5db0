"""What pages are made from, and what a report may load."""

from __future__ import annotations

import functools
from typing import Final

import jinja2

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; img-src data:"
"""The content policy of a report: nothing but what is in it. Vega compiles expressions."""


@functools.cache
def templates() -> jinja2.Environment:
    """What pages are made from; each is compiled once."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("freestone.reports"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
