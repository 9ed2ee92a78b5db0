"""Which files somebody holds for himself now, as the kernel shows its locks. Only read: whoever tried to take a lock
would be in the way of one that starts.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

Held = frozenset[tuple[int, int]]
"""Device and inode of files and folders."""


def held_files() -> Held:
    """What is held, as far as the kernel shows it here."""
    try:
        locks = Path("/proc/locks").read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    found = re.findall(r"\bFLOCK +ADVISORY +WRITE +\S+ +([0-9a-f]+):([0-9a-f]+):(\d+) ", locks)
    return frozenset((os.makedev(int(major, 16), int(minor, 16)), int(inode)) for major, minor, inode in found)


def is_held(path: Path, held: Held) -> bool:
    """Whether a file or folder is among them.

    File systems of several parts (btrfs, overlayfs) tell each file of a device of its own, and the kernel tells of the
    whole one's: that is asked for where the numbers of a file and of something that is held are the same.
    """
    try:
        found = os.stat(path)
    except OSError:
        return False
    devices = {device for device, inode in held if inode == found.st_ino}
    if not devices or found.st_dev in devices:
        return bool(devices)
    whole = _device_of_mount(path)
    return whole is None or whole in devices


def _device_of_mount(path: Path) -> int | None:
    """The device of the file system that a path is on; None where that cannot be told."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            told = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii")
        finally:
            os.close(descriptor)
        mount = next(line.split()[1] for line in told.splitlines() if line.startswith("mnt_id:"))
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
        fields = next(line.split() for line in mounts.splitlines() if line.split()[:1] == [mount])
        major, _, minor = fields[2].partition(":")
        return os.makedev(int(major), int(minor))
    return None
