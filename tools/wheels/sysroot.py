"""The C library of an older Debian in a folder: programs that are linked against it run on old machines.

Taken with apt from the mirror this machine uses, its signatures checked as for any package; nothing is installed, and
who does it need not be root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

COMPILERS = {"bullseye": "10", "bookworm": "12"}
"""Each release's own: what a static program unwinds with is the compiler's, and made for one C library."""
PACKAGES = ("libc6", "libc6-dev", "libgcc-s1", "linux-libc-dev")


class SysrootMissing(RuntimeError):
    """The older C library cannot be had here; the message says why in one line."""


def make(suite: str, folder: Path) -> Path:
    """The folder with the C library of Debian's ``suite``, made if it is not there yet.

    Raises:
        SysrootMissing: this is no Debian, or its mirror has that release no more.
    """
    done = folder / ".made"
    if done.exists():
        return folder
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise SysrootMissing(f"the C library of Debian {suite} is taken with {tool}, which this machine has not")
    shutil.rmtree(folder, ignore_errors=True)
    packages = folder / "packages"
    packages.mkdir(parents=True)
    download(suite, folder / "apt", packages, *PACKAGES, f"libgcc-{COMPILERS[suite]}-dev")
    for package in sorted(packages.glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", package, folder], check=True)
    shutil.rmtree(packages)
    shutil.rmtree(folder / "apt")
    _lead_inside(folder)
    for unwinder in folder.glob("usr/lib/gcc/*/*/libgcc_eh.a"):
        (libraries,) = folder.glob("usr/lib/*-linux-gnu")
        (libraries / unwinder.name).symlink_to(os.path.relpath(unwinder, libraries))
    done.touch()
    return folder


def mirror() -> str:
    """The address this machine takes Debian's own packages from."""
    told = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(LABEL)", "Origin: Debian"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = [line.split()[0] for line in told.stdout.splitlines() if line.endswith(" Debian")]
    if not found:
        raise SysrootMissing("apt has no mirror of Debian here")
    return found[0]


def download(suite: str, work: Path, into: Path, *packages: str, source: bool = False) -> None:
    """Packages of a release into a folder, by lists of their own in ``work``; with ``source`` what they are made of.

    Raises:
        SysrootMissing: the mirror has not got them.
    """
    for part in ("lists/partial", "cache/archives/partial"):
        (work / part).mkdir(parents=True, exist_ok=True)
    (work / "status").touch()
    (work / "sources.list").write_text(f"{'deb-src' if source else 'deb'} {mirror()} {suite} main\n", encoding="utf-8")
    settings = {
        "Dir::Etc::SourceList": work / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Preferences": "/dev/null",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State::Lists": work / "lists",
        "Dir::State::Status": work / "status",
        "Dir::Cache": work / "cache",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Debug::NoLocking": "true",
    }
    command = ["apt-get", "-qq", *(option for key, value in settings.items() for option in ("-o", f"{key}={value}"))]
    get = ["source", "--download-only", "--tar-only"] if source else ["download"]
    environment = {**os.environ, "LC_ALL": "C"}
    for step in (["update"], [*get, *packages]):
        ran = subprocess.run([*command, *step], cwd=into, capture_output=True, text=True, env=environment)
        if ran.returncode != 0:
            said = (ran.stderr.strip() or ran.stdout.strip() or "apt-get failed").splitlines()[0]
            raise SysrootMissing(f"Debian {suite} cannot be taken from {mirror()}: {said}")


def _lead_inside(folder: Path) -> None:
    """Links that lead to the root of a system are made to lead to the folder's."""
    for link in [path for path in folder.rglob("*") if path.is_symlink()]:
        target = os.readlink(link)
        if target.startswith("/"):
            link.unlink()
            link.symlink_to(os.path.relpath(folder / target[1:], link.parent))
