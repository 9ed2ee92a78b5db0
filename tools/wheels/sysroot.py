"""The C library of an older Debian, with its headers, in a folder: what programs are linked against that shall run on old machines.

Taken with apt from the mirror this machine uses, its signatures checked as for any package; nothing is installed, and no root is needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

COMPILERS = {"bullseye": "10", "bookworm": "12"}
"""Each release's own compiler: of it is what a static program unwinds with, which goes by the C library it was made for."""
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
    _download(suite, folder, packages)
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


def _download(suite: str, folder: Path, packages: Path) -> None:
    apt = folder / "apt"
    for part in ("lists/partial", "cache/archives/partial"):
        (apt / part).mkdir(parents=True)
    (apt / "status").touch()
    (apt / "sources.list").write_text(f"deb {mirror()} {suite} main\n", encoding="utf-8")
    settings = {
        "Dir::Etc::SourceList": apt / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Preferences": "/dev/null",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State::Lists": apt / "lists",
        "Dir::State::Status": apt / "status",
        "Dir::Cache": apt / "cache",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Debug::NoLocking": "true",
    }
    command = ["apt-get", "-qq", *(option for key, value in settings.items() for option in ("-o", f"{key}={value}"))]
    for step in (["update"], ["download", *PACKAGES, f"libgcc-{COMPILERS[suite]}-dev"]):
        ran = subprocess.run([*command, *step], cwd=packages, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
        if ran.returncode != 0:
            shutil.rmtree(folder)
            said = (ran.stderr.strip() or ran.stdout.strip() or "apt-get failed").splitlines()[0]
            raise SysrootMissing(f"the C library of Debian {suite} cannot be taken from {mirror()}: {said}")


def _lead_inside(folder: Path) -> None:
    """Links that lead to the root of a system are made to lead to the folder's."""
    for link in [path for path in folder.rglob("*") if path.is_symlink()]:
        target = os.readlink(link)
        if target.startswith("/"):
            link.unlink()
            link.symlink_to(os.path.relpath(folder / target[1:], link.parent))
