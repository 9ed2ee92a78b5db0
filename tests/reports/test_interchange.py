"""What other programs read: every cell is there, numbers stand where they count, and nothing breaks a format."""

from __future__ import annotations

import csv
import io
import json
import re
import statistics
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from freestone.analysis import summarise
from freestone.records.schema import Experiment, Metrics, Summary, TrialRecord, Workload
from freestone.reports import interchange, quantities, recommendation


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
    page = interchange.markdown(experiment, records, summary)
    assert "| jemalloc | – | – | not measured | – |" in page
    assert "| ? too few rounds |" in page
    assert rows[1]["time_verdict"] == results[1]["verdicts"]["wall_s"] == "unknown"


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


def test_the_terminals_judgement_stands_in_every_format(
    make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord]
) -> None:
    """Really faster, really slower, not told apart, failed now and then: each is told from the others everywhere."""
    seconds = {"glibc": 1.0, "freestone": 0.5, "jemalloc": 1.0, "mimalloc": 2.0, "tcmalloc": 0.1}
    experiment = make_experiment(tuple(seconds), rounds=10)
    records = [
        make_record(
            name, number, repeat=repeat, wall_s=wall_s + (number * 7 % 5) / 100, reason="exit status 1",
            status="failed" if name == "tcmalloc" and number == 3 else "ok",
        )
        for name, wall_s in seconds.items()
        for number in range(10)
        for repeat in range(2 if name == "glibc" else 1)
    ]  # fmt: skip
    summary = summarise(experiment, records)
    use = recommendation.recommendations(experiment, summary)
    rows = {
        row["configuration"]: row
        for row in csv.DictReader(io.StringIO(interchange.csv_rows(experiment, records, summary, use)))
    }
    document = json.loads(interchange.json_results(experiment, records, summary, use))
    results = {each["configuration"]: each for each in document["results"]}
    page = interchange.markdown(experiment, records, summary, use)
    lines = {line.split("|")[1].strip(): line for line in page.splitlines() if line.startswith("| ")}
    said = {"freestone": "less", "jemalloc": "same", "mimalloc": "more"}
    for name, verdict in said.items():
        assert rows[name]["time_verdict"] == results[name]["verdicts"]["wall_s"] == verdict
    assert rows["glibc"]["time_verdict"] == "baseline"
    assert "% faster" in lines["freestone"]
    assert "≈ no difference seen" in lines["jemalloc"]
    assert "98 % slower" in lines["mimalloc"]
    assert rows["freestone"]["best_in"] == "time"
    assert results["freestone"]["best_in"] == ["time"]
    assert rows["freestone"]["use"] == "freestone run -a freestone -- true"
    assert [row["use"] for name, row in rows.items() if name != "freestone"] == [""] * 4
    assert [each["configuration"] for each in document["to_use"]] == ["freestone"]
    assert "### To use it" in page
    assert any(line.endswith("freestone run -a freestone -- true") for line in page.splitlines())
    # What failed once has no figure anywhere.
    assert "1 of 10 failed" in lines["tcmalloc"]
    assert not re.search(r"\d", lines["tcmalloc"].replace("1 of 10 failed", ""))
    counts = ("status", "reason", "trials_ok", "trials_total", "command", "workload", "configuration")
    assert {value for name, value in rows["tcmalloc"].items() if name not in counts} == {""}
    assert results["tcmalloc"]["times"] == []
    assert (results["tcmalloc"]["ratios"], results["tcmalloc"]["verdicts"]) == ({}, {})
    assert re.search(r"^- tcmalloc failed: .*exit status 1", page, re.MULTILINE)


def test_the_numbers_of_a_row_are_those_of_the_table(
    make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord]
) -> None:
    """Where rounds differ, an arithmetic mean is another number than the geometric one that is shown."""
    experiment = make_experiment(("glibc", "freestone"), rounds=6)
    records = [
        make_record(
            name,
            number,
            metrics=Metrics(
                wall_s=1.0,
                user_s=1.0 + number,
                sys_s=2.0 + 3 * number,
                peak_rss_kib=1000 + 200 * number,
                minor_faults=9,
            ),
        )
        for name in ("glibc", "freestone")
        for number in range(6)
    ]
    summary = summarise(experiment, records)
    for row in csv.DictReader(io.StringIO(interchange.csv_rows(experiment, records, summary))):
        (cell,) = [each for each in summary.cells if each.configuration == row["configuration"]]
        for column, metric in {"user_s": "user_s", "system_s": "sys_s", "peak_rss_kib": "peak_rss_kib"}.items():
            assert float(row[column]) == cell.figure(metric)
    assert cell.figure("user_s") != statistics.fmean(1.0 + number for number in range(6))


@given(data=st.data())
def test_no_cell_without_a_result_has_a_number(data: st.DataObject, summaries: st.SearchStrategy[Summary]) -> None:
    """Whatever a summary holds, also what the statistics would not have put there."""
    summary = data.draw(summaries)
    names = list(dict.fromkeys(cell.workload for cell in summary.cells))
    workloads = {name: Workload(name=name, command=["true"]) for name in names}
    for cell in summary.cells:
        for key in ("wall_s", "peak_rss_kib", "minor_faults"):
            ratio = quantities.ratio_of(cell, key, summary.baseline)
            assert cell.status == "ok" or ratio is None
    for name in names:
        mine = [cell for cell in summary.cells if cell.workload == name]
        table = interchange.table(workloads[name], summary)
        for cell, row in zip(mine, table.rows, strict=True):
            words = [piece.text for piece in row[1:]]
            if cell.status not in ("ok", "different"):
                assert set(words) <= {"–", quantities.status_of(cell)}
            if cell.status == "different":
                assert quantities.status_of(cell) in words
                assert not any("×" in word or "[" in word for word in words)
