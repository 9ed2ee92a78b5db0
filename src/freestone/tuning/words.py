"""What came of a search as text, and as what JSON holds. Pure."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence

from freestone.doctor.verdict import Tried
from freestone.records.schema import Configuration, Ratio, Summary, Workload
from freestone.reports import deployment, quantities
from freestone.tuning.outcome import Conclusion
from freestone.tuning.standing import Standing

GOALS = {"time": "time", "memory": "memory", "balanced": "time and memory together"}


def searched(standing: Standing, finalists: int, *, width: int) -> str:
    """What was tried, and what became of it; those that failed by name."""
    tried = [name for name in standing.configurations if name != standing.baseline]
    failed = [name for name in standing.failed if name != standing.baseline]
    left = len(standing.alive) - finalists
    said = (
        f"Tried beside {standing.baseline}: {_count(len(tried), 'configuration')}. "
        f"Out, as another is really better: {len(standing.out)}. "
        + (f"Failed: {len(failed)}. " if failed else "")
        + f"Confirmed in rounds that did not choose them: {finalists}."
        + (f" Not told apart from the best and not confirmed, as they looked worse: {left}." if left > 0 else "")
    )
    lines = textwrap.wrap(said, width)
    for name in failed:
        lines += textwrap.wrap(
            f"Failed: {name}: {standing.failed[name]}", width, subsequent_indent="  ", break_long_words=False
        )
    return "\n".join(lines) + "\n"


def conclusion(
    found: Conclusion,
    goal: str,
    baseline: str,
    workload: Workload,
    configurations: Mapping[str, Configuration],
    *,
    brings_malloc: bool,
    width: int,
) -> str:
    """The front, each of it with its price and the lines that put it to use; the best for the goal first."""
    if not found.front:
        return "\n".join(textwrap.wrap(_nothing(found, baseline), width)) + "\n"
    lines = textwrap.wrap(_best(found, goal, baseline), width, break_long_words=False, break_on_hyphens=False)
    lines += [
        "",
        "The Pareto front (no other finalist is really better in time and memory; all intervals hold at once):",
    ]
    ordered = sorted(found.front, key=lambda each: each is not found.best)
    for each in ordered:
        lines += [
            "",
            *textwrap.wrap(
                each.configuration, width - 2, initial_indent="  ", subsequent_indent="    ", break_long_words=False
            ),
        ]
        lines += textwrap.wrap(f"{_gains(each)}", width - 4, initial_indent="    ", subsequent_indent="    ")
        chosen = configurations[each.configuration]
        used = [*deployment.lines(workload, chosen, brings_malloc), *deployment.more_lines(workload, chosen)]
        lines += [f"  {line}" for line in used]
    return "\n".join(lines) + "\n"


def as_json(
    found: Conclusion | None,
    standing: Standing,
    summary: Summary | None,
    goal: str,
    workload: Workload,
    *,
    brings_malloc: bool,
) -> dict[str, object]:
    """All of it for a program to read."""
    front = [] if found is None else [each.configuration for each in found.front]
    return {
        "goal": goal,
        "baseline": standing.baseline,
        "tried": [name for name in standing.configurations if name != standing.baseline],
        "out": dict(standing.out),
        "failed": dict(standing.failed),
        "told_apart": bool(front),
        "best": None if found is None or found.best is None else found.best.configuration,
        "level_with_best": [] if found is None or found.best is None else list(found.level),
        "front": front,
        "finalists": [
            {
                "configuration": each.configuration,
                "allocator": standing.configurations[each.configuration].allocator.name,
                "settings": standing.configurations[each.configuration].environment,
                "discarded": each.discarded,
                **{
                    name: None if ratio is None else json.loads(ratio.model_dump_json())
                    for name, ratio in (("time", each.time), ("memory", each.memory), ("faults", each.faults))
                },
                "use": _stripped(
                    deployment.lines(workload, standing.configurations[each.configuration], brings_malloc)
                ),
            }
            for each in (() if found is None else found.finalists)
        ],
        "rounds": 0 if summary is None else summary.rounds_complete,
        "noise": None
        if summary is None
        else {
            metric: json.loads(ratio.model_dump_json())
            for metric, ratio in summary.noise.get(workload.name, {}).items()
        },
    }


def _best(found: Conclusion, goal: str, baseline: str) -> str:
    wanted = GOALS[goal]
    if found.best is not None:
        level = f"; not told apart from it in that: {', '.join(found.level)}" if found.level else ""
        return f"Best for {wanted}: {found.best.configuration} ({_gains(found.best)}, against {baseline}){level}."
    if found.leader is not None:
        return (
            f"Nothing is confirmed as best for {wanted}: {found.leader.configuration} leads, and rounds that did not "
            "choose it do not say so."
        )
    return f"Nothing that was tried is really better for {wanted}."


def _nothing(found: Conclusion, baseline: str) -> str:
    fine = [each for each in found.finalists if each.discarded is None]
    rounds = max((each.time.pairs for each in fine if each.time is not None), default=0)
    if not fine:
        return f"Nothing told apart: no finalist could be held against {baseline}."
    if rounds < 4:
        return f"Nothing told apart: {_count(rounds, 'round')} say nothing; give it more time (--time-budget)."
    return (
        f"Nothing told apart: no configuration that was tried is really better than {baseline} in time or memory; "
        "there is nothing to change."
    )


def _gains(each: Tried) -> str:
    parts = (("time", each.time), ("peak memory", each.memory))
    return ", ".join(f"{title} {_times(ratio)}" for title, ratio in parts if ratio is not None)


def _times(ratio: Ratio) -> str:
    known = f"{quantities.ratio_number(ratio)}× {quantities.interval(ratio)}"
    return known if ratio.different else f"{known} (no difference seen)"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _stripped(lines: Sequence[str]) -> list[str]:
    return [line.strip() for line in lines]
