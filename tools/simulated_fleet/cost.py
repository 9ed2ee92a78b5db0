"""What a report of many machines costs, seen from outside: a process of its own, and a browser that opens the page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from freestone.records import store

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True)
class Cost:
    """Of one report."""

    machines: int
    results_bytes: int
    processor_s: float
    """Of ``freestone report``, user and system."""
    peak_kib: int
    """Its largest resident set."""
    page_bytes: int
    open_s: float | None
    """Until a browser has laid the page out and written it down, less what it takes with an empty one; None without a
    browser."""


def of(folder: Path, machines: int) -> Cost:
    """Have a report written of an order, and open it.

    Raises:
        RuntimeError: no report was written, or the browser did not see it whole.
    """
    results = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    page = folder / store.REPORT_FILE
    words = [sys.executable, "-m", "freestone", "report", str(folder)]
    status, processor_s, peak_kib = _run(words)
    if status != 0 or not page.exists():
        raise RuntimeError(f"{' '.join(words)} ended with status {status}")
    return Cost(machines, results, processor_s, peak_kib, page.stat().st_size, _opened(page, machines))


def _run(words: Sequence[str]) -> tuple[int, float, int]:
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def _opened(page: Path, machines: int) -> float | None:
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        return None
    with tempfile.TemporaryDirectory(prefix="freestone-browser-") as home:
        empty = Path(home) / "empty.html"
        empty.write_text("<!DOCTYPE html><title>empty</title>")
        words = [program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={home}/user", "--dump-dom"]
        took = {}
        for file in (empty, empty, page):  # the first makes the browser's own files
            began = time.monotonic()
            done = subprocess.run([*words, file.as_uri()], capture_output=True, text=True, check=False, timeout=120)
            took[file] = time.monotonic() - began
    if not re.search(rf"\b{machines:,} machines?\b", done.stdout):
        raise RuntimeError(f"{page} is not seen whole by {program}")
    return max(0.0, took[page] - took[empty])


def table(costs: Sequence[Cost]) -> str:
    """Costs as Markdown, each also for one machine where there are enough to share what every report costs."""
    lines = [
        "| machines | results | processor time of `freestone report` | its peak memory | `report.html` | opened in |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for each in costs:
        opened = "–" if each.open_s is None else f"{each.open_s:.1f} s"
        lines.append(
            f"| {each.machines:,} | {each.results_bytes / 1e6:.1f} MB | {each.processor_s:.1f} s | "
            f"{each.peak_kib / 1024:.0f} MiB | {each.page_bytes / 1e6:.2f} MB | {opened} |"
        )
    return "\n".join(lines)
