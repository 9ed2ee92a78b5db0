"""A program that the kernel ends for want of memory is told so, with the limit that was reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from freestone.records.schema import Output
from freestone.trials import ending
from freestone.trials.launch import LaunchReading
from freestone.trials.memory_limit import Before

MIB = 1 << 20


def lay(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def second(kills: int, reached: int, *, above: int = 0, limit: str = str(160 * MIB)) -> dict[str, str]:
    groups = "sys/fs/cgroup"
    return {
        "proc/self/cgroup": "0::/box/inner\n",
        "proc/self/status": "Name:\tpython3\nVmRSS:\t  51200 kB\n",
        f"{groups}/box/inner/memory.max": limit,
        f"{groups}/box/inner/memory.events": f"low 0\nhigh 0\nmax 9\noom {reached}\noom_kill {kills}\n",
        f"{groups}/box/memory.max": str(4096 * MIB),
        f"{groups}/box/memory.events": f"max 9\noom {reached + above}\noom_kill {kills}\n",
    }


def first(kills: int, failures: int, above: int = 0) -> dict[str, str]:
    groups = "sys/fs/cgroup/memory"
    return {
        "proc/self/cgroup": "4:memory:/box/inner\n0::/\n",
        f"{groups}/box/inner/memory.limit_in_bytes": str(160 * MIB),
        f"{groups}/box/inner/memory.failcnt": f"{failures}\n",
        f"{groups}/box/inner/memory.oom_control": f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n",
        f"{groups}/box/memory.limit_in_bytes": str(4096 * MIB),
        f"{groups}/box/memory.failcnt": f"{above}\n",
        f"{groups}/box/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
    }


NEIGHBOURS = {"sys/fs/cgroup/box/memory.events": "max 9\noom 2\noom_kill 2\n"}
"""The group above, when a neighbour has lost a process; a program here was ended by somebody's hand."""
OWN = " as its control group's limit of 160 MiB was reached (the lab is in that group too"
ABOVE = " as its control group's limit of 4,096 MiB was reached (the lab is in that group too"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (second(1, 1), second(2, 2), f"{OWN}, with 50 MiB resident)"),
        (second(1, 1), second(2, 1, above=1), f"{ABOVE}, with 50 MiB resident)"),
        (second(1, 1), second(2, 1), " as the machine's memory ran out"),
        (second(1, 1, limit="max"), second(2, 1, limit="max"), " as the machine's memory ran out"),
        (second(1, 1), second(1, 1) | NEIGHBOURS, None),
        (second(1, 1), second(1, 2), None),
        (second(1, 1), second(1, 1), None),
        (first(0, 3), first(1, 9), f"{OWN})"),
        (first(0, 3), first(1, 3, above=2), f"{ABOVE})"),
        (first(0, 3), first(1, 3), " as the machine's memory ran out"),
        (first(0, 3), first(0, 9), None),
        ({}, {}, None),
        ({}, second(1, 1), None),
    ],
)
def test_the_group_whose_limit_was_in_the_way_is_named(
    tmp_path: Path, before: dict[str, str], after: dict[str, str], said: str | None
) -> None:
    seen = Before.now(lay(tmp_path, before))
    assert seen.cause(lay(tmp_path, after)) == said


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        ({"state": "signaled", "signal": 9}, "killed by SIGKILL, so it was: last words"),
        (
            {"state": "exited", "exit_code": 137},
            "exit status 137: a process of its own was killed, so it was: last",
        ),
        ({"state": "exited", "exit_code": 1}, "exit status 1: last words"),
        ({"state": "signaled", "signal": 11}, "killed by SIGSEGV: last words"),
    ],
)
def test_it_is_said_of_what_sigkill_has_ended(reading: dict[str, object], said: str) -> None:
    found = LaunchReading.model_validate({"version": 1, **reading})
    cause = ", so it was" if ending.killed(found) else None
    output = Output(stdout_bytes=0, stdout_sha256="", stderr_tail="last words\n")
    assert (ending.failure(found, output, None, (), cause) or "").startswith(said)
    if cause is not None:
        assert ", so it was" not in (ending.failure(found, output, None) or "")
