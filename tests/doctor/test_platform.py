"""The rules under which a program runs, from folders that stand for the kernel's."""

from __future__ import annotations

from pathlib import Path

from freestone.doctor.platform import describe

FILES = {
    "proc/sys/vm/overcommit_memory": "2\n",
    "proc/self/cgroup": "0::/user/box\n",
    "proc/77/cgroup": "0::/other\n",
    "sys/fs/cgroup/user/box/memory.max": "max\n",
    "sys/fs/cgroup/user/box/memory.current": "1048576\n",
    "sys/fs/cgroup/user/box/memory.pressure": "some avg10=1.00 avg60=25.00 avg300=0.00 total=5\nfull avg10=0 avg60=9\n",
    "sys/fs/cgroup/user/memory.high": "4194304\n",
    "sys/fs/cgroup/memory.max": "8388608\n",
    "sys/fs/cgroup/other/memory.max": "2097152\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled": "[always] inherit madvise never\n",
    "sys/kernel/mm/transparent_hugepage/hugepages-16kB/enabled": "always inherit madvise [never]\n",
}


def test_what_the_kernel_states_is_read(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    seen = describe("musl", root=tmp_path)
    assert (seen.libc, seen.huge_pages, seen.overcommit) == ("musl", "madvise", 2)
    assert list(seen.folios.items()) == [(16, "never"), (64, "always")]
    assert (seen.memory_limit_kib, seen.memory_used_kib, seen.pressure_some) == (4096, 1024, 0.25)


def test_what_it_does_not_state_is_none(tmp_path: Path) -> None:
    seen = describe(None, root=tmp_path)
    assert (seen.huge_pages, seen.folios, seen.memory_limit_kib, seen.pressure_some) == (None, {}, None, None)
