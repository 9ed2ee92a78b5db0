"""The tests that took longest, from the JUnit files that pytest and ctest leave: printed at the end of `make test`.

python tools/slowest_tests.py build/tests-native.xml build/tests-python.xml
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

MOST = 10
"""How many tests are named for each file."""


def timed(file: Path) -> list[tuple[float, str]]:
    """Every test of a JUnit file with its seconds, the longest first.

    Raises:
        OSError, ElementTree.ParseError: it cannot be read, or is no such file.
    """

    def rows() -> Iterator[tuple[float, str]]:
        for case in ElementTree.parse(file).iter("testcase"):
            name, room = case.get("name", ""), case.get("classname", "")
            yield float(case.get("time") or 0), name if room in ("", name) else f"{room}::{name}"

    return sorted(rows(), reverse=True)


def told(files: list[Path]) -> str:
    """Lines with the slowest tests of each file; a file that is not there has nothing to say."""
    lines: list[str] = []
    for file in files:
        try:
            found = timed(file)
        except (OSError, ElementTree.ParseError):
            continue
        total = sum(seconds for seconds, _ in found)
        lines.append(f"{file.stem}: {len(found)} tests, {total:.0f} s of work; the slowest:")
        lines += [f"{seconds:8.1f} s  {name}" for seconds, name in found[:MOST]]
    return "\n".join(lines)


if __name__ == "__main__":
    print(told([Path(each) for each in sys.argv[1:]]))
