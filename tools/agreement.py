#!/usr/bin/env python3
"""The lab against GNU time and perf stat, which know nothing of it: the same programs, figures side by side.

Usage: ``.venv/bin/python tools/agreement.py [--rounds N]``

Five workloads of ``field`` and ``apps`` under libfreestone. One session of the lab comes first, then as many runs of
each program under ``/usr/bin/time`` and as many under ``perf stat``, in random order, then the lab once more: the two
sessions of the lab tell how far figures drift by themselves. Wall time, CPU time, peak RSS and faults are those of
whole processes.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from freestone import native
from freestone.records import store
from freestone.records.schema import TrialRecord, Workload

WORKLOADS = ("random-64-10000", "big-random", "mixed-sh6-1-threads", "bigint-factorial", "lua-keys")
FIGURES = ("wall_s", "user_s", "sys_s", "peak_rss_kib", "minor_faults")
Values = dict[str, dict[str, list[float]]]


class Refused(Exception):
    """What is missing, in one line."""


def of_lab(rounds: int, folder: Path) -> tuple[list[Workload], Values]:
    """One session of the lab: the workloads as they were run, and every trial's figures by workload and metric."""
    folder.mkdir()
    only = [word for name in WORKLOADS for word in ("--only", name)]
    command = [sys.executable, "-m", "freestone", "bench", "field", "apps", *only, "-a", "freestone"]
    options = ["--baseline", "freestone", "--settings", "none", "-n", str(rounds), "--results", str(folder)]
    done = subprocess.run([*command, *options], stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Refused(f"freestone bench ended with status {done.returncode}")
    (results,) = folder.iterdir()
    records = [each for each in store.read_trials(results).records if each.status == "ok"]
    return store.read_experiment(results).workloads, _by_figure(records)


def _by_figure(records: Sequence[TrialRecord]) -> Values:
    values: Values = {}
    for record in records:
        for figure in FIGURES:
            value = getattr(record.metrics, figure)
            values.setdefault(record.workload, {}).setdefault(figure, []).append(float(value))
    return values


def by_hand(workloads: Sequence[Workload], rounds: int, scratch: Path) -> tuple[Values, Values]:
    """GNU time's figures and perf stat's, of the same commands in random order."""
    time, perf = shutil.which("time"), shutil.which("perf")
    if time is None or perf is None:
        raise Refused("needs GNU time and perf; install the packages time and linux-perf")
    said = scratch / "said"
    gnu: Values = {}
    stat: Values = {}
    every = [(workload, tool) for workload in workloads for tool in ("time", "perf")] * rounds
    random.Random(1).shuffle(every)
    for workload, tool in every:
        environment = {**os.environ, **workload.environment, "LD_PRELOAD": str(native.path("libfreestone.so"))}
        if tool == "time":
            _run([time, "-f", "%e %U %S %M %R", "-o", str(said), *workload.command], environment, workload)
            numbers = [float(word) for word in said.read_text().split()]
            for figure, value in zip(FIGURES, numbers, strict=True):
                gnu.setdefault(workload.name, {}).setdefault(figure, []).append(value)
        else:
            _run(
                [perf, "stat", "-x", ";", "-e", "minor-faults", "-o", str(said), *workload.command],
                environment,
                workload,
            )
            for line in said.read_text().splitlines():
                words = line.split(";")
                if len(words) > 2 and words[2].startswith("minor-faults"):
                    stat.setdefault(workload.name, {}).setdefault("minor_faults", []).append(float(words[0]))
    return gnu, stat


def _run(command: Sequence[str], environment: Mapping[str, str], workload: Workload) -> None:
    done = subprocess.run(
        command, env=dict(environment), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=workload.directory
    )
    if done.returncode != 0:
        raise Refused(f"{workload.name} ended with status {done.returncode} under {command[0]}")


def table(before: Values, after: Values, gnu: Values, stat: Values) -> str:
    """Medians side by side, with the range of the lab's own trials."""
    lines = [
        "| workload | figure | the lab, before and after | its trials | GNU time | perf stat |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for workload, figures in before.items():
        for figure, values in figures.items():
            both = [*values, *after[workload][figure]]
            one, two = statistics.median(values), statistics.median(after[workload][figure])
            counted = stat.get(workload, {}).get(figure)
            lines.append(
                f"| {workload} | {figure} | {_number(one)}, {_number(two)} "
                f"| {_number(min(both))} to {_number(max(both))} "
                f"| {_number(statistics.median(gnu[workload][figure]))} "
                f"| {_number(statistics.median(counted)) if counted else '–'} |"
            )
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(description="The lab against GNU time and perf stat.")
    parser.add_argument("--rounds", type=int, default=8)
    given = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="freestone-agreement-") as scratch:
            folder = Path(scratch)
            workloads, before = of_lab(given.rounds, folder / "before")
            gnu, stat = by_hand(workloads, given.rounds, folder)
            _, after = of_lab(given.rounds, folder / "after")
        print(table(before, after, gnu, stat))
    except (Refused, store.StoreError) as error:
        print(f"agreement: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
