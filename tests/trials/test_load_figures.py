"""The figures of load generators, from what they really printed (``loads/``); refused where requests failed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.trials import load_figures
from freestone.trials.load_figures import NotUnderstood

LOADS = Path(__file__).with_name("loads")

PGBENCH = """\
pgbench (15.14 (Debian 15.14-0+deb12u1))
transaction type: <builtin: select only>
scaling factor: 1
number of transactions actually processed: 2000
number of failed transactions: {failed}
latency average = 0.250 ms
initial connection time = 3.000 ms
tps = 8000.000000 (without initial connection time)
"""


def test_wrk() -> None:
    found = load_figures.read((LOADS / "wrk.txt").read_text())
    assert found.requests == 681
    assert found.seconds_per_request == pytest.approx(1 / 657.38), "the rate has more digits than 1.04 s"
    assert found.latencies == pytest.approx({"p50_seconds": 4.55e-3, "p99_seconds": 112.91e-3})


def test_wrk2_tells_one_more_latency() -> None:
    text = (LOADS / "wrk.txt").read_text().replace("     99%  112.91ms", " 99.000%  112.91ms\n 99.900%    1.20s")
    assert load_figures.read(text).latencies["p999_seconds"] == pytest.approx(1.2)


@pytest.mark.parametrize(
    "trouble", ["  Socket errors: connect 0, read 3, write 0, timeout 0", "  Non-2xx or 3xx responses: 12"]
)
def test_requests_that_failed_are_no_throughput(trouble: str) -> None:
    text = (LOADS / "wrk.txt").read_text().replace("Requests/sec:", f"{trouble}\nRequests/sec:")
    with pytest.raises(NotUnderstood, match=f"^wrk says: {trouble.strip()}$"):
        load_figures.read(text)


def test_redis_benchmark_is_as_slow_as_its_slowest_command() -> None:
    found = load_figures.read((LOADS / "redis-benchmark.txt").read_text())
    assert found.requests == 40000, "SET and GET"
    assert found.seconds_per_request == pytest.approx((1 / 5964.81 + 1 / 6482.98) / 2)
    assert found.latencies["p50_seconds"] >= 4.639e-3
    assert found.latencies["p50_seconds"] < found.latencies["p99_seconds"] < found.latencies["p999_seconds"]


def test_redis_benchmark_that_is_quiet_tells_rates_alone() -> None:
    found = load_figures.read((LOADS / "redis-benchmark-q.txt").read_text())
    assert found.requests is None
    assert found.seconds_per_request == pytest.approx(1 / 6000, rel=0.5)
    assert found.latencies["p50_seconds"] > 0


def test_pgbench() -> None:
    found = load_figures.read(PGBENCH.format(failed="0 (0.000%)"))
    assert found.requests == 2000
    assert found.seconds_per_request == pytest.approx(1 / 8000)
    assert found.latencies == pytest.approx({"mean_seconds": 0.25e-3})
    with pytest.raises(NotUnderstood, match="pgbench says: number of failed transactions: 7"):
        load_figures.read(PGBENCH.format(failed="7 (0.350%)"))


long_enough = st.floats(1.0, 1e6)


@given(st.integers(1, 10**10), long_enough, st.lists(st.floats(1e-9, 1.0), max_size=3).map(sorted))
def test_a_line_of_json(requests: int, seconds: float, values: list[float]) -> None:
    latencies = dict(zip(load_figures.PERCENTILES, values, strict=False))
    text = "warming up\n" + json.dumps({"requests": requests, "seconds": seconds, "note": "x", **latencies}) + "\n\n"
    found = load_figures.read(text, wall_s=seconds)
    assert found.requests == requests
    assert found.seconds_per_request == seconds / requests
    assert found.latencies == latencies


def told(**said: object) -> str:
    return json.dumps({"requests": 1000, "seconds": 2.5, **said})


@given(
    st.sampled_from(["requests", "seconds", *load_figures.FAILURES, *load_figures.PERCENTILES, "mean_seconds"]),
    st.sampled_from([math.inf, -math.inf, math.nan, True, False, None, "0", [], {}]) | st.floats(max_value=-1e-9),
)
def test_what_is_no_number_from_0_on_is_refused_wherever_it_stands(name: str, value: object) -> None:
    with pytest.raises(NotUnderstood) as caught:
        load_figures.read(told(**{name: value}))
    assert "\n" not in str(caught.value)


@given(st.sampled_from(load_figures.FAILURES), st.integers(1, 10**6) | st.floats(1e-9, 1e9))
def test_one_failure_is_one_too_many(name: str, count: float) -> None:
    with pytest.raises(NotUnderstood, match=name):
        load_figures.read(told(**{name: count}))
    assert load_figures.read(told(**{name: 0})) == load_figures.read(told(**{name: 0.0})) == load_figures.read(told())


@given(st.dictionaries(st.sampled_from(list(load_figures.PERCENTILES)), st.floats(1e-6, 1.0), min_size=2))
def test_percentiles_do_not_fall(latencies: dict[str, float]) -> None:
    values = [latencies[name] for name in load_figures.PERCENTILES if name in latencies]
    if values == sorted(values):
        assert load_figures.read(told(**latencies)).latencies == latencies
    else:
        with pytest.raises(NotUnderstood, match="a percentile cannot be below a lower one"):
            load_figures.read(told(**latencies))


def test_percentiles_of_wrk_do_not_fall_either() -> None:
    text = (LOADS / "wrk.txt").read_text().replace("112.91ms\n", "112.91us\n")
    with pytest.raises(NotUnderstood, match=r"p50 is 0\.00455 s and p99 0\.0001129 s"):
        load_figures.read(text)


@given(st.floats(0.01, 1e4), st.floats(0.1, 10.0))
def test_nothing_takes_longer_than_the_command_that_tells_it(wall_s: float, ratio: float) -> None:
    text = told(seconds=round(wall_s * ratio, 6) + 1.0000001)
    if 1.0 + wall_s * ratio > wall_s * 1.2 + 0.5:
        with pytest.raises(NotUnderstood, match="its command was over after"):
            load_figures.read(text, wall_s)
    elif 1.01 + wall_s * ratio <= wall_s:
        assert load_figures.read(text, wall_s)


def test_nor_does_a_latency() -> None:
    with pytest.raises(NotUnderstood, match=r"says p99: 7 s, and its command was over after 3 s"):
        load_figures.read(told(p99_seconds=7.0), 3.0)
    assert load_figures.read(told(p99_seconds=2.9), 3.0), "a warm-up and the pauses of a command are no lie"


REDIS = (LOADS / "redis-benchmark.txt").read_text()


@pytest.mark.parametrize(
    ("text", "both"),
    [
        ((LOADS / "wrk.txt").read_text() + REDIS, "wrk and redis-benchmark"),
        (REDIS + told() + "\n", "redis-benchmark and a line of JSON"),
        (told() + "\n" + REDIS, "redis-benchmark and a line of JSON"),
        (PGBENCH.format(failed=0) + "SET: 4995.00 requests per second\n", "redis-benchmark and pgbench"),
    ],
)
def test_the_figures_of_two_tools_are_those_of_neither(text: str, both: str) -> None:
    with pytest.raises(NotUnderstood, match=f"^figures of {both}:"):
        load_figures.read(text)


def test_a_line_of_a_log_is_not_another_tool() -> None:
    log = json.dumps({"level": "info", "note": "done: 5 requests per second"}) + "\n"
    assert load_figures.read(REDIS + log) == load_figures.read(REDIS)
    assert load_figures.read(log + told()) == load_figures.read(told())


def test_redis_benchmark_without_its_rate_is_read_by_its_seconds() -> None:
    text = "  20000 requests completed in 3.35 seconds\n"
    assert load_figures.read(text).seconds_per_request == 3.35 / 20000
    more = "  throughput summary: 5961.25 requests per second\n"
    assert load_figures.read(text + more).seconds_per_request == pytest.approx(1 / 5961.25)


@pytest.mark.parametrize(
    "text",
    [
        "  2000 requests completed in 0.02 seconds\n",
        "  2000 requests completed in 0.99 seconds\n",
        "  2000 requests completed in 0.02 seconds\n\n  throughput summary: 95238.09 requests per second\n",
        '{"requests": 2000, "seconds": 0.02}',
        '{"requests": 2000, "seconds": 0.99}',
        '{"requests": 2000, "seconds": 9e-1}',
    ],
)
def test_a_load_that_its_clock_can_hardly_see(text: str) -> None:
    with pytest.raises(NotUnderstood, match="more than 1 % of them: let it run longer"):
        load_figures.read(text)


@pytest.mark.parametrize("seconds", ["0.512", "1.0", "2.5", "10", "1e1", "0.0213455"])
def test_a_load_that_its_clock_sees_well(seconds: str) -> None:
    assert load_figures.read(f'{{"requests": 2000, "seconds": {seconds}}}').seconds_per_request == float(seconds) / 2000


def test_rates_alone_come_from_a_clock_of_milliseconds() -> None:
    text = "SET: 4995.00 requests per second, p50=7.119 msec\n"
    assert load_figures.read(text, 0.2)
    with pytest.raises(NotUnderstood, match="let it run longer"):
        load_figures.read(text, 0.09)


@given(st.text(max_size=80) | st.binary(max_size=80).map(lambda raw: raw.decode("utf-8", "replace")))
def test_anything_else_is_refused_in_a_line(text: str) -> None:
    with pytest.raises(NotUnderstood) as caught:
        load_figures.read(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it printed nothing"),
        ('{"requests": 5}', "no numbers 'requests' and 'seconds'"),
        ('{"requests": 0, "seconds": 5}', "0 requests in 5 s are no load"),
        ('{"requests": 5, "seconds": 5, "errors": 2}', "2 errors"),
        ('{"requests": true, "seconds": 5}', "no numbers"),
        ('{"requests": 5, "seconds": Infinity}', "says seconds: Infinity"),
        ('{"requests": 5, "seconds": 5, "errors": "12"}', 'says errors: "12"'),
        ('{"requests": 5, "seconds": 5, "errors": 3, "errors": 0}', "says 'errors' more than once"),
        ('{"requests": 5.5, "seconds": 5}', "no count"),
        ('{"requests": 1e300, "seconds": 5}', "are no load"),
        ("  5 requests in 1.2.3s\nRequests/sec: 5", "no figures"),
    ],
)
def test_what_is_no_load(text: str, said: str) -> None:
    with pytest.raises(NotUnderstood, match=said):
        load_figures.read(text)


@pytest.mark.parametrize("text", [(LOADS / "wrk.txt").read_text(), PGBENCH.format(failed="0 (0.000%)")])
def test_the_figures_of_two_runs_are_those_of_neither(text: str) -> None:
    """A load that warms up first: its requests are the server's work too."""
    assert load_figures.read(text)
    with pytest.raises(NotUnderstood, match="2 runs"):
        load_figures.read(text + text)
