"""Where the kernel says nothing of the programs that run, the lab says what to do before it runs any."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from freestone.trials.launch import Permissions
from freestone.trials.surroundings import obstacle, surroundings

NEITHER = Permissions(perf=False, ptrace=False)

SANDBOX = r"""
    #include <errno.h>
    #include <linux/filter.h>
    #include <linux/seccomp.h>
    #include <stddef.h>
    #include <stdlib.h>
    #include <sys/prctl.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    #define DENY(number) \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
    int main(int count, char **words) {
        struct sock_filter rules[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            DENY(SYS_perf_event_open),
            DENY(words[1][0] == 'b' ? SYS_ptrace : SYS_perf_event_open),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 99;
        execvp(words[2], words + 2);
        return 98;
    }
"""


@pytest.fixture
def sandboxed(compile_c, tmp_path):
    """``sandboxed("both", ...)`` runs the tool where the kernel refuses perf and ptrace, ``"perf"`` where the first."""
    sandbox = compile_c(SANDBOX, name="sandbox")

    def run(refused: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [str(sandbox), refused, sys.executable, "-m", "freestone", *words]
        return subprocess.run(
            command, cwd=tmp_path, env={**os.environ, **environment}, capture_output=True, text=True, check=False
        )

    return run


def test_where_nothing_can_be_proved_one_line_says_what_to_do_and_nothing_runs(sandboxed, tmp_path: Path) -> None:
    told = tmp_path / "ran"
    done = sandboxed("both", "compare", "-a", "glibc", "--", "touch", str(told), KUBERNETES_SERVICE_HOST="10.0.0.1")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert 'capabilities: {add: ["SYS_PTRACE"]}' in done.stderr
    assert not told.exists()
    assert not (tmp_path / "results").exists()


def test_where_perf_alone_is_refused_everything_is_proved_by_rehearsals(sandboxed) -> None:
    done = sandboxed("perf", "compare", "-a", "glibc", "-n", "1", "--no-report", "--", "sh", "-c", "ls /; true")
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_where_perf_is_refused_system_calls_are_not_counted_with_the_reason(sandboxed, tmp_path: Path) -> None:
    assert sandboxed("perf", "compare", "-a", "glibc", "-n", "1", "--no-report", "--", "true").returncode == 0
    (folder,) = (tmp_path / "results").iterdir()
    done = sandboxed("perf", "compare", "--resume", str(folder), "--count", "calls")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert "system calls are not counted: beside strace, only perf can prove" in done.stderr
    assert not (folder / "calls.json").exists()


@pytest.mark.parametrize(
    ("marks", "environment", "where"),
    [
        (["run/.containerenv"], {}, "podman"),
        ([".dockerenv"], {}, "docker"),
        ([".dockerenv"], {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ([], {}, "host"),
    ],
)
def test_a_container_is_known_by_its_marks(tmp_path: Path, marks: list[str], environment, where: str) -> None:
    for mark in marks:
        (tmp_path / mark).parent.mkdir(exist_ok=True)
        (tmp_path / mark).touch()
    assert surroundings(environment, tmp_path) == where


@pytest.mark.parametrize(
    ("paranoid", "words"),
    [("4\n", "sysctl kernel.perf_event_paranoid=2 (it is 4)"), ("2\n", "sandbox"), ("?", "sandbox")],
)
def test_outside_of_containers_it_is_the_kernel_s_setting_or_a_sandbox(
    tmp_path: Path, paranoid: str, words: str
) -> None:
    folder = tmp_path / "proc/sys/kernel"
    folder.mkdir(parents=True)
    (folder / "perf_event_paranoid").write_text(paranoid)
    assert words in (obstacle(NEITHER, "host", tmp_path) or "")


@pytest.mark.parametrize(
    ("where", "words"),
    [("docker", "docker run --cap-add"), ("podman", "podman run --cap-add"), ("kubernetes", "capabilities: {add:")],
)
def test_each_option_is_on_the_page(where, words: str) -> None:
    page = (Path(__file__).parents[2] / "docs/guide/containers.md").read_text(encoding="utf-8")
    assert words in page
    assert words in (obstacle(NEITHER, where) or "")


def test_one_of_both_is_enough() -> None:
    for allowed in (Permissions(perf=True, ptrace=False), Permissions(perf=False, ptrace=True)):
        assert obstacle(allowed, "docker") is None
