"""The system's packages: which one owns a file, and how to get one that is missing."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_INSTALL = {
    "debian": "apt-get install",
    "fedora": "dnf install",
    "arch": "pacman -S",
    "alpine": "apk add",
}
_FAMILIES = {"ubuntu": "debian", "rhel": "fedora", "centos": "fedora", "suse": "fedora", "manjaro": "arch"}


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    """As the distribution writes it, e.g. ``2.0.9+ds-2``."""

    @property
    def upstream_version(self) -> str:
        """The version without what the distribution added: ``1:2.0.9+ds-2`` is ``2.0.9``."""
        version = self.version.split(":", 1)[-1]
        version = version.rsplit("-", 1)[0] if "-" in version else version
        return re.split(r"[+~]", version, maxsplit=1)[0]


def distribution(text: str | None = None) -> str:
    """The family of this distribution: debian, fedora, arch, alpine, or '' when it is none of them.

    Args:
        text: contents of os-release; by default this machine's.
    """
    if text is None:
        places = (Path("/etc/os-release"), Path("/usr/lib/os-release"))
        text = next((place.read_text(errors="replace") for place in places if place.is_file()), "")
    keys = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    names = [keys.get("ID", ""), *keys.get("ID_LIKE", "").strip("\"'").split()]
    for name in (name.strip("\"'") for name in names):
        family = _FAMILIES.get(name, name)
        if family in _INSTALL:
            return family
    return ""


def how_to_get(packages: Mapping[str, list[str]], family: str) -> str | None:
    """The command that installs the first package this release knows, or None where the catalogue names none."""
    names = packages.get(family)
    if not names:
        return None
    known = _known_to_apt(names) if family == "debian" and len(names) > 1 else names
    return f"{_INSTALL[family]} {(known or names)[0]}"


def owners(paths: Iterable[Path]) -> dict[Path, Package]:
    """Which installed package owns each file; files of no package are left out, as are all where no tool can tell."""
    wanted = list(dict.fromkeys(paths))
    if not wanted:
        return {}
    if shutil.which("dpkg-query"):
        return _dpkg_owners(wanted)
    found: dict[Path, Package] = {}
    for path in wanted:
        package = _other_owner(path)
        if package is not None:
            found[path] = package
    return found


def _dpkg_owners(paths: list[Path]) -> dict[Path, Package]:
    # On a merged /usr the package may list /lib/... for a file whose real path is /usr/lib/...
    spellings = {spelling: path for path in paths for spelling in _spellings(path)}
    names: dict[Path, str] = {}
    for line in _output(["dpkg-query", "-S", *spellings]).splitlines():
        owner, _, path = line.partition(": ")
        if path in spellings and not owner.startswith("diversion "):
            names[spellings[path]] = owner.split(",")[0].strip()
    if not names:
        return {}
    listing = _output(["dpkg-query", "-W", "-f", "${binary:Package}\t${Package}\t${Version}\n", *set(names.values())])
    known: dict[str, Package] = {}
    for line in listing.splitlines():
        full, name, version = line.split("\t")
        known[full] = known[name] = Package(name, version)
    return {path: known[name] for path, name in names.items() if name in known}


def _spellings(path: Path) -> list[str]:
    text = str(path)
    return [text, text.removeprefix("/usr")] if text.startswith("/usr/lib") else [text]


def _other_owner(path: Path) -> Package | None:
    if shutil.which("rpm"):
        answer = _output(["rpm", "-qf", "--qf", "%{NAME}\t%{VERSION}-%{RELEASE}\n", str(path)])
        name, _, version = answer.partition("\t")
        return Package(name, version.strip().splitlines()[0]) if version.strip() else None
    if shutil.which("pacman"):
        name, _, version = _output(["pacman", "-Qo", str(path)]).rpartition(" is owned by ")[2].strip().partition(" ")
        return Package(name, version) if version else None
    if shutil.which("apk"):
        owned = re.search(r"is owned by (\S+)-([^-\s]+-r\d+)", _output(["apk", "info", "-W", str(path)]))
        return Package(owned[1], owned[2]) if owned else None
    return None


def _known_to_apt(names: list[str]) -> list[str]:
    if not shutil.which("apt-cache"):
        return []
    known = _apt_names(names[0].rstrip("0123456789.t"), os.environ.get("PATH", ""))
    return [name for name in names if name in known]


@functools.cache
def _apt_names(stem: str, path: str) -> frozenset[str]:
    """Names that begin so, of the apt-cache on that path: half a second each time where apt keeps no cache."""
    return frozenset(_output(["apt-cache", "pkgnames", stem]).split())


def _output(command: list[str]) -> str:
    try:
        environment = {**os.environ, "LC_ALL": "C"}
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=20, check=False, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout  # dpkg-query answers for the files it knows and fails for the others
