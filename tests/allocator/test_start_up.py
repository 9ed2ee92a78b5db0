"""What every program that starts under the library pays for it: names that the dynamic linker has to look up."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import time
from pathlib import Path

import callgrind
import pytest

pytestmark = pytest.mark.xdist_group("measured")  # what they measure or look for, others would disturb

MOST = 19
"""Names looked up; each is some 800 instructions of every start."""
MAY_BE_MISSING = {"freestone_default_options", "dl_iterate_phdr", "_r_debug", "__libc_single_threaded"}
"""A program's own options, which it defines if it wants some, and what a static program or an older libc may lack."""
NEAR = 0.03
"""How far the instructions of a start may be from what the page says, where libc is as it was there."""
NOTHING = "int main(void) { return 0; }"


@pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm (package binutils)")
def test_few_names_are_looked_up_and_none_in_vain(freestone_library: Path) -> None:
    """A weak name that nobody defines, such as the compiler's start files have, is searched for in every library."""
    command = ["nm", "--dynamic", "--undefined-only", str(freestone_library)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    kinds = {line.split()[1]: line.split()[0] for line in told.splitlines()}
    assert {name.partition("@")[0] for name, kind in kinds.items() if kind != "U"} <= MAY_BE_MISSING
    assert 0 < len(kinds) <= MOST, sorted(kinds)


def _calls_of_a_start(program: Path, place: Path, preload: Path | None) -> int:
    told = place / "calls"
    command = ["strace", "-o", str(told), *(["-E", f"LD_PRELOAD={preload}"] if preload else []), str(program)]
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "FREESTONE_OPTIONS")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
    return sum("(" in line for line in told.read_text().splitlines())


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace (package strace)")
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_start_makes_few_system_calls(freestone_library: Path, tmp_path: Path) -> None:
    """Fifteen more than without it.

    Ten are the loader's, which finds, maps and closes it; three look at what the process was started with; two make the
    table of libc's functions writable while it is filled.
    """
    program = _empty(tmp_path)
    alone = _calls_of_a_start(program, tmp_path, None)
    assert _calls_of_a_start(program, tmp_path, freestone_library) <= alone + 15


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the page has x86-64 instructions")
@pytest.mark.skipif(platform.libc_ver() != ("glibc", "2.36"), reason="the page has those of glibc 2.36")
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind (package valgrind)")
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_start_takes_the_instructions_that_the_page_says(freestone_library: Path, tmp_path: Path) -> None:
    program = _empty(tmp_path)
    alone = _instructions_of_a_start(program, None)
    more = _instructions_of_a_start(program, freestone_library) - alone
    page = (Path(__file__).parents[2] / "docs" / "performance.md").read_text(encoding="utf-8")
    told = re.search(r"takes ([\d,]+) instructions more than under glibc, or ([\d.]+) %", page)
    assert told is not None, "docs/performance.md does not say what a start takes"
    assert more == pytest.approx(int(told[1].replace(",", "")), rel=NEAR)
    assert 100 * more / alone == pytest.approx(float(told[2]), rel=NEAR)


def _empty(place: Path) -> Path:
    program = place / "empty"
    subprocess.run(["cc", "-x", "c", "-o", program, "-"], input=NOTHING, check=True, text=True)
    return program


def _instructions_of_a_start(program: Path, preload: Path | None) -> int:
    environment = {"PATH": os.environ["PATH"]} | ({"LD_PRELOAD": str(preload)} if preload else {})
    return callgrind.instructions([str(program)], environment)


def _peak_kib(process: subprocess.Popen[bytes], most: int) -> int:
    """The highest resident set while the process runs, which is killed when that exceeds `most`."""
    peak = 0
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.M)
        peak = max(peak, int(found[1]) if found else 0)
        if peak > most:
            process.kill()
        time.sleep(0.02)
    return peak


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the emulator's guest is the library of this machine")
@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="needs qemu-x86_64 (package qemu-user)")
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_guest_of_an_emulator_costs_it_little_memory(freestone_library: Path, tmp_path: Path) -> None:
    """QEMU before 8.0 keeps a record of 48 bytes for each page that was ever mapped, 12.6 GB for a tebibyte."""
    most = 512 * 1024
    program = _empty(tmp_path)
    settings = [f"LD_PRELOAD={freestone_library}", "FREESTONE_OPTIONS=identify=1"]
    command = ["qemu-x86_64", *(word for each in settings for word in ("-E", each)), str(program)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        peak = _peak_kib(process, most)
        assert process.stderr is not None
        assert b"serves malloc" in process.stderr.read()
    assert peak <= most
    assert process.returncode == 0
