"""What is too large for this machine is left out and named with both numbers; what fits is measured."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone import suites
from freestone.records.schema import Workload
from freestone.suites import SuiteError, room, select, selection, too_large
from freestone.suites.expansion import Planned, expand
from freestone.suites.room import MIB, Room
from freestone.suites.schema import Entry, Suite

SIZES = st.none() | st.integers(0, 1 << 30)
ROOMS = st.builds(Room, SIZES, SIZES)
NO_LIMIT = 9223372036854771712


def suite(**entry: Any) -> Suite:
    return Suite(title="t", workload=[Entry.model_validate({"command": ["true"], "name": "w", **entry})])


@given(ROOMS, ROOMS)
def test_what_is_lacking_is_said_with_both_numbers_and_nothing_else_is(needed: Room, free: Room) -> None:
    said = room.lack(needed, free, "/scratch") or ""
    pairs = ((needed.memory_mib, free.memory_mib), (needed.disk_mib, free.disk_mib))
    short = [(need, there) for need, there in pairs if need is not None and there is not None and need > there]
    assert bool(said) == bool(short)
    assert all(f"{need:,} MiB" in said and f"{there:,} MiB are free" in said for need, there in short)
    assert said.count("MiB") == 2 * len(short)
    assert said.count("/scratch") == said.count("disk")


@given(ROOMS, ROOMS, st.integers(0, 1 << 20))
def test_more_room_never_leaves_out_more(needed: Room, free: Room, more: int) -> None:
    def wider(size: int | None) -> int | None:
        return None if size is None else size + more

    if room.lack(needed, free, "/") is None:
        assert room.lack(needed, Room(wider(free.memory_mib), wider(free.disk_mib)), "/") is None


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=5), st.integers(0, 1000))
def test_the_first_size_that_fits_is_measured_and_those_before_it_are_named(needs: list[int], there: int) -> None:
    first, *rest = needs
    sizes = suite(
        command=["true", "{most}"],
        values={"most": "size-0", "memory": first},
        memory_mib="{memory}",
        smaller=[{"most": f"size-{i}", "memory": need} for i, need in enumerate(rest, start=1)],
    )
    found = select([sizes], directory="/", free=Room(there, None))
    fits = next((i for i, need in enumerate(needs) if need <= there), None)
    assert [each.command for each in found.workloads] == ([] if fits is None else [["true", f"size-{fits}"]])
    names = [f"w with most=size-{i}" for i in range(len(needs) if fits is None else fits)]
    assert [each.name for each in found.absent] == (names if rest else ["w"] * len(names))


def test_one_that_is_too_large_does_not_keep_the_others_from_being_measured() -> None:
    cases = [{"size": 1, "memory": 10}, {"size": 2, "memory": 4000}]
    sizes = suite(name="w-{size}", cases=cases, memory_mib="{memory}", disk_mib=5)
    found = select([sizes], directory="/", free=Room(1500, 100))
    assert [each.name for each in found.workloads] == ["w-1"]
    (left_out,) = found.absent
    assert left_out.name == "w-2"
    assert left_out.reason == "it needs 4,000 MiB of memory, where 1,500 MiB are free"


def test_what_a_workload_takes_is_written_down_with_it() -> None:
    (found,) = select([suite(memory_mib=70, disk_mib=5)], directory="/", free=Room(100, 100)).workloads
    assert (found.memory_mib, found.disk_mib) == (70, 5)
    (found,) = select([suite(memory_mib=70, smaller=[{}])], directory="/", free=Room(100, 100)).workloads
    assert (found.memory_mib, found.disk_mib) == (70, None)


@given(st.lists(ROOMS, max_size=8), ROOMS)
def test_of_an_earlier_selection_what_lacks_room_now_is_named_and_nothing_else(needs: list[Room], free: Room) -> None:
    earlier = [
        Workload(name=f"w-{number}", command=["true"], memory_mib=each.memory_mib, disk_mib=each.disk_mib)
        for number, each in enumerate(needs)
    ]
    found = {each.name: each.reason for each in too_large(earlier, free)}
    lacks = {f"w-{number}": room.lack(each, free, selection._scratch()) for number, each in enumerate(needs)}
    assert found == {name: lack for name, lack in lacks.items() if lack is not None}


def test_what_an_earlier_freestone_selected_is_not_asked_for() -> None:
    assert too_large([Workload(name="w", command=["true"])], Room(0, 0)) == []


def test_disk_is_asked_where_programs_get_their_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/proc")  # a file system without a byte
    found = select([suite(disk_mib=7)], directory="/")
    assert [each.reason for each in found.absent] == ["it needs 7 MiB of disk below /proc, where 0 MiB are free"]


def test_quick_sizes_take_what_quick_sizes_take() -> None:
    sizes = suite(values={"memory": 4000}, quick={"memory": 1}, memory_mib="{memory}")
    assert select([sizes], directory="/", free=Room(100)).workloads == []
    assert len(select([sizes], quick=True, directory="/", free=Room(100)).workloads) == 1


@pytest.mark.parametrize("quick", [False, True])
def test_every_suite_that_comes_along_has_something_for_a_small_machine(quick: bool) -> None:
    for name in suites.names():
        expected = {each.name for each in expansion_of(name, quick)}
        found = select([suites.load(name)], quick=quick, directory="/", free=Room(512, 512))
        if not found.workloads and any("is not built" in each.reason for each in found.absent):
            continue
        left_out = {each.name for each in found.absent if "MiB" in each.reason}
        assert {each.name for each in found.workloads}, name
        assert {each.partition(" with ")[0] for each in left_out} <= expected
        if name == "curves":
            assert left_out == ({"live-10000000", "size-1G"})
        if name == "sizes" and not quick:
            assert left_out == {"sizes with most=1G", "sizes with most=256M"}
            assert found.workloads[0].command[-4:] == ["--most", "64M", "--milliseconds", "10"]


def expansion_of(name: str, quick: bool) -> list[Planned]:
    places = {"workloads": "/w", "inputs": "/i", "python": "/p", "cores": "2", "4cores": "8"}
    return expand([suites.load(name)], places, quick=quick)


@pytest.mark.parametrize("given", ["many", "-1", 1.5, "{size}"])
def test_a_need_that_is_no_number_is_refused(given: str | float) -> None:
    with pytest.raises(SuiteError, match=r"workload 'w': memory_mib and disk_mib take a whole number of MiB, not '"):
        expand([suite(memory_mib=given, values={"size": "1G"})], {})


def machine(root: Path, files: dict[str, str], *, cgroup: str = "", available_kib: int = 8 << 20) -> Path:
    """A machine's files below a folder: ``files`` are those of its control groups."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(f"MemTotal: 99999999 kB\nMemAvailable:   {available_kib} kB\n")
    (root / "proc/self/cgroup").write_text(cgroup)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_what_the_kernel_calls_available_is_free_where_no_group_forbids_it(tmp_path: Path) -> None:
    assert room.free(tmp_path, root=machine(tmp_path, {}, available_kib=3000 * 1024)).memory_mib == 3000
    assert room.free(tmp_path, root=tmp_path / "nothing").memory_mib is None


@pytest.mark.parametrize("mount", ["", "unified/"])
def test_the_tightest_group_on_the_way_up_counts(tmp_path: Path, mount: str) -> None:
    files = {
        "outer/inner/memory.max": "max\n",
        "outer/inner/memory.current": f"{50 * MIB}\n",
        "outer/memory.max": f"{1000 * MIB}\n",
        "outer/memory.current": f"{600 * MIB}\n",
        "outer/memory.stat": f"anon 1\ninactive_file {100 * MIB}\nactive_file {50 * MIB}\n",
    }
    root = machine(tmp_path, {mount + name: text for name, text in files.items()}, cgroup="0::/outer/inner\n")
    assert room.free(tmp_path, root=root).memory_mib == 550, "the page cache can be had back"


def test_the_first_hierarchy_is_understood_too(tmp_path: Path) -> None:
    files = {
        "memory/box/memory.limit_in_bytes": f"{700 * MIB}\n",
        "memory/box/memory.usage_in_bytes": f"{500 * MIB}\n",
        "memory/box/memory.stat": f"total_inactive_file {30 * MIB}\ntotal_active_file 0\ninactive_file 0\n",
        "memory/memory.limit_in_bytes": f"{NO_LIMIT}\n",
        "memory/memory.usage_in_bytes": f"{900 * MIB}\n",
    }
    root = machine(tmp_path, files, cgroup="5:cpu,memory:/box\n0::/\n")
    assert room.free(tmp_path, root=root).memory_mib == 230


@given(st.text(max_size=60), st.text(max_size=20))
def test_whatever_the_files_say_nothing_breaks(
    tmp_path_factory: pytest.TempPathFactory, group: str, limit: str
) -> None:
    root = tmp_path_factory.mktemp("machine")
    files = {"memory.max": limit, "memory.current": limit, "memory.stat": limit}
    assert (room.free(root, root=machine(root, files, cgroup=f"0::/\n{group}")).memory_mib or 0) >= 0


@pytest.fixture
def group() -> Iterator[Path]:
    """A real control group of 300 MiB, below this process's own."""
    lines = (line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines())
    own = {controllers: path for _, controllers, path in lines}
    first = Path("/sys/fs/cgroup/memory")
    if "memory" in own and first.is_dir():
        parent, limit = first / own["memory"].lstrip("/"), "memory.limit_in_bytes"
    else:
        parent, limit = Path("/sys/fs/cgroup") / own.get("", "").lstrip("/"), "memory.max"
    made = parent / f"freestone-test-{os.getpid()}"
    try:
        made.mkdir()
        (made / limit).write_text(str(300 * MIB))
    except OSError as error:
        if made.is_dir():
            made.rmdir()
        pytest.skip(f"no control group can be made here: {error.strerror}")
    yield made
    made.rmdir()


def test_inside_a_real_group_its_limit_counts(group: Path) -> None:
    ask = "from pathlib import Path; from freestone.suites import room; print(room.free(Path('/')).memory_mib)"
    script = f'echo $$ >{group}/cgroup.procs && exec "$0" -c "$1"'
    done = subprocess.run(["sh", "-c", script, sys.executable, ask], capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) < 300
