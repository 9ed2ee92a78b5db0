"""The lab's parts on another machine, by an emulator; `make test-emulated` builds them and says where."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from freestone.allocators import elf
from freestone.allocators.discovery import from_path
from freestone.allocators.errors import BrokenLibrary
from freestone.trials import witness

HEAP = ["malloc", "calloc", "realloc", "free"]


@pytest.fixture(scope="module")
def machine() -> str:
    """The other machine, as the emulator calls it."""
    return os.environ["FREESTONE_MACHINE"]


@pytest.fixture(scope="module")
def made(repository: Path) -> Path:
    """The folder that the build for the other machine is in."""
    return repository / os.environ["FREESTONE_BUILD"]


@pytest.fixture(scope="module")
def emulator(repository: Path, machine: str) -> list[str]:
    """The command that runs a program of the other machine.

    With pages of 4 KiB, whatever the build has: with larger ones QEMU 7.2's programs take no second preload, whosever.
    """
    debian = re.search(r"^set\(debian_machine (.+)\)$", (repository / f"cmake/{machine}.cmake").read_text(), re.M)
    assert debian
    return [f"qemu-{machine}-static", "-R", "0x400000000", "-L", f"/usr/{debian[1]}", "-p", "4096"]


def witnessed(emulator: list[str], made: Path, folder: Path, preload: list[Path]) -> witness.Testimony:
    """What the witness wrote in a program of the other machine, which must end with 0."""
    folder.mkdir()
    preloads = ":".join(map(str, [made / "libfreestone-witness.so", *preload]))
    program = made / "allocator/tests/bare/library_shape"  # small, and neither linked to libfreestone nor asking for it
    command = [*emulator, "-E", f"LD_PRELOAD={preloads}", str(program), str(made / "libfreestone.so")]
    environment = {**os.environ, "FREESTONE_WITNESS": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (testimony,) = witness.read_folder(folder)
    return testimony


def test_the_witness_names_the_library_that_serves(emulator: list[str], made: Path, tmp_path: Path) -> None:
    library = made / "libfreestone.so"
    testimony = witnessed(emulator, made, tmp_path / "reports", [library])
    assert testimony.heap_works
    build_id = elf.inspect(library).build_id
    assert build_id
    found = {(entry.symbol, entry.file, entry.build_id) for entry in testimony.entries}
    assert found == {(name, str(library), build_id) for name in HEAP}


def test_the_witness_names_libc_where_nothing_else_serves(emulator: list[str], made: Path, tmp_path: Path) -> None:
    testimony = witnessed(emulator, made, tmp_path / "reports", [])
    assert {(entry.symbol, Path(entry.file).name) for entry in testimony.entries} == {(n, "libc.so.6") for n in HEAP}


def test_a_library_of_another_machine_is_refused_in_one_line(machine: str, made: Path) -> None:
    own, library = elf.inspect("/proc/self/exe"), made / "libfreestone.so"
    facts = elf.inspect(library)
    assert set(HEAP) <= set(facts.exports)
    assert facts.machine != own.machine
    with pytest.raises(BrokenLibrary) as refusal:
        from_path(str(library))
    assert str(refusal.value) == f"{library} is built for {facts.machine}, this system runs {own.machine}"


def test_the_launcher_says_what_it_may_do(emulator: list[str], made: Path) -> None:
    done = subprocess.run(
        [*emulator, str(made / "freestone-launch"), "--probe"], capture_output=True, text=True, check=True
    )
    assert {"perf", "ptrace", "counters"} <= set(json.loads(done.stdout))
