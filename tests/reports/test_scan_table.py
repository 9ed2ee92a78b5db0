"""The points of a scan side by side: who stands where, and that a table claims no more than its intervals hold."""

from __future__ import annotations

from collections.abc import Callable

from freestone.analysis import summarise
from freestone.records.schema import Experiment, TrialRecord, Workload
from freestone.reports import grid, scan_table

POINTS = [
    Workload(name=f"work n={n}", command=["run", str(n)], parameters={"n": str(n)}, series="work") for n in (1, 2, 4)
]
TIMES = {"glibc": 1.0, "freestone": 0.5, "jemalloc": 1.5}


def records(make_record: Callable[..., TrialRecord], **status: str) -> list[TrialRecord]:
    return [
        make_record(
            name,
            number,
            workload=point.name,
            repeat=repeat,
            wall_s=seconds * int(point.parameters["n"]) * (1 + 0.001 * ((number * 7 + repeat) % 5)),
            status=status.get(name, "ok"),
        )
        for point in POINTS
        for name, seconds in TIMES.items()
        for number in range(6)
        for repeat in range(2 if name == "glibc" else 1)
    ]


def test_a_row_for_each_point_and_a_column_for_each_allocator_the_baseline_first(
    make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord]
) -> None:
    experiment = make_experiment(("freestone", "glibc", "jemalloc"), baseline="glibc", workloads=POINTS)
    time, memory = scan_table.grids(experiment, summarise(experiment, records(make_record)))
    assert time.title == "work: time by n"
    assert list(time.heads) == ["n", "glibc", "freestone", "jemalloc", "best"]
    assert [row[0].text for row in time.rows] == ["1", "2", "4"]
    for row in time.rows:
        assert "×0.50" in row[2].text
        assert row[2].mark == "better"
        assert "×1.50" in row[3].text
        assert row[3].mark == "worse"
        assert row[4].text == "freestone"
    assert [row[1].text for row in time.rows] == ["1.00 s", "2.00 s", "4.01 s"]
    assert memory.title == "work: peak memory by n"
    assert all("≈" in piece.text for row in memory.rows for piece in row[2:4])
    assert [row[4].text for row in memory.rows] == ["–"] * 3


def test_the_baseline_is_best_where_everybody_else_takes_more(
    make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord]
) -> None:
    experiment = make_experiment(("glibc", "jemalloc"), workloads=POINTS)
    time, _ = scan_table.grids(experiment, summarise(experiment, records(make_record)))
    assert [row[3].text for row in time.rows] == ["glibc"] * 3


def test_what_failed_has_no_number(
    make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord]
) -> None:
    experiment = make_experiment(workloads=POINTS)
    time, _ = scan_table.grids(experiment, summarise(experiment, records(make_record, freestone="invalid")))
    assert [row[2].text for row in time.rows] == ["INVALID"] * 3
    assert grid.markdown(time).count("INVALID") == 3


def test_the_intervals_of_all_points_hold_at_once_so_each_is_wider(
    make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord]
) -> None:
    scanned = make_experiment(workloads=POINTS)
    apart = make_experiment(workloads=[point.model_copy(update={"series": None}) for point in POINTS])
    mine = records(make_record)
    for wide, narrow in zip(summarise(scanned, mine).cells, summarise(apart, mine).cells, strict=True):
        if wide.configuration != "glibc":
            assert wide.ratio["wall_s"].value == narrow.ratio["wall_s"].value
            assert wide.ratio["wall_s"].low < narrow.ratio["wall_s"].low
            assert wide.ratio["wall_s"].high > narrow.ratio["wall_s"].high


def test_without_a_scan_there_is_no_such_table(
    make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord]
) -> None:
    experiment = make_experiment()
    assert scan_table.grids(experiment, summarise(experiment, [make_record("glibc", 0)])) == []
