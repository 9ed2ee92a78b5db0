"""In a control group with little memory the lab works, and says of a program that there was too little for it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import control_group
import pytest

CompileC = Callable[..., Path]

FILLS = """
#include <stdlib.h>
#include <string.h>
int main(int count, char **words) {
    size_t size = (size_t)atoi(words[1]) << 20;
    char *block = malloc(size);
    memset(block, 1, size);
    return block[size / 2] != 1;
}
"""


@pytest.fixture
def small_group() -> Iterator[Path]:
    try:
        with control_group.limited(200 << 20) as folder:
            yield folder
    except control_group.NoGroup as error:
        pytest.skip(str(error))


@pytest.fixture
def in_group(
    command: list[str], environment: dict[str, str], tmp_path: Path, compile_c: CompileC, small_group: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    program = compile_c(FILLS, "-fno-builtin", name="fills")

    def run(mib: int, *words: str) -> subprocess.CompletedProcess[str]:
        line = control_group.inside(small_group, [*command, *words, "--", program, str(mib)])
        return subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)

    return run


def test_a_comparison_is_written_as_a_whole(in_group: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = in_group(1, "compare", "-n", "1", "-a", "glibc,freestone", "--no-report")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "words",
    [("compare", "-n", "1", "-a", "glibc", "--no-report"), ("doctor", "--observe-only")],
    ids=str,
)
def test_a_program_that_is_killed_at_the_limit_is_told_so(
    in_group: Callable[..., subprocess.CompletedProcess[str]], words: tuple[str, ...]
) -> None:
    done = in_group(300, *words)
    assert done.returncode == 3
    told = " ".join((done.stdout + done.stderr).split())
    assert "killed by SIGKILL as its control group's limit of 200 MiB was reached (the lab is in that group" in told
