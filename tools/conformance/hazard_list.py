"""The list of hazards, as ``tests/hazards/hazards.toml`` has it."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NEEDS = frozenset({"", "thp-always", "thp-policy", "memory-cgroup"})
"""What a hazard may need of the machine beside commands."""


class CatalogueError(Exception):
    """The list says something that cannot be meant, in one line."""


@dataclass(frozen=True)
class Run:
    """One command, with variables before it, and the fault it has to see."""

    command: str
    planted: str = ""
    """The fault of planted_library.c under which it must not pass."""
    unplanted: str = ""
    """Why there is none."""


@dataclass(frozen=True)
class Hazard:
    """One hazard and how it is tried."""

    number: str
    name: str
    right: str
    """What a sound allocator does, with its limit."""
    source: str
    """Who was hurt by it."""
    programs: tuple[str, ...] = ()
    """Sources of what is run, from the repository's root; none where nothing can be tried."""
    libraries: tuple[str, ...] = ()
    """Sources of shared libraries that come along."""
    link: tuple[str, ...] = ()
    """Sources, or libraries of these, that the programs are linked to."""
    reads: tuple[str, ...] = ()
    """Sources that a script among the programs compiles by itself."""
    runs: tuple[Run, ...] = ()
    """What is run; the worst answer counts. In the list: commands, or tables where the fault is another than the
    hazard's. Without: the first program as it is."""
    together: bool = False
    """The runs may be made at the same time: they mostly wait."""
    limit_s: float = 30.0
    times: float = 0.0
    """When not 0: the program prints a number, which may be so many times that of ``beside``, medians of ``rounds``."""
    beside: str = "glibc"
    """The allocator that takes turns with the one that is asked."""
    slack: float = 0.0
    """What may come on top of that, in the number's unit."""
    rounds: int = 3
    commands: tuple[str, ...] = ()
    """Programs of the system it needs."""
    needs: str = ""
    preload: bool = True
    """False: the program starts bare, and brings the allocator in by itself."""
    only: tuple[str, ...] = ()
    """Allocators that can be asked; none: all."""
    but: tuple[str, ...] = ()
    """Allocators that cannot."""
    otherwise: str = ""
    """Why the others are not, and for a hazard without a program why nobody is."""
    not_applicable: bool = False
    """What is not asked is so because the hazard is none there, not for want of means."""
    planted: str = ""
    """The fault of its runs that name none."""
    scaled: str = ""
    """What was made smaller than the hazard has it, or is left out."""


def parse(text: str) -> list[Hazard]:
    """Return the hazards in the order of the list.

    Raises:
        CatalogueError: a key nobody reads, one that is missing, or two hazards of one number or name.
    """
    try:
        rows = tomllib.loads(text)["hazard"]
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise CatalogueError(f"the list of hazards cannot be read: {error}") from None
    hazards = [_hazard(row) for row in rows]
    for key in ("number", "name"):
        for value, count in Counter(getattr(each, key) for each in hazards).items():
            if count > 1:
                raise CatalogueError(f"two hazards have the {key} {value}")
    return hazards


def read(path: Path) -> list[Hazard]:
    """Parse a file."""
    return parse(path.read_text(encoding="utf-8"))


def choose(hazards: Sequence[Hazard], words: Sequence[str]) -> list[Hazard]:
    """Return the hazards whose number or name is among the words, in the order of the list; without words, all.

    Raises:
        CatalogueError: a word names no hazard.
    """
    names = {each: {each.number, each.number.rstrip("b"), each.name} for each in hazards}  # 34b is chosen by 34 too
    strangers = [word for word in words if not any(word in each for each in names.values())]
    if strangers:
        raise CatalogueError(f"there is no hazard {', '.join(strangers)}; known: {', '.join(h.name for h in hazards)}")
    return [each for each in hazards if not words or names[each] & set(words)]


def _runs(row: Mapping[str, Any]) -> tuple[Run, ...]:
    """Return the runs, each with its fault; TypeError if one has a key that nobody reads."""
    programs = [Path(name) for name in row.get("programs", [])[:1]]
    alone = [path.name if path.suffix == ".sh" else path.stem for path in programs]
    told = [{"command": run} if isinstance(run, str) else run for run in row.get("runs", alone)]
    return tuple(Run(**({} if "unplanted" in run else {"planted": row.get("planted", "")}) | run) for run in told)


def _hazard(row: Mapping[str, Any]) -> Hazard:
    name = row.get("name", "without a name")
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    try:
        hazard = Hazard(**values | {"runs": _runs(row)})
    except TypeError as error:
        raise CatalogueError(f"hazard {name} cannot be read: {error}") from None
    silent = [run.command for run in hazard.runs if bool(run.planted) == bool(run.unplanted)]
    wrong = {
        "neither a program nor a reason (otherwise) why there is none": not hazard.programs and not hazard.otherwise,
        "the allocators that are not asked get no reason (otherwise)": hazard.only + hazard.but
        and not hazard.otherwise,
        f"{hazard.needs} is nothing that can be needed": hazard.needs not in NEEDS,
        f"{silent[:1]}: either a planted fault or why there is none (unplanted)": silent,
    }
    for complaint, applies in wrong.items():
        if applies:
            raise CatalogueError(f"hazard {name}: {complaint}")
    return hazard
