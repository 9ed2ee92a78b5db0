"""The figures that a load generator prints: wrk, redis-benchmark, pgbench, or a line of JSON. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_UNIT_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = r"([0-9.]+)(ns|us|µs|ms|s|m|h)"

PERCENTILES = {"p50_seconds": 50.0, "p99_seconds": 99.0, "p999_seconds": 99.9}
"""Latencies by the names of their figures, in per cent of requests."""


class NotUnderstood(ValueError):
    """The load said nothing usable, or that requests failed; the message is one line."""


@dataclass(frozen=True)
class LoadFigures:
    """What a load did: ``requests`` in ``seconds``, and latencies in seconds by the names of :data:`PERCENTILES`.

    ``requests`` is None where only their rate was told.
    """

    requests: float | None
    seconds_per_request: float
    latencies: dict[str, float]


def read(text: str) -> LoadFigures:
    """The figures of a load's standard output.

    Raises:
        NotUnderstood: there are none, or requests failed: what failed is no throughput.
    """
    for reader in _READERS:
        found = reader(text)
        if found is not None:
            return found
    line = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
    said = f"the last line is: {line[:80]}" if line else "it printed nothing"
    raise NotUnderstood(f"no figures of wrk, redis-benchmark, pgbench, nor a line of JSON; {said}")


def _wrk(text: str) -> LoadFigures | None:
    totals = list(re.finditer(rf"^\s*([0-9]+) requests in {_DURATION}", text, re.MULTILINE))
    if not totals or "Requests/sec:" not in text:
        return None
    total = _only(totals, "wrk")
    trouble = re.search(r"^\s*(Socket errors: .*|Non-2xx or 3xx responses: [0-9]+)", text, re.MULTILINE)
    if trouble:
        raise NotUnderstood(f"wrk says: {trouble[1]}")
    latencies = {}
    for percent, value, unit in re.findall(rf"^\s*([0-9.]+)%\s+{_DURATION}\s*$", text, re.MULTILINE):
        latencies[float(percent)] = float(value) * _UNIT_S[unit]
    return _figures(float(total[1]), float(total[2]) * _UNIT_S[total[3]], _named(latencies))


def _redis_benchmark(text: str) -> LoadFigures | None:
    """One command after the other, each as often: sums, and the latencies of the slowest command."""
    text = text.replace("\r", "\n")
    done = re.findall(r"^\s*([0-9]+) requests completed in ([0-9.]+) seconds", text, re.MULTILINE)
    if done:
        slowest: dict[str, float] = {}
        for section in text.split(" requests completed in ")[1:]:
            for name, value_s in _of_section(section).items():
                slowest[name] = max(slowest.get(name, 0.0), value_s)
        return _figures(sum(float(count) for count, _ in done), sum(float(took) for _, took in done), slowest)
    rates = re.findall(r"([0-9.]+) requests per second(?:, p50=([0-9.]+) msec)?", text)
    if not rates:
        return None
    if any(float(rate) <= 0 for rate, _ in rates):
        raise NotUnderstood("redis-benchmark says: 0 requests per second")
    medians = [float(value) / 1e3 for _, value in rates if value]
    per_request = sum(1 / float(rate) for rate, _ in rates) / len(rates)
    return LoadFigures(None, per_request, {"p50_seconds": max(medians)} if medians else {})


def _of_section(text: str) -> dict[str, float]:
    """The latencies of one command: from its summary, else from the first step that reaches them."""
    shares = re.findall(r"^([0-9.]+)% <= ([0-9.]+) milliseconds", text.partition("Cumulative")[0], re.MULTILINE)
    found = {}
    for name, percent in PERCENTILES.items():
        reached = [float(value) / 1e3 for share, value in shares if float(share) >= percent]
        if reached:
            found[name] = min(reached)
    summary = re.search(r"avg\s+min\s+p50\s+p95\s+p99\s+max\s+([0-9.]+(?:[ \t]+[0-9.]+){5})", text)
    if summary:
        _, _, median, _, slow, _ = (float(value) / 1e3 for value in summary[1].split())
        found |= {"p50_seconds": median, "p99_seconds": slow}
    return found


def _pgbench(text: str) -> LoadFigures | None:
    counts = list(re.finditer(r"^number of transactions actually processed: ([0-9]+)", text, re.MULTILINE))
    rate = re.search(r"^tps = ([0-9.]+)", text, re.MULTILINE)
    if not counts or rate is None:
        return None
    done = _only(counts, "pgbench")
    failed = re.search(r"^number of failed transactions: ([1-9].*)", text, re.MULTILINE)
    if failed:
        raise NotUnderstood(f"pgbench says: number of failed transactions: {failed[1]}")
    mean = re.search(r"^latency average = ([0-9.]+) ms", text, re.MULTILINE)
    requests, per_second = float(done[1]), float(rate[1])
    latencies = {"mean_seconds": float(mean[1]) / 1e3} if mean else {}
    return _figures(requests, requests / per_second if per_second else 0.0, latencies)


def _json(text: str) -> LoadFigures | None:
    line = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    numbers = {name: float(value) for name, value in said.items() if _is_number(value)}
    if "requests" not in numbers or "seconds" not in numbers:
        raise NotUnderstood("its line of JSON has no numbers 'requests' and 'seconds'")
    if numbers.get("errors", 0) > 0:
        raise NotUnderstood(f"its line of JSON says: {numbers['errors']:.0f} errors")
    latencies = {name: numbers[name] for name in (*PERCENTILES, "mean_seconds") if numbers.get(name, 0) > 0}
    return _figures(numbers["requests"], numbers["seconds"], latencies)


def _only(runs: Sequence[re.Match[str]], tool: str) -> re.Match[str]:
    """The figures of one run; those of a run before it would be taken for the load's, and its requests be missing."""
    if len(runs) > 1:
        raise NotUnderstood(f"figures of {len(runs)} runs of {tool}: send the output of all but one to /dev/null")
    return runs[0]


_READERS: tuple[Callable[[str], LoadFigures | None], ...] = (_wrk, _redis_benchmark, _pgbench, _json)


def _named(shares: dict[float, float]) -> dict[str, float]:
    """Latencies by name: of each percentile, those that were printed for it."""
    return {name: shares[percent] for name, percent in PERCENTILES.items() if percent in shares}


def _figures(requests: float, seconds: float, latencies: dict[str, float]) -> LoadFigures:
    if not (requests > 0 and seconds > 0 and math.isfinite(seconds / requests)):
        raise NotUnderstood(f"{requests:g} requests in {seconds:g} s are no load")
    return LoadFigures(requests, seconds / requests, latencies)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False
