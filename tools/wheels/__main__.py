"""Builds the wheels of this tree into a folder, and says for each how large it is.

Usage: ``PYTHONPATH=tools python -m wheels [--dist dist] [--work build/wheels] [--only musl]``

Of each C library that can be had here one wheel is built:

- glibc of Debian 11 (2.31), for old machines: this machine's compiler, that library (``sysroot.py``);
- glibc of Debian 12 (2.36): since 2.34 threads and the dynamic linker's functions are part of libc, which is two
  libraries less to load at the start of every program;
- musl, by ``musl-gcc``.

The tag follows from the versions of symbols (``symbols.py``), and auditwheel has to agree. Where neither glibc can
be had, one wheel is built against this machine's own. pip takes the newest that fits.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wheels import symbols, sysroot

REPOSITORY = Path(__file__).resolve().parents[2]
ARCHITECTURE = os.uname().machine


@dataclass(frozen=True)
class Flavour:
    """One C library that a wheel is built for."""

    name: str
    settings: tuple[str, ...]
    """For pip: ``key=value`` of the build."""
    musl: bool = False
    libraries: Path | None = None
    """Where auditwheel finds the C library, if not among this machine's."""
    tried: tuple[int, int] = (0, 0)
    """The oldest glibc it is tried with: the tag claims no older one, whatever symbols are wanted."""


def flavours(work: Path) -> list[Flavour]:
    """Those that can be built here; a line on stderr for each that cannot."""
    found = []
    for suite, tried in (("bullseye", (2, 31)), ("bookworm", (0, 0))):
        try:
            folder = sysroot.make(suite, work / f"sysroot-{suite}")
        except sysroot.SysrootMissing as missing:
            _say(f"{missing}: no wheel for it")
            continue
        toolchain = REPOSITORY / "packaging" / "wheel" / "sysroot.cmake"
        settings = (f"cmake.define.CMAKE_TOOLCHAIN_FILE={toolchain}", f"cmake.define.FREESTONE_SYSROOT={folder}")
        found.append(Flavour(suite, settings, tried=tried))
    if not found:
        found.append(Flavour("this machine", ()))
    if shutil.which("musl-gcc") is None:
        _say("there is no musl-gcc (Debian: musl-tools): no wheel for musl")
    else:
        found.append(_musl(work / "musl-library"))
    return found


def _musl(folder: Path) -> Flavour:
    """musl by ``musl-gcc``, linked by the name its library has where it is the system's: Debian's copy has none."""
    folder.mkdir(parents=True, exist_ok=True)
    library = Path(shutil.copy(Path(f"/lib/ld-musl-{ARCHITECTURE}.so.1").resolve(), folder / "libc.so"))
    _run([_tool("patchelf"), "--set-soname", f"libc.musl-{ARCHITECTURE}.so.1", library])
    linked = (f"cmake.define.CMAKE_{kind}_LINKER_FLAGS=-L{folder}" for kind in ("EXE", "SHARED", "MODULE"))
    return Flavour("musl", ("cmake.define.CMAKE_C_COMPILER=musl-gcc", *linked), musl=True, libraries=folder)


def platform(files: list[symbols.NativeFile], flavour: Flavour) -> str:
    """The tag that the files earn: ``manylinux_2_31_x86_64``, ``musllinux_1_2_x86_64``."""
    if flavour.musl:
        return f"musllinux_1_2_{ARCHITECTURE}"
    major, minor = max(symbols.newest_glibc(files)[:2], flavour.tried, (2, 5))  # the oldest there is a tag for
    return f"manylinux_{major}_{minor}_{ARCHITECTURE}"


def build(flavour: Flavour, work: Path, dist: Path) -> Path:
    """Builds one wheel and gives it its tag."""
    folder = work / flavour.name.replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    plain = folder / "plain"
    settings = [f"build-dir={folder / 'build'}", *flavour.settings]
    options = [option for setting in settings for option in ("-C", setting)]
    _run(
        [
            sys.executable,
            "-m",
            "pip",
            "--quiet",
            "wheel",
            "--no-deps",
            "--no-build-isolation",
            *options,
            "-w",
            plain,
            REPOSITORY,
        ]
    )
    (wheel,) = plain.glob("freestone-*.whl")
    tag = platform(symbols.of_wheel(wheel), flavour)
    repaired = folder / "repaired"
    # For musl it takes no word but auto.
    where = ["--plat", tag] if flavour.libraries is None else ["--ldpaths", flavour.libraries]
    _run([_tool("auditwheel"), "repair", "--only-plat", *where, "-w", repaired, wheel])
    (finished,) = repaired.glob(f"freestone-*-{tag}.whl")
    if len(symbols.of_wheel(finished)) != len(symbols.of_wheel(wheel)):
        sys.exit(f"freestone: auditwheel put libraries of this machine into {finished.name}: no wheel")
    dist.mkdir(parents=True, exist_ok=True)
    for old in dist.glob(f"freestone-*-{tag}.whl"):
        old.unlink()
    return Path(shutil.move(finished, dist / finished.name))


def _tool(name: str) -> str:
    return str(Path(sysconfig.get_path("scripts")) / name)


def _run(command: Sequence[str | Path]) -> None:
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": path})
    if ran.returncode != 0:
        sys.exit(f"{ran.stdout}{ran.stderr}freestone: {Path(command[0]).name} failed, see above: no wheel")


def _say(line: str) -> None:
    print(f"freestone: {line}", file=sys.stderr)


def main() -> None:
    """Builds all of them, and prints one line for each."""
    parser = argparse.ArgumentParser(prog="wheels")
    parser.add_argument("--dist", type=Path, default=REPOSITORY / "dist")
    parser.add_argument("--work", type=Path, default=REPOSITORY / "build" / "wheels")
    parser.add_argument("--only", help="bullseye, bookworm, musl or 'this machine'")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    for flavour in flavours(work):
        if arguments.only not in (None, flavour.name):
            continue
        wheel = build(flavour, work, arguments.dist.resolve())
        print(f"{wheel.name}  {wheel.stat().st_size:,} bytes  {len(symbols.of_wheel(wheel))} native files")


if __name__ == "__main__":
    main()
