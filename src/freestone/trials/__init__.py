"""One trial in, one record out: the launcher, the witness, the meters, and the verdict over them."""

from freestone.trials.launch import LauncherBroken, Permissions, permissions
from freestone.trials.trial import Identity, Rehearsal, rehearse, run_trial

__all__ = ["Identity", "LauncherBroken", "Permissions", "Rehearsal", "permissions", "rehearse", "run_trial"]
