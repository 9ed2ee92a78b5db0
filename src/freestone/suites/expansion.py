"""From a suite's templates to single workloads: matrix, cases, values, placeholders. Pure functions.

A placeholder is a word in braces. In a command it is replaced by its value; in a name, a value that is itself a
placeholder stands without its braces, so that ``server-{threads}`` with ``threads = "{4cores}"`` is called
``server-4cores`` on every machine.
"""

from __future__ import annotations

import difflib
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from freestone.records.schema import Stages
from freestone.suites.room import Room
from freestone.suites.schema import Entry, Need, Scalar, Suite, SuiteError

IDLE_MOST_S = 3600
"""The longest sleep that the workload programs take."""

MOST_WORKLOADS = 10_000
"""More than anybody waits for: a matrix of that size is a slip."""

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Planned:
    """One workload of a suite, every placeholder filled in.

    ``smaller``: what may be measured in its place where ``room`` is not to be had; ``values`` tell them apart.
    """

    name: str
    command: list[str]
    environment: dict[str, str]
    needs: tuple[Need, ...]
    reads: Literal["process", "json"]
    counted: bool
    idle: list[str]
    rest_s: int | None
    counting: list[str] | None
    """The command in runs that only count: the quick one, with its own words behind; None where it is the same."""
    cannot: str | None
    room: Room
    values: str
    parameters: dict[str, str]
    """What the placeholders of its name stand for."""
    stages: Stages
    input: str | None
    compare_output: str | None
    entry: Entry
    """Says what else counts and how it is run, the same for every size."""
    smaller: tuple[Planned, ...] = ()


def expand(
    suites: Sequence[Suite],
    places: Mapping[str, str],
    *,
    quick: bool = False,
    idle_s: int | None = None,
    find: Callable[[Need], str | None] = lambda need: None,
) -> list[Planned]:
    """Every workload of one or several suites, in their order.

    Args:
        places: what the placeholders of every suite stand for: ``workloads``, ``python``, ``cores`` and so on.
        quick: take the ``quick`` values.
        idle_s: seconds, 1 to 3600, that programs of suites with ``idles`` sleep after their work.
        find: where a program is; a placeholder of its name stands for that, or for its name where it is nowhere.

    Raises:
        SuiteError: a placeholder that nothing stands for, two workloads of one name, a matrix without end, or a sleep
            that cannot be.
    """
    if idle_s is not None:
        _require_idle(suites, idle_s)
    for entry in (entry for suite in suites for entry in suite.workload):
        count = math.prod(map(len, entry.matrix.values())) * max(1, len(entry.cases))
        if count > MOST_WORKLOADS:
            raise SuiteError(f"the matrix of '{entry.name}' makes {count:,} workloads; {MOST_WORKLOADS:,} are the most")
    planned = [
        each
        for suite in suites
        for entry in suite.workload
        for each in _expand(
            entry,
            {**places, **{need.program: find(need) or need.program for need in entry.needs}},
            quick,
            idle_s if suite.idles else None,
        )
    ]
    seen: set[str] = set()
    for each in planned:
        if each.name in seen:
            raise SuiteError(
                f"two workloads are named '{each.name}'; it needs the keys of matrix and cases that tell two apart"
            )
        seen.add(each.name)
    return planned


def _require_idle(suites: Sequence[Suite], idle_s: int) -> None:
    if not 1 <= idle_s <= IDLE_MOST_S:
        raise SuiteError(f"--idle is a whole number of seconds from 1 to {IDLE_MOST_S}, not {idle_s}")
    if not any(suite.idles for suite in suites):
        raise SuiteError("--idle is for suites whose programs sleep when told to, which say 'idles = true'")


def _expand(entry: Entry, places: Mapping[str, str], quick: bool, idle_s: int | None) -> Iterator[Planned]:
    telling = [key for key in dict.fromkeys(key for less in entry.smaller for key in less) if _is_said(key, entry)]
    axes = [[(key, value) for value in values] for key, values in entry.matrix.items()]
    for combination in itertools.product(*axes):
        for case in entry.cases or [{}]:
            usual = {**entry.values, **dict(combination), **case}
            quicker = entry.quick if quick else {}
            name = _name(entry, {**usual, **quicker})
            largest, *smaller = (
                _planned(entry, name, {**values, **quicker}, {**values, **entry.quick}, telling, places, idle_s)
                for values in (usual, *({**usual, **less} for less in entry.smaller))
            )
            yield replace(largest, smaller=tuple(smaller))


def _name(entry: Entry, values: Mapping[str, Scalar]) -> str:
    return _filled(entry.name, {key: _spoken(value) for key, value in values.items()}, f"the name '{entry.name}'")


def _planned(
    entry: Entry,
    name: str,
    values: Mapping[str, Scalar],
    small: Mapping[str, Scalar],
    telling: Sequence[str],
    places: Mapping[str, str],
    idle_s: int | None,
) -> Planned:
    """One workload with these values, of which ``telling`` are those that tell it from a larger or smaller one.

    Args:
        small: its values in runs that only count.
    """
    place = f"workload '{name}'"
    filled = _all_filled(values, places, place)
    command = [_filled(word, filled, place) for word in entry.command]
    counted = _all_filled(small, places, place)
    counting = [_filled(word, counted, place) for word in (*entry.command, *entry.counting)]
    itself = entry.reads == "json"
    sleep = [_filled(word, filled | {"idle": str(idle_s)}, place) for word in entry.idle] if idle_s and itself else []
    room = Room(_mib(entry.memory_mib, filled, place), _mib(entry.disk_mib, filled, place))
    return Planned(
        name=name,
        command=command,
        environment={key: _filled(value, filled, place) for key, value in entry.environment.items()},
        needs=tuple(entry.needs),
        reads=entry.reads,
        counted=entry.counted,
        idle=sleep,
        rest_s=None if itself else idle_s,
        counting=None if counting == command else counting,
        cannot=entry.cannot,
        room=room,
        values=" ".join(f"{key}={filled.get(key, '')}" for key in telling),
        parameters={key: filled[key] for key in _PLACEHOLDER.findall(entry.name)},
        stages=Stages(
            setup=_some(entry.setup, filled, place),
            prepare=_some(entry.prepare, filled, place),
            conclude=_some(entry.conclude, filled, place),
            cleanup=_some(entry.cleanup, filled, place),
        ),
        input=_some(entry.input, filled, place),
        compare_output=_some(entry.compare_output, filled, place),
        entry=entry,
    )


def _is_said(key: str, entry: Entry) -> bool:
    """Whether a value is one that the program is told, and not how much room it takes."""
    return any(f"{{{key}}}" in word for word in entry.command)


def _mib(given: Scalar | None, filled: Mapping[str, str], place: str) -> int | None:
    if given is None:
        return None
    text = _filled(str(given), filled, place)
    if not re.fullmatch(r"\d{1,12}", text):
        raise SuiteError(f"{place}: memory_mib and disk_mib take a whole number of MiB, not '{text}'")
    return int(text)


def _all_filled(values: Mapping[str, Scalar], places: Mapping[str, str], place: str) -> dict[str, str]:
    return dict(places) | {key: _filled(str(value), places, place) for key, value in values.items()}


def _some(text: str | None, values: Mapping[str, str], place: str) -> str | None:
    return None if text is None else _filled(text, values, place)


def _spoken(value: Scalar) -> str:
    return _PLACEHOLDER.sub(r"\1", str(value))


def _filled(text: str, values: Mapping[str, str], place: str) -> str:
    def value(match: re.Match[str]) -> str:
        word = match.group(1)
        if word not in values:
            near = difflib.get_close_matches(word, values, n=1)
            hint = f"did you mean {{{near[0]}}}?" if near else f"there are {', '.join(sorted(values)) or 'none'}"
            raise SuiteError(f"{place}: nothing stands for {{{word}}}; {hint}")
        return values[word]

    return _PLACEHOLDER.sub(value, text)
