"""The machine is part of the result: its facts are read where the kernel states them, and nothing is made up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from freestone import machine
from freestone.records.schema import Machine


def _machine(root: Path, files: dict[str, str]) -> Machine:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return machine.describe(root)


def test_this_machine_is_the_same_twice() -> None:
    first, second = machine.describe(), machine.describe()
    assert first == second
    assert first.facts["cores_online"]
    assert first.facts["kernel"]
    assert first.facts["page_size"]


def test_what_the_kernel_does_not_state_is_none(tmp_path: Path) -> None:
    facts = machine.describe(tmp_path).facts
    for name in ("governor", "turbo", "thp", "mthp", "overcommit", "cgroup_cpu_max", "memory_kib", "cache_l2"):
        assert facts[name] is None, name


def test_facts_are_read_from_the_kernels_files(tmp_path: Path) -> None:
    cpu = "sys/devices/system/cpu/"
    facts = _machine(
        tmp_path,
        {
            "proc/cpuinfo": "model name\t: Some CPU @ 3GHz\nflags\t\t: fpu hypervisor sse\n",
            "proc/meminfo": "MemTotal:       24650000 kB\n",
            "proc/sys/vm/overcommit_memory": "2\n",
            "proc/self/cgroup": "0::/user/box\n",
            "sys/fs/cgroup/user/cpu.max": "50000 100000\n",
            "sys/fs/cgroup/user/box/cpu.max": "max 100000\n",
            "sys/fs/cgroup/user/box/memory.max": "1048576\n",
            "sys/fs/cgroup/memory.max": "4194304\n",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
            "sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled": "[always] inherit madvise never\n",
            "sys/kernel/mm/transparent_hugepage/hugepages-128kB/enabled": "always inherit madvise [never]\n",
            cpu + "cpu0/cpufreq/scaling_governor": "performance\n",
            cpu + "intel_pstate/no_turbo": "1\n",
            cpu + "cpu0/cache/index0/level": "1\n",
            cpu + "cpu0/cache/index0/type": "Data\n",
            cpu + "cpu0/cache/index0/size": "48K\n",
            cpu + "cpu0/cache/index1/level": "1\n",
            cpu + "cpu0/cache/index1/type": "Instruction\n",
            cpu + "cpu0/cache/index1/size": "32K\n",
            cpu + "cpu0/cache/index2/level": "2\n",
            cpu + "cpu0/cache/index2/type": "Unified\n",
            cpu + "cpu0/cache/index2/size": "2048K\n",
        },
    ).facts
    expected = {
        "cpu": "Some CPU @ 3GHz",
        "virtualised": True,
        "overcommit": 2,
        "cgroup_cpu_max": "50000 100000",
        "cgroup_memory_max": "1048576",
        "thp": "madvise",
        "mthp": "64kB=always",
        "governor": "performance",
        "turbo": False,
        "cache_l1d": "48K",
        "cache_l2": "2048K",
        "cache_l3": None,
    }
    assert {name: facts[name] for name in expected} == expected


@pytest.mark.parametrize("fact", machine.IDENTIFYING)
def test_a_machine_with_another_fact_is_another_machine(fact: str) -> None:
    facts = dict(machine.describe().facts)
    assert fact in facts
    assert machine.identity({**facts, fact: "something else"}) != machine.identity(facts)


def test_a_fact_that_changes_no_result_changes_no_identity() -> None:
    facts = dict(machine.describe().facts)
    assert machine.identity({**facts, "distribution": "another"}) == machine.identity(facts)


def test_the_machine_is_not_named(tmp_path: Path) -> None:
    facts = _machine(tmp_path, {"etc/machine-id": "0123456789abcdef0123456789abcdef\n"}).facts
    assert "0123" not in str(facts["host"])
    assert facts["host"] != _machine(tmp_path, {"etc/machine-id": "fedcba9876543210\n"}).facts["host"]


def test_what_is_set_while_it_runs_is_told(tmp_path: Path) -> None:
    thp = "sys/kernel/mm/transparent_hugepage/enabled"
    before = _machine(tmp_path, {thp: "always [madvise] never\n"})
    assert machine.changed(before, tmp_path) is None
    (tmp_path / thp).write_text("[always] madvise never\n")
    assert machine.changed(before, tmp_path) == "thp of the machine was madvise and is always"


def test_results_of_before_a_fact_was_known_are_not_told_to_differ_in_it(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    old = machine.describe(tmp_path)
    del old.facts["jemalloc_conf"]
    (tmp_path / "etc/malloc.conf").symlink_to("narenas:1")
    assert machine.changed(old, tmp_path) is None


def test_the_file_that_steers_jemalloc_makes_another_machine_and_its_absence_none(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    without = machine.describe(tmp_path)
    facts = {name: value for name, value in without.facts.items() if name not in machine.MADE_KNOWN}
    assert machine.identity(facts) == without.id, "results of before the fact was known stay comparable"
    (tmp_path / "etc/malloc.conf").symlink_to("narenas:1")
    assert machine.describe(tmp_path).id != without.id
    assert machine.changed(without, tmp_path) == "jemalloc_conf of the machine was None and is narenas:1"


@pytest.mark.parametrize(
    ("command", "expected"),
    [("ulimit -s 4096", "stack=4194304"), ("ulimit -v 9000000", "address_space=9216000000"), ("renice 3 $$", "nice=3")],
)
def test_what_a_shell_has_set_is_a_fact(command: str, expected: str) -> None:
    tell = "from freestone import machine; print(machine.describe().facts['limits'])"
    said = subprocess.run(
        ["sh", "-c", f'{command} >/dev/null; exec "$@"', "sh", sys.executable, "-c", tell],
        capture_output=True,
        text=True,
        check=True,
    )
    assert expected in said.stdout
