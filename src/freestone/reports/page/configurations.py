"""What was compared: each configuration with its allocator, its file and its proof."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from freestone.records.schema import Experiment, TrialRecord
from freestone.reports.drawn import NOTHING, Name
from freestone.reports.page.parts import ConfigurationRow
from freestone.reports.page.words import settings


def configuration_row(experiment: Experiment, records: Sequence[TrialRecord], name: Name) -> ConfigurationRow:
    """What is known of a configuration, and whether all of its trials were proved."""
    configuration = next(c for c in experiment.configurations if c.name == name.text)
    allocator = configuration.allocator
    mine = [record for record in records if record.configuration == name.text]
    proved = sum(record.proof.valid for record in mine)
    reason = next((record.proof.reason for record in mine if not record.proof.valid and record.proof.reason), None)
    census = sorted({record.proof.census for record in mine if record.proof.valid})
    if not mine:
        proof = "no trial"
    elif proved == len(mine):
        programs = list(dict.fromkeys(Path(row.exe).name for record in mine for row in record.proof.processes))
        shown = ", ".join(programs[:6]) + (f" and {len(programs) - 6} more" if len(programs) > 6 else "")
        proof = f"proved in all {len(mine)} trials" + (f", in every process of {shown}" if programs else "")
        proof += f" (census: {', '.join(census)})"
    else:
        proof = f"proved in {proved} of {len(mine)} trials" + (f": {reason}" if reason else "")
    return ConfigurationRow(
        name=name,
        title=allocator.title,
        version=allocator.version or "not known",
        file=allocator.file or NOTHING,
        build_id=allocator.build_id or "none",
        origin=allocator.origin or NOTHING,
        settings=settings(configuration.environment),
        proof=proof,
        proved=bool(mine) and proved == len(mine),
    )
