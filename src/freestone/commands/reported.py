"""What a folder holds that can be reported: an experiment, a diagnosis, or a diagnosis with the rounds it ran."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from freestone.commands import one_folder, terminal
from freestone.commands.status import Stop

if TYPE_CHECKING:  # what reads and draws results is large, and the help needs none of it
    from freestone.doctor.diagnosis import Diagnosis
    from freestone.records.schema import Score, Summary
    from freestone.reports.html import Part
    from freestone.reports.source import Source

WITHOUT_PAGE: Final = "-o FILE writes it elsewhere, --no-html only prints"


@dataclass(frozen=True)
class Reported:
    """One folder, read once."""

    folder: Path
    source: Source | None
    """Its trials; None of a diagnosis that tried nothing."""
    told: Diagnosis | None
    """None of what is no diagnosis."""

    def part(self, number: int) -> Part:
        """What the page says of it, which is the ``number``-th on it."""
        from freestone.commands import to_use
        from freestone.doctor.page import diagnosis_part
        from freestone.reports import html

        if self.told is not None:
            return diagnosis_part(self.told, anchor=f"experiment-{number}")
        assert self.source is not None
        return html.part(self.source, number, use=to_use.recommended)

    def row(self, board: Score | None) -> dict[str, object]:
        """As JSON: the summary with ``score``, the scoreboard or null; of a diagnosis ``diagnosis`` as well."""
        from freestone.doctor.as_json import as_json

        row: dict[str, object] = {}
        if self.source is not None:
            score = None if board is None else json.loads(board.model_dump_json())
            row = {**json.loads(self.source.summary.model_dump_json()), "score": score}
        if self.told is not None:
            left_out = self.told.chart.left_out if self.told.chart is not None else []
            row["diagnosis"] = as_json(self.told.seen, self.told.found, self.told.verdict, left_out)
        return row


def read(given: Path) -> Reported:
    """A folder that was given for results.

    Raises:
        Stop: it holds several.
        StoreError: it cannot be read.
    """
    from freestone.doctor import diagnosis
    from freestone.records import store

    folder = one_folder.required(given)
    told = diagnosis.read(folder) if diagnosis.is_one(folder) else None
    if told is not None and not (folder / store.EXPERIMENT_FILE).exists():
        return Reported(given, None, told)
    return Reported(given, _source(folder), told)


def read_among(name: str, folder: Path) -> Reported | None:
    """A folder that is one of several; None, and a line that it is left out, where it cannot be read.

    Args:
        name: what to call it.
    """
    from freestone.records import store

    try:
        return read(folder)
    except (store.StoreError, Stop) as error:
        why = str(error)
    except Exception as error:  # what stands in it may be anything: it comes from elsewhere
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    print(f"freestone: {name} is left out: {why}", file=sys.stderr)
    return None


def show(what: Reported) -> None:
    """Print what the terminal shows of a diagnosis: what it printed itself."""
    from freestone.commands import doctor_page, doctor_process, doctor_trials
    from freestone.doctor import in_code, words

    assert what.told is not None
    told, width = what.told, terminal.width()
    if told.seen.running is not None:
        doctor_process.show(told.seen)
        return
    print(words.findings(told.found, told.seen, width=width))
    doctor_page.draw(told.seen)
    print(words.left_out(told.chart.left_out if told.chart is not None else [], width=width), end="")
    if what.source is not None and told.verdict is not None:
        (workload,) = what.source.experiment.workloads
        doctor_trials.show_cures(what.source.experiment, workload, what.source.summary, told.verdict)
    print(words.advice(in_code.advice(told.found, told.seen), width=width), end="")


def _source(folder: Path) -> Source:
    from freestone.analysis import summarise
    from freestone.records import store
    from freestone.reports import source

    found = source.read(folder, summarise)
    if found.damage:
        print(f"freestone: {found.damage}", file=sys.stderr)
    if found.summary != _written(folder):  # a folder that cannot be written any more can still be reported
        try:
            store.write_summary(folder, found.summary)
        except store.StoreError as error:
            print(f"freestone: {error}; what is told here is of the trials", file=sys.stderr)
    return found


def _written(folder: Path) -> Summary | None:
    from freestone.records import store

    try:
        return store.read_summary(folder)
    except store.StoreError:
        return None
