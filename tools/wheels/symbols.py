"""What the native files of a wheel need of the machine they come to: libraries, and versions of their symbols."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection
from elftools.elf.sections import SymbolTableSection
from elftools.elf.segments import InterpSegment

MUSL_LOADER = re.compile(r"/lib/ld-musl-[^/]+\.so\.1")


@dataclass(frozen=True)
class Need:
    """A symbol that a file wants in a version: ``pthread_create`` of ``GLIBC_2.34``."""

    symbol: str
    version: str


@dataclass(frozen=True)
class NativeFile:
    """A program or library, as far as it concerns the machine it comes to."""

    name: str
    libraries: tuple[str, ...]
    needs: tuple[Need, ...]
    loader: str | None
    """The dynamic linker that a program asks for; None for libraries and static programs."""


def of_file(name: str, content: bytes) -> NativeFile | None:
    """What an ELF file needs; None for any other file."""
    if not content.startswith(b"\x7fELF"):
        return None
    elf = ELFFile(io.BytesIO(content))
    dynamic = elf.get_section_by_name(".dynamic")
    libraries: tuple[str, ...] = ()
    if isinstance(dynamic, DynamicSection):
        libraries = tuple(tag.needed for tag in dynamic.iter_tags("DT_NEEDED"))  # type: ignore[attr-defined]
    loaders = [each.get_interp_name() for each in elf.iter_segments() if isinstance(each, InterpSegment)]
    return NativeFile(name, libraries, tuple(_needs(elf)), next(iter(loaders), None))


def _needs(elf: ELFFile) -> Iterator[Need]:
    numbers = elf.get_section_by_name(".gnu.version")
    wanted = elf.get_section_by_name(".gnu.version_r")
    symbols = elf.get_section_by_name(".dynsym")
    if not isinstance(numbers, GNUVerSymSection) or not isinstance(wanted, GNUVerNeedSection):
        return
    if not isinstance(symbols, SymbolTableSection):
        return
    versions = {each["vna_other"]: each.name for _, group in wanted.iter_versions() for each in group}
    for index, symbol in enumerate(symbols.iter_symbols()):
        version = versions.get(numbers.get_symbol(index)["ndx"])
        if version is not None and symbol["st_shndx"] == "SHN_UNDEF":
            yield Need(symbol.name, version)


def of_wheel(wheel: Path) -> list[NativeFile]:
    """Every native file of a wheel, by its path inside."""
    with zipfile.ZipFile(wheel) as archive:
        found = (of_file(name, archive.read(name)) for name in sorted(archive.namelist()))
        return [native for native in found if native is not None]


def glibc_number(version: str) -> tuple[int, ...] | None:
    """``GLIBC_2.34`` -> (2, 34); None for what is not a version of glibc's, such as ``GCC_3.0``."""
    match = re.fullmatch(r"GLIBC_(\d+(?:\.\d+)+)", version)
    return tuple(int(part) for part in match.group(1).split(".")) if match else None


def newest_glibc(files: Iterable[NativeFile]) -> tuple[int, ...]:
    """The oldest glibc under which all of them work: the newest that any symbol is wanted in; (2, 2, 5) for none."""
    numbers = (glibc_number(need.version) for file in files for need in file.needs)
    return max((number for number in numbers if number is not None), default=(2, 2, 5))


def newer_than(files: Iterable[NativeFile], glibc: tuple[int, ...]) -> list[str]:
    """Lines that name what stands in the way of an older glibc: file, symbol, version."""
    return [
        f"{file.name}: {need.symbol}@{need.version}"
        for file in files
        for need in file.needs
        if (glibc_number(need.version) or ()) > glibc
    ]


def foreign_versions(files: Iterable[NativeFile]) -> list[str]:
    """Lines that name versions of other libraries than glibc: of GCC's, of C++'s, or glibc's private ones."""
    return [
        f"{file.name}: {need.symbol}@{need.version}"
        for file in files
        for need in file.needs
        if glibc_number(need.version) is None
    ]
