"""Machines side by side: who is best where, and what turns round."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from freestone.analysis.across import across
from freestone.records.schema import Allocator, Cell, Configuration, Experiment, Machine, Ratio, Summary, Workload

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
