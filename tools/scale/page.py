"""The page on how libfreestone scales: tables of what was counted, and what in them grows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from scale.contention import Outcome
from scale.counted import ARENA, GROWING, HEAP, OTHER, Cost, Counted

PATTERNS = {
    "churn": "each thread allocates and frees its own blocks",
    "produce": "one of two threads allocates, the other frees",
    "hand-over": "every fourth block that a thread takes or frees belongs to a thread chosen by chance",
}
THREADS = (1, 8, 64)
HEAPS = (1, 8, 64)
CALL_NS = (5.0, 100.0)
HANDOVER_NS = (200.0, 1000.0)
INSTRUCTION_NS = 0.5
GROWING_NS = 5000.0
"""A hold of a lock under which the kernel is asked for addresses."""
PLACES = 8
GROWS, GROWS_AT_LEAST = 1.5, 10.0
"""A count grows that is so many times as high, and by so many a million calls."""
DEEPER, DEEPER_BY = 1.1, 3.0
"""A cost grows that is so many times as high, and by so many instructions."""
LOGARITHMIC = ("malloc of 129 MiB", "free of the 129 MiB")
"""What is known to grow, with the logarithm of the number of mappings."""


@dataclass(frozen=True)
class Run:
    """A pattern played by threads on heaps, without its events."""

    counted: Counted
    waiting: Mapping[tuple[float, float], tuple[Outcome, str]] = field(default_factory=dict)
    """By what a call and a handover take: the outcome, and the kind of the busiest lock."""


Key = tuple[str, int, int]
"""A pattern, heaps, threads."""


@dataclass(frozen=True)
class Depth:
    """What there was beside the measured calls, and what those cost."""

    title: str
    costs: Mapping[str, Cost]


@dataclass(frozen=True)
class Story:
    """All that the page says."""

    day: str
    machine: str
    runs: Mapping[Key, Run]
    held: Mapping[tuple[str, str], float]
    """Instructions while a lock of a pattern and kind is held."""
    live: Sequence[Depth]
    spread: Sequence[Depth]


@dataclass(frozen=True)
class Measure:
    """A column of counts, and why it grows where it does."""

    title: str
    of: Callable[[Run], float]
    why: str


MEASURES = (
    Measure(
        "slow paths",
        lambda run: run.counted.slow_paths,
        "what all threads together may keep is bounded: with more than 8 each has its share of what 8 would have, and "
        "every 32 exchanges gives up what it did not use since. Magazines are smaller and are exchanged more often",
    ),
    Measure(
        "heaps' locks",
        lambda run: run.counted.taken(HEAP),
        "a slow path that the thread's other magazine does not serve takes its heap's lock, or that of a heap to which "
        "blocks go home: it follows the slow paths, and what one thread frees for another",
    ),
    Measure(
        "handed over",
        lambda run: run.counted.handovers(HEAP),
        "blocks that another thread frees go home to their heaps; where there are fewer heaps than threads, these "
        "share one",
    ),
    Measure(
        "the arena's",
        lambda run: run.counted.taken(ARENA),
        "each heap has slabs of its own of each class: more of them become empty, go back and are taken again. It is "
        "the one lock that all heaps share",
    ),
    Measure(
        "handed over ",
        lambda run: run.counted.handovers(ARENA),
        "the arena's lock is everybody's: with many threads it was nearly always another's",
    ),
    Measure(
        "other locks",
        lambda run: run.counted.taken(GROWING) + run.counted.taken(OTHER),
        "of a thread's first magazines and of the street's growth",
    ),
    Measure(
        "lines",
        lambda run: run.counted.travels,
        "tags come and go with slabs, and what all magazines together may hold is one word: the table of places below "
        "names them",
    ),
    Measure(
        "system calls",
        lambda run: run.counted.system_calls,
        "more heaps and threads have begun more memory, and calls give back what the keeper would",
    ),
)


def number(value: float) -> str:
    """Of a count, as a table has it."""
    return f"{value:,.0f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A table whose first columns are text."""
    marks = ["---" if index < left else "---:" for index in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, marks, *rows])


def counts(story: Story) -> str:
    """What grows with threads and with heaps, per million calls: at 1, 8 and 64 threads in each cell."""
    rows = [
        [
            f"{pattern}, {heaps}",
            *(
                " · ".join(number(measure.of(story.runs[pattern, heaps, threads])) for threads in THREADS)
                for measure in MEASURES
            ),
        ]
        for pattern in PATTERNS
        for heaps in HEAPS
    ]
    return table(["pattern, heaps", *(measure.title.strip() for measure in MEASURES)], rows)


def growth(story: Story) -> str:
    """A line for each count that is higher at the most threads, on as many heaps, than with one."""
    lines, flat = [], []
    for measure in MEASURES:
        most = None
        for pattern in PATTERNS:
            one, many = (measure.of(story.runs[pattern, HEAPS[-1], threads]) for threads in (THREADS[0], THREADS[-1]))
            if many > GROWS * one and many - one > GROWS_AT_LEAST and (most is None or many - one > most[2] - most[1]):
                most = (pattern, one, many)
        if most is None:
            flat.append(measure.title.strip())
            continue
        pattern, one, many = most
        title = (
            "The arena's, handed over" if measure.title.endswith(" ") else measure.title[:1].upper() + measure.title[1:]
        )
        lines.append(f"- **{title}**: {number(one)} -> {number(many)} ({pattern}). Why: {measure.why}.")
    if flat:
        both = f"both {GROWS:g} times as many and {GROWS_AT_LEAST:g} a million calls more"
        lines.append(f"- Nowhere {both}: {', '.join(flat)}.")
    return "\n".join(lines)


def places(story: Story) -> str:
    """The lines that travel for an atomic at the most threads on as many heaps."""
    runs = {pattern: story.runs[pattern, HEAPS[-1], THREADS[-1]].counted for pattern in PATTERNS}
    found = {
        pattern: {site.name: (site, travels) for site, travels in counted.most_travelled(PLACES)}
        for pattern, counted in runs.items()
    }
    names = sorted(
        {name for each in found.values() for name in each},
        key=lambda name: -sum(each[name][1] for each in found.values() if name in each),
    )[:PLACES]
    rows = [
        [f"`{name}`", *(number(found[pattern][name][1]) if name in found[pattern] else "" for pattern in PATTERNS)]
        for name in names
    ]
    return table(["place", *PATTERNS], rows)


def waiting(story: Story) -> str:
    """The share of threads' time that they would wait, by the simulator."""
    several = [threads for threads in THREADS if threads > 1]
    head = [
        "pattern, heaps",
        *(f"{t}: {call:g} ns, {ho:g} ns" for t in several for call in CALL_NS for ho in HANDOVER_NS),
    ]
    rows = []
    for pattern in PATTERNS:
        for heaps in HEAPS:
            cells = []
            for threads in several:
                for call in CALL_NS:
                    for handover in HANDOVER_NS:
                        outcome, kind = story.runs[pattern, heaps, threads].waiting[call, handover]
                        whose = f" ({kind} {100 * outcome.held:.0f} %)" if outcome.waiting >= 0.01 else ""
                        cells.append(f"{100 * outcome.waiting:.0f} %{whose}")
            rows.append([f"{pattern}, {heaps}", *cells])
    return table(head, rows)


def held(story: Story) -> str:
    """How long locks are held."""
    rows = [[pattern, *(number(story.held[pattern, kind]) for kind in (HEAP, ARENA))] for pattern in PATTERNS]
    return table(["pattern", "a heap's lock", "the arena's"], rows)


def depth(depths: Sequence[Depth]) -> str:
    """Costs side by side: the mean, and in brackets the longest call."""
    names = list(depths[0].costs)
    rows = [
        [name, *(f"{each.costs[name].mean:,.0f} ({each.costs[name].longest:,})" for each in depths)] for name in names
    ]
    return table(["instructions of", *(each.title for each in depths)], rows)


@dataclass(frozen=True)
class Deeper:
    """An operation that takes more beside something than beside the least, and beside what it takes most."""

    name: str
    first: Cost
    most: Cost
    title: str

    @property
    def grows(self) -> bool:
        """Its longest call is longer too; else more of its calls go the same long way."""
        return self.most.longest > DEEPER * self.first.longest


def deeper(depths: Sequence[Depth]) -> list[Deeper]:
    """Operations whose mean is higher beside any than beside the first."""
    first, found = depths[0].costs, []
    for name, least in first.items():
        most = max(depths, key=lambda each: each.costs[name].mean)
        mean = most.costs[name].mean
        if mean > DEEPER * least.mean and mean - least.mean > DEEPER_BY:
            found.append(Deeper(name, least, most.costs[name], most.title))
    return found


def flat(depths: Sequence[Depth]) -> str:
    """Whether all of it is flat, or what is not."""
    found = deeper(depths)
    if not found:
        more = f"{100 * (DEEPER - 1):.0f} % and {DEEPER_BY:g} instructions"
        return f"Flat: no operation takes {more} more anywhere than on the left."
    lines = []
    for each in found:
        bounded = (
            f"bounded: the longest takes about what it took on the left ({each.first.longest:,}), more go that way"
        )
        why = "it grows" if each.grows else bounded
        lines.append(
            f"- {each.name}: {each.first.mean:,.0f} -> {each.most.mean:,.0f} instructions, {each.title}; {why}."
        )
    return "\n".join(["Flat but for:", "", *lines])
