"""The inputs of real programs, generated once and kept, so that every round reads the same files."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from freestone.records import cached
from freestone.suites.schema import SuiteError

GENERATORS = ("everyday/make_inputs.py", "apps/make_inputs.py")
"""Programs that write their inputs into the folder they are given, the same ones every time."""


def folder(workloads: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Where the inputs of these generators are kept; it need not exist. Another generator has another folder."""
    digest = hashlib.sha256()
    for generator in _present(workloads):
        digest.update(generator.read_bytes())
    return cached.folder(environment).absolute() / "inputs" / digest.hexdigest()[:16]


def ensure(workloads: Path, target: Path) -> None:
    """Generate the inputs if they are not there.

    Args:
        workloads: the folder of the installed workload programs.
        target: what :func:`folder` says.

    Raises:
        SuiteError: they cannot be generated or kept.
    """
    if target.is_dir():
        return
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        half = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
    except OSError as error:
        raise SuiteError(f"cannot keep inputs in {target.parent}: {(error.strerror or str(error)).lower()}") from error
    try:
        for generator in _present(workloads):
            done = subprocess.run([sys.executable, str(generator), str(half)], capture_output=True, text=True)
            if done.returncode:
                last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
                raise SuiteError(f"inputs cannot be generated: {generator.name}: {last}")
        half.chmod(0o755)
        half.rename(target)
    except OSError as error:
        if not target.is_dir():  # else another freestone was faster
            raise SuiteError(f"cannot keep inputs in {target}: {(error.strerror or str(error)).lower()}") from error
    finally:
        shutil.rmtree(half, ignore_errors=True)


def _present(workloads: Path) -> list[Path]:
    return [workloads / name for name in GENERATORS if (workloads / name).is_file()]
