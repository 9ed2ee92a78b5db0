"""The verdict of law 1: was every program image of the tree served by the allocator under test? Pure.

Three voices are heard: the census (the kernel: which images there were), the witness (from inside each: which file its
four entry points lead to) and the program files themselves (why an image could not be witnessed).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, Protocol

from freestone.records.schema import EntryPoint, ProcessProof, Proof
from freestone.trials.census import Ending, Image
from freestone.trials.witness import Departure, Entry, Testimony

ROWS = 64
"""Most rows of processes in one record; images of one program with one verdict share a row already."""


class ProgramFacts(Protocol):
    """What a program's file says of itself: :class:`freestone.allocators.elf.ElfFacts`."""

    @property
    def is_elf(self) -> bool: ...
    @property
    def static(self) -> bool: ...
    @property
    def libc(self) -> str | None: ...
    @property
    def own_malloc(self) -> str | None: ...
    @property
    def own_freestone(self) -> bool: ...
    @property
    def machine(self) -> str | None: ...
    @property
    def setuid(self) -> bool: ...
    @property
    def file_capabilities(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Provider:
    """The allocator under test, as a file. ``machine`` is its ELF machine, e.g. ``x86_64 64-bit``; ``libc`` whose C
    library it was built for."""

    name: str
    file: str
    build_id: str | None = None
    device: tuple[int, int] | None = None
    inode: int | None = None
    machine: str | None = None
    libc: str | None = None


class Cause(IntEnum):
    """Why an image, or a trial, is not proved. The smaller, the more it explains; reported first."""

    STATIC = 1
    SETUID = 2
    OTHER_LIBC = 3
    OTHER_MACHINE = 4
    OWN_MALLOC = 5
    FAILED_PRELOAD = 6
    OTHER_PROVIDER = 7
    STRAY = 8
    BROKEN_HEAP = 9
    DAMAGED = 10
    UNSEEN = 11
    CENSUS = 12

    @property
    def structural(self) -> bool:
        """Whether it lies in the program or the preload, so that it explains a failure of the program too."""
        return self <= Cause.STRAY


@dataclass(frozen=True, slots=True)
class Finding:
    cause: Cause
    text: str


Sequences = Mapping[tuple[str, ...], int]
"""The program files that a process executed one after the other -> how many processes did just that."""


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What an untimed run under ptrace has shown: what its processes executed, and whether all of it was proved."""

    sequences: Sequences
    finding: Finding | None
    images: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything the verdict rests on."""

    expected: Provider
    testimonies: Sequence[Testimony]
    facts_of: Callable[[str], ProgramFacts | None]
    """What is known of a program's file; None for one that is gone."""
    images: Sequence[Image] | None = None
    """The census of this very run; None when there was none."""
    census_gap: str | None = None
    """Why the census is missing or incomplete; None when it is complete."""
    rehearsed: Rehearsed | None = None
    """Stands in for the census."""
    preload_complaint: str | None = None
    """What the dynamic linker said of the preload."""
    witness_libc: str | None = None
    """Whose C library the witness was built for, which is preloaded with every allocator."""
    endings: Sequence[Ending] | None = None
    """The ends of the processes of this very run; None when there was no census."""


@dataclass(frozen=True, slots=True)
class Verdict:
    proof: Proof
    finding: Finding | None
    """None exactly when the proof is valid."""
    sequences: Sequences
    """What was seen to be executed."""


@dataclass(frozen=True, slots=True)
class _Judged:
    pid: int
    parent: int
    exe: str
    exe_build_id: str | None
    finding: Finding | None
    entries: tuple[Entry, ...]
    departures: tuple[Departure, ...]
    begin_s: float


def prove(evidence: Evidence) -> Verdict:
    """Weigh the evidence. Every way in which something is missing makes the proof invalid; none is ever guessed."""
    judged = [_judge(evidence, image, testimony, forks) for image, testimony, forks in _matched(evidence)]
    general, census = _census_finding(evidence, judged)
    findings = sorted(
        [one.finding for one in judged if one.finding is not None] + ([general] if general else []),
        key=lambda finding: finding.cause,
    )
    finding = _summed_up(findings)
    proof = Proof(
        valid=finding is None,
        reason=finding.text if finding else None,
        census=census,
        processes=_rows(judged),
        images=len(judged),
        silent=_silent(evidence),
    )
    return Verdict(proof, finding, _sequences(judged))


def _sequences(judged: Sequence[_Judged]) -> Sequences:
    """What each process executed, one after the other.

    A number that is given to a second process makes one sequence of both, in a rehearsal and in a trial alike.
    """
    by_pid: dict[int, list[_Judged]] = {}
    for one in sorted(judged, key=lambda one: one.begin_s):
        by_pid.setdefault(one.pid, []).append(one)
    return Counter(tuple(one.exe for one in mine) for mine in by_pid.values())


def _silent(evidence: Evidence) -> dict[str, int]:
    """Program -> how many of its processes ended and did not say so.

    A signal ended them, or a plain system call. Without a census only those can be missed that said they began.
    """
    spoken: dict[int, list[float]] = {}
    for testimony in evidence.testimonies:
        if testimony.departure is not None:
            spoken.setdefault(testimony.departure.pid, []).append(testimony.departure.at_s)
    if evidence.endings is not None:
        births: dict[int, list[float]] = {}
        for one in evidence.endings:
            births.setdefault(one.pid, []).append(one.born_s)

        def spoke(one: Ending) -> bool:
            # Not: before its end. The kernel tells the end of the first thread, which others may outlive.
            until_s = min((at_s for at_s in births[one.pid] if at_s > one.born_s), default=math.inf)
            return any(one.born_s <= at_s < until_s for at_s in spoken.get(one.pid, ()))

        return dict(Counter(one.program for one in evidence.endings if not spoke(one)))
    last: dict[int, Testimony] = {}
    for testimony in evidence.testimonies:
        if testimony.fork_of is None and testimony.at_s >= (last[testimony.pid].at_s if testimony.pid in last else 0.0):
            last[testimony.pid] = testimony
    return dict(Counter(one.exe for one in last.values() if one.departure is None))


def complaint_about_preload(stderr: str, files: Iterable[str]) -> str | None:
    """The dynamic linker's own words on why a preloaded file is not in force; None when it said nothing of the kind.

    ``stderr`` is where the program's messages go too, so a line counts only if it has the linker's form and names one
    of ``files``: those preloaded, and the libraries they need.
    """
    names = [file for file in files if file]
    for line in stderr.splitlines():
        ignored = re.search(r"ERROR: ld\.so: object '(.+)' from LD_PRELOAD cannot be preloaded \((.+)\): ignored", line)
        if ignored and ignored[1] in names:
            return f"ld.so ignored '{re.sub('/+', '/', ignored[1])}': {ignored[2]}"
        for marker in (": error while loading shared libraries: ", ": symbol lookup error: "):
            said = line.partition(marker)[2]
            if any(name in said for name in names):
                return re.sub("/{2,}", "/", said)[:200]
    return None


def _matched(evidence: Evidence) -> list[tuple[Image | None, Testimony | None, list[Testimony]]]:
    """Images with their testimony and those of their forks.

    A testimony belongs to the image of its pid in whose time it was given. One that finds none is judged by itself: its
    image ran, whatever the census says.
    """
    forks: dict[tuple[int, float], list[Testimony]] = {}
    by_pid: dict[int, list[Testimony]] = {}
    for testimony in evidence.testimonies:
        if testimony.fork_of is not None:
            forks.setdefault(testimony.fork_of, []).append(testimony)
        else:
            by_pid.setdefault(testimony.pid, []).append(testimony)

    matched: list[tuple[Image | None, Testimony | None, list[Testimony]]] = []
    for image in evidence.images or ():
        mine = by_pid.get(image.pid, [])
        found = next((one for one in mine if image.begin_s <= one.at_s < image.end_s), None)
        if found is not None:
            mine.remove(found)
        matched.append((image, found, forks.pop((found.pid, found.at_s), []) if found else []))
    for testimony in (one for rest in by_pid.values() for one in rest):
        matched.append((None, testimony, forks.pop((testimony.pid, testimony.at_s), [])))
    # Forks of an image that never spoke: their image is missing as well, and they say so.
    matched.extend((None, orphan, []) for rest in forks.values() for orphan in rest)
    return matched


def _judge(evidence: Evidence, image: Image | None, testimony: Testimony | None, forks: Sequence[Testimony]) -> _Judged:
    pid = image.pid if image else testimony.pid if testimony else 0
    parent = testimony.parent if testimony else image.parent if image else 0
    exe = (testimony.exe if testimony else "") or (image.exe if image else None) or (image.name if image else "")
    departures = tuple(one.departure for one in (testimony, *forks) if one is not None and one.departure is not None)
    if testimony is None:
        finding: Finding | None = _unwitnessed(evidence, image)
    else:
        finding = _witnessed(evidence, testimony, exe, departures)
    return _Judged(
        pid,
        parent,
        exe or f"process {pid}",
        testimony.exe_build_id if testimony else None,
        finding,
        testimony.entries if testimony else (),
        departures,
        image.begin_s if image else testimony.at_s if testimony else 0.0,
    )


def _witnessed(evidence: Evidence, testimony: Testimony, exe: str, departures: Sequence[Departure]) -> Finding | None:
    if testimony.damage is not None:
        who = exe or f"process {testimony.pid}"
        return Finding(Cause.DAMAGED, f"damaged report of {who}: {testimony.damage}")
    if testimony.fork_of is not None:
        return Finding(Cause.UNSEEN, f"unseen process: {testimony.fork_of[0]} forked, but left no report of its own")
    facts = evidence.facts_of(exe)
    if facts is not None and facts.own_malloc is not None:
        return Finding(Cause.OWN_MALLOC, f"own malloc: {exe} {facts.own_malloc}")
    foreign = [entry for entry in testimony.entries if not _same_file(entry, evidence.expected)]
    if foreign:
        return _other_provider(evidence, exe, foreign)
    for departure in departures:
        if departure.stray_objects:
            return _stray(departure)
    if testimony.heap_works is not True:
        return Finding(Cause.BROKEN_HEAP, f"broken heap: {evidence.expected.name} gave {exe} no usable memory")
    return None


def _same_file(entry: Entry, expected: Provider) -> bool:
    both_known = entry.build_id is not None and expected.build_id is not None
    if both_known:
        return entry.build_id == expected.build_id
    # Device numbers in a process's map differ from stat's on some file systems (btrfs, overlays): the path decides too.
    same_inode = entry.inode != 0 and (entry.device, entry.inode) == (expected.device, expected.inode)
    return same_inode or (entry.file != "" and entry.file == expected.file)


def _other_provider(evidence: Evidence, exe: str, foreign: Sequence[Entry]) -> Finding:
    entry, expected = foreign[0], evidence.expected
    if entry.file == exe:
        return Finding(Cause.OWN_MALLOC, f"own malloc: {exe} defines {entry.symbol} itself")
    if evidence.preload_complaint is not None:
        return Finding(Cause.FAILED_PRELOAD, f"failed preload: {evidence.preload_complaint}")
    if entry.file == expected.file:
        return Finding(Cause.OTHER_PROVIDER, f"{expected.file} is not the file that was found: its build-id differs")
    if len(foreign) == 4 and re.fullmatch(r"libc(\.so\.6|-[\d.]+\.so)|ld-musl-.*", entry.file.rpartition("/")[2]):
        return Finding(Cause.FAILED_PRELOAD, f"failed preload: {exe} is served by {entry.file}, not by {expected.file}")
    symbols = ", ".join(one.symbol for one in foreign)
    where = entry.file or "code that is no file's"
    return Finding(
        Cause.OTHER_PROVIDER, f"other provider: {symbols} of {exe} come from {where}, not from {expected.file}"
    )


def _stray(departure: Departure) -> Finding:
    if not departure.strays:
        return Finding(Cause.STRAY, f"stray object: {departure.stray_objects} objects use another allocator")
    first = departure.strays[0]
    more = f" (and {departure.stray_objects - 1} more)" if departure.stray_objects > 1 else ""
    return Finding(Cause.STRAY, f"stray object: {first.object} takes {first.symbol} from {first.target}{more}")


def _unwitnessed(evidence: Evidence, image: Image | None) -> Finding:
    name = (image.exe or image.name) if image else "a process"
    facts = evidence.facts_of(image.exe) if image is not None and image.exe is not None else None
    if facts is not None and facts.is_elf:
        if facts.own_freestone:
            return Finding(Cause.OWN_MALLOC, f"own malloc: {name} {facts.own_malloc}")
        if facts.static:
            return Finding(Cause.STATIC, f"static binary: {name} loads no shared library, so nothing can be preloaded")
        if facts.setuid or facts.file_capabilities:
            what = "setuid" if facts.setuid else "file capabilities"
            return Finding(Cause.SETUID, f"{what}: the loader ignores preloads for {name}")
        expected = evidence.expected
        if facts.libc == "musl" and evidence.witness_libc == "glibc":
            return Finding(
                Cause.OTHER_LIBC,
                f"musl program: the lab's witness is built for glibc, so {name} cannot load it; build the program for "
                "glibc to measure it, or time it without the lab under a libfreestone built for musl (CONTRIBUTING.md)",
            )
        if facts.libc == "musl" and expected.libc != "musl":
            return Finding(Cause.OTHER_LIBC, f"musl program: {name} cannot load an allocator built for glibc")
        if facts.machine is not None and expected.machine is not None and facts.machine != expected.machine:
            return Finding(
                Cause.OTHER_MACHINE, f"other machine: {name} is {facts.machine}, the allocator {expected.machine}"
            )
    if evidence.preload_complaint is not None:
        return Finding(Cause.FAILED_PRELOAD, f"failed preload: {evidence.preload_complaint}")
    if image is not None and image.exe is None:
        # The kernel stops telling a user about a process that has more rights than that user.
        return Finding(Cause.SETUID, f"setuid: {name} gained rights, so the loader ignored preloads")
    return Finding(Cause.UNSEEN, f"unseen process: {name} ran without the witness (was its environment cleaned?)")


def _census_finding(
    evidence: Evidence, judged: Sequence[_Judged]
) -> tuple[Finding | None, Literal["perf", "rehearsal", "none"]]:
    """What the census as a whole lacks, and which kind of census the proof rests on."""
    rehearsed = evidence.rehearsed
    if evidence.images is not None and evidence.census_gap is None:
        if not evidence.images:
            return Finding(Cause.CENSUS, "incomplete census: it holds no process at all"), "perf"
        return None, "perf"
    if rehearsed is None:
        gap = evidence.census_gap or "no census was taken"
        return Finding(Cause.CENSUS, f"no complete census: {gap}, and there was no rehearsal"), "none"
    if rehearsed.finding is not None:
        if rehearsed.finding in [one.finding for one in judged]:
            return None, "rehearsal"  # seen again, and invalid already
        return Finding(rehearsed.finding.cause, f"{rehearsed.finding.text} (in the rehearsal)"), "rehearsal"
    return _other_course(rehearsed.sequences, _sequences(judged)), "rehearsal"


def _other_course(rehearsed: Sequences, seen: Sequences) -> Finding | None:
    """What ran in the rehearsal and was not witnessed in the trial, or the other way round.

    Where as many processes were witnessed as were rehearsed, one that nobody witnessed cannot hide among the others.
    """
    apart = [each for each in {**rehearsed, **seen} if rehearsed.get(each, 0) != seen.get(each, 0)]
    if not apart:
        return None
    # What is missing says more than what is new: it may have run unseen.
    first = min(apart, key=lambda each: (rehearsed.get(each, 0) <= seen.get(each, 0), each))
    before, now = rehearsed.get(first, 0), seen.get(first, 0)
    name = " then ".join(first)
    if now == 0:
        return Finding(Cause.UNSEEN, f"unseen process: {name} ran in the rehearsal but was not witnessed here")
    if before == 0:
        return Finding(Cause.UNSEEN, f"unseen process: {name} did not run in the rehearsal")
    return Finding(
        Cause.UNSEEN,
        f"unseen process: of {name} {now} were witnessed here and {before} in the rehearsal; where a program does not "
        "start the same processes each time, a census inside the trial is needed (kernel.perf_event_paranoid at 2)",
    )


def _summed_up(findings: Sequence[Finding]) -> Finding | None:
    if not findings:
        return None
    first = findings[0]
    others = len({finding.text for finding in findings}) - 1
    return first if others == 0 else Finding(first.cause, f"{first.text} (and {others} more)")


def _rows(judged: Sequence[_Judged]) -> list[ProcessProof]:
    """Rows for the record: images of one program with the same verdict and providers are folded into the first."""
    rows: dict[tuple[object, ...], ProcessProof] = {}
    for one in judged:
        strays = [f"{stray.object}: {stray.target}" for departure in one.departures for stray in departure.strays]
        key = (one.exe, one.finding.text if one.finding else None, one.entries, tuple(strays))
        if key in rows:
            rows[key] = rows[key].model_copy(update={"images": rows[key].images + 1})
            continue
        own = next((departure for departure in one.departures if departure.pid == one.pid), None)
        rows[key] = ProcessProof(
            pid=one.pid,
            parent=one.parent,
            exe=one.exe,
            exe_build_id=one.exe_build_id,
            proved=one.finding is None,
            reason=one.finding.text if one.finding else None,
            entries=[EntryPoint(symbol=e.symbol, file=e.file, build_id=e.build_id) for e in one.entries],
            strays=strays,
            end_rss_kib=own.resident_kib if own else None,
        )
    # What is not proved must not fall off the end of a long list.
    return sorted(rows.values(), key=lambda row: row.proved)[:ROWS] if len(rows) > ROWS else list(rows.values())
