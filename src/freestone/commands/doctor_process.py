"""``freestone doctor --pid``: what can be said of a process that runs already."""

from __future__ import annotations

import json
import os
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from freestone.commands import doctor_page, terminal
from freestone.commands.doctor_trials import MOST_REMEDIES
from freestone.commands.status import ExitStatus, Stop
from freestone.commands.terminal import say
from freestone.doctor import chart, in_code, remedies, running, symptoms, words
from freestone.doctor.observations import Observations
from freestone.doctor.running import NoProcess, Process
from freestone.experiments.interruption import Interruption
from freestone.experiments.plan import PlanError
from freestone.records import store
from freestone.trials import shelf

SECONDS = 10.0
UNTRACED = "strace slows a process meanwhile: --allow-tracing allows it"


def look(pid: int, seconds: float | None, allow_tracing: bool, results: Path, *, as_json: bool) -> int:
    """Look at a process for some seconds, and say what it suffers from and what may help.

    Raises:
        PlanError: there is no such process.
        StoreError: the folder of the results cannot be made.
        Stop: interrupted, after what was seen was shown.
    """
    span_s = SECONDS if seconds is None else seconds
    try:
        process = running.find(pid)
    except NoProcess as error:
        raise PlanError(str(error)) from error
    folder = store.create_folder(results, f"doctor-pid-{process.name}", datetime.now(UTC))
    seen = Observations(command=list(process.command), running=pid, platform=running.rules(process).platform)
    with Interruption() as stop:
        try:
            with stop.breakable():
                seen = running.rules(process)
                say("looking at what page faults and calls cost here")
                seen = running.priced(seen)
                say(f"looking at process {pid} for {span_s:g} s")
                seen = running.watched(seen, process, span_s)
                seen = _traced(seen, process, span_s, allow_tracing)
        except KeyboardInterrupt as error:
            seen = error.args[0] if error.args and isinstance(error.args[0], Observations) else seen
        chart.write_seen(folder, seen)
        interrupted = None if stop.signal is None else 128 + stop.signal
        if seen.cost is None:
            say(f"nothing could be observed: {seen.unseen.get('cost', 'it was interrupted before')}")
            return ExitStatus.NOTHING_MEASURED if interrupted is None else interrupted
        if as_json:
            print(json.dumps(_as_json(seen), indent=2))
        else:
            show(seen)
            print(f"Records: {folder}")
        doctor_page.write(folder, quiet=as_json)
    if interrupted is not None:
        raise Stop(f"interrupted; what was seen until then is kept in {folder}", interrupted)
    return ExitStatus.FINE


def _traced(seen: Observations, process: Process, span_s: float, allowed: bool) -> Observations:
    if not allowed or not process.lives:
        return running.without(seen, "calls", UNTRACED if not allowed else "it has ended")
    say(f"looking at its calls about memory, under a tracer, for {span_s:g} s")
    shelf.clear(Path(tempfile.gettempdir()), now_s=time.time())
    with tempfile.TemporaryDirectory(prefix=f"freestone-{os.getpid()}-") as scratch:
        try:
            return running.traced(seen, process, span_s, Path(scratch))
        except KeyboardInterrupt as error:
            raise KeyboardInterrupt(running.without(seen, "calls", "interrupted")) from error


def show(seen: Observations) -> None:
    """Print what it suffers from and what may help."""
    found, width = symptoms.name(seen), terminal.width()
    print(words.running(seen, width=width))
    print(words.findings(found, seen, width=width))
    doctor_page.draw(seen)
    print(words.to_try(remedies.plan(found, seen, MOST_REMEDIES).tried, seen.command, width=width), end="")
    print(words.advice(in_code.advice(found, seen), width=width), end="")


def _as_json(seen: Observations) -> dict[str, object]:
    found = symptoms.name(seen)
    return {
        "observations": json.loads(seen.model_dump_json()),
        "findings": [each.as_json() for each in found],
        "unjudged": symptoms.unjudged(seen),
        "advice": in_code.advice(found, seen),
        "to_try": [remedies.title(each) for each in remedies.plan(found, seen, MOST_REMEDIES).tried],
    }
