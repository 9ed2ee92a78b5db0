"""Does an allocator really serve a program here? Answered by a small process that looks at itself."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from freestone.allocators import elf
from freestone.allocators.elf import HEAP_ENTRIES
from freestone.records.schema import Allocator

# The process asks which file each entry point comes from, and uses them: a library that loads and then crashes on the
# first call is not working. It walks the loader's list of objects, since asking for `malloc` by name is not enough: a
# program linked to fixed addresses (Debian's python3 is one) answers with an entry of its own jump table.
_PROBE = """
import ctypes, json, sys

class Object(ctypes.Structure):
    pass

Object._fields_ = [
    ("base", ctypes.c_void_p), ("file", ctypes.c_char_p), ("dynamic", ctypes.c_void_p), ("next", ctypes.POINTER(Object))
]

class Place(ctypes.Structure):
    _fields_ = [
        ("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p), ("at", ctypes.c_void_p)
    ]

process = ctypes.CDLL(None)
process.dladdr.argtypes = [ctypes.c_void_p, ctypes.POINTER(Place)]
process.dlopen.restype, process.dlopen.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_int]
process.dlsym.restype, process.dlsym.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
LAZY, NO_LOAD = 1, 4

def provider(name):
    each = ctypes.cast(process._handle, ctypes.POINTER(Object)).contents.next
    while each:
        file = each.contents.file
        handle = process.dlopen(file, LAZY | NO_LOAD) if file else None
        address = process.dlsym(handle, name.encode()) if handle else None
        place = Place()
        # The handle answers for what the object needs as well; only its own symbol counts.
        if address and process.dladdr(address, ctypes.byref(place)) and place.file == file:
            return file.decode("utf-8", "surrogateescape")
        each = each.contents.next
    return ""

places = {name: provider(name) for name in sys.argv[1:]}
for name, arguments in (("malloc", "z"), ("calloc", "zz"), ("realloc", "pz")):
    function = getattr(process, name)
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_void_p if kind == "p" else ctypes.c_size_t for kind in arguments]
process.free.restype, process.free.argtypes = None, [ctypes.c_void_p]
for size in (1, 100, 5000, 300000):
    block = process.realloc(process.malloc(size), 2 * size)
    ctypes.memset(block, 1, 2 * size)
    process.free(block)
    process.free(process.calloc(size, 1))
print(json.dumps(places))
"""

_LOADER_COMPLAINT = re.compile(
    r"ERROR: ld\.so: object '[^']*' from LD_PRELOAD cannot be preloaded(?: \((?P<why>[^)]*)\))?"
)


@dataclass(frozen=True)
class Verification:
    """Whether the allocator was seen serving a process on this machine; ``reason`` says why not, in one line."""

    verified: bool
    reason: str | None = None

    def __str__(self) -> str:
        return "verified" if self.verified else (self.reason or "not verified")


def verify(allocator: Allocator, *, timeout_s: float = 10.0, settings: Mapping[str, str] | None = None) -> Verification:
    """Start a tiny process under the allocator and see that malloc, calloc, realloc and free come from its file.

    Args:
        allocator: as found.
        timeout_s: how long the process may take.
        settings: what its configuration adds to a program's environment.
    """
    if not allocator.available or allocator.file is None:
        return Verification(False, allocator.reason or "not available")
    if "malloc" in elf.inspect(sys.executable).exports:
        return Verification(False, f"cannot be checked with {sys.executable}, which has a malloc of its own")
    try:
        done = _tried(allocator, timeout_s, settings or {})
    except subprocess.TimeoutExpired:
        return Verification(False, f"a program under it did not end within {timeout_s:g} s")
    except OSError as error:
        return Verification(False, f"the check could not be started: {error.strerror or error}")
    return _judge(allocator.file, done.returncode, done.stdout, done.stderr)


def said(allocator: Allocator, settings: Mapping[str, str], *, timeout_s: float = 10.0) -> str:
    """What the tiny process writes to standard error under an allocator with settings; nothing where none can start.

    Args:
        allocator: as found.
        settings: what its configuration adds to a program's environment.
        timeout_s: how long the process may take.
    """
    try:
        return _tried(allocator, timeout_s, settings).stderr
    except (subprocess.TimeoutExpired, OSError):
        return ""


def _tried(allocator: Allocator, timeout_s: float, settings: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("LD_", "PYTHON"))}
    if "LD_LIBRARY_PATH" in os.environ:
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    environment |= {**settings, "LD_PRELOAD": ":".join(allocator.preload), "LC_ALL": "C"}
    command = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _PROBE, *HEAP_ENTRIES]
    return subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout_s,
        check=False,
    )


def _judge(file: str, code: int, stdout: str, stderr: str) -> Verification:
    complaint = _LOADER_COMPLAINT.search(stderr)
    if complaint:
        return Verification(False, f"the loader refused it: {complaint['why'] or 'cannot be preloaded'}")
    if code < 0:
        return Verification(False, f"a program under it was killed by {_signal_name(-code)}{_last_line(stderr)}")
    if code != 0:
        return Verification(False, f"a program under it failed with exit status {code}{_last_line(stderr)}")
    try:
        places = json.loads(stdout)
    except ValueError:
        return Verification(False, "a program under it lost its output")
    for name in HEAP_ENTRIES:
        place = places.get(name) or ""
        if not _same_file(place, file):
            return Verification(False, f"{name} is served by {place or 'an unknown file'} instead")
    return Verification(True)


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_line(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return f": {lines[-1][:200]}" if lines else ""
