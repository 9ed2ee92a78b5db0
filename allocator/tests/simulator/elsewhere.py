#!/usr/bin/env python3
"""Which test finds a fault that the simulator does not: ``elsewhere.py [--tests REGEX] NAME...``.

Works the fault into a copy of the library's sources for good, builds the tests that the expression names, and runs them. Says for each
fault which tests failed. The copy, in ``build/elsewhere``, stays, so that only what a fault changes is built again.
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
    for part in ("CMakeLists.txt", "cmake", "allocator", "probes", "workloads"):
        source, target = REPOSITORY / part, TREE / part
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            TREE.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    (TREE / "allocator" / "tests" / "simulator" / "CMakeLists.txt").write_text("", encoding="utf-8")
    run(["cmake", "-S", str(TREE), "-B", str(TREE / "build"), "-G", "Ninja", "-DFREESTONE_TESTS=ON"])


def verdict(fault: dict[str, Any], tests: str) -> str:
    """The tests that find it."""
    original = REPOSITORY / "allocator" / "src" / fault["file"]
    target = TREE / "allocator" / "src" / fault["file"]
    target.write_text(with_fault(original.read_text(encoding="utf-8"), fault), encoding="utf-8")
    try:
        status, text = run(["cmake", "--build", str(TREE / "build"), "-j1"])
        if status != 0:
            return f"does not build: {text.strip().splitlines()[-1]}"
        _, text = run(["ctest", "--test-dir", str(TREE / "build"), "-R", tests, "--timeout", str(SECONDS)])
        failed = re.findall(r"- (\S+) \(", text)
        return f"found by {', '.join(failed)}" if failed else "not found"
    finally:
        shutil.copy2(original, target)


def main() -> int:
    """A line for each fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", default=r"^unit\.", help="as for ctest -R")
    parser.add_argument("names", nargs="+")
    arguments = parser.parse_args()
    faults = {fault["name"]: fault for fault in variant.read(TABLES)["fault"]}
    prepare()
    for name in arguments.names:
        print(f"{name}: {verdict(faults[name], arguments.tests)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
