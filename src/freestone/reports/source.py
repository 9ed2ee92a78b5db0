"""What a report of a results folder is made from, read once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from freestone.analysis import arms
from freestone.records import store
from freestone.records.schema import CallCounts, Experiment, InstructionCounts, Summary, TrialRecord


@dataclass(frozen=True)
class Source:
    """The contents of a results folder."""

    experiment: Experiment
    summary: Summary
    records: Sequence[TrialRecord]
    """With the verdicts that only a look at all of them gives."""
    calls: CallCounts | None = None
    """System calls, where they were counted."""
    instructions: InstructionCounts | None = None
    """Instructions and references, where they were counted."""
    damage: str | None = None
    """A line that names damaged records, which are left out."""


def read(folder: Path, summarise: Callable[[Experiment, Sequence[TrialRecord]], Summary] | None = None) -> Source:
    """A results folder.

    Args:
        summarise: what makes the summary of its records; None for the one that the folder holds.

    Raises:
        freestone.records.store.StoreError: it cannot be read.
    """
    experiment, reading = store.read_experiment(folder), store.read_trials(folder)
    summary = store.read_summary(folder) if summarise is None else summarise(experiment, reading.records)
    damage = store.damage_line(folder, reading.damage)
    calls, instructions = store.read_calls(folder), store.read_instructions(folder)
    records = arms.counted(experiment, reading.records)
    return Source(experiment, summary, records, calls, instructions, damage)
