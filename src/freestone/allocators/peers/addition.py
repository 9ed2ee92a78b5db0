"""Adds a peer: source, library, proof that it works, and only then a place in the cache."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from freestone.allocators import elf, preloading
from freestone.allocators.peers import cache, sources, toolchain
from freestone.allocators.peers.build import Workshop, build
from freestone.allocators.peers.cache import Built, Receipt
from freestone.allocators.peers.catalogue import Peer
from freestone.allocators.peers.errors import BuildError, CacheError
from freestone.allocators.peers.execution import CommandFailed
from freestone.allocators.peers.toolchain import Tool
from freestone.allocators.verification import verify
from freestone.records.schema import Allocator

ENTRIES = (*elf.HEAP_ENTRIES, "posix_memalign", "aligned_alloc", "memalign", "malloc_usable_size")
OPERATORS = ("_Znwm", "_ZdlPv") if platform.architecture()[0] == "64bit" else ("_Znwj", "_ZdlPv")
"""``operator new(size_t)`` and ``operator delete(void *)`` as compilers write them."""


def add(peer: Peer, *, jobs: int, say: Callable[[str], None], folder: Path | None = None) -> tuple[Built, bool]:
    """Have a peer in the cache, and whether it was built just now.

    What is there already, built by the same recipe with the same compiler, is kept if it still works.

    Args:
        peer: one of the catalogue.
        jobs: how many compilers may run at a time.
        say: told in a few words what is going on.
        folder: the cache; by default the user's.

    Raises:
        SourceError: the source package could not be had; Unreachable when it is for want of a network.
        BuildError: no library came of it, or one that does not work here.
        CacheError: the cache cannot be written, or the disk is full.
    """
    folder = cache.root() if folder is None else folder
    if not preloading.is_readable(folder.absolute()):
        raise CacheError(f"nothing in {folder} can be preloaded, for the space or colon in it; set XDG_CACHE_HOME")
    compilers = toolchain.identity(toolchain.needed(peer.recipe))
    target = folder.absolute() / f"{peer.name}-{peer.version}-{key(peer, compilers)}"
    there = cache.read(target)
    if there is not None:
        if _fault(peer, there.library) is None:
            return there, False
        cache.remove(peer.name, folder)
    log = cache.log_of(peer.name, folder.absolute())
    with cache.building(peer.name, folder.absolute()) as place:
        parts = place / "parts"
        start = time.monotonic()
        try:
            log.write_text("")
            parts.mkdir()
            say(f"{peer.name} {peer.version}: fetching {peer.package}")
            source = sources.unpack(peer.package, place, log)
            say(f"{peer.name} {peer.version}: building")
            shop = Workshop(source=source, work=place, log=log, jobs=jobs)
            library = Path(shutil.copy(build(peer.recipe, shop), parts / f"lib{peer.name}.so"))
            library.chmod(0o755)
            fault = _fault(peer, library)
            if fault:
                raise BuildError(f"{peer.name} {peer.version} {fault}; it is not kept, full log: {log}")
            receipt = _receipt(peer, library.name, compilers, shop.done, time.monotonic() - start)
            shutil.copy(log, parts / cache.BUILD_LOG)
        except CommandFailed as error:
            if error.disk_full:
                raise cache.full(folder) from None
            raise BuildError(f"{peer.name} {peer.version} cannot be built: {error}; full log: {log}") from None
        built = cache.store(parts, receipt, target)
        log.unlink(missing_ok=True)
    return built, True


def lacking(peers: Iterable[Peer]) -> dict[Tool, list[Peer]]:
    """Each tool that is not installed, with the peers that cannot be added without it."""
    wanted = list(peers)
    found = toolchain.missing(wanted)
    if toolchain.CARGO.words() is None:
        unfetched = [peer for peer in wanted if not is_fetched(peer)]
        if unfetched:
            found[toolchain.CARGO] = unfetched
    return found


def is_fetched(peer: Peer) -> bool:
    """Whether cargo has fetched its source before, so that neither cargo nor a network is needed."""
    return sources.kept(peer.package) is not None


def key(peer: Peer, compilers: dict[str, str]) -> str:
    """Ten digits that stand for source, recipe, compilers and processor: what the same key built is the same."""
    facts = {
        "peer": peer.model_dump(exclude={"title", "project"}),
        "compilers": compilers,
        "machine": platform.machine(),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:10]


def _fault(peer: Peer, library: Path) -> str | None:
    """What is wrong with a library: an entry point that it should have, or that it does not serve a program."""
    defined = _defined(library)
    lacking = [name for name in (*ENTRIES, *(OPERATORS if peer.operators else ())) if name not in defined]
    if lacking:
        return f"was built without {', '.join(lacking)}"
    allocator = Allocator(name=peer.name, title=peer.title, file=str(library), preload=[str(library)])
    verdict = verify(allocator, settings=peer.environment)
    return None if verdict.verified else f"was built and does not work: {verdict.reason}"


def _defined(library: Path) -> set[str]:
    """The dynamic symbols a library defines; none for one that is damaged."""
    from elftools.elf.elffile import ELFFile  # late: only what was just built is looked into
    from elftools.elf.sections import SymbolTableSection

    try:
        with open(library, "rb") as stream:
            table = ELFFile(stream).get_section_by_name(".dynsym")
            if not isinstance(table, SymbolTableSection):
                return set()
            return {symbol.name for symbol in table.iter_symbols() if symbol["st_shndx"] != "SHN_UNDEF"}
    except Exception:  # pyelftools raises whatever its parser meets in a damaged file
        return set()


def _receipt(peer: Peer, library: str, compilers: dict[str, str], commands: list[str], seconds: float) -> Receipt:
    return Receipt(
        name=peer.name,
        version=peer.version,
        library=library,
        package=peer.package.name,
        package_version=peer.package.version,
        package_sha256=peer.package.sha256,
        compilers=compilers,
        commands=commands,
        environment=peer.environment,
        built_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        build_s=round(seconds, 1),
    )
