"""The times of an experiment as Google Benchmark writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from freestone.analysis import arms
from freestone.records.schema import Experiment, TrialRecord
from freestone.records.whole import why, write_whole
from freestone.reports import quantities
from freestone.reports.pictures import ExportError, file_name

_NANOSECONDS = re.compile(r"^(?P<deed>\w+)_ns/(?P<case>[^/]+)$")


def write(experiment: Experiment, records: Sequence[TrialRecord], folder: Path) -> list[Path]:
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
        target = folder / f"{file_name(configuration.name)}.json"
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
