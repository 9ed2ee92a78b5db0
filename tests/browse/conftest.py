"""Folders of results that were never measured, and a server over them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from freestone.browse.server import Server
from freestone.records import store
from freestone.records.schema import Experiment, Machine, Summary, Workload

MakeResult = Callable[..., Path]


class Opens:
    """Every file and folder that this process opens or lists below a folder."""

    below: str | None = None
    seen: list[str]

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.below is not None and event in ("open", "os.listdir", "os.scandir"):
            name = str(arguments[0])
            if name.startswith(self.below):
                self.seen.append(name)


OPENS = Opens()
_HOOKED: list[Opens] = []


@pytest.fixture
def opens(place: Path) -> Iterator[list[str]]:
    """What was opened below the folder of all results since it was last emptied."""
    if not _HOOKED:  # a hook stays for ever
        sys.addaudithook(OPENS)
        _HOOKED.append(OPENS)
    OPENS.below, OPENS.seen = str(place), []
    yield OPENS.seen
    OPENS.below = None


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The folder of all results, empty."""
    made = tmp_path / "results"
    made.mkdir()
    return made


@pytest.fixture
def make_result(place: Path, make_experiment: Callable[..., Experiment]) -> MakeResult:
    """``make_result(number, program=..., best=..., report=...)`` makes a results folder and gives it."""

    def make(
        number: int, *, program: str = "work", verdict: str = "", report: str | None = None, below: str = ""
    ) -> Path:
        name = f"20261120T{number // 3600:02}{number // 60 % 60:02}{number % 60:02}Z-{program}"
        folder = place / below / name if below else place / name
        folder.mkdir(parents=True)
        stamp = f"2026-11-20T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}+00:00"
        head = make_experiment(
            id=name,
            created_at=stamp,
            command_line=["freestone", "compare", "--", f"./{program}"],
            workloads=[Workload(name=program, command=[f"./{program}"])],
            machine=Machine(id=f"machine{number % 3}", facts={"cpu": f"Model {number % 3}", "cores_online": 4}),
        )
        store.write_experiment(folder, head)
        summary = Summary(
            experiment=name, baseline="glibc", rounds_complete=5, cells=[], headline=verdict or f"verdict {number}"
        )
        store.write_summary(folder, summary)
        if report is not None:
            (folder / store.REPORT_FILE).write_text(report)
        return folder

    return make


@pytest.fixture
def server(place: Path) -> Iterator[Server]:
    """The page over that folder, on a port of its own."""
    with Server(place, 0, "freestone") as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield made
        made.shutdown()
        thread.join()
