"""The figures of load generators, from what they really printed (``loads/``); refused where requests failed."""

from __future__ import annotations

import json
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
    assert found.seconds_per_request == pytest.approx(1.04 / 681)
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
    assert found.seconds_per_request == pytest.approx(3.35 / 20000, rel=0.5)
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


positive = st.floats(1e-6, 1e9)


@given(positive, positive, st.dictionaries(st.sampled_from(["p50_seconds", "p99_seconds", "p999_seconds"]), positive))
def test_a_line_of_json(requests: float, seconds: float, latencies: dict[str, float]) -> None:
    text = "warming up\n" + json.dumps({"requests": requests, "seconds": seconds, "note": "x", **latencies}) + "\n\n"
    found = load_figures.read(text)
    assert found.requests == requests
    assert found.seconds_per_request == seconds / requests
    assert found.latencies == latencies


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
