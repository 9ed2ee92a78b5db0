"""Durations as people type them, wherever seconds are asked for."""

from __future__ import annotations

import inspect
import math
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from pathlib import Path

import pytest
from cyclopts import Parameter, Token
from hypothesis import given
from hypothesis import strategies as st

from freestone.cli import USAGE, VERBS, _function
from freestone.commands import durations
from freestone.commands.durations import Between
from freestone.records import store
from freestone.trials.launch import LaunchRequest, command_line

Tool = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90), ("1.5", 1.5), ("90s", 90), ("90 s", 90), ("2m", 120), ("2min", 120), ("1h", 3600), ("1h30m", 5400),
        ("1m 30s", 90), ("500ms", 0.5), (".5m", 30), ("2M", 120), ("1d", 86400), ("-3", -3), ("inf", math.inf),
    ],
)  # fmt: skip
def test_usual_notations_are_seconds(text: str, seconds: float) -> None:
    assert durations.seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "m", "1x", "1m30", "1:30", "a minute", "-1m", "1..5s", "1e3s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="seconds, or as in 90s, 2m, 1h30m, not"):
        durations.seconds(text)


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59))
def test_parts_add_up(hours: int, minutes: int, seconds: int) -> None:
    assert durations.seconds(f"{hours}h{minutes}m{seconds}s") == 3600 * hours + 60 * minutes + seconds


def test_every_option_of_seconds_understands_them(freestone: Tool, only_folder: Callable[[], object]) -> None:
    words = ["--time-budget", "1m", "--timeout", "1.5m", "--idle", "1s", "--idle-rounds", "1", "-n", "1", "-a", "glibc"]
    done = freestone("compare", *words, "--no-report", "--", "true")
    assert done.returncode == 0, done.stderr
    experiment = store.read_experiment(only_folder())  # type: ignore[arg-type]
    assert (experiment.time_budget_s, experiment.timeout_s) == (60, 90)
    assert experiment.workloads[0].rest_s == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["compare", "--time-budget", "soon", "--", "true"], "--time-budget: seconds, or as in 90s, 2m, 1h30m, not"),
        (["compare", "--time-budget", "-5", "--", "true"], "--time-budget: it takes from 1 ms to 365 d, not '-5'"),
        (["compare", "--idle", "1.5s", "--", "true"], "--idle: a whole number of seconds, not '1.5s'"),
        (["bench", "field", "--timeout", "x"], "--timeout: seconds, or"),
        (["doctor", "--time-budget", "x", "--", "true"], "--time-budget: seconds, or"),
        (["doctor", "--pid", "1", "--seconds", "x"], "--seconds: seconds, or"),
        (["compare", "--ready-timeout", "x", "--", "true"], "--ready-timeout: seconds, or"),
    ],
)  # fmt: skip
def test_what_is_no_duration_is_one_line(freestone: Tool, words: list[str], said: str) -> None:
    done = freestone(*words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert said in done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_whatever_is_told_in_seconds_understands_them(verb: str) -> None:
    """By the help: an option that speaks of seconds reads a duration, so that none that is added later does not."""
    for parameter in inspect.signature(_function(verb), eval_str=True).parameters.values():
        told = [each for each in getattr(parameter.annotation, "__metadata__", ()) if isinstance(each, Parameter)]
        if any(re.search(r"\bseconds\b", each.help or "", re.IGNORECASE) for each in told):
            assert any(each.converter is not None for each in told), f"{verb} {parameter.name}"


def _parameters(owner: type | Callable[..., object]) -> Iterator[tuple[str, list[Parameter]]]:
    """Name -> what is said of each parameter, those that several verbs share included."""
    for parameter in inspect.signature(owner, eval_str=True).parameters.values():
        told = [each for each in getattr(parameter.annotation, "__metadata__", ()) if isinstance(each, Parameter)]
        yield parameter.name, told
        if inspect.isclass(parameter.annotation) and is_dataclass(parameter.annotation):
            yield from _parameters(parameter.annotation)


DURATIONS = [
    (verb, name, reader)
    for verb in USAGE
    for name, told in _parameters(_function(verb))
    for each in told
    if isinstance(reader := each.converter, Between)
]


def _read(reader: Between, text: str) -> float | int:
    return reader(float, [Token(keyword="--option", value=text)])


def test_every_verb_that_takes_a_time_is_among_them() -> None:
    names = {(verb, name) for verb, name, _ in DURATIONS}
    limits = {("compare", each) for each in ("timeout", "ready_timeout", "stop_timeout")}
    assert names >= limits | {("doctor", "seconds"), ("bench", "idle")}


@pytest.mark.parametrize(("verb", "name", "reader"), DURATIONS)
@given(data=st.data())
def test_an_option_takes_what_lies_between_its_ends_and_nothing_else(
    verb: str, name: str, reader: Between, data: st.DataObject
) -> None:
    wrong = [math.nan, math.inf, -math.inf, -1.0, 0.0, 1e-12, 1e300, math.nextafter(reader.most_s, math.inf)]
    value = data.draw(st.sampled_from(wrong) | st.floats() | st.floats(reader.least_s, reader.most_s))
    if reader.least_s <= value <= reader.most_s and (not reader.whole or value.is_integer()):
        assert _read(reader, repr(value)) == value
    else:
        with pytest.raises(
            ValueError, match=r"^(it takes from [\d.]+ m?s to [\d.]+ [dh]|a whole number of seconds), not"
        ):
            _read(reader, repr(value))


@pytest.mark.parametrize(("verb", "name", "reader"), DURATIONS)
def test_whatever_an_option_takes_the_launcher_and_the_clocks_take(verb: str, name: str, reader: Between) -> None:
    """In the launcher's nanoseconds it is not 0, which means no limit; the kernel waits 24 days at most."""
    request = LaunchRequest(["true"], Path(), Path(), Path(), timeout_s=reader.least_s)
    words = command_line(request, Path("launch"))
    assert float(words[words.index("--timeout") + 1]) == reader.least_s > 0
    if name != "time_budget":  # nothing waits for that in one call
        assert subprocess.run(["true"], timeout=reader.most_s + 60, check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize("text", ["1e300", "1e-12", "nan", "inf", "-1", "0", "8d"])
def test_a_limit_that_no_clock_has_is_one_line(freestone: Tool, text: str) -> None:
    done = freestone("compare", "--timeout", text, "--", "true")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert f"--timeout: it takes from 1 ms to 7 d, not '{text}'" in done.stderr
