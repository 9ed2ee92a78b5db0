"""What was asked for before and goes on: what else is asked for in the same line is refused, and not dropped."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from freestone.analysis.one_experiment import names_apart
from freestone.commands import program
from freestone.commands.on_places import ordered
from freestone.experiments.plan import PlanError
from freestone.records import store


class _Line(NamedTuple):
    """A command line, without what says only where results go and how they are shown."""

    verb: str
    options: list[str]
    """Each with its values, as a shell has them, in the order of the alphabet: theirs is of no matter."""
    program: list[str]
    """What stands behind ``--``."""


def require_same_line(folder: Path, typed: Sequence[str]) -> None:
    """Refuse to go on with a folder by a line that asks for something else than the one that began it.

    Args:
        folder: a results folder.
        typed: the verb and all behind it.

    Raises:
        PlanError: it does.
        StoreError: the folder cannot be read.
    """
    begun = store.read_experiment(folder).command_line[1:]
    if not begun:
        return  # nobody knows
    before, now = _line(begun), _line(typed)
    if before.verb != now.verb:
        raise PlanError(f"cannot resume {folder}: it was begun by freestone {before.verb}")
    if before.program != now.program:
        raise PlanError(f"cannot resume {folder}: it measured another command ({' '.join(before.program)})")
    if before.options != now.options:
        apart = names_apart(before.options, now.options) or "one of them twice"
        raise PlanError(f"cannot resume {folder}: this line is not the one that began it: {apart}")


def require_nothing_else(folder: Path, verb: str, given: Mapping[str, object], words: Sequence[str] = ()) -> None:
    """Refuse to go on with an order and to ask for something else in the same line.

    Args:
        folder: of the order.
        verb: that goes on.
        given: option -> its value, None where it was not given: what would make it another order.
        words: the program, where one was given.

    Raises:
        PlanError: it was begun by another verb, or there are such options or another program.
        StoreError: the order cannot be read.
    """
    order = store.read_order(folder)
    begun = _line(order.words)
    if begun.verb != verb:
        again = f"{program.tool_as_typed()} {begun.verb} --resume {shlex.quote(str(folder))}"
        raise PlanError(f"{folder} was begun by freestone {begun.verb}: go on with: {again}")
    more = [option for option, value in given.items() if value is not None]
    if more:
        raise PlanError(f"--resume goes on with the settings of {folder}; leave out {', '.join(more)}")
    if words and list(words) != begun.program:
        raise PlanError(f"cannot resume {folder}: it measures another command; leave the program out")


def _line(words: Sequence[str]) -> _Line:
    said = ordered(words)
    behind = said.index("--") if "--" in said else len(said)
    found: list[list[str]] = [[]]
    for word in said[1:behind]:
        if not word.startswith("-") or word[1:2].isdigit():
            found[-1].append(word)
            continue
        option, sign, value = word.partition("=") if word.startswith("--") else (word, "", "")
        found.append([option, value] if sign else [option])
    return _Line(said[0], sorted(shlex.join(each) for each in found if each), said[behind + 1 :])
