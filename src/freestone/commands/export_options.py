"""Options of files into which a comparison is written for other programs; shared by the verbs that have one to tell."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from freestone.commands.status import ExitStatus, Stop

if TYPE_CHECKING:  # what reads and draws results is large, and the help needs none of it
    from freestone.records.schema import Experiment, Summary, TrialRecord


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
        for file in self.asked:
            if [os.path.realpath(each) for each in self.asked].count(os.path.realpath(file)) > 1:
                raise Stop(f"two exports go to {file}; each needs a file of its own", ExitStatus.USAGE)
            try:
                _try(file)
            except OSError as error:
                why = (error.strerror or str(error)).lower()
                raise Stop(f"cannot write {file}: {why}", ExitStatus.STORE) from error

    def write(self, experiment: Experiment, records: Sequence[TrialRecord], summary: Summary) -> None:
        """Write every file that was asked for, each whole or not at all.

        Raises:
            StoreError: one of them cannot be written; the others are.
        """
        from freestone.commands import to_use
        from freestone.records.store import StoreError
        from freestone.records.whole import why
        from freestone.reports import interchange

        told = to_use.recommended(experiment, records, summary) if self.asked else []
        failed: list[str] = []
        texts = (interchange.markdown, interchange.csv_rows, interchange.json_results)
        for text, file in zip(texts, self._options().values(), strict=True):
            try:
                if file is not None:
                    _put(file, text(experiment, records, summary, told))
            except OSError as error:
                failed.append(f"cannot write {file}: {why(error)}")
        if failed:
            raise StoreError("; ".join(failed))

    @property
    def asked(self) -> list[Path]:
        """The files."""
        return [file for file in self._options().values() if file is not None]

    def given(self) -> list[str]:
        """The options that were."""
        return [option for option, file in self._options().items() if file is not None]

    def _options(self) -> dict[str, Path | None]:
        return {
            "--export-markdown": self.export_markdown,
            "--export-csv": self.export_csv,
            "--export-json": self.export_json,
        }


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
    from freestone.records.whole import write_whole

    if _is_stream(file):
        with file.open("w", encoding="utf-8") as stream:
            stream.write(text)
    else:
        write_whole(Path(os.path.realpath(file)), text)


NO_EXPORT = ExportOptions()
