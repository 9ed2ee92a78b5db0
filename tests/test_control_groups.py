"""Limits are found in both hierarchies, on the way up, whatever the files hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone import control_groups, machine
from freestone.doctor.platform import describe

NONE_V1 = str((1 << 63) - 4096)


def lay(root: Path, cgroup: str, files: dict[str, str]) -> Path:
    for name, text in {
        "proc/self/cgroup": cgroup,
        **{f"sys/fs/cgroup/{name}": text for name, text in files.items()},
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


FIRST = {
    "memory/box/inner/memory.limit_in_bytes": NONE_V1,
    "memory/box/inner/memory.usage_in_bytes": "2048\n",
    "memory/box/memory.limit_in_bytes": "1048576\n",
    "memory/box/memory.usage_in_bytes": "4096\n",
    "memory/memory.limit_in_bytes": NONE_V1,
    "cpu/box/cpu.cfs_quota_us": "50000\n",
    "cpu/box/cpu.cfs_period_us": "100000\n",
    "cpu/cpu.cfs_quota_us": "-1\n",
    "cpu/cpu.cfs_period_us": "100000\n",
}


def test_the_first_hierarchy(tmp_path: Path) -> None:
    root = lay(tmp_path, "4:memory:/box/inner\n3:cpu,cpuacct:/box\n0::/\n", FIRST)
    assert [group.limit for group in control_groups.memory(root)] == [None, 1 << 20, None, None, None]
    assert (control_groups.tightest_memory(root), control_groups.cpu(root)) == ("1048576", "50000 100000")
    facts = machine.describe(root).facts
    assert (facts["cgroup_memory_max"], facts["cgroup_cpu_max"]) == ("1048576", "50000 100000")
    seen = describe(None, root=root)
    assert (seen.memory_limit_kib, seen.memory_used_kib, seen.pressure_some) == (1024, 2, None)


def test_a_machine_of_the_first_that_limits_nothing(tmp_path: Path) -> None:
    root = lay(
        tmp_path, "4:memory:/\n3:cpu:/\n", {"memory/memory.limit_in_bytes": NONE_V1, "cpu/cpu.cfs_quota_us": "-1"}
    )
    assert (control_groups.tightest_memory(root), control_groups.cpu(root)) == (None, None)
    assert describe(None, root=root).memory_limit_kib is None


def test_a_container_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    """The path is one of the host's, and the folder of that name is not there."""
    root = lay(tmp_path, "4:memory:/docker/0123\n", {"memory/memory.limit_in_bytes": "4194304"})
    assert control_groups.tightest_memory(root) == "4194304"


def test_the_second_without_a_limit_says_so(tmp_path: Path) -> None:
    root = lay(tmp_path, "0::/user\n", {"user/memory.max": "max\n", "user/cpu.max": "max 100000\n"})
    assert (control_groups.tightest_memory(root), control_groups.cpu(root)) == ("max", "max")


@given(texts=st.lists(st.text(max_size=30), min_size=4, max_size=4))
def test_whatever_the_files_say_nothing_breaks(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    files = {
        "memory.max": texts[1],
        "cpu.max": texts[2],
        "memory/memory.limit_in_bytes": texts[3],
        "memory.stat": texts[3],
    }
    root = lay(tmp_path_factory.mktemp("machine"), f"1:memory:/\n0::/\n{texts[0]}", files)
    assert all(group.limit is None or group.limit >= 0 for group in control_groups.memory(root))
    control_groups.cpu(root)
