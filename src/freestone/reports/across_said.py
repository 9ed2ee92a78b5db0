"""Machines side by side, in sentences: what they agree in, what changes between them, and who is missing. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from freestone.analysis.across import Across
from freestone.analysis.across.there import ASPECTS
from freestone.analysis.headline import ended

NOBODY: Final = "–"
"""Stands where nobody is really better than the baseline."""

MOST_NAMED: Final = 8
"""So many machines are named in a sentence; of more, the number is."""

MOST_BY_NAME: Final = 2
"""So many machines are named also where there are kinds of them."""

MOST_TURNS: Final = 3
"""So many pairs whose ranking changes have a sentence each; the others are named."""

_PLACE: Final = "place"


def sentences(each: Across) -> list[str]:
    """What the places have in common, and where the ranking changes."""
    compared = len(each.places) > 1
    said = [*_agreed(each), *_turns(each)]
    if compared and not each.turns and any(len(each.measured(aspect)) > 1 for aspect in ASPECTS):
        said.append(f"No ranking is seen to change from one {each.noun} to another.")
    said += [f"{listed(names, each.noun)} are one machine, measured more than once." for names in each.again]
    said += _without(each)
    said += [f"Left out: {listed(apart.places, each.noun)}: {apart.why}." for apart in each.left_out]
    if each.lacking:
        said.append(f"Without {listed(each.lacking, 'workload')}: no result of {each.baseline} to hold others against.")
    said += _other_builds(each)
    if each.groups:
        once = " once, however often it was measured," if each.again else ""
        said.append(
            f"A row counts what its machines say, each{once} by its own rounds; ×: the least and the largest of their "
            f"ratios to {each.baseline}; {NOBODY}: nobody is really better. Never pooled."
        )
    else:
        said.append(
            f"×: ratio to {each.baseline} on that {each.noun}; {NOBODY}: nobody is really better. Never pooled."
        )
    return [ended(sentence) for sentence in said]


def _agreed(each: Across) -> list[str]:
    """Who is best everywhere; nothing is said of a place that there is nothing of."""
    said = []
    for aspect in ASPECTS:
        name, measured = each.agreed(aspect), len(each.measured(aspect))
        if name is None or measured < 2:
            continue
        if measured == len(each.places) and not each.left_out:
            said.append(f"{name} is best in {aspect} everywhere.")
        else:
            all_of_them = "both" if measured == 2 else f"all {measured}"
            said.append(f"{name} is best in {aspect} on {all_of_them} {each.noun}s that can tell.")
    return said


def _turns(each: Across) -> list[str]:
    said = []
    for aspect in ASPECTS:
        mine = [turn for turn in each.turns if turn.aspect == aspect]
        said += [
            f"The ranking in {aspect} changes: {turn.configuration} takes less than {turn.other} on "
            f"{_where(each, turn.less)}, and more on {_where(each, turn.more)}."
            for turn in mine[:MOST_TURNS]
        ]
        more = [f"{turn.configuration} and {turn.other}" for turn in mine[MOST_TURNS:]]
        if more:
            said.append(f"So does that of {'; '.join(more[:MOST_NAMED])}{_left(more, 'pair')}.")
    return said


def _without(each: Across) -> list[str]:
    """Who has no result where, and why: a sentence for each configuration and what became of it."""
    said = []
    for (name, status), where in each.without().items():
        reasons = list(dict.fromkeys(reason for _, reason in where if reason))
        why = f": {reasons[0]}" if reasons else ""
        others = f" (and {counted(len(reasons) - 1, 'other reason')})" if len(reasons) > 1 else ""
        said.append(f"{name} {status} on {_where(each, [there.place for there, _ in where])}{why}{others}")
    return said


def _other_builds(each: Across) -> list[str]:
    """Where the program is not the build that most have: then what differs may be the program's."""
    by_build: dict[str, list[str]] = {}
    for there in each.places:
        if there.build is not None:
            by_build.setdefault(there.build, []).append(there.place)
    usual, *others = sorted(by_build.values(), key=len, reverse=True) or [[]]
    where = [name for names in others for name in names]
    if not where:
        return []
    builds = "another build" if len(others) == 1 else f"{len(others)} other builds"
    return [f"The program is {builds} on {listed(where, each.noun)} than on {listed(usual, each.noun)}."]


def other_versions(found: Sequence[Across]) -> list[str]:
    """Which allocators are not of one version at all places, a sentence each."""
    by_name: dict[str, dict[str, dict[str, None]]] = {}
    for each in found:
        for there in each.places:
            for name, version in there.versions.items():
                by_name.setdefault(name, {}).setdefault(version, {})[there.place] = None
    return [
        ended(f"{name} is {', '.join(f'{version} on {listed(list(on), _PLACE)}' for version, on in versions.items())}")
        for name, versions in by_name.items()
        if len(versions) > 1
    ]


def _where(each: Across, places: Sequence[str]) -> str:
    """Machines by name, or where they are many, how many of each kind."""
    if not each.groups or len(places) <= MOST_BY_NAME:
        return listed(places, each.noun)
    among = set(places)
    return listed(
        [f"{count} of {group.machines} {group.name}" for group in each.groups if (count := group.of(among))], "kind"
    )


def listed(names: Sequence[str], what: str) -> str:
    """Names in a sentence; of many, the first and how many more.

    Args:
        what: they are, one of them.
    """
    if len(names) > MOST_NAMED or len(names) == 1:
        return f"{', '.join(names[:MOST_NAMED])}{_left(names, what)}"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _left(names: Sequence[str], what: str) -> str:
    left = len(names) - MOST_NAMED
    return f" and {counted(left, f'more {what}')}" if left > 0 else ""


def counted(number: int, noun: str) -> str:
    """How many of what."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
