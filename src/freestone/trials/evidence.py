"""What the verdict of law 1 rests on: what ran, what was said from inside, and what can be wrong with either."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, Protocol

from freestone.trials.census import Ending, Image
from freestone.trials.witness import Testimony


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


STATIC: Final = "static binary: "
"""How the reason begins of what is not proved because nothing can be preloaded into an image."""

OWN_MALLOC: Final = "own malloc: "
"""How the reason begins of what is not proved because an image has its own; who has it follows."""


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
    SETTING = 9
    BROKEN_HEAP = 10
    DAMAGED = 11
    UNSEEN = 12
    CENSUS = 13

    @property
    def structural(self) -> bool:
        """Whether it lies in the program or the preload, so that it explains a failure of the program too."""
        return self <= Cause.STRAY


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, and its cause."""

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
    settings: Mapping[str, str] = field(default_factory=dict)
    """What every image has to find in its environment."""
    setting_complaint: str | None = None
    """What the allocator said of a setting that it does not take."""
    endings: Sequence[Ending] | None = None
    """The ends of the processes of this very run; None when there was no census."""
