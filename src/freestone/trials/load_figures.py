"""The figures that a load generator prints: wrk, redis-benchmark, pgbench, or a line of JSON. Pure."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

_UNIT_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_DURATION = rf"{_NUMBER}(ns|us|µs|ms|s|m|h)"

PERCENTILES = {"p50_seconds": 50.0, "p99_seconds": 99.0, "p999_seconds": 99.9}
"""Latencies by the names of their figures, in per cent of requests."""

FAILURES = ("errors", "failed", "failures", "timeouts")
"""Names of a line of JSON that have to be 0 where they are there."""

FEWEST_STEPS = 100
"""Steps of its clock that a load has to last: fewer, and one step is more than 1 % of its time."""

MOST_PER_SECOND = 1e10
"""Requests per second: more than this no processor makes."""

LONGER_THAN_WALL, LONGER_THAN_WALL_S = 1.02, 0.02
"""By how much what is told may exceed the command's own time, as a ratio and in seconds: digits are rounded, and two
clocks of two machines differ."""

_MILLISECOND_S, _HUNDREDTH_S = 1e-3, 1e-2

NO_FIGURES: Final = "no figures"
"""What is said of a load that tells none begins so: another run would tell none either."""

_HOW: Final = "docs/guide/service.md#a-load-of-your-own"


class NotUnderstood(ValueError):
    """The load said nothing usable or what cannot be true, or requests failed; the message is one line."""


@dataclass(frozen=True)
class LoadFigures:
    """What a load did: ``requests`` in ``seconds``, and latencies in seconds by the names of :data:`PERCENTILES`.

    ``requests`` is None where only their rate was told.
    """

    requests: float | None
    seconds_per_request: float
    latencies: dict[str, float]


@dataclass(frozen=True)
class _Reader:
    """Knows the output of one tool. ``read`` is asked only of output that ``knows`` has recognised."""

    tool: str
    knows: Callable[[str], bool]
    read: Callable[[str], LoadFigures]


def read(text: str, wall_s: float = math.inf) -> LoadFigures:
    """The figures of a load's standard output.

    Args:
        text: what it printed.
        wall_s: seconds from the start of the load's command to its end, by our own clock; what it tells cannot have
            taken longer. Infinite where nobody has looked.

    Raises:
        NotUnderstood: there are no figures, or those of two tools; requests failed: what failed is no throughput; or
            the figures cannot be true, or are too coarse.
    """
    text = text.replace("\r", "\n")
    known = [reader for reader in _READERS if reader.knows(text)]
    if len(known) > 1:
        both = " and ".join(reader.tool for reader in known[:2])
        raise NotUnderstood(f"figures of {both}: send the output of all but one to /dev/null")
    if known:
        found = known[0].read(text)
        _refuse_impossible(found, wall_s)
        return found
    line = _last_line(text)
    said = f"the last line is: {line[:80]}" if line else "it printed nothing"
    raise NotUnderstood(f"{NO_FIGURES} of wrk, redis-benchmark, pgbench, nor a line of JSON ({_HOW}); {said}")


_WRK_TOTAL = re.compile(rf"^\s*([0-9]+) requests in {_DURATION}", re.MULTILINE)


def _knows_wrk(text: str) -> bool:
    return _WRK_TOTAL.search(text) is not None and "Requests/sec:" in text


def _wrk(text: str) -> LoadFigures:
    total = _only(list(_WRK_TOTAL.finditer(text)), "wrk")
    trouble = re.search(r"^\s*(Socket errors: .*|Non-2xx or 3xx responses: [0-9]+)", text, re.MULTILINE)
    if trouble:
        raise NotUnderstood(f"wrk says: {trouble[1]}")
    latencies = {}
    for percent, value, unit in re.findall(rf"^\s*{_NUMBER}%\s+{_DURATION}\s*$", text, re.MULTILINE):
        latencies[float(percent)] = float(value) * _UNIT_S[unit]
    requests, printed, unit_s = float(total[1]), total[2], _UNIT_S[total[3]]
    rate = re.search(rf"^Requests/sec:\s+{_NUMBER}", text, re.MULTILINE)
    if rate is not None and float(rate[1]) >= 1:  # by a clock of microseconds; "1.00m" is a coarse one
        return _figures(requests, requests / float(rate[1]), _named(latencies), step_s=1e-6)
    return _figures(requests, float(printed) * unit_s, _named(latencies), step_s=_step(printed) * unit_s)


_REDIS_DONE = re.compile(rf"^\s*([0-9]+) requests completed in {_NUMBER} seconds", re.MULTILINE)
_REDIS_RATE = re.compile(rf"^[^{{\n]*: {_NUMBER} requests per second(?:, p50={_NUMBER} msec)?", re.MULTILINE)
_REDIS_SUMMARY = re.compile(rf"^\s*(?:throughput summary: )?{_NUMBER} requests per second\s*$", re.MULTILINE)


def _knows_redis_benchmark(text: str) -> bool:
    return _REDIS_DONE.search(text) is not None or _REDIS_RATE.search(text) is not None


def _redis_benchmark(text: str) -> LoadFigures:
    """One command after the other, each as often: sums, and the latencies of the slowest command."""
    trouble = re.search(r"^Error from server.*", text, re.MULTILINE)
    if trouble:
        raise NotUnderstood(f"redis-benchmark says: {trouble[0][:80]}")
    done = list(_REDIS_DONE.finditer(text))
    if done:
        requests = seconds = step_s = 0.0
        slowest: dict[str, float] = {}
        for one, following in zip(done, [*done[1:], None], strict=True):
            section = text[one.end() : len(text) if following is None else following.start()]
            count, rate = float(one[1]), _REDIS_SUMMARY.search(section)
            precise = rate is not None and float(rate[1]) >= 1
            requests += count
            seconds += count / float(rate[1]) if rate is not None and precise else float(one[2])
            step_s += _MILLISECOND_S if precise else _step(one[2])
            for name, value_s in _of_section(section).items():
                slowest[name] = max(slowest.get(name, 0.0), value_s)
        return _figures(requests, seconds, slowest, step_s=step_s)
    rates = _REDIS_RATE.findall(text)
    if any(float(rate) <= 0 for rate, _ in rates):
        raise NotUnderstood("redis-benchmark says: 0 requests per second")
    medians = [float(value) / 1e3 for _, value in rates if value]
    per_request = sum(1 / float(rate) for rate, _ in rates) / len(rates)
    return LoadFigures(None, per_request, {"p50_seconds": max(medians)} if medians else {})


def _of_section(text: str) -> dict[str, float]:
    """The latencies of one command: from its summary, else from the first step that reaches them."""
    shares = re.findall(rf"^{_NUMBER}% <= {_NUMBER} milliseconds", text.partition("Cumulative")[0], re.MULTILINE)
    found = {}
    for name, percent in PERCENTILES.items():
        reached = [float(value) / 1e3 for share, value in shares if float(share) >= percent]
        if reached:
            found[name] = min(reached)
    summary = re.search(r"avg\s+min\s+p50\s+p95\s+p99\s+max\s+" + r"[ \t]+".join([_NUMBER] * 6), text)
    if summary:
        _, _, median, _, slow, _ = (float(value) / 1e3 for value in summary.groups())
        found |= {"p50_seconds": median, "p99_seconds": slow}
    return found


_PGBENCH_COUNT = re.compile(r"^number of transactions actually processed: ([0-9]+)", re.MULTILINE)
_PGBENCH_RATE = re.compile(rf"^tps = {_NUMBER}", re.MULTILINE)


def _knows_pgbench(text: str) -> bool:
    return _PGBENCH_COUNT.search(text) is not None and _PGBENCH_RATE.search(text) is not None


def _pgbench(text: str) -> LoadFigures:
    done = _only(list(_PGBENCH_COUNT.finditer(text)), "pgbench")
    failed = re.search(r"^number of failed transactions: ([1-9].*)", text, re.MULTILINE)
    if failed:
        raise NotUnderstood(f"pgbench says: number of failed transactions: {failed[1]}")
    mean = re.search(rf"^latency average = {_NUMBER} ms", text, re.MULTILINE)
    requests, per_second = float(done[1]), float(_PGBENCH_RATE.findall(text)[0])
    latencies = {"mean_seconds": float(mean[1]) / 1e3} if mean else {}
    return _figures(requests, requests / per_second if per_second else 0.0, latencies, step_s=1e-6)


class _Number(float):
    """A number of a line of JSON that remembers how it was printed."""

    printed: str

    def __new__(cls, printed: str) -> _Number:
        number = super().__new__(cls, printed)
        number.printed = printed
        return number


def _object(line: str) -> dict[str, object] | None:
    """A line of JSON, None where it is none or no object.

    Raises:
        NotUnderstood: it says a name twice.
    """
    repeated: list[str] = []

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            repeated.extend(name for name in names if names.count(name) > 1)
        return found

    try:
        said = json.loads(line, parse_int=_Number, parse_float=_Number, parse_constant=_Number, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    if repeated and {"requests", "seconds"} & said.keys():
        raise NotUnderstood(f"its line of JSON says {repeated[0]!r} more than once"[:200])
    return said


def _knows_json(text: str) -> bool:
    """Where another tool has spoken only a line with figures counts: whatever else is JSON may be a log's."""
    last = _object(_last_line(text))
    if last is not None and ("requests" in last or "seconds" in last):
        return True
    lines = (line for line in text.splitlines() if '"requests"' in line and '"seconds"' in line)
    others = any(reader.knows(text) for reader in _READERS if reader.tool != _JSON)
    return any(_object(line) is not None for line in lines) if others else last is not None


def _json(text: str) -> LoadFigures:
    said = _object(_last_line(text)) or {}
    if not (isinstance(said.get("requests"), _Number) and isinstance(said.get("seconds"), _Number)):
        raise NotUnderstood(f"{NO_FIGURES}: its line of JSON has no numbers 'requests' and 'seconds' ({_HOW})")
    numbers: dict[str, _Number] = {}
    for name in ("requests", "seconds", *FAILURES, *PERCENTILES, "mean_seconds"):
        if name not in said:
            continue
        value = said[name]
        if not isinstance(value, _Number) or not math.isfinite(value) or value < 0:
            shown = value.printed if isinstance(value, _Number) else json.dumps(value)
            raise NotUnderstood(f"its line of JSON says {name}: {shown[:40]}, which is no number from 0 on")
        numbers[name] = value
    for name in FAILURES:
        if numbers.get(name, 0.0) != 0:
            raise NotUnderstood(f"its line of JSON says: {numbers[name]:g} {name}")
    if not float(numbers["requests"]).is_integer():
        raise NotUnderstood(f"its line of JSON says {numbers['requests']:g} requests, which is no count")
    latencies = {name: float(numbers[name]) for name in (*PERCENTILES, "mean_seconds") if numbers.get(name, 0.0) > 0}
    # Whoever prints what is there may print 2.5 of 2.500: no more than hundredths is held against it.
    step_s = min(_HUNDREDTH_S, _step(numbers["seconds"].printed))
    return _figures(float(numbers["requests"]), float(numbers["seconds"]), latencies, step_s=step_s)


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _only(runs: Sequence[re.Match[str]], tool: str) -> re.Match[str]:
    """The figures of one run; those of a run before it would be taken for the load's, and its requests be missing."""
    if len(runs) > 1:
        raise NotUnderstood(f"figures of {len(runs)} runs of {tool}: send the output of all but one to /dev/null")
    return runs[0]


_JSON = "a line of JSON"

_READERS = (
    _Reader("wrk", _knows_wrk, _wrk),
    _Reader("redis-benchmark", _knows_redis_benchmark, _redis_benchmark),
    _Reader("pgbench", _knows_pgbench, _pgbench),
    _Reader(_JSON, _knows_json, _json),
)


def _named(shares: dict[float, float]) -> dict[str, float]:
    """Latencies by name: of each percentile, those that were printed for it."""
    return {name: shares[percent] for name, percent in PERCENTILES.items() if percent in shares}


def _step(printed: str) -> float:
    """The worth of the last digit of a number as it is printed: 0.01 of ``0.50``, 1 of ``3``."""
    exponent = Decimal(printed).as_tuple().exponent
    return 10.0**exponent if isinstance(exponent, int) and -300 < exponent < 300 else 0.0


def _figures(requests: float, seconds: float, latencies: dict[str, float], *, step_s: float) -> LoadFigures:
    """Figures that are some.

    Args:
        step_s: of the clock that ``seconds`` were read off, in seconds.

    Raises:
        NotUnderstood: they are none, or one step is more than 1 % of them.
    """
    if not (requests >= 1 and seconds > 0 and 1 / MOST_PER_SECOND <= seconds / requests < math.inf):
        raise NotUnderstood(f"{requests:g} requests in {seconds:g} s are no load")
    _refuse_brief(seconds, step_s)
    return LoadFigures(requests, seconds / requests, latencies)


def _refuse_brief(seconds: float, step_s: float) -> None:
    if seconds * (1 + 1e-9) < FEWEST_STEPS * step_s:
        raise NotUnderstood(
            f"{seconds:g} s by a clock with steps of {step_s:g} s, which is more than 1 % of them: let it run longer"
        )


def _refuse_impossible(found: LoadFigures, wall_s: float) -> None:
    """Refuse what took longer than its command did, and percentiles that fall.

    There is no lower limit: a load may warm up, fill the server, and tell the seconds of its last part alone.
    """
    longest_s = wall_s * LONGER_THAN_WALL + LONGER_THAN_WALL_S
    times = {name.removesuffix("_seconds"): latency_s for name, latency_s in found.latencies.items()}
    if found.requests is None:  # redis-benchmark's rates alone: by a clock of milliseconds, for no longer than this
        _refuse_brief(wall_s, _MILLISECOND_S)
    else:
        times["seconds"] = found.requests * found.seconds_per_request
    for name, time_s in times.items():
        if time_s > longest_s:
            raise NotUnderstood(f"it says {name}: {time_s:.4g} s, and its command was over after {wall_s:.4g} s")
    told = [(name.removesuffix("_seconds"), found.latencies[name]) for name in PERCENTILES if name in found.latencies]
    for (lower, lower_s), (upper, upper_s) in itertools.pairwise(told):
        if lower_s > upper_s:
            raise NotUnderstood(
                f"{lower} is {lower_s:.4g} s and {upper} {upper_s:.4g} s: a percentile cannot be below a lower one"
            )
