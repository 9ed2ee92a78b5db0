"""What of a workload's records is shown, in which order, and what is left out. Pure functions.

After ``docs/reference/what-counts.md``: a configuration with a trial that failed, timed out or was not proved has no
result, whatever its other trials say; one of other output has figures, which are ranked nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from freestone.records.schema import FIGURE, KEPT_MEMORY, Cell, Experiment, Summary, TrialRecord
from freestone.reports import quantities

_OF_PROGRAM = ("user_s", "sys_s", "peak_rss_kib", "tree_peak_rss_kib", "end_rss_kib", *KEPT_MEMORY, "minor_faults")
SWITCHES = ("voluntary_switches", "involuntary_switches")
_OF_SERVICE = (
    *(f"{FIGURE}{key}" for key in ("mean_seconds", "p50_seconds", "p99_seconds", "p999_seconds", "cpu_seconds")),
    "peak_rss_kib",
    "tree_peak_rss_kib",
    *(f"{FIGURE}{key}" for key in ("rss_kib_loaded", "faults_per_1000")),
)


def counting(
    summary: Summary, records: Iterable[TrialRecord], workloads: Collection[str] | None = None
) -> list[TrialRecord]:
    """The trials that may be drawn as results: good ones of configurations all of whose trials count.

    Args:
        workloads: of these alone; None for all.
    """
    results = {(cell.workload, cell.configuration) for cell in summary.cells if cell.status == "ok"}
    return [
        record
        for record in records
        if record.status == "ok"
        and (workloads is None or record.workload in workloads)
        and (record.workload, record.configuration) in results
    ]


def left_out(summary: Summary, workloads: Collection[str]) -> str:
    """What :func:`counting` leaves out, in a sentence: ``Left out: jemalloc (2 of 10 failed).``; else nothing.

    Args:
        workloads: one, or those that stand in a figure together: then what is so on some of them is said with their
            names.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for cell in summary.cells:
        if cell.workload in workloads and cell.status != "ok":
            found.setdefault((cell.configuration, quantities.status_of(cell)), []).append(cell.workload)
    said = [
        f"{name}{'' if len(bad) == len(workloads) else f' on {_listed(bad)}'} ({why})"
        for (name, why), bad in found.items()
    ]
    return f"Left out: {', '.join(said)}." if said else ""


def order_of(experiment: Experiment, summary: Summary, workload: str) -> list[str]:
    """The configurations of a workload: results from the least time to the most, then what is not ranked.

    Of that what has figures all the same, as its output is another, stands first.
    """
    cells = cells_of(summary, workload)
    names = [c.name for c in experiment.configurations if c.name in cells]
    time = quantities.time_of(cells.values())

    def rank(name: str) -> tuple[int, float]:
        cell = cells[name]
        figure = cell.figure(time)
        if cell.status != "ok":
            return (1 if quantities.has_figures(cell) else 2, 0.0)
        return (0, math.inf if figure is None else figure)

    return sorted(names, key=rank)


def values_of(records: Iterable[TrialRecord], workload: str, configuration: str, key: str) -> list[tuple[int, float]]:
    """(round, value) of every trial that has figures, in the order of rounds.

    Also of those with other output, which only a configuration that is not ranked has. The baseline's second runs are
    the check of the machine, and not among them.
    """
    found = []
    for record in records:
        mine = (record.workload, record.configuration, record.repeat) == (workload, configuration, 0)
        if mine and record.status in ("ok", "different"):
            value = quantities.value_of(record, key)
            if value is not None and math.isfinite(value):
                found.append((record.round, value))
    return sorted(found)


def columns_of(cells: Iterable[Cell]) -> list[str]:
    """The quantities of a workload's table behind its time: those that at least one configuration has.

    Of a server under load, what its load says: its whole life holds more than that.
    """
    held = list(cells)
    measured = {key for cell in held if quantities.has_figures(cell) for key in (*cell.mean, *cell.median)}
    if "peak_rss_kib" in measured and not quantities.is_a_tree(held):
        measured.discard("tree_peak_rss_kib")
    return [key for key in (_OF_SERVICE if is_service(held) else _OF_PROGRAM) if key in measured]


def is_service(cells: Iterable[Cell]) -> bool:
    """Whether a server was driven; nothing else has memory after its load."""
    return any(f"{FIGURE}rss_kib_loaded" in cell.median for cell in cells)


def has_switches(cells: Iterable[Cell]) -> bool:
    """Whether context switches are shown; a server's are those of its whole life, and say nothing of its load."""
    held = list(cells)
    return not is_service(held) and any(
        key in cell.median for cell in held if quantities.has_figures(cell) for key in SWITCHES
    )


def switches(cell: Cell) -> str | None:
    """Voluntary and involuntary context switches, as ``114 + 96``; None where a cell has none to show."""
    if not quantities.has_figures(cell) or not any(key in cell.median for key in SWITCHES):
        return None
    return " + ".join(f"{cell.median[key]:,.0f}" if key in cell.median else "–" for key in SWITCHES)


def cells_of(summary: Summary, workload: str) -> dict[str, Cell]:
    """By configuration."""
    return {cell.configuration: cell for cell in summary.cells if cell.workload == workload}


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
