"""The watcher of the heap leaves its last state whatever ends a process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone import native
from freestone.doctor import heap_watch
from freestone.doctor.heap_watch import Damaged
from freestone.doctor.observations import HeapUse

HOLDS = """
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *asks(void *unused) {
    for (int i = 0; i < 100; i++) memset(malloc(10000), 1, 10000);
    pause();
    return unused;
}
int main(int count, char **words) {
    mallopt(M_TRIM_THRESHOLD, 1 << 20);
    if (words[1][0] == 'f' && fork() == 0) {
        for (int i = 0; i < 5000; i++) memset(malloc(10000), 1, 10000);
        _exit(0);
    }
    if (words[1][0] == 'f') wait(NULL);
    for (int i = 0; i < atoi(words[2]); i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, asks, NULL);
    }
    for (int i = 0; i < 1000; i++) memset(malloc(10000), 1, 10000);
    sleep(1);
    puts("held");
    fflush(stdout);
    if (words[1][0] == 'k') pause();
    return count - 3;
}
"""


@pytest.fixture(scope="module")
def watcher() -> Path:
    try:
        return native.path(heap_watch.WATCHER)
    except native.NativePartMissing as error:
        pytest.skip(f"heaps are watched under glibc alone: {error}")


def compiled(folders: pytest.TempPathFactory, name: str, source: str) -> Path:
    compiler = shutil.which("cc")
    assert compiler is not None, "the library under test was built by one"
    program = folders.mktemp(name) / name
    words = [compiler, "-x", "c", "-", "-O1", "-fno-builtin", "-pthread", "-o", str(program)]
    subprocess.run(words, input=source, text=True, check=True)
    return program


@pytest.fixture(scope="module")
def holds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory, "holds", HOLDS)


def watched(program: Path, watcher: Path, folder: Path, *words: str, ended_by: signal.Signals | None) -> HeapUse | None:
    folder.mkdir()
    ours = [str(native.path("libfreestone-witness.so")), str(watcher)]
    environment = {**os.environ, "LD_PRELOAD": ":".join(ours), heap_watch.FOLDER: str(folder)}
    environment["FREESTONE_WITNESS"] = str(folder.parent)  # it tells the watcher of an end
    command = [str(program), *words]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as begun:
        assert begun.stdout is not None
        assert begun.stdout.readline() == "held\n"
        if ended_by is not None:
            begun.send_signal(ended_by)
        begun.wait(30)
    return heap_watch.read_folder(folder)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_leaves_the_last_state(holds: Path, watcher: Path, tmp_path: Path, number: signal.Signals) -> None:
    found = watched(holds, watcher, tmp_path / "heaps", "k", "40", ended_by=number)
    assert found is not None
    assert not found.complete
    assert found.trimmed_kib is None
    assert found.mallocs >= 5000
    assert found.end_live_kib >= 5000 * 10_000 >> 10, "of all 41 threads, more than have a place from the beginning"
    assert found.threads == 41
    assert found.mallopts == [(-1, 1 << 20)]
    assert found.points
    (file,) = (tmp_path / "heaps").iterdir()
    later = heap_watch.parse(file.read_bytes(), time.monotonic() + 60)
    assert later.wall_s > 60, "its last state lasted until it was ended"


def test_an_end_of_its_own_is_told_whole(holds: Path, watcher: Path, tmp_path: Path) -> None:
    found = watched(holds, watcher, tmp_path / "heaps", "e", "2", ended_by=None)
    assert found is not None
    assert found.complete
    assert found.trimmed_kib is not None
    assert found.points[-1].arenas is not None
    assert found.wall_s >= 1, "also while nothing happened"


def test_a_fork_counts_for_itself(holds: Path, watcher: Path, tmp_path: Path) -> None:
    child = watched(holds, watcher, tmp_path / "heaps", "f", "0", ended_by=None)
    assert child is not None
    assert 5000 <= child.mallocs < 5900, "the child asked for most"
    sizes = sorted(heap_watch.parse(file.read_bytes()).mallocs for file in (tmp_path / "heaps").iterdir())
    assert len(sizes) == 2
    assert 1000 <= sizes[0] < 1900, "and its parent knows nothing of it"


def test_a_program_that_may_write_no_file_runs_all_the_same(holds: Path, watcher: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "LD_PRELOAD": str(watcher), heap_watch.FOLDER: str(tmp_path / "gone")}
    done = subprocess.run([holds, "e", "2"], env=environment, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, "held\n")
    limited = ["sh", "-c", f"ulimit -f 8; exec {holds} e 2"]
    environment[heap_watch.FOLDER] = str(tmp_path)
    done = subprocess.run(limited, env=environment, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, "held\n")


@given(st.binary(max_size=400), st.booleans())
def test_what_the_watcher_did_not_write_is_refused(content: bytes, begins: bool) -> None:
    text = (b"heapwat2" if begins else b"") + content
    with pytest.raises(Damaged):
        heap_watch.parse(text)


TROUBLED = """
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *works(void *unused) {
    for (;;) {
        pthread_mutex_lock(&lock);
        for (int i = 0; i < 20000; i++) { char *volatile block = malloc(100000); block[0] = 1; free(block); }
        pthread_mutex_unlock(&lock);
        pthread_testcancel();
    }
    return unused;
}
static void leaves(int number) { _exit(number - SIGALRM); }
int main(int count, char **words) {
    if (words[count - 1][0] == 'c') {
        for (int round = 0; round < 20; round++) {
            pthread_t thread;
            pthread_create(&thread, NULL, works, NULL);
            usleep(15000);
            pthread_cancel(thread);
            pthread_join(thread, NULL);
            if (pthread_mutex_trylock(&lock) != 0) return 1;
            pthread_mutex_unlock(&lock);
        }
    } else if (words[count - 1][0] == 'z') {
        for (int i = 0; i < 100; i++) free(calloc(1, 64 << 20));
        for (int i = 0; i < 100; i++) free(calloc(1, 1 << 10));
    } else {
        static char *blocks[20000];
        const struct itimerval soon = {{0, 0}, {0, 50000}};
        signal(SIGALRM, leaves);
        setitimer(ITIMER_REAL, &soon, NULL);
        for (unsigned i = 0;; i++) {
            const unsigned place = i * 2654435761u % 20000;
            free(blocks[place]);
            blocks[place] = malloc(2000 + i * 7 % 9000);
        }
    }
    puts("fine");
    return 0;
}
"""


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory, "troubled", TROUBLED)


def test_asking_for_memory_is_no_place_to_be_cancelled(troubled: Path, watcher: Path, tmp_path: Path) -> None:
    """Its caller holds locks; the look at the resident set reads a file, which is such a place."""
    environment = {**os.environ, "LD_PRELOAD": str(watcher), heap_watch.FOLDER: str(tmp_path)}
    done = subprocess.run([troubled, "c"], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "fine\n")


def test_a_handler_may_end_the_process_from_within_malloc(troubled: Path, watcher: Path, tmp_path: Path) -> None:
    """The last look asks the C library, whose lock that very thread may hold."""
    ours = [str(native.path("libfreestone-witness.so")), str(watcher)]
    environment = {**os.environ, "LD_PRELOAD": ":".join(ours), "FREESTONE_WITNESS": str(tmp_path)}
    for number in range(12):
        folder = tmp_path / str(number)
        folder.mkdir()
        told = {**environment, heap_watch.FOLDER: str(folder)}
        done = subprocess.run([troubled, "e"], env=told, capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stderr) == (0, "")
        found = heap_watch.read_folder(folder)
        assert found is not None
        assert found.mallocs > 0


def test_what_comes_from_the_kernel_is_not_cleared(troubled: Path, watcher: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "LD_PRELOAD": str(watcher), heap_watch.FOLDER: str(tmp_path)}
    subprocess.run([troubled, "z"], env=environment, check=True, timeout=30)
    found = heap_watch.read_folder(tmp_path)
    assert found is not None
    assert found.callocs == 200
    # From the first one freed on, glibc's threshold lies at 32 MiB: these are always mapped.
    assert found.calloc_kib <= 200


@pytest.mark.timeout(20)
def test_a_pipe_in_the_folder_is_not_waited_for(holds: Path, watcher: Path, tmp_path: Path) -> None:
    """The program can write there as well: what stands there may be anything."""
    os.mkfifo(tmp_path / "0-pipe")
    (tmp_path / "1-link").symlink_to("/dev/zero")
    environment = {**os.environ, "LD_PRELOAD": str(watcher), heap_watch.FOLDER: str(tmp_path)}
    subprocess.run([holds, "e", "0"], env=environment, check=True, capture_output=True)
    found = heap_watch.read_folder(tmp_path)
    assert found is not None
    assert found.mallocs >= 1000
