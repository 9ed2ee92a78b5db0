"""Six orders of malloc and free at 16 bytes: what each costs against last-in first-out."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from freestone.records.schema import FIGURE
from freestone.reports.grid import Grid, Piece
from freestone.reports.published import tables
from freestone.reports.published.reproduction import Finding, FindingKind, Measured, Point, Reproduction

LIVE = 10000
_ORDERS = {
    "lifo": f"lifo-16-{LIVE}",
    "fifo": f"fifo-16-{LIVE}",
    "random-free": f"random-16-{LIVE}",
    "interleaved": f"interleaved-16-{LIVE}",
    "mixed-sizes": f"mixed-128-{LIVE}",
    "long-lived": f"half-lived-16-{LIVE}",
}
_SHUFFLED = f"random-shuffled-16-{LIVE}"
_DRAWN = "random-shuffled-by-{}-16-10000-{}-threads"
_PEERS = ("hakmem", "glibc", "mimalloc")
_LIFO, _RANDOM = "lifo", "random-free"
_ALIKE = 1.25
"""Two costs against LIFO that are less than this apart are the same shape: the published rows have no interval."""


@dataclass(frozen=True)
class Cost:
    """Nanoseconds an operation (a malloc or a free): in all, and of that the harness over a null allocator."""

    gross: float
    floor: float

    @property
    def net(self) -> float:
        return max(self.gross - self.floor, 0.0)


def reproduce(measured: Measured) -> Reproduction | None:
    """Needs LIFO and one more order at 16 bytes and 10,000 live blocks."""
    theirs = {row["pattern"]: row for row in tables.rows("patterns-16B")}
    published = {
        peer: {order: ns for order, row in theirs.items() if (ns := tables.number(row, f"{peer}_ns")) is not None}
        for peer in _PEERS
    }
    here = {name: _costs(measured, name) for name in measured.configurations}
    here = {name: costs for name, costs in here.items() if _LIFO in costs and len(costs) > 1}
    if not here:
        return None
    shuffled = {
        name: cost for name in here if (cost := _cost(measured, _SHUFFLED, name)) is not None and _RANDOM in here[name]
    }
    orders = [order for order in _ORDERS if order != _LIFO and any(order in costs for costs in here.values())]
    points = [
        Point(order, peer, False, published[peer][order] / published[peer][_LIFO])
        for order in orders
        for peer in _PEERS
    ]
    points += [
        Point(order, name, True, costs[order].net / costs[_LIFO].net)
        for order in orders
        for name, costs in here.items()
        if order in costs and costs[_LIFO].net > 0 and costs[order].net > 0
    ]
    return Reproduction(
        title="Orders of malloc and free, 16 bytes",
        source="notes on a bitmap allocator (hakmem), glibc, mimalloc: patterns-16B.csv",
        axis="ns an operation, ratio to LIFO",
        points=points,
        table=_table(published, here, shuffled),
        findings=[
            *_shuffle(published, here, shuffled),
            *_generators(measured),
            *_shapes(published, here, orders),
            *_rank(published, here),
        ],
    )


def _costs(measured: Measured, configuration: str) -> dict[str, Cost]:
    found = {order: _cost(measured, workload, configuration) for order, workload in _ORDERS.items()}
    return {order: cost for order, cost in found.items() if cost is not None}


def _cost(measured: Measured, workload: str, configuration: str) -> Cost | None:
    pair, seconds, floor = (
        measured.median(workload, configuration, FIGURE + name) for name in ("ns_per_pair", "seconds", "floor_seconds")
    )
    if pair is None or seconds is None or floor is None or seconds <= 0:
        return None
    return Cost(pair / 2, pair / 2 * floor / seconds)


def _table(
    published: Mapping[str, Mapping[str, float]], here: Mapping[str, Mapping[str, Cost]], shuffled: Mapping[str, Cost]
) -> Grid:
    rows = [
        [Piece(f"{peer}, published"), *(Piece(_ns(values.get(order))) for order in _ORDERS), Piece("–")]
        for peer, values in published.items()
    ]
    for name, costs in here.items():
        line = [Piece(name, "title")]
        line += [Piece(_both(costs.get(order))) for order in _ORDERS]
        rows.append([*line, Piece(_both(shuffled.get(name)))])
    return Grid(
        "Nanoseconds an operation; here: net of the harness (with it)",
        ["", *_ORDERS, "random-free, shuffle on the clock"],
        rows,
        "Published with the shuffle on the clock and the harness in every figure. mixed-sizes here: 16 to 128 bytes.",
    )


def _shuffle(
    published: Mapping[str, Mapping[str, float]], here: Mapping[str, Mapping[str, Cost]], shuffled: Mapping[str, Cost]
) -> Iterable[Finding]:
    added = [values[_RANDOM] - values[_LIFO] for values in published.values()]
    said = (
        f"Published: freeing in random order costs {_listed(added)} ns an operation more than LIFO under "
        f"{_words(published)}, nearly the same for three allocators that have nothing in common."
    )
    if not shuffled:
        yield Finding("open", f"{said} The shuffle was not measured on the clock here.")
        return
    gross = [shuffled[name].gross - here[name][_LIFO].gross for name in shuffled]
    harness = [shuffled[name].floor - here[name][_LIFO].floor for name in shuffled]
    net = [here[name][_RANDOM].net - here[name][_LIFO].net for name in shuffled]
    share = statistics.median(harness) / statistics.median(gross) if statistics.median(gross) > 0 else 0.0
    seen = (
        f"Here, with the shuffle on the clock, {_range(gross)} ns, of which {_range(harness)} ns are the harness over "
        "an allocator that does nothing; with the order drawn before the clock, and net of the harness, "
        f"{_range(net)} ns."
    )
    if share >= 0.5:
        yield Finding("artefact", f"{said} {seen} Most of what was published is the shuffle, not the allocator.")
    else:
        yield Finding("differs", f"{said} {seen} The shuffle explains {share:.0%} of it here.")


def _generators(measured: Measured) -> Iterable[Finding]:
    """What drawing by ``rand()`` adds to the harness over a null allocator, alone and with threads."""
    added = {}
    for threads in ("1", "cores"):
        own, locked = (_draws(measured, _DRAWN.format(generator, threads)) for generator in ("own", "rand"))
        if own is not None and locked is not None:
            added[threads] = locked - own
    if len(added) < 2:
        return
    count = measured.option(_DRAWN.format("rand", "cores"), "--threads")
    yield Finding(
        "artefact",
        f"libc's rand() is one generator behind a lock: a shuffle on the clock that draws by it costs {added['1']:.1f} "
        f"ns an operation more than by a generator of each thread's own, and {added['cores']:.1f} ns of every thread's "
        f"time where {_count(count)} draw at once. That is no allocator's cost; which one the published loop drew by "
        "is not known.",
    )


def _draws(measured: Measured, workload: str) -> float | None:
    """Nanoseconds of one thread an operation, over a null allocator: the harness does not depend on who serves."""
    costs = [cost.floor for name in measured.configurations if (cost := _cost(measured, workload, name)) is not None]
    return statistics.median(costs) * (measured.option(workload, "--threads") or 1) if costs else None


def _count(threads: float | None) -> str:
    return "several threads" if threads is None else f"{threads:.0f} threads"


def _shapes(
    published: Mapping[str, Mapping[str, float]], here: Mapping[str, Mapping[str, Cost]], orders: Sequence[str]
) -> Iterable[Finding]:
    """The orders but the random one: each allocator that is in both tables."""
    agree: list[str] = []
    differ: list[str] = []
    for name, costs in here.items():
        peer = _published_as(name)
        if peer is None or costs[_LIFO].net <= 0:
            continue
        for order in orders:
            if order == _RANDOM or order not in costs:
                continue
            theirs = published[peer][order] / published[peer][_LIFO]
            ours = costs[order].net / costs[_LIFO].net
            alike = max(theirs, ours) / min(theirs, ours) <= _ALIKE if min(theirs, ours) > 0 else False
            (agree if alike else differ).append(f"{name} {order} {theirs:.2f} there, {ours:.2f} here")
    if agree:
        yield Finding("agrees", f"Cost against LIFO, within {_ALIKE - 1:.0%}: {'; '.join(agree)}.")
    if differ:
        yield Finding("differs", f"Cost against LIFO: {'; '.join(differ)}.")


def _rank(published: Mapping[str, Mapping[str, float]], here: Mapping[str, Mapping[str, Cost]]) -> Iterable[Finding]:
    theirs = published["glibc"][_LIFO] / published["mimalloc"][_LIFO]
    glibc = next((costs[_LIFO].net for name, costs in here.items() if name == "glibc"), None)
    for name, costs in here.items():
        if glibc is None or _published_as(name) != "mimalloc" or costs[_LIFO].net <= 0:
            continue
        ours = glibc / costs[_LIFO].net
        kind: FindingKind = "agrees" if (ours > 1) == (theirs > 1) else "differs"
        yield Finding(
            kind, f"LIFO: glibc takes {theirs:.1f} times mimalloc's time there, {ours:.1f} times {name}'s here."
        )


def _published_as(configuration: str) -> str | None:
    if configuration == "glibc":
        return "glibc"
    return "mimalloc" if configuration.startswith("mimalloc") and "+" not in configuration else None


def _ns(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _both(cost: Cost | None) -> str:
    return "–" if cost is None else f"{cost.net:.2f} ({cost.gross:.2f})"


def _range(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.1f}" if f"{low:.1f}" == f"{high:.1f}" else f"{low:.1f} to {high:.1f}"


def _listed(values: Sequence[float]) -> str:
    return _words([f"{value:.1f}" for value in values])


def _words(names: Iterable[str]) -> str:
    words = list(names)
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]
