"""What a program file says about itself before it runs: static or not, whose libc, whose malloc.

Everything here is read, never executed. A file that is damaged, truncated or hostile yields facts with unknowns,
not an exception, and no table is walked entry by entry in Python, so executables of hundreds of megabytes take
milliseconds.
"""

from __future__ import annotations

import functools
import mmap
import os
import re
import stat
import struct
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal

Libc = Literal["glibc", "musl", "unknown"]

HEAP_ENTRIES = ("malloc", "calloc", "realloc", "free")
"""What an allocator must define to serve a program."""

OWN_FREESTONE = "has libfreestone linked into it, which serves it whatever is preloaded"

# Allocators that live in a program under a prefix: the program calls them by these names, so its malloc (which a
# preload replaces) is not where its memory comes from.
_PREFIXED = {
    "_rjem_malloc": "jemalloc",
    "_rjem_mallocx": "jemalloc",
    "je_malloc": "jemalloc",
    "je_mallocx": "jemalloc",
    "mi_malloc": "mimalloc",
    "mi_malloc_aligned": "mimalloc",
    "tc_malloc": "tcmalloc",
    "rpmalloc": "rpmalloc",
    "rpaligned_alloc": "rpmalloc",
    "sn_malloc": "snmalloc",
    "sn_rust_alloc": "snmalloc",
    "scalable_malloc": "TBB malloc",
    "scudo_malloc": "scudo",
    "h_malloc": "hardened_malloc",
}

# What a caller imports that passes by the malloc which a preload replaces: the same names, jemalloc's own interface,
# and libc's heap by libc's own names.
_IMPORTED = (
    *_PREFIXED, "mallocx", "rallocx", "xallocx", "__libc_malloc", "__libc_calloc", "__libc_realloc", "__libc_memalign",
)  # fmt: skip

# The same allocators in stripped files: text that only their own code prints.
_MARKERS = {
    b"<jemalloc>: ": "jemalloc",
    b"mimalloc: warning: ": "mimalloc",
    b"mimalloc: error: ": "mimalloc",
    b"tcmalloc: large alloc ": "tcmalloc",
    b"TBBmalloc: ": "TBB malloc",
    b"fatal allocator error: ": "hardened_malloc",
    b"Scudo ERROR: ": "scudo",
}

# Text of libfreestone's own in every program that the static library was linked into, stripped or not.
_FREESTONE = b"is not an option; ignored (docs/reference/options.md"

_LINKED = {
    "libmimalloc": "mimalloc",
    "libjemalloc": "jemalloc",
    "libtcmalloc": "tcmalloc",
    "libtbbmalloc": "TBB malloc",
    "libsnmalloc": "snmalloc",
    "librpmalloc": "rpmalloc",
    "libhardened_malloc": "hardened_malloc",
    "libfreestone": "libfreestone",
}

# CPython 3.13 and later compile mimalloc in and use it only when told to (free-threaded builds always do), so its
# presence says nothing about the interpreter's malloc.
_CPYTHON = b"PYTHONMALLOC"

# Sanitizers check a program through a malloc of their own; under another they refuse to start, or find nothing. Known
# by the stem of the shared runtime's name, or by `__asan_init` in a program that the runtime was linked into.
_SANITIZERS = {
    "asan": "AddressSanitizer",
    "hwasan": "HWAddressSanitizer",
    "lsan": "LeakSanitizer",
    "msan": "MemorySanitizer",
    "tsan": "ThreadSanitizer",
}

# Runtimes that serve themselves for the most part, by a function that only they export, by text of their own, or by the
# names of their libraries.
_RUNTIME_EXPORT = {"Py_BytesMain": "CPython", "_emalloc": "PHP"}
_RUNTIME_TEXT = {b"max_old_space_size": "V8", b"max-old-space-size": "V8"}
_RUNTIME_SONAME = {"libjvm.so": "JVM", "libcoreclr.so": ".NET"}

_SHN_UNDEF = 0
_WEAK = 2
_SYMBOL_LAYOUT = {64: (24, 4, 6), 32: (16, 12, 14)}  # size of an entry, offsets of st_info and st_shndx within it


@dataclass(frozen=True, slots=True)
class ElfFacts:
    """Facts about one file. ``None`` means "not so" for names and "not known" for what could not be read."""

    path: Path
    is_elf: bool = False
    static: bool = False
    """A program that loads no shared library: nothing can be preloaded into it."""
    interpreter: str | None = None
    """The dynamic loader it asks for (``PT_INTERP``)."""
    libc: Libc | None = None
    own_malloc: str | None = None
    """Why its memory would not come from a preloaded malloc, e.g. ``embeds jemalloc (_rjem_malloc)``."""
    sanitizer: str | None = None
    """The sanitizer that it was built with; one that is a shared library refuses to start behind a preloaded malloc."""
    own_freestone: bool = False
    """A program that libfreestone.a was linked into: it is served by that, whatever is preloaded."""
    linked_allocator: str | None = None
    """An allocator it is linked against as a shared library; a preload comes before it."""
    exports: tuple[str, ...] = ()
    """Which of :data:`HEAP_ENTRIES` its dynamic symbol table defines."""
    heap_symbols: tuple[str, ...] = ()
    """Entry points of known allocators under other names that its dynamic symbol table defines, e.g. ``mi_malloc``."""
    heap_imports: tuple[str, ...] = ()
    """Such names that it takes from another file, ``__libc_malloc`` among them: a preloaded malloc is passed by."""
    runtime: str | None = None
    """A runtime that serves its programs from a heap of its own: CPython, V8, PHP, JVM, .NET."""
    needed: tuple[str, ...] = ()
    soname: str | None = None
    build_id: str | None = None
    machine: str | None = None
    """ELF machine and class, e.g. ``x86_64 64-bit``; two files can share a process only if it is the same."""
    setuid: bool = False
    """Set-user-id or set-group-id: the loader ignores preloads for whoever is not that user already."""
    file_capabilities: bool = False
    """Carries ``security.capability``: the loader ignores preloads."""
    script_interpreter: str | None = None
    script_argument: str | None = None
    damage: str | None = None
    """What stopped the reading of an ELF file, one line."""


SETTLED_S = 2.0
"""How long ago a file changed last whose facts are kept: a later change has another time, however coarse the clock."""


def inspect(path: str | os.PathLike[str]) -> ElfFacts:
    """Read the facts of a file, once for as long as it does not change: every trial asks for those of the same few.

    Never raises: what cannot be read has ``is_elf`` False or says its ``damage``.
    """
    try:
        status = os.stat(path)
        if time.time() - status.st_ctime < SETTLED_S:
            return _read_file(Path(path))
        return _read_settled(Path(path), (status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns))
    except OSError as error:
        return ElfFacts(path=Path(path), damage=error.strerror or str(error))


@functools.lru_cache(maxsize=1024)
def _read_settled(path: Path, state: tuple[int, ...]) -> ElfFacts:
    return _read_file(path)


def _read_file(path: Path) -> ElfFacts:
    facts = ElfFacts(path=path)
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return replace(facts, damage="not a regular file")
        facts = replace(
            facts,
            setuid=bool(status.st_mode & (stat.S_ISUID | stat.S_ISGID)),
            file_capabilities=_has_capabilities(path),
        )
        if status.st_size == 0:
            return facts
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _read(facts, content)


def _has_capabilities(path: str | os.PathLike[str]) -> bool:
    try:
        return bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False


def _read(facts: ElfFacts, content: mmap.mmap) -> ElfFacts:
    if content[:2] == b"#!":
        words = content[2:258].split(b"\n", 1)[0].split(None, 1)
        names = [word.decode("utf-8", "replace").strip() for word in words]
        return replace(
            facts,
            script_interpreter=names[0] if names else None,
            script_argument=names[1] if len(names) > 1 else None,
        )
    if content[:4] != b"\x7fELF":
        return facts
    try:
        return _Image(content).facts(replace(facts, is_elf=True))
    except Exception as error:  # pyelftools raises whatever its parser meets in a damaged file
        return replace(facts, is_elf=True, damage=f"damaged ELF file ({type(error).__name__})")


class _Image:
    """An ELF file in memory, asked one question at a time."""

    def __init__(self, content: mmap.mmap) -> None:
        from elftools.elf.elffile import ELFFile  # late: only who looks into a file waits for it

        self.content = content
        stream: BinaryIO = content  # type: ignore[assignment]  # an mmap reads and seeks like a file
        self.elf = ELFFile(stream)
        self.segments: list[Any] = list(self.elf.iter_segments())
        self.dynamic: Any = next((s for s in self.segments if s["p_type"] == "PT_DYNAMIC"), None)
        self.sections: dict[str, Any] = {}
        for section in self.elf.iter_sections():
            self.sections.setdefault(section.name, section)

    def facts(self, facts: ElfFacts) -> ElfFacts:
        tags = list(self.dynamic.iter_tags()) if self.dynamic is not None else []
        interpreter = next((s.get_interp_name() for s in self.segments if s["p_type"] == "PT_INTERP"), None)
        needed = tuple(str(tag.needed) for tag in tags if tag.entry.d_tag == "DT_NEEDED")
        # DF_1_PIE tells a static position-independent program from a shared library: neither has an interpreter.
        pie = any(tag.entry.d_tag == "DT_FLAGS_1" and tag.entry.d_val & 0x08000000 for tag in tags)
        kind = self.elf["e_type"]
        static = interpreter is None and not needed and (kind == "ET_EXEC" or (kind == "ET_DYN" and pie))
        exports = tuple(self._defined(".dynsym", HEAP_ENTRIES))
        linked = next(
            (title for name in needed for stem, title in _LINKED.items() if _file(name).startswith(stem)), None
        )
        sanitizer = self._sanitizer(needed)
        own_freestone = (interpreter is not None or static) and self._contains(_FREESTONE)
        soname = next((str(tag.soname) for tag in tags if tag.entry.d_tag == "DT_SONAME"), None)
        machine = f"{str(self.elf['e_machine']).removeprefix('EM_').lower()} {self.elf.elfclass}-bit"
        return replace(
            facts,
            static=static,
            interpreter=interpreter,
            libc=self._libc(interpreter, needed, static),
            own_malloc=OWN_FREESTONE if own_freestone else self._own_malloc(exports, linked, static, sanitizer),
            sanitizer=sanitizer,
            own_freestone=own_freestone,
            linked_allocator=linked,
            exports=exports,
            heap_symbols=tuple(self._defined(".dynsym", _PREFIXED)),
            heap_imports=tuple(self._defined(".dynsym", _IMPORTED, imported=True)),
            runtime=self._runtime(soname),
            needed=needed,
            soname=soname,
            build_id=self._build_id(),
            machine=machine,
        )

    def _libc(self, interpreter: str | None, needed: Iterable[str], static: bool) -> Libc | None:
        name = os.path.basename(interpreter or "")
        names = (name, *needed)
        if any(n.startswith(("ld-musl", "libc.musl")) for n in names):
            return "musl"
        if any(n.startswith(("ld-linux", "ld64.so")) or n == "libc.so.6" for n in names):
            return "glibc"
        if interpreter is not None:
            return "unknown"
        if static:
            # glibc's start files leave this note in every program linked with them; musl's leave none.
            return "glibc" if ".note.ABI-tag" in self.sections else "unknown"
        return None

    def _own_malloc(
        self, exports: tuple[str, ...], linked: str | None, static: bool, sanitizer: str | None
    ) -> str | None:
        if sanitizer is not None:
            return f"brings {sanitizer}'s malloc"
        if any(name in self.sections for name in (".note.go.buildid", ".go.buildinfo", ".gopclntab")):
            return "brings the Go runtime's heap"
        if "malloc" in exports:
            return "exports malloc"
        for symbol in self._defined(".symtab", ("malloc", *_PREFIXED)):
            if symbol == "malloc":
                # In a static program libc's own malloc is here; it is the program's only heap, and a fact already told
                # by `static`.
                if not static:
                    return "defines malloc"
            elif self._in_use(_PREFIXED[symbol]):
                return f"embeds {_PREFIXED[symbol]} ({symbol})"
        for marker, title in _MARKERS.items():
            if title != linked and self._contains(marker) and self._in_use(title):
                return f"embeds {title} (its messages are in the file)"
        return None

    def _sanitizer(self, needed: Iterable[str]) -> str | None:
        starters = {f"__{short}_init": short for short in _SANITIZERS}
        linked = [starters[name] for table in (".dynsym", ".symtab") for name in self._defined(table, starters)]
        # gcc's runtime is libasan.so.8, clang's is libclang_rt.asan-x86_64.so.
        stems = {re.split(r"[.-]", _file(name).removeprefix("lib").removeprefix("clang_rt."))[0] for name in needed}
        found = linked or [short for short in _SANITIZERS if short in stems]
        return _SANITIZERS[found[0]] if found else None

    def _runtime(self, soname: str | None) -> str | None:
        if soname in _RUNTIME_SONAME:
            return _RUNTIME_SONAME[soname]
        exported = self._defined(".dynsym", _RUNTIME_EXPORT)
        if exported:
            return _RUNTIME_EXPORT[exported[0]]
        return next((name for text, name in _RUNTIME_TEXT.items() if self._contains(text)), None)

    def _in_use(self, title: str) -> bool:
        return title != "mimalloc" or not self._contains(_CPYTHON)

    def _contains(self, text: bytes) -> bool:
        return any(self.content.find(text, start, end) >= 0 for start, end in self._read_only())

    def _read_only(self) -> Iterator[tuple[int, int]]:
        """File ranges that hold constant text: .rodata, or every unwritable loaded range when there are no sections."""
        section = self.sections.get(".rodata")
        if section is not None and section["sh_type"] != "SHT_NOBITS":
            yield self._range(section["sh_offset"], section["sh_size"])
            return
        for segment in self.segments:
            if segment["p_type"] == "PT_LOAD" and not segment["p_flags"] & 2:
                yield self._range(segment["p_offset"], segment["p_filesz"])

    def _range(self, offset: int, size: int) -> tuple[int, int]:
        start = min(offset, len(self.content))
        return start, min(start + size, len(self.content))

    def _defined(self, table: str, names: Iterable[str], *, imported: bool = False) -> list[str]:
        """Which of the names a symbol table defines, or else imports and cannot do without, in the order given.

        Linkers store "malloc" as the tail of "je_malloc" when they can, so every place in the string table where a name
        ends is a candidate, and the symbols are then matched by those offsets alone.
        """
        section = self.sections.get(table)
        if section is None:
            return self._defined_by_segments(names, imported) if table == ".dynsym" else []
        strings = self.elf.get_section(section["sh_link"])
        start, end = self._range(strings["sh_offset"], strings["sh_size"])
        candidates: dict[int, str] = {}
        for name in names:
            text = name.encode() + b"\0"
            at = self.content.find(text, start, end)
            while at >= 0:
                candidates[at - start] = name
                at = self.content.find(text, at + 1, end)
        first, last = self._range(section["sh_offset"], section["sh_size"])
        found = {candidates[offset] for offset in self._defined_names(first, last, candidates, imported)}
        return [name for name in names if name in found]

    def _defined_names(self, first: int, last: int, candidates: dict[int, str], imported: bool) -> Iterator[int]:
        size, info_at, index_at = _SYMBOL_LAYOUT[self.elf.elfclass]
        count = (last - first) // size
        native = self.elf.little_endian == (sys.byteorder == "little")
        if not candidates or count == 0:
            return
        # Every symbol begins with the four bytes of its name's offset; a strided view takes them out in one step.
        names = memoryview(self.content[first : first + count * size]).cast("I")[:: size // 4].tolist()
        if not native:
            names = [int.from_bytes(n.to_bytes(4, sys.byteorder), _other(sys.byteorder)) for n in names]
        order = "<H" if self.elf.little_endian else ">H"
        for position, name in enumerate(names):
            if name in candidates:
                at = first + position * size
                (section_index,) = struct.unpack_from(order, self.content, at + index_at)
                wanted = self.content[at + info_at] >> 4 != _WEAK if imported else True
                if (section_index == _SHN_UNDEF) == imported and wanted:
                    yield name

    def _defined_by_segments(self, names: Iterable[str], imported: bool) -> list[str]:
        """For files whose section headers were removed: the dynamic segment leads to the symbols."""
        if self.dynamic is None:
            return []
        wanted = set(names)
        found = {
            symbol.name
            for symbol in self.dynamic.iter_symbols()
            if symbol.name in wanted
            and (symbol["st_shndx"] == "SHN_UNDEF") == imported
            and not (imported and symbol["st_info"]["bind"] == "STB_WEAK")
        }
        return [name for name in names if name in found]

    def _build_id(self) -> str | None:
        for segment in self.segments:
            if segment["p_type"] != "PT_NOTE":
                continue
            for note in segment.iter_notes():
                if note["n_type"] == "NT_GNU_BUILD_ID" and note["n_name"] == "GNU":
                    return str(note["n_desc"]).lower()
        return None


def _file(needed: str) -> str:
    return os.path.basename(needed)  # a library without a soname is needed by the path it was linked from


def _other(order: str) -> Literal["little", "big"]:
    return "big" if order == "little" else "little"
