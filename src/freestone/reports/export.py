"""What leaves a report for other programs: its figures as pictures, and its times as Google Benchmark writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from freestone.analysis import arms
from freestone.records.schema import Experiment, TrialRecord
from freestone.records.whole import why, write_whole
from freestone.reports import figures, quantities
from freestone.reports.page import ExperimentPart

Picture = Literal["svg", "png"]

_NANOSECONDS = re.compile(r"^(?P<deed>\w+)_ns/(?P<case>[^/]+)$")


class ExportError(Exception):
    """A file could not be written; the message is one line that names it."""


def pictures(part: ExperimentPart, folder: Path, kind: Picture) -> list[Path]:
    """Every figure of an experiment as a picture: ``WORKLOAD.FIGURE.svg``.

    Raises:
        ExportError: one cannot be written.
    """
    written = []
    for name, document in _documents(part):
        target = folder / f"{name}.{kind}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            written.append(figures.save_document(document, target))
        except OSError as error:
            raise ExportError(f"cannot write {target}: {why(error)}") from error
    return written


def _documents(part: ExperimentPart) -> Iterable[tuple[str, dict[str, Any]]]:
    if part.overview is not None:
        overview = json.loads(part.overview.document)
        for layer in overview["layer"]:
            layer["encoding"].pop("href", None)  # a place on the page
        yield "overview", overview
    for table in part.published:
        yield f"published.{_slug(table.title)}", json.loads(table.figure.document)
    for family in part.scaling:
        for figure in family.figures:
            yield (
                f"scaling.{_slug(family.name.replace('…', 'n'))}-by-{_slug(family.axis)}.{_slug(figure.title)}",
                json.loads(figure.document),
            )
    for orders in part.orders:
        if orders.against is not None:
            yield f"orders.{_slug(orders.title)}.{_slug(orders.against.title)}", json.loads(orders.against.document)
    for workload in part.workloads:
        for figure in workload.figures:
            yield f"{_slug(workload.name)}.{_slug(figure.title)}", json.loads(figure.document)
        for each in workload.multiples:
            named = [(panel.name.text, json.loads(panel.document)) for panel in each.panels]
            yield f"{_slug(workload.name)}.{_slug(each.title)}", figures.side_by_side(named)
        for panel in workload.panels:
            yield f"{_slug(workload.name)}.memory-over-time.{_slug(panel.name.text)}", json.loads(panel.document)


def benchmark_files(experiment: Experiment, records: Sequence[TrialRecord], folder: Path) -> list[Path]:
    """A file for each configuration, as Google Benchmark's ``compare.py benchmarks A B`` reads them.

    Each trial is a repetition. Its times are those of the workloads and, of programs that tell them by case, such as
    ``sizes``, nanoseconds by deed and case: ``sizes/malloc/64``.

    Raises:
        ExportError: one cannot be written.
    """
    written = []
    by_arm = arms.by_arm(arms.counted(experiment, records))
    counted = [record for mine in by_arm.values() if arms.verdict(mine)[0] == "ok" for record in arms.good(mine)]
    for configuration in experiment.configurations:
        mine = [r for r in counted if r.configuration == configuration.name and not r.repeat]
        target = folder / f"{_slug(configuration.name)}.json"
        document = {"context": _context(experiment, configuration.name), "benchmarks": list(_rows(experiment, mine))}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(target, json.dumps(document, indent=2) + "\n", mode=0o644)
        except OSError as error:
            raise ExportError(f"cannot write {target}: {why(error)}") from error
        written.append(target)
    return written


def _context(experiment: Experiment, configuration: str) -> dict[str, Any]:
    facts = experiment.machine.facts
    cores = facts.get("cores_allowed") or facts.get("cores_online") or 1
    return {
        "date": experiment.created_at,
        "host_name": experiment.machine.id,
        "executable": configuration,
        "num_cpus": int(cores) if isinstance(cores, int | float) else 1,
        "mhz_per_cpu": 0,
        "cpu_scaling_enabled": False,
        "caches": [],
        "library_build_type": "release",
    }


def _rows(experiment: Experiment, records: Sequence[TrialRecord]) -> Iterable[dict[str, Any]]:
    for workload in experiment.workloads:
        mine = sorted((r for r in records if r.workload == workload.name), key=lambda r: r.round)
        times: dict[str, list[float]] = {}
        for record in mine:
            seconds = quantities.value_of(record, workload.time)
            if seconds is not None:
                times.setdefault(workload.name, []).append(seconds * 1e9)
            for figure, value in (record.figures or {}).items():
                found = _NANOSECONDS.match(figure)
                if found:
                    times.setdefault(f"{workload.name}/{found['deed']}/{found['case']}", []).append(value)
        for name, values in times.items():
            for index, value in enumerate(values):
                yield {
                    "name": name,
                    "run_name": name,
                    "run_type": "iteration",
                    "repetitions": len(values),
                    "repetition_index": index,
                    "threads": 1,
                    "iterations": 1,
                    "real_time": value,
                    "cpu_time": value,
                    "time_unit": "ns",
                }


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", name).strip("-.").lower() or "figure"
