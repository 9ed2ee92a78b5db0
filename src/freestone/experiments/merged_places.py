"""What places are called whose results are put into one folder. Pure.

A place has the name it was given, or that it had in an order, or that of its processor. Where several would be called
the same, machines are told apart by a part of their identity, and results of one machine by their date, then by their
time, then by a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from freestone.analysis import machines
from freestone.experiments.plan import PlanError
from freestone.records import store
from freestone.records.schema import Experiment

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")

_LONGEST: Final = 40


@dataclass(frozen=True)
class Measured:
    """A result that is to have a place."""

    experiment: Experiment
    given: str | None = None
    """What somebody called the place."""
    known: str | None = None
    """What an order called it."""


def names(found: Sequence[Measured]) -> list[str]:
    """A name for each, unlike each other, that a folder can have.

    Raises:
        PlanError: a name that was given is none, or was given twice.
    """
    given = [each.given for each in found if each.given is not None]
    for name in given:
        if not _NAME.fullmatch(name):
            raise PlanError(f"'{name}' is no name of a place: letters, digits, '.', '_' and '-' make one")
        if store.unlike_files(name) != name:
            raise PlanError(
                f"no place can be called '{name}', as files of results are: leave out what is behind the dot"
            )
        if given.count(name) > 1:
            raise PlanError(f"two places are called '{name}'")
    told = [each.given or _slug(each.known or _processor(each)) for each in found]
    told = _told_apart(found, told, _machine, always=False)
    for more in (_date, _time):
        told = _told_apart(found, told, more, always=True)
    return _numbered(found, told)


def _told_apart(
    found: Sequence[Measured], told: list[str], more: Callable[[Measured], str], *, always: bool
) -> list[str]:
    """The names, with more behind those that several have.

    Args:
        always: whether also where that tells none of them apart.
    """
    apart = []
    for each, name in zip(found, told, strict=True):
        alike = [other for other, called in zip(found, told, strict=True) if called == name]
        helps = len(alike) > 1 and (always or len({more(other) for other in alike}) > 1)
        apart.append(f"{name}-{more(each)}" if helps and each.given is None else name)
    return apart


def _processor(each: Measured) -> str:
    return str(each.experiment.machine.facts.get("cpu") or "machine")


def _machine(each: Measured) -> str:
    return machines.key(each.experiment.machine).rpartition(" ")[2][:6]


def _date(each: Measured) -> str:
    return _begun(each, "%Y-%m-%d")


def _time(each: Measured) -> str:
    return _begun(each, "%H%M%S")


def _begun(each: Measured, form: str) -> str:
    try:
        return datetime.fromisoformat(each.experiment.created_at).astimezone(UTC).strftime(form)
    except (ValueError, OverflowError):  # of a clock far from ours
        return "undated"


def _numbered(found: Sequence[Measured], told: list[str]) -> list[str]:
    taken = {each.given for each in found if each.given is not None}
    apart = []
    for each, name in zip(found, told, strict=True):
        free, number = name, 2
        while each.given is None and free in taken:
            free, number = f"{name}-{number}", number + 1
        taken.add(free)
        apart.append(free)
    return apart


def _slug(name: str) -> str:
    return store.unlike_files(store.folder_name(name)[:_LONGEST].rstrip("-.") or "machine")
