#!/usr/bin/env python3
"""Installs what a make target wants from the distribution, or says in one line what is left out.

Usage: ``python3 tools/system_packages.py GROUP... [--only PROGRAM...] [--required] [--tried FILE]``

As root on a machine with apt the missing packages are installed, one after the other so that one a release does not
have never stands in the way of the others. Everywhere else, and for what stays missing, one line on stderr says which
packages are missing and what is therefore left out. A missing package is no error, and the exit status 0, unless
``--required`` says that there is nothing to do without: then it is 1.

``--only`` with programs of `make foreign` leaves out the packages that none of those wants.

``--tried FILE`` remembers what this machine could not provide, so that it is not looked for at every run.
"""

from __future__ import annotations

import argparse
import glob
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

CATALOGUE = Path(__file__).with_name("system_packages.toml")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Package:
    """One thing the distribution may provide: who wants it, how its package is called, how its presence is seen."""

    groups: frozenset[str]
    apt: str
    without: str
    command: tuple[str, ...] = ()
    library: str | None = None
    module: str | None = None
    file: str | None = None
    programs: frozenset[str] = frozenset()

    def pattern(self) -> re.Pattern[str]:
        """The package's whole name as a regular expression."""
        return re.compile(self.apt.replace("{python}", re.escape(PYTHON)))

    def plain_name(self) -> str:
        """A name to print where no list of packages is at hand: the pattern without what varies."""
        name = self.apt.replace("{python}", PYTHON).replace("(t64)?", "").replace("\\", "")
        return name.replace("[0-9.]+", "*").replace("[0-9]+", "*")


def read_catalogue(path: Path = CATALOGUE) -> list[Package]:
    """All packages of the catalogue, in its order."""
    parts = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        Package(
            groups=frozenset(groups.split()),
            apt=apt,
            without=row["without"],
            command=(row["command"],) if isinstance(row.get("command"), str) else tuple(row.get("command", ())),
            library=row.get("library"),
            module=row.get("module"),
            file=row.get("file"),
            programs=frozenset(row.get("programs", "").split()),
        )
        for groups, packages in parts.items()
        for apt, row in packages.items()
    ]


def newest_name(names: Iterable[str], pattern: re.Pattern[str]) -> str | None:
    """Of the names the pattern matches as a whole, the one with the highest numbers in it; None when there is none."""
    matching = [name for name in names if pattern.fullmatch(name)]
    return max(matching, key=lambda name: ([int(n) for n in re.findall(r"\d+", name)], name), default=None)


def cached_libraries() -> list[str]:
    """Names of the libraries the dynamic linker knows; empty where there is no ldconfig."""
    ldconfig = shutil.which("ldconfig") or shutil.which("ldconfig", path="/sbin:/usr/sbin")
    if ldconfig is None:
        return []
    listing = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False).stdout
    return [line.split()[0] for line in listing.splitlines() if "=>" in line]


def is_present(package: Package, libraries: list[str]) -> bool:
    """Whether what the package provides is on this machine, wherever it came from."""
    if any(shutil.which(command) for command in package.command):
        return True
    if package.library and any(name.startswith(package.library) for name in libraries):
        return True
    if package.file and glob.glob(package.file):
        return True
    return package.module is not None and _importable(package.module)


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def missing(packages: list[Package]) -> list[Package]:
    """Those of the packages that are not there."""
    libraries = cached_libraries()
    importlib.invalidate_caches()
    return [package for package in packages if not is_present(package, libraries)]


def one_line(absent: list[Package], *, root: bool, apt: bool) -> str:
    """Which packages are missing, what is therefore left out, and what to do about it."""
    left_out = "; ".join(f"{package.plain_name()} ({package.without})" for package in absent)
    if not apt:
        return f"freestone: this system has no apt; not installed and therefore left out: {left_out}"
    if not root:
        return f"freestone: not root, so these packages stay missing: {left_out}. Run make once as root to add them."
    return f"freestone: apt could not provide, and therefore left out: {left_out}"


class Apt:
    """The few things wanted from apt-get and apt-cache, without a question asked."""

    def __init__(self, run: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run) -> None:
        self._run = run
        self._environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}

    def names(self) -> list[str]:
        """Every package name in apt's lists; few or none before the first update."""
        return self._call(["apt-cache", "pkgnames"]).stdout.split()

    def update(self) -> None:
        """Fetches apt's lists."""
        self._call(["apt-get", "update", "-qq"])

    def install(self, names: list[str]) -> bool:
        """Installs the packages without their recommendations; whether apt says it did."""
        options = ["-y", "-qq", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Use-Pty=0"]
        return self._call(["apt-get", "install", *options, *names]).returncode == 0

    def _call(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return self._run(
            command,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


def install_missing(absent: list[Package], apt: Apt) -> None:
    """Installs what can be found: all in one go, and one by one when that fails."""
    known = apt.names()
    if any(newest_name(known, package.pattern()) is None for package in absent):
        apt.update()
        known = apt.names()
    names = [name for package in absent if (name := newest_name(known, package.pattern()))]
    if not names:
        return
    print(f"freestone: installing {' '.join(names)}", file=sys.stderr, flush=True)
    if apt.install(names):
        return
    apt.update()  # old lists name versions the archive no longer has
    for name in names:
        apt.install([name])


def _fingerprint(absent: list[Package]) -> str:
    return hashlib.sha256("\n".join(sorted(p.apt for p in absent)).encode()).hexdigest()


def main(arguments: list[str] | None = None) -> int:
    """Parses, installs, prints; 0 also when something stays missing that is not required."""
    catalogue = read_catalogue()
    groups = sorted({group for package in catalogue for group in package.groups})
    parser = argparse.ArgumentParser(description="Install what a make target wants from the distribution.")
    parser.add_argument("group", nargs="+", choices=groups)
    parser.add_argument("--only", nargs="*", default=[], help="programs of `make foreign`; without, all")
    parser.add_argument("--required", action="store_true", help="end with 1 where anything stays missing")
    parser.add_argument("--tried", type=Path, help="file that remembers what this machine could not provide")
    options = parser.parse_args(arguments)

    wanted = [package for package in catalogue if package.groups & set(options.group)]
    if options.only:
        wanted = [package for package in wanted if package.programs & set(options.only)]
    absent = missing(wanted)
    if not absent:
        return 0
    root = os.geteuid() == 0
    has_apt = shutil.which("apt-get") is not None
    tried: Path | None = options.tried
    seen_before = tried is not None and tried.is_file() and tried.read_text(encoding="utf-8") == _fingerprint(absent)
    if root and has_apt and not seen_before:
        install_missing(absent, Apt())
        absent = missing(wanted)
        if absent and tried is not None:
            tried.parent.mkdir(parents=True, exist_ok=True)
            tried.write_text(_fingerprint(absent), encoding="utf-8")
    if absent:
        print(one_line(absent, root=root, apt=has_apt), file=sys.stderr)
    return int(bool(absent) and options.required)


if __name__ == "__main__":
    sys.exit(main())
