#!/usr/bin/env python3
"""Which test finds a fault that the simulator does not: ``elsewhere.py [--tests REGEX] NAME...``.

Works the fault into a copy of the library's sources for good, builds the tests that the expression names, and runs
them. Says for each fault which tests failed. The copy, in ``build/elsewhere``, stays, so that only what a fault changes
is built again.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import variant

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
TREE = REPOSITORY / "build" / "elsewhere"
TABLES = [HERE / "variants.toml", HERE / "mutants.toml"]
SECONDS = 300
UNUSED = "-Wno-unused-function -Wno-unused-variable -Wno-unused-parameter -Wno-unused-but-set-variable"  # by a fault


def with_fault(source: str, fault: dict[str, Any]) -> str:
    """The source as the fault makes it."""
    new = str(fault["raw"]).replace("PLANTED(@)", "true") if "raw" in fault else str(fault["new"])
    return variant.replaced(source, fault, new)


def run(command: list[str]) -> tuple[int, str]:
    """Status and output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def prepare() -> None:
    """A copy of what the build needs, without the simulator: it knows the right text alone."""
    parts = ["allocator", "cmake", "probes", "workloads", "src", "CMakeLists.txt"]
    _, names = run(["git", "-C", str(REPOSITORY), "ls-files", *parts])
    for name in names.splitlines():
        (TREE / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, TREE / name)
    (TREE / "allocator" / "tests" / "simulator" / "CMakeLists.txt").write_text("", encoding="utf-8")
    run(
        [
            "cmake",
            "-S",
            str(TREE),
            "-B",
            str(TREE / "build"),
            "-G",
            "Ninja",
            "-DFREESTONE_TESTS=ON",
            f"-DCMAKE_C_FLAGS={UNUSED}",
        ]
    )


def failing(tests: str) -> set[str]:
    """Builds the copy as it is, and runs the tests: those that fail."""
    status, text = run(["cmake", "--build", str(TREE / "build"), "-j1"])
    if status != 0:
        raise SystemExit(f"elsewhere.py: the copy does not build: {text.strip().splitlines()[-1]}")
    _, text = run(["ctest", "--test-dir", str(TREE / "build"), "-R", tests, "--timeout", str(SECONDS)])
    return set(re.findall(r"- (\S+) \(", text))


def verdict(fault: dict[str, Any], tests: str, otherwise: set[str]) -> str:
    """The tests that find it: that fail with it, and not otherwise."""
    original = REPOSITORY / "allocator" / "src" / fault["file"]
    target = TREE / "allocator" / "src" / fault["file"]
    target.write_text(with_fault(original.read_text(encoding="utf-8"), fault), encoding="utf-8")
    try:
        finders = sorted(failing(tests) - otherwise)
    finally:
        shutil.copy2(original, target)
    return f"found by {', '.join(finders)}" if finders else "not found"


def main() -> int:
    """A line for each fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", default=r"^unit\.", help="as for ctest -R")
    parser.add_argument("names", nargs="+")
    arguments = parser.parse_args()
    faults = {fault["name"]: fault for fault in variant.read(TABLES)["fault"]}
    prepare()
    otherwise = failing(arguments.tests)
    for name in arguments.names:
        print(f"{name}: {verdict(faults[name], arguments.tests, otherwise)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
