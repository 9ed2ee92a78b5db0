"""The machine is part of the result: its facts are read where the kernel states them, and nothing is made up."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from freestone import machine
from freestone.analysis import machines
from freestone.analysis.comparable import machines_differ
from freestone.records import identity
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


@pytest.mark.parametrize("fact", identity.IDENTIFYING)
def test_a_machine_with_another_fact_is_another_machine(fact: str) -> None:
    facts = dict(machine.describe().facts)
    assert fact in facts
    assert identity.identity({**facts, fact: "something else"}) != identity.identity(facts)


def test_a_fact_that_changes_no_result_changes_no_identity() -> None:
    facts = dict(machine.describe().facts)
    assert identity.identity({**facts, "distribution": "another"}) == identity.identity(facts)


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
    facts = {name: value for name, value in without.facts.items() if name not in identity.MADE_KNOWN or value}
    assert identity.identity(facts) == without.id, "results of before the fact was known stay comparable"
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


UNKNOWN: tuple[dict[str, str], ...] = (
    {},
    {"etc/machine-id": ""},
    {"etc/machine-id": "\n"},
    {"etc/machine-id": "uninitialized\n"},
)


@pytest.mark.parametrize("files", UNKNOWN)
def test_a_machine_without_an_identity_is_known_by_its_boot(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for name, boot in (("one", "b1"), ("two", "b1"), ("one", "b2")):
        monkeypatch.setattr(platform, "node", lambda name=name: name)
        found.append(_machine(tmp_path / f"{name}-{boot}", {**files, "proc/sys/kernel/random/boot_id": f"{boot}\n"}))
    one, two, other = found
    assert one.facts["host"] != two.facts["host"], "containers have names of their own"
    assert machines.key(one) == machines.key(two)
    assert machines_differ(one, two) is None, "what one has begun goes on in the other"
    assert machines.key(one) != machines.key(other)
    assert machines_differ(one, other) is None, "a machine that keeps its name and was started anew goes on"
    assert "b1" not in str(one.facts), "nothing of it is shown"


def test_containers_of_one_machine_that_are_set_otherwise_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot = {"proc/sys/kernel/random/boot_id": "b1"}
    found = []
    for name, overcommit in (("one", "0"), ("two", "1")):
        monkeypatch.setattr(platform, "node", lambda name=name: name)
        found.append(_machine(tmp_path / name, {**boot, "proc/sys/vm/overcommit_memory": overcommit}))
    told = machines_differ(*found)
    assert told is not None
    assert "overcommit 0 and 1" in told


def test_machines_from_one_disk_with_two_processors_are_two(tmp_path: Path) -> None:
    found = [
        _machine(tmp_path / cpu, {"etc/machine-id": "0123\n", "proc/cpuinfo": f"model name : {cpu}\n"})
        for cpu in ("A", "B")
    ]
    assert found[0].facts["host"] == found[1].facts["host"]
    assert machines.key(found[0]) != machines.key(found[1])


@pytest.mark.parametrize("files", [{"etc/machine-id": "0123\n"}, *UNKNOWN])
def test_results_of_before_the_boot_was_known_go_on_where_they_were_begun(
    files: dict[str, str], tmp_path: Path
) -> None:
    now = _machine(tmp_path, {**files, "proc/sys/kernel/random/boot_id": "b1"})
    facts = {name: value for name, value in now.facts.items() if name not in machines.BESIDE_THE_HOST}
    known = files.get("etc/machine-id", "").strip() or platform.node()
    facts["host"] = hashlib.sha256(f"freestone host {known}".encode()).hexdigest()[:12]
    before = Machine(id=identity.identity(facts), facts=facts)
    assert machines_differ(before, now) is None
    other = {**facts, "cpu": "another"}
    assert machines_differ(Machine(id=identity.identity(other), facts=other), now) is not None


def test_a_boot_is_never_what_is_said_to_differ(tmp_path: Path) -> None:
    boot = "proc/sys/kernel/random/boot_id"
    one = _machine(tmp_path / "one", {"etc/machine-id": "1", boot: "b1"})
    other = _machine(tmp_path / "other", {"etc/machine-id": "2", boot: "b2"})
    assert machines_differ(one, other) == f"host {one.facts['host']} and {other.facts['host']}"
