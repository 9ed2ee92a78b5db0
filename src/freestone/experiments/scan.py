"""Parameters that a comparison goes through: what ``threads=1,2,4`` means, and what it makes of one workload. Pure."""

from __future__ import annotations

import difflib
import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from freestone.experiments.plan import PlanError
from freestone.records.schema import Workload

MOST_POINTS: Final = 1000
"""Combinations that are taken for meant; more are a slip."""

_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z_]\w*)\}")
_NUMBER: Final = r"-?\d+(?:\.\d+)?"
_RANGE: Final = re.compile(
    rf"(?P<first>{_NUMBER})(?P<unit>[A-Za-z]*)\.\.(?P<last>{_NUMBER})(?P<again>[A-Za-z]*)"
    rf"(?:(?P<how>[*+])(?P<step>{_NUMBER}))?"
)
_AS_IN: Final = "as in --scan threads=1,2,4 or threads=1..8 or size=1k..64k*2"


@dataclass(frozen=True)
class Scan:
    """One parameter and its values, in their order."""

    name: str
    values: tuple[str, ...]


def read(words: Sequence[str]) -> list[Scan]:
    """The scans that were asked for.

    A value is taken as it stands, but for ranges: ``1..8`` are whole numbers with both ends, ``1..64*2`` doubles,
    ``0..1+0.25`` adds; a unit behind both ends (``1k..64k*2``) stands behind every value.

    Raises:
        PlanError: one says nothing, or something twice, or more than anybody waits for.
    """
    scans: list[Scan] = []
    for word in words:
        name, equals, said = word.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise PlanError(f"--scan takes NAME=VALUES, {_AS_IN}, not '{word}'")
        if any(scan.name == name for scan in scans):
            raise PlanError(f"there are two scans of '{name}'; one has all its values, with commas between")
        values = [value for part in said.split(",") for value in _values(word, part)]
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            raise PlanError(f"--scan {word} has {twice} twice")
        scans.append(Scan(name, tuple(values)))
    points = math.prod(len(scan.values) for scan in scans)
    if points > MOST_POINTS:
        raise PlanError(f"these scans have {points:,} combinations; {MOST_POINTS:,} are the most")
    return scans


def points(scans: Sequence[Scan], workload: Workload) -> list[Workload]:
    """A workload for every combination of the scans that it uses; itself alone where it uses none.

    Placeholders are filled in its command, the values of its environment, its stages, its input and its server's
    commands; in its name too, and what that does not hold stands behind it.
    """
    used = [scan for scan in scans if scan.name in placeholders(workload)]
    if not used:
        return [workload]
    found = []
    for combination in itertools.product(*(scan.values for scan in used)):
        values = dict(zip((scan.name for scan in used), combination, strict=True))
        told = [f"{name}={value}" for name, value in values.items() if f"{{{name}}}" not in workload.name]
        filled = _mapped(workload, functools.partial(_filled, values))
        name = " ".join([_filled(values, workload.name), *told])
        found.append(filled.model_copy(update={"name": name, "parameters": values, "series": workload.name}))
    return found


def require_used(scans: Sequence[Scan], workloads: Sequence[Workload]) -> None:
    """Every scan has its placeholder somewhere, and no placeholder is a scan's name misspelt.

    Raises:
        PlanError: it is not so.
    """
    if not scans:
        return
    found = {name for workload in workloads for name in placeholders(workload)}
    names = [scan.name for scan in scans]
    for name in sorted(found - set(names)):
        near = difflib.get_close_matches(name, names, n=1)
        if near:
            raise PlanError(f"no --scan has values for {{{name}}}; did you mean {{{near[0]}}}?")
    for name in names:
        if name not in found:
            raise PlanError(
                f"nothing uses --scan {name}: write {{{name}}} in the program's arguments, in --env or in --prepare"
            )


def unknown(scans: Sequence[Scan], workloads: Sequence[Workload]) -> list[str]:
    """Names in braces that no scan has, which stay as they are: a program may well be told such words."""
    names = {scan.name for scan in scans}
    return sorted({name for workload in workloads for name in placeholders(workload)} - names) if scans else []


def placeholders(workload: Workload) -> set[str]:
    """The words in braces of everything in which a scan is filled in."""
    found: set[str] = set()

    def look(text: str) -> str:
        found.update(_PLACEHOLDER.findall(text))
        return text

    _mapped(workload, look)
    return found


def _mapped(workload: Workload, change: Callable[[str], str]) -> Workload:
    """The workload with every text changed in which a placeholder may stand, but for its name."""

    def some(text: str | None) -> str | None:
        return None if text is None else change(text)

    stages, service, read_from = workload.stages, workload.service, workload.input
    return workload.model_copy(
        update={
            "command": [change(word) for word in workload.command],
            "environment": {name: change(value) for name, value in workload.environment.items()},
            "compare_output": some(workload.compare_output),
            "stages": stages.model_copy(update={name: some(value) for name, value in stages}),
            "input": read_from and read_from.model_copy(update={"file": change(read_from.file)}),
            "service": service
            and service.model_copy(update={"ready": change(service.ready), "load": change(service.load)}),
        }
    )


def _filled(values: Mapping[str, str], text: str) -> str:
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)


def _values(word: str, part: str) -> Iterable[str]:
    text = part.strip()
    if not text:
        raise PlanError(f"--scan {word} has an empty value")
    found = _RANGE.fullmatch(text)
    if found is None:
        return [text]
    if found["unit"] != found["again"]:
        raise PlanError(f"--scan {word}: both ends of a range need the same unit, as in size=1k..64k*2")
    return [f"{value}{found['unit']}" for value in _numbers(word, found)]


def _numbers(word: str, found: re.Match[str]) -> list[str]:
    value, last = Decimal(found["first"]), Decimal(found["last"])
    times, step = found["how"] == "*", Decimal(found["step"] or 1)
    if last < value:
        raise PlanError(f"--scan {word}: a range goes upwards, from the smaller end to the larger one")
    if (times and (step <= 1 or value <= 0)) or step <= 0:
        raise PlanError(f"--scan {word}: that range never comes to its end")
    numbers: list[str] = []
    while value <= last:
        if len(numbers) >= MOST_POINTS:
            raise PlanError(f"--scan {word} has more than {MOST_POINTS:,} values")
        numbers.append(f"{value.normalize():f}")
        value = value * step if times else value + step
    return numbers
