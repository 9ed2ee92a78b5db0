"""Published tables beside the same measured here: what is divided by what, and nothing without measurements."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatch

import pytest

from freestone import suites
from freestone.analysis import summarise
from freestone.records.schema import (
    Allocator,
    Configuration,
    Experiment,
    InstructionCount,
    InstructionCounts,
    Machine,
    Metrics,
    Proof,
    Status,
    Summary,
    TrialRecord,
    Workload,
)
from freestone.reports import html, parameter_figure, parameter_table, published
from freestone.reports.page import experiment_part
from freestone.reports.parameter_series import Trials
from freestone.reports.published import Reproduction

Cells = Mapping[tuple[str, str], Mapping[str, float]]
"""Figures and metrics by workload and configuration."""


def experiment_of(cells: Cells, rounds: int = 4) -> Experiment:
    names = list(dict.fromkeys(name for _, name in cells))
    return Experiment(
        id="made-up",
        created_at="2026-11-22T00:00:00Z",
        freestone_version="0",
        command_line=[],
        machine=Machine(id="m"),
        workloads=[Workload(name=name, command=["p"], reads="json") for name in dict.fromkeys(w for w, _ in cells)],
        configurations=[Configuration(name=name, allocator=Allocator(name=name, title=name)) for name in names],
        baseline=names[0],
        rounds=rounds,
        seed=1,
    )


def made(cells: Cells, status: Status = "ok") -> tuple[Experiment, Summary, list[TrialRecord]]:
    """Each round alike but for a hair."""
    experiment = experiment_of(cells)
    records = [
        TrialRecord(
            experiment=experiment.id,
            workload=workload,
            configuration=name,
            round=number,
            position=0,
            started_at="2026-11-22T00:00:00Z",
            status=status,
            metrics=Metrics(
                wall_s=said["seconds"],
                user_s=0.1,
                sys_s=0.1,
                peak_rss_kib=int(said.get("peak_rss_kib", 1000)),
                minor_faults=int(said.get("minor_faults", 100)),
            ),
            figures={**said, "seconds": said["seconds"] * (1 + number * 1e-6)},
            proof=Proof(valid=True),
        )
        for number in range(experiment.rounds)
        for (workload, name), said in cells.items()
    ]
    return experiment, summarise(experiment, records), records


def trials_of(cells: Cells, status: Status = "ok") -> Trials:
    return Trials(*made(cells, status))


def found(cells: Cells) -> dict[str, Reproduction]:
    return {each.title: each for each in published.reproductions(trials_of(cells))}


def values(reproduction: Reproduction, name: str) -> dict[str, float]:
    series = reproduction.series
    return {series.labels[at]: round(point.value, 3) for at, point in series.lines[name].items()}


def test_every_table_is_of_workloads_that_a_suite_has() -> None:
    names = {entry.name for suite in suites.names() for entry in suites.load(suite).workload}
    patterns = ["*".join(part.rpartition("}")[2] for part in name.split("{")) for name in names]
    tables = published._tables()
    assert len(tables) == 9
    for table in tables:
        assert table.title
        assert table.source
        for row in table.rows:
            assert float(row["value"]) >= 0
            assert bool(table.reference) == bool(row["to_workload"] or row["to_allocator"])
            for workload in (*row["workload"].split("|"), row["to_workload"] or "*"):
                assert workload == "*" or any(fnmatch(workload, pattern) for pattern in patterns), workload


def test_nothing_is_shown_of_what_was_not_measured() -> None:
    assert found({("somewhere-else", "glibc"): {"seconds": 1.0}}) == {}
    assert published.reproductions(trials_of({("loop-128K-all", "glibc"): {"seconds": 1.0}}, "failed")) == []


def test_orders_are_ratios_to_lifo_of_one_operation() -> None:
    cells = {
        ("lifo-16-10000", "glibc"): {"seconds": 2.0, "operations": 100.0},
        ("fifo-16-10000", "glibc"): {"seconds": 3.0, "operations": 100.0},
        ("mixed-128-10000", "glibc"): {"seconds": 1.5, "operations": 50.0},
        ("random-shuffled-16-10000", "glibc"): {"seconds": 8.0, "operations": 100.0},
        ("fifo-16-10000", "freestone"): {"seconds": 3.0, "operations": 100.0},
    }
    (orders,) = found(cells).values()
    assert orders.series.reference == "lifo"
    assert values(orders, "glibc") == {"fifo": 1.5, "mixed-sizes": 1.5, "random-free, timed shuffle": 4.0}
    assert "freestone" not in orders.series.lines, "its LIFO was not measured"
    assert orders.series.published["hakmem"] == {0: 1.05102, 3: 1.03061, 5: 1.5}, "LIFO 9.8 ns, FIFO 10.3"
    assert orders.series.published["mimalloc"][5] == pytest.approx(5.70 / 1.06, rel=1e-5)


def test_faults_of_large_blocks_are_counts() -> None:
    cells = {
        (f"loop-{size}K-all", "glibc"): {"seconds": 1.0, "operations": 100.0, "later_faults": faults}
        for size, faults in ((126, 0), (127, 100), (128, 1600))
    }
    (blocks,) = found(cells).values()
    assert values(blocks, "glibc") == {"126 KiB": 0, "127 KiB": 1, "128 KiB": 16}
    assert list(blocks.series.published["glibc of 2001"].values()) == [0, 15.875, 16]
    tuned = {("loop-128K-all", "glibc+no-mmap-no-trim"): {"seconds": 0.5, "later_faults": 25}}
    plain = {("loop-128K-all", "glibc"): {"seconds": 1.0, "later_faults": 100}}
    tuning = found(plain | tuned)["M_MMAP_MAX=0 with M_TRIM_THRESHOLD=-1"]
    assert values(tuning, "glibc+no-mmap-no-trim") == {"elapsed time": 0.5, "minor faults": 0.25}
    assert "glibc" not in tuning.series.lines


def test_ways_through_the_parallel_loop_are_compared_level_by_level() -> None:
    seconds = {"O0-libc": 8.0, "O0-tbb": 12.0, "O3-libc": 1.0, "O3-tbb": 0.5}
    (loop,) = found({(f"parallel-{way}", "glibc"): {"seconds": each} for way, each in seconds.items()}).values()
    assert values(loop, "glibc") == {"-O0": 1.5, "-O3": 0.5}


def test_counts_by_valgrind_are_compared_too() -> None:
    counts = InstructionCounts(
        experiment="made-up",
        valgrind="3",
        counts=[
            InstructionCount(
                workload=f"parallel-O3-{way}", configuration="glibc", status=status, command=["p"], instructions=number
            )
            for way, number, status in (("libc", 100, "ok"), ("tbb", 130, "ok"))
        ],
        heaps=[],
    )
    trials = trials_of({("parallel-O3-libc", "glibc"): {"seconds": 1.0}})
    (loop,) = published.reproductions(trials, counts)
    assert values(loop, "glibc") == {"instructions": 1.3}


def test_allocators_are_compared_by_program_and_those_alone_that_were_published() -> None:
    cells = {}
    for workload in ("redis-commands", "lua-keys", "server-4cores-threads", "server-cores-threads"):
        for name, time in (("glibc", 1.0), ("mimalloc2", 0.5), ("freestone", 0.4)):
            cells[workload, name] = {"seconds": time * (3 if "cores" in workload and time < 1 else 1)}
    by_program = found(cells)["rpmalloc, mimalloc and tcmalloc against glibc: time"]
    assert values(by_program, "mimalloc2") == {"larsonN-sized": 1.5, "redis": 0.5, "lua": 0.5}
    assert set(by_program.series.lines) == {"mimalloc2"}
    assert set(by_program.series.published) == {"rpmalloc", "mimalloc", "tcmalloc"}


def test_population_is_the_geometric_mean_over_all_programs() -> None:
    cells = {}
    for workload, times in (("redis-commands", 2.0), ("lua-keys", 8.0)):
        cells[workload, "rpmalloc"] = {"seconds": 1.0, "peak_rss_kib": 1000}
        cells[workload, "rpmalloc-populated"] = {"seconds": times, "peak_rss_kib": 2100}
    cells["alone", "rpmalloc"] = {"seconds": 1.0}
    (populated,) = found(cells).values()
    assert values(populated, "rpmalloc-populated") == {"time": 4.0, "peak RSS": 2.1, "minor faults": 1.0}
    assert set(populated.series.published["rpmalloc-populated"].values()) == {1.02003, 2.00896, 2.25342}


def test_it_is_drawn_and_told() -> None:
    cells = {(f"{order}-16-10000", "glibc"): {"seconds": 2.0, "operations": 9.0} for order in ("lifo", "fifo")}
    experiment, summary, records = made(cells)
    trials = Trials(experiment, summary, records)
    (orders,) = published.reproductions(trials)
    figure = parameter_figure.figure(experiment, orders.series)
    assert figure.numbers.columns == ["case", "glibc", *(f"{who} (published)" for who in orders.series.published)]
    assert figure.numbers.rows[0][2] == "1.05"
    page = html.render([experiment_part(experiment, summary, records, anchor="only")])
    assert "Time of one operation against lifo. Notes on a bitmap allocator" in page
    for width, plain in ((100, False), (60, True)):
        text = parameter_table.text(trials, summary, width=width, colour=False, ascii_only=plain)
        assert text.startswith("Published: Orders of malloc and free, 16 bytes")
        assert "hakmem" in text
        assert text.isascii() or not plain
