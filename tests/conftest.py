"""What every test may ask for: the repository, its native library."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the working tree the tests came from."""
    return REPOSITORY


@pytest.fixture(scope="session")
def tree_for_all(repository: Path) -> Path:
    """The working tree, where every user may read it; a clone in root's own home is closed to the others."""
    closed = [folder for folder in (repository, *repository.parents) if not folder.stat().st_mode & 0o001]
    if closed:
        pytest.skip(f"other users may not enter {closed[-1]}, and this test changes the user")
    return repository


@pytest.fixture(scope="session")
def freestone_library() -> Path:
    """The libfreestone under test: ``FREESTONE_LIBRARY`` where set, else the one ``make build`` made."""
    library = Path(os.environ.get("FREESTONE_LIBRARY", REPOSITORY / "build" / "libfreestone.so"))
    if not library.is_file():
        pytest.fail(f"no libfreestone at {library}: run 'make build'")
    return library
