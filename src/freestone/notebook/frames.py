"""Rows as a data frame of whichever library is asked for; none of them is needed for anything else."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from freestone.records import installation

Kind = Literal["arrow", "pandas", "polars"]

_MODULES: dict[Kind, tuple[str, str]] = {
    "arrow": ("pyarrow", "table"),
    "pandas": ("pandas", "DataFrame"),
    "polars": ("polars", "DataFrame"),
}


class MissingLibrary(ImportError):
    """A library of data frames is not installed; the message is one line that says how to get it."""


def frame(rows: Sequence[Mapping[str, Any]], kind: Kind) -> Any:
    """The rows as a ``pyarrow.Table``, ``pandas.DataFrame`` or ``polars.DataFrame``.

    Columns are those of all rows, in the order in which they first appear; what a row does not have is null.

    Raises:
        MissingLibrary: the library is not installed.
        ValueError: there is no such kind.
    """
    if kind not in _MODULES:
        raise ValueError(f"no data frame is called '{kind}'; there are {', '.join(_MODULES)}")
    module, maker = _MODULES[kind]
    try:
        library = importlib.import_module(module)
    except ImportError as error:
        whole = installation.to_get("notebook", [name for name, _ in _MODULES.values()])
        raise MissingLibrary(f"{module} is not installed: {whole}; or {module} alone") from error
    columns = dict.fromkeys(name for row in rows for name in row)
    return getattr(library, maker)({name: [row.get(name) for row in rows] for name in columns})
