"""Runs that lose a worker in their middle and go on, on a real Slurm and a real Dask, as a terminal has them.

What is printed is what was said, without the table of each single machine, and with this machine's paths taken out. The
two kinds of workers are two sets of processors. The numbers are an example: everything runs on one machine.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from freestone.records import store
from made_part import deliver
from own_clusters import slurm
from own_clusters.dask import Cluster
from simulated_fleet.cost import BROWSERS

MAKER: Final = "make place-transcripts"

PROGRAM: Final = ("python3", "buffers.py")
BUFFERS: Final = """import threading

def fill():
    for number in range(25):
        buffer = b"x" * (40 << 20)
        words = [str(each) for each in range(4000)]

for worker in [threading.Thread(target=fill) for _ in range(2)]:
    worker.start()
"""
ALLOCATORS: Final = "glibc,freestone,mimalloc,jemalloc"
ENOUGH: Final = 4
"""So many runs has a place finished when it is taken away."""

WAIT_S: Final = 300.0


class Terminal:
    """A folder with a program in it, and what was typed and said there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / PROGRAM[1]).write_text(BUFFERS)
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")}
        path = f"{Path(sys.executable).parent}:{kept.get('PATH', os.defpath)}"
        self.environment = {**kept, "PATH": path, "HOME": str(folder), "LC_ALL": "C.UTF-8", "COLUMNS": "110"}
        self.lines: list[str] = []

    def compare(self, on: str, rounds: int, meanwhile: Callable[[Path], None], environment: Mapping[str, str]) -> Path:
        """A comparison at several places, during which something happens; the order's folder.

        Args:
            meanwhile: given the folder of all results; what it tells stands where it happens.

        Raises:
            RuntimeError: it did not end well.
        """
        typed = ["freestone", "compare", "--on", on, "-n", str(rounds), "-a", ALLOCATORS]
        typed += ["--env", "PYTHONMALLOC=malloc", "--", *PROGRAM]
        self.lines.append(f"$ {' '.join(typed)}")
        said = self.folder / "said"
        with said.open("a") as file:
            words = [sys.executable, "-m", *typed]
            with subprocess.Popen(words, cwd=self.folder, env=dict(environment), stdout=file, stderr=file) as process:
                meanwhile(said)
                status = process.wait(WAIT_S)
        self.lines += shortened(said.read_text().splitlines())
        (order,) = (self.folder / "results").iterdir()
        if status != 0:
            raise RuntimeError("\n".join(self.lines))
        return order

    def happened(self, said: Path, what: str) -> None:
        """Put a line of a second terminal where it belongs among those of the first."""
        with said.open("a") as file:
            print(f"# {what}", file=file)

    def text(self) -> str:
        """All of it, without what is this machine's."""
        told = (
            "\n".join(self.lines).replace(str(self.folder), "~").replace(f"{sys.executable} -m freestone", "freestone")
        )
        return re.sub(r"tcp://127\.0\.0\.1:\d+", "tcp://10.0.0.1:8786", told)


_TITLE: Final = r" (?:on|in) \d+ (?:.* )?(?:machines?|places)$"
"""Of the table over all places."""


def shortened(lines: Sequence[str]) -> list[str]:
    """What places say and the table of all of them, without what is told of each single machine. Pure."""
    side = next((at for at, line in enumerate(lines) if re.search(_TITLE, line)), len(lines))
    told = [line for line in lines[:side] if re.match(r"(?:slurm|dask)[\w-]*: |freestone: |# ", line)]
    left_out = ["[the table of each place]", ""] if side < len(lines) else []
    return [*told, *left_out, *lines[side:]]


def finished(folder: Path) -> int:
    """How many runs a place has."""
    try:
        return len(store.read_trials(folder).records)
    except store.StoreError:
        return 0


def runs(folders: Iterable[Path]) -> bytes:
    """The finished runs in the one results folder, as they are on the disk: whole lines."""
    (folder,) = folders
    return (folder / store.TRIALS_FILE).read_bytes().rpartition(b"\n")[0]


def went_on(folder: Path, kept: bytes) -> str:
    """A line that says what became of the runs that were finished when a worker was lost.

    Raises:
        RuntimeError: they are not what they were.
    """
    now = (folder / store.TRIALS_FILE).read_bytes()
    if not now.startswith(kept):
        raise RuntimeError(f"{folder}: runs that were finished are not there")
    first, all_of_them = len(kept.splitlines()), len(now.splitlines())
    return f"\n# of the {all_of_them} runs of {folder.name}, the first {first} are from before\n"


def until(condition: Callable[[], bool]) -> None:
    """Raises RuntimeError: it never comes to hold."""
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError("what was waited for did not happen")
        time.sleep(0.05)


def on_slurm(folder: Path, rounds: int) -> str:
    """Two jobs, of which one is taken away and started again."""
    terminal = Terminal(folder)
    kept: list[bytes] = []
    with slurm.started(folder / "slurm", terminal.environment, pinned={"one": 0}) as cluster:

        def take_away(said: Path) -> None:
            until(lambda: any(finished(each) >= ENOUGH for each in (folder / "results").glob("*/slurm-arm")))
            job = cluster.job("freestone-slurm-arm")
            kept.append(runs((folder / "results").glob("*/slurm-arm")))
            cluster.said("scontrol", "requeue", job)
            terminal.happened(
                said, f"in another terminal: scontrol requeue {job}, which Slurm does by itself where a node fails"
            )

        order = terminal.compare("slurm:rome,arm", rounds, take_away, cluster.environment)
    return terminal.text() + went_on(order / "slurm-arm", kept[0])


def on_dask(folder: Path, rounds: int, picture: Path | None) -> str:
    """Four workers of two kinds, of which one is killed and another comes in its place."""
    terminal = Terminal(folder)
    cluster = Cluster(folder, terminal.environment)
    kept: list[bytes] = []
    try:
        for name in ("small1", "small2"):
            cluster.worker(name, processor=0)
        for name in ("large1", "large2"):
            cluster.worker(name)

        def kill(said: Path) -> None:
            orders = folder / "large2" / "cache" / "freestone" / "orders"
            until(lambda: any(finished(each) >= ENOUGH for each in orders.glob("*")))
            cluster.kill("large2")
            terminal.happened(said, "in another terminal: the worker large2 is killed, and started again")
            until(lambda: not any(store.is_being_written(each) for each in orders.glob("*")))
            kept.append(runs(orders.glob("*")))
            cluster.worker("large2")

        order = terminal.compare(
            f"dask:{cluster.address}#small1,small2,large1,large2", rounds, kill, terminal.environment
        )
    finally:
        cluster.end()
    if picture is not None:
        draw(order / store.REPORT_FILE, picture)
    return terminal.text() + went_on(order / "dask-large2", kept[0])


def draw(report: Path, picture: Path) -> None:
    """The top of a report as a browser shows it by daylight, with one kind of machines opened where there is one.

    Raises:
        RuntimeError: there is no browser.
    """
    from playwright.sync_api import sync_playwright

    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        raise RuntimeError("no Chromium here to draw the report (Debian: chromium)")
    with sync_playwright() as engine:
        browser: Any = engine.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--headless", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1100, "height": 760}, color_scheme="light")
        page.goto(report.absolute().as_uri())
        kinds = page.locator("details.machines")
        if kinds.count() == 0:  # one machine, several times: there is nothing to open
            page.screenshot(path=picture)
        else:
            kinds.locator("summary").first.click()
            end = kinds.last.bounding_box()
            assert end is not None
            page.screenshot(path=picture, clip={"x": 0, "y": 0, "width": 1100, "height": end["y"] + end["height"] + 16})
        browser.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="place_transcripts", description=__doc__)
    parser.add_argument("--rounds", type=int, default=4, help="of each comparison")
    parser.add_argument("--only", choices=["slurm", "dask"], help="one of the two")
    parser.add_argument("--picture", type=Path, help="draw the top of the report of Dask's into this PNG")
    parser.add_argument("--page", type=Path, help="put them in there instead")
    given = parser.parse_args()
    lacking = slurm.missing()
    if given.only != "dask" and lacking is not None:
        print(f"place_transcripts: {lacking}", file=sys.stderr)
        return 1
    made = []
    shown: dict[str, Callable[[Path], str]] = {
        "slurm": lambda folder: on_slurm(folder, given.rounds),
        "dask": lambda folder: on_dask(folder, given.rounds, given.picture),
    }
    with tempfile.TemporaryDirectory(prefix="freestone-places-") as scratch:
        for name, run in shown.items():
            if given.only in (None, name):
                folder = Path(scratch) / name
                folder.mkdir(mode=0o755)
                made.append(f"### {name.capitalize()}\n\n```text\n{run(folder).rstrip()}\n```")
    text = "\n\n".join(made)
    return deliver(given.page, text, MAKER)


if __name__ == "__main__":
    raise SystemExit(main())
