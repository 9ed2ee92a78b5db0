"""The catalogue: which allocators the lab knows by name, read from TOML."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from freestone.allocators.errors import CatalogueError
from freestone.records import cached

_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_CALL = re.compile(r"call:[A-Za-z_]\w*")


def _version_source(source: str) -> str:
    if source in ("package", "file") or _CALL.fullmatch(source):
        return source
    if source.startswith("text:"):
        try:
            groups = re.compile(source.removeprefix("text:").encode()).groups
        except re.error as error:
            raise ValueError(f"'{source}' is not a regular expression: {error}") from None
        if groups == 1:
            return source
        raise ValueError(f"'{source}' needs exactly one group, the version")
    raise ValueError(f"'{source}' is none of package, file, text:REGEX, call:FUNCTION")


class Entry(BaseModel):
    """One allocator of the catalogue. Field meanings are documented at the head of ``catalogue.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: str
    title: str
    kind: Literal["library", "libc", "freestone"] = "library"
    sonames: list[str] = Field(min_length=1)
    packages: dict[str, list[str]] = Field(default_factory=dict)
    version: list[Annotated[str, AfterValidator(_version_source)]] = Field(default_factory=lambda: ["package", "file"])
    homepage: str | None = None


def user_catalogue(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the user's own catalogue is looked for; the file need not exist."""
    base = environment.get("XDG_CONFIG_HOME") or cached.home(environment) / ".config"
    return Path(base) / "freestone" / "allocators.toml"


def load(user_file: Path | None = None) -> dict[str, Entry]:
    """The built-in catalogue with the user's on top, by name, in catalogue order.

    Args:
        user_file: the user's catalogue; by default the one of :func:`user_catalogue`, if it exists.

    Raises:
        CatalogueError: a file is not readable, not TOML, or an entry has a wrong or missing key.
    """
    tables: dict[str, dict[str, Any]] = {}
    sources: dict[str, str] = {}
    built_in = files("freestone.allocators") / "catalogue.toml"
    texts = [("built-in catalogue", built_in.read_text(encoding="utf-8"))]
    path = user_file or user_catalogue()
    if user_file is not None or path.is_file():
        try:
            texts.append((str(path), path.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise CatalogueError(f"catalogue {path} cannot be read: {_cause(error)}") from None
    for source, text in texts:
        for name, table in _parse(source, text).items():
            tables[name] = {**tables.get(name, {}), **table}
            sources[name] = source
    return {name: _entry(sources[name], name, table) for name, table in tables.items()}


def _parse(source: str, text: str) -> dict[str, dict[str, Any]]:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CatalogueError(f"{source}: not valid TOML: {error}") from None
    for name, table in tables.items():
        if not _NAME.fullmatch(name):
            raise CatalogueError(f"{source}: '{name}' is no allocator name; use a-z, 0-9, '-' and '_'")
        if not isinstance(table, dict):
            raise CatalogueError(f"{source}: '{name}' must be a table: [{name}] with title and sonames below it")
    return tables


def _entry(source: str, name: str, table: dict[str, Any]) -> Entry:
    try:
        return Entry(name=name, **{key: value for key, value in table.items() if key != "name"})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise CatalogueError(f"{source}: [{name}] {where}: {first['msg']}") from None


def _cause(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "not UTF-8 text"
