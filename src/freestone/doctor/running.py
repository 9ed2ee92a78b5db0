"""Looks at a process that runs already: what /proc tells over some seconds, and strace where that is allowed.

Its heap is closed to a look from outside, and no allocator can be put under it: what it suffers from is named as far as
that can be seen, and nothing is cured.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from freestone.allocators import elf
from freestone.doctor import call_sites, memory_calls, platform, prices
from freestone.doctor.course import Course
from freestone.doctor.mappings import library, mapping
from freestone.doctor.observations import Cost, Observations, Settings
from freestone.doctor.observe import steering
from freestone.native import NativePartMissing
from freestone.trials import escort, tree
from freestone.trials.calls import NoCounter, strace
from freestone.trials.escort import Errand
from freestone.trials.offspring import Offspring
from freestone.trials.process import TICK_S

STACKS_S: Final = 4.0
"""For so long stacks are taken, behind the seconds of counting."""

_PATIENCE_S: Final = 10.0


class NoProcess(RuntimeError):
    """There is no such process, or it is none to look at; the message is one line."""


@dataclass(frozen=True)
class Process:
    """One process, from its beginning known by number and start."""

    number: int
    command: tuple[str, ...]
    started: str

    @property
    def name(self) -> str:
        """Of its program."""
        return Path(self.command[0]).name

    @property
    def lives(self) -> bool:
        """Whether it is there, and the same."""
        with contextlib.suppress(NoProcess):
            return find(self.number).started == self.started
        return False


def find(number: int) -> Process:
    """A process by its number.

    Raises:
        NoProcess: there is none, it has ended, or it is the kernel's own.
    """
    folder = Path(f"/proc/{number}")
    try:
        words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")[:-1]
        fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError as error:
        raise NoProcess(f"there is no process {number}") from error
    if fields[0] in "ZX":
        raise NoProcess(f"process {number} has ended")
    if not words or not words[0]:
        raise NoProcess(f"process {number} is the kernel's own, or says nothing of itself")
    return Process(number, tuple(words), fields[19])


def rules(process: Process) -> Observations:
    """What holds for it: C library, kernel, limits; its environment and whose malloc it has."""
    facts = elf.inspect(f"/proc/{process.number}/exe")
    mappings = [found for line in _maps(process) if (found := mapping(line))]
    files = sorted({each.name for each in mappings if each.name})
    described = platform.describe(facts.libc, process=process.number)
    if not _same_libc(files):
        described = described.model_copy(update={"libc_version": None})
    loaded = library(mappings)
    served_by, malloc = ("glibc", None) if loaded is None else loaded
    if facts.own_freestone:
        served_by, malloc = "freestone", f"{process.command[0]}, which {elf.OWN_FREESTONE}"
    elif facts.own_malloc is not None:
        malloc = f"{process.command[0]}, which {facts.own_malloc}"
    seen = Observations(
        command=list(process.command),
        running=process.number,
        platform=described,
        served_by=served_by,
        malloc_file=malloc,
    )
    try:
        text = Path(f"/proc/{process.number}/environ").read_bytes().decode("utf-8", "replace")
        pairs = (part.partition("=") for part in text.split("\0") if "=" in part)
        environment = {name: value for name, _, value in pairs}
        seen = seen.model_copy(update={"settings": Settings(environment=steering(environment))})
    except OSError:
        seen = without(seen, "settings", "its environment is closed to this user")
    return _done(seen, "platform")


def priced(seen: Observations) -> Observations:
    """With what page faults and calls cost on this machine."""
    try:
        return _done(seen.model_copy(update={"prices": prices.take()}), "prices")
    except (prices.NotPriced, NativePartMissing) as error:
        return _done(without(seen, "prices", str(error)), "prices")


def watched(seen: Observations, process: Process, seconds: float) -> Observations:
    """With its time, faults and memory over some seconds, or until it ends or somebody interrupts.

    Raises:
        KeyboardInterrupt: as it comes, with nothing lost: the observations are its first argument.
    """
    before, begun_s, interrupted = _used(process), time.monotonic(), False
    last = before
    with Course(look=tree.alone) as course:
        course.begin(process.number)
        try:
            while time.monotonic() < begun_s + seconds and process.lives:
                last = _used(process) or last
                time.sleep(min(0.1, seconds / 10))
        except KeyboardInterrupt:
            interrupted = True
        last, took_s = _used(process) or last, time.monotonic() - begun_s
    if before is not None and last is not None and course.points:
        cost = Cost(
            runs=1,
            wall_s=took_s,
            user_s=last["user_s"] - before["user_s"],
            sys_s=last["sys_s"] - before["sys_s"],
            minor_faults=int(last["minor_faults"] - before["minor_faults"]),
            major_faults=int(last["major_faults"] - before["major_faults"]),
            peak_rss_kib=max(point.rss_kib for point in course.points),
            end_rss_kib=course.points[-1].rss_kib,
            resident_before_kib=course.points[0].rss_kib,
        )
        seen = seen.model_copy(update={"cost": cost, "course": course.points})
    else:
        seen = without(seen, "cost", "it ended before it could be looked at")
    if course.at_peak is None:
        seen = without(seen, "where its memory lies", f"/proc/{process.number}/smaps is closed to this user")
    else:
        off = seen.settings.model_copy(update={"huge_pages_off": course.at_peak.huge_pages_off})
        seen = seen.model_copy(update={"kept_at_peak": course.at_peak, "kept_at_end": course.at_end, "settings": off})
    if not process.lives:
        seen = without(seen, "the rest", f"it ended after {took_s:.1f} s")
    below = len(tree.below(process.number))
    if below:
        seen = without(seen, "its children", f"{below} run below it; --pid looks at each by itself")
    seen = without(seen, "heap", "what it asks of malloc is seen from its start alone: freestone doctor -- CMD")
    seen = _done(_done(seen, "cost"), "course")
    if interrupted:
        raise KeyboardInterrupt(seen)
    return seen


def traced(seen: Observations, process: Process, seconds: float, scratch: Path) -> Observations:
    """With its calls about memory over some seconds, under strace, which slows it meanwhile; and their sites."""
    log = scratch / "calls.strace"
    heaps = memory_calls.heaps_in(_maps(process))
    try:
        took_s = _under_strace(process, ["-ttt"], log, memory_calls.TRACED, seconds)
        with log.open(encoding="utf-8", errors="replace") as lines:
            found = memory_calls.read(lines, took_s, attached=heaps)
        named = [each.name for each in found.by_kind if each.name != "futex"]
        if named:
            _under_strace(process, ["-ttt", *call_sites.STACKS], log, ",".join(named), min(seconds, STACKS_S))
            text = log.read_text(encoding="utf-8", errors="replace").splitlines()
            sites, totals = call_sites.read(text, named), call_sites.totals(text, named)
            found = found.model_copy(
                update={
                    "by_kind": [
                        each.model_copy(update={"sites": sites.get(each.name, []), "with_stack": totals[each.name]})
                        for each in found.by_kind
                    ]
                }
            )
    except (NoCounter, NoProcess, NativePartMissing) as error:
        return _done(without(seen, "calls", str(error)), "calls")
    finally:
        log.unlink(missing_ok=True)
    return _done(seen.model_copy(update={"calls": found}), "calls")


def without(seen: Observations, part: str, why: str) -> Observations:
    """With a part that was not seen."""
    return seen.model_copy(update={"unseen": {**seen.unseen, part: why}})


def _done(seen: Observations, part: str) -> Observations:
    return seen.model_copy(update={"done": [*seen.done, part]})


def _under_strace(process: Process, options: list[str], log: Path, names: str, seconds: float) -> float:
    """Attach strace for some seconds; how long it was. Raises NoProcess where it may not, or the process has ended.

    However this process ends, with SIGKILL too, the escort ends strace then, and the kernel lets the traced one go.
    """
    words = [strace(), "-f", "-qq", *options, "-e", f"trace={names}", "-o", str(log), "-p", str(process.number)]
    complaint = log.with_name("strace.stderr")
    begun_s = time.monotonic()
    with complaint.open("wb") as stderr:
        # In the shell's place, so that it is the escort's first child.
        errand = Errand(f"exec {shlex.join(words)}", stderr, stderr)
        with escort.begun(errand) as tracer:
            try:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    tracer.process.wait(seconds)
            finally:
                _let_go(tracer)
    said = complaint.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    complaint.unlink()
    if said and not log.exists():
        raise NoProcess(said[-1].removeprefix("strace: "))
    if not log.exists() or (said and log.stat().st_size == 0):
        raise NoProcess((said or ["strace wrote nothing"])[-1].removeprefix("strace: "))
    return time.monotonic() - begun_s


def _let_go(tracer: Offspring) -> None:
    """Have strace detach and write down the rest of what it saw; one that does not is ended."""
    first = tree.first_child(tracer.process.pid)
    if tracer.process.poll() is None and first is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(first, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            tracer.process.wait(_PATIENCE_S)
    tracer.end()


def _used(process: Process) -> Mapping[str, float] | None:
    """What it has used so far; None where it is gone."""
    try:
        fields = Path(f"/proc/{process.number}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return {
        "minor_faults": int(fields[7]),
        "major_faults": int(fields[9]),
        "user_s": int(fields[11]) * TICK_S,
        "sys_s": int(fields[12]) * TICK_S,
    }


def _maps(process: Process) -> list[str]:
    try:
        return Path(f"/proc/{process.number}/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _same_libc(files: list[str]) -> bool:
    """Whether it has this process's C library."""
    mine = {line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text(errors="replace").splitlines()}
    return any(Path(file).name.startswith("libc.so") and file in mine for file in files)
