"""The page of the answers, whole: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from freestone.records.schema import Allocator
from hazards import table
from hazards.catalogue import Hazard
from hazards.table import Answers

FACTS = ("cpu", "cores_online", "memory_kib", "page_size", "kernel", "thp", "overcommit", "libc", "distribution")


def text(
    hazards: Sequence[Hazard],
    allocators: Sequence[Allocator],
    answers: Answers,
    *,
    subject: str,
    command: str,
    commit: str,
    facts: Mapping[str, object],
    day: str,
) -> str:
    """What a reader sees first is the matrix; how it came about stands at the end."""
    names = [each.name for each in allocators]
    machine = ", ".join(f"{key} {facts[key]}" for key in FACTS if facts.get(key) is not None)
    versions = ", ".join(f"{each.name} {each.version or '?'}" for each in allocators)
    return f"""# Hazards: what users of allocators were hurt by, tried

Written by `{command}` on {day}, from {commit}; do not edit. One small program for each hazard, the same for every
allocator, in `tests/hazards` and among the tests of the allocator. Again by number or name:
`make hazards ONLY="6 errno" ALLOCATORS=freestone,glibc` (half a minute). Numbers 1 to 45 are those of the collection of
complaints the programs were written from; F1 to F12 are faults that libfreestone itself had.

A figure is of one run on one machine, and says pass or fail, not how fast. **crash**: ended by a signal; **hang**: not
ended in its time; *n/a*: does not apply; *–*: not tried (reasons below). Every program proves first that the allocator
serves it; in 18 the linker says whose malloc it took, and in 37, where another malloc has to serve, the allocator is
proved to be loaded.

{table.matrix(hazards, names, answers)}
## What did not pass

{table.figures(hazards, names, answers)}
## What is right, and what {subject} showed

*Fails under*: what shows that the program can fail; the faults planted into libc's allocator are tried by
`make hazards PLANTED=1`.

{table.criteria(hazards, subject, names, answers)}
## Not tried, not applicable

{table.reasons(hazards, names, answers)}
## Machine and versions

{machine}.

{versions}.
"""
