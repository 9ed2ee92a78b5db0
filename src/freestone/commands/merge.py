"""``freestone merge``: results of one experiment that were measured apart, in one folder, side by side."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from freestone.commands.status import ExitStatus, Stop

if TYPE_CHECKING:  # what reads results is large, and the help needs none of it
    from freestone.analysis.sides import Side
    from freestone.records.schema import Order


def merge(
    *results: Annotated[
        str, Parameter(help="Results folders of freestone compare or bench, each as FOLDER or NAME=FOLDER.")
    ],
    into: Annotated[Path, Parameter(help="The folder that is made of them; it must not be there yet.")],
    any_build: Annotated[
        bool,
        Parameter(negative="", help="Programs may be another build on each machine; their other files are the same."),
    ] = False,
) -> int:
    """Put results of one experiment that were measured apart into one folder: other machines, or other days.

    They are copied, each stays its own, and freestone report shows them side by side: who is best where, and where the
    ranking changes. Commands, contents of the files that they name, settings, configurations and the version of the lab
    have to be the same; what is not is named, and then nothing is made. A folder of several places stands for each of
    them. NAME says what a place is called; else its processor does, with the date where one machine measured twice.

    Examples:

        freestone merge results/20261120T131500Z-solve from-board/20261121T090000Z-solve --into results/both
        freestone merge here=results/20261120T131500Z-solve board=/mnt/20261121T090000Z-solve --into results/both

    Exit status: 0 merged, 2 wrong use or results that do not belong together, 5 results could not be read or written.
    """
    from freestone.analysis.one_experiment import builds_apart
    from freestone.commands import program
    from freestone.experiments import merged_places
    from freestone.experiments.merged_places import Measured
    from freestone.experiments.plan import PlanError
    from freestone.records import copies
    from freestone.records.copies import Original
    from freestone.records.store import StoreError

    _require_new(into)
    found = [each for word in results for each in _given(word)]
    if len(found) < 2:
        raise Stop("give two or more results folders, and --into the folder that is made of them", ExitStatus.USAGE)
    sides = _read(found)
    _require_one_experiment(found, sides, any_build=any_build)
    try:
        names = merged_places.names(
            [Measured(side.experiment, each.name, each.known) for each, side in zip(found, sides, strict=True)]
        )
        originals = [
            Original(name, each.folder, side.experiment, side.records)
            for name, each, side in zip(names, found, sides, strict=True)
        ]
        copies.copy_together(originals, _order(sides[0], names), into)
    except PlanError as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    for told in builds_apart([(name, side.experiment) for name, side in zip(names, sides, strict=True)]):
        print(f"freestone: {told}", file=sys.stderr)
    for each, name in zip(found, names, strict=True):
        print(f"{name}: {each.folder}")
    print(f"\nSide by side: {program.tool_as_typed()} report {shlex.quote(str(into))}")
    return ExitStatus.FINE


@dataclass(frozen=True)
class _Given:
    """A results folder, and what its place is called."""

    folder: Path
    name: str | None
    """By whoever typed it."""
    known: str | None
    """By the order that it is of."""


def _require_new(into: Path) -> None:
    if os.path.lexists(into):
        raise Stop(f"{into} exists already; nothing is overwritten: give a folder that is not there", ExitStatus.STORE)


def _given(word: str) -> list[_Given]:
    """What a word stands for: a results folder, or those of several places."""
    from freestone.commands import one_folder
    from freestone.records import store
    from freestone.records.whole import why

    name, sign, rest = word.partition("=")
    named = bool(sign) and not os.path.lexists(word)
    folder = Path(rest if named else word)
    try:
        if not (folder / store.ORDER_FILE).exists():
            of_order = (folder.resolve().parent / store.ORDER_FILE).exists()
            known = folder.resolve().name if of_order else None
            return [_Given(one_folder.required(folder), name if named else None, known)]
        places = store.places(folder)
    except OSError as error:
        raise Stop(f"cannot read {folder}: {why(error)}", ExitStatus.STORE) from error
    if not places:
        raise Stop(f"{folder}: no place has measured anything yet", ExitStatus.USAGE)
    if named and len(places) > 1:
        raise Stop(f"{folder} holds {len(places)} places, which have names: leave out {name}=", ExitStatus.USAGE)
    return [_Given(each, name if named else None, each.name) for each in places]


def _read(found: Sequence[_Given]) -> list[Side]:
    """What each folder holds.

    Raises:
        Stop: one is damaged, holds nothing, or is being written; every such folder has its line.
    """
    from freestone.analysis.sides import Side
    from freestone.records import store
    from freestone.records.store import StoreError

    sides, refused = [], []
    for each in found:
        try:
            experiment, reading = store.read_experiment(each.folder), store.read_trials(each.folder)
        except StoreError as error:
            refused.append(str(error))
            continue
        damage = store.damage_line(each.folder, reading.damage)
        if damage is not None:
            refused.append(damage)
        elif store.is_being_written(each.folder):
            refused.append(f"{each.folder} is being measured; merge when it has ended")
        elif not reading.records:
            refused.append(f"{each.folder} holds no trial")
        else:
            sides.append(Side(experiment, reading.records))
    _refuse(refused, ExitStatus.STORE)
    return sides


def _require_one_experiment(found: Sequence[_Given], sides: Sequence[Side], *, any_build: bool) -> None:
    """Raise Stop with a line for each folder that is not of the experiment that all before it are of.

    One whose runs have failed tells nothing of the program and its files: what agrees with it need not agree.
    """
    from freestone.analysis import one_experiment

    refused = [
        f"{each.folder} is of freestone {verb}; {' and '.join(one_experiment.VERBS)} can be merged"
        for each, side in zip(found, sides, strict=True)
        if (verb := one_experiment.verb(side.experiment)) not in one_experiment.VERBS
    ]
    _refuse(refused, ExitStatus.USAGE)
    seen: dict[str, Path] = {}
    before: list[tuple[_Given, Side]] = []
    for each, side in zip(found, sides, strict=True):
        twin = seen.setdefault(side.experiment.id, each.folder)
        if twin is not each.folder:
            refused.append(f"{each.folder} is the same measurement as {twin}; give it once")
            continue
        for one, other in before:
            told = one_experiment.differs(other, side, any_build=any_build)
            if told is not None:
                hint = "; --any-build lets each machine have its own" if told.endswith("build of the program") else ""
                refused.append(f"{each.folder} does not belong to {one.folder}: {told}{hint}")
                break
        else:
            before.append((each, side))
    _refuse(refused, ExitStatus.USAGE)


def _refuse(lines: Sequence[str], status: ExitStatus) -> None:
    """Say every line, and end with the last of them."""
    if lines:
        for line in lines[:-1]:
            print(f"freestone: {line}", file=sys.stderr)
        raise Stop(lines[-1], status)


def _order(first: Side, names: Sequence[str]) -> Order:
    """What all of them have measured."""
    from freestone.commands.on_places import ordered
    from freestone.records.schema import Order, Place

    now = datetime.now(UTC)
    return Order(
        id=f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}",
        created_at=now.isoformat(timespec="seconds"),
        freestone_version=first.experiment.freestone_version,
        words=ordered(first.experiment.command_line[1:]),
        places=[Place(name=name, engine="merged") for name in names],
    )
