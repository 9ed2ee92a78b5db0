"""One trial in, one record out: the launcher, the witness, the meters, and the verdict over them."""

from freestone.trials.calls import NoCounter, count_calls, strace
from freestone.trials.instructions import count_instructions, count_requests
from freestone.trials.launch import LauncherBroken, Permissions, permissions
from freestone.trials.service import Moment
from freestone.trials.stage import StageFailure, run_stage
from freestone.trials.trial import Identity, Rehearsal, can_count, rehearse, run_trial
from freestone.trials.valgrind import NoValgrind
from freestone.trials.valgrind import version as valgrind_version

__all__ = [
    "Identity",
    "LauncherBroken",
    "Moment",
    "NoCounter",
    "NoValgrind",
    "Permissions",
    "Rehearsal",
    "StageFailure",
    "can_count",
    "count_calls",
    "count_instructions",
    "count_requests",
    "permissions",
    "rehearse",
    "run_stage",
    "run_trial",
    "strace",
    "valgrind_version",
]
