"""What places are called: each otherwise, and so that one sees which is which."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.doctor import chart
from freestone.experiments.merged_places import Measured, names
from freestone.experiments.plan import PlanError
from freestone.records import store
from freestone.records.schema import Allocator, Configuration, Experiment, Machine, Workload
from freestone.tuning import kept


def head(cpu: str = "Big CPU 9", host: str = "1f", at: str = "2026-11-20T13:15:00+00:00") -> Experiment:
    return Experiment(
        id="x",
        created_at=at,
        freestone_version="1",
        command_line=[],
        machine=Machine(id=host, facts={"cpu": cpu, "host": host}),
        workloads=[Workload(name="work", command=["work"])],
        configurations=[Configuration(name="glibc", allocator=Allocator(name="glibc", title="glibc"))],
        baseline="glibc",
        rounds=1,
        seed=1,
    )


def test_a_machine_is_called_as_its_processor() -> None:
    assert names([Measured(head()), Measured(head("Small (TM) @ 2"))]) == ["Big-CPU-9", "Small-TM-2"]


def test_machines_that_are_alike_are_told_apart_by_their_identity() -> None:
    found = [Measured(head(host="aabbccdd")), Measured(head(host="eeff0011"))]
    assert names(found) == ["Big-CPU-9-aabbcc", "Big-CPU-9-eeff00"]


def test_one_machine_twice_has_the_date_in_its_names() -> None:
    later = head(at="2026-11-21T09:00:00+00:00")
    assert names([Measured(head()), Measured(later)]) == ["Big-CPU-9-2026-11-20", "Big-CPU-9-2026-11-21"]
    today = head(at="2026-11-20T18:00:01+00:00")
    assert names([Measured(head()), Measured(today)]) == ["Big-CPU-9-2026-11-20-131500", "Big-CPU-9-2026-11-20-180001"]


def test_a_date_is_the_one_of_the_prime_meridian_whatever_the_clock_there_showed() -> None:
    found = [Measured(head(at="2026-11-20T23:30:00-05:00")), Measured(head(at="2026-11-20T23:30:00+00:00"))]
    assert names(found) == ["Big-CPU-9-2026-11-21", "Big-CPU-9-2026-11-20"]


def test_orders_and_people_name_places() -> None:
    found = [Measured(head(), known="board"), Measured(head(), given="here"), Measured(head(host="2"), known="local")]
    assert names(found) == ["board", "here", "local"]


@pytest.mark.parametrize(
    ("given_names", "told"), [(["a", "a"], "two places are called 'a'"), (["../x", "b"], "is no name")]
)
def test_names_that_cannot_be_are_refused(given_names: list[str], told: str) -> None:
    with pytest.raises(PlanError, match=told):
        names([Measured(head(), given=name) for name in given_names])


MEASURED = st.builds(
    Measured,
    st.builds(
        head,
        st.sampled_from(["A", "B", "", "..", "A/B", "Ü"]) | st.text(max_size=60),
        st.sampled_from(["1", "2"]),
        st.sampled_from(["2026-11-20T13:15:00+00:00", "2026-11-21T13:15:00+00:00", "", "never"]),
    ),
    st.none(),
    st.none() | st.sampled_from(["local", "A", "A-2", "order.json"]),
)


@given(st.lists(MEASURED, min_size=1, max_size=6), st.sampled_from([None, "A", "A-2", "local"]))
def test_names_are_unlike_each_other_and_folders_can_have_them(found: list[Measured], typed: str | None) -> None:
    if typed is not None:
        found = [*found, Measured(head(), given=typed)]
    told = names(found)
    assert len(set(told)) == len(told) == len(found)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name) for name in told)
    assert all(store.unlike_files(name) == name for name in told)
    assert typed is None or told[-1] == typed


FILES = (
    *(store.ORDER_FILE, store.REPORT_FILE, store.EXPERIMENT_FILE, store.TRIALS_FILE, store.PARQUET_FILE),
    *(store.SUMMARY_FILE, store.CALLS_FILE, store.INSTRUCTIONS_FILE, chart.CHART, chart.OBSERVATIONS),
    kept.TUNING_FILE,
)


@pytest.mark.parametrize("name", FILES)
def test_no_place_is_called_as_a_file_of_results(name: str) -> None:
    for found in (Measured(head(), known=name), Measured(head(name))):
        assert names([found]) == [name.replace(".", "-")]
    with pytest.raises(PlanError, match="as files of results are"):
        names([Measured(head(), given=name)])
