"""A diagnosis as text: what was seen, what it suffers from, what was tried and what helped. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from freestone.doctor.observations import Observations
from freestone.doctor.symptoms import Finding
from freestone.doctor.verdict import Tried, Verdict
from freestone.records.schema import Ratio
from freestone.reports import quantities

PLAIN = {
    "mapping-churn": "large blocks are mapped and unmapped again and again",
    "trim-churn": "the end of the heap is given back and taken again",
    "mprotect-growth": "threads' heaps grow in small steps",
    "retention-after-peak": "memory of a peak is kept, free, at the end of the heap",
    "pinned-top-fragmentation": "free memory lies below a block that lives",
    "slab-fragmentation": "free blocks lie between blocks that live",
    "arena-bloat": "each thread's heap keeps what it once had",
    "thread-cache-bloat": "threads' caches hold what nobody uses",
    "huge-page-bloat": "huge pages are resident for a little use each",
    "huge-pages-missing": "a dense heap has no huge pages",
    "first-touch-faults": "new memory is touched for the first time, page by page",
    "lock-contention": "threads wait for each other inside malloc",
    "remote-free-pingpong": "blocks are freed by other threads than ask for them",
    "quadratic-realloc": "blocks grow in small steps and are copied each time",
    "calloc-clearing": "memory that was used before is cleared anew",
    "leak": "what is in use grows without end",
    "memory-limit-pressure": "its memory limit has hardly room for it",
    "own-allocator": "a runtime or library serves itself",
    "healthy": "nothing about its memory is worth a cure",
}


def findings(found: Sequence[Finding], seen: Observations, *, width: int) -> str:
    """What it suffers from, the heaviest first, each with its evidence; then what was not seen."""
    lines: list[str] = []
    for each in found:
        lines += [f"{each.symptom}: {PLAIN[each.symptom]}{_share(each)}"]
        for said in each.evidence:
            lines += textwrap.wrap(said, width, initial_indent="  - ", subsequent_indent="    ")
        lines.append("")
    for part, why in seen.unseen.items():
        lines += textwrap.wrap(f"Not seen: {part}: {why}", width, subsequent_indent="  ")
    if seen.heap is not None and seen.heap.disturbance is not None:
        said = (
            f"Watching its heap took {seen.heap.disturbance:.2f} times the processor time, in a run that is in no "
            "figure."
        )
        lines += textwrap.wrap(said, width, subsequent_indent="  ")
    return "\n".join(lines).rstrip() + "\n"


def _share(each: Finding) -> str:
    parts = []
    if each.time is not None:
        parts.append(
            f"{each.time:.0%} of its processor time" if each.time >= 0.01 else "under 1 % of its processor time"
        )
    if each.memory is not None:
        parts.append(f"{each.memory:.0%} of its memory")
    return f" ({', '.join(parts)})" if parts else ""


def verdict(found: Verdict, baseline: str, *, width: int) -> str:
    """What helped, for the goal; what cannot be had together; what was discarded."""
    lines: list[str] = []
    goal = {"time": "time", "memory": "memory", "balanced": "time and memory together"}[found.goal]
    if found.best is None:
        lines.append(f"Nothing that was tried is really better for {goal}.")
    else:
        best = found.best
        why = f": {best.remedy.why}" if best.remedy is not None else ""
        lines += textwrap.wrap(f"Best for {goal}: {best.configuration} ({_gains(best, baseline)}){why}.", width)
    others = [each for each in found.front if each is not found.best]
    if others:
        lines.append("What is not beaten in both time and memory:")
        for each in [*([found.best] if found.best in found.front and found.best is not None else []), *others]:
            lines += textwrap.wrap(
                f"{each.configuration}: {_gains(each, baseline)}",
                width,
                initial_indent="  - ",
                subsequent_indent="    ",
            )
    for each in found.tried:
        if each.discarded is not None:
            lines += textwrap.wrap(f"Discarded: {each.configuration}: {each.discarded}", width, subsequent_indent="  ")
    return "\n".join(lines) + "\n"


def advice(lines: Iterable[str], *, width: int) -> str:
    """What no setting does."""
    told = [
        line for each in lines for line in textwrap.wrap(each, width, initial_indent="  - ", subsequent_indent="    ")
    ]
    return "\n".join(["In the code:", *told]) + "\n" if told else ""


def _gains(each: Tried, baseline: str) -> str:
    parts = (("time", each.time), ("peak memory", each.memory), ("page faults", each.faults))
    return ", ".join(f"{title} {_times(ratio)}" for title, ratio in parts if ratio is not None)


def _times(ratio: Ratio) -> str:
    return f"{quantities.ratio_number(ratio)}×" if ratio.different else "the same as far as can be told"
