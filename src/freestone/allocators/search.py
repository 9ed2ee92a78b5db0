"""Where shared libraries are on this machine, in the order in which the lab prefers them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from freestone.records import cached

PATH_VARIABLE = "FREESTONE_ALLOCATOR_PATH"
"""Colon-separated folders that come before everything else."""

_STANDARD = (
    "/usr/local/lib",
    "/usr/local/lib/*-linux-*",
    "/usr/local/lib64",
    "/usr/lib/*-linux-*",  # Debian's multiarch folders
    "/usr/lib64",  # Fedora
    "/usr/lib",  # Arch, Alpine
    "/lib/*-linux-*",
    "/lib64",
    "/lib",
)
_CACHE_LINE = re.compile(r"^\s+(?P<soname>\S+) \(.*\) => (?P<path>/.*)$")


@dataclass(frozen=True)
class LibrarySearch:
    """Answers where a soname is. Folders come first, then the loader's cache, then the standard folders."""

    folders: tuple[Path, ...] = ()
    cache: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    standard: tuple[Path, ...] = ()

    @classmethod
    def of_this_machine(cls, environment: Mapping[str, str] = os.environ) -> LibrarySearch:
        named = environment.get(PATH_VARIABLE, "").split(":") + environment.get("LD_LIBRARY_PATH", "").split(":")
        root = Path("/")
        return cls(
            folders=tuple(cached.expanded(folder) for folder in named if folder),
            cache=parse_cache(_loader_cache()),
            standard=tuple(path for pattern in _STANDARD for path in sorted(root.glob(pattern[1:])) if path.is_dir()),
        )

    def candidates(self, sonames: Iterable[str]) -> Iterator[Path]:
        """Existing files for the sonames, each real path once, the preferred first."""
        names = list(sonames)
        seen: set[Path] = set()
        for path in self._places(names):
            real = _real_file(path)
            if real is not None and real not in seen:
                seen.add(real)
                yield real

    def _places(self, names: list[str]) -> Iterator[Path]:
        for folder in self.folders:
            yield from (folder / name for name in names)
        for name in names:
            yield from self.cache.get(name, ())
            yield from (folder / name for folder in self.standard)


def parse_cache(listing: str) -> dict[str, tuple[Path, ...]]:
    """What ``ldconfig -p`` prints, as soname -> paths in the loader's order."""
    found: dict[str, list[Path]] = {}
    for line in listing.splitlines():
        if match := _CACHE_LINE.match(line):
            found.setdefault(match["soname"], []).append(Path(match["path"]))
    return {soname: tuple(paths) for soname, paths in found.items()}


def _loader_cache() -> str:
    # An ordinary user's PATH often leaves out the sbin folders, where ldconfig lives.
    program = shutil.which("ldconfig", path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin")
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, "-p"], capture_output=True, text=True, errors="replace", timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _real_file(path: Path) -> Path | None:
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    return real if real.is_file() else None
