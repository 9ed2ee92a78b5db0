"""The lines that put an allocator in force, as a shell evaluates them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Tool = Callable[..., subprocess.CompletedProcess[str]]


def test_a_shell_that_evaluates_them_has_its_programs_served(freestone: Tool, tmp_path: Path) -> None:
    told = freestone("run", "-a", "freestone:FREESTONE_OPTIONS=harden=1", "--print", "shell")
    assert told.returncode == 0
    line = f"{told.stdout}\nexec grep -c -E 'libfreestone' /proc/self/maps"
    served = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True, timeout=30)
    assert int(served.stdout) > 0
    options = subprocess.run(
        ["sh", "-c", f"{told.stdout}\nenv"], capture_output=True, text=True, check=True, timeout=30
    )
    assert "FREESTONE_OPTIONS=harden=1" in options.stdout.splitlines()


def test_each_place_has_its_lines_and_the_whole_machine_its_caveats(freestone: Tool) -> None:
    places = ("shell", "systemd", "docker", "kubernetes", "ld.so.preload")
    whole = "\n".join(freestone("run", "--print", place).stdout for place in places)
    assert "export LD_PRELOAD=" in whole
    assert '[Service]\nEnvironment="LD_PRELOAD=/usr/lib/libfreestone.so"' in whole
    assert "ENV LD_PRELOAD=" in whole
    assert "- {name: LD_PRELOAD, value: " in whole
    assert "echo /usr/lib/libfreestone.so >> /etc/ld.so.preload" in whole
    assert "Keep a root shell open" in whole
    assert "# first, as root: install -m 644 " in whole
    settings = freestone("run", "-a", "glibc:MALLOC_ARENA_MAX=2", "--print", "ld.so.preload").stdout
    assert ">>" not in settings


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-a", "glibc"], "glibc is what runs where nothing is set"),
        (["-a", "nonesuch"], "unknown allocator 'nonesuch'"),
        (["-a", "glibc:A=1,freestone"], "takes one allocator, not 2"),
        (["--", "true"], "--print runs nothing; give the allocator and its settings with -a alone"),
        (["--harden"], "--print runs nothing; give the allocator and its settings with -a alone"),
    ],
)
def test_what_has_no_lines_is_one_line(freestone: Tool, words: list[str], told: str) -> None:
    done = freestone("run", "--print", "shell", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_a_setting_that_would_not_be_in_force_has_no_lines(freestone: Tool) -> None:
    """They were printed for production, and the library would have passed over what they set."""
    for part in ("bogus=1", "harden=3", "harden=1,bogus=1"):
        done = freestone("run", "-a", f"freestone:FREESTONE_OPTIONS={part}", "--print", "systemd")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), part
        assert "freestone: a setting would not be in force: FREESTONE_OPTIONS: '" in done.stderr
    assert (
        freestone("run", "-a", "freestone:FREESTONE_OPTIONS=retain_mib=256,harden=1", "--print", "shell").stderr == ""
    )


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("FREESTONE_OPTION=harden=1", "reads no variable of that name; did you mean FREESTONE_OPTIONS?"),
        ("FOO=1", "FOO: freestone reads no variable of that name; it is set for the program alone"),
    ],
)
def test_a_variable_that_is_not_read_costs_a_line(freestone: Tool, setting: str, told: str) -> None:
    done = freestone("run", "-a", f"freestone:{setting}", "--print", "shell")
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert told in done.stderr


def test_a_preload_that_is_gone_is_passed_over_and_one_that_does_not_fit_stops_the_program(
    compile_c: Callable[..., Path], tmp_path: Path, repository: Path
) -> None:
    """As docs/guide/deploy.md says; a library for a newer glibc or for musl wants a name that is not here, too."""
    wanted = compile_c("int wanted;", "-shared", "-fPIC", "-Wl,-soname,libwanted.so", name="libwanted.so")
    unfit = compile_c(
        "extern int wanted; int *at(void) { return &wanted; }",
        "-shared",
        "-fPIC",
        "-x",
        "none",
        str(wanted),
        name="u.so",
    )
    wanted.unlink()
    for file, started in [(tmp_path / "gone.so", True), (unfit, False)]:
        done = subprocess.run(["echo", "started"], env={"LD_PRELOAD": str(file)}, capture_output=True, text=True)
        assert (done.returncode == 0, done.stdout == "started\n") == (started, started), done.stderr
    said = " ".join((repository / "docs" / "guide" / "deploy.md").read_text(encoding="utf-8").split())
    assert "A file that is missing is passed over" in said
    assert "keeps the program from starting" in said
