"""A diagnosis as text: what was seen, what it suffers from, what was tried and what helped. Pure."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from freestone.allocators import notation
from freestone.doctor import judgement, knobs, shares, symptoms, touched
from freestone.doctor.finding import Finding
from freestone.doctor.observations import CHOICE, Observations
from freestone.doctor.remedies import Remedy, title
from freestone.doctor.screening import ONE_RUN
from freestone.doctor.thresholds import WORTH
from freestone.doctor.verdict import Tried, Verdict
from freestone.records.schema import Ratio
from freestone.reports import quantities, system_settings

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


MEMORIES = {
    "peak_rss_kib": "peak memory",
    "end_rss_kib": "memory at the end",
    "figure:rss_kib_loaded": "memory under load",
}
"""Metrics that are a program's memory, as they stand in a sentence."""


def findings(found: Sequence[Finding], seen: Observations, *, width: int) -> str:
    """What it suffers from, the heaviest first, each with its evidence; then what was not seen."""
    lines: list[str] = []
    unknown = symptoms.unjudged(seen)
    for each in found:
        lines += [f"{each.symptom}: {plain(each, unknown)}{share(each)}"]
        for said in each.evidence:
            lines += textwrap.wrap(said, width, initial_indent="  - ", subsequent_indent="    ")
        lines.append("")
    nameless = unnamed(found, seen)
    if nameless is not None:
        lines += [*textwrap.wrap(nameless, width, subsequent_indent="  "), ""]
    own = by_itself(seen)
    if own:
        lines.append("What it sets itself:")
        for said in own:
            lines += textwrap.wrap(said, width, initial_indent="  - ", subsequent_indent="    ")
        lines.append("")
    for part, why in seen.unseen.items():
        lines += textwrap.wrap(f"Not seen: {part}: {why}", width, subsequent_indent="  ")
    if unknown:
        said = f"Could not be judged without that: {', '.join(unknown)}."
        lines += textwrap.wrap(said, width, subsequent_indent="  ", break_on_hyphens=False)
    lines += textwrap.wrap(disturbance(seen), width, subsequent_indent="  ")
    return "\n".join(lines).rstrip() + "\n"


def plain(found: Finding, unjudged: Sequence[str]) -> str:
    """A symptom in a few words.

    Args:
        unjudged: symptoms that could not be judged.
    """
    if found.symptom == "healthy" and unjudged:
        return "as far as it could be judged, nothing about its memory is worth a cure"
    if found.outside_malloc:
        return f"{PLAIN[found.symptom]}; most of it did not come from malloc"
    return PLAIN[found.symptom]


def unnamed(found: Sequence[Finding], seen: Observations) -> str | None:
    """What is said where memory costs much and no symptom can be named; None anywhere else."""
    faults = None if found else symptoms.unexplained(seen)
    if faults is None:
        return None
    said = f"Nothing can be named: page faults are {faults:.0%} of its processor time"
    if seen.calls is None:
        return (
            f"{said}, more than its new memory explains, and the calls that they come from were not seen. Memory that "
            "was given back and is used again makes such, and pages that forked processes share or copy."
        )
    given = _given_back(seen)
    if given:
        return f"{said}. {given}"
    other = "Pages that are copied after a fork, and memory that a program gives back itself (madvise), make such."
    if seen.cost is not None and seen.cost.processes > 1:
        other = (
            f"Most of all, its {seen.cost.processes} processes each touch memory that is new, perhaps one after the "
            "other: where memory lies is known of the largest alone, so look at them one by one."
        )
    new = shares.first_share(seen, min(touched.first(seen) or 0.0, touched.pages(seen))) or 0.0
    if not faults / 2 <= new < WORTH:
        return f"{said}, and none of the calls that were seen explains them. {other}"
    return (
        f"{said}: {new:.1%} on memory that was new, which alone is too little to be named, and {faults - new:.1%} that "
        f"none of the calls that were seen explains. {other}"
    )


def _given_back(seen: Observations) -> str:
    """What it gave back by madvise, where that is much of what was ever resident; else nothing."""
    kinds = seen.calls.by_kind if seen.calls is not None else []
    given = next((each for each in kinds if each.name == "madvise"), None)
    if given is None or seen.cost is None or given.kib < (seen.cost.peak_rss_kib or 0) / 2:
        return ""
    site = f", most often from {given.sites[0].frames[0]}" if given.sites else ""
    return (
        f"It calls madvise {given.calls:,} times over {_mib(given.kib)} in all{site}: what is given back so faults "
        "again when it is used."
    )


def nothing_to_try(found: Sequence[Finding], seen: Observations) -> str:
    """Why nothing is tried, without a full stop: nothing is known to help, or it was not seen what it suffers from."""
    if CHOICE in seen.unseen:
        return f"Nothing can be tried: {seen.unseen[CHOICE]}"
    if found or not symptoms.unjudged(seen) or symptoms.unexplained(seen) is None:
        return "There is nothing to try: no setting and no allocator is known to help"
    said = "Nothing is tried, since it was not seen what it suffers from"
    if not seen.service:
        return said
    return (
        f"{said}. freestone doctor --pid PID --allow-tracing looks at the calls of a server under its load; freestone "
        "compare with the same --ready and --load says which allocator serves it best"
    )


def disturbance(seen: Observations) -> str:
    """What watching its heap cost, in a sentence; empty where it was not watched."""
    if seen.heap is None or seen.heap.disturbance is None:
        return ""
    return (
        f"Watching its heap took {seen.heap.disturbance:.2f} times the processor time, in a run that is in no figure."
    )


def by_itself(seen: Observations) -> list[str]:
    """What steers its allocator already, and who says so: a sentence each."""
    told = []
    settings = seen.settings
    if settings.environment:
        told.append(f"its environment sets {_pairs(settings.environment)}")
    if settings.scripts:
        told.append(f"scripts of its own set {_pairs(settings.scripts)}")
    calls = seen.heap.mallopts if seen.heap is not None else []
    if calls:
        said = ", ".join(f"mallopt({knobs.parameter(number)}, {value})" for number, value in calls)
        told.append(f"it calls {said}")
    told += knobs.slips(calls)
    if settings.huge_pages_off:
        told.append("it forbids itself huge pages and folios, by prctl(PR_SET_THP_DISABLE)")
    if settings.locked:
        told.append("it calls mlockall(MCL_FUTURE): what is mapped is resident at once")
    if settings.taken_out:
        told.append(f"taken out of its environment here: {_pairs(settings.taken_out)}; --env NAME=VALUE puts one back")
    return told


def left_out(remedies: Iterable[tuple[Remedy, str]], *, width: int) -> str:
    """What got no rounds though it is for what was found: a line for what ran once, a paragraph for another why."""
    by_why: dict[str, list[str]] = {}
    once = []
    for each, why in remedies:
        if why.startswith(ONE_RUN):
            once.append(f"{title(each)}: {why.removeprefix(ONE_RUN)}")
        else:
            by_why.setdefault(why, []).append(title(each))
    lines = [
        line
        for why, names in by_why.items()
        for line in textwrap.wrap(
            f"Not tried: {', '.join(names)}: {why}", width, subsequent_indent="  ", break_on_hyphens=False
        )
    ]
    if once:
        lines += textwrap.wrap("Run once, and not chosen for rounds (a longer --time-budget has room for more):", width)
        for line in once:
            lines += textwrap.wrap(line, width, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join([*lines, ""]) + "\n" if lines else ""


def _pairs(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(settings.items()))


def suffering(found: Sequence[Finding]) -> str:
    """The heaviest two symptoms with their shares, and how many there are beside; empty where it is well."""
    sick = [each for each in found if each.symptom != "healthy"]
    named = " and ".join(f"{each.symptom}{share(each)}" for each in sick[:2])
    return f"{named}, and {len(sick) - 2} more" if len(sick) > 2 else named


def share(each: Finding) -> str:
    """Of processor time and of memory, in brackets; nothing where neither is known.

    A share that was told with another symptom already, for the same faults, is not told again.
    """
    if each.same_faults_as is not None:
        return f" (the same faults as {each.same_faults_as})"
    parts = []
    if each.time is not None:
        parts.append(f"{each.time:.0%} of {each.time_of}" if each.time >= 0.01 else f"under 1 % of {each.time_of}")
    if each.memory is not None:
        parts.append(f"{each.memory:.0%} of its memory")
    if each.outside_malloc:
        parts.append("outside malloc")
    return f" ({', '.join(parts)})" if parts else ""


def verdict(found: Verdict, *, width: int) -> str:
    """What helped, for the goal; what cannot be had together; what was discarded."""
    lines: list[str] = []
    if found.best is None:
        lines += textwrap.wrap(f"{judgement.nothing(found)}.", width, break_on_hyphens=False)
    else:
        goal, best = judgement.GOALS[found.goal], found.best
        said = f"Best for {goal}: {best.configuration} ({gains(best, found.memory)}){judgement.why(found)}."
        lines += textwrap.wrap(said, width, break_on_hyphens=False)
        if found.unknown:
            lines += textwrap.wrap(f"But {judgement.not_known(found)}.", width, break_on_hyphens=False)
    others = [each for each in found.front if each is not found.best]
    if others:
        lines.append("What is not beaten in both time and memory:")
        for each in [*([found.best] if found.best in found.front and found.best is not None else []), *others]:
            lines += textwrap.wrap(
                f"{each.configuration}: {gains(each, found.memory)}",
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


def next_steps(found: Sequence[Finding], *, observed_only: bool) -> str:
    """What a reader may ask next, a line each."""
    sick = next((each.symptom for each in found if each.symptom != "healthy"), None)
    if sick is None:
        return ""
    more = "Without --observe-only the doctor tries what may help.\n" if observed_only else ""
    return f"What that is: freestone doctor --explain {sick}\n{more}"


def gains(each: Tried, memory: str) -> str:
    """What it did to time, memory and faults: a ratio where it is told apart from no change.

    Args:
        memory: the metric that its memory is.
    """
    parts = (("time", each.time), (MEMORIES.get(memory, "memory"), each.memory), ("page faults", each.faults))
    return ", ".join(f"{title} {_times(ratio)}" for title, ratio in parts if ratio is not None)


def _times(ratio: Ratio) -> str:
    return f"{quantities.ratio_number(ratio)}×" if ratio.different else "the same as far as can be told"


def running(seen: Observations, *, width: int) -> str:
    """What a process did while it was looked at, and where its memory lies."""
    said = (*looked_at(seen), whose(seen), *where(seen))
    lines = [line for each in said for line in textwrap.wrap(each, width, subsequent_indent="  ")]
    return "\n".join(lines) + "\n"


def looked_at(seen: Observations) -> list[str]:
    """What a process did meanwhile, in a sentence."""
    said = []
    if seen.cost is not None:
        cost = seen.cost
        said.append(
            f"For {cost.wall_s:.1f} s: {cost.user_s + cost.sys_s:.2f} s of processor time, {cost.sys_s:.2f} of it in "
            f"the kernel; {cost.minor_faults or 0:,} page faults; {_mib(cost.end_rss_kib)} resident, "
            f"{_mib(cost.resident_before_kib)} when the looking began."
        )
    return said


def whose(seen: Observations) -> str:
    """Where a process's malloc comes from, in a sentence."""
    if seen.malloc_file is not None:
        return f"Its malloc, as far as can be seen, comes from {seen.malloc_file}."
    return "It has loaded no malloc that is known here but its C library's."


def where(seen: Observations) -> list[str]:
    """Where its memory lies, at the last look at it, in a sentence; none where that was not seen."""
    said = []
    if seen.kept_at_end is not None:
        kept = seen.kept_at_end
        parts = [f"{_mib(kept.anonymous_kib)} are no file's", f"{_mib(kept.main_heap_kib)} in the main heap"]
        if kept.thread_heaps:
            parts.append(f"{_mib(kept.thread_heaps_kib)} in {kept.thread_heaps} heaps of threads")
        parts += [f"{_mib(kept.huge_kib)} in huge pages"] if kept.huge_kib else []
        parts += [f"{_mib(kept.lazy_free_kib)} the kernel's to take (LazyFree)"] if kept.lazy_free_kib else []
        said.append(f"Of its memory {', '.join(parts)}; {kept.mappings:,} mappings.")
    return said


def to_try(remedies: Sequence[Remedy], command: Sequence[str], *, width: int) -> str:
    """What may help a process that runs: lines to start it anew by. None of them was tried."""
    told = shlex.join(command)
    lines = []
    for each in remedies:
        run = ["freestone", "run", "-a", notation.write(each.allocator, dict(each.settings)), "--", *command]
        words = [*system_settings.WITHOUT_HUGE_PAGES, *run] if each.huge_pages_off else run
        lines += [
            *([f"  {system_settings.as_root(dict(each.kernel))}"] if each.kernel else []),
            f"  {shlex.join(words)}",
            *textwrap.wrap(each.why, width, initial_indent="    ", subsequent_indent="    "),
        ]
    if not lines:
        return ""
    head = textwrap.wrap(
        f"To try, by starting it anew; none was tried. freestone doctor -- {told} tries it, and keeps what helps (a "
        "server, which does not end by itself, needs --ready and --load):",
        width,
        break_on_hyphens=False,
    )
    return "\n".join([*head, *lines, ""]) + "\n"


def _mib(kib: int | None) -> str:
    return f"{(kib or 0) / 1024:,.1f} MiB"
