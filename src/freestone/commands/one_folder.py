"""Whether a folder that was given for results holds one experiment, or the folders of several."""

from __future__ import annotations

import shlex
from pathlib import Path

from freestone.commands.status import ExitStatus, Stop
from freestone.records import store


def required(folder: Path) -> Path:
    """The folder as it was given, unless it is the folder that holds all results.

    What is no results folder at all passes too: whoever reads it says what is wrong with it.

    Raises:
        Stop: it holds results folders and is none; the newest of them is named.
    """
    if _holds_results(folder):
        return folder
    try:
        # Their names begin with the time.
        inside = sorted(each for each in folder.iterdir() if _holds_results(each))
    except OSError:
        return folder
    if not inside:
        return folder
    newest = shlex.quote(str(inside[-1]))
    many = f"{folder} holds several" if len(inside) > 1 else f"{folder} holds results folders"
    raise Stop(f"{many}; give one of them, as in {newest}", ExitStatus.USAGE)


def _holds_results(folder: Path) -> bool:
    """Of an experiment, or of a diagnosis, which may have tried nothing."""
    if (folder / store.EXPERIMENT_FILE).exists():
        return True
    from freestone.doctor import diagnosis  # late: seldom asked

    return diagnosis.is_one(folder)
