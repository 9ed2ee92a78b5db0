"""What stands below a workload's table: what has no figure and why, what the signs mean, how sure it all is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from freestone.records.schema import Cell, Summary
from freestone.reports import quantities
from freestone.reports.quantities import MEDIAN, SAME, UNKNOWN, quantity_of
from freestone.reports.shown import columns_of, has_switches, is_service

Tone = Literal["", "aside", "warning", "bad"]


@dataclass(frozen=True)
class Note:
    """A line, and how it is meant."""

    text: str
    tone: Tone = "aside"


def below(summary: Summary, workload: str, cells: Sequence[Cell]) -> list[Note]:
    """The lines below the table of one workload.

    Args:
        cells: those of the workload.
    """
    return [
        *_without_result(summary, cells),
        *_remarks(summary, workload, cells),
        *_signs(summary, cells),
        *_how_sure(summary, workload, cells),
    ]


def _without_result(summary: Summary, cells: Sequence[Cell]) -> Iterable[Note]:
    """What failed, was not proved or did other work, each reason once."""
    bad = [cell for cell in cells if cell.status != "ok"]
    told = [f"{quantities.STATUS_WORDS[cell.status]}: {cell.reason or 'no reason recorded'}" for cell in bad]
    # Where all fail alike, the headline has said it, and each row that it failed.
    told_above = len(bad) == len(cells) and len(set(told)) == 1 and (cells[0].reason or "?") in summary.headline
    for why in dict.fromkeys(told) if not told_above else ():
        names = ", ".join(cell.configuration for cell, each in zip(bad, told, strict=True) if each == why)
        yield Note(f"{names} {why}", "bad")
    if any(cell.status == "different" for cell in cells):
        yield Note(quantities.NOT_RANKED)


def _remarks(summary: Summary, workload: str, cells: Sequence[Cell]) -> Iterable[Note]:
    for cell in cells:
        if cell.status == "ok" and cell.trials_ok < cell.trials_total:
            yield Note(f"{cell.configuration}: {cell.trials_ok} of {cell.trials_total} trials count", "warning")
    for note in dict.fromkeys(cell.note for cell in cells if cell.note):
        names = ", ".join(cell.configuration for cell in cells if cell.note == note)
        yield Note(f"{names}: {note}", "warning")
    for note in summary.notes.get(workload, []):
        yield Note(note, "warning")


def _signs(summary: Summary, cells: Sequence[Cell]) -> Iterable[Note]:
    """What the signs of the table mean, those that stand in it."""
    ratios = [quantities.ratio_of(cell, key, summary.baseline) for cell in cells for key in _keys(cells)]
    judged = {quantities.judgement(ratio) for ratio in ratios if ratio is not None}
    if "unknown" in judged:
        yield Note(f"{UNKNOWN}: too few rounds to tell")
    if "same" in judged:
        yield Note(f"{SAME} no difference seen: the interval holds 1")
    if judged & {"less", "more"}:
        yield Note(f"×: ratio to {summary.baseline}")
    if is_service(cells):
        time = quantities.time_of(cells)
        rates = [
            f"{cell.configuration} {1 / figure:,.0f}"
            for cell in cells
            if cell.status == "ok" and (figure := cell.figure(time))
        ]
        yield Note(f"time: of a request, the load's seconds / its requests; per second: {', '.join(rates)}")
        yield Note("CPU, faults: of the server's whole tree while it was driven")
    if has_switches(cells):
        yield Note("switches: voluntary + involuntary context switches")


def _how_sure(summary: Summary, workload: str, cells: Sequence[Cell]) -> Iterable[Note]:
    """The check of the machine, what would show more, and what the figures are."""
    keys, noise, baseline = _keys(cells), summary.noise.get(workload, {}), summary.baseline
    said = [
        f"{quantity_of(key).short} {quantities.ratio_number(noise[key])} {quantities.interval(noise[key])}"
        for key in keys
        if key in noise and quantities.is_known(noise[key])
    ]
    if said:
        yield Note(f"check, {baseline} against itself: {', '.join(said)}")
    restless = [quantity_of(key).short for key in keys if key in noise and noise[key].different]
    if restless:
        yield Note(
            f"{baseline} differs from itself in {', '.join(restless)}: something that is no allocator "
            "changes from run to run, and may be in the other ratios too",
            "warning",
        )
    for number, sentence in enumerate(summary.advice.get(workload, [])):
        yield Note(f"{'to see more: ' if number == 0 else '  '}{sentence}", "")
    if any(cell.is_median(key) for cell in cells for key in keys):
        yield Note(f"{MEDIAN}: a median, since a value was 0")
    if any(quantities.has_figures(cell) for cell in cells):
        ratios = [ratio for cell in cells if cell.status == "ok" for ratio in cell.ratio.values()]
        rounds = f"{summary.rounds_complete} round{'' if summary.rounds_complete == 1 else 's'}"
        how = f"; geometric means{f', ratios to {baseline} paired within rounds' if ratios else ''}"
        sure = "; 19 of 20 such tables have the truth in all of their intervals"
        yield Note(rounds + how + (sure if any(map(quantities.is_known, ratios)) else ""))


def _keys(cells: Sequence[Cell]) -> list[str]:
    return [quantities.time_of(cells), *columns_of(cells)]
