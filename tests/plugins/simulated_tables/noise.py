"""Noise as shared machines make it, in every shape that could fool a table: logarithms of what a run takes too much."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Logs = NDArray[np.float64]
Kind = Callable[[np.random.Generator, int], Logs]

PACE = 0.9
"""How alike two runs are that follow one another, where neighbours come and go: the correlation."""


def rounds(kind: str, random: np.random.Generator, count: int, runs: int) -> Logs:
    """The noise of whole rounds.

    Args:
        kind: one of :data:`KINDS`.
        count: of rounds.
        runs: in a round, in random order.

    Returns:
        Shape (rounds, runs); a column is one configuration's.
    """
    in_time = KINDS[kind](random, count * runs).reshape(count, runs)
    return np.asarray(random.permuted(in_time, axis=1))


def _plain(random: np.random.Generator, runs: int) -> Logs:
    return random.normal(0, 0.01, runs)


def _skewed(random: np.random.Generator, runs: int) -> Logs:
    """Never faster than undisturbed, and by how much slower is an exponential."""
    return random.exponential(0.01, runs)


def _disturbed(random: np.random.Generator, runs: int) -> Logs:
    """Quiet, and one run in ten takes a third longer: a neighbour that wakes up."""
    return random.normal(0, 0.003, runs) + (random.random(runs) < 0.1) * random.exponential(0.3, runs)


def _heavy(random: np.random.Generator, runs: int) -> Logs:
    return 0.006 * random.standard_t(3, runs)


def _bimodal(random: np.random.Generator, runs: int) -> Logs:
    """Three runs of ten are 5 % slower: where the kernel happened to put stack and pages."""
    return random.normal(0, 0.003, runs) + 0.05 * (random.random(runs) < 0.3)


def _drifting(random: np.random.Generator, runs: int) -> Logs:
    """A machine that gets a third slower from the first run to the last, as it warms up."""
    return random.normal(0, 0.01, runs) + np.linspace(0, 0.3, runs)


def _walk(random: np.random.Generator, runs: int) -> Logs:
    steps = random.normal(0, 1, runs)
    state = np.empty(runs)
    level = steps[0]
    for number, step in enumerate(steps):
        level = PACE * level + np.sqrt(1 - PACE**2) * step if number else step
        state[number] = level
    return state


def _autocorrelated(random: np.random.Generator, runs: int) -> Logs:
    """A load that comes and goes over some ten runs."""
    return random.normal(0, 0.005, runs) + 0.03 * _walk(random, runs)


def _bursts(random: np.random.Generator, runs: int) -> Logs:
    """Every now and then some runs on end are a fifth slower: somebody compiles."""
    return random.normal(0, 0.005, runs) + 0.2 * (_walk(random, runs) > 1.2)


def _counted(random: np.random.Generator, runs: int) -> Logs:
    """A thousand page faults, and now and then one or two more."""
    return np.asarray(np.log(1000.0 + random.poisson(0.5, runs)))


KINDS: dict[str, Kind] = {
    "plain": _plain,
    "skewed": _skewed,
    "heavy tails": _heavy,
    "disturbed": _disturbed,
    "bimodal": _bimodal,
    "drifting": _drifting,
    "autocorrelated": _autocorrelated,
    "bursts": _bursts,
    "counts": _counted,
}
