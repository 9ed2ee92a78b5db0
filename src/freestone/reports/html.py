"""Results folders in, one HTML file out: it opens anywhere, without a network, and asks for nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import markupsafe

import freestone
from freestone.records import cached, store
from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.records.whole import why, write_whole
from freestone.reports import vega
from freestone.reports.diagnosis.parts import DiagnosisPart
from freestone.reports.grid import Grid
from freestone.reports.page import ExperimentPart, experiment_part
from freestone.reports.recommendation import Recommendation
from freestone.reports.source import Source, read
from freestone.reports.templating import POLICY, templates
from freestone.reports.theme import DARK, FONT, LIGHT


class ReportError(Exception):
    """The page could not be written; the message is one line that names the file."""


Part = ExperimentPart | DiagnosisPart
"""What stands on the page for itself: an experiment, or a diagnosis with the rounds that it ran."""

Use = Callable[[Experiment, Sequence[TrialRecord], Summary], Sequence[Recommendation]]
"""What says which allocator to use for the programs of an experiment, and how."""


def write(folders: Sequence[Path], destination: Path, *, use: Use = lambda experiment, records, summary: []) -> Path:
    """Write the report of one or several results folders; each experiment stands for itself, machines are never pooled.

    Args:
        folders: results folders that hold a summary.
        destination: the file to write, or a folder to write ``report.html`` into.
        use: gives what stands below the headline: sentences, and what is to be copied.

    Returns:
        The file written.

    Raises:
        freestone.records.store.StoreError: a folder cannot be read.
        ReportError: no folders, or the page cannot be written.
    """
    if not folders:
        raise ReportError("no results folder given; give at least one")
    sources = (read(folder) for folder in folders)
    return write_parts([part(source, number, use=use) for number, source in enumerate(sources, start=1)], destination)


def write_parts(
    parts: Sequence[Part],
    destination: Path,
    side_by_side: Sequence[Grid] = (),
    anchors: Mapping[str, str] | None = None,
) -> Path:
    """Write the page of experiments that stand ready, as :func:`write` does.

    Args:
        side_by_side: tables of what several machines say of one workload, for the top of the page.
        anchors: machine -> where on the page its own part is.
    """
    machines = len({part.machine_key for part in parts})
    return _write_page(destination, render(parts, side_by_side, machines=machines, anchors=anchors))


def render(
    parts: Sequence[Part],
    side_by_side: Sequence[Grid] = (),
    *,
    machines: int = 1,
    anchors: Mapping[str, str] | None = None,
) -> str:
    """The page as text. Scripts, styles and data are inside; its content policy forbids it to load anything."""
    return (
        templates()
        .get_template("report.html.jinja")
        .render(
            parts=parts,
            side_by_side=side_by_side,
            anchors=anchors or {},
            title=parts[0].headline if len(parts) == 1 else f"{len(parts)} experiments",
            machines=machines,
            diagnoses=any(part.kind == DiagnosisPart.kind for part in parts),
            written_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            version=freestone.__version__,
            policy=markupsafe.Markup(POLICY),  # quotes and all, into an attribute
            font=markupsafe.Markup(FONT),  # quotes and all, into the style sheet
            light=LIGHT,
            dark=DARK,
            look=vega.look(),
            vega=_vega(),
        )
    )


def part(source: Source, number: int = 1, *, use: Use = lambda experiment, records, summary: []) -> ExperimentPart:
    """What the page says of one results folder, which is the ``number``-th on it."""
    return experiment_part(
        source.experiment,
        source.summary,
        source.records,
        anchor=f"experiment-{number}",
        calls=source.calls,
        instructions=source.instructions,
        notes=[source.damage] if source.damage else [],
        use=use(source.experiment, source.records, source.summary),
    )


@functools.cache
def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that sets ``vegaEmbed`` on the window."""
    import vl_convert

    def bundle() -> str:  # seconds of work
        made: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=vega.VEGA_LITE)
        return made.replace("</script", "<\\/script").replace("<!--", "<\\!--")

    converter = metadata.version("vl-convert-python")
    return cached.text(f"vega-embed-{converter}-{vega.VEGA_LITE}.js", bundle)


def _write_page(destination: Path, text: str) -> Path:
    target = destination / store.REPORT_FILE if destination.is_dir() else destination
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, text, mode=0o644)
    except OSError as error:
        raise ReportError(f"cannot write {target}: {why(error)}") from error
    return target
