"""Reports of guarded blocks are whole: when several threads misuse one at once, and in programs linked statically."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

AT_ONCE = r"""
#include <pthread.h>
#include <stdlib.h>

static char *volatile block;
static pthread_barrier_t together;

__attribute__((noinline)) static void *touch(void *argument) {
    pthread_barrier_wait(&together);
    block[5] = 1;
    return argument;
}

int main(void) {
    pthread_t threads[4];
    pthread_barrier_init(&together, NULL, 4);
    for (int i = 0; i < 20; i++) { char *volatile unguarded = malloc(100); (void)unguarded; }
    block = malloc(40);
    free(block);
    for (int i = 0; i < 4; i++) { if (pthread_create(&threads[i], NULL, touch, NULL)) { return 2; } }
    for (int i = 0; i < 4; i++) { pthread_join(threads[i], NULL); }
    return 0;
}
"""


def built(folder: Path, text: str, *words: str) -> Path:
    (folder / "program.c").write_text(text)
    subprocess.run(
        [
            "gcc",
            "-O1",
            "-g",
            "-fno-omit-frame-pointer",
            "-fno-builtin",
            "program.c",
            "-o",
            "program",
            "-pthread",
            *words,
        ],
        cwd=folder,
        check=True,
    )
    return folder / "program"


def test_threads_that_misuse_a_block_at_once_leave_one_whole_report(freestone_library: Path, tmp_path: Path) -> None:
    program = built(tmp_path, AT_ONCE)
    said: set[tuple[str, ...]] = set()
    for _ in range(25):
        ended = subprocess.run(
            [program],
            env={"LD_PRELOAD": str(freestone_library), "FREESTONE_OPTIONS": "guard=1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if ended.returncode == 0:  # the place was another block's by then
            continue
        assert ended.returncode == -signal.SIGSEGV, ended.stderr
        heads = [line for line in ended.stderr.splitlines() if not line.startswith("freestone:   ")]
        said.add(tuple(re.sub(r"0x\w+|\d+", "N", line) for line in heads))
        last = ended.stderr.splitlines()[-1]
        assert last.startswith("freestone:   #"), "the last trace has frames"
    assert said, "none of the programs was stopped"
    assert len(said) == 1, "each report has the same parts"
    (parts,) = said
    assert [part.split(" by ")[0].split(": ")[-1] for part in parts[1:]] == ["written", "allocated", "freed"]


def test_frames_of_a_program_with_the_static_library_tell_file_and_offset(
    freestone_library: Path, tmp_path: Path
) -> None:
    archive = freestone_library.with_suffix(".a")
    if not archive.exists():
        pytest.skip("libfreestone.a is not built here")
    program = built(tmp_path, AT_ONCE, str(archive))
    for _ in range(20):
        ended = subprocess.run(
            [program], env={"FREESTONE_OPTIONS": "guard=1"}, capture_output=True, text=True, check=False, timeout=60
        )
        if ended.returncode != 0:  # else the place was another block's by then
            break
    frames = [line for line in ended.stderr.splitlines() if line.startswith("freestone:   #")]
    assert len(frames) >= 3, ended.stderr
    assert all(re.search(r"\(\S+\+0x[0-9a-f]+\)$", frame) for frame in frames), frames
