"""One experiment of suites, measured from where it stands to its scoreboard: the first time or resumed."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from freestone import suites
from freestone.analysis import score
from freestone.commands import measurement, scoreboard, terminal
from freestone.commands.counting import Counting, Kind
from freestone.experiments import unfinished
from freestone.records import store
from freestone.records.schema import Experiment, Summary, TrialRecord


def measured(
    folder: Path,
    experiment: Experiment,
    held: str,
    *,
    markdown: Path | None = None,
    as_json: bool = False,
    left_out: Collection[str] = (),
    ordered: bool = False,
    count: Sequence[Kind] | None = None,
) -> int:
    """Run what is not run yet, show the scoreboard, return the exit status.

    Args:
        held: the configuration that is held against the best of the others.
        markdown: a file for the scoreboard; None for none.
        as_json: print it as JSON.
        left_out: workloads that are not run now.
        ordered: whether it is one place's part of an order.
        count: what to count after the last round.
    """
    counting = Counting(folder, experiment, count) if count else None

    def show(experiment: Experiment, records: Sequence[TrialRecord], summary: Summary) -> None:
        from freestone.reports import parameter_table  # late: what prints tables is large
        from freestone.reports.parameter_series import Trials

        board = score(experiment, records, held)
        if markdown is not None:  # first: whoever reads along may close the pipe
            scoreboard.write([scoreboard.document(experiment, board)], markdown)
        width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
        trials = Trials(experiment, summary, records)
        figures = parameter_table.text(trials, summary, width=width, colour=colour, ascii_only=plain)
        scoreboard.show(board, folder, as_json=as_json, more=figures, counts=counting)

    return measurement.measure(
        folder, experiment, verb="bench", show=show, report=None, left_out=left_out, ordered=ordered, counting=counting
    )


def resumed(folder: Path, given: Sequence[str]) -> tuple[Experiment, set[str]]:
    """An experiment that was begun, with the workloads that there is no room for any more.

    Args:
        given: options that were given beside ``--resume`` and would make it another experiment.

    Raises:
        PlanError, StoreError, SuiteError, Stop: it cannot go on.
    """
    experiment = measurement.resumed(folder, given)
    left_out = _too_large(folder, experiment)
    suites.prepare([each for each in experiment.workloads if each.name not in left_out])
    return experiment, left_out


def _too_large(folder: Path, experiment: Experiment) -> set[str]:
    """Workloads that are not finished and that there is no room for any more; named, with what is kept of them."""
    records = store.read_trials(folder).records
    left = unfinished(experiment, records)
    absent = suites.too_large([each for each in experiment.workloads if each.name in left])
    for each in absent:
        kept = sum(record.workload == each.name for record in records)
        trials = f"{kept} finished trial{'' if kept == 1 else 's'}"
        print(
            f"freestone: {each.name} is left out: {each.reason}; its {trials} are kept, resume when there is room",
            file=sys.stderr,
        )
    return {each.name for each in absent}
