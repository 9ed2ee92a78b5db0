"""One experiment, in the order in which the page tells it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace

from freestone.analysis import machines
from freestone.records.schema import CallCounts, Experiment, InstructionCounts, Summary, TrialRecord
from freestone.reports import heatmap, parameter_figure, parameter_series, pieces, published, references, syscalls, vega
from freestone.reports.drawn import NOTHING, Figure, Name, Table
from freestone.reports.grid import Grid
from freestone.reports.page.configurations import configuration_row
from freestone.reports.page.parts import ExperimentPart, ParameterPart, PublishedPart, ReferencesPart
from freestone.reports.page.words import fact, moment, title_of_fact
from freestone.reports.page.workload import workload_part
from freestone.reports.parameter_series import Trials
from freestone.reports.recommendation import Recommendation
from freestone.reports.theme import COLOURS
from freestone.reports.vega import document


def experiment_part(
    experiment: Experiment,
    summary: Summary,
    records: Sequence[TrialRecord],
    *,
    anchor: str,
    calls: CallCounts | None = None,
    instructions: InstructionCounts | None = None,
    notes: Sequence[str] = (),
    use: Sequence[Recommendation] = (),
) -> ExperimentPart:
    """Everything the page says of one experiment.

    Args:
        anchor: identifier of the part within the page.
        calls: system calls, where they were counted.
        instructions: instructions and references, where they were counted.
        notes: lines about the data itself, such as damaged records.
        use: which allocator to use for its programs, and how.
    """
    with vega.unchecked():
        return _experiment_part(experiment, summary, records, anchor, calls, instructions, notes, use)


def _experiment_part(
    experiment: Experiment,
    summary: Summary,
    records: Sequence[TrialRecord],
    anchor: str,
    calls: CallCounts | None,
    instructions: InstructionCounts | None,
    notes: Sequence[str],
    use: Sequence[Recommendation],
) -> ExperimentPart:
    names = _names(experiment)
    counted = syscalls.tables(calls) if calls is not None else {}
    referred = references.parts(instructions, experiment.baseline) if instructions is not None else {}
    measured = {cell.workload for cell in summary.cells}
    by_workload: dict[str, list[TrialRecord]] = {}
    for record in records:
        by_workload.setdefault(record.workload, []).append(record)
    trials = Trials(experiment, summary, records)
    anchors = {each.name: f"{anchor}-workload-{number}" for number, each in enumerate(experiment.workloads, start=1)}
    parts = [
        replace(
            workload_part(experiment, summary, by_workload.get(workload.name, []), workload.name, names, trials),
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
        created_at=moment(experiment.created_at),
        strip=_strip(experiment, summary),
        workloads=parts,
        configurations=[configuration_row(experiment, records, name) for name in names.values()],
        machine_id=experiment.machine.id,
        machine_key=machines.key(experiment.machine),
        machine=[(title_of_fact(key), fact(key, value)) for key, value in experiment.machine.facts.items()],
        command_line=shlex.join(experiment.command_line),
        seed=experiment.seed,
        overview=_overview(experiment, summary, anchors),
        published=[
            PublishedPart(each.title, each.source, parameter_figure.figure(experiment, each.series))
            for each in published.reproductions(trials, instructions)
        ],
        parameters=list(_parameters(experiment, summary, trials)),
        notes=warnings,
        use=list(use),
    )


def _names(experiment: Experiment) -> dict[str, Name]:
    order = pieces.colour_order(experiment)
    return {
        c.name: Name(c.name, order.index(c.name) % COLOURS, c.name == experiment.baseline)
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


def _plain(table: Grid) -> Table:
    return Table(list(table.heads), [[piece.text for piece in row] for row in table.rows])


def _references_part(found: references.Part | None) -> ReferencesPart | None:
    if found is None:
        return None
    numbers, functions = _plain(found.references), _plain(found.functions)
    return ReferencesPart(references.HOW, found.command, numbers, found.remarks, found.requests, functions)


def _parameters(experiment: Experiment, summary: Summary, trials: Trials) -> Iterable[ParameterPart]:
    for family in parameter_series.families(experiment.workloads):
        found = parameter_series.series(trials, summary, family)
        if found:
            figures = [parameter_figure.figure(experiment, each) for each in found]
            yield ParameterPart(family.name, family.parameter, list(family.labels.values()), figures)


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
