"""A diagnosis as its folder holds it: read once, judged anew from the records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from freestone.analysis import summarise
from freestone.analysis.pareto import Goal
from freestone.doctor import chart as charts
from freestone.doctor import symptoms, verdict
from freestone.doctor.chart import Chart
from freestone.doctor.finding import Finding
from freestone.doctor.observations import Observations
from freestone.doctor.remedies import Remedy
from freestone.doctor.verdict import Verdict
from freestone.records import store
from freestone.records.schema import Summary, TrialRecord, Workload
from freestone.records.store import StoreError
from freestone.reports import source
from freestone.reports.source import Source


@dataclass(frozen=True)
class Diagnosis:
    """What was seen, found and tried."""

    name: str
    """Of its folder."""
    chart: Chart | None
    """None for a process that ran already."""
    seen: Observations
    found: Sequence[Finding]
    goal: Goal
    source: Source | None
    """The rounds with the remedies; None where none was run."""
    verdict: Verdict | None
    """What came of them; likewise."""

    @property
    def interrupted(self) -> bool:
        """Whether a part of it is still to be taken or tried."""
        return self.chart is not None and charts.is_unfinished(self.chart, self.seen)


def is_one(folder: Path) -> bool:
    """Whether a folder holds a diagnosis, or was made to."""
    return any((folder / name).exists() for name in (charts.CHART, charts.OBSERVATIONS))


def read(folder: Path, goal: Goal | None = None) -> Diagnosis:
    """A diagnosis with its verdict, both made anew from what the folder holds.

    Args:
        goal: what the cure is for; None for what the diagnosis was asked for.

    Raises:
        StoreError: it cannot be read, or nothing was seen yet; the message is one line.
    """
    chart = charts.read_if_any(folder)
    seen = charts.read_seen(folder)
    if seen is None:
        raise StoreError(f"{folder}: nothing was seen yet; go on with: freestone doctor --resume {folder}")
    found, asked = symptoms.name(seen), goal or (chart.goal if chart is not None else "balanced")
    rounds, judged = None, None
    if chart is not None and chart.remedies and (folder / store.EXPERIMENT_FILE).exists():
        measured = source.read(folder, summarise)
        if measured.records:
            rounds = Source(
                measured.experiment,
                without(measured.summary, ungiven(chart.remedies, chart.given)),
                measured.records,
                measured.calls,
                measured.instructions,
                measured.damage,
            )
            judged = judge(rounds.summary, chart, found, asked, measured.records)
    return Diagnosis(folder.resolve().name, chart, seen, found, asked, rounds, judged)


def judge(
    summary: Summary, chart: Chart, found: Sequence[Finding], goal: Goal, records: Sequence[TrialRecord] = ()
) -> Verdict:
    """Weigh what was tried."""
    (workload,) = chart.experiment.workloads
    untrue = ungiven(chart.remedies or {}, chart.given)
    return verdict.judge(
        summary,
        workload,
        chart.remedies or {},
        goal,
        memory_of(found, workload),
        discarded=untrue,
        enough_s=enough_s(records, chart.experiment.time_budget_s),
    )


def enough_s(records: Sequence[TrialRecord], budget_s: float | None) -> float | None:
    """A time budget for :data:`freestone.doctor.verdict.LEAST_ROUNDS` rounds as those were, in whole tens of seconds.

    Args:
        records: of the rounds so far.
        budget_s: what was given for them; what trials cost beside their programs' time is in it.
    """
    rounds = {record.round for record in records}
    if not rounds or budget_s is None:
        return None
    spent_s = math.fsum(each.metrics.wall_s + each.metrics.rested_s for each in records if each.metrics is not None)
    return 10 * math.ceil(max(budget_s, spent_s) / len(rounds) * verdict.LEAST_ROUNDS / 10)


def ungiven(by_name: Mapping[str, Remedy], given: Mapping[str, int]) -> dict[str, str]:
    """Configurations whose switch the kernel did not act upon, with that as the reason why they have no figures.

    Args:
        by_name: configuration -> its remedy.
        given: switch -> folios that were given while it was set; without what is not counted.
    """
    return {
        name: "the switch was set, and the kernel gave no folio of that size"
        for name, each in by_name.items()
        if any(given.get(switch) == 0 for switch, _ in each.kernel)
    }


def without(summary: Summary, untrue: Mapping[str, str]) -> Summary:
    """A summary in which some configurations have no figures, for a reason."""
    bare = {"status": "invalid", "median": {}, "mean": {}, "ratio": {}}
    cells = [
        cell.model_copy(update={**bare, "reason": untrue[cell.configuration]})
        if cell.configuration in untrue and cell.status == "ok"
        else cell
        for cell in summary.cells
    ]
    return summary.model_copy(update={"cells": cells})


def memory_of(found: Sequence[Finding], workload: Workload) -> str:
    """The metric that is the program's memory: what is left at the end where that is what it suffers from."""
    if workload.service is not None:
        return "figure:rss_kib_loaded"
    kept = {"retention-after-peak", "pinned-top-fragmentation", "slab-fragmentation", "thread-cache-bloat"}
    return "end_rss_kib" if any(each.symptom in kept for each in found) else "peak_rss_kib"
