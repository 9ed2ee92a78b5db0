"""Orders of malloc and free as the page holds them: a cost for each order, and what it is to LIFO's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from freestone.analysis import digits
from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.reports.drawn import NOTHING, Figure, Table
from freestone.reports.orders import chart, data
from freestone.reports.orders.data import LIFO, Cost, Degradation, Member, Orders
from freestone.reports.shown import left_out
from freestone.reports.vega import document

TITLE = "Time against LIFO"


@dataclass(frozen=True)
class OrdersPart:
    """One size and number of live blocks."""

    title: str
    gist: str
    """The least and the most against LIFO, in a line; nothing where there is no such ratio."""
    costs: Table
    against: Figure | None
    """Everything against LIFO; None where there is no ratio."""
    left_out: str
    """What has no result, in a sentence; nothing where everything has one."""


def parts(experiment: Experiment, summary: Summary, records: Sequence[TrialRecord]) -> list[OrdersPart]:
    """Every family of orders that has a result."""
    by_workload: dict[str, list[TrialRecord]] = {}
    for record in records:
        by_workload.setdefault(record.workload, []).append(record)
    found = []
    for family in data.orders(experiment.workloads):
        mine = [record for member in family.members for record in by_workload.get(member.workload, ())]
        costs = data.costs(experiment, summary, mine, family)
        if costs:
            against = data.against_lifo(family, costs)
            rows = [[name, *(_cost(cost.get(member)) for member in family.members)] for name, cost in costs.items()]
            heads = ["", *(member.title for member in family.members)]
            figure = _figure(experiment, family, against)
            absent = left_out(summary, [member.workload for member in family.members])
            found.append(OrdersPart(family.title, _gist(against), Table(heads, rows), figure, absent))
    return found


def _figure(
    experiment: Experiment, family: Orders, against: Mapping[str, Mapping[Member, Degradation]]
) -> Figure | None:
    drawn = chart.draw(experiment, family, against)
    if drawn is None:
        return None
    others = [member for member in family.members if member != family.find(LIFO)]
    rows = [[name, *(_ratio(found.get(member)) for member in others)] for name, found in against.items()]
    said = "; ".join(
        f"{name} {', '.join(f'{member.title} {ratio.value:.2f}' for member, ratio in found.items())}"
        for name, found in against.items()
        if found
    )
    has_intervals = any(ratio.interval is not None for found in against.values() for ratio in found.values())
    return Figure(
        TITLE,
        "Bars in the picture are the intervals." if has_intervals else "",
        f"{TITLE}, {family.title}: {said}.",
        document(drawn),
        Table(["", *(member.title for member in others)], rows),
    )


def _gist(against: Mapping[str, Mapping[Member, Degradation]]) -> str:
    """Without the shuffle on the clock, where the harness is in the ratio."""
    known = [
        (ratio.value, name, member.order)
        for name, found in against.items()
        for member, ratio in found.items()
        if not member.shuffled
    ]
    if not known:
        return ""
    ends = (f"{value:.2f} ({name}, {order})" for value, name, order in (min(known), max(known)))
    return f"to LIFO: {' to '.join(dict.fromkeys(ends))}"


def _cost(cost: Cost | None) -> str:
    if cost is None:
        return NOTHING
    rate = cost.million_a_second
    return f"{cost.gross:.2f} ns, {rate:,.{0 if rate >= 99.5 else 1 if rate >= 9.95 else 2}f} M/s"


def _ratio(found: Degradation | None) -> str:
    if found is None:
        return NOTHING
    if found.interval is None:
        return f"{found.value:.2f} [?]"
    low, high = found.interval
    different = low > 1 or high < 1
    value, low_end, high_end = (digits.number(each, 2, different=different) for each in (found.value, low, high))
    return f"{value} [{low_end}, {high_end}]"
