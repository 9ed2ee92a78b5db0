"""Where a process's resident memory lies, from /proc/PID/smaps and status. Pure but for reading those files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from freestone.doctor.observations import Kept

_HEAP: Final = 64 << 20
"""What glibc's heaps of threads are aligned to, in bytes."""

_HEADER: Final = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ (\d+)\s*(.*)$")
_FIELD: Final = re.compile(r"^(Rss|Anonymous|AnonHugePages|LazyFree):\s+(\d+) kB$")


def look(process: int, at_s: float) -> Kept | None:
    """What it holds now; None where it is gone or closed to us."""
    try:
        text = Path(f"/proc/{process}/smaps").read_text(encoding="utf-8", errors="replace")
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    if not text:
        return None
    off = re.search(r"^THP_enabled:\s+0$", status, re.MULTILINE) is not None
    return parse(text.splitlines(), at_s).model_copy(update={"huge_pages_off": off})


def parse(lines: Iterable[str], at_s: float) -> Kept:
    """The sums over all mappings."""
    sums = dict.fromkeys(("Rss", "Anonymous", "AnonHugePages", "LazyFree"), 0)
    heap = threads = mappings = 0
    arenas: set[int] = set()
    begin, end, name, rights, inode = 0, 0, "", "", 0
    for line in lines:
        if header := _HEADER.match(line):
            begin, end, rights = int(header[1], 16), int(header[2], 16), header[3]
            inode, name = int(header[4]), header[5]
            mappings += 1
            continue
        field = _FIELD.match(line)
        if field is None:
            continue
        sums[field[1]] += int(field[2])
        if field[1] != "Rss":
            continue
        if name == "[heap]":
            heap += int(field[2])
        elif _is_thread_heap(begin, end, rights, inode, name):
            arenas.add(begin // _HEAP)
            threads += int(field[2])
    return Kept(
        at_s=at_s,
        rss_kib=sums["Rss"],
        anonymous_kib=sums["Anonymous"],
        huge_kib=sums["AnonHugePages"],
        lazy_free_kib=sums["LazyFree"],
        main_heap_kib=heap,
        thread_heaps=len(arenas),
        thread_heaps_kib=threads,
        mappings=mappings,
    )


def _is_thread_heap(begin: int, end: int, rights: str, inode: int, name: str) -> bool:
    """An anonymous mapping that begins at 64 MiB and can be written; its rest up to the next is reserved."""
    plain = inode == 0 and (name == "" or name.startswith("[anon: glibc: malloc"))
    return plain and rights.startswith("rw") and begin % _HEAP == 0 and end - begin <= _HEAP
