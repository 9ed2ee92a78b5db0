"""The crate of dist: it says what it is, its own tests pass where there is no clone, and a program of one file uses it.

`make test-crate` packs it before. What can be told without cargo is in tests/allocator/test_crate_sources.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.packages, pytest.mark.xdist_group("crate")]

REPOSITORY = Path(__file__).resolve().parents[2]
CRATE = REPOSITORY / "packaging" / "crate"


def version() -> str:
    found = re.search(r'^__version__ = "(.+)"$', (REPOSITORY / "src/freestone/__init__.py").read_text(), re.MULTILINE)
    assert found
    return found.group(1)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a user's cargo takes from a registry."""
    (packed,) = (REPOSITORY / "dist").glob(f"freestone-{version()}.crate")
    folder = tmp_path_factory.mktemp("crate")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    return folder / f"freestone-{version()}"


def cargo(folder: Path, *arguments: str, status: int = 0, **environment: str) -> str:
    """What cargo says; what it builds is kept for the next run."""
    ran = subprocess.run(
        ["cargo", *arguments],
        cwd=folder,
        env={
            **os.environ,
            "CARGO_TARGET_DIR": str(REPOSITORY / "build" / "crate-target"),
            "CARGO_TERM_COLOR": "never",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def passed(said: str) -> int:
    return sum(
        int(number)
        for number in re.findall(r"^test result: ok\. (\d+) passed; 0 failed; 0 ignored", said, re.MULTILINE)
    )


# --- what it says -----------------------------------------------------------------------------------------------------


def test_every_source_of_the_allocator_is_packed(unpacked: Path) -> None:
    packed = {path.name for path in (unpacked / "native" / "src").iterdir()}
    assert packed == {path.name for path in (REPOSITORY / "allocator" / "src").iterdir()}
    assert (unpacked / "LICENSE").read_text() == (REPOSITORY / "LICENSE").read_text()
    assert not list(unpacked.rglob("*.o"))


# --- what it does -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", [[], ["--features", "override"]], ids=["plain", "override"])
def test_its_own_tests_pass(unpacked: Path, features: list[str]) -> None:
    assert passed(cargo(unpacked, "test", "--quiet", *features)) >= 9


@pytest.mark.parametrize("options", ["harden=1", "guard=20", "keeper=0"])
def test_its_own_tests_pass_in_every_mode(unpacked: Path, options: str) -> None:
    assert (
        passed(cargo(unpacked, "test", "--quiet", "--test", "layouts", "--test", "threads", FREESTONE_OPTIONS=options))
        >= 6
    )


def test_clippy_finds_nothing(unpacked: Path) -> None:
    if subprocess.run(["cargo", "clippy", "--version"], capture_output=True).returncode != 0:
        pytest.skip("cargo has no clippy here")
    for features in ([], ["--features", "override"]):
        cargo(unpacked, "clippy", "--quiet", "--all-targets", *features, "--", "-D", "warnings")


PROGRAM = """
#[global_allocator]
static ALLOCATOR: freestone::Freestone = freestone::Freestone;

fn main() {
    let words: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    println!("{} {} {}", freestone::version(), words.len(), freestone::statistics().in_use > 0);
}
"""

WRONG_SIZE = """
use std::alloc::{alloc, dealloc, Layout};

#[global_allocator]
static ALLOCATOR: freestone::Freestone = freestone::Freestone;

fn main() {
    unsafe {
        // Unseen, or the compiler leaves out both calls.
        let block = std::hint::black_box(alloc(Layout::from_size_align_unchecked(100, 1)));
        dealloc(block, Layout::from_size_align_unchecked(5000, 1));
    }
}
"""


def program(folder: Path, unpacked: Path, source: str, features: str = "") -> Path:
    """A program that has the crate by its path, built; the file of it."""
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.rs").write_text(source, encoding="utf-8")
    (folder / "Cargo.toml").write_text(
        '[package]\nname = "guest"\nversion = "0.0.1"\nedition = "2021"\n\n[dependencies]\n'
        f'freestone = {{ path = "{unpacked}", features = [{features}] }}\n',
        encoding="utf-8",
    )
    said = cargo(folder, "build", "--quiet", "--release", "--message-format", "json-render-diagnostics")
    rows = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    (built,) = [row["executable"] for row in rows if row.get("executable")]
    return Path(shutil.copy(built, folder / "guest"))


@pytest.mark.parametrize("place", ["packed", "clone"])
def test_a_program_of_one_file_is_served(tmp_path: Path, unpacked: Path, place: str) -> None:
    built = program(tmp_path / "guest", unpacked if place == "packed" else CRATE, PROGRAM)
    ran = subprocess.run([built], capture_output=True, text=True, check=True)
    assert ran.stdout == f"{version()} 1000 true\n"


def test_it_is_unpacked_and_named_as_the_guide_says(tmp_path: Path) -> None:
    guide = (REPOSITORY / "docs" / "guide" / "install.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^.*\btar xzf freestone-\*\.crate.*$", guide, re.MULTILINE)
    (manifest,) = re.findall(r"```toml\n(\[dependencies\]\nfreestone = .*)\n```", guide)
    assert manifest in (CRATE / "README.md").read_text(encoding="utf-8")
    shutil.copy(next((REPOSITORY / "dist").glob(f"freestone-{version()}.crate")), tmp_path)
    subprocess.run(["sh", "-ec", line], cwd=tmp_path, check=True)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.rs").write_text(PROGRAM, encoding="utf-8")
    package = '[package]\nname = "guide"\nversion = "0.0.1"\nedition = "2021"\n\n'
    (tmp_path / "Cargo.toml").write_text(f"{package}{manifest}\n", encoding="utf-8")
    assert f"{version()} 1000 true" in cargo(tmp_path, "run", "--quiet", "--release")


def test_nothing_says_that_it_is_on_a_registry(unpacked: Path) -> None:
    said = (unpacked / "README.md").read_text(encoding="utf-8")
    assert "crates.io" not in said
    assert "version =" not in said


def test_malloc_is_offered_only_where_that_is_asked_for(tmp_path: Path, unpacked: Path) -> None:
    def offered(built: Path) -> set[str]:
        listed = subprocess.run(["nm", "--defined-only", built], capture_output=True, text=True, check=True)
        return {line.split()[-1] for line in listed.stdout.splitlines()}

    family = {"malloc", "free", "calloc", "realloc", "aligned_alloc", "mallopt", "prctl", "syscall"}
    assert offered(program(tmp_path / "plain", unpacked, PROGRAM)) & family == set()
    assert offered(program(tmp_path / "override", unpacked, PROGRAM, '"override"')) >= family


def test_a_size_that_is_wrong_is_found(tmp_path: Path, unpacked: Path) -> None:
    built = program(tmp_path / "guest", unpacked, WRONG_SIZE)
    ran = subprocess.run([built], capture_output=True, text=True)
    assert ran.returncode < 0
    assert "freestone" in ran.stderr
    assert "5000" in ran.stderr
