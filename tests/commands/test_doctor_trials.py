"""How many remedies the doctor tries: as many as there is time for in enough rounds."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from answers import said
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freestone.commands.doctor_trials import MOST_REMEDIES, most_remedies
from freestone.doctor.observations import Cost, Observations, Platform
from freestone.doctor.screening import ONE_RUN
from freestone.doctor.verdict import LEAST_ROUNDS
from freestone.records.schema import Experiment

Tool = Callable[..., subprocess.CompletedProcess[str]]
CompileC = Callable[..., Path]

ONE_BEFORE = 1
"""Run of each configuration before the first round."""


def seen(wall_s: float, trial_s: float | None) -> Observations:
    cost = Cost(runs=3, wall_s=wall_s, user_s=wall_s, sys_s=0.0, trial_s=trial_s)
    return Observations(command=["x"], platform=Platform(), cost=cost)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(budget_s=st.floats(0.1, 3600), wall_s=st.floats(0.001, 60), more_s=st.floats(0, 5))
def test_remedies_are_dropped_before_rounds(
    make_experiment: Callable[..., Experiment], budget_s: float, wall_s: float, more_s: float
) -> None:
    """Start and proof of a trial were not counted, and two were tried where there was time for none."""
    experiment = make_experiment().model_copy(update={"time_budget_s": budget_s})
    number = most_remedies(experiment, seen(wall_s, wall_s + more_s))
    assert 1 <= number <= MOST_REMEDIES
    if number > 1:
        trials = LEAST_ROUNDS * (2 + number) + (1 + number) * ONE_BEFORE
        assert trials * (wall_s + more_s) <= budget_s
    assert most_remedies(experiment, seen(wall_s, None)) <= max(1, int(budget_s / wall_s / LEAST_ROUNDS))


HOLDS = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    enum { BLOCKS = 8000 };
    static char *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) memset(block[i] = malloc(4000), 1, 4000);
    for (int i = 0; i < BLOCKS; i++) if (i != BLOCKS - 1) free(block[i]);
    usleep(400000);
    return block[BLOCKS - 1][0] - 1;
}
"""


@pytest.mark.long
def test_where_there_is_room_for_one_each_has_run_once_before(freestone: Tool, compile_c: CompileC) -> None:
    """The first of the plan was tried alone, and nothing was said of the others."""
    holds = compile_c(HOLDS, "-fno-builtin", name="holds")
    done = freestone("doctor", "--goal", "memory", "--time-budget", "8", "--json", "--", str(holds))
    told = said(done)
    assert "remedies once each: the time budget has room for rounds with " in done.stderr
    once = [each["why"] for each in told["left_out"] if each["why"].startswith(ONE_RUN)]
    assert once
    assert all(" s" in each.removeprefix(ONE_RUN) for each in once)
    titles = [each["remedy"] for each in told["left_out"]]
    assert len(titles) == len(set(titles)), "each is named once"
