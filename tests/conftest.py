"""What every test may ask for: the repository, its native library."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Machines that run tests are busy: how long an example takes says nothing.
settings.register_profile("busy", deadline=None)
settings.load_profile("busy")

pytest_plugins = ["invented_records", "opened_page", "reached_hosts"]

REPOSITORY = Path(__file__).resolve().parents[1]

LONGEST = (
    "programs/test_cpython.py",
    "analysis/test_difference.py",
    "programs/test_databases.py",
    "commands/test_diff.py",
    "commands/test_bench.py",
    "tools/test_check_models.py",
)
"""Files whose tests take long one by one. They begin before the others, so that at the end no process waits for one."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {REPOSITORY / "tests" / name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the working tree the tests came from."""
    return REPOSITORY


@pytest.fixture(scope="session")
def tree_for_all(repository: Path) -> Path:
    """The working tree, where every user may read it; a clone in root's own home is closed to the others."""
    closed = closed_folders(repository)
    if closed:
        pytest.skip(f"other users may not enter {closed[-1]}, and this test changes the user")
    return repository


@pytest.fixture(scope="session")
def open_folder() -> Iterator[Path]:
    """A folder every user may enter, unlike pytest's own: a program under test may change its user and start others."""
    with tempfile.TemporaryDirectory(prefix="freestone-tests-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder).resolve()


@pytest.fixture
def heard_signals() -> Iterator[None]:
    """Signals that ask a program to end are heard, by pytest and by what it starts, as in a terminal's foreground.

    A background job of a script and whatever runs under nohup ignore some of them, and hand that down to every program
    they start; a test that sends one to such a program would wait for nothing.
    """
    default: dict[signal.Signals, Any] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
        signal.SIGQUIT: signal.SIG_DFL,
    }
    deaf = [number for number in default if signal.getsignal(number) == signal.SIG_IGN]
    for number in deaf:
        signal.signal(number, default[number])
    yield
    for number in deaf:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture(scope="session")
def freestone_library(open_folder: Path) -> Path:
    """The libfreestone under test: ``FREESTONE_LIBRARY`` where set, else the one ``make build`` made.

    A copy of it where the tree is closed to other users.
    """
    library = Path(os.environ.get("FREESTONE_LIBRARY", REPOSITORY / "build" / "libfreestone.so")).resolve()
    if not library.is_file():
        pytest.fail(f"no libfreestone at {library}: run 'make build'")
    if closed_folders(library.parent):
        return Path(shutil.copy(library, open_folder))
    return library


def closed_folders(folder: Path) -> list[Path]:
    """The folders on the way to one, itself included, that not every user may enter; the nearest first."""
    return [each for each in (folder, *folder.parents) if not each.stat().st_mode & 0o001]
