"""``freestone doctor`` on real programs: what it finds, what it prescribes, and how it ends where it cannot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from answers import said

from freestone import native
from freestone.commands import doctor_process
from freestone.doctor.observations import Observations
from freestone.records import store
from freestone.trials import tree

Tool = Callable[..., subprocess.CompletedProcess[str]]
CompileC = Callable[..., Path]

CHURN = """
#include <malloc.h>
#include <stdlib.h>
int main(void) {
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    for (int i = 0; i < 400; i++) {
        char *matrix = malloc(1 << 20);
        for (int at = 0; at < 1 << 20; at += 4096) ((volatile char *)matrix)[at] = 1;
        free(matrix);
    }
    return 0;
}
"""

pytestmark = pytest.mark.usefixtures("watched_heap")


@pytest.fixture(scope="module")
def watched_heap() -> None:
    try:
        native.path("libfreestone-heapwatch.so")
    except native.NativePartMissing as error:
        pytest.skip(f"heaps are watched under glibc alone: {error}")


OWN = """
#include <stdlib.h>
void *je_malloc(size_t size) { return malloc(size); }
int main(void) { return je_malloc(1) == NULL; }
"""


@pytest.fixture
def churn(compile_c: CompileC) -> Path:
    return compile_c(CHURN, "-fno-builtin", name="churn")


def test_a_sick_program_is_found_out_and_cured_and_told_what_to_copy(
    freestone: Tool, churn: Path, only_folder: Callable[[], Path]
) -> None:
    done = freestone("doctor", "--goal", "time", "--time-budget", "20", "--", str(churn))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("mapping-churn: large blocks are mapped and unmapped again and again (")
    assert "the program calls mallopt(M_TRIM_THRESHOLD)" in " ".join(done.stdout.split())
    assert "\nBest for time: " in done.stdout
    assert "\nTo use it:\n  freestone " in done.stdout
    assert "Traceback" not in done.stderr
    folder = only_folder()
    told = said(freestone("doctor", "--resume", folder, "--json"))
    (found, *_) = told["findings"]
    assert found["symptom"] == "mapping-churn"
    assert found["time"] > 0.3
    assert told["best"] in {each["configuration"] for each in told["tried"]}
    best = next(each for each in told["tried"] if each["configuration"] == told["best"])
    assert best["time"]["high"] < 1, "what is prescribed is really better"
    assert told["best"] in told["front"]
    assert freestone("report", "--no-html", folder).returncode == 0


def test_who_is_well_is_left_alone(freestone: Tool, compile_c: CompileC) -> None:
    program = compile_c("int main(void) { for (volatile long i = 0; i < 300000000; i++); return 0; }", name="computes")
    told = said(freestone("doctor", "--json", "--", str(program)))
    assert [each["symptom"] for each in told["findings"]] == ["healthy"]
    assert (told["best"], told["tried"]) == (None, [])


@pytest.mark.long
def test_what_could_not_be_seen_is_named(
    freestone: Tool, churn: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    """Without strace there are no calls; the rest is said all the same."""
    (tmp_path / "bin").mkdir()
    done = freestone("doctor", "--observe-only", "--", str(churn), env={**environment, "PATH": str(tmp_path / "bin")})
    assert done.returncode == 0, done.stderr
    assert "Not seen: calls: system calls are counted by strace, which is not here" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("command", "status", "line"),
    [
        (["sh", "-c", "exit 5"], 3, "nothing could be observed: exit status 5"),
        (["sh", "-c", "kill -SEGV $$"], 3, "nothing could be observed: killed by SIGSEGV"),
        (["sh", "-c", "sleep 30 & exit 0"], 3, "nothing could be observed: it left a process running"),
        (["./gone"], 127, "gone"),
    ],
)
def test_what_cannot_be_looked_at_is_one_line(freestone: Tool, command: list[str], status: int, line: str) -> None:
    done = freestone("doctor", "--", *command)
    assert done.returncode == status
    assert line in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--goal", "speed"], "goal"),
        (["--time-budget", "0"], "--time-budget: it takes from 1 ms to 365 d, not '0'"),
        (["--load", "true"], "a server needs both --ready and --load"),
    ],
)
def test_wrong_use(freestone: Tool, tmp_path: Path, options: list[str], line: str) -> None:
    done = freestone("doctor", *options, "--", "true")
    assert done.returncode == 2
    assert line in done.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.long
def test_what_was_seen_before_an_interruption_is_kept(
    command: list[str], environment: dict[str, str], tmp_path: Path, heard_signals: None
) -> None:
    words = [*command, "doctor", "--", "sleep", "1"]
    with subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as tool:
        assert tool.stderr is not None
        for line in tool.stderr:
            if "over time" in line:
                break
        time.sleep(0.3)
        (held,) = (tmp_path / "results").iterdir()
        assert store.is_being_written(held)
        os.kill(tool.pid, signal.SIGINT)
        rest = tool.stderr.read()
    assert tool.returncode == 130, rest
    assert "interrupted; what was seen is kept in results/" in rest
    assert "go on with: " in rest
    (file,) = (tmp_path / "results").glob("*/observations.json")
    seen = Observations.model_validate_json(file.read_bytes())
    assert seen.cost is not None
    assert seen.done == ["platform", "prices", "cost"]
    words = [*command, "doctor", "--resume", str(file.parent), "--json"]
    with store.held(file.parent):
        rows = subprocess.run([*command, "list", "--json"], cwd=tmp_path, env=environment, capture_output=True)
        assert [each["state"] for each in json.loads(rows.stdout)] == ["running"]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 5
        assert f"{file.parent} is being written by another freestone; wait for it to end" in done.stderr
    gone_on = said(subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120))
    now = Observations.model_validate(gone_on["observations"])
    assert now.cost == seen.cost, "what was seen before is not looked at again"
    assert now.done == [*seen.done, "course", "heap", "calls", "sites"]


@pytest.mark.long
def test_remedies_go_on_where_they_were_interrupted(
    command: list[str], environment: dict[str, str], tmp_path: Path, churn: Path, heard_signals: None
) -> None:
    words = [*command, "doctor", "--goal", "time", "--time-budget", "10", "--", str(churn)]
    with subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as tool:
        until = time.monotonic() + 100
        while not any(len(file.read_bytes().splitlines()) > 3 for file in tmp_path.glob("results/*/trials.jsonl")):
            assert time.monotonic() < until
            time.sleep(0.05)
        os.kill(tool.pid, signal.SIGINT)
        _, rest = tool.communicate(timeout=60)
    assert tool.returncode == 130, rest
    (folder,) = (tmp_path / "results").iterdir()
    assert f"go on with: freestone doctor --resume {folder.relative_to(tmp_path)}" in " ".join(rest.split())
    before = (folder / "trials.jsonl").read_bytes()
    words = [*command, "doctor", "--resume", str(folder), "--json"]
    for _ in range(2):  # what is complete is shown
        told = said(subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120))
        assert told["goal"] == "time"
        assert told["tried"]
        assert (folder / "trials.jsonl").read_bytes().startswith(before)


APPLY = """
import sys
from freestone.allocators import configuration_for, find
from freestone.commands.doctor import _applied
from freestone.records.schema import Workload
(allocator,) = find([sys.argv[1]])
best = configuration_for(allocator).model_copy(update={"huge_pages_off": sys.argv[2] == "off"})
shell = "pwd; echo $SEEN; grep THP_enabled /proc/self/status; grep -c libfreestone /proc/self/maps; exit 7"
workload = Workload(name="sh", command=["sh", "-c", shell], environment={"SEEN": "a=b"}, directory=sys.argv[3])
sys.exit(_applied(best, workload))
"""


@pytest.mark.parametrize("pages", ["on", "off"])
@pytest.mark.parametrize("allocator", ["glibc", "freestone"])
def test_what_helped_is_applied_where_and_as_it_was_measured(
    tmp_path: Path, environment: dict[str, str], allocator: str, pages: str
) -> None:
    words = [sys.executable, "-c", APPLY, allocator, pages, str(tmp_path)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 7, done.stderr
    folder, seen, huge, maps = done.stdout.splitlines()
    assert (folder, seen) == (str(tmp_path), "a=b")
    assert huge.split()[1] == {"on": "1", "off": "0"}[pages]
    assert (maps != "0") == (allocator == "freestone")


@pytest.mark.long
def test_a_static_program_is_looked_at_from_outside(freestone: Tool, compile_c: CompileC) -> None:
    program = compile_c(CHURN, "-fno-builtin", "-static", name="static")
    done = freestone("doctor", "--", str(program))
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "Not seen: another allocator: it is static: no allocator can be put under it" in text
    assert text.startswith("mapping-churn: ")
    assert "Nothing can be tried: it is static" in text


@pytest.mark.long
def test_another_program_is_another_patient(
    command: list[str], environment: dict[str, str], tmp_path: Path, compile_c: CompileC
) -> None:
    program = compile_c("int main(void) { return 0; }", name="well")
    words = [*command, "doctor", "--observe-only", "--", str(program)]
    subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, timeout=120, check=True)
    compile_c("int main(void) { for (volatile long i = 0; i < 1000; i++); return 0; }", name="well")
    (folder,) = (tmp_path / "results").iterdir()
    words = [*command, "doctor", "--resume", str(folder)]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "well is not what it was when it was begun" in done.stderr


ENDLESS = CHURN.replace("i < 400; i++", "; i++")


@pytest.mark.long
def test_a_running_process_is_looked_at_and_left_alone(freestone: Tool, compile_c: CompileC) -> None:
    program = compile_c(ENDLESS, "-fno-builtin", name="endless")
    with subprocess.Popen([program]) as process:
        try:
            pid = str(process.pid)
            told = said(freestone("doctor", "--pid", pid, "--seconds", "2", "--allow-tracing", "--json"))
            (found,) = told["findings"]
            assert found["symptom"] == "mapping-churn"
            assert any("munmap comes from: " in line and "main (endless)" in line for line in found["evidence"])
            assert told["observations"]["running"] == process.pid
            assert "heap" in told["observations"]["unseen"]
            assert "leak" in told["unjudged"]
            assert told["to_try"]
            done = freestone("doctor", "--pid", pid, "--seconds", "1")
            text = " ".join(done.stdout.split())
            assert "Nothing can be named: page faults are " in text
            assert "Not seen: calls: strace slows a process meanwhile: --allow-tracing allows it" in text
            assert "cured" not in text
            state = Path(f"/proc/{process.pid}/status").read_text()
            assert process.poll() is None
            assert "TracerPid:\t0\n" in state
            assert "(stopped)" not in state
        finally:
            process.kill()


THREADS = """
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *work(void *unused) {
    for (int i = 0; i < 5000; i++) memset(malloc(1000), 1, 1000);
    for (;;) pause();
    return unused;
}
int main(void) {
    pthread_t thread;
    for (int i = 0; i < 4; i++) pthread_create(&thread, NULL, work, NULL);
    sleep(1);
    write(1, "!", 1);
    for (;;) pause();
}
"""


@pytest.mark.parametrize("allocator", ["glibc", "freestone"])
def test_heaps_of_threads_are_those_of_glibc_s_malloc_alone(
    freestone: Tool, compile_c: CompileC, allocator: str
) -> None:
    program = compile_c(THREADS, "-fno-builtin", "-pthread", name="threads")
    library = native.path("libfreestone.so")
    preload = {"LD_PRELOAD": str(library)} if allocator == "freestone" else {}
    with subprocess.Popen([program], env={**os.environ, **preload}, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.read(1) == b"!"
            done = freestone("doctor", "--pid", str(process.pid), "--seconds", "0.5")
        finally:
            process.kill()
    text = " ".join(done.stdout.split())
    if allocator == "glibc":
        assert " in 4 heaps of threads; " in text
        assert "It has loaded no malloc that is known here but its C library's." in text
    else:
        assert "heaps of threads" not in text
        assert f"Its malloc, as far as can be seen, comes from {library}." in text


def test_a_process_that_ends_meanwhile_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    alone, looks = tree.alone, 0
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"1")
        assert process.stdout.read(1) == b"1"  # before, /proc may not have its command line yet

        def look_and_end(number: int) -> tree.TreeReading:
            nonlocal looks
            looks += 1
            if looks == 2 and process.stdin is not None:
                process.stdin.close()
            return alone(number)

        monkeypatch.setattr(tree, "alone", look_and_end)
        status = doctor_process.look(process.pid, 3600, False, tmp_path / "results", as_json=False)
    assert status == 0
    out = capsys.readouterr().out
    assert "Not seen: the rest: it ended after " in out
    assert "For " in out


@pytest.mark.parametrize(
    ("words", "status", "line"),
    [
        (["--pid", "1", "--", "true"], 2, "--pid looks at what runs; leave out a program"),
        (["--pid", "1", "--seconds", "0"], 2, "--seconds: it takes from 100 ms to 1 d, not '0'"),
        (["--pid", "4194305"], 2, "there is no process 4194305"),
        (["--seconds", "3", "--", "true"], 2, "these belong to --pid; leave out --seconds"),
        (["--resume", "gone"], 5, "gone holds no diagnosis to go on with"),
        (["--resume", "gone", "--time-budget", "3"], 2, "--resume goes on with the settings of gone; leave out --time"),
    ],
)
def test_wrong_use_of_what_goes_on_or_runs(freestone: Tool, words: list[str], status: int, line: str) -> None:
    done = freestone("doctor", *words)
    assert done.returncode == status
    assert line in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_program_with_a_heap_of_its_own_is_told_so(freestone: Tool, compile_c: CompileC) -> None:
    """No allocator can be put into it, which is a diagnosis and no failure to observe."""
    own = compile_c(OWN, "-fno-builtin", "-rdynamic", name="own")
    told = said(freestone("doctor", "--json", "--", str(own)))
    assert [each["symptom"] for each in told["findings"]] == ["own-allocator"]
    assert "own malloc" in told["observations"]["unseen"]["cost"]
    assert told["best"] is None
