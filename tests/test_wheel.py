"""The wheel carries the native parts, and the lab runs from it anywhere."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("wheel")]  # what they share is made once

NATIVE_PARTS = ("libfreestone.so", "freestone-launch", "freestone-escort", "libfreestone-witness.so")


@pytest.fixture(scope="module")
def installed(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder the wheel of this tree was installed into, without its dependencies."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    settings = ["--no-deps", "--no-build-isolation", "-C", f"build-dir={folder / 'build'}"]
    subprocess.run([*pip, "wheel", *settings, "-w", str(folder), str(repository)], check=True)
    (wheel,) = folder.glob("freestone-*.whl")
    assert "-py3-none-linux_" in wheel.name
    subprocess.run([*pip, "install", "--no-deps", "--target", str(folder / "site"), str(wheel)], check=True)
    return folder / "site"


def run(installed: Path, directory: Path, *arguments: str) -> str:
    """What Python prints that sees the installed wheel and its dependencies, and nothing of this working tree.

    ``-S`` keeps the .pth files unread by which a development environment finds the tree first.
    """
    search = os.pathsep.join([str(installed), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    finished = subprocess.run(
        [sys.executable, "-S", *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=True,
    )
    return finished.stdout.strip()


@pytest.mark.parametrize("part", NATIVE_PARTS)
def test_native_parts_are_in_the_wheel(installed: Path, tmp_path: Path, part: str) -> None:
    found = run(installed, tmp_path, "-c", f"from freestone import native; print(native.path({part!r}))")
    assert Path(found).is_relative_to(installed)


def test_the_launcher_keeps_its_executable_bit(installed: Path) -> None:
    assert os.access(installed / "freestone" / "_native" / "freestone-launch", os.X_OK)


def test_the_command_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    version = run(installed, tmp_path, "-c", "import freestone; print(freestone.__version__)")
    assert version in run(installed, tmp_path, str(installed / "bin" / "freestone"), "--version")


def test_the_catalogue_travels_with_the_package(installed: Path, tmp_path: Path) -> None:
    code = "from freestone import allocators; print(*[each.name for each in allocators.discover()])"
    assert "freestone" in run(installed, tmp_path, "-c", code).split()
