"""The files and folders that a command names, by their content: an input that changes makes another program of it.

What a run writes to is its own, and no input: it is left out.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from freestone.records.schema import FOLDER, PROGRAM, Workload

_MOST_BYTES: Final = 256 << 20
"""A larger file is told by its size and the time it was written: it would take seconds to read."""

_MOST_ENTRIES: Final = 1000
_MOST_IN_FOLDER: Final = 64 << 20
"""A folder of more files or bytes is told by where it lies."""

_Stamp = tuple[int, int, int, int]


class NamedFiles:
    """What the files were each time one looked. A file that has not been written since is not read again."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[_Stamp, str]] = {}

    def contents(self, workload: Workload, environment: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
        """Path -> 16 hex digits of the SHA-256 of its content, for the program and each file that its words name.

        So are folders that are a word of their own, by the names and contents in them.

        Args:
            workload: its command is looked at as it stands, and word by word where a word is a line for a shell.
            environment: where PATH is looked up.
            more: paths of other files to look at.
        """
        found: dict[str, str] = {}
        for path in [*_named(workload, environment), *(Path(each) for each in more)]:
            # Gone, closed to us, or being replaced at this moment: the run itself says more of that.
            with contextlib.suppress(OSError):
                found[str(path)] = self._content(path)
        for path in _folders(workload):
            with contextlib.suppress(OSError):
                found.setdefault(str(path), self._folder(path))
        return found

    def _folder(self, path: Path) -> str:
        digest = hashlib.sha256()
        entries = size = 0
        for folder, below, names in os.walk(path, onerror=_raise):
            below.sort()
            for name in sorted([*below, *names]):
                each = Path(folder, name)
                status = each.lstat()
                entries, size = entries + 1, size + status.st_size
                if entries > _MOST_ENTRIES or size > _MOST_IN_FOLDER:
                    return FOLDER + hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
                digest.update(os.fsencode(each.relative_to(path)) + b"\0")
                if stat.S_ISREG(status.st_mode):
                    digest.update(self._content(each).encode() + b"\0")
                elif stat.S_ISLNK(status.st_mode):
                    digest.update(os.fsencode(each.readlink()) + b"\0")
        return FOLDER + digest.hexdigest()[:16]

    def _content(self, path: Path) -> str:
        status = path.stat()
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        before = self._known.get(path)
        if before is not None and before[0] == stamp:
            return before[1]
        if status.st_size > _MOST_BYTES:
            told = hashlib.sha256(f"{status.st_size} {status.st_mtime_ns}".encode()).hexdigest()[:16]
        else:
            with path.open("rb") as file:
                kind = PROGRAM if file.read(4) == b"\x7fELF" else ""
                file.seek(0)
                told = kind + hashlib.file_digest(file, "sha256").hexdigest()[:16]
        self._known[path] = (stamp, told)
        return told


def _raise(error: OSError) -> None:
    raise error


_INTERPRETER: Final = re.compile(
    r"(?:ba|da|z|k)?sh|python[\d.]*|perl[\d.]*|ruby[\d.]*|node|lua[\d.]*|php[\d.]*|Rscript|awk"
)


def code(workload: Workload, before: Mapping[str, str]) -> list[str]:
    """Of the files that a command names, those that are code: nobody measures a program that changes while it runs.

    Args:
        before: what :meth:`NamedFiles.contents` found, the program first.
    """
    paths = list(before)
    found = [path for path, content in before.items() if content.startswith(PROGRAM)]
    if paths and _INTERPRETER.fullmatch(os.path.basename(workload.command[0])):
        named = {os.path.basename(word) for word in workload.command[1:]}
        script = next((path for path in paths[1:] if os.path.basename(path) in named), None)
        found += [script] if script is not None else []
    return [*dict.fromkeys([*paths[:1], *found])]


def untouched(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """The files that a run has left as they were."""
    return {path: content for path, content in before.items() if after.get(path) == content}


def _named(workload: Workload, environment: Mapping[str, str]) -> Iterator[Path]:
    """Regular files, each once: the program where a shell would find it, what words name, its standard input."""
    folder = Path(workload.directory or ".").resolve()
    program, *words = workload.command
    places = [program] if "/" in program else [f"{each or '.'}/{program}" for each in _path(environment)]
    seen: set[Path] = set()
    first = next((path for path in (folder / place for place in places) if _is(stat.S_ISREG, path)), None)
    rest = (folder / name for word in words for name in _names(word))
    read_from = [Path(workload.input.file)] if workload.input is not None else []
    for path in [*([first] if first else []), *rest, *read_from]:
        if path not in seen and _is(stat.S_ISREG, path):
            seen.add(path)
            yield path


def _folders(workload: Workload) -> list[Path]:
    """The folders that words name, each once; of a line for a shell none: a dot or a slash in it is often no folder."""
    folder = Path(workload.directory or ".").resolve()
    words = [name for word in workload.command[1:] for name in (word, word.partition("=")[2]) if name]
    paths = dict.fromkeys(folder / name for name in words if "\0" not in name)
    return [path for path in paths if _is(stat.S_ISDIR, path)]


def _path(environment: Mapping[str, str]) -> list[str]:
    return (environment.get("PATH") or os.defpath).split(os.pathsep)


_SEPARATING: Final = re.compile(r"""[\s<>|&;(){}`'"$!]+""")
"""What stands around a name in a line for a shell."""

_AROUND: Final = re.compile(r"^(?:[@+]|file:(?://)?|--?[A-Za-z][\w-]*=|-[A-Za-z])(?=.)|[,:]\d+$|[,:]$")
"""What stands around a name in an argument: ``@file``, ``-ffile``, ``--input=file``, ``file:12``."""


def _names(word: str) -> list[str]:
    """What may be a file's name in a word: all of it, what an option has in front of it, the words of a shell's line.

    A line that is no line for a shell, as with an apostrophe in it, is taken apart all the same: who looks at one file
    too many does no harm.
    """
    found = [word]
    if _SEPARATING.search(word):
        with contextlib.suppress(ValueError):
            found += [name.lstrip("<>|&;(") for name in shlex.split(word)]
        found += _SEPARATING.split(word)
    for name in list(found):
        found.append(name.partition("=")[2])
        bare = _AROUND.sub("", name)
        found += [bare, _AROUND.sub("", bare)]
    return [name for name in dict.fromkeys(found) if name and "\0" not in name]


def _is(kind: Callable[[int], bool], path: Path) -> bool:
    try:
        return kind(path.stat().st_mode)
    except (OSError, ValueError):
        return False
