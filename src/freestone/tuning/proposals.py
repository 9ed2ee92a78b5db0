"""What to try next, by Optuna: a study of two objectives, made anew from what was measured whenever it is asked.

Nothing of a study is kept in a file. The records are, and they say all that it knew.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from freestone.records import installation
from freestone.tuning.space import Point, Room, draw

if TYPE_CHECKING:
    import optuna

ASKED_AT_MOST: Final = 40
"""How often a study is asked for one point that was not tried yet."""
BY_CHANCE: Final = 12
"""Points of which a study wants to know before it proposes anything but by chance."""


class StudyBroken(Exception):
    """Optuna did not do what it was asked for; the message is one line."""


@dataclass(frozen=True)
class Tried:
    """A point and what came of it: logarithms of the ratios of time and memory, None where it has failed."""

    point: Point
    ratios: tuple[float, float] | None


def missing() -> str | None:
    """How to get what a search needs, as a part of a sentence; None where it is there."""
    return None if find_spec("optuna") is not None else f"a search needs: {installation.to_get('tune', ['optuna'])}"


def propose(room: Room, tried: Sequence[Tried], count: int, seed: str) -> list[Point]:
    """Points that were not tried yet: fewer than asked for where the study finds no more.

    Args:
        room: what there is to choose.
        tried: everything so far, in a fixed order.
        count: how many are wanted.
        seed: of what chance has to do with it; with the same arguments the answer is the same.

    Raises:
        StudyBroken: there is no answer.
    """
    try:
        return _proposed(room, tried, count, seed)
    except Exception as error:  # whatever is wrong with a library: what was measured is worth more than its advice
        line = (str(error).splitlines() or [""])[0]
        raise StudyBroken(f"{type(error).__name__}: {line}" if line else type(error).__name__) from error


def _proposed(room: Room, tried: Sequence[Tried], count: int, seed: str) -> list[Point]:
    import optuna  # late: it is large, and an extra (:func:`missing`)

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=zlib.crc32(seed.encode()), n_startup_trials=BY_CHANCE, multivariate=True, group=True
        )
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    for each in tried:
        study.add_trial(_as_trial(room, each))
    known = {each.point for each in tried}
    found: list[Point] = []
    for _ in range(ASKED_AT_MOST * count):
        if len(found) >= count:
            break
        trial = study.ask()
        point = draw(room, lambda name, values, ordered, trial=trial: _chosen(trial, name, values, ordered=ordered))  # type: ignore[misc]
        if point in known:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            known.add(point)
            found.append(point)
    return found


def _chosen(trial: optuna.Trial, name: str, values: Sequence[str], *, ordered: bool) -> str:
    if ordered:
        return values[trial.suggest_int(name, 0, len(values) - 1)]
    return str(trial.suggest_categorical(name, values))


def _as_trial(room: Room, tried: Tried) -> optuna.trial.FrozenTrial:
    """A point as a study knows it that has asked for it."""
    from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
    from optuna.trial import TrialState, create_trial

    values = dict(tried.point.values)
    parameters: dict[str, int | str] = {}
    distributions: dict[str, BaseDistribution] = {}

    def told(name: str, choices: Sequence[str], ordered: bool) -> str:
        _, _, knob = name.partition(".")
        value = values[knob] if knob else tried.point.allocator
        parameters[name] = choices.index(value) if ordered else value
        distributions[name] = IntDistribution(0, len(choices) - 1) if ordered else CategoricalDistribution(choices)
        return value

    draw(room, told)
    return create_trial(
        state=TrialState.FAIL if tried.ratios is None else TrialState.COMPLETE,
        values=None if tried.ratios is None else list(tried.ratios),
        params=parameters,
        distributions=distributions,
    )
