"""Which allocators this machine has: the catalogue held against the file system."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import freestone
from freestone import native
from freestone.allocators import catalogue, elf, packages, peers, preloading, versions
from freestone.allocators.catalogue import Entry
from freestone.allocators.errors import AllocatorUnavailable, BrokenLibrary, UnknownAllocator
from freestone.allocators.search import PATH_VARIABLE, LibrarySearch
from freestone.records import cached
from freestone.records.schema import Allocator, Configuration

SYSTEM = "glibc"
"""Name of the system's own allocator: the usual baseline."""

OWN = "freestone"
"""Name of the allocator that was installed with the lab."""

_GIVEN = re.compile(r"(?:(?P<name>[A-Za-z][\w.+-]*)=)?(?P<path>.+)")


def discover(entries: Mapping[str, Entry] | None = None, search: LibrarySearch | None = None) -> list[Allocator]:
    """Everything in the catalogue in catalogue order, present or not; what is not says why and how to get it.

    Args:
        entries: the catalogue; by default the built-in one with the user's on top, and after it the peers, which give
            way to an entry of the user's with the same name.
        search: where to look; by default this machine's folders and loader cache.

    Raises:
        CatalogueError: the user's catalogue is not a catalogue.
    """
    with_peers = entries is None
    entries = catalogue.load() if entries is None else entries
    search = LibrarySearch.of_this_machine() if search is None else search
    found = {name: _locate(entry, search) for name, entry in entries.items()}
    owners = packages.owners(place for place in found.values() if isinstance(place, Path))
    listed = [_allocator(entry, found[name], owners) for name, entry in entries.items()]
    return [*listed, *(each for each in _peers() if each.name not in entries)] if with_peers else listed


def find(names: Iterable[str], *, known: Iterable[Allocator] | None = None) -> list[Allocator]:
    """The allocators asked for, in the order asked, each once.

    A name is a catalogue name, or a path to a library (it holds a ``/`` or ends in ``.so`` with or without digits),
    or ``NAME=PATH``. Several may be given in one string, separated by commas.

    Args:
        names: what the user wrote.
        known: what :func:`discover` returned, to not look twice.

    Raises:
        UnknownAllocator: no such name or file; the message suggests the nearest names.
        AllocatorUnavailable: the name is known, the machine lacks it; the message says how to get it.
        BrokenLibrary: the file cannot serve as an allocator on this machine.
        CatalogueError: the user's catalogue is not a catalogue.
    """
    wanted = [word.strip() for name in names for word in name.split(",") if word.strip()]
    by_name: dict[str, Allocator] | None = None if known is None else {a.name: a for a in known}
    chosen: dict[str, Allocator] = {}
    for word in wanted:
        if is_path(word):
            allocator = from_path(word)
        else:
            by_name = {a.name: a for a in discover()} if by_name is None else by_name
            allocator = _named(word, by_name)
        same = chosen.get(allocator.name)
        if same is not None and same.file != allocator.file:
            raise BrokenLibrary(f"two allocators are named '{allocator.name}'; write NAME={allocator.file}")
        chosen[allocator.name] = allocator
    return list(chosen.values())


def from_path(text: str) -> Allocator:
    """The allocator in a library the user points at, as ``PATH`` or ``NAME=PATH``; its name is else the file's.

    Raises:
        UnknownAllocator: there is no such file.
        BrokenLibrary: not a library, for another machine, without a malloc, or not preloadable.
    """
    match = _GIVEN.fullmatch(text)
    if match is None or (match["name"] and "/" in match["name"]):
        raise UnknownAllocator(f"'{text}' is no path of a library")
    path = cached.expanded(match["path"])
    try:
        file = path.resolve(strict=True)
    except (OSError, RuntimeError):
        raise UnknownAllocator(f"allocator library {path} does not exist") from None
    reason = _unfit(elf.inspect(file))
    if reason:
        raise BrokenLibrary(f"{path} {reason}")
    entry = _entry_of(file) or Entry(name="library", title=match["name"] or file.name, sonames=[file.name])
    owners = packages.owners([file])
    name = match["name"] or path.name
    title = match["name"] or (f"{entry.title} ({path.name})" if entry.title != file.name else file.name)
    base = _present(entry, file, owners.get(file), origin=f"given as {path}")
    return base.model_copy(update={"name": name, "title": title})


def bundled(name: str) -> Path:
    """The library that was installed with the lab, found without a look at the other allocators.

    Raises:
        NativePartMissing: it is not there.
        BrokenLibrary: it lies where the loader cannot be told of it.
    """
    file = native.path(name)
    if not preloading.is_readable(file):
        raise BrokenLibrary(f"{file} {preloading.UNREADABLE}; install freestone into a folder without")
    return file


def configuration_for(
    allocator: Allocator, *, name: str | None = None, environment: Mapping[str, str] | None = None
) -> Configuration:
    """An arm of an experiment: the allocator with settings for the program's environment.

    A peer brings those that its authors ask for; ``environment`` comes on top.
    """
    receipt = peers.at(allocator.file)
    settings = {**(receipt.environment if receipt else {}), **(environment or {})}
    return Configuration(name=name or allocator.name, allocator=allocator, environment=settings)


def _peers() -> Iterator[Allocator]:
    """The peers in catalogue order, built or not."""
    built = peers.built()
    for name, peer in peers.load().items():
        found = built.get(name)
        if found is None:
            yield _absent(name, peer.title, f"{peer.version} is not built; freestone allocators add {peer.project}")
            continue
        facts = elf.inspect(found.library)
        unfit = _unfit(facts)
        if unfit:
            yield _absent(name, peer.title, f"{found.library} {unfit}; freestone allocators add {name}")
            continue
        file = str(found.library.resolve())
        yield Allocator(
            name=name,
            title=peer.title,
            version=found.receipt.version,
            file=file,
            build_id=facts.build_id,
            preload=[file],
            origin=found.receipt.origin,
            reason=None,
        )


def is_path(word: str) -> bool:
    """Whether what was written is no name but ``PATH`` or ``NAME=PATH``."""
    return "/" in word or "=" in word or re.search(r"\.so(\.\d[\d.]*)?$", word) is not None


def called(name: str, known: Mapping[str, Allocator]) -> Allocator:
    """The allocator of a name, whether it is here or not.

    Raises:
        UnknownAllocator: no such name; the message suggests the nearest.
    """
    allocator = known.get(name) or known.get(name.lower())
    if allocator is None:
        near = difflib.get_close_matches(name.lower(), known, n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
        raise UnknownAllocator(f"unknown allocator '{name}'; {hint} (a path to a library works too)")
    return allocator


def _named(name: str, known: Mapping[str, Allocator]) -> Allocator:
    allocator = called(name, known)
    if not allocator.available:
        raise AllocatorUnavailable(f"allocator '{allocator.name}' is not available: {allocator.reason}")
    return allocator


def _locate(entry: Entry, search: LibrarySearch) -> Path | str:
    """The library of an entry, or one line on why there is none."""
    if entry.kind == "libc":
        libc = _mapped_libc() or next(search.candidates(entry.sonames), None)
        return libc or f"this system's libc is not {entry.title}"
    if entry.kind == "freestone":
        try:
            return bundled(entry.sonames[0])
        except (native.NativePartMissing, BrokenLibrary) as error:
            return str(error)
    reason = "not installed"
    for file in search.candidates(entry.sonames):
        unfit = _unfit(elf.inspect(file))
        if unfit is None:
            return file
        reason = f"{file} {unfit}"
    return f"{reason}; {_remedy(entry)}"


def _remedy(entry: Entry) -> str:
    command = packages.how_to_get(entry.packages, packages.distribution())
    elsewhere = f"put {entry.sonames[0]} into a folder named in {PATH_VARIABLE}"
    return f"{command}, or {elsewhere}" if command else elsewhere


def _unfit(facts: elf.ElfFacts) -> str | None:
    """Why a file cannot be preloaded to serve malloc here, or None."""
    if facts.damage and not facts.is_elf:
        return f"cannot be read: {facts.damage}"
    if not facts.is_elf:
        return "is not a shared library"
    if facts.damage:
        return f"is broken: {facts.damage}"
    own = elf.inspect("/proc/self/exe")
    if own.machine and facts.machine != own.machine:
        return f"is built for {facts.machine}, this system runs {own.machine}"
    if facts.libc and own.libc and facts.libc != own.libc and "unknown" not in (facts.libc, own.libc):
        return f"is built for {facts.libc}, this system runs {own.libc}"
    missing = [name for name in elf.HEAP_ENTRIES if name not in facts.exports]
    if missing:
        return f"does not provide {', '.join(missing)}"
    if not preloading.is_readable(facts.path):
        return f"{preloading.UNREADABLE}; copy it elsewhere"
    return None


def _mapped_libc() -> Path | None:
    """The libc this very process runs on, which is the one the measured programs will get."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            lines = maps.read().splitlines()
    except OSError:
        return None
    for line in lines:
        path = line.split(None, 5)[5] if line.count("/") else ""
        if re.fullmatch(r"libc\.so\.6|libc-2\.\d+\.so", os.path.basename(path)):
            return Path(path).resolve()
    return None


def _entry_of(file: Path) -> Entry | None:
    """The catalogue entry whose library this file looks to be, for its title and its version."""
    soname = elf.inspect(file).soname or file.name
    for entry in catalogue.load().values():
        if entry.kind == "library" and (soname in entry.sonames or file.name in entry.sonames):
            return entry
    return None


def _allocator(entry: Entry, place: Path | str, owners: Mapping[Path, packages.Package]) -> Allocator:
    if isinstance(place, str):
        return _absent(entry.name, entry.title, place)
    return _present(entry, place, owners.get(place))


def _absent(name: str, title: str, reason: str) -> Allocator:
    return Allocator(name=name, title=title, file=None, build_id=None, origin="", available=False, reason=reason)


def _present(entry: Entry, file: Path, package: packages.Package | None, origin: str | None = None) -> Allocator:
    if entry.kind == "freestone":
        version, where = freestone.__version__, "built here"
    else:
        version = versions.version_of(file, entry.version, package) or ""
        where = "system libc" if entry.kind == "libc" else f"package {package.name}" if package else f"file {file}"
    return Allocator(
        name=entry.name,
        title=entry.title,
        version=version or None,
        file=str(file),
        build_id=elf.inspect(file).build_id,
        preload=[str(file)],
        origin=origin or where,
        reason=None,
    )
