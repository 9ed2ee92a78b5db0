"""Scans: which values a word means, and which workloads they make."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.experiments import scan
from freestone.experiments.plan import PlanError
from freestone.experiments.scan import Scan
from freestone.records.schema import Input, Service, Stages, Workload

NAMES = st.from_regex(r"[a-z_]\w{0,6}", fullmatch=True)
VALUES = st.lists(st.from_regex(r"[A-Za-z0-9_/-]{1,6}", fullmatch=True), min_size=1, max_size=5, unique=True)


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("threads=1,2,4", ["1", "2", "4"]),
        ("threads=1..4", ["1", "2", "3", "4"]),
        ("threads=1..64*4", ["1", "4", "16", "64"]),
        ("threads=1..63*4", ["1", "4", "16"]),
        ("share=0..1+0.25", ["0", "0.25", "0.5", "0.75", "1"]),
        ("size=1k..64k*8", ["1k", "8k", "64k"]),
        ("step=10..30+10,100", ["10", "20", "30", "100"]),
        ("depth=-1..1", ["-1", "0", "1"]),
        ("order=sorted", ["sorted"]),
        ("file=../a..b,x=y", ["../a..b", "x=y"]),
        ("one=5..5", ["5"]),
    ],
)
def test_values_are_lists_and_ranges(word: str, values: list[str]) -> None:
    (found,) = scan.read([word])
    assert list(found.values) == values


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["threads"], "--scan takes NAME=VALUES, as in --scan threads=1,2,4"),
        (["=1"], "--scan takes NAME=VALUES"),
        (["8threads=1"], "--scan takes NAME=VALUES"),
        (["threads="], "has an empty value"),
        (["threads=1,,2"], "has an empty value"),
        (["threads=1,2,1"], "has 1 twice"),
        (["threads=1..3,2"], "has 2 twice"),
        (["a=1", "a=2"], "there are two scans of 'a'"),
        (["a=8..1"], "a range goes upwards"),
        (["a=1..8*1"], "never comes to its end"),
        (["a=0..8*2"], "never comes to its end"),
        (["a=1..8+0"], "never comes to its end"),
        (["a=1..100000"], "more than 1,000 values"),
        (["a=1..100", "b=1..100"], "10,000 combinations"),
        (["a=1k..1M*2"], "both ends of a range need the same unit"),
    ],
)
def test_what_is_no_scan_is_one_line(words: list[str], said: str) -> None:
    with pytest.raises(PlanError) as error:
        scan.read(words)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=3))
def test_every_combination_is_one_workload_with_nothing_left_to_fill_in(asked: dict[str, list[str]]) -> None:
    scans = scan.read([f"{name}={','.join(values)}" for name, values in asked.items()])
    command = ["run", *(f"--{name}={{{name}}}" for name in asked)]
    found = scan.points(scans, Workload(name="work", command=command))
    assert len(found) == math.prod(len(values) for values in asked.values())
    assert len({each.name for each in found}) == len(found)
    assert {each.series for each in found} == {"work"}
    for each in found:
        assert each.command == ["run", *(f"--{name}={value}" for name, value in each.parameters.items())]
        assert not scan.placeholders(each)


def test_a_placeholder_is_filled_wherever_it_may_stand() -> None:
    workload = Workload(
        name="work-{n}",
        command=["run", "{n}"],
        environment={"N": "x{n}"},
        compare_output="grep {n}",
        stages=Stages(setup="s{n}", prepare="p{n}", conclude="c{n}", cleanup="e{n}"),
        input=Input(file="/data/{n}"),
        service=Service(ready="r{n}", load="l{n}"),
    )
    (found,) = scan.points([Scan("n", ("7",))], workload)
    text = found.model_dump_json()
    assert "{n}" not in text.replace('"series":"work-{n}"', "")
    assert (found.name, found.command, found.environment) == ("work-7", ["run", "7"], {"N": "x7"})
    assert (found.stages.setup, found.stages.cleanup) == ("s7", "e7")
    assert found.input is not None
    assert found.input.file == "/data/7"


def test_a_workload_is_measured_once_where_it_uses_no_scan() -> None:
    workload = Workload(name="work-{n}", command=["run"])
    assert scan.points([Scan("n", ("1", "2"))], workload) == [workload]


def test_a_scan_that_nothing_uses_and_a_name_misspelt_are_refused() -> None:
    scans = [Scan("threads", ("1",))]
    with pytest.raises(PlanError, match=r"nothing uses --scan threads: write \{threads\}"):
        scan.require_used(scans, [Workload(name="work", command=["run"])])
    with pytest.raises(PlanError, match=r"no --scan has values for \{thread\}; did you mean \{threads\}"):
        scan.require_used(scans, [Workload(name="work", command=["run", "{thread}", "{threads}"])])


def test_other_words_in_braces_stay_and_are_named() -> None:
    workload = Workload(name="work", command=["awk", "{print}", "{n}", '{"a": 1}'])
    scans = [Scan("n", ("1",))]
    scan.require_used(scans, [workload])
    assert scan.unknown(scans, [workload]) == ["print"]
    assert scan.points(scans, workload)[0].command == ["awk", "{print}", "1", '{"a": 1}']
    assert scan.unknown([], [workload]) == [], "without a scan nobody looks for parameters"
