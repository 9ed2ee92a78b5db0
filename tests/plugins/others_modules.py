"""A folder of somebody who has modules of his own by every name that the lab imports."""

from __future__ import annotations

import sys
from pathlib import Path

SAID = "a module of the folder was taken for the lab's"


def put_into(folder: Path) -> None:
    """Put them there; whoever imports one ends with :data:`SAID`."""
    for name in {*sys.stdlib_module_names, "freestone", "cyclopts", "pydantic"}:
        (folder / f"{name}.py").write_text(f"raise SystemExit({SAID!r})\n")
