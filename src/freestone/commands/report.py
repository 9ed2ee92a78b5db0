"""``freestone report``: results folders as tables and as one HTML file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone.analysis import summarise
from freestone.analysis.statistics import paired_ratio
from freestone.commands import terminal
from freestone.commands.status import ExitStatus, Stop
from freestone.records import store
from freestone.records.schema import Summary
from freestone.records.store import StoreError
from freestone.reports import extras, google_benchmark, pictures, published, references, source, table
from freestone.reports.published import words
from freestone.reports.source import Source
from freestone.reports.tails import numbers as tails


def report(
    *results: Annotated[Path, Parameter(help="Results folders of freestone compare or freestone bench.")],
    output: Annotated[
        Path | None,
        Parameter(
            name=["--output", "-o"],
            help="The HTML file. Default: report.html in the folder, freestone-report.html here for several.",
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        Parameter(help="Write every figure as a picture into this folder, one below it for each of several."),
    ] = None,
    picture: Annotated[pictures.Picture, Parameter(help="What pictures are written as.")] = "svg",
    benchmark_json: Annotated[
        Path | None,
        Parameter(
            help="Write the times into this folder, a file an allocator, as Google Benchmark's compare.py reads them."
        ),
    ] = None,
    json: Annotated[bool, Parameter(negative="", help="Print the summaries as JSON instead of tables.")] = False,
) -> int:
    """Write results as one HTML file that opens without a network, and print their tables.

    Summaries are computed again from the records. Several folders stand one after the other: results of different
    machines or experiments are never pooled.

    Examples:

        freestone report results/20261120T131500Z-program
        freestone report results/* -o all.html
        freestone report results/20261120T131500Z-sizes --figures pictures --picture png

    Exit status: 0 fine, 2 wrong use, 5 results could not be read or the report not written.
    """
    if not results:
        raise Stop(
            "no results folder given, as in: freestone report results/20261120T131500Z-program", ExitStatus.USAGE
        )
    lacking, destination = extras.missing(), None
    try:
        sources = [_read(folder) for folder in results]
        if lacking is None:
            destination = _write(results, sources, output or _destination(list(results)), figures, picture)
        for folder, each in zip(results, sources, strict=True):
            if benchmark_json is not None:
                google_benchmark.write(each.experiment, each.records, benchmark_json / _below(folder, results))
    except (StoreError, pictures.ExportError) as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    if json:
        print("[" + ",\n".join(each.summary.model_dump_json(indent=2) for each in sources) + "]")
    else:
        width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
        for folder, each in zip(results, sources, strict=True):
            print(table.render(each.summary, width=width, colour=colour, ascii_only=plain))
            latencies = tails.render(
                each.experiment, each.summary, each.records, width=width, colour=colour, ascii_only=plain
            )
            if latencies:
                print(latencies)
            counts, baseline = each.instructions, each.experiment.baseline
            if counts is not None:
                shown = references.render(counts, baseline, width=width, colour=colour, ascii_only=plain)
                print(f"{shown}\n")
            found = published.reproductions(each.experiment, each.summary, each.records, counts)
            if found:
                print(words.render(found, width=width, colour=colour, ascii_only=plain))
            print(f"Records: {folder}\n")
        if destination is not None:
            print(f"Report:  {destination}")
    if lacking is not None:
        sys.stdout.flush()
        print(f"freestone: no report: {lacking}", file=sys.stderr)
        return ExitStatus.STORE
    return ExitStatus.FINE


def _write(
    folders: Sequence[Path], sources: Sequence[Source], destination: Path, figures: Path | None, kind: pictures.Picture
) -> Path:
    from freestone.reports import html  # late: the figures' libraries are large, and an extra

    try:
        parts = [html.part(each, number, paired_ratio) for number, each in enumerate(sources, start=1)]
        written = html.write_parts(parts, destination)
    except html.ReportError as error:
        raise StoreError(str(error)) from error
    if figures is not None:
        for folder, part in zip(folders, parts, strict=True):
            pictures.write(part, figures / _below(folder, folders), kind)
    return written


def _below(folder: Path, folders: Sequence[Path]) -> str:
    """Several experiments each into a folder of their own."""
    return folder.resolve().name if len(folders) > 1 else ""


def _read(folder: Path) -> Source:
    found = source.read(folder, summarise)
    if found.damage:
        print(f"freestone: {found.damage}", file=sys.stderr)
    if found.summary != _written(folder):  # a folder that cannot be written any more can still be reported
        store.write_summary(folder, found.summary)
    return found


def _written(folder: Path) -> Summary | None:
    try:
        return store.read_summary(folder)
    except StoreError:
        return None


def _destination(folders: list[Path]) -> Path:
    return folders[0] / store.REPORT_FILE if len(folders) == 1 else Path("freestone-report.html")
