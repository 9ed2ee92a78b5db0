"""`make build` says in one line that there is no compiler, where the name of one is all there is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("said", "status", "told"),
    [
        (None, 1, "none found"),
        ("cc: fatal error: cannot execute 'as': execvp: No such file or directory", 1, "cc: cannot execute 'as'"),
        ("<stdin>:1:10: fatal error: stdlib.h: No such file or directory", 1, "cc: stdlib.h: No such file"),
        ("", 0, ""),
    ],
)
def test_a_compiler_that_makes_no_program_is_one_line(
    repository: Path, tmp_path: Path, said: str | None, status: int, told: str
) -> None:
    for tool in ("sh", "mktemp", "rm", "sed"):
        (tmp_path / tool).symlink_to(Path("/usr/bin") / tool)
    if said is not None:
        failed = f'echo "{said}" >&2; echo "compilation terminated." >&2; exit 1' if said else "exit 0"
        (tmp_path / "cc").write_text(f"#!/bin/sh\n{failed}\n")
        (tmp_path / "cc").chmod(0o755)
    done = subprocess.run(
        [repository / "tools" / "working-compiler"],
        env={"PATH": str(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (status, "")
    assert told in done.stderr
    assert done.stderr.count("\n") == (1 if told else 0)


def test_this_machine_has_one(repository: Path) -> None:
    assert subprocess.run([repository / "tools" / "working-compiler"], capture_output=True).returncode == 0
