"""One trial in, one record out: the launcher, the witness, the meters, and the verdict over them."""

from freestone.trials.calls import NoCounter, count_calls
from freestone.trials.launch import LauncherBroken, Permissions, permissions
from freestone.trials.trial import Identity, Rehearsal, rehearse, run_trial

__all__ = [
    "Identity",
    "LauncherBroken",
    "NoCounter",
    "Permissions",
    "Rehearsal",
    "count_calls",
    "permissions",
    "rehearse",
    "run_trial",
]
