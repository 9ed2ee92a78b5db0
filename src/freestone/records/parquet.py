"""The trials of a folder as Parquet, for DuckDB, pandas, polars: the same rows and names as the lines of JSON.

The column types come from the schema, not from the data, so that folders of different programs can be queried together.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from freestone.records import installation
from freestone.records.schema import TrialRecord
from freestone.records.store import PARQUET_FILE, StoreError

SLACK: Final = 1 << 20
"""Bytes beyond the longest line. DuckDB reserves twice what it is told that a line may have, in each of its threads."""

# One thread: the rows are few, and each thread takes buffers of its own, which a small container may not have.
_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "autoinstall_known_extensions": "false",
    "threads": 1,
}


def missing() -> str | None:
    """How to get what the file is written by, as a part of a sentence; None where it is there."""
    if find_spec("duckdb") is not None:
        return None
    return f"it needs: {installation.to_get('parquet', ['duckdb'])}"


def write_parquet(folder: Path, records: Iterable[TrialRecord]) -> Path:
    """Write ``trials.parquet``, replacing an earlier one as a whole.

    Raises:
        StoreError: it cannot be written.
    """
    import duckdb  # late: it is the largest of our imports, and an extra (:func:`missing`)

    target = folder / PARQUET_FILE
    try:
        with tempfile.TemporaryDirectory(prefix=f"freestone-{os.getpid()}-") as scratch:
            lines = Path(scratch) / "trials.jsonl"
            longest = _write_lines(lines, records)
            half = folder / f".{PARQUET_FILE}.{os.getpid()}"
            try:
                with duckdb.connect(config=_CONFIG) as database:
                    database.execute(
                        f"COPY (SELECT * FROM read_json('{_quoted(lines)}', format='newline_delimited', "
                        f"columns={_columns()}, maximum_object_size={longest + SLACK})) "
                        f"TO '{_quoted(half)}' (FORMAT parquet, COMPRESSION zstd)"
                    )
                os.replace(half, target)
            finally:
                half.unlink(missing_ok=True)
    except (OSError, duckdb.Error) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise StoreError(f"cannot write {target}: {reason}") from error
    return target


def _write_lines(path: Path, records: Iterable[TrialRecord]) -> int:
    """Write a line of JSON for each record; the bytes of the longest."""
    longest = 0
    with path.open("wb") as file:
        for record in records:
            longest = max(longest, file.write(record.model_dump_json().encode() + b"\n"))
    return longest


def column_types() -> Mapping[str, str]:
    """Column name -> DuckDB type of every field of a trial record."""
    return {name: _duckdb_type(field.annotation) for name, field in TrialRecord.model_fields.items()}


def _columns() -> str:
    return "{" + ", ".join(f"'{name}': '{kind}'" for name, kind in column_types().items()) + "}"


def _duckdb_type(annotation: Any) -> str:
    scalars = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}
    if annotation in scalars:
        return scalars[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return "VARCHAR"
    if origin in (Union, UnionType):
        (inner,) = (each for each in arguments if each is not NoneType)
        return _duckdb_type(inner)
    if origin is list:
        return f"{_duckdb_type(arguments[0])}[]"
    if origin is dict:
        return f"MAP({_duckdb_type(arguments[0])}, {_duckdb_type(arguments[1])})"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields.items()
        return "STRUCT(" + ", ".join(f'"{name}" {_duckdb_type(field.annotation)}' for name, field in fields) + ")"
    raise TypeError(f"no column type for {annotation!r}")


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
