"""The packages in dist: what kind each is, and what can be read in it."""

from __future__ import annotations

import email
import hashlib
import io
import re
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from packaging.utils import canonicalize_name

from bill_of_materials import python_parts, rust_parts
from bill_of_materials.part import Part
from freestone.allocators import elf

Kind = Literal["wheel", "sdist", "deb", "crate"]
SUFFIXES: dict[str, Kind] = {".whl": "wheel", ".tar.gz": "sdist", ".deb": "deb", ".crate": "crate"}
ALLOCATOR = re.compile(r"(^|/)(libfreestone\.(so[.\d]*|a)|src/allocate\.c)$")
C_LIBRARIES = {"glibc": "LGPL-2.1-or-later", "musl": "MIT"}
COMPILER = Part("libgcc", None, "compiler", "GPL-3.0-or-later WITH GCC-exception-3.1")
"""What gcc links into a static program of its own: the unwinder, and arithmetic that a processor lacks."""
OF_COMPILER = re.compile(r"_Unwind_\w+|__gcc_\w+|__register_frame\w*")


@dataclass
class Shipped:
    """A file of dist, and what was found in it."""

    name: str
    sha256: str
    kind: Kind
    metadata: str = ""
    """Python's, of a wheel or a packed source."""
    has_allocator: bool = False
    contains: set[Part] = field(default_factory=set)
    linked: set[Part] = field(default_factory=set)
    """What is in its static programs: a C library, and what the compiler has put there."""
    compiled: set[tuple[str, Part]] = field(default_factory=set)
    """By the name of one that it contains, what that is made of, as its own bill says."""
    depends: set[Part] = field(default_factory=set)


def kind_of(name: str) -> Kind | None:
    """What kind of package a file name belongs to; None for a file that is none."""
    return next((kind for suffix, kind in SUFFIXES.items() if name.endswith(suffix)), None)


def read(file: Path) -> Shipped | None:
    """What is in a file of dist; None where it is no package."""
    kind = kind_of(file.name)
    if kind is None:
        return None
    shipped = Shipped(file.name, hashlib.sha256(file.read_bytes()).hexdigest(), kind)
    for name, content in members(file, kind):
        _note(shipped, name, content)
    if kind == "deb":
        shipped.depends |= set(_debian_needs(file))
    shipped.depends = set(rust_parts.of_one_version(shipped.depends))
    return shipped


def members(file: Path, kind: Kind) -> Iterator[tuple[str, bytes]]:
    """The files in a package, with their contents; links are left out."""
    if kind == "wheel":
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                yield name, archive.read(name)
        return
    packed = file.read_bytes()
    if kind == "deb":
        packed = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(file)], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                yield member.name.removeprefix("./"), content.read()


def _note(shipped: Shipped, name: str, content: bytes) -> None:
    shipped.has_allocator |= ALLOCATOR.search(name) is not None
    if re.search(r"(^|/)[^/]+\.dist-info/METADATA$", name) or (name.count("/") == 1 and name.endswith("/PKG-INFO")):
        message = email.message_from_bytes(content)
        if str(message["Name"]).lower() == "freestone":
            shipped.metadata = content.decode()
        else:
            shipped.contains.add(python_parts.part_of(message))
    elif inner := re.search(r"(?:^|/)([^/]+)-[^/-]+\.dist-info/sboms/[^/]+\.cyclonedx\.json$", name):
        owner = str(canonicalize_name(inner.group(1)))
        shipped.compiled |= {(owner, part) for part in rust_parts.of_bill(content.decode())}
    elif name.count("/") == 1 and name.endswith("/Cargo.toml"):
        shipped.depends |= set(rust_parts.needs(content.decode()))
    elif name.count("/") == 1 and name.endswith("/Cargo.lock"):
        shipped.depends |= set(rust_parts.locked(content.decode()))
    elif content.startswith(b"\x7fELF"):
        library = linked_library(content, musl="musllinux" in shipped.name)
        if library:
            shipped.linked.add(Part(library, None, "c library", C_LIBRARIES[library]))
            if holds_compilers(content):
                shipped.linked.add(COMPILER)


def linked_library(content: bytes, *, musl: bool) -> str | None:
    """The C library that a static program holds; None for everything else. musl leaves no mark, the package says it."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        facts = elf.inspect(file.name)
    if not facts.static:
        return None
    return "musl" if musl else "glibc" if facts.libc == "glibc" else None


def holds_compilers(content: bytes) -> bool:
    """Whether a static program holds something of the compiler's own library; one that is stripped is taken to."""
    try:
        tables = [each for each in ELFFile(io.BytesIO(content)).iter_sections() if isinstance(each, SymbolTableSection)]
    except ELFError:
        return True
    symbols = [each for table in tables for each in table.iter_symbols()]
    return not symbols or any(OF_COMPILER.match(each.name) for each in symbols)


def _debian_needs(file: Path) -> Iterator[Part]:
    field_of = ["dpkg-deb", "--field", str(file), "Depends"]
    depends = subprocess.run(field_of, capture_output=True, text=True, check=True).stdout
    for word in re.split(r"[,|]\s*", depends.strip()):
        if match := re.match(r"[a-z0-9][a-z0-9+.-]*", word.strip()):
            yield Part(match.group(), None, "debian")
