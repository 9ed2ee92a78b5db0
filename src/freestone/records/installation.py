"""How the lab was installed, and so what brings the libraries of an extra.

The lab is on no public registry: its name alone would bring a stranger's package, or none.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlparse

DISTRIBUTION: Final = "freestone"


def to_get(extra: str, libraries: Sequence[str]) -> str:
    """What to type for an extra where this lab is installed, as the end of a sentence behind "needs: ".

    Args:
        extra: its name in ``pyproject.toml``.
        libraries: what it brings, as they are imported: for a lab that has not come by pip.
    """
    try:
        installed = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return f"{', '.join(libraries)}, which the lab can have where pip has installed it from its wheel"
    if _in_clone(installed.read_text("direct_url.json")):
        return f"pip install '.[{extra}]' in the clone"
    pip = [sys.executable, "-m", "pip"] if find_spec("pip") else ["pip", "--python", sys.executable]
    return shlex.join([*pip, "install", *requirements(installed.requires or [], extra)])


def requirements(all_of_them: Sequence[str], extra: str) -> list[str]:
    """Those of an extra, without the marker that says so. Pure.

    Args:
        all_of_them: as the metadata of a distribution have them.
        extra: its name.
    """
    found = []
    for each in all_of_them:
        wanted, _, marker = each.partition(";")
        if re.search(rf"""\bextra\s*==\s*["']{re.escape(extra)}["']""", marker):
            found.append(wanted.strip())
    return found


def _in_clone(direct_url: str | None) -> bool:
    """Whether pip was given a folder, and it is still there."""
    if direct_url is None:
        return False
    told = json.loads(direct_url)
    folder = Path(unquote(urlparse(told.get("url", "")).path))
    return "dir_info" in told and (folder / "pyproject.toml").is_file()
