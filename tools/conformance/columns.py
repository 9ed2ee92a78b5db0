"""The allocators that programs are tried under: as users get them, and the safer builds and modes of their authors."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from freestone.allocators import discovery
from freestone.allocators.errors import AllocatorUnavailable
from freestone.allocators.search import LibrarySearch
from freestone.allocators.verification import verify
from freestone.records.schema import Allocator, Configuration

SUBJECT = "freestone"
HARDENED = "Hardened and debugging builds and modes"
USUAL = "Usual builds"
GROUPS = (HARDENED, USUAL)


@dataclass(frozen=True)
class Column:
    """A way to allocate.

    Args:
        configuration: allocator and settings; its name is the column's.
        group: one of GROUPS.
        by_chance: whether it draws places or blocks by chance, so that a run is one draw.
        is_hidden: whether a verification cannot see that it serves.
    """

    configuration: Configuration
    group: str = USUAL
    by_chance: bool = False
    is_hidden: bool = False

    @property
    def name(self) -> str:
        return self.configuration.name


@dataclass(frozen=True)
class Offer:
    """A mode or a build that is safer than the usual one: tests/misuses/misuses.toml explains its fields."""

    name: str
    libraries: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    by_chance: bool = False
    is_hidden: bool = False

    @property
    def base(self) -> str:
        return self.name.partition(",")[0]


def find(words: str, offers: Sequence[Offer] = ()) -> list[Column]:
    """Return the allocators that are here and serve a program: the hardened before the usual ones, ours first.

    Args:
        words: names or libraries with commas between; none: every allocator, and a line about each that does not serve.
        offers: safer modes and builds that are columns of their own.

    Raises:
        AllocatorError: an allocator that was asked for is not known, not here, or does not serve a program.
    """
    wanted = [word.strip() for word in words.split(",") if word.strip()]
    outside = [offer for offer in offers if offer.libraries]
    own = {offer.base for offer in outside} - {"glibc"}
    if wanted:
        known = discovery.find([word for word in wanted if word not in own])
    else:
        known = [each for each in discovery.discover() if each.available]
        known.sort(key=lambda each: each.name != SUBJECT)
    columns = list(_of_catalogue(known, offers))
    for offer in outside:
        if not wanted or offer.base in wanted:
            library = _library(offer.libraries)
            if library is not None:
                columns.append(_column(offer, discovery.from_path(f"{offer.base}={library}")))
            elif offer.base in wanted and offer.base in own:
                raise AllocatorUnavailable(f"allocator '{offer.base}' is not available: no {offer.libraries[0]}")
    columns.sort(key=lambda column: GROUPS.index(column.group))
    return [each for each in columns if each.is_hidden or _serves(each.configuration, required=bool(wanted))]


def _of_catalogue(known: Iterable[Allocator], offers: Sequence[Offer]) -> Iterator[Column]:
    for allocator in known:
        # A library given by its path has the file's name.
        base = SUBJECT if SUBJECT in allocator.name else allocator.name
        own = [offer for offer in offers if offer.base == base and not offer.libraries]
        if not any(offer.name == base for offer in own):
            yield Column(discovery.configuration_for(allocator))
        for offer in own:
            yield _column(offer, allocator)


def _column(offer: Offer, allocator: Allocator) -> Column:
    name = allocator.name + offer.name.removeprefix(offer.base)
    configuration = discovery.configuration_for(allocator, name=name, environment=dict(offer.environment))
    return Column(configuration, HARDENED, offer.by_chance, offer.is_hidden)


def _library(names: Sequence[str]) -> Path | None:
    for name in (each.format(machine=platform.machine()) for each in names):
        places = sorted(Path("/").glob(name[1:])) if name.startswith("/") else []
        # The newest of several versions.
        for place in [*reversed(places), *LibrarySearch.of_this_machine().candidates([name])]:
            return place
    return None


def _serves(configuration: Configuration, *, required: bool) -> bool:
    seen = verify(configuration.allocator, settings=configuration.environment)
    if not seen.verified and required:
        raise AllocatorUnavailable(f"{configuration.name} does not serve here: {seen.reason}")
    if not seen.verified:
        print(f"{configuration.name} is left out: {seen.reason}", file=sys.stderr)
    return seen.verified
