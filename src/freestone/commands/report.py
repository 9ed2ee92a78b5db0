"""``freestone report``: results folders as tables, as a scoreboard and as one HTML file."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from freestone.commands.export_options import NO_EXPORT, ExportOptions
from freestone.commands.status import ExitStatus, Stop

if TYPE_CHECKING:  # what reads and draws results is large, and the help needs none of it
    from freestone.commands.reported import Reported
    from freestone.records.schema import Score
    from freestone.reports.grid import Grid
    from freestone.reports.source import Source


def report(
    *results: Annotated[Path, Parameter(help="Results folders of freestone compare, bench or doctor.")],
    output: Annotated[
        Path | None,
        Parameter(
            name=["--output", "-o"],
            help="The HTML file. Default: report.html in the folder, freestone-report.html here for several.",
        ),
    ] = None,
    page: Annotated[
        bool, Parameter(name="--html", negative="--no-html", help="Write the HTML file, or only print.")
    ] = True,
    subject: Annotated[
        str | None,
        Parameter(help="The allocator that the scoreboard holds against the best of the others. Default: freestone."),
    ] = None,
    markdown: Annotated[Path | None, Parameter(help="Write the scoreboard into this file as Markdown.")] = None,
    figures: Annotated[
        Path | None,
        Parameter(help="Write every figure as a picture into this folder, one below it for each of several."),
    ] = None,
    picture: Annotated[Literal["svg", "png"], Parameter(help="What pictures are written as.")] = "svg",
    benchmark_json: Annotated[
        Path | None,
        Parameter(
            help="Write the times into this folder, a file an allocator, as Google Benchmark's compare.py reads them."
        ),
    ] = None,
    exports: ExportOptions = NO_EXPORT,
    json: Annotated[
        bool, Parameter(negative="", help="Print the summaries, and scores where there are, as JSON instead of tables.")
    ] = False,
) -> int:
    """Write results as one HTML file that opens without a network, and print their tables.

    All is computed again from the records, also while the experiment goes on. Several folders stand one after the
    other, and side by side for each workload that more than one of them measured: other machines, or other days. They
    are never pooled, and copies of one count once. Of several folders, one that cannot be read is left out with a line.

    Of freestone bench, the scoreboard is printed: one allocator against the best of the others on each workload, and
    the whole field. --subject holds another allocator against the rest; with it or with --markdown there is a
    scoreboard of what freestone compare measured, too.

    Of freestone doctor, the diagnosis is printed and stands on the page.

    Examples:

        freestone report results/20261120T131500Z-program
        freestone report results/* -o all.html
        freestone report results/20261120T131500Z-solve from-board/20261121T090000Z-solve
        freestone report results/20261120T131500Z-field --subject mimalloc --markdown mimalloc.md --no-html
        freestone report results/20261120T131500Z-sizes --figures pictures --picture png

    Exit status: 0 fine, 2 wrong use, 3 no figure to export, 5 results could not be read or something not written.
    """
    from freestone.commands import reported, scoreboard, side_by_side
    from freestone.experiments.plan import PlanError
    from freestone.records import store
    from freestone.records.store import StoreError
    from freestone.reports import recommendation

    if not results:
        raise Stop(
            "no results folder given, as in: freestone report results/20261120T131500Z-program", ExitStatus.USAGE
        )
    if output is not None and not page:
        raise Stop("-o names the HTML file that --no-html leaves out; leave out one of them", ExitStatus.USAGE)
    if exports.asked and len(results) > 1:
        raise Stop("exports are of one results folder; give one", ExitStatus.USAGE)
    exports.require_writable()
    given = len(results)
    try:
        destination = (output or _destination(results)) if page else None
        order = results[0]
        results = tuple(side_by_side.once([place for folder in results for place in store.places(folder)]))
        if not results:
            raise Stop("no place has measured anything yet", ExitStatus.NOTHING_MEASURED)
        if exports.asked and len(results) > 1:
            option = exports.given()[0]
            raise Stop(f"{option}: of one place, as in freestone report {results[0]} {option} ...", ExitStatus.USAGE)
        places = () if results == (order,) else side_by_side.names(results)
        found = (
            [each for each in map(reported.read_among, places, results) if each is not None]
            if places
            else [reported.read(folder) for folder in results]
        )
        damaged = len(results) - len(found)
        if not found:
            of_order = f" of {order}" if given == 1 else ""
            raise Stop(f"none of the {damaged} results folders{of_order} can be read", ExitStatus.STORE)
        results = tuple(each.folder for each in found)
        sources = [each.source for each in found if each.source is not None]
        measured = any(cell.status == "ok" for source in sources for cell in source.summary.cells)
        exported = bool(exports.asked) or figures is not None or benchmark_json is not None
        drawn = figures is not None and any(each.told is not None for each in found)
        if exported and not drawn and not any(source.records for source in sources):
            raise Stop(f"nothing to export: {results[0]} holds no trial yet", ExitStatus.NOTHING_MEASURED)
        asked = subject is not None or markdown is not None
        boards = [
            _score(each.source, subject)
            if each.source is not None and (asked or recommendation.is_of_suites(each.source.experiment))
            else None
            for each in found
        ]
        if asked and not any(boards):
            raise Stop(f"no scoreboard: {results[0]} holds no trial", ExitStatus.NOTHING_MEASURED)
        if markdown is not None:
            documents = [
                scoreboard.document(each.source.experiment, board)
                for each, board in zip(found, boards, strict=True)
                if each.source is not None and board is not None
            ]
            scoreboard.write(documents, markdown)
        names = side_by_side.names(results)
        machines = side_by_side.tables(names, found, order if given == 1 else None)
        written = _write(found, machines, destination, figures, picture, benchmark_json)
        for source in sources:
            exports.write(source.experiment, source.records, source.summary)
    except PlanError as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    if json:
        print(json_format.dumps([each.row(board) for each, board in zip(found, boards, strict=True)], indent=2))
    else:
        for each, board in zip(found, boards, strict=True):
            _show(each, board)
            print(f"Records: {each.folder}\n")
        side_by_side.show(machines)
        if written is not None:
            print(f"Report:  {written}")
    if exported and not drawn and not measured:
        sys.stdout.flush()
        print("freestone: nothing could be measured: what is exported holds reasons and no figure", file=sys.stderr)
        return ExitStatus.NOTHING_MEASURED
    return _lacking(page, figures) or (ExitStatus.STORE if damaged else ExitStatus.FINE)


def _score(source: Source, subject: str | None) -> Score:
    from freestone.analysis import score
    from freestone.commands import scoreboard

    return score(source.experiment, source.records, scoreboard.subject_of(source.experiment, subject))


def _write(
    found: Sequence[Reported],
    machines: Sequence[Grid],
    destination: Path | None,
    figures: Path | None,
    picture: Literal["svg", "png"],
    benchmark_json: Path | None,
) -> Path | None:
    """Write the page, pictures and times that were asked for; the page's file."""
    if destination is None and figures is None and benchmark_json is None:
        return None
    from freestone.commands import reported, side_by_side
    from freestone.reports import extras, google_benchmark, pictures

    written, folders = None, [each.folder for each in found]
    # Several experiments each into a folder of their own, called as it is on the page.
    places = side_by_side.folder_names(folders) if len(folders) > 1 else [""]
    below = dict(zip(folders, places, strict=True))
    try:
        for each in found:
            if benchmark_json is not None and each.source is not None:
                place = benchmark_json / below[each.folder]
                google_benchmark.write(each.source.experiment, each.source.records, place)
        if extras.missing() is None and (destination is not None or figures is not None):
            from freestone.reports import html

            parts = [each.part(number) for number, each in enumerate(found, start=1)]
            try:
                anchors = {name: part.anchor for name, part in zip(side_by_side.names(folders), parts, strict=True)}
                written = None if destination is None else html.write_parts(parts, destination, machines, anchors)
            except html.ReportError as error:
                raise Stop(f"{error}; {reported.WITHOUT_PAGE}", ExitStatus.STORE) from error
            for folder, part in zip(folders, parts, strict=True):
                if figures is not None:
                    pictures.write(part, figures / below[folder], picture)
    except pictures.ExportError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    return written


def _lacking(page: bool, figures: Path | None) -> ExitStatus:
    """Say what is not written as it needs libraries that are not here."""
    from freestone.reports import extras

    lacking = extras.missing()
    if lacking is None or not (page or figures is not None):
        return ExitStatus.FINE
    sys.stdout.flush()
    print(f"freestone: no report: {lacking}", file=sys.stderr)
    return ExitStatus.STORE


def _show(what: Reported, board: Score | None) -> None:
    """Print what the terminal shows of one results folder."""
    from freestone.commands import reported

    if what.told is not None:
        reported.show(what)
    if what.source is not None and (what.told is None or board is not None):
        _show_experiment(what.source, board, tables=what.told is None)


def _show_experiment(source: Source, board: Score | None, *, tables: bool) -> None:
    from freestone.commands import scoreboard, terminal, to_use
    from freestone.reports import grid, parameter_table, recommendation, references, scan_table, table
    from freestone.reports.parameter_series import Trials

    width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
    experiment, summary = source.experiment, source.summary
    if tables and not recommendation.is_of_suites(experiment):
        print(table.render(summary, width=width, colour=colour, ascii_only=plain))
        for scanned in scan_table.grids(experiment, summary):
            print(grid.text(scanned, width=width, colour=colour, ascii_only=plain))
        for line in to_use.printed(to_use.recommended(experiment, source.records, summary), width):
            print(line)
    if board is not None:
        print(scoreboard.text(board))
    counts = source.instructions
    trials = Trials(experiment, summary, source.records)
    figures = parameter_table.text(trials, summary, counts, width=width, colour=colour, ascii_only=plain)
    if figures:
        print(figures)
    if counts is not None:
        shown = references.render(counts, experiment.baseline, width=width, colour=colour, ascii_only=plain)
        print(f"{shown}\n")


def _destination(folders: Sequence[Path]) -> Path:
    from freestone.records import store

    return folders[0] / store.REPORT_FILE if len(folders) == 1 else Path("freestone-report.html")
