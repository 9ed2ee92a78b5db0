"""Durations as people type them, wherever seconds are asked for."""

from __future__ import annotations

import inspect
import math
import re
import subprocess
from collections.abc import Callable

import pytest
from cyclopts import Parameter
from hypothesis import given
from hypothesis import strategies as st

from freestone.cli import VERBS, _function
from freestone.commands import durations
from freestone.records import store

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
        (["compare", "--time-budget", "-5", "--", "true"], "--time-budget takes seconds, more than 0, not -5"),
        (["compare", "--idle", "1.5s", "--", "true"], "--idle: a whole number of seconds, not '1.5s'"),
        (["advise", "--time-budget", "x", "--", "true"], "--time-budget: seconds, or"),
        (["bench", "field", "--timeout", "x"], "--timeout: seconds, or"),
        (["count", "results", "--timeout", "x"], "--timeout: seconds, or"),
        (["doctor", "--time-budget", "x", "--", "true"], "--time-budget: seconds, or"),
        (["doctor", "--pid", "1", "--seconds", "x"], "--seconds: seconds, or"),
        (["tune", "--time-budget", "x", "--", "true"], "--time-budget: seconds, or"),
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
