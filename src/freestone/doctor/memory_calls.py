"""Reads what strace wrote of calls about memory, and follows each address space through it. Pure.

The lines are those of ``strace -f -ttt`` with :data:`TRACED`. Calls of threads that were broken into
``<unfinished ...>`` and ``<... resumed>`` are put together again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from freestone.doctor.mappings import HEAP, mapping, thread_heaps
from freestone.doctor.observations import Calls, Growth, MemoryCalls

TRACED: Final = "brk,mmap,munmap,mremap,mprotect,madvise,futex,clone,clone3,fork,vfork,execve,prctl,mlockall"

Name = Literal["brk", "mmap", "munmap", "mremap", "mprotect", "madvise", "futex"]
_COUNTED: Final = frozenset(get_args(Name))

_CALL = re.compile(r"^(?P<task>\d+)\s+(?P<at>\d+\.\d+)\s+(?P<name>\w+)\((?P<arguments>.*)\)\s+= (?P<result>\S+)")
_UNFINISHED = re.compile(
    r"^(?P<task>\d+)\s+(?P<at>\d+\.\d+)\s+(?P<name>\w+)\((?P<arguments>.*?),? *<unfinished \.\.\.>$"
)
_RESUMED = re.compile(
    r"^(?P<task>\d+)\s+\d+\.\d+\s+<\.\.\. (?P<name>\w+) resumed>(?P<arguments>.*)\)\s+= (?P<result>\S+)"
)

_LEAST_OF_THRESHOLD: Final = 128 << 10
_MOST_OF_THRESHOLD: Final = 32 << 20
"""Between these glibc's threshold for mappings of single blocks moves about, in bytes."""


@dataclass(frozen=True)
class Call:
    """One call of one thread, with what it returned."""

    task: int
    at_s: float
    name: str
    arguments: str
    result: str

    @property
    def failed(self) -> bool:
        return self.result.startswith("-") or self.result == "?"


@dataclass
class _Space:
    """One address space: where its heap ends, and what lies mapped in it."""

    brk: int | None = None
    went_down: bool = False
    mapped: dict[int, int] = field(default_factory=dict)
    """Beginning of an anonymous mapping -> its bytes."""
    heaps: set[int] = field(default_factory=set)
    """Of glibc's heaps of threads, by address / 64 MiB."""
    opened: set[int] = field(default_factory=set)
    """Those that were opened once already."""

    def forked(self) -> _Space:
        return _Space(self.brk, self.went_down, dict(self.mapped), set(self.heaps), set(self.opened))


def heaps_in(maps: Iterable[str]) -> frozenset[int]:
    """glibc's heaps of threads in the lines of a /proc/PID/maps, by address / 64 MiB."""
    mappings = [found for line in maps if (found := mapping(line)) is not None]
    return frozenset(each.begin // HEAP for each in thread_heaps(mappings))


def read(lines: Iterable[str], wall_s: float, *, attached: frozenset[int] | None = None) -> Calls:
    """Everything that the calls say.

    Args:
        lines: of the log, in its order.
        wall_s: how long the traced run took.
        attached: for a process that ran already, whose threads all come without a clone: its heaps of threads.
    """
    known = None if attached is None else _Space(heaps=set(attached), opened=set(attached))
    counts: Counter[str] = Counter()
    amounts: Counter[str] = Counter()
    sizes: dict[str, Counter[int]] = {}
    growth: Counter[str] = Counter()
    spaces: dict[int, _Space] = {}
    huge_pages_off = locked = False
    for call in calls(lines):
        space = spaces.setdefault(call.task, known or _Space())
        if call.name in ("clone", "clone3", "fork", "vfork"):
            if call.result.isdigit() and int(call.result) not in spaces:
                spaces[int(call.result)] = space if "CLONE_VM" in call.arguments else space.forked()
            continue
        if call.name == "execve":
            if not call.failed:
                spaces[call.task] = _Space()
            continue
        huge_pages_off |= not call.failed and _forbids_huge_pages(call)
        locked |= call.name == "mlockall" and not call.failed and "MCL_FUTURE" in call.arguments
        if call.name not in _COUNTED or call.failed:
            continue
        counts[call.name] += 1
        size = _follow(call, space, growth)
        if size:
            amounts[call.name] += size
            sizes.setdefault(call.name, Counter())[_rounded_kib(size)] += 1
    by_kind = [
        MemoryCalls(
            name=name,
            calls=count,
            kib=amounts[name] >> 10,
            sizes=dict(sorted(sizes.get(name, {}).items())),
        )
        for name, count in counts.most_common()
    ]
    return Calls(wall_s=wall_s, by_kind=by_kind, growth=Growth(**growth), huge_pages_off=huge_pages_off, locked=locked)


def _forbids_huge_pages(call: Call) -> bool:
    words = [word.strip() for word in call.arguments.split(",")]
    return call.name == "prctl" and words[0] == "PR_SET_THP_DISABLE" and len(words) > 1 and _number(words[1]) != 0


def calls(lines: Iterable[str]) -> Iterator[Call]:
    """The calls of a log, each where it returned; what is no call is passed over."""
    begun: dict[tuple[int, str], tuple[float, str]] = {}
    for line in lines:
        if found := _CALL.match(line):
            yield Call(int(found["task"]), float(found["at"]), found["name"], found["arguments"], found["result"])
        elif found := _UNFINISHED.match(line):
            begun[int(found["task"]), found["name"]] = (float(found["at"]), found["arguments"])
        elif found := _RESUMED.match(line):
            at_s, arguments = begun.pop((int(found["task"]), found["name"]), (0.0, ""))
            rest = found["arguments"].lstrip(", ")
            whole = ", ".join(part for part in (arguments, rest) if part)
            yield Call(int(found["task"]), at_s, found["name"], whole, found["result"])


def _follow(call: Call, space: _Space, growth: Counter[str]) -> int:
    """Take a call into the address space and the counts; how many bytes it was about."""
    words = [word.strip() for word in call.arguments.split(",")]
    match call.name:
        case "brk":
            return _brk(_number(call.result), space, growth)
        case "mmap":
            return _mmap(words, _number(call.result), space, growth)
        case "munmap":
            return _munmap(_number(words[0]), _number(words[1]), space, growth)
        case "mremap":
            size = space.mapped.pop(_number(words[0]), None)
            if size is not None:
                space.mapped[_number(call.result)] = _number(words[2])
            return _number(words[2])
        case "mprotect":
            return _mprotect(words, space, growth)
        case "madvise":
            begin, size = _number(words[0]), _number(words[1])
            growth["heap_shrinks"] += begin // HEAP in space.heaps and "DONTNEED" in words[-1]
            return size
        case _:
            return 0


def _brk(end: int, space: _Space, growth: Counter[str]) -> int:
    before, space.brk = space.brk, end
    if before is None or end == before:
        return 0
    if end > before:
        growth["brk_up"] += 1
        growth["brk_down_up"] += space.went_down
        space.went_down = False
    else:
        growth["brk_down"] += 1
        space.went_down = True
    return abs(end - before)


def _mmap(words: list[str], begin: int, space: _Space, growth: Counter[str]) -> int:
    size, protection, flags = _number(words[1]), words[2], words[3]
    anonymous = "MAP_ANONYMOUS" in flags and "MAP_PRIVATE" in flags
    if anonymous and "PROT_NONE" in protection:
        if "MAP_FIXED" in flags:
            growth["heap_shrinks"] += begin // HEAP in space.heaps
        elif size in (HEAP, 2 * HEAP) and "MAP_NORESERVE" in flags:
            growth["heap_reserves"] += 1
            # Of a double one, what lies before and behind the aligned half is taken back.
            space.heaps.add((begin + HEAP - 1) // HEAP)
    elif anonymous and not any(flag in flags for flag in ("MAP_STACK", "MAP_FIXED")):
        growth["anonymous_maps"] += 1
        space.mapped[begin] = size
    return size


def _munmap(begin: int, size: int, space: _Space, growth: Counter[str]) -> int:
    if space.mapped.get(begin) == size:
        del space.mapped[begin]
        growth["map_unmap_pairs"] += 1
        growth["pairs_128k_32m"] += _LEAST_OF_THRESHOLD <= size <= _MOST_OF_THRESHOLD
    return size


def _mprotect(words: list[str], space: _Space, growth: Counter[str]) -> int:
    heap, size = _number(words[0]) // HEAP, _number(words[1])
    if heap in space.heaps and "PROT_WRITE" in words[-1]:
        growth["heap_mprotects"] += heap in space.opened
        space.opened.add(heap)
    return size


def _number(word: str) -> int:
    found = re.match(r"0x[0-9a-f]+|\d+", word)
    return int(found[0], 0) if found else 0


def _rounded_kib(size: int) -> int:
    """A power of two, in KiB, that holds so many bytes."""
    return 1 << max(0, ((size + 1023) >> 10) - 1).bit_length() if size > 1024 else 1
