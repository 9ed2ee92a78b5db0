"""What was tried: before and after of the best, each remedy with what came of it, the front of time against memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from freestone.doctor import judgement
from freestone.doctor.diagnosis import Diagnosis, memory_of
from freestone.doctor.judgement import GOALS
from freestone.doctor.page import short
from freestone.doctor.remedies import title
from freestone.doctor.verdict import Tried, Verdict, beats
from freestone.records.schema import Ratio, Summary
from freestone.reports import figures, pieces, quantities
from freestone.reports.diagnosis.parts import CurePart, TriedPart
from freestone.reports.drawn import NOTHING, Figure, Table
from freestone.reports.page import numbers
from freestone.reports.page.parts import Value
from freestone.reports.quantities import Scale, quantity_of
from freestone.reports.shown import cells_of, order_of
from freestone.reports.source import Source
from freestone.reports.theme import COLOURS
from freestone.reports.vega import document


def tried(told: Diagnosis) -> TriedPart | None:
    """What was tried; None where no round was run."""
    if told.source is None or told.verdict is None:
        return None
    verdict, called = told.verdict, short.names(told.source.experiment)
    source = short.renamed(told.source, called)
    (workload,) = source.experiment.workloads
    cells = cells_of(source.summary, workload.name)
    keys = [quantities.time_of(cells.values()), memory_of(told.found, workload), "minor_faults"]
    order = pieces.colour_order(source.experiment)
    cures = [
        CurePart(
            order.index(called[each.configuration]) % COLOURS,
            called[each.configuration],
            f"{title(each.remedy)}: {each.remedy.why}" if each.remedy is not None else "",
            [] if each.discarded is not None else _values(each, keys),
            *outcome(each, verdict, called),
        )
        for each in ranked(verdict)
    ]
    best = called[verdict.best.configuration] if verdict.best is not None else None
    return TriedPart(
        [quantity_of(key).title for key in keys],
        cures,
        before_after(source.summary, workload.name, best) if best is not None else None,
        judgement.price(cells[best]) if best is not None else "",
        _figures(source, workload.name, verdict, keys, called),
    )


def ranked(verdict: Verdict) -> list[Tried]:
    """The best, the rest of the front by time, what gains beside, what does not, what was discarded."""
    place = {each.configuration: number for number, each in enumerate(verdict.front)}

    def rank(each: Tried) -> tuple[int, float]:
        if each.discarded is not None:
            return (4, 0.0)
        if each is verdict.best:
            return (0, 0.0)
        if each.configuration in place:
            return (1, place[each.configuration])
        return (2 if each.gains else 3, each.sure_time * each.sure_memory)

    return sorted(verdict.tried, key=rank)


def outcome(each: Tried, verdict: Verdict, called: Mapping[str, str]) -> tuple[str, str]:
    """What came of a remedy in a word, and why in a sentence.

    Args:
        called: how configurations are called there.
    """
    goal = GOALS[verdict.goal]
    if each.discarded is not None:
        return "discarded", each.discarded
    if each is verdict.best:
        return "best", f"best for {goal}"
    if any(other is each for other in verdict.front):
        more = "" if each.helps(verdict.goal) else f"; for {goal} it is no cure"
        return "kept", f"nothing that was tried beats it in both time and memory{more}"
    if each.gains:
        by = next(called[other.configuration] for other in verdict.front if beats(other, each))
        return "beaten", f"really better, but {by} is as good in both time and memory, and better in one"
    if each.is_unknown(verdict.goal):
        return "not known", "too few rounds to tell whether it is better"
    worse = [word for word, ratio in (("time", each.sure_time), ("memory", each.sure_memory)) if ratio > 1]
    if worse:
        return "no gain", f"really worse in {' and '.join(worse)}, and better in nothing"
    return "no gain", "no difference seen: the intervals of time and memory hold 1"


def before_after(summary: Summary, workload: str, best: str) -> Table:
    """Every quantity of the program as it is and with the best: geometric means over rounds, ratio and interval.

    A median, which stands where some value was 0, is marked.
    """
    cells = cells_of(summary, workload)
    before, after = cells[summary.baseline], cells[best]
    rows = []
    for key in (quantities.time_of(cells.values()), *judgement.COMPARED):
        values = [before.figure(key), after.figure(key)]
        ratio = after.ratio.get(key)
        known = [value for value in values if value is not None]
        if len(known) < len(values) or not any(known):
            continue
        row = [quantity_of(key).title]
        for cell, value in zip((before, after), known, strict=True):
            mark = quantities.MEDIAN if cell.is_median(key) else ""
            row.append(f"{Scale.over(quantity_of(key).kind, [value]).text(value)}{mark}")
        if ratio is None:
            rows.append([*row, NOTHING, NOTHING, NOTHING])
        else:
            said = quantities.verdict(quantity_of(key), ratio)
            rows.append([*row, f"×{quantities.ratio_number(ratio)}", quantities.interval(ratio), said])
    return Table(["", f"before: {summary.baseline}", f"after: {best}", "ratio", "interval", "in words"], rows)


def _values(each: Tried, keys: Sequence[str]) -> list[Value]:
    return [_value(key, ratio) for key, ratio in zip(keys, (each.time, each.memory, each.faults), strict=True)]


def _value(key: str, ratio: Ratio | None) -> Value:
    if ratio is None:
        return Value(NOTHING)
    mark = {"less": "better", "more": "worse", "same": "same", "unknown": "unknown"}[quantities.judgement(ratio)]
    said = quantities.verdict(quantity_of(key), ratio)
    return Value(f"×{quantities.ratio_number(ratio)}", "", quantities.interval(ratio), said, mark)


def _figures(
    source: Source, workload: str, verdict: Verdict, keys: Sequence[str], called: Mapping[str, str]
) -> list[Figure]:
    experiment, summary = source.experiment, source.summary
    cells, order = cells_of(summary, workload), order_of(experiment, summary, workload)
    found = []
    for key in keys:
        if not any(key in cell.ratio for cell in cells.values()):
            continue
        table, name = numbers.ratio_table(order, cells, summary.baseline, key), quantity_of(key).title
        said = "; ".join(f"{row[0]} {row[3] if row[1] != NOTHING else row[1]}" for row in table.rows)
        found.append(
            Figure(
                f"{name}, after against before",
                f"Ratio to {summary.baseline}, paired within rounds, with its interval: left of 1 is less.",
                f"{name} as ratio to {summary.baseline}: {said}.",
                document(figures.ratios(experiment, summary, workload, key)),
                table,
            )
        )
    if any(keys[0] in cell.ratio and keys[1] in cell.ratio for cell in cells.values()):
        found.append(_front(source, workload, verdict, keys[1], called))
    return found


def _front(source: Source, workload: str, verdict: Verdict, memory: str, called: Mapping[str, str]) -> Figure:
    names = [called[each.configuration] for each in verdict.front]
    rows = [
        [
            called[each.configuration],
            *(
                f"{quantities.ratio_number(ratio)} {quantities.interval(ratio)}" if ratio is not None else NOTHING
                for ratio in (each.time, each.memory)
            ),
            "yes" if called[each.configuration] in names else "no",
        ]
        for each in ranked(verdict)
        if each.discarded is None
    ]
    told = ", ".join(names) if names else "nothing"
    return Figure(
        "Time against memory",
        f"Lower left is better in both. Filled: what really gains, and nothing beats in both ({told}). Hollow: the "
        "rest. What is not told apart from no change counts as none.",
        f"Time and {quantity_of(memory).title} as ratios; on the front: {told}.",
        document(figures.trade(source.experiment, source.summary, workload, memory, front=names)),
        Table(["", "time, ratio", f"{quantity_of(memory).title}, ratio", "on the front"], rows),
    )
