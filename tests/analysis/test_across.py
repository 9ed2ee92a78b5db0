"""Machines side by side: who is best where, and what turns round."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from freestone.analysis.across import across
from freestone.records.schema import Allocator, Cell, Configuration, Experiment, Machine, Ratio, Summary, Workload
from freestone.reports.across import grids

NAMES = ("freestone", "jemalloc")


def _ratio(value: float, *, different: bool = True) -> Ratio:
    return Ratio(value=value, low=value * 0.99, high=value * 1.01, pairs=10, different=different)


def _result(
    machine: str, time: dict[str, Ratio], best: dict[str, str], baseline: str = "glibc"
) -> tuple[Experiment, Summary]:
    workload = Workload(name="work", command=["work"])
    experiment = Experiment(
        id=machine,
        created_at="",
        freestone_version="",
        command_line=[],
        machine=Machine(id=machine, facts={}),
        workloads=[workload],
        configurations=[
            Configuration(name=name, allocator=Allocator(name=name, title=name)) for name in (baseline, *NAMES)
        ],
        baseline=baseline,
        rounds=10,
        seed=1,
    )
    cells = [
        Cell(
            workload="work",
            configuration=name,
            status="ok",
            trials_ok=10,
            trials_total=10,
            ratio={workload.time: ratio},
        )
        for name, ratio in time.items()
    ]
    summary = Summary(
        experiment=machine,
        baseline=baseline,
        rounds_complete=10,
        cells=cells,
        noise={},
        best={"work": best},
        headline="",
    )
    return experiment, summary


def test_a_ranking_that_changes_is_named_with_its_places() -> None:
    here = _result("a", {"freestone": _ratio(0.8), "jemalloc": _ratio(0.9)}, {"time": "freestone"})
    there = _result("b", {"freestone": _ratio(1.2), "jemalloc": _ratio(0.9)}, {"time": "jemalloc"})
    (found,) = across([("a", *here), ("b", *there)])
    (turn,) = found.turns
    assert (turn.aspect, turn.configuration, turn.less, turn.more) == ("time", "freestone", ["a"], ["b"])
    assert found.agreed("time") is None


def test_what_is_not_told_apart_turns_nothing() -> None:
    here = _result("a", {"freestone": _ratio(0.8)}, {"time": "freestone"})
    there = _result("b", {"freestone": _ratio(1.2, different=False)}, {"time": "freestone"})
    (found,) = across([("a", *here), ("b", *there)])
    assert found.turns == []
    assert found.agreed("time") == "freestone"


def test_one_machine_and_other_baselines_are_not_side_by_side() -> None:
    here = _result("a", {"freestone": _ratio(0.8)}, {})
    assert across([("a", *here), ("b", *here)]) == []
    other = _result("b", {"freestone": _ratio(0.8)}, {}, baseline="musl")
    assert across([("a", *here), ("b", *other)]) == []


def test_one_machine_twice_in_one_folder_stands_side_by_side_and_is_told() -> None:
    monday = _result("a", {"freestone": _ratio(0.8)}, {"time": "freestone"})
    friday = _result("a", {"freestone": _ratio(1.2)}, {"time": "glibc"})
    other = _result("b", {"freestone": _ratio(0.8)}, {"time": "freestone"})
    (found,) = across([("monday", *monday), ("friday", *friday)], one_order=True)
    assert (found.machines, found.again) == (1, [["monday", "friday"]])
    (table,) = grids([found])
    assert table.title == "work in 2 results of one machine"
    assert "monday and friday are one machine, measured more than once." in table.note
    (found,) = across([("monday", *monday), ("b", *other), ("friday", *friday)], one_order=True)
    assert (found.machines, found.again) == (2, [["monday", "friday"]])
    assert grids([found])[0].title == "work in 3 results of 2 machines"


def test_another_kernel_makes_no_other_machine_of_a_host() -> None:
    results = []
    for name in ("old", "new"):
        experiment, summary = _result(name, {"freestone": _ratio(0.8)}, {})
        host = Machine(id=experiment.id, facts={"host": "h"})
        results.append((name, experiment.model_copy(update={"machine": host}), summary))
    (found,) = across(results)
    assert found.again == [["old", "new"]]


def test_in_one_folder_a_program_may_lie_elsewhere() -> None:
    here, there = (_result(name, {"freestone": _ratio(0.8)}, {}) for name in ("a", "b"))
    moved = there[0].model_copy(update={"workloads": [Workload(name="work", command=["/elsewhere/work"])]})
    assert across([("a", *here), ("b", moved, there[1])]) == []
    (found,) = across([("a", *here), ("b", moved, there[1])], one_order=True)
    assert [there.place for there in found.places] == ["a", "b"]


@given(
    st.lists(
        st.dictionaries(st.sampled_from(NAMES), st.tuples(st.floats(0.5, 2), st.booleans())), min_size=2, max_size=5
    )
)
def test_a_turn_has_somebody_on_either_side(told: list[dict[str, tuple[float, bool]]]) -> None:
    results = [
        (f"m{number}", *_result(f"m{number}", {name: _ratio(v, different=d) for name, (v, d) in each.items()}, {}))
        for number, each in enumerate(told)
    ]
    (found,) = across(results)
    assert len(found.places) == len(told)
    for turn in found.turns:
        assert turn.less
        assert turn.more
        assert not set(turn.less) & set(turn.more)
