"""Families: one command but for one number, whatever the workloads are called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.records.schema import Workload
from freestone.reports.families import families, number_of


def workload(name: str, *command: str, **settings: object) -> Workload:
    return Workload.model_validate({"name": name, "command": command} | settings)


def test_threads_are_read_from_the_command_and_not_from_the_name() -> None:
    (family,) = families(
        [
            workload(f"server-{said}-threads", "server", "--threads", n)
            for said, n in (("4cores", "8"), ("1", "1"), ("cores", "2"))
        ]
    )
    assert (family.axis, family.name) == ("threads", "server-…-threads")
    assert [(each.workload, each.at) for each in family.members] == [
        ("server-1-threads", 1),
        ("server-cores-threads", 2),
        ("server-4cores-threads", 8),
    ]
    assert family.same_work
    assert not family.is_bytes


def test_two_members_are_no_family() -> None:
    assert families([workload(n, "server", "--threads", n) for n in "12"]) == []


def test_the_amount_of_work_may_differ_and_is_told() -> None:
    given_work = {"16": "900", "4K": "100", "64": "500"}
    (family,) = families(
        [workload(f"fifo-{n}", "p", "--size", n, "--operations", work) for n, work in given_work.items()]
    )
    assert [each.at for each in family.members] == [16, 64, 4096]
    assert family.is_bytes
    assert not family.same_work


def test_a_number_in_two_places_is_one_number() -> None:
    (family,) = families([workload(f"size-{n}", "sizes", "--least", n, "--most", n) for n in ("8", "4K", "1G")])
    assert family.axis == "least and most"
    assert [each.at for each in family.members] == [8, 4096, 1 << 30]


def test_one_number_of_several_that_agree_is_found() -> None:
    (family,) = families([workload(f"l{n}", "p", "--size", "64", "--live", n) for n in ("64", "128", "256")])
    assert family.axis == "live"


@pytest.mark.parametrize(
    "other",
    [
        {"command": ("p", "--order", "fifo", "--size", "3")},
        {"command": ("p", "--order", "lifo", "--size", "3", "--verify")},
        {"command": ("p", "--order", "lifo", "--size", "3"), "environment": {"A": "1"}},
        {"command": ("p", "--order", "lifo", "--size", "3"), "directory": "/elsewhere"},
        {"command": ("p", "--order", "lifo", "--size", "3"), "reads": "json"},
    ],
)
def test_anything_else_that_differs_parts_them(other: dict[str, object]) -> None:
    alike = [workload(n, "p", "--order", "lifo", "--size", n) for n in ("1", "2")]
    assert families([*alike, workload("3", "p", "--order", "lifo", "--size", "3")])
    assert families([*alike, Workload.model_validate({"name": "3"} | other)]) == []


def test_of_two_numbers_that_change_each_has_its_families() -> None:
    grid = [workload(f"{s}-{n}", "p", f"--size={s}", f"--live={n}") for s in (1, 2, 3) for n in (10, 20, 30)]
    found = families(grid)
    assert [(each.axis, each.name) for each in found] == [
        ("size", "…-10"),
        ("live", "1-…"),
        ("size", "…-20"),
        ("size", "…-30"),
        ("live", "2-…"),
        ("live", "3-…"),
    ]


def test_a_word_without_an_option_is_an_argument() -> None:
    (family,) = families([workload(n, "program", "run", n) for n in ("10", "20", "30")])
    assert family.axis == "argument 2"


def test_of_the_same_number_the_first_stands() -> None:
    (family,) = families(
        [workload(name, "s", "--threads", n) for name, n in (("a", "1"), ("b", "1"), ("c", "2"), ("d", "4"))]
    )
    assert [each.workload for each in family.members] == ["a", "c", "d"]


@pytest.mark.parametrize(
    ("word", "number"),
    [("64", 64), ("4K", 4096), ("1g", 1 << 30), ("4X", None), ("", None), ("-1", None), ("1.5", None)],
)
def test_numbers(word: str, number: int | None) -> None:
    assert number_of(word) == number


words = st.lists(st.sampled_from(["--size", "--live", "--rounds", "8", "64", "4K", "all", "-v", "--a=3"]), max_size=6)


@given(st.lists(words, max_size=8))
def test_members_ascend_and_differ_in_nothing_but_numbers(commands: list[list[str]]) -> None:
    workloads = [workload(f"w{i}", "program", *command) for i, command in enumerate(commands)]
    by_name = {each.name: each for each in workloads}
    for family in families(workloads):
        numbers = [each.at for each in family.members]
        assert numbers == sorted(set(numbers))
        assert len(numbers) >= 3
        shapes = {
            tuple(
                "#" if number_of(part) is not None else part
                for word in by_name[m.workload].command
                for part in word.split("=")
            )
            for m in family.members
        }
        assert len(shapes) == 1
