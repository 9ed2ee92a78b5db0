"""Switches of the kernel's are put back whatever becomes of whoever set them; a folder stands for the kernel's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from freestone.doctor import conditions, diagnosis, guardian, remedies
from freestone.doctor.conditions import Conditions, SwitchRefused
from freestone.records.schema import Allocator, Configuration

PLAIN = Configuration(name="glibc", allocator=Allocator(name="glibc", title="glibc"))


@pytest.fixture
def switches(tmp_path: Path) -> Path:
    folder = tmp_path / "transparent_hugepage"
    for size in (16, 64):
        (folder / f"hugepages-{size}kB").mkdir(parents=True)
        (folder / f"hugepages-{size}kB" / "enabled").write_text("always inherit madvise [never]\n")
    return folder


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "record.json"


def folios(*sizes: int) -> Configuration:
    return PLAIN.model_copy(update={"kernel": {f"hugepages-{size}kB": "always" for size in sizes}})


def state(switches: Path, size: int) -> str:
    return guardian.chosen(switches / f"hugepages-{size}kB" / "enabled")


def test_a_switch_is_set_for_a_run_and_put_back_behind_it(switches: Path, record: Path) -> None:
    with Conditions(switches=switches, record=record) as made:
        for _ in range(3):
            with made.around(folios(16, 64)):
                assert (state(switches, 16), state(switches, 64)) == ("always", "always")
                assert "hugepages-16kB" in record.read_text()
            assert (state(switches, 16), state(switches, 64)) == ("never", "never")
            assert record.read_text() == ""
            with made.around(PLAIN):
                assert state(switches, 16) == "never"


HOLDS = """
import sys, time
from pathlib import Path
from freestone.doctor.conditions import Conditions
from freestone.records.schema import Allocator, Configuration
switches, record = Path(sys.argv[1]), Path(sys.argv[2])
each = Configuration(name="x", allocator=Allocator(name="glibc", title="glibc"), kernel={"hugepages-64kB": "always"})
with Conditions(switches=switches, record=record) as made, made.around(each):
    print("set", flush=True)
    time.sleep(60)
"""


def holder(switches: Path, record: Path) -> subprocess.Popen[str]:
    """Somebody who has set a switch and sleeps."""
    words = [sys.executable, "-c", HOLDS, str(switches), str(record)]
    begun = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert begun.stdout is not None
    assert begun.stdout.readline() == "set\n"
    return begun


def comes_to(switches: Path, word: str) -> bool:
    until = time.monotonic() + 10
    while state(switches, 64) != word:
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_who_is_killed_with_its_whole_group_leaves_nothing_set(
    switches: Path, record: Path, number: signal.Signals, heard_signals: None
) -> None:
    begun = holder(switches, record)
    assert state(switches, 64) == "always"
    os.killpg(begun.pid, number)
    begun.wait()
    assert comes_to(switches, "never")


def test_a_guardian_is_no_descendant(switches: Path, record: Path) -> None:
    """The second Ctrl-C kills everything below the lab."""
    with Conditions(switches=switches, record=record) as made, made.around(folios(64)):
        told = subprocess.run(["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, text=True)
        words = [Path(f"/proc/{pid}/cmdline") for pid in told.stdout.split()]
        assert not [each for each in words if each.exists() and b"guardian.py" in each.read_bytes()]


def test_one_at_a_time(switches: Path, record: Path) -> None:
    begun = holder(switches, record)
    try:
        with (
            pytest.raises(SwitchRefused, match="another freestone sets the kernel's switches"),
            Conditions(switches=switches, record=record) as made,
            made.around(folios(16)),
        ):
            pass
        assert state(switches, 16) == "never"
        assert conditions.left_over(record) == [], "somebody is at it"
    finally:
        begun.kill()
        begun.wait()
    assert comes_to(switches, "never")


def killed_with_its_guardian(switches: Path, record: Path) -> None:
    (switches / "hugepages-64kB" / "enabled").write_text("always")
    file = str(switches / "hugepages-64kB" / "enabled")
    record.write_text(json.dumps({"boot": guardian.boot(), "was": {file: ["never", "always"]}}))


def test_what_a_killed_guardian_left_is_told_and_put_back_by_the_next(switches: Path, record: Path) -> None:
    killed_with_its_guardian(switches, record)
    (line,) = conditions.left_over(record)
    assert "hugepages-64kB/enabled was left at 'always'" in line
    assert "echo never > " in line
    with Conditions(switches=switches, record=record) as made, made.around(folios(16)):
        assert state(switches, 64) == "never"
        assert len(made.put_back) == 1
    assert conditions.left_over(record) == []


def test_a_record_of_an_earlier_run_of_the_kernel_is_none(switches: Path, record: Path) -> None:
    killed_with_its_guardian(switches, record)
    told = json.loads(record.read_text())
    record.write_text(json.dumps({**told, "boot": "another"}))
    assert conditions.left_over(record) == []
    with Conditions(switches=switches, record=record) as made, made.around(folios(16)):
        assert state(switches, 64) == "always", "that is how the system has it"


def test_what_somebody_else_has_set_meanwhile_stays(switches: Path, record: Path) -> None:
    with Conditions(switches=switches, record=record) as made, made.around(folios(64)):
        (switches / "hugepages-64kB" / "enabled").write_text("madvise")
    assert state(switches, 64) == "madvise"


def test_of_several_switches_all_are_set_or_none(switches: Path, record: Path) -> None:
    (switches / "hugepages-16kB" / "enabled").unlink()
    with (
        Conditions(switches=switches, record=record) as made,
        pytest.raises(SwitchRefused, match="hugepages-16kB"),
        made.around(folios(64, 16)),
    ):
        pass
    assert state(switches, 64) == "never"


@pytest.mark.parametrize(
    ("user", "names", "why"),
    [
        (0, ["hugepages-16kB"], None),
        (1000, ["hugepages-16kB"], "the kernel's switches are set by root alone"),
        (0, ["hugepages-32kB"], "this kernel has no switch for hugepages-32kB"),
    ],
)
def test_why_they_cannot_be_set(switches: Path, user: int, names: list[str], why: str | None) -> None:
    told = conditions.obstacle(dict.fromkeys(names, "always"), switches=switches, user=user)
    assert (told is None) if why is None else (told or "").startswith(why)


def test_a_kernel_without_the_folder_says_so(tmp_path: Path) -> None:
    told = conditions.obstacle({"hugepages-16kB": "always"}, switches=tmp_path / "none", user=0)
    assert told == "this kernel has no transparent huge pages"


def told_of_itself() -> str:
    words = ["sh", "-c", "grep THP_enabled /proc/self/status"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[-1]


def test_a_program_without_huge_pages_is_told_so_by_the_kernel() -> None:
    before = told_of_itself()
    each = PLAIN.model_copy(update={"huge_pages_off": True})
    with Conditions() as made:
        with made.around(each):
            assert told_of_itself() == "0"
        assert told_of_itself() == before


def test_what_the_kernel_gave_is_counted_and_a_switch_without_effect_is_no_remedy(switches: Path, record: Path) -> None:
    for size in (16, 64):
        (switches / f"hugepages-{size}kB" / "stats").mkdir()
        (switches / f"hugepages-{size}kB" / "stats" / "anon_fault_alloc").write_text("7\n")
    with Conditions(switches=switches, record=record) as made:
        with made.around(folios(16)):
            (switches / "hugepages-16kB" / "stats" / "anon_fault_alloc").write_text("19\n")
        with made.around(folios(64)):
            pass
    assert made.given == {"hugepages-16kB": 12, "hugepages-64kB": 0}
    tried = {f"glibc+folios-{size}kB": remedies.folios("glibc", size) for size in (16, 64)}
    assert list(diagnosis.ungiven(tried, made.given)) == ["glibc+folios-64kB"]
    assert diagnosis.ungiven(tried, {}) == {}, "a kernel that does not count says nothing"
