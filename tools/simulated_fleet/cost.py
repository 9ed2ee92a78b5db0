"""What a report of many machines costs, seen from outside: a process of its own, and a browser that opens the page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
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
    """Until a browser has loaded the page, by its own clock; None without a browser."""


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


_FRAME = """<!DOCTYPE html><title>frame</title><body><iframe src="{page}"></iframe>
<script>addEventListener("load", () => {{ document.body.dataset.loaded = performance.now(); }});</script>
"""


def _opened(page: Path, machines: int) -> float | None:
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        return None
    with tempfile.TemporaryDirectory(prefix="freestone-browser-") as home:
        words = [program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={home}/user", "--dump-dom"]
        frame = Path(home) / "frame.html"
        frame.write_text(_FRAME.format(page=page.absolute().as_uri()))
        shown = [
            subprocess.run([*words, file.as_uri()], capture_output=True, text=True, check=False, timeout=120).stdout
            for file in (page.absolute(), frame)
        ]
    loaded = re.search(r'data-loaded="([0-9.]+)"', shown[1])
    if not re.search(rf"\b{machines:,} machines?\b", shown[0]) or loaded is None:
        raise RuntimeError(f"{page} is not seen whole by {program}")
    return float(loaded[1]) / 1000


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
