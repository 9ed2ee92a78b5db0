"""What the page says, in the order it says it: records and summary turned into words, tables and figures.

The template only lays out what stands here.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from freestone.records.schema import CallCounts, Cell, Experiment, InstructionCounts, Ratio, Summary, TrialRecord
from freestone.reports import (
    figures,
    heatmap,
    orders_part,
    pieces,
    published,
    quantities,
    references,
    scaling_part,
    sizes_part,
    syscalls,
    tails_part,
)
from freestone.reports.drawn import NOTHING, Figure, Multiple, Name, Panel, Table, document
from freestone.reports.grid import Grid
from freestone.reports.orders import Paired
from freestone.reports.orders_part import OrdersPart
from freestone.reports.published import picture, words
from freestone.reports.quantities import QUANTITIES, Quantity, Scale, quantity_of
from freestone.reports.scaling_part import FamilyPart

_TABLE = ("user_s", "sys_s", "peak_rss_kib", "tree_peak_rss_kib", "end_rss_kib", "minor_faults")
_BYTES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


@dataclass(frozen=True)
class Value:
    """One entry of the results table: a figure, what it is to the baseline, and how to mark it."""

    figure: str
    ratio: str = ""
    interval: str = ""
    verdict: str = ""
    mark: str = ""
    """``better``, ``worse``, ``same``, ``unknown`` or nothing."""


@dataclass(frozen=True)
class ResultRow:
    name: Name
    values: list[Value]
    status: str = ""
    """In words when there is no result; then there are no values."""


@dataclass(frozen=True)
class ReferencesPart:
    """What valgrind counted of a workload."""

    how: str
    command: str
    references: Table
    remarks: list[str]
    requests: str
    functions: Table


@dataclass(frozen=True)
class WorkloadPart:
    anchor: str
    """Identifier within the page."""
    name: str
    gist: str
    """The least time, in a line."""
    command: str
    directory: str | None
    environment: str
    headers: list[tuple[str, str]]
    """Title and unit of each column of the results table."""
    rows: list[ResultRow]
    absent: list[tuple[Name, str, str]]
    """Configuration, status in words, reason: what was not measured."""
    notes: list[str]
    figures: list[Figure]
    multiples: list[Multiple]
    panels: list[Panel]
    """Memory over time."""
    calls: Table | None
    """System calls by kind; None where they were not counted."""
    references: ReferencesPart | None
    """Instructions and references; None where they were not counted."""
    also: Table | None
    """Figures and ratios of what the results table leaves out; None when there is nothing more."""
    trials: Table


@dataclass(frozen=True)
class PublishedPart:
    """A table that others published, beside what was measured here."""

    title: str
    source: str
    figure: Figure
    findings: list[tuple[str, str]]
    """What it comes to in a word, and the sentence."""


@dataclass(frozen=True)
class ConfigurationRow:
    name: Name
    title: str
    version: str
    file: str
    build_id: str
    origin: str
    settings: str
    proof: str
    proved: bool


@dataclass(frozen=True)
class ExperimentPart:
    anchor: str
    id: str
    headline: str
    created_at: str
    strip: list[tuple[str, str]]
    workloads: list[WorkloadPart]
    configurations: list[ConfigurationRow]
    machine_id: str
    machine: list[tuple[str, str]]
    command_line: str
    seed: int
    overview: Figure | None = None
    """Every workload under every configuration; None where there is one workload only."""
    published: list[PublishedPart] = field(default_factory=list)
    scaling: list[FamilyPart] = field(default_factory=list)
    """Workloads that differ in one number; none in most experiments."""
    orders: list[OrdersPart] = field(default_factory=list)
    """Orders of malloc and free; none in most experiments."""
    notes: list[str] = field(default_factory=list)


def experiment_part(
    experiment: Experiment,
    summary: Summary,
    records: Sequence[TrialRecord],
    *,
    anchor: str,
    calls: CallCounts | None = None,
    instructions: InstructionCounts | None = None,
    notes: Sequence[str] = (),
    paired: Paired | None = None,
) -> ExperimentPart:
    """Everything the page says of one experiment.

    Args:
        anchor: identifier of the part within the page.
        calls: system calls, where they were counted.
        instructions: instructions and references, where they were counted.
        notes: lines about the data itself, such as damaged records.
        paired: what makes the intervals of ratios between workloads, which no summary holds; without it they have none.
    """
    with figures.unchecked():
        return _experiment_part(experiment, summary, records, anchor, calls, instructions, notes, paired)


def _experiment_part(
    experiment: Experiment,
    summary: Summary,
    records: Sequence[TrialRecord],
    anchor: str,
    calls: CallCounts | None,
    instructions: InstructionCounts | None,
    notes: Sequence[str],
    paired: Paired | None,
) -> ExperimentPart:
    names = _names(experiment)
    counted = syscalls.tables(calls) if calls is not None else {}
    referred = references.parts(instructions, experiment.baseline) if instructions is not None else {}
    measured = {cell.workload for cell in summary.cells}
    by_workload: dict[str, list[TrialRecord]] = {}
    for record in records:
        by_workload.setdefault(record.workload, []).append(record)
    anchors = {each.name: f"{anchor}-workload-{number}" for number, each in enumerate(experiment.workloads, start=1)}
    parts = [
        replace(
            _workload_part(experiment, summary, by_workload.get(workload.name, []), workload.name, names),
            anchor=anchors[workload.name],
            calls=_plain(counted[workload.name]) if workload.name in counted else None,
            references=_references_part(referred.get(workload.name)),
        )
        for workload in experiment.workloads
        if workload.name in measured
    ]
    warnings = list(notes)
    if summary.rounds_complete < experiment.rounds:
        warnings.append(f"{summary.rounds_complete} of {experiment.rounds} rounds are complete")
    warnings += [f"{workload}: {line}" for workload, lines in summary.notes.items() for line in lines]
    return ExperimentPart(
        anchor=anchor,
        id=experiment.id,
        headline=summary.headline,
        created_at=_moment(experiment.created_at),
        strip=_strip(experiment, summary),
        workloads=parts,
        configurations=[_configuration_row(experiment, records, name) for name in names.values()],
        machine_id=experiment.machine.id,
        machine=[(_words(key), _fact(key, value)) for key, value in experiment.machine.facts.items()],
        command_line=shlex.join(experiment.command_line),
        seed=experiment.seed,
        overview=_overview(experiment, summary, anchors),
        published=[
            _published_part(each) for each in published.reproductions(experiment, summary, records, instructions)
        ],
        scaling=scaling_part.parts(experiment, summary, records),
        orders=orders_part.parts(experiment, summary, records, paired),
        notes=warnings,
    )


def _names(experiment: Experiment) -> dict[str, Name]:
    order = pieces.colour_order(experiment)
    return {
        c.name: Name(c.name, order.index(c.name) % pieces.COLOURS, c.name == experiment.baseline)
        for c in experiment.configurations
    }


def _strip(experiment: Experiment, summary: Summary) -> list[tuple[str, str]]:
    """The few facts that belong next to the headline."""
    facts = experiment.machine.facts
    cpu = next((facts[key] for key in ("cpu", "cpu_model", "model") if facts.get(key)), None)
    strip = [("rounds", f"{summary.rounds_complete} of {experiment.rounds}"), ("baseline", summary.baseline)]
    if cpu:
        cores = next((facts[key] for key in ("cores_allowed", "cores_online", "cores") if facts.get(key)), None)
        strip.insert(0, ("processor", f"{cpu}, {cores} cores" if cores else str(cpu)))
    strip += [(key, str(facts[key])) for key in ("kernel", "libc", "thp") if facts.get(key)]
    return [*strip, ("freestone", experiment.freestone_version)]


def _workload_part(
    experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], workload: str, names: dict[str, Name]
) -> WorkloadPart:
    declared = next(w for w in experiment.workloads if w.name == workload)
    cells = {cell.configuration: cell for cell in summary.cells if cell.workload == workload}
    order = figures.order_of(experiment, summary, workload)
    time = quantities.time_of(cells.values())
    shown = [
        key
        for key in (time, *_TABLE)
        if any(cells[name].figure(key) is not None for name in order if cells[name].status == "ok")
    ]
    if "peak_rss_kib" in shown and not quantities.is_a_tree(cells.values()):
        shown = [key for key in shown if key != "tree_peak_rss_kib"]
    scales = {key: Scale.over(quantity_of(key).kind, _shown(cells.values(), key)) for key in shown}
    bad = [name for name in order if cells[name].status != "ok"]
    rows = [_result_row(names[name], cells[name], shown, scales) for name in order]
    return WorkloadPart(
        anchor="",
        name=workload,
        gist=_gist(rows, bad),
        command=shlex.join(declared.command),
        directory=declared.directory,
        environment=_settings(declared.environment),
        headers=[(quantity_of(key).title, scales[key].unit) for key in shown],
        rows=rows,
        absent=[
            (names[name], quantities.STATUS_WORDS[cells[name].status], cells[name].reason or "no reason recorded")
            for name in bad
        ],
        notes=[*_notes(cells, order, summary, workload), *_trial_notes(order, records, workload)],
        figures=[
            *tails_part.part(experiment, summary, records, workload),
            *_figures(experiment, summary, records, workload, order, cells),
        ],
        multiples=sizes_part.multiples(experiment, summary, records, workload, names),
        panels=list(_panels(experiment, summary, records, workload, order, names)),
        calls=None,
        references=None,
        also=_also(order, cells, shown),
        trials=_trials(records, workload),
    )


def _gist(rows: Sequence[ResultRow], bad: Sequence[str]) -> str:
    """``least time: freestone, ×0.87 [0.85, 0.89]; without a result: tbb``."""
    said = []
    if rows and rows[0].values:
        best = rows[0].values[0]
        against = f"{best.ratio} {best.interval}" if best.ratio else "the baseline"
        said.append(f"least time: {rows[0].name.text}, {against}")
    if bad:
        said.append(f"without a result: {', '.join(bad)}")
    return "; ".join(said)


def _result_row(name: Name, cell: Cell, shown: Sequence[str], scales: dict[str, Scale]) -> ResultRow:
    if cell.status != "ok":
        return ResultRow(name, [], quantities.STATUS_WORDS[cell.status])
    return ResultRow(name, [_value(name, cell, quantity_of(key), scales[key]) for key in shown])


def _value(name: Name, cell: Cell, quantity: Quantity, scale: Scale) -> Value:
    figure = cell.figure(quantity.key)
    if figure is None:
        return Value(NOTHING)
    shown = scale.number(figure)
    ratio = cell.ratio.get(quantity.key)
    if name.baseline or ratio is None:
        return Value(shown)
    return Value(
        shown,
        ratio=f"×{quantities.ratio_number(ratio)}",
        interval=quantities.interval(ratio),
        verdict=quantities.verdict(quantity, ratio),
        mark=_mark(ratio),
    )


def _mark(ratio: Ratio) -> str:
    if not ratio.different:
        return "same" if quantities.is_known(ratio) else "unknown"
    return "better" if ratio.value < 1 else "worse"


def _notes(cells: dict[str, Cell], order: Sequence[str], summary: Summary, workload: str) -> list[str]:
    notes = []
    for name in order:
        cell = cells[name]
        if cell.status == "ok" and cell.trials_ok < cell.trials_total:
            notes.append(f"{name}: {cell.trials_ok} of {cell.trials_total} trials count")
        if cell.note:
            notes.append(f"{name}: {cell.note}")
    time = quantities.time_of(cells.values())
    found = summary.noise.get(workload, {}).get(time)
    if found is not None and quantities.is_known(found):
        said = f"{quantities.ratio_number(found)} {quantities.interval(found)}"
        notes.append(f"Check: {summary.baseline} against itself, {quantity_of(time).title.lower()} {said}")
        if found.different:
            notes.append(
                f"{summary.baseline} differs from itself: something else than the allocator changes, run by run"
            )
    return [*notes, *summary.advice.get(workload, [])]


def _trial_notes(order: Sequence[str], records: Sequence[TrialRecord], workload: str) -> Iterable[str]:
    for name in order:
        mine = [record for record in records if (record.workload, record.configuration) == (workload, name)]
        for note in dict.fromkeys(note for record in mine for note in record.notes):
            count = sum(note in record.notes for record in mine)
            yield f"{name}: {note} ({count} of {len(mine)} trials)"


def _plain(table: Grid) -> Table:
    return Table(list(table.heads), [[piece.text for piece in row] for row in table.rows])


def _references_part(found: references.Part | None) -> ReferencesPart | None:
    if found is None:
        return None
    numbers, functions = _plain(found.references), _plain(found.functions)
    return ReferencesPart(references.HOW, found.command, numbers, found.remarks, found.requests, functions)


def _published_part(found: published.Reproduction) -> PublishedPart:
    said = "; ".join(f"{each.group}, {each.name} {each.value:.3g}" for each in found.points)
    figure = Figure(
        found.title,
        "Hollow diamonds were published, filled circles measured here; 1 is the line. They are ratios: processors "
        "cancel out.",
        f"{found.axis}: {said}.",
        document(picture.draw(found)),
        _plain(found.table),
    )
    return PublishedPart(
        found.title, found.source, figure, [(words.KINDS[each.kind], each.text) for each in found.findings]
    )


def _overview(experiment: Experiment, summary: Summary, anchors: dict[str, str]) -> Figure | None:
    squares = heatmap.squares(experiment, summary)
    if len({each.workload for each in squares}) < 2:
        return None
    configurations = list(dict.fromkeys(each.configuration for each in squares))
    rows = []
    for workload in dict.fromkeys(each.workload for each in squares):
        mine = {each.configuration: each for each in squares if each.workload == workload}
        rows.append([workload, *(mine[name].words if name in mine else NOTHING for name in configurations)])
    return Figure(
        f"Time against {summary.baseline}, everywhere",
        f"Blue is less time than {summary.baseline}, red is more, the number is the ratio. ≈: no difference seen; "
        "?: too few rounds to tell. A square leads to its workload.",
        f"Time as ratio to {summary.baseline}, {len(rows)} workloads by {len(configurations)} configurations; "
        "the numbers are in the table.",
        document(heatmap.draw(squares, {name: f"#{anchor}" for name, anchor in anchors.items()})),
        Table(["", *configurations], rows),
    )


# --- figures ---------------------------------------------------------------------------------------------------------


def _figures(
    experiment: Experiment,
    summary: Summary,
    records: Sequence[TrialRecord],
    workload: str,
    order: Sequence[str],
    cells: dict[str, Cell],
) -> Iterable[Figure]:
    baseline = summary.baseline
    time = quantities.time_of(cells.values())

    def ratios(key: str, title: str) -> Figure:
        numbers = _ratio_table(order, cells, key)
        return Figure(
            title,
            f"Ratio to {baseline}, paired within rounds, with its interval: those of a table hold all at once.",
            _say(title, order, cells, [row[-1] for row in numbers.rows]),
            document(figures.ratios(experiment, summary, workload, key)),
            numbers,
        )

    def points(key: str, title: str) -> Figure:
        numbers = _points_table(records, workload, order, cells, key)
        return Figure(
            title,
            "Every trial is a dot, later rounds lower; the bar and the number are the geometric mean.",
            _say(f"{title}, geometric means", order, cells, [row[1] for row in numbers.rows]),
            document(figures.points(experiment, summary, records, workload, key)),
            numbers,
        )

    def measured(key: str) -> bool:
        return any(figures.values_of(records, workload, name, key) for name in order)

    if any(cells[name].ratio for name in order):
        yield ratios(time, "Time against the baseline")
    yield points(time, "Time of every trial")
    if any("peak_rss_kib" in cells[name].ratio for name in order):
        numbers = _trade_table(order, cells, baseline)
        yield Figure(
            "Time against memory",
            "Lower left is better in both. Bars are intervals; the dotted stairs join what nothing else beats in both.",
            _say("Time and peak RSS as ratios", order, cells, [f"{row[1]} and {row[2]}" for row in numbers.rows]),
            document(figures.trade(experiment, summary, workload)),
            numbers,
        )
    chart = figures.noise(summary, workload)
    if chart is not None:
        numbers = _noise_table(summary, workload)
        said = "; ".join(f"{row[0]} {row[2]}" for row in numbers.rows)
        yield Figure(
            "Check of the machine",
            f"{baseline} run twice in every round: the second run over the first. It should be 1, and hides nothing.",
            f"A/A intervals: {said}",
            document(chart),
            numbers,
        )
    for key, title in (
        ("peak_rss_kib", "Peak memory"),
        ("end_rss_kib", "Memory at the end"),
        ("minor_faults", "Minor page faults"),
        ("sys_s", "System time"),
    ):
        if measured(key):
            yield points(key, title)


def _panels(
    experiment: Experiment,
    summary: Summary,
    records: Sequence[TrialRecord],
    workload: str,
    order: Sequence[str],
    names: dict[str, Name],
) -> Iterable[Panel]:
    for name in order:
        chart = figures.series(experiment, summary, records, workload, name)
        if chart is not None:
            peak = Scale.over("memory", values := _tree_peaks(records, workload, name))
            said = f"Resident memory over time under {name}; sampled peak {peak.text(max(values))}"
            yield Panel(names[name], said, document(chart))


def _tree_peaks(records: Iterable[TrialRecord], workload: str, name: str) -> list[float]:
    return [
        float(max(sample.rss_kib for sample in record.metrics.series))
        for record in records
        if (record.workload, record.configuration, record.status) == (workload, name, "ok")
        and record.metrics is not None
        and record.metrics.series
    ]


def _say(what: str, order: Sequence[str], cells: dict[str, Cell], values: Sequence[str]) -> str:
    said = [
        f"{name} {value}" if cells[name].status == "ok" else f"{name} {quantities.STATUS_WORDS[cells[name].status]}"
        for name, value in zip(order, values, strict=True)
    ]
    return f"{what}: {'; '.join(said)}."


# --- tables ----------------------------------------------------------------------------------------------------------


def _ratio_table(order: Sequence[str], cells: dict[str, Cell], key: str) -> Table:
    rows = []
    for name in order:
        ratio = cells[name].ratio.get(key)
        if cells[name].status != "ok":
            rows.append([name, quantities.STATUS_WORDS[cells[name].status], NOTHING, NOTHING])
        elif ratio is None:
            rows.append([name, "1", NOTHING, "baseline"])
        else:
            said = quantities.verdict(quantity_of(key), ratio)
            rows.append([name, quantities.ratio_number(ratio), quantities.interval(ratio), said])
    return Table(["", "ratio", "interval", "verdict"], rows)


def _points_table(
    records: Sequence[TrialRecord], workload: str, order: Sequence[str], cells: dict[str, Cell], key: str
) -> Table:
    rows = []
    for name in order:
        values = [value for _, value in figures.values_of(records, workload, name, key)]
        if cells[name].status != "ok" or not values:
            word = quantities.STATUS_WORDS[cells[name].status] if cells[name].status != "ok" else NOTHING
            rows.append([name, word, NOTHING, NOTHING, NOTHING])
            continue
        scale = Scale.over(quantity_of(key).kind, values)
        mean = cells[name].figure(key)
        shown = scale.text(mean) if mean is not None else NOTHING
        rows.append([name, shown, scale.text(min(values)), scale.text(max(values)), str(len(values))])
    return Table(["", "mean", "smallest", "largest", "trials"], rows)


def _trade_table(order: Sequence[str], cells: dict[str, Cell], baseline: str) -> Table:
    rows = []
    held = quantities.time_of(cells.values())
    for name in order:
        time, memory = (cells[name].ratio.get(key) for key in (held, "peak_rss_kib"))
        if cells[name].status != "ok":
            rows.append([name, quantities.STATUS_WORDS[cells[name].status], NOTHING])
        elif name == baseline:
            rows.append([name, "1", "1"])
        else:
            shown = [f"{quantities.ratio_number(r)} {quantities.interval(r)}" if r else NOTHING for r in (time, memory)]
            rows.append([name, *shown])
    return Table(["", f"{quantity_of(held).title.lower()}, ratio", "peak RSS, ratio"], rows)


def _noise_table(summary: Summary, workload: str) -> Table:
    found = summary.noise[workload]
    return Table(
        ["", "ratio", "interval"],
        [
            [q.title, quantities.ratio_number(found[q.key]), quantities.interval(found[q.key])]
            for q in QUANTITIES
            if q.key in found
        ],
    )


def _also(order: Sequence[str], cells: dict[str, Cell], shown: Sequence[str]) -> Table | None:
    good = [name for name in order if cells[name].status == "ok"]
    measured = {key for name in good for key in (*cells[name].mean, *cells[name].median)} - set(shown)
    known = [quantity.key for quantity in QUANTITIES]
    keys = sorted(measured, key=lambda key: (known.index(key) if key in known else len(known), key))
    if not keys:
        return None
    scales = {key: Scale.over(quantity_of(key).kind, _shown(cells.values(), key)) for key in keys}
    rows = []
    for name in good:
        row = [name]
        for key in keys:
            ratio = cells[name].ratio.get(key)
            against = f" ×{quantities.ratio_number(ratio)} {quantities.interval(ratio)}" if ratio else ""
            figure = cells[name].figure(key)
            row.append(f"{NOTHING if figure is None else scales[key].number(figure)}{against}")
        rows.append(row)
    return Table(["", *(f"{quantity_of(key).title} {scales[key].unit}".strip() for key in keys)], rows)


def _trials(records: Sequence[TrialRecord], workload: str) -> Table:
    mine = [record for record in records if record.workload == workload]
    good = [record for record in mine if record.status == "ok" and record.metrics is not None]
    counters = {name for record in good if record.metrics is not None for name in record.metrics.counters}
    names = [*(q.key for q in QUANTITIES), *sorted(counters)]
    keys = [key for key in names if any(quantities.value_of(record, key) is not None for record in good)]
    scales = {
        key: Scale.over(
            quantity_of(key).kind, [v for record in good if (v := quantities.value_of(record, key)) is not None]
        )
        for key in keys
    }
    columns = ["round", "place", "configuration", "status"]
    columns += [f"{quantity_of(key).short} {scales[key].unit}".strip() for key in keys]
    rows = []
    for record in sorted(mine, key=lambda r: (r.round, r.position)):
        row = [str(record.round + 1), str(record.position + 1)]
        row.append(f"{record.configuration}, again" if record.repeat else record.configuration)
        if record.status == "ok" and record.metrics is not None:
            values = [quantities.value_of(record, key) for key in keys]
            row.append("ok")
            row += [
                NOTHING if value is None else scales[key].number(value) for key, value in zip(keys, values, strict=True)
            ]
        else:
            reason = f": {record.reason}" if record.reason else ""
            row += [f"{quantities.STATUS_WORDS[record.status]}{reason}", *([NOTHING] * len(keys))]
        rows.append(row)
    return Table(columns, rows)


def _configuration_row(experiment: Experiment, records: Sequence[TrialRecord], name: Name) -> ConfigurationRow:
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
        settings=_settings(configuration.environment),
        proof=proof,
        proved=bool(mine) and proved == len(mine),
    )


# --- words -----------------------------------------------------------------------------------------------------------


def _settings(environment: dict[str, str]) -> str:
    return " ".join(f"{key}={shlex.quote(value)}" for key, value in environment.items())


def _moment(text: str) -> str:
    try:
        return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return text


def _words(key: str) -> str:
    for suffix in ("_bytes", "_kib", "_s"):
        key = key.removesuffix(suffix)
    return key.replace("_", " ")


def _fact(key: str, value: str | int | float | bool | None) -> str:
    if value is None or value == "":
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float) and key.endswith(("_bytes", "_kib")):
        size = value * (1024 if key.endswith("_kib") else 1)
        divisor, unit = next(((step, name) for step, name in _BYTES if size >= step), (1, "bytes"))
        return f"{size / divisor:.4g} {unit}"
    return str(value)


def _shown(cells: Iterable[Cell], key: str) -> list[float]:
    return [figure for cell in cells if cell.status == "ok" and (figure := cell.figure(key)) is not None]
