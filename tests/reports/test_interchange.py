"""What other programs read: every cell is there, numbers stand where they count, and nothing breaks a format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable

from freestone.analysis import summarise
from freestone.records.schema import Experiment, TrialRecord, Workload
from freestone.reports import interchange


def taken(make_record: Callable[..., TrialRecord], rounds: int, **more: str) -> list[TrialRecord]:
    return [
        make_record(name, number, repeat=repeat, wall_s=1.0 + number, **more)
        for name in ("glibc", "freestone")
        for number in range(rounds)
        for repeat in range(2 if name == "glibc" else 1)
    ]


def test_too_few_rounds_leave_an_interval_out_and_every_format_whole(
    make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord]
) -> None:
    experiment = make_experiment(("glibc", "freestone", "jemalloc"))
    records = taken(make_record, 2)
    summary = summarise(experiment, records)
    rows = list(csv.DictReader(io.StringIO(interchange.csv_rows(experiment, records, summary))))
    assert [(row["configuration"], row["status"]) for row in rows] == [
        ("glibc", "ok"),
        ("freestone", "ok"),
        ("jemalloc", "unmeasured"),
    ]
    assert rows[1]["time_ratio"] == "1.0"
    assert rows[1]["time_ratio_low"] == rows[1]["time_ratio_high"] == ""
    results = json.loads(interchange.json_results(experiment, records, summary))["results"]
    assert results[0]["times"] == [1.0, 1.0, 2.0, 2.0], "in the order of rounds, the baseline's second runs too"
    assert results[1]["ratios"]["wall_s"]["high"] == "Infinity", "JSON has no infinity"
    assert results[2]["times"] == []
    assert "| jemalloc | – | not measured |" in interchange.markdown(experiment, records, summary)


def test_names_and_reasons_cannot_break_a_table(
    make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord]
) -> None:
    name = 'a|b, "c"\n<d>'
    experiment = make_experiment(("glibc", "freestone"), workloads=[Workload(name=name, command=["x", "|\n|"])])
    records = taken(make_record, 4, workload=name, status="failed", reason='it said "no", | and left')
    summary = summarise(experiment, records)
    rows = list(csv.DictReader(io.StringIO(interchange.csv_rows(experiment, records, summary))))
    assert [row["workload"] for row in rows] == [name, name]
    assert rows[0]["reason"] == 'it said "no", | and left'
    assert json.loads(interchange.json_results(experiment, records, summary))["results"][0]["workload"] == name
    table = [line for line in interchange.markdown(experiment, records, summary).splitlines() if line.startswith("| ")]
    columns = {line.replace("\\|", "").count("|") for line in table}
    assert len(columns) == 1, "every row has as many columns as the head"
