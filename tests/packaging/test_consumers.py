"""Programs that C and C++ users build against an installed libfreestone: by CMake, pkg-config and Meson."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import freestone
from freestone import native

CONSUMERS = Path(__file__).with_name("consumers")
SONAME = "libfreestone.so.0"
WAYS = ("freestone", "static")
KINDS = {"c": ("cc", "serving.c"), "cxx": ("c++", "serving.cpp"), "quiet": ("cc", "quiet.c")}
"""Programs, and by which compiler they are built. The quiet one's own code calls nothing of malloc."""


@dataclass(frozen=True)
class Told:
    """What a consumer said of the library that serves it."""

    version: str
    serves: bool
    mapped: list[str]


def told(program: Path, **environment: str) -> Told:
    """Runs a consumer."""
    text = subprocess.run(
        [str(program)], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    ).stdout
    (version,) = re.findall(r"^version (.+)$", text, re.MULTILINE)
    (serves,) = re.findall(r"^serves (.+)$", text, re.MULTILINE)
    return Told(version, serves == "yes", re.findall(r"^mapped (.+)$", text, re.MULTILINE))


def made(command: list[str], folder: Path, **environment: str) -> str:
    """What a command that builds prints; it must succeed."""
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def libraries(prefix: Path) -> Path:
    (library,) = prefix.rglob(SONAME)
    return library.parent


def pkg_config(prefix: Path, *options: str) -> list[str]:
    """What pkg-config says to a compiler."""
    words = made(["pkg-config", *options, "freestone"], prefix, PKG_CONFIG_PATH=str(libraries(prefix) / "pkgconfig"))
    return words.split()


def expect_served(program: Path, prefix: Path, way: str, kind: str) -> None:
    identified = subprocess.run(
        [str(program)],
        env={**os.environ, "FREESTONE_OPTIONS": "identify=1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert identified.stderr == f"freestone: {freestone.__version__} serves malloc\n"
    if kind == "quiet":
        return
    said = told(program)
    assert said.version == freestone.__version__
    assert said.serves
    if kind == "c":
        assert said.mapped == ([str(libraries(prefix) / SONAME)] if way == "freestone" else [])


@pytest.fixture(scope="module")
def by_cmake(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what CMake built."""
    folder = tmp_path_factory.mktemp("cmake")
    made(["cmake", "-S", str(CONSUMERS), "-B", str(folder), f"-DCMAKE_PREFIX_PATH={prefix}"], folder)
    made(["cmake", "--build", str(folder)], folder)
    return folder


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_a_program_built_by_cmake_is_served(by_cmake: Path, prefix: Path, way: str, kind: str) -> None:
    expect_served(by_cmake / f"{kind}-{way}", prefix, way, kind)


def test_cmake_takes_this_version_and_refuses_a_later_one(prefix: Path, tmp_path: Path) -> None:
    configure = ["cmake", "-S", str(CONSUMERS), f"-DCMAKE_PREFIX_PATH={prefix}"]
    made([*configure, "-B", str(tmp_path / "this"), f"-DWANTED={freestone.__version__}"], tmp_path)
    later = subprocess.run(
        [*configure, "-B", str(tmp_path / "later"), "-DWANTED=99"], capture_output=True, text=True, check=False
    )
    assert later.returncode != 0
    assert f"version: {freestone.__version__}" in later.stderr


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_a_program_built_by_pkg_config_is_served(prefix: Path, tmp_path: Path, way: str, kind: str) -> None:
    compiler, source = KINDS[kind]
    if way == "static":
        options = ["-static", str(CONSUMERS / source), *pkg_config(prefix, "--static", "--cflags", "--libs")]
    else:
        search = f"-Wl,-rpath,{libraries(prefix)}"
        options = ["-Wl,--as-needed", str(CONSUMERS / source), *pkg_config(prefix, "--cflags", "--libs"), search]
    made([compiler, *options, "-o", "program"], tmp_path)
    expect_served(tmp_path / "program", prefix, way, kind)


@pytest.fixture(scope="module")
def by_meson(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what Meson built."""
    if shutil.which("meson") is None:
        pytest.skip("meson is missing: no program is built by it")
    folder = tmp_path_factory.mktemp("meson")
    search = str(libraries(prefix) / "pkgconfig")
    made(["meson", "setup", str(folder / "build"), str(CONSUMERS)], folder, PKG_CONFIG_PATH=search)
    made(["meson", "compile", "-C", str(folder / "build")], folder)
    return folder / "build"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_a_program_built_by_meson_is_served(by_meson: Path, prefix: Path, way: str, kind: str) -> None:
    expect_served(by_meson / f"{kind}-{way}", prefix, way, kind)


def test_a_linked_program_under_the_preload_holds_one_copy(
    by_cmake: Path, prefix: Path, freestone_library: Path
) -> None:
    said = told(by_cmake / "c-freestone", LD_PRELOAD=str(freestone_library))
    assert said == Told(freestone.__version__, True, [str(freestone_library)])


def test_the_lab_proves_that_one_copy_serves_a_linked_program(by_cmake: Path, tmp_path: Path) -> None:
    compare = [sys.executable, "-m", "freestone", "compare", "-n", "1", "-a", "freestone", "--no-report"]
    made([*compare, "--results", str(tmp_path), "--", str(by_cmake / "quiet-freestone")], tmp_path)
    (records,) = tmp_path.glob("*/trials.jsonl")
    rows = [json.loads(line) for line in records.read_text(encoding="utf-8").splitlines()]
    (proof,) = (row["proof"] for row in rows if row["configuration"] == "freestone")
    assert proof["valid"]
    providers = {entry["file"] for process in proof["processes"] for entry in process["entries"]}
    assert providers == {str(native.path("libfreestone.so"))}
    assert proof["own_heaps"] == []


def test_nothing_installed_knows_where_it_was_made(prefix: Path, repository: Path) -> None:
    made_in = ["/made/", str(repository)]
    texts = [file for file in prefix.rglob("*") if file.suffix in (".cmake", ".pc", ".h")]
    assert len(texts) == 4
    assert not [file for file in texts if any(where in file.read_text(encoding="utf-8") for where in made_in)]
