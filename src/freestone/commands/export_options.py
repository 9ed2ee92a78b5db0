"""Options of files into which a comparison is written for other programs; shared by the verbs that have one to tell."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone.commands.status import ExitStatus, Stop
from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.records.store import StoreError
from freestone.records.whole import why, write_whole
from freestone.reports import interchange


@Parameter(name="*")
@dataclass(frozen=True)
class ExportOptions:
    """Where to write what; nothing where nothing was asked for."""

    export_markdown: Annotated[Path | None, Parameter(help="Write the tables into this file as Markdown.")] = None
    export_csv: Annotated[
        Path | None, Parameter(help="Write a row for each program and allocator into this file, as CSV.")
    ] = None
    export_json: Annotated[
        Path | None, Parameter(help="Write the same with the time of every run into this file, as JSON.")
    ] = None

    def require_writable(self) -> None:
        """Find out before anything runs that a file cannot be written.

        Raises:
            Stop: it cannot be, or two are one.
        """
        asked = [file for _, file in self._asked()]
        for file in asked:
            if [os.path.realpath(each) for each in asked].count(os.path.realpath(file)) > 1:
                raise Stop(f"two exports go to {file}; each needs a file of its own", ExitStatus.USAGE)
            try:
                _try(file)
            except OSError as error:
                raise Stop(f"cannot write {file}: {why(error)}", ExitStatus.STORE) from error

    def write(self, experiment: Experiment, records: Sequence[TrialRecord], summary: Summary) -> None:
        """Write every file that was asked for, each whole or not at all.

        Raises:
            StoreError: one of them cannot be written; the others are.
        """
        failed: list[str] = []
        for text, file in self._asked():
            try:
                _put(file, text(experiment, records, summary))
            except OSError as error:
                failed.append(f"cannot write {file}: {why(error)}")
        if failed:
            raise StoreError("; ".join(failed))

    def _asked(self) -> list[tuple[Callable[[Experiment, Sequence[TrialRecord], Summary], str], Path]]:
        every = [
            (interchange.markdown, self.export_markdown),
            (interchange.csv_rows, self.export_csv),
            (interchange.json_results, self.export_json),
        ]
        return [(text, file) for text, file in every if file is not None]


def _is_stream(file: Path) -> bool:
    """A device or a pipe: it is written to, and never replaced."""
    try:
        mode = os.stat(file).st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _try(file: Path) -> None:
    if file.is_dir():
        raise IsADirectoryError(0, "it is a folder")
    if _is_stream(file):
        return
    with tempfile.NamedTemporaryFile(dir=Path(os.path.realpath(file)).parent, prefix=f".{file.name}."):
        pass


def _put(file: Path, text: str) -> None:
    if _is_stream(file):
        with file.open("w", encoding="utf-8") as stream:
            stream.write(text)
    else:
        write_whole(Path(os.path.realpath(file)), text)


NO_EXPORT = ExportOptions()
