"""How many instructions a program executes, as callgrind counts them: no clock is asked."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence


def instructions(command: Sequence[str], environment: Mapping[str, str], *options: str) -> int:
    """All that one run of the command executes in user mode.

    Args:
        command: the program and its arguments.
        environment: all of it. A library that ``LD_PRELOAD`` names has to be there: the dynamic linker would go on
            without it, and another's instructions be counted.
        options: more of valgrind's own.

    Raises:
        ValueError: it cannot be counted, in one line.
    """
    callgrind = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *options)
    done = subprocess.run([*callgrind, *command], env=dict(environment), capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("==")]
    if done.returncode != 0:
        raise ValueError(f"valgrind failed: {said[0] if said else f'status {done.returncode}'}")
    if "cannot be preloaded" in done.stderr:
        raise ValueError(f"'{environment.get('LD_PRELOAD')}' is no library that can be preloaded")
    counted = re.search(r"Collected : (\d+)", done.stderr)
    if counted is None:
        raise ValueError(f"callgrind counted nothing: {done.stderr.strip()}")
    return int(counted[1])
