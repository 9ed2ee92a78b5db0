#!/usr/bin/env python3
"""Puts a measurement into the README: a picture of the terminal, its figures as a table, and where it was taken.

Usage: ``python tools/readme_figure.py RESULTS_FOLDER`` (``make readme-figure RESULTS=...``)

Everything shown comes from the results folder: nothing in the README between the two markers is written by hand. The
pictures go to ``docs/images``.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Sequence
from pathlib import Path

from freestone.records import store
from freestone.records.schema import Cell, Configuration, Experiment, Ratio, Summary, TrialRecord
from freestone.reports import figures, quantities, recommendation, vega
from freestone.reports import table as report_table
from freestone.reports.quantities import Scale, quantity_of
from freestone.reports.shown import order_of
from freestone.reports.theme import DARK, LIGHT
from terminal_picture import draw

REPOSITORY = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- measurement: made by tools/readme_figure.py -->", "<!-- end of measurement -->"
COLUMNS = ("peak_rss_kib", "end_rss_kib", "minor_faults")
WIDTHS = range(100, 151)
"""Columns that the terminal in the picture may have; wider ones are too small to read on a page."""
DEFAULT_WORKLOAD = "json-sqlite"
"""What ``make compare`` measures."""
HOME = "~/freestone"
"""What stands in the picture for the folder of the clone in which it was measured."""


def rows_of(experiment: Experiment, summary: Summary, workload: str) -> list[str]:
    """Markdown rows: configurations by wall time, geometric means, the ratio to the baseline with its interval."""
    titles = [quantity_of(key).title for key in COLUMNS]
    baseline = next(c for c in experiment.configurations if c.name == summary.baseline).allocator.title
    lines = [
        f"| allocator | wall time | against {baseline} [95 %] | {' | '.join(titles)} |",
        f"| --- | ---: | ---: | {' | '.join('---:' for _ in titles)} |",
    ]
    cells = {cell.configuration: cell for cell in summary.cells if cell.workload == workload}
    scales = {
        key: Scale.over(
            quantity_of(key).kind, [found for cell in cells.values() if (found := cell.figure(key)) is not None]
        )
        for key in ("wall_s", *COLUMNS)
    }
    for name in order_of(experiment, summary, workload):
        configuration = next(each for each in experiment.configurations if each.name == name)
        lines.append(_row(configuration, cells[name], summary.baseline, scales))
    return lines


def _row(configuration: Configuration, cell: Cell, baseline: str, scales: dict[str, Scale]) -> str:
    title = f"{configuration.allocator.title} {configuration.allocator.version or ''}".strip()
    if cell.status != "ok":
        return f"| {title} | {cell.status.upper()}: {cell.reason} | | {' | '.join('' for _ in COLUMNS)} |"
    shown = ["" if (found := cell.figure(key)) is None else scales[key].text(found) for key in COLUMNS]
    time = cell.figure("wall_s")
    against = "1" if configuration.name == baseline else _against(cell.ratio.get("wall_s"))
    return f"| {title} | {'' if time is None else scales['wall_s'].text(time)} | {against} | {' | '.join(shown)} |"


def _against(ratio: Ratio | None) -> str:
    if ratio is None:
        return ""
    if not ratio.different:
        return f"{quantities.verdict(quantity_of('wall_s'), ratio)} {quantities.interval(ratio)}"
    return f"{quantities.ratio_number(ratio)} {quantities.interval(ratio)}"


def circumstances(experiment: Experiment, summary: Summary, workload: str) -> str:
    """One paragraph: how often, how noisy, on which machine, when."""
    facts = experiment.machine.facts
    noise = summary.noise.get(workload, {}).get("wall_s")
    floor = f" (glibc against itself: {quantities.interval(noise)})" if noise else ""
    return (
        f"Geometric means of {summary.rounds_complete} rounds in random order, each process of every trial proved to "
        f"be served by the allocator named{floor}. {facts.get('cpu')}, {facts.get('cores_allowed')} cores, "
        f"Linux {str(facts.get('kernel')).split('-')[0]}, {facts.get('libc')}, {experiment.created_at[:10]}."
    )


def width_of(summary: Summary) -> int:
    """Columns of the narrowest terminal that shows a summary in as few lines as any."""
    return min(WIDTHS, key=lambda width: report_table.render(summary, width=width, colour=False).count("\n"))


def terminal(experiment: Experiment, summary: Summary) -> str:
    """What ``freestone compare`` prints at its end, in colour, without the names of this machine's folders."""
    lines = [report_table.render(summary, width=width_of(summary), colour=True)]
    for each in recommendation.recommendations(experiment, summary):
        lines += [each.sentence, *each.lines]
    folders = {str(Path.home()): "~", experiment.workloads[0].directory or "": HOME}
    text = "\n".join(lines)
    for folder in sorted(filter(None, folders), key=len, reverse=True):
        text = text.replace(f"{folder}/", f"{folders[folder]}/")
    return text


def pictures(
    experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], workload: str, folder: Path
) -> None:
    """The terminal and the overview, for light and for dark pages."""
    folder.mkdir(parents=True, exist_ok=True)
    chart = figures.overview(experiment, summary, records, workload)
    command = "make compare" if workload == DEFAULT_WORKLOAD else f"freestone compare -- {workload}"
    for name, theme in (("light", LIGHT), ("dark", DARK)):
        vega.save_png(chart, folder / f"overview-{name}.png", theme=theme)
        draw(command, terminal(experiment, summary), folder / f"terminal-{name}.svg", theme)


def section(experiment: Experiment, summary: Summary, workload: str) -> str:
    """What stands between the markers: the picture of the terminal, and folded away the same as text and a figure."""
    lines = [
        BEGIN,
        "",
        *_picture("terminal", "svg", f"In a terminal: {summary.headline}"),
        "",
        circumstances(experiment, summary, workload),
        "",
        "<details>",
        "<summary>The same as text, and every run in a figure</summary>",
        "",
        f"**{summary.headline}**",
        "",
        *rows_of(experiment, summary, workload),
        "",
        *_picture(
            "overview", "png", "Left: wall time of every trial, by allocator. Right: time against memory, by allocator."
        ),
        "",
        "</details>",
        "",
        END,
    ]
    return "\n".join(lines)


def _picture(name: str, kind: str, told: str) -> list[str]:
    return [
        "<picture>",
        f'  <source media="(prefers-color-scheme: dark)" srcset="docs/images/{name}-dark.{kind}">',
        f'  <img alt="{html.escape(told)}" src="docs/images/{name}-light.{kind}">',
        "</picture>",
    ]


def main(arguments: list[str]) -> int:
    """Reads the folder, draws, rewrites the README; one line and status 1 when the folder cannot be read."""
    if len(arguments) != 1:
        print("usage: readme_figure.py RESULTS_FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    try:
        experiment, summary = store.read_experiment(folder), store.read_summary(folder)
        records = store.read_trials(folder).records
    except store.StoreError as error:
        print(f"freestone: {error}", file=sys.stderr)
        return 1
    workload = experiment.workloads[0].name
    readme = REPOSITORY / "README.md"
    before, _, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        print(f"freestone: {readme} has no place for a measurement: '{BEGIN}' up to '{END}'", file=sys.stderr)
        return 1
    pictures(experiment, summary, records, workload, REPOSITORY / "docs" / "images")
    readme.write_text(before + section(experiment, summary, workload) + after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
