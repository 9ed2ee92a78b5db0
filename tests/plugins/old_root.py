"""A root of Debian 11 with a Python that the lab runs on: where the wheel for old machines is tried (glibc 2.31).

Debian 11's own Python is 3.9; a newer one is compiled in the root, as users of such systems have it. Takes some minutes
and is kept as a tar file. Only as root, with debootstrap.

Usage: ``PYTHONPATH=tools python tests/plugins/old_root.py build/wheels/bullseye.tar``
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from wheels import sysroot

SUITE = "bullseye"
PYTHON = ("bookworm", "python3.11")
"""The release and the package whose source the Python is compiled from."""
COMPILER = ("gcc", "make", "libc6-dev", "libffi-dev", "zlib1g-dev", "libsqlite3-dev")
BUILD = """set -e
cd /source
./configure --prefix=/usr/local --disable-test-modules >/dev/null
make -j 2 >/dev/null
make install ENSUREPIP=no >/dev/null
cd / && rm -rf /source
apt-get purge -qq -y --auto-remove gcc make libc6-dev binutils >/dev/null
"""


def make(archive: Path) -> Path:
    """The root as a tar file, made if it is not there yet.

    Raises:
        SysrootMissing: who asks is not root, there is no debootstrap, or the mirror has no such release; in one line.
    """
    if archive.exists():
        return archive
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise sysroot.SysrootMissing("a root of Debian 11 is made by root with debootstrap")
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        root = Path(folder) / "root"
        packages = ",".join(COMPILER)
        _run(["debootstrap", "--variant=minbase", f"--include={packages}", SUITE, root, sysroot.mirror()])
        source = root / "source"
        source.mkdir()
        sysroot.download(PYTHON[0], Path(folder) / "apt", Path(folder), PYTHON[1], source=True)
        (packed,) = Path(folder).glob("*.orig.tar.*")
        _run(["tar", "--extract", "--file", packed, "--directory", source, "--strip-components=1"])
        _run(["chroot", root, "sh", "-c", BUILD])
        unfinished = archive.with_suffix(".unfinished")
        _run(["tar", "--create", "--file", unfinished, "--directory", root, "."])
        unfinished.rename(archive)
    return archive


def _run(command: list[str | Path]) -> None:
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
    environment["DEBIAN_FRONTEND"] = "noninteractive"
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    if ran.returncode != 0:
        last = (ran.stderr.strip() or ran.stdout.strip() or "it failed").splitlines()[-1]
        raise sysroot.SysrootMissing(f"a root of Debian 11 cannot be made: {command[0]}: {last}")


if __name__ == "__main__":
    print(make(Path(sys.argv[1]).absolute()))
