"""System calls about memory: how often each, of what sizes, from where in the program."""

from __future__ import annotations

from freestone.doctor.observations import MemoryCalls, Observations
from freestone.reports.diagnosis import call_sizes
from freestone.reports.drawn import NOTHING, Figure, Table
from freestone.reports.numerals import bytes_in_words
from freestone.reports.quantities import Scale
from freestone.reports.vega import document

MOST_SIZES = 3
"""That stand beside a kind of call; all are in the figure."""


def kinds(seen: Observations) -> Table | None:
    """A row for each kind of call; None where they were not seen, or there were none."""
    if seen.calls is None or not seen.calls.by_kind:
        return None
    rows = [[each.name, f"{each.calls:,}", _amount(each), _sizes(each), _site(each)] for each in seen.calls.by_kind]
    return Table(["call", "calls", "about, in all", "most frequent sizes, up to", "most often from"], rows)


def sizes(seen: Observations) -> Figure | None:
    """How often each kind was about how much."""
    if seen.calls is None:
        return None
    found: dict[str, dict[int, int]] = {each.name: each.sizes for each in seen.calls.by_kind}
    chart = call_sizes.draw(found)
    if chart is None:
        return None
    rows = [
        [kind, bytes_in_words(size << 10), f"{count:,}"]
        for kind, counts in found.items()
        for size, count in sorted(counts.items())
    ]
    said = "; ".join(f"{each.name} {_sizes(each)}" for each in seen.calls.by_kind if each.sizes)
    return Figure(
        "Calls by size",
        "Each call counts under the next power of two. The number is how often; darker is more, by its logarithm.",
        f"Calls about memory by size: {said}.",
        document(chart),
        Table(["call", "size, up to", "calls"], rows),
    )


def sites(seen: Observations) -> Table | None:
    """Where calls come from; None where no stack was taken."""
    if seen.calls is None:
        return None
    rows = [
        [each.name, f"{site.calls:,} of {each.with_stack:,}", " ← ".join(site.frames)]
        for each in seen.calls.by_kind
        for site in each.sites
    ]
    return Table(["call", "of those looked at", "from, and who called that"], rows) if rows else None


def lines(seen: Observations) -> list[str]:
    """Why something is not shown, a line each."""
    if seen.calls is None:
        return [f"Its calls about memory are not shown: {seen.unseen.get('calls', 'they were not looked at')}."]
    if not seen.calls.by_kind:
        return ["It made no call about memory while it was looked at."]
    if sites(seen) is None:
        few = "there are too few of them to take their stacks"
        return [f"Where they come from is not shown: {seen.unseen.get('call sites', few)}."]
    return []


def _amount(each: MemoryCalls) -> str:
    return Scale.over("memory", [each.kib]).text(each.kib) if each.kib else NOTHING


def _sizes(each: MemoryCalls) -> str:
    most = sorted(each.sizes.items(), key=lambda pair: (-pair[1], pair[0]))
    said = [f"{bytes_in_words(size << 10)} ({calls:,})" for size, calls in most[:MOST_SIZES]]
    return ", ".join(said) + (f" and {len(most) - MOST_SIZES} more" if len(most) > MOST_SIZES else "") or NOTHING


def _site(each: MemoryCalls) -> str:
    return each.sites[0].frames[0] if each.sites and each.sites[0].frames else NOTHING
