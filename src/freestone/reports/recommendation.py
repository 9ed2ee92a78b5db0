"""What ends the tables of a comparison: which allocator to use for which programs, with gain, price and lines. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from freestone.records.schema import Cell, Configuration, Experiment, Ratio, Summary, Workload
from freestone.reports import deployment, quantities

Level = Mapping[str, Mapping[str, Sequence[str]]]
"""Workload -> aspect -> who cannot be told from the best there."""

ASPECTS: Final = ("time", "peak memory")
"""What a configuration can be best in, what is asked first standing first."""

MOST_TOLD: Final = 3
"""Of more programs than these, neither gain and price nor the lines are told for each."""


@dataclass(frozen=True)
class Recommendation:
    """What to run some programs under."""

    sentence: str
    lines: list[str]
    """To be copied, each behind what it is for; none where there is nothing to change or to tell."""
    workloads: list[str]
    configuration: str | None = None
    """None where there is nothing to change or to tell."""


@dataclass(frozen=True)
class _Answer:
    """What was found for one program."""

    workload: Workload
    is_known: bool
    """Whether there were rounds enough to tell anything."""
    winner: Configuration | None = None
    """Whom the lines are for; None where there is nothing to change."""
    aspect: str = ""
    """What it is best in; nothing for a baseline that takes the place of a malloc that the program brings."""
    level: Sequence[str] = ()
    brings_malloc: bool = False
    """Whether the program is linked against an allocator."""

    @property
    def kind(self) -> tuple[object, ...]:
        """The same for programs that have the very lines in common, but for their commands."""
        name = None if self.winner is None else self.winner.name
        return self.is_known, name, self.brings_malloc, tuple(sorted(self.workload.environment.items()))


COARSE = 0.85
"""A gain in time that would matter to most: rounds that cannot rule it out say so."""


def recommendations(
    experiment: Experiment,
    summary: Summary,
    *,
    bringing_malloc: Collection[str] = (),
    level: Level | None = None,
) -> list[Recommendation]:
    """What to use for each program: one for all that have one answer, with the lines to be copied.

    Args:
        experiment: what was compared. The many workloads of a suite have no answer: they are nobody's programs.
        summary: of its records; none of too few rounds.
        bringing_malloc: the workloads whose program is linked against an allocator, so that even the system's must be
            preloaded.
        level: who cannot be told from the best; they are named beside it.
    """
    if len(experiment.workloads) > 1 and is_of_suites(experiment):
        return []
    answers = [_answer(each, experiment, summary, bringing_malloc, level or {}) for each in experiment.workloads]
    if not any(each.is_known for each in answers):
        return []
    groups: dict[tuple[object, ...], list[_Answer]] = {}
    for each in answers:
        groups.setdefault(each.kind, []).append(each)
    return [_told(group, experiment, summary) for group in groups.values()]


def is_of_suites(experiment: Experiment) -> bool:
    """Whether ``freestone bench`` has measured it."""
    return experiment.command_line[1:2] == ["bench"]


def choice(workload: Workload, summary: Summary, aspect: str, winner: str, level: Sequence[str]) -> str:
    """A winner with its price, and those that are level with it with theirs: the choice is the reader's."""
    cells = {cell.configuration: cell for cell in summary.cells if cell.workload == workload.name}
    first, *others = (f"{name} ({_price(workload, cells[name], summary.baseline)})" for name in (winner, *level))
    return ", or ".join([first, *others]) + (f", not told apart from it in {aspect}" if others else "")


def _answer(
    workload: Workload, experiment: Experiment, summary: Summary, bringing_malloc: Collection[str], level: Level
) -> _Answer:
    cells = [cell for cell in summary.cells if cell.workload == workload.name]
    if not any(quantities.is_known(ratio) for cell in cells for ratio in cell.ratio.values()):
        return _Answer(workload, is_known=False)
    named = {each.name: each for each in experiment.configurations}
    best = summary.best.get(workload.name, {})
    brings = workload.name in bringing_malloc
    for aspect in ASPECTS:
        if aspect in best:
            others = level.get(workload.name, {}).get(aspect, ())
            return _Answer(workload, True, named[best[aspect]], aspect, others, brings)
    return _Answer(workload, True, brings_malloc=brings)


def _told(group: Sequence[_Answer], experiment: Experiment, summary: Summary) -> Recommendation:
    """What is told of programs that have one answer."""
    first = group[0]
    names = [each.workload.name for each in group]
    several = len(experiment.workloads) > 1
    what = f" for {_whom(names, len(experiment.workloads))}" if several else ""
    here = "" if several else " here"
    if not first.is_known:
        return Recommendation(f"To use it{what}: there is no telling yet, for lack of good rounds.", [], names)
    if first.winner is None:
        return Recommendation(f"To use it{what}: {_nothing(group, summary, here)}.", [], names)
    sentence = f"To use it{what}, {_choices(group, summary) if several else _choice(first, summary)}"
    if any(each.level for each in group):
        sentence += f"; the lines are for {first.winner.name}"
    shown = [each.workload for each in group] if len(group) <= MOST_TOLD else [first.workload]
    if len(shown) < len(group):
        sentence += f"; the lines are those of {names[0]}, the others' have another command"
    lines = deployment.lines_for(shown, first.winner, brings_malloc=first.brings_malloc)
    return Recommendation(f"{sentence}:", lines, names, first.winner.name)


def _nothing(group: Sequence[_Answer], summary: Summary, here: str) -> str:
    """That nothing speaks for a change; where its own malloc was not measured, and where the rounds saw little, so."""
    better = f"no allocator is really better than {summary.baseline}{here}"
    coarse = coarseness(summary, [each.workload.name for each in group])
    if group[0].brings_malloc:
        whose = (
            "the programs bring mallocs of their own" if len(group) > 1 else "the program brings a malloc of its own"
        )
        said = f"nothing that was measured speaks for a change: {better}, and {whose}, which were not measured"
        said = said if len(group) > 1 else said.replace("which were", "which was")
    else:
        said = f"there is nothing to change; {better}"
    return f"{said}{'; ' if coarse else ''}{coarse}"


def coarseness(summary: Summary, workloads: Collection[str]) -> str:
    """What rounds that show no difference may have missed; empty where that is little (:data:`COARSE`).

    Args:
        workloads: the names of those that are spoken of.
    """
    cells = [cell for cell in summary.cells if cell.workload in workloads and cell.status == "ok"]
    seen = [
        (ratio.low, cell.configuration)
        for cell in cells
        if (ratio := quantities.ratio_of(cell, quantities.time_of(cells), summary.baseline)) is not None
        and quantities.is_known(ratio)
        and not ratio.different
    ]
    if not seen or min(seen)[0] >= COARSE:
        return ""
    low, name = min(seen)
    return (
        f"but these rounds saw only what is large: {name} may still take {low:.2f} times {summary.baseline}'s time; "
        "more rounds (-n), or a quieter machine, narrow that"
    )


def _whom(names: Sequence[str], count: int) -> str:
    if len(names) == count:
        return "both programs" if count == 2 else f"all {count} programs"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _choice(answer: _Answer, summary: Summary) -> str:
    winner = "" if answer.winner is None else answer.winner.name
    return choice(answer.workload, summary, answer.aspect, winner, answer.level)


def _choices(group: Sequence[_Answer], summary: Summary) -> str:
    """The winner of several programs, with what it does for each."""
    if len(group) == 1:
        return _choice(group[0], summary)
    winner = "" if group[0].winner is None else group[0].winner.name
    if len(group) > MOST_TOLD:
        return f"{winner} (the tables have gain and price of each)"
    told = (f"with {each.workload.name} {_choice(each, summary).removeprefix(winner).lstrip()}" for each in group)
    return f"{winner}: {'; '.join(told)}"


def _price(workload: Workload, cell: Cell, baseline: str) -> str:
    """What it gains and what it costs, against the baseline."""
    parts = [("time", cell.ratio.get(workload.time)), ("peak memory", cell.ratio.get("peak_rss_kib"))]
    return ", ".join(f"{title} {_times(ratio, baseline)}" for title, ratio in parts if ratio is not None)


def _times(ratio: Ratio, baseline: str) -> str:
    return f"{quantities.ratio_number(ratio)}× {baseline}" if ratio.different else "no difference seen"
