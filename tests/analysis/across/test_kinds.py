"""Kinds of machines: alike in what decides, and told apart by no more than it takes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from freestone.analysis.across.kinds import FACTS, described, kind_of, names
from freestone.records.schema import Machine

FACT = st.one_of(st.none(), st.integers(0, 1 << 20), st.sampled_from(["always", "madvise"]))
MACHINES = st.builds(lambda facts: Machine(id="x", facts=facts), st.fixed_dictionaries(dict.fromkeys(FACTS, FACT)))


def _machine(**facts: str | int) -> Machine:
    return Machine(id="x", facts={"cpu": "EPYC", "page_size": 4096, "cores_allowed": 8, "thp": "madvise", **facts})


def test_a_host_and_its_kernel_make_no_kind() -> None:
    assert kind_of(_machine(cgroup_memory_max="max")) == kind_of(_machine())
    assert kind_of(_machine(host="a", kernel="6.1.0-1")) == kind_of(_machine(host="b", kernel="6.1.0-2"))


def test_a_name_says_the_processor_and_what_differs() -> None:
    kinds = [kind_of(_machine()), kind_of(_machine(page_size=65536)), kind_of(_machine(thp="always"))]
    assert list(names(kinds).values()) == [
        "EPYC, 4 KiB pages, huge pages madvise",
        "EPYC, 64 KiB pages, huge pages madvise",
        "EPYC, 4 KiB pages, huge pages always",
    ]
    assert list(names(kinds[:1]).values()) == ["EPYC"]
    other = kind_of(_machine(cpu="Xeon", page_size=65536))
    assert list(names([kinds[0], other]).values()) == ["EPYC", "Xeon"], "the processor says it"
    assert described(other) == "8 CPUs, 64 KiB pages, huge pages madvise"


@given(st.lists(MACHINES, min_size=1, max_size=8))
def test_two_kinds_never_have_one_name(machines: list[Machine]) -> None:
    kinds = {kind_of(each) for each in machines}
    assert len(set(names(kinds).values())) == len(kinds)


def test_what_the_memory_and_the_processor_are_limited_to_makes_a_kind() -> None:
    for fact, value, said in (
        ("overcommit", 2, "EPYC, overcommit 2"),
        ("cgroup_cpu_max", "50000 100000", "EPYC, quota of 0.5 CPUs"),
        ("cgroup_memory_max", "1048576", "EPYC, memory limit 1048576"),
    ):
        usual = {"overcommit": 0} if fact == "overcommit" else {}
        kinds = [kind_of(_machine(**usual)), kind_of(_machine(**{fact: value}))]
        assert names(kinds)[kinds[1]] == said
    assert kind_of(_machine(cgroup_cpu_max="max")) == kind_of(_machine())
    one = kind_of(_machine(cgroup_cpu_max="100000 100000"))
    assert one == kind_of(_machine(cgroup_cpu_max="200000 200000")), "one CPU by another period is one CPU"


@given(MACHINES, MACHINES)
def test_what_a_machine_does_not_state_is_said_to_be_unknown(one: Machine, other: Machine) -> None:
    kinds = [kind_of(one), kind_of(other)]
    assert not any("None" in name for name in names(kinds).values())


def test_an_unknown_libc_and_architecture_are_called_so() -> None:
    kinds = [kind_of(_machine()), kind_of(_machine(libc="glibc 2.36", architecture="x86_64"))]
    assert list(names(kinds).values()) == ["EPYC, unknown architecture, unknown libc", "EPYC, x86_64, glibc 2.36"]
