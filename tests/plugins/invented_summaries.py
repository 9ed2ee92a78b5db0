"""Summaries without statistics: a plain stand-in of made-up records, and any summary at all."""

from __future__ import annotations

import math
import statistics

from hypothesis import strategies as st

from freestone.records.schema import Cell, Experiment, Ratio, Summary, TrialRecord

RATIOS = (
    "wall_s",
    "user_s",
    "sys_s",
    "peak_rss_kib",
    "tree_peak_rss_kib",
    "end_rss_kib",
    "minor_faults",
    "voluntary_switches",
    "involuntary_switches",
)


def summarise(experiment: Experiment, records: list[TrialRecord]) -> Summary:
    """A plain stand-in for the statistics: medians, geometric means, and a normal interval."""
    cells = []
    for workload in (w.name for w in experiment.workloads):
        for configuration in (c.name for c in experiment.configurations):
            mine = [r for r in records if (r.workload, r.configuration, r.repeat) == (workload, configuration, 0)]
            good = [r for r in mine if r.status == "ok"]
            if not good:
                cells.append(
                    Cell(
                        workload=workload,
                        configuration=configuration,
                        status=mine[0].status,
                        reason=mine[0].reason,
                        trials_ok=0,
                        trials_total=len(mine),
                    )
                )
                continue
            base = [r for r in records if (r.workload, r.configuration, r.repeat) == (workload, "glibc", 0)]
            cells.append(
                Cell(
                    workload=workload,
                    configuration=configuration,
                    status="ok",
                    trials_ok=len(good),
                    trials_total=len(mine),
                    median={
                        key: statistics.median(getattr(r.metrics, key) for r in good)
                        for key in (*RATIOS, "major_faults")
                    },
                    ratio={} if configuration == "glibc" else {key: ratio(good, base, key) for key in RATIOS},
                    note="output differs from glibc's" if configuration == "tcmalloc" else None,
                )
            )
    noise = {
        w.name: {
            key: ratio(
                [r for r in records if (r.workload, r.configuration, r.repeat) == (w.name, "glibc", 1)],
                [r for r in records if (r.workload, r.configuration, r.repeat) == (w.name, "glibc", 0)],
                key,
            )
            for key in RATIOS
        }
        for w in experiment.workloads
    }
    return Summary(
        experiment=experiment.id,
        baseline="glibc",
        rounds_complete=len({record.round for record in records}),
        cells=cells,
        noise=noise,
        headline="libfreestone is fastest (15 % less time than glibc) and leanest (12 % less memory): both are real.",
    )


def ratio(one: list[TrialRecord], other: list[TrialRecord], key: str) -> Ratio:
    logs = [
        math.log(getattr(a.metrics, key) / getattr(b.metrics, key))
        for a, b in zip(one, other, strict=True)
        if a.metrics and b.metrics
    ]
    middle, spread = statistics.mean(logs), 2.3 * statistics.stdev(logs) / math.sqrt(len(logs))
    low, high = math.exp(middle - spread), math.exp(middle + spread)
    return Ratio(value=math.exp(middle), low=low, high=high, pairs=len(logs), different=not low <= 1 <= high)


texts = st.text(max_size=60)
numbers = st.floats(0, 1e9, allow_nan=False)
positive = st.floats(1e-3, 1e3)


@st.composite
def any_ratio(draw: st.DrawFn) -> Ratio:
    low, value, high = sorted(draw(st.tuples(positive, positive, positive)))
    if draw(st.booleans()):
        low, high = 0.0, math.inf
    return Ratio(value=value, low=low, high=high, pairs=draw(st.integers(0, 50)), different=draw(st.booleans()))


@st.composite
def any_summary(draw: st.DrawFn) -> Summary:
    names = draw(st.lists(st.text(min_size=1, max_size=24), min_size=1, max_size=6, unique=True))
    workloads = draw(st.lists(st.text(min_size=1, max_size=24), min_size=1, max_size=2, unique=True))
    cells = [
        Cell(
            workload=workload,
            configuration=name,
            status=draw(st.sampled_from(["ok", "ok", "ok", "failed", "timeout", "invalid", "different", "unmeasured"])),
            reason=draw(st.none() | texts),
            trials_ok=draw(st.integers(0, 10)),
            trials_total=10,
            median=draw(st.dictionaries(st.sampled_from(RATIOS), numbers)),
            ratio=draw(st.dictionaries(st.sampled_from(RATIOS), any_ratio())),
            note=draw(st.none() | texts),
        )
        for workload in workloads
        for name in names
    ]
    return Summary(
        experiment="e",
        baseline=draw(st.sampled_from(names)),
        rounds_complete=draw(st.integers(0, 99)),
        cells=cells,
        noise={workloads[0]: draw(st.dictionaries(st.sampled_from(RATIOS), any_ratio(), max_size=3))},
        headline=draw(texts),
    )
