"""A measurement on several machines: the order, its engines, and one report of the results."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import freestone
from freestone.commands import into_folder, program
from freestone.commands.status import ExitStatus, Stop
from freestone.experiments import Interruption, places
from freestone.experiments.engines import Carried, Unreachable, command, engine_of
from freestone.experiments.plan import PlanError
from freestone.records import store
from freestone.records.schema import Order, Place

AT_ONCE: Final = 64
"""Machines that measure together. Each takes some of the files that a process may have open."""

LOOK_S: Final = 0.2


def is_order(folder: Path | None) -> bool:
    """Whether a folder to be resumed is that of an order."""
    return folder is not None and (folder / store.ORDER_FILE).exists()


def measure(name: str, on: Sequence[str] | None, results: Path, seed: int | None, of_one: Sequence[str]) -> int:
    """Have each place carry out the command line, report the results, and return the exit status.

    Args:
        name: of the order.
        on: the places, as they were typed.
        results: the folder for the order's own.
        seed: of the random order of runs; None for a new one, the same for all places.
        of_one: options that were given and need the results of one machine.

    Raises:
        PlanError: it cannot be ordered.
        StoreError: the order cannot be written.
    """
    _require_none(of_one)
    asked, now = places.read(on or []), datetime.now(UTC)
    words = program.env_as_here(into_folder.measured(sys.argv[1:]))
    if seed is None:
        words[1:1] = ["--seed", str(secrets.randbits(32))]
    order = Order(
        id=f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}",
        created_at=now.isoformat(timespec="seconds"),
        freestone_version=freestone.__version__,
        words=words,
        directory=os.getcwd(),
        places=asked,
    )
    folder = store.create_folder(results, name, now)
    store.write_order(folder, order)
    return _carry_out(order, folder)


def resume(
    folder: Path, verb: str, given: Mapping[str, object], words: Sequence[str], on: object, of_one: Sequence[str]
) -> int:
    """Continue an order at its places, report the results, and return the exit status.

    Args:
        folder: of the order.
        verb: that was typed.
        given: option -> its value, None if it was not given: such as would make it another order.
        words: the program, if one was given.
        on: the places, if any were typed.
        of_one: options that were given and need the results of one machine.

    Raises:
        PlanError: it was begun by another verb or version, or something else is asked for.
        StoreError: the order cannot be read.
    """
    order = store.read_order(folder)
    if order.words[0] != verb:
        again = f"{program.tool_as_typed()} {order.words[0]} --resume {shlex.quote(str(folder))}"
        raise PlanError(f"{folder} was begun by freestone {order.words[0]}: go on with: {again}")
    more = [option for option, value in {**given, "--on": on}.items() if value is not None]
    if more:
        raise PlanError(f"--resume goes on with the settings of {folder}; leave out {', '.join(more)}")
    if words and list(words) != order.words[order.words.index("--") + 1 :]:
        raise PlanError(f"cannot resume {folder}: it measures another command; leave the program out")
    _require_none(of_one)
    if order.freestone_version != freestone.__version__:
        raise PlanError(
            f"{folder} was begun by freestone {order.freestone_version}, and this one is {freestone.__version__}: "
            "go on with that version, or give the order anew"
        )
    return _carry_out(order, folder)


def _require_none(of_one: Sequence[str]) -> None:
    if of_one:
        example = f"freestone report FOLDER/PLACE {of_one[0]} ..."
        raise PlanError(f"{' and '.join(of_one)}: that is of one machine's results: {example}")


def _carry_out(order: Order, folder: Path) -> int:
    last: dict[str, str] = {}
    unfinished: list[str] = []
    partly = False
    halt = threading.Event()

    def tell(place: Place, line: str) -> None:
        text = passed_on(line)
        if last.get(place.name) != text:  # the last line of an engine was streamed before
            sys.stderr.write(f"{place.name}: {text}\n")  # in one call: each place has a thread
            sys.stderr.flush()
        last[place.name] = text

    def work(place: Place) -> Carried:
        if halt.is_set():
            return command.INTERRUPTED
        carry_out = engine_of(place.engine)
        return carry_out(order, place, folder / place.name, lambda line: tell(place, line), halt)

    with Interruption() as stop, ThreadPoolExecutor(AT_ONCE) as pool:
        working = {pool.submit(work, place): place for place in order.places}
        threading.Thread(target=lambda: _pass_on(stop, halt), daemon=True).start()
        try:
            for done in as_completed(working):
                place = working[done]
                try:
                    carried = done.result()
                except Exception as error:  # it costs this machine and no other
                    known = isinstance(error, Unreachable)
                    carried = Carried(
                        -1, str(error) if known else f"{type(error).__name__}: {' '.join(str(error).split())}"
                    )
                partly = partly or carried.status == ExitStatus.PARTLY_MEASURED
                if carried.status not in (ExitStatus.FINE, ExitStatus.PARTLY_MEASURED):
                    unfinished.append(place.name)
                    tell(place, carried.last or f"ended with status {carried.status}")
        finally:
            halt.set()
    measured = bool(store.places(folder))
    reported = _report(folder) if measured else ExitStatus.FINE
    again = f"go on with: {program.tool_as_typed()} {order.words[0]} --resume {folder}"
    if stop():
        print(f"freestone: interrupted; finished trials are kept, {again}", file=sys.stderr)
        return ExitStatus.INTERRUPTED
    if unfinished:
        print(f"freestone: not finished: {', '.join(unfinished)}; {again}", file=sys.stderr)
        return reported or (ExitStatus.PARTLY_MEASURED if measured else ExitStatus.NOTHING_MEASURED)
    return reported or (ExitStatus.PARTLY_MEASURED if partly else ExitStatus.FINE)


def passed_on(line: str) -> str:
    """Return a line of another machine as it is printed here. Pure.

    How to resume there is not how to resume the order. No character may steer the terminal.
    """
    text = line.removeprefix("freestone: ").partition("go on with: ")[0].rstrip(" ,;").replace("\t", " ")
    return "".join(each if each.isprintable() or each in "\u00a0\u202f" else "?" for each in text)


def _pass_on(stop: Interruption, halt: threading.Event) -> None:
    while not halt.wait(LOOK_S):
        if stop():
            halt.set()


def _report(folder: Path) -> int:
    """Print and write the report of an order; a failure is a line, since another line has to follow it."""
    from freestone.commands import report as reporting  # late: it is large
    from freestone.reports import extras

    lacking = extras.missing()
    if lacking is not None:
        print(f"freestone: no {store.REPORT_FILE}: {lacking}", file=sys.stderr)
    try:
        return reporting.report(folder, page=lacking is None)
    except Stop as stop:
        print(f"freestone: {stop.message}", file=sys.stderr)
        return stop.status
    except Exception as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"
        print(f"freestone: no report: {why}; every record is kept", file=sys.stderr)
        return ExitStatus.STORE
