"""Where a process's resident memory lies, from /proc/PID/smaps and status. Pure but for reading those files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from freestone.doctor.mappings import HEAP, Mapping, mapping, thread_heaps
from freestone.doctor.observations import Kept

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
    resident: dict[Mapping, int] = {}
    current: Mapping | None = None
    for line in lines:
        if (found := mapping(line)) is not None:
            current = found
            resident[current] = 0
        elif (field := _FIELD.match(line)) is not None:
            sums[field[1]] += int(field[2])
            if field[1] == "Rss" and current is not None:
                resident[current] += int(field[2])
    heaps = thread_heaps(list(resident))
    return Kept(
        at_s=at_s,
        rss_kib=sums["Rss"],
        anonymous_kib=sums["Anonymous"],
        huge_kib=sums["AnonHugePages"],
        lazy_free_kib=sums["LazyFree"],
        main_heap_kib=sum(kib for each, kib in resident.items() if each.name == "[heap]"),
        thread_heaps=len({each.begin // HEAP for each in heaps}),
        thread_heaps_kib=sum(resident[each] for each in heaps),
        mappings=len(resident),
    )
