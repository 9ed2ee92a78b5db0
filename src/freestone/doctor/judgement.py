"""What a verdict says beside its figures: what the best owes to what, what is not known, and what would tell. Pure."""

from __future__ import annotations

from typing import Final

from freestone.analysis.pareto import Goal
from freestone.analysis.statistics import FEWEST_PAIRS
from freestone.doctor.verdict import Tried, Verdict, apart
from freestone.records.schema import Cell, Ratio
from freestone.reports import quantities
from freestone.reports.quantities import quantity_of

GOALS: Final[dict[Goal, str]] = {"time": "time", "memory": "memory", "balanced": "time and memory together"}
"""As they stand in a sentence."""

COMPARED: Final = (
    "user_s",
    "sys_s",
    "minor_faults",
    "major_faults",
    "peak_rss_kib",
    "tree_peak_rss_kib",
    "end_rss_kib",
    "figure:rss_kib_loaded",
)
"""What is told before and after, behind the time."""

COARSE: Final = 0.85
"""A gain that would matter to most: rounds that cannot rule it out say so."""


def nothing(found: Verdict) -> str:
    """What is said where there is no best: that nothing is better, or that it is not known; without a full stop."""
    fine = [each for each in found.tried if each.discarded is None]
    unknown = found.unknown
    if unknown and len(unknown) == len(fine):
        return f"It is not known whether anything that was tried is better for {GOALS[found.goal]}: {_too_few(found)}"
    said = f"nothing that was tried is really better for {GOALS[found.goal]}"
    if unknown:
        return f"Of the rest {said}; {not_known(found)}"
    return f"{said[0].upper()}{said[1:]}{_coarse(found, fine)}"


def not_known(found: Verdict) -> str:
    """Of what it is not known whether it is better, with what would tell; empty where that is known of all."""
    names = ", ".join(each.configuration for each in found.unknown)
    return f"of {names} it is not known: {_too_few(found)}" if names else ""


def why(found: Verdict) -> str:
    """What the best does, behind a colon; of an allocator with a setting, no more than the setting adds."""
    best = found.best
    if best is None or best.remedy is None:
        return ""
    if not found.credits_setting:
        return f": {best.remedy.why}"
    name, plain = best.remedy.allocator, found.plain
    if plain is None or plain.discarded is not None:
        missing = "was not tried" if plain is None else "has no figures"
        return f": how much of that is the setting's is not known, since {name} alone {missing}"
    pairs = (("time", best.time, plain.time), ("memory", best.memory, plain.memory))
    adds = [
        f"{what} {quantities.ratio_number(_quotient(one, other))}×"
        for what, one, other in pairs
        if one is not None and other is not None and apart(one, other)
    ]
    alone = ", ".join(f"{what} {_told(ratio)}" for what, _, ratio in pairs if ratio is not None)
    if adds:
        return f": {name} alone has {alone}; the setting adds {', '.join(adds)} ({best.remedy.why})"
    return f": {name} alone is not told apart from it ({alone}), so nothing of that is known to be the setting's"


def price(best: Cell) -> str:
    """What of time and memory the best really costs, in a sentence."""
    costs = []
    for key in (quantities.time_of([best]), "user_s", "sys_s", *COMPARED[4:]):
        ratio = best.ratio.get(key)
        if ratio is not None and ratio.different and ratio.value > 1:
            quantity = quantity_of(key)
            costs.append(
                f"{quantity.title.lower().replace('rss', 'RSS')} ×{quantities.ratio_number(ratio)} "
                f"{quantities.interval(ratio)}, {quantities.verdict(quantity, ratio)}"
            )
    return f"Its price: {'; '.join(costs)}." if costs else "Its price: none was seen, in time or in memory."


def _quotient(one: Ratio, other: Ratio) -> Ratio:
    """One over another, both to the same program; the ends are the widest that both leave."""
    value, low, high = one.value / other.value, one.low / other.high, one.high / other.low
    return Ratio(value=value, low=low, high=high, pairs=min(one.pairs, other.pairs), different=True)


def _told(ratio: Ratio) -> str:
    return f"{quantities.ratio_number(ratio)}×" if ratio.different else "the same as far as can be told"


def _too_few(found: Verdict) -> str:
    rounds = "1 round is" if found.rounds == 1 else f"{found.rounds} rounds are"
    enough = "" if found.enough_s is None else f". --time-budget {found.enough_s:.0f} would probably do"
    return f"{rounds} too few, and {FEWEST_PAIRS} are the fewest that tell anything{enough}"


def _coarse(found: Verdict, fine: list[Tried]) -> str:
    """What rounds that show no gain may have missed; empty where that is little."""
    wanted = [
        (ratio.low, what, each.configuration)
        for each in fine
        for what, goal, ratio in (("time", "time", each.time), ("memory", "memory", each.memory))
        if found.goal in (goal, "balanced") and ratio is not None and quantities.is_known(ratio) and not ratio.different
    ]
    if not wanted or min(wanted)[0] >= COARSE:
        return ""
    low, what, name = min(wanted)
    return (
        f"; but these rounds saw only what is large: {name} may still take {low:.2f} times the {what}. "
        "A longer --time-budget narrows that"
    )
