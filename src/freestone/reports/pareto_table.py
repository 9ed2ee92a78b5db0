"""The Pareto front of configurations that raced, as text. Pure."""

from __future__ import annotations

import textwrap

from freestone.analysis.pareto import Conclusion, Gain
from freestone.analysis.statistics import FEWEST_PAIRS
from freestone.records.schema import Experiment, Ratio
from freestone.reports import deployment, quantities

GOALS = {"time": "time", "memory": "memory", "balanced": "time and memory together"}


def conclusion(found: Conclusion, goal: str, experiment: Experiment, *, brings_malloc: bool, width: int) -> str:
    """The counts, the best for the goal, and the front: each of it with its price and the lines that use it."""
    (workload,) = experiment.workloads
    configurations = {each.name: each for each in experiment.configurations}
    failed = sum(each.discarded is not None for each in found.tried)
    said = (
        f"Tried beside {experiment.baseline}: {_count(len(found.tried), 'configuration')}. "
        f"Out, as another is really better: {len(found.out)}." + (f" Failed: {failed}." if failed else "")
    )
    lines = [*textwrap.wrap(said, width), ""]
    if not found.front:
        return "\n".join([*lines, *textwrap.wrap(_nothing(found, experiment.baseline), width)]) + "\n"
    best = _best(found, goal, experiment.baseline)
    lines += [
        *textwrap.wrap(best, width, break_long_words=False, break_on_hyphens=False),
        "",
        "The Pareto front (no other configuration is really better in time and memory):",
    ]
    for each in sorted(found.front, key=lambda each: each is not found.best):
        chosen = configurations[each.configuration]
        used = [*deployment.lines(workload, chosen, brings_malloc), *deployment.more_lines(workload, chosen)]
        lines += [
            "",
            f"  {each.configuration}",
            *textwrap.wrap(_gains(each), width - 4, initial_indent="    ", subsequent_indent="    "),
            *(f"  {line}" for line in used),
        ]
    return "\n".join(lines) + "\n"


def _best(found: Conclusion, goal: str, baseline: str) -> str:
    wanted = GOALS[goal]
    if found.best is not None:
        level = f"; not told apart from it in that: {', '.join(found.level)}" if found.level else ""
        return f"Best for {wanted}: {found.best.configuration} ({_gains(found.best)}, against {baseline}){level}."
    if found.leader is not None:
        return (
            f"Nothing is confirmed as best for {wanted}: {found.leader.configuration} leads, and rounds that did not "
            "choose it do not confirm it."
        )
    return f"Nothing that was tried is really better for {wanted}."


def _nothing(found: Conclusion, baseline: str) -> str:
    fine = [each for each in found.tried if each.discarded is None]
    rounds = max((each.time.pairs for each in fine if each.time is not None), default=0)
    if not fine:
        return f"Nothing told apart: no configuration could be held against {baseline}."
    if rounds < FEWEST_PAIRS:
        return f"Nothing told apart: {_count(rounds, 'round')} say nothing; give it more time (--time-budget)."
    return (
        f"Nothing told apart: no configuration that was tried is really better than {baseline} in time or memory; "
        "there is nothing to change."
    )


def _gains(each: Gain) -> str:
    parts = (("time", each.time), ("peak memory", each.memory))
    return ", ".join(f"{title} {_times(ratio)}" for title, ratio in parts if ratio is not None)


def _times(ratio: Ratio) -> str:
    known = f"{quantities.ratio_number(ratio)}× {quantities.interval(ratio)}"
    return known if ratio.different else f"{known} (no difference seen)"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
