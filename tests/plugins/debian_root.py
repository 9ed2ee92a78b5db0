"""A bare Debian root to install packages into, made by debootstrap with this machine's release and mirror.

Neither clone nor compiler is in it. It is made once, and kept as an archive below build/packages.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ARCHIVES = Path(__file__).resolve().parents[2] / "build" / "packages"
UNDER_CHANGE = ("proc", "sys", "dev", "run", "tmp", "var/cache", "var/log", "var/lib/dpkg", "var/lib/apt")
"""Folders that hold what the system notes of its own work."""
ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
}


def missing() -> str | None:
    """Why there can be no such root here, in a line; None where there can."""
    if os.geteuid() != 0:
        return "not root: no bare Debian root can be made"
    absent = [name for name in ("debootstrap", "unshare", "chroot", "dpkg-deb") if shutil.which(name) is None]
    return f"{', '.join(absent)} is missing: no bare Debian root can be made" if absent else None


def mirror(sources: str, codename: str) -> str | None:
    """The first mirror that has a release, in the text of apt's sources of either form.

    >>> mirror("Types: deb\\nURIs: http://one/debian\\nSuites: bookworm bookworm-updates", "bookworm")
    'http://one/debian'
    """
    for part in re.split(r"\n\s*\n", re.sub(r"^#.*\n?", "", sources, flags=re.MULTILINE)):
        fields = dict(re.findall(r"^(URIs|Suites):[ \t]*(.+)$", part, re.MULTILINE))
        if codename in fields.get("Suites", "").split() and fields.get("URIs"):
            return str(fields["URIs"].split()[0])
    line = re.search(rf"^deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+{re.escape(codename)}\s", sources, re.MULTILINE)
    return str(line.group(1)) if line else None


def required(packages: Iterable[Path]) -> list[str]:
    """The names of what packages depend on, themselves left out; of alternatives the first."""
    names, own = set(), set()
    for package in packages:
        own.add(_field(package, "Package"))
        for word in re.split(r",\s*", _field(package, "Depends") + ", " + _field(package, "Pre-Depends")):
            if match := re.match(r"[a-z0-9][a-z0-9+.-]*", word):
                names.add(match.group())
    return sorted(names - own)


def _field(package: Path, field: str) -> str:
    return subprocess.run(
        ["dpkg-deb", "--field", str(package), field], capture_output=True, text=True, check=True
    ).stdout.strip()


class DebianRoot:
    """A folder that is the root of a Debian system of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in it as root, with a /proc of its own, and gives what it said, whatever its status."""
        inside = f'mount -t proc proc "{self.folder}/proc" && exec chroot "{self.folder}" "$@"'
        apart = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]
        return subprocess.run(
            [*apart, "sh", "-c", inside, "sh", *command],
            env={**ENVIRONMENT, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def succeed(self, *command: str, **environment: str) -> str:
        """What a command in it prints, which must end with 0."""
        done = self.run(*command, **environment)
        assert done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def install(self, packages: Sequence[Path]) -> None:
        """Installs package files by dpkg; what they depend on must be there."""
        for package in packages:
            shutil.copy(package, self.folder / "tmp")
        self.succeed("dpkg", "--install", *(f"/tmp/{package.name}" for package in packages))

    def files(self) -> set[str]:
        """Every path in it, except what the system notes of its own work."""
        found = set()
        for folder, folders, files in os.walk(self.folder):
            inside = os.path.relpath(folder, self.folder)
            folders[:] = [name for name in folders if os.path.normpath(f"{inside}/{name}") not in UNDER_CHANGE]
            found |= {os.path.normpath(f"{inside}/{name}") for name in [*folders, *files]}
        return found


@contextmanager
def debian_root(include: Sequence[str] = ()) -> Iterator[DebianRoot]:
    """A fresh root with the packages named in it; gone at the end."""
    archive = _archive(include)
    with tempfile.TemporaryDirectory(prefix="freestone-root-") as folder:
        root = Path(folder) / "root"
        root.mkdir()
        subprocess.run(["tar", "-C", str(root), "--numeric-owner", "-xpf", str(archive)], check=True)
        yield DebianRoot(root)


def _archive(include: Sequence[str]) -> Path:
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)', Path("/etc/os-release").read_text(encoding="utf-8"), re.MULTILINE))
    codename = release["VERSION_CODENAME"]
    files = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    where = mirror("\n\n".join(each.read_text(encoding="utf-8") for each in sorted(files) if each.is_file()), codename)
    assert where is not None, f"/etc/apt names no mirror of {codename}"
    digest = hashlib.sha256(" ".join([where, *include]).encode()).hexdigest()[:12]
    archive = ARCHIVES / f"root-{codename}-{digest}.tar"
    if not archive.exists():
        downloads = ARCHIVES / "downloads"
        downloads.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="freestone-root-") as folder:
            root = Path(folder) / "root"
            wanted = [f"--include={','.join(include)}"] if include else []
            make = ["debootstrap", "--variant=minbase", f"--cache-dir={downloads}", *wanted, codename, str(root), where]
            done = subprocess.run(make, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{' '.join(make)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
            part = archive.with_suffix(".part")
            subprocess.run(["tar", "-C", str(root), "--numeric-owner", "-cf", str(part), "."], check=True)
            part.rename(archive)
    return archive
