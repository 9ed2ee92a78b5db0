"""Whether one program image was served by the allocator under test, and if not, why. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from freestone.trials.census import Image
from freestone.trials.evidence import OWN_MALLOC, STATIC, Cause, Evidence, Finding, Provider
from freestone.trials.witness import Departure, Entry, Testimony


@dataclass(frozen=True, slots=True)
class JudgedImage:
    """One program image, who served it, and what is wrong with that; nothing where ``finding`` is None."""

    pid: int
    parent: int
    exe: str
    exe_build_id: str | None
    finding: Finding | None
    entries: tuple[Entry, ...]
    departures: tuple[Departure, ...]
    begin_s: float


def file_name(program: str) -> str:
    """The last part of a program's path, which is the same wherever the root of its files lies."""
    return program.rpartition("/")[2]


def judge(
    evidence: Evidence,
    image: Image | None,
    testimony: Testimony | None,
    forks: Sequence[Testimony],
    apart: Collection[str] = (),
) -> JudgedImage:
    """Judge one image by its testimony and those of its forks; either the image or the testimony may be missing.

    Args:
        evidence: what else is known.
        image: as the census has it.
        testimony: the image's own.
        forks: of the image.
        apart: :func:`file_name` of each program that has spoken and was not found in the census.
    """
    pid = image.pid if image else testimony.pid if testimony else 0
    parent = testimony.parent if testimony else image.parent if image else 0
    exe = (testimony.exe if testimony else "") or (image.exe if image else None) or (image.name if image else "")
    departures = tuple(one.departure for one in (testimony, *forks) if one is not None and one.departure is not None)
    if testimony is None:
        finding: Finding | None = _unwitnessed(evidence, image, apart)
    else:
        finding = _witnessed(evidence, testimony, exe, departures)
    return JudgedImage(
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
        return Finding(Cause.OWN_MALLOC, f"{OWN_MALLOC}{exe} {facts.own_malloc}")
    foreign = [entry for entry in testimony.entries if not _same_file(entry, evidence.expected)]
    if foreign:
        return _other_provider(evidence, exe, foreign)
    for departure in departures:
        if departure.stray_objects:
            return _stray(departure)
    missing = _unset(evidence, testimony, exe)
    if missing is not None:
        return missing
    if testimony.heap_works is not True:
        return Finding(Cause.BROKEN_HEAP, f"broken heap: {evidence.expected.name} gave {exe} no usable memory")
    return None


def _unset(evidence: Evidence, testimony: Testimony, exe: str) -> Finding | None:
    found = dict(testimony.settings)
    for name, value in evidence.settings.items():
        if found.get(name) != value:
            instead = f"found '{found[name]}'" if name in found else "did not find it"
            return Finding(
                Cause.SETTING,
                f"other setting: {name}={value} is what is measured, and {exe} {instead} (does a script set it?)",
            )
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
        return Finding(Cause.OWN_MALLOC, f"{OWN_MALLOC}{exe} defines {entry.symbol} itself")
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


def _unwitnessed(evidence: Evidence, image: Image | None, apart: Collection[str]) -> Finding:
    name = (image.exe or image.name) if image else "a process"
    facts = evidence.facts_of(image.exe) if image is not None and image.exe is not None else None
    if facts is not None and facts.is_elf:
        if facts.own_freestone:
            return Finding(Cause.OWN_MALLOC, f"{OWN_MALLOC}{name} {facts.own_malloc}")
        if facts.static:
            return Finding(Cause.STATIC, f"{STATIC}{name} loads no shared library, so nothing can be preloaded")
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
    if file_name(name) in apart:
        return Finding(
            Cause.UNSEEN,
            f"unseen process: {name} runs in namespaces of its own (pid and time or files: unshare, chroot, a "
            "container), where the lab cannot match what it says; run the lab inside of them, or the program outside",
        )
    return Finding(Cause.UNSEEN, f"unseen process: {name} ran without the witness (was its environment cleaned?)")
