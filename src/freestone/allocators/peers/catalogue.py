"""Which peers there are, where their sources are and how they are built, read from TOML."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from freestone.allocators.peers.errors import UnknownPeer

ALL = "all"
"""The name that means every peer."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Package(_Table):
    """A source package of the crate registry. Field meanings are documented at the head of ``catalogue.toml``."""

    name: str
    version: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")

    @property
    def short_version(self) -> str:
        """Without what follows a plus sign, which the registry does not tell versions apart by."""
        return self.version.partition("+")[0]

    def __str__(self) -> str:
        return f"{self.name} {self.short_version}"


class Compile(_Table):
    """Every source to an object, all objects to one library."""

    kind: Literal["compile"]
    folder: str
    sources: list[str] = Field(min_length=1)
    without: list[str] = Field(default_factory=list)
    include: list[str] = Field(default_factory=lambda: ["."])
    define: list[str] = Field(default_factory=list)
    flags: list[str]
    c: list[str] = Field(default_factory=list)
    cxx: list[str] = Field(default_factory=list)
    link: list[str] = Field(default_factory=list)

    @property
    def is_cxx(self) -> bool:
        """Whether any source is C++."""
        return any(source.endswith(".cc") for source in self.sources)


class Configure(_Table):
    """``sh configure``, then make."""

    kind: Literal["configure"]
    folder: str
    script: str
    arguments: list[str]
    target: str
    library: str


class CMake(_Table):
    """The project's own CMake build, as a release."""

    kind: Literal["cmake"]
    folder: str
    options: dict[str, str]
    target: str
    library: str


Recipe = Compile | Configure | CMake


class Peer(_Table):
    """An allocator that the lab can build. ``variant``: another of its kind is the usual one, so it has to be named."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]*$")
    project: str
    title: str
    version: str
    package: Package
    operators: bool
    variant: bool = False
    environment: dict[str, str] = Field(default_factory=dict)
    recipe: Annotated[Recipe, Field(discriminator="kind")]


@cache
def load() -> dict[str, Peer]:
    """Every peer by name, in catalogue order."""
    text = (files("freestone.allocators.peers") / "catalogue.toml").read_text(encoding="utf-8")
    return parse(tomllib.loads(text))


def parse(tables: dict[str, Any]) -> dict[str, Peer]:
    """The peers of a catalogue.

    Raises:
        ValueError: a key is wrong or missing, or a package is not there.
    """
    packages = {name: Package(name=name, **table) for name, table in tables["package"].items()}
    found: dict[str, Peer] = {}
    for name, table in tables["peer"].items():
        if table["package"] not in packages:
            raise ValueError(f"[peer.{name}]: there is no [package.{table['package']}]")
        found[name] = Peer(name=name, **{**table, "package": packages[table["package"]]})
    return found


def chosen(names: Iterable[str], *, variants: bool = False) -> list[Peer]:
    """The peers that names stand for, each once, in catalogue order: peers, projects, ``all``; all for no name.

    Args:
        variants: whether all are the variants too.

    Raises:
        UnknownPeer: the message suggests the nearest names.
    """
    known = load()
    wanted = [word.strip() for name in names for word in name.split(",") if word.strip()] or [ALL]
    for word in wanted:
        if word != ALL and not any(word in (peer.name, peer.project) for peer in known.values()):
            words = dict.fromkeys([*(peer.project for peer in known.values()), *known, ALL])
            near = difflib.get_close_matches(word.lower(), words, n=2, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(words)}"
            raise UnknownPeer(f"no allocator that can be built is called {word!r}; {hint}")
    return [
        peer
        for peer in known.values()
        if {peer.name, peer.project} & set(wanted) or (ALL in wanted and (variants or not peer.variant))
    ]
