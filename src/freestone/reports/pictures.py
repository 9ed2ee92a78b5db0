"""The figures of a report as pictures, a file for each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from freestone.records.whole import why

if TYPE_CHECKING:
    from freestone.reports.html import Part
    from freestone.reports.page import ExperimentPart

Picture = Literal["svg", "png"]


class ExportError(Exception):
    """A file could not be written; the message is one line that names it."""


def write(part: Part, folder: Path, kind: Picture) -> list[Path]:
    """Every figure of an experiment or a diagnosis as a picture: ``WORKLOAD.FIGURE.svg``.

    Raises:
        ExportError: one cannot be written.
    """
    from freestone.reports import vega  # late: it is large, and an extra

    written = []
    for name, document in _documents(part):
        target = folder / f"{name}.{kind}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            written.append(vega.save_document(document, target))
        except OSError as error:
            raise ExportError(f"cannot write {target}: {why(error)}") from error
    return written


def _documents(part: Part) -> Iterable[tuple[str, dict[str, Any]]]:
    from freestone.reports.page import ExperimentPart

    if isinstance(part, ExperimentPart):
        yield from _of_experiment(part)
        return
    for figure in part.figures:
        yield f"diagnosis.{file_name(figure.title)}", json.loads(figure.document)
    if part.rounds is not None:
        yield from _of_experiment(part.rounds)


def _of_experiment(part: ExperimentPart) -> Iterable[tuple[str, dict[str, Any]]]:
    if part.overview is not None:
        overview = json.loads(part.overview.document)
        for layer in overview["layer"]:
            layer["encoding"].pop("href", None)  # a place on the page
        yield "overview", overview
    for table in part.published:
        yield f"published.{file_name(table.title)}", json.loads(table.figure.document)
    for family in part.parameters:
        for figure in family.figures:
            which = f"{file_name(family.name.replace('…', 'n'))}-by-{file_name(family.parameter)}"
            yield f"parameters.{which}.{file_name(figure.title)}", json.loads(figure.document)
    for workload in part.workloads:
        for figure in workload.figures:
            yield f"{file_name(workload.name)}.{file_name(figure.title)}", json.loads(figure.document)
        for panel in workload.panels:
            yield (
                f"{file_name(workload.name)}.memory-over-time.{file_name(panel.name.text)}",
                json.loads(panel.document),
            )


def file_name(name: str) -> str:
    """A name without what file systems and shells stumble over."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", name).strip("-.").lower() or "figure"
