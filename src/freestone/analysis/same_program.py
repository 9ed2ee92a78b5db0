"""Whether every trial of a workload ran the same program on the same files. Pure functions.

Somebody who compiles, pulls or edits while an experiment goes on measures two programs, and which allocator met which
is left to chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from freestone.records.schema import FOLDER, TrialRecord


def marked(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """The records of an experiment; those that ran something else than their workload's first trial have failed."""
    first: dict[str, dict[str, str]] = {}
    for record in sorted(records, key=lambda each: each.started_at):
        for path, content in _contents(record).items():
            first.setdefault(record.workload, {}).setdefault(path, content)

    def checked(record: TrialRecord) -> TrialRecord:
        changed = what_changed(first.get(record.workload, {}), _contents(record))
        if changed is None or record.status != "ok":
            return record
        reason = f"{changed} is not what it was in the first trial: measure again"
        return record.model_copy(update={"status": "failed", "reason": reason})

    return [checked(record) for record in records]


def what_changed(before: Mapping[str, str], after: Mapping[str, str]) -> str | None:
    """The name of the first file that both know and whose content differs; None where there is none.

    A folder may change: what servers and caches keep in it is nobody's program.
    """
    return next(
        (
            PurePath(path).name
            for path, content in before.items()
            if after.get(path, content) != content and not content.startswith(FOLDER)
        ),
        None,
    )


def _contents(record: TrialRecord) -> dict[str, str]:
    """The files, and the build that the first process says it is."""
    processes = record.proof.processes
    if not processes or processes[0].exe_build_id is None:
        return record.files
    return {**record.files, f"build of {processes[0].exe}": processes[0].exe_build_id}
