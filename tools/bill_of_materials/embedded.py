"""The scripts that a report's page holds, so that it needs nothing from elsewhere: Vega and what Vega is made of.

They come with vl-convert-python, as sources within its native library, each under the address that it was taken from,
which has its name and version. That is where they are found.
"""

from __future__ import annotations

import re
from pathlib import Path

from bill_of_materials.part import Part

ADDRESS = re.compile(rb"npm/((?:@[a-z0-9-]+/)?[a-z0-9._-]+)@(\d+\.\d+\.\d+)(?![\w.-])")
LICENCES = (
    (r"vega(-.*)?", "BSD-3-Clause"),
    (r"d3-.*|topojson-client|internmap|delaunator", "ISC"),
    (r"robust-predicates", "Unlicense"),
    (r"fast-.*|clone|lodash\..*|json-stringify-pretty-compact", "MIT"),
)
"""Of npm's packages, whose texts the library leaves out: names as regular expressions, and what npm says of them."""


def scripts(content: bytes, vega_lite: str) -> list[Part]:
    """The scripts in a library's bytes; of several Vega-Lites the one that pages are drawn by, such as ``6.4``."""
    found = {(name.decode(), version.decode()) for name, version in ADDRESS.findall(content)}
    return sorted(
        Part(name, version, "script", licence_of(name))
        for name, version in found
        if name != "vega-lite" or version.startswith(f"{vega_lite}.")
    )


def licence_of(name: str) -> str | None:
    """The licence of one of npm's packages; None where the table does not know it."""
    return next((licence for names, licence in LICENCES if re.fullmatch(names, name)), None)


def of_pages() -> list[Part]:
    """The scripts of pages that are written with what is installed here."""
    import vl_convert

    from freestone.reports.vega import VEGA_LITE

    (library,) = Path(vl_convert.__file__).parent.glob("*.so")
    return scripts(library.read_bytes(), VEGA_LITE.removeprefix("v"))
