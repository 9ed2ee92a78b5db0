"""What the tests of packages ask for: what was built, and a bare system to install it in."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import debian_root
import pytest
from debian_root import DebianRoot

PACKAGES = ("libfreestone0", "libfreestone-dev", "freestone")


@pytest.fixture(scope="session")
def debs(repository: Path) -> dict[str, Path]:
    """The Debian packages in dist, by name."""
    found = {}
    for name in PACKAGES:
        files = list((repository / "dist").glob(f"{name}_*.deb"))
        assert len(files) == 1, f"dist has {len(files)} packages {name}: run 'make deb'"
        found[name] = files[0]
    return found


@pytest.fixture(scope="session", params=["component", "deb"])
def prefix(request: pytest.FixtureRequest, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what programs are built with: the component `development`, or the Debian packages."""
    folder = tmp_path_factory.mktemp("prefix") / "made"
    if request.param == "deb":
        debs = request.getfixturevalue("debs")
        for name in ("libfreestone0", "libfreestone-dev"):
            subprocess.run(["dpkg-deb", "--extract", str(debs[name]), str(folder)], check=True)
    else:
        install = [
            "cmake",
            "--install",
            str(repository / "build"),
            "--component",
            "development",
            "--prefix",
            str(folder),
        ]
        subprocess.run(install, check=True, capture_output=True)
    # Whatever knows where it was installed is found out.
    moved = folder.rename(folder.with_name("moved"))
    return moved / "usr" if request.param == "deb" else moved


@pytest.fixture
def bare_root() -> Iterator[DebianRoot]:
    """A Debian system with nothing but what every one has."""
    yield from _root(())


@pytest.fixture
def root_with_needs(debs: dict[str, Path]) -> Iterator[DebianRoot]:
    """A Debian system that has what the packages depend on, and none of them."""
    yield from _root(debian_root.required(debs.values()))


def _root(include: tuple[str, ...] | list[str]) -> Iterator[DebianRoot]:
    reason = debian_root.missing()
    if reason is not None:
        pytest.skip(reason)
    with debian_root.debian_root(include) as root:
        yield root
