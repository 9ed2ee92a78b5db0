"""Reads what the witness wrote from inside the processes of a tree (format: docs/reference/probes.md).

A report may be damaged in any way: the program was killed while it was written, the disk was full, somebody else wrote
into the folder. Nothing here raises for that; what is not there is not claimed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from freestone.trials import own_file

ENTRIES = ("malloc", "calloc", "realloc", "free")

_FORMAT = "1"
_LARGEST_REPORT = 8 << 20

_NO_ROOM = (
    "the witness could not write it: the program runs under a limit on the size of files (ulimit -f, RLIMIT_FSIZE), or "
    "the disk is full"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """Where one entry point of the heap leads, as the kernel's map of the process names the file."""

    symbol: str
    file: str
    build_id: str | None
    device: tuple[int, int]
    inode: int


@dataclass(frozen=True, slots=True)
class Stray:
    """A loaded object with a reference that is bound to another provider."""

    symbol: str
    object: str
    target: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """An object of a process: there from the ``start``, ``later``, ``closed`` again, or ``apart`` in a namespace."""

    how: Literal["start", "later", "closed", "apart"]
    file: str


@dataclass(frozen=True, slots=True)
class Counted:
    """What a process asked of malloc, by the counter, and the most that it had resident and is no file's."""

    calls: int
    most_kib: int
    private_kib: int


@dataclass(frozen=True, slots=True)
class Memory:
    """What the kernel adds up of a process's memory, in KiB."""

    pss_kib: int
    huge_kib: int
    lazy_free_kib: int


@dataclass(frozen=True, slots=True)
class Rest:
    """How a process waited at its end, as it was asked to, and what was resident then."""

    from_s: float
    until_s: float
    resident_kib: int
    end: Memory | None = None
    """Before the wait."""
    idle: Memory | None = None
    """After it."""
    looked_s: float = 0.0
    """Processor time that it took to look, which is no time of the program."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What the kernel counts of processes, as ``getrusage`` has it. Usages can be added; the peak is the larger."""

    user_s: float = 0.0
    sys_s: float = 0.0
    minor_faults: int = 0
    major_faults: int = 0
    peak_rss_kib: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.user_s + other.user_s,
            self.sys_s + other.sys_s,
            self.minor_faults + other.minor_faults,
            self.major_faults + other.major_faults,
            max(self.peak_rss_kib, other.peak_rss_kib),
        )

    @property
    def cpu_s(self) -> float:
        """Processor time, in the program and in the kernel."""
        return self.user_s + self.sys_s


@dataclass(frozen=True, slots=True)
class Departure:
    """What a process said as it ended."""

    at_s: float
    pid: int
    resident_kib: int | None = None
    strays: tuple[Stray, ...] = ()
    stray_objects: int = 0
    objects: tuple[Loaded, ...] = ()
    unseen: int = 0
    """How many more objects the dynamic linker counted that came and went."""
    counted: Counted | None = None
    rest: Rest | None = None
    spent: Usage | None = None
    """By the process itself, in all its images."""
    waited: Usage | None = None
    """By the children that it has waited for, and theirs."""
    parent: int = 0
    """Whose child it was at its end."""
    drops: bool = False
    """Whether it ignores the ends of its children (SIGCHLD is ignored, or SA_NOCLDWAIT): what they used is lost."""
    dropped: bool = False
    """Whether it knows that of its own parent."""


@dataclass(frozen=True, slots=True)
class Testimony:
    """One report: a program image that began, or a fork of one that ended."""

    pid: int
    parent: int
    at_s: float
    exe: str = ""
    exe_build_id: str | None = None
    heap_works: bool | None = None
    entries: tuple[Entry, ...] = ()
    departure: Departure | None = None
    fork_of: tuple[int, float] | None = None
    """For a fork that executed nothing: pid and beginning of the image it runs on."""
    damage: str | None = None
    """Why the report cannot be relied upon."""
    settings: tuple[tuple[str, str], ...] = ()
    """Variables that steer an allocator, or tell a runtime to use malloc, as the image found them."""


@dataclass(slots=True)
class _Draft:
    """A report as far as it has been read."""

    testimony: Testimony | None = None
    departure: Departure | None = None
    strays: list[Stray] = field(default_factory=list)
    objects: list[Loaded] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    closed: bool = False


def parse(text: str) -> Testimony:
    """Read one report. Anything that is not as it should be is named in ``damage`` of the result."""
    draft = _Draft()
    damage: str | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line:
            continue
        try:
            _read_line(draft, line.split(" "))
        except (ValueError, IndexError):
            damage = damage or f"line {number} makes no sense: {line[:60]!r}"
    if draft.testimony is None:
        return Testimony(pid=0, parent=0, at_s=0.0, damage=damage or "the report has no beginning")
    if not draft.closed:
        damage = damage or "the report breaks off"
    found = [entry.symbol for entry in draft.entries]
    if draft.testimony.fork_of is None and sorted(found) != sorted(ENTRIES):
        damage = damage or "the report does not name the four entry points once each"
    return replace(draft.testimony, entries=tuple(draft.entries), departure=draft.departure, damage=damage)


def read_folder(folder: Path) -> list[Testimony]:
    """Every report of a folder, in the order of time. Files that cannot be read come first, as damaged reports."""
    return sorted(_reports(folder), key=lambda testimony: testimony.at_s)


def _reports(folder: Path) -> Iterator[Testimony]:
    try:
        paths = sorted(path for path in folder.iterdir() if re.fullmatch(r"\d+-\d+", path.name))
    except OSError as error:
        yield Testimony(pid=0, parent=0, at_s=0.0, damage=f"the witness's folder cannot be read: {error.strerror}")
        return
    for path in paths:
        pid, at_s = _named(path.name)
        try:
            text = _text(path)
        except OSError as error:
            yield Testimony(pid, parent=0, at_s=at_s, damage=f"a report cannot be read: {error.strerror}")
            continue
        # The witness takes back what a file could not hold: its name is then all that it says.
        yield parse(text) if text else Testimony(pid, parent=0, at_s=at_s, damage=_NO_ROOM)


def _named(name: str) -> tuple[int, float]:
    """Whose report it is and when it was begun, in seconds, by the name of its file; 0 for what no process has."""
    pid, at = name.split("-")
    return (int(pid) if len(pid) < 10 else 0), (_seconds(at) if len(at) < 20 else 0.0)


def _text(path: Path) -> str:
    """The text of a report. Raises OSError where it cannot be read."""
    return own_file.read(path, _LARGEST_REPORT).decode("utf-8", "backslashreplace")


def _read_line(draft: _Draft, words: list[str]) -> None:
    """Take one line into the draft.

    Raises:
        ValueError, IndexError: it is not a line of a report, or not in its place.
    """
    match words:
        case ["start", version, at, pid, parent]:
            _begin(draft, version, Testimony(int(pid), int(parent), _seconds(at)))
        case ["fork", version, at, pid, parent, image_pid, image_at]:
            testimony = Testimony(int(pid), int(parent), _seconds(at), fork_of=(int(image_pid), _seconds(image_at)))
            _begin(draft, version, testimony)
        case ["program", build_id, exe]:
            draft.testimony = replace(_begun(draft), exe=_path(exe), exe_build_id=_build_id(build_id))
        case ["heap", ("works" | "fails") as verdict]:
            draft.testimony = replace(_begun(draft), heap_works=verdict == "works")
        case ["entry", symbol, major, minor, inode, build_id, *file]:
            _begun(draft)
            where = _path(file[0]) if file else ""  # no file is mapped there: code made at run time
            draft.entries.append(Entry(symbol, where, _build_id(build_id), (int(major), int(minor)), int(inode)))
        case ["setting", name, *value]:
            begun = _begun(draft)
            draft.testimony = replace(
                begun, settings=(*begun.settings, (_path(name), _path(value[0]) if value else ""))
            )
        case ["exit", version, at, pid]:
            _check_format(version)
            _begun(draft)
            draft.closed = False
            draft.strays = []
            draft.objects = []
            draft.departure = Departure(_seconds(at), int(pid))
        case ["resident", kib]:
            # The kernel would not say is not the same as nothing resident.
            draft.departure = replace(_left(draft), resident_kib=int(kib) or None)
        case ["spent", *counts]:
            draft.departure = replace(_left(draft), spent=_usage(counts))
        case ["waited", *counts]:
            draft.departure = replace(_left(draft), waited=_usage(counts))
        case ["ends", parent, ("drops" | "hears") as children, ("dropped" | "-") as itself]:
            draft.departure = replace(
                _left(draft), parent=int(parent), drops=children == "drops", dropped=itself == "dropped"
            )
        case ["stray", symbol, object_, target]:
            _left(draft)
            draft.strays.append(Stray(symbol, _path(object_), _path(target)))
        case ["objects", _, strays]:
            draft.departure = replace(_left(draft), strays=tuple(draft.strays), stray_objects=int(strays))
        case ["counted", calls, most_kib, private_kib]:
            counted = Counted(int(calls), int(most_kib), int(private_kib))
            draft.departure = replace(_left(draft), counted=counted)
        case ["object", ("start" | "later" | "closed" | "apart") as how, file]:
            _left(draft)
            draft.objects.append(Loaded(how, _path(file)))
        case ["unseen", count]:
            draft.departure = replace(_left(draft), objects=tuple(draft.objects), unseen=int(count))
        case ["end"]:
            _begun(draft)
            draft.closed = True
        case ["rested", kib, since, until]:
            # The kernel would not say is not the same as nothing resident.
            rest = Rest(_seconds(since), _seconds(until), int(kib)) if int(kib) else None
            draft.departure = replace(_left(draft), rest=rest)
        case ["memory", ("end" | "idle") as when, pss, huge, lazy]:
            memory = Memory(int(pss), int(huge), int(lazy))
            _rest(draft, end=memory) if when == "end" else _rest(draft, idle=memory)
        case ["looked", nanoseconds]:
            _rest(draft, looked_s=_seconds(nanoseconds))
        case _:
            raise ValueError


def _begin(draft: _Draft, version: str, testimony: Testimony) -> None:
    _check_format(version)
    if draft.testimony is not None:
        raise ValueError
    draft.testimony = testimony


def _begun(draft: _Draft) -> Testimony:
    if draft.testimony is None:
        raise ValueError
    return draft.testimony


def _left(draft: _Draft) -> Departure:
    if draft.departure is None:
        raise ValueError
    return draft.departure


def _rest(draft: _Draft, **read: Any) -> None:
    """Add to a rest; where the kernel did not say what was resident, there is none to add to."""
    departure = _left(draft)
    if departure.rest is not None:
        draft.departure = replace(departure, rest=replace(departure.rest, **read))


def _check_format(version: str) -> None:
    if version != _FORMAT:
        raise ValueError


def _usage(counts: list[str]) -> Usage:
    user, system, minor, major, peak_kib = counts
    return Usage(_seconds(user), _seconds(system), int(minor), int(major), int(peak_kib))


def _seconds(nanoseconds: str) -> float:
    if not re.fullmatch(r"\d{1,19}", nanoseconds):
        raise ValueError
    return int(nanoseconds) / 1e9


def _build_id(word: str) -> str | None:
    if word == "-":
        return None
    if not re.fullmatch(r"(?:[0-9a-f]{2}){1,64}", word):
        raise ValueError
    return word


def _path(word: str) -> str:
    raw = re.sub(rb"%([0-9a-f]{2})", lambda match: bytes([int(match[1], 16)]), word.encode("utf-8", "backslashreplace"))
    return raw.decode("utf-8", "backslashreplace")
