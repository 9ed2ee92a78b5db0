"""What the machines of a kind say, counted: each once, and nobody's silence is taken for a word."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from invented_machines import there, took

from freestone.analysis.across import LeftOut, across
from freestone.analysis.across.there import ASPECTS


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(("best", "nobody", "failed"))), min_size=2, max_size=12))
def test_the_votes_of_a_kind_are_as_many_as_its_machines(told: list[tuple[int, str]]) -> None:
    found = [
        replace(
            there(
                f"p{number}",
                {"freestone": took(0.8 if says == "best" else 1.0)},
                "freestone" if says == "best" else None,
                cpu="A",
                failed={"glibc": "exit status 1"} if says == "failed" else None,
            ),
            machine=f"m{machine}",
        )
        for number, (machine, says) in enumerate(told)
    ]
    (table,) = across(found, one_order=True)
    machines = len({machine for machine, _ in told})
    assert table.machines == machines
    assert len(table.groups) == (machines > 1)
    for group in table.groups:
        for aspect in ASPECTS:
            assert sum(vote.machines for vote in group.votes(aspect)) == group.machines == machines


def test_the_largest_kind_comes_first() -> None:
    sizes = {"few": 2, "many": 5, "a": 3}
    fleet = [there(f"{cpu}{number}", {}, cpu=cpu) for cpu, size in sizes.items() for number in range(size)]
    (found,) = across(fleet)
    assert [(group.name, group.machines) for group in found.groups] == [("many", 5), ("a", 3), ("few", 2)]


def test_a_place_without_a_baseline_or_rounds_is_not_one_where_nobody_is_better() -> None:
    fleet = [
        there("a", {"freestone": took(0.8)}, "freestone"),
        there("b", {"freestone": took(0.8)}, "freestone"),
        there("c", {"freestone": took(0.8)}, failed={"glibc": "exit status 1"}),
        there("d", {"freestone": took(0.8)}, failed={"glibc": "exit status 1", "freestone": "exit status 1"}),
        there("e", {"freestone": [0.8, 0.8]}),
        there("f", {"freestone": took(0.8)}, failed={"freestone": "killed by SIGSEGV"}),
    ]
    (found,) = across(fleet)
    assert [each.unknown("time") for each in found.places] == [
        None,
        None,
        "glibc failed",
        "everything failed",
        "too few rounds",
        "only glibc has a result",
    ]
    assert found.agreed("time") == "freestone"
    assert [each.place for each in found.measured("time")] == ["a", "b"]


def test_a_place_of_an_order_without_the_workload_or_its_baseline_is_told() -> None:
    found = across(
        [
            there("a", {"freestone": took(0.8)}),
            there("b", {"freestone": took(0.8)}),
            there("c", {"freestone": took(0.8)}, baseline="musl"),
            there("d", {"freestone": took(0.8)}, workload="other"),
        ],
        one_order=True,
        absent=[LeftOut(["e"], "nothing measured yet")],
    )
    assert [each.left_out for each in found] == [
        [
            LeftOut(["c"], "held against musl"),
            LeftOut(["d"], "no such workload"),
            LeftOut(["e"], "nothing measured yet"),
        ]
    ]
