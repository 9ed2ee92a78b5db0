"""What one machine says of a workload, and of all its workloads together, to stand beside others. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from freestone.analysis import arms, family, machines, statistics, winners
from freestone.analysis.across.beside import Work
from freestone.analysis.across.kinds import kind_of
from freestone.analysis.across.packed_rounds import PackedRounds
from freestone.analysis.across.there import ASPECTS, Outcome, There
from freestone.analysis.arms import ByRound
from freestone.analysis.headline import aspects
from freestone.analysis.rivals import Rivals
from freestone.analysis.rounds import Arm
from freestone.analysis.statistics import Estimate
from freestone.analysis.summary import as_ratio
from freestone.records.schema import Cell, Experiment, Summary, TrialRecord, Workload


def measured(
    place: str,
    experiment: Experiment,
    records: Sequence[TrialRecord],
    summary: Summary,
    works: Mapping[str, Work] | None = None,
) -> list[There]:
    """What a machine says of each workload, and of all that count together where there are several.

    Args:
        place: what the machine is called.
        experiment: what was measured there.
        records: its records.
        summary: of them.
        works: workload -> what was measured of it; None where all of one name are the same.
    """
    by_arm = arms.by_arm(arms.without_parameters(arms.counted(experiment, records)))
    rounds = {arm: arms.by_round(mine) for arm, mine in by_arm.items() if arms.verdict(mine)[0] == "ok"}
    works = works or {each.name: Work(each.name, (), 0) for each in experiment.workloads}
    versions = {each.name: each.allocator.version for each in experiment.configurations if each.allocator.version}
    builds = _builds(records)
    found = [
        replace(
            _there(
                place, experiment, workload, summary.cells, summary.best, rounds, _outcomes(workload, summary.cells)
            ),
            works=(works[workload.name],),
            build=builds.get(workload.name),
            versions=versions,
        )
        for workload in experiment.workloads
    ]
    whole = _together(experiment, rounds)
    if whole is not None:
        workload, composed, lacking = whole
        outcomes = _outcomes_of_whole(experiment, workload, composed, summary.cells)
        alone = experiment.model_copy(update={"workloads": [workload]})
        cells = _cells(alone, workload, composed)
        best = winners.best(alone, cells, Rivals(alone, composed))
        made_of = tuple(works[name] for name in workload.command)
        there = _there(place, alone, workload, cells, best, composed, outcomes)
        found.append(replace(there, whole=True, works=made_of, lacking=lacking, versions=versions))
    return found


def together(count: int, asked: int) -> str:
    """What workloads are called that count together.

    Args:
        count: how many they are.
        asked: how many would count.
    """
    return f"{'all' if count == asked else f'{count} of'} {asked} workloads together"


def _builds(records: Sequence[TrialRecord]) -> dict[str, str]:
    """Workload -> the build-id of its program, where that is one."""
    found: dict[str, set[str | None]] = {}
    for record in arms.good(records):
        if record.proof.processes:
            found.setdefault(record.workload, set()).add(record.proof.processes[0].exe_build_id)
    return {name: build for name, (build, *more) in found.items() if build is not None and not more}


def _there(
    place: str,
    experiment: Experiment,
    workload: Workload,
    cells: Sequence[Cell],
    best: Mapping[str, Mapping[str, str]],
    rounds: Mapping[Arm, ByRound],
    outcomes: Mapping[str, Outcome],
) -> There:
    own = [cell for cell in cells if cell.workload == workload.name and cell.status == "ok"]
    metrics = {aspect: metric for aspect, metric in aspects(workload).items() if aspect in ASPECTS}
    return There(
        place=place,
        machine=machines.key(experiment.machine),
        kind=kind_of(experiment.machine),
        workload=workload.name,
        command=tuple(workload.command),
        baseline=experiment.baseline,
        best=best.get(workload.name, {}),
        ratios={
            aspect: {cell.configuration: cell.ratio[metric] for cell in own if metric in cell.ratio}
            for aspect, metric in metrics.items()
        },
        rounds={
            aspect: PackedRounds(
                {
                    each.name: rounds.get((workload.name, each.name), {}).get(metric, {})
                    for each in experiment.configurations
                },
                arms.step(metric),
            )
            for aspect, metric in metrics.items()
        },
        outcomes=outcomes,
    )


def _outcomes(workload: Workload, cells: Sequence[Cell]) -> dict[str, Outcome]:
    return {cell.configuration: Outcome(cell.status, cell.reason) for cell in cells if cell.workload == workload.name}


def _outcomes_of_whole(
    experiment: Experiment, whole: Workload, composed: Mapping[Arm, ByRound], cells: Sequence[Cell]
) -> dict[str, Outcome]:
    """Who has no result on one of the workloads has what became of it there."""
    by_arm = {(cell.workload, cell.configuration): cell for cell in cells}
    found: dict[str, Outcome] = {}
    for name in (each.name for each in experiment.configurations):
        if (whole.name, name) in composed:
            found[name] = Outcome("ok")
            continue
        lacking = [by_arm[each, name] for each in whole.command if (each, name) in by_arm]
        cell = next((each for each in lacking if each.status != "ok"), None)
        found[name] = (
            Outcome("unmeasured")
            if cell is None
            else Outcome(cell.status, f"{cell.workload}: {cell.reason or cell.status}")
        )
    return found


def _estimate(
    workload: str, configuration: str, metric: str, baseline: str, rounds: Mapping[Arm, ByRound]
) -> Estimate | None:
    one, other = (rounds.get((workload, name), {}).get(metric, {}) for name in (configuration, baseline))
    return statistics.within_rounds(one, other, arms.step(metric))


def _together(
    experiment: Experiment, rounds: Mapping[Arm, ByRound]
) -> tuple[Workload, dict[Arm, ByRound], tuple[str, ...]] | None:
    """All workloads that count as if they were one: in a round, the geometric mean of what each took in it.

    So the ratio to the baseline is the geometric mean of the workloads' ratios. A configuration that has no result on
    one of them has none here; a workload on which the baseline has none is left out for everybody, and the points of a
    scan are no suite.

    Returns: what they are as one, whose command is their names; what each round took; which were left out.
    """
    asked = [each for each in experiment.workloads if each.counted and each.series is None]
    counted = [each for each in asked if (each.name, experiment.baseline) in rounds]
    if len(counted) < 2:
        return None
    whole = Workload(name=together(len(counted), len(asked)), command=sorted(each.name for each in counted))
    composed: dict[Arm, ByRound] = {}
    for configuration in experiment.configurations:
        by_metric: ByRound = {}
        for aspect, metric in aspects(whole).items():
            of_each = [
                rounds.get((each.name, configuration.name), {}).get(aspects(each)[aspect], {}) for each in counted
            ]
            mean = _mean_by_round(of_each)
            if mean:
                by_metric[metric] = mean
        if by_metric:
            composed[whole.name, configuration.name] = by_metric
    return whole, composed, tuple(each.name for each in asked if each not in counted)


def _mean_by_round(of_each: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """Round -> geometric mean, over the rounds that all have; nothing where a value was ever zero."""
    if not all(of_each) or min(min(each.values()) for each in of_each) <= 0:
        return {}
    shared = set.intersection(*(set(each) for each in of_each))
    return {number: statistics.geometric_mean([each[number] for each in of_each]) for number in sorted(shared)}


def _cells(experiment: Experiment, whole: Workload, rounds: Mapping[Arm, ByRound]) -> list[Cell]:
    peers = len(experiment.configurations) - 1
    sure = family.confidence(family.MEANS, len(ASPECTS) * peers)
    cells = []
    for configuration in experiment.configurations:
        if configuration.name == experiment.baseline or (whole.name, configuration.name) not in rounds:
            continue
        ratio = {
            metric: as_ratio(statistics.interval(found, sure))
            for aspect, metric in aspects(whole).items()
            if aspect in ASPECTS
            and (found := _estimate(whole.name, configuration.name, metric, experiment.baseline, rounds))
        }
        count = max((each.pairs for each in ratio.values()), default=0)
        cells.append(
            Cell(
                workload=whole.name,
                configuration=configuration.name,
                status="ok",
                trials_ok=count,
                trials_total=count,
                ratio=ratio,
            )
        )
    return cells
