"""A measurement at several places: the order, who carries it out, and what came of it."""

from __future__ import annotations

import os
import resource
import secrets
import sys
import threading
import unicodedata
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import freestone
from freestone.commands import program
from freestone.commands.status import ExitStatus, Stop
from freestone.experiments import Interruption, clocks, places
from freestone.experiments.engines import Carried, Unreachable, engine_of, scratch
from freestone.experiments.plan import PlanError
from freestone.records import store
from freestone.records.schema import Order, Place

OF_THIS_PLACE: Final = (
    *("--on", "--results", "--resume", "--into"),
    *("--export-markdown", "--export-csv", "--export-json", "--markdown", "--subject"),
)
"""Options with a value that are for whoever gives an order, and not for whoever carries it out."""

FLAGS_OF_THIS_PLACE: Final = ("--json", "--report", "--no-report")

LOOK_S: Final = 0.2

FILES_OF_A_PLACE: Final = 8
"""So many files of this process a place may have open: the streams of a command, and its ends as it is started."""

FILES_KEPT: Final = 64
"""So many are left for all else."""


def is_order(folder: Path | None) -> bool:
    """Whether a folder that is to be gone on with is one of several places."""
    return folder is not None and (folder / store.ORDER_FILE).exists()


def measure(
    called: str,
    on: Sequence[str] | None,
    results: Path,
    resume: Path | None,
    seed: int | None,
    of_one_machine: Sequence[str],
) -> int:
    """Have what was typed carried out at every place, show what came of each, and return the exit status.

    Args:
        called: what the order is to be called.
        on: the places, as they were typed; None to go on with an order.
        results: the folder for a new order.
        resume: the folder of an order that is to go on.
        seed: of the random order of runs; None for one that is drawn here, the same for all places.
        of_one_machine: options that were given and can be had of the results of one machine only.

    Raises:
        PlanError: what was asked for cannot be ordered.
        StoreError: the order cannot be written or read.
    """
    if of_one_machine:
        raise PlanError(
            f"{' and '.join(of_one_machine)}: that is of one machine's results: freestone report FOLDER/PLACE "
            f"{of_one_machine[0]} ..."
        )
    if resume is not None:
        if on is not None:
            raise PlanError(f"--resume goes on at the places of {resume}; leave out --on")
        folder, order = resume, store.read_order(resume)
        if any(place.engine == "merged" for place in order.places):
            raise PlanError(f"{resume} holds copies: go on where they were measured")
        if order.freestone_version != freestone.__version__:
            raise PlanError(
                f"{resume} was begun by freestone {order.freestone_version}, and this one is {freestone.__version__}: "
                "go on with that version, or give the order anew"
            )
        scratch.remove_left(folder)
    else:
        order = _order(places.read(on or []), sys.argv[1:], seed)
        folder = store.create_folder(results, called, datetime.fromisoformat(order.created_at))
        store.write_order(folder, order)
    return _carry_out(order, folder)


def _order(asked: Sequence[Place], typed: Sequence[str], seed: int | None) -> Order:
    now = datetime.now(UTC)
    words = program.env_as_here(ordered(typed))
    if seed is None:  # one order of rounds for all
        words[1:1] = ["--seed", str(secrets.randbits(32))]
    return Order(
        id=f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}",
        created_at=now.isoformat(timespec="seconds"),
        freestone_version=freestone.__version__,
        words=words,
        directory=os.getcwd(),
        places=list(asked),
    )


def ordered(typed: Sequence[str]) -> list[str]:
    """The command line as others are to carry it out: without what is of this place. Pure.

    Args:
        typed: the verb and all behind it.
    """
    found: list[str] = []
    words = iter(typed)
    for word in words:
        if word == "--":
            return [*found, word, *words]
        name, sign, _ = word.partition("=")
        if name in OF_THIS_PLACE:
            if not sign:
                next(words, None)
        elif name not in FLAGS_OF_THIS_PLACE:
            found.append(word)
    return found


def _carry_out(order: Order, folder: Path) -> int:
    said = threading.Lock()
    last: dict[str, str] = {}
    ended: dict[str, Carried | Unreachable] = {}
    halt = threading.Event()

    def tell(place: Place, line: str) -> None:
        told = passed_on(line)
        with said:
            if last.get(place.name) != told:  # engines that pass on every line have told the last one
                print(f"{place.name}: {told}", file=sys.stderr, flush=True)
            last[place.name] = told

    def work(place: Place) -> Carried:
        if halt.is_set():
            return Carried(ExitStatus.INTERRUPTED, None)
        return engine_of(place.engine).carry_out(
            order, place, folder / place.name, lambda line: tell(place, line), halt
        )

    with Interruption() as stop, ThreadPoolExecutor(_at_once(len(order.places))) as pool:
        working = {pool.submit(work, place): place for place in order.places}
        waiting = threading.Thread(target=lambda: _pass_on(stop, halt), daemon=True)
        waiting.start()
        try:
            for done in as_completed(working):
                place = working[done]
                try:
                    carried = ended[place.name] = done.result()
                    if carried.status not in (ExitStatus.FINE, ExitStatus.PARTLY_MEASURED) and carried.last:
                        tell(place, carried.last)
                    if place.engine != "ssh":  # which looks at the clock before anything runs
                        apart = clocks.apart_s(order.created_at, datetime.now(UTC), _started(folder / place.name))
                        if apart is not None:
                            tell(place, clocks.told(apart))
                except Unreachable as error:
                    ended[place.name] = error
                    tell(place, str(error))
                except Exception as error:  # whatever it is, it costs this place and no other
                    why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
                    ended[place.name] = Unreachable(why)
                    tell(place, why)
        finally:
            halt.set()
    return _told(order, folder, ended, interrupted=stop())


def _at_once(count: int) -> int:
    """How many places are worked at together: each takes files of this process, whose number is limited."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The limit is left as it is: programs that are measured here would inherit another one.
    most = count if limit == resource.RLIM_INFINITY else max(1, (limit - FILES_KEPT) // FILES_OF_A_PLACE)
    if count > most:
        print(
            f"freestone: {most} of the {count} places at once, since a process may have {limit} files open: "
            "for more, ulimit -n",
            file=sys.stderr,
        )
    return max(1, min(count, most))


def passed_on(line: str) -> str:
    """A line of a place as it is told here: how to go on there is not how to go on with the order. Pure.

    What would steer the terminal is shown as a question mark: it was written elsewhere.
    """
    told = line.removeprefix("freestone: ").partition("go on with: ")[0].rstrip(" ,;")
    return "".join("?" if unicodedata.category(each) in _STEERS else each for each in told.replace("\t", " "))


_STEERS: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters that are no part of a line: escape sequences, and what turns or breaks it."""


def _started(folder: Path) -> list[str]:
    """When the trials of a place were started, by its clock."""
    try:
        return [record.started_at for record in store.read_trials(folder).records]
    except store.StoreError:  # whoever reads the results tells of it
        return []


def _pass_on(stop: Interruption, halt: threading.Event) -> None:
    """Tell the places when somebody asks to stop."""
    while not halt.wait(LOOK_S):
        if stop():
            halt.set()


def _told(order: Order, folder: Path, ended: dict[str, Carried | Unreachable], *, interrupted: bool) -> int:
    reported = _reported(folder) if store.places(folder) else ExitStatus.FINE
    failed = [name for name, each in ended.items() if isinstance(each, Unreachable) or each.status not in (0, 4)]
    again = f"{program.tool_as_typed()} {order.words[0]} --resume {folder}"
    if interrupted:
        print(f"freestone: interrupted; what was measured is kept, go on with: {again}", file=sys.stderr)
        return ExitStatus.INTERRUPTED
    if failed:
        print(f"freestone: not finished: {', '.join(failed)}; go on with: {again}", file=sys.stderr)
        return reported or (ExitStatus.PARTLY_MEASURED if store.places(folder) else ExitStatus.NOTHING_MEASURED)
    partly = any(isinstance(each, Carried) and each.status for each in ended.values())
    return reported or (ExitStatus.PARTLY_MEASURED if partly else ExitStatus.FINE)


def _reported(folder: Path) -> int:
    """Show what there is, and return what became of that; whatever it is, how to go on is said behind it."""
    from freestone.commands import report as reporting
    from freestone.reports import extras

    lacking = extras.missing()
    try:
        status = reporting.report(folder, output=None if lacking else folder / store.REPORT_FILE, page=lacking is None)
    except Stop as stop:
        print(f"freestone: {stop.message}", file=sys.stderr)
        status = stop.status
    except Exception as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        print(f"freestone: no report: {why}; every record is kept", file=sys.stderr)
        status = ExitStatus.STORE
    if lacking is not None:
        sys.stdout.flush()
        print(f"freestone: no {store.REPORT_FILE}: {lacking}", file=sys.stderr)
    return status
