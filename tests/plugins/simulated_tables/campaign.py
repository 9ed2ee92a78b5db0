"""How often whole tables are right: of twins, and of allocators that really differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from freestone.analysis import difference, score, summarise
from freestone.analysis.sides import Side
from freestone.records.schema import Ratio, Summary
from simulated_tables import trials
from simulated_tables.trials import Truth

PLANTED = {"1 % slower": 1.01, "2 % slower": 1.02, "5 % slower": 1.05}
TWINS = [f"twin-{number}" for number in range(1, 10)]
SUITE = 6
"""Workloads of a scoreboard."""


@dataclass
class Tally:
    """What became of so many tables of one kind of noise."""

    tables: int = 0
    untrue: int = 0
    """Tables with an interval that does not hold the truth."""
    accused: int = 0
    """Tables of ``freestone compare`` that call one of nine twins different, in any quantity or in the headline."""
    accused_boards: int = 0
    """Scoreboards of ``freestone bench`` that call a twin different, on any workload or in the means."""
    accused_differences: int = 0
    """Differences of ``freestone diff`` between two twins that are not all the same."""
    found: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PLANTED, 0))
    """Tables in which what was planted is called slower."""


def tally(kind: str, rounds: int, tables: int, *, seed: int = 1, boards: bool = True) -> Tally:
    """Draw tables and judge them.

    Args:
        kind: of noise.
        boards: whether scoreboards and differences are drawn too, of six workloads each.
    """
    random = np.random.default_rng([seed, rounds, *kind.encode()])
    of = Tally(tables)
    alike = Truth(dict.fromkeys(TWINS, 1.0))
    mixed = Truth(PLANTED | dict.fromkeys(TWINS[: 9 - len(PLANTED)], 1.0))
    suite = Truth(dict.fromkeys(TWINS[:5], 1.0), SUITE)
    for _ in range(tables):
        same, other = _summary(alike, kind, random, rounds), _summary(mixed, kind, random, rounds)
        of.accused += "(real" in same.headline or any(ratio.different for _, _, ratio in _ratios(same))
        of.untrue += not _holds(other, mixed)
        for name in PLANTED:
            of.found[name] += any(
                configuration == name and metric == "wall_s" and ratio.different and ratio.value > 1
                for configuration, metric, ratio in _ratios(other)
            )
        if boards:
            side = Side(trials.experiment(suite, rounds), trials.draw(suite, kind, random, rounds))
            of.accused_boards += _accuses(side)
            changes = difference.within(side, TWINS[0], TWINS[1]).changes
            of.accused_differences += any(change.verdict in ("more", "less") for change in changes)
    return of


def _summary(truth: Truth, kind: str, random: np.random.Generator, rounds: int) -> Summary:
    return summarise(trials.experiment(truth, rounds), trials.draw(truth, kind, random, rounds))


def _ratios(summary: Summary) -> Iterable[tuple[str, str, Ratio]]:
    for cell in summary.cells:
        for metric, ratio in cell.ratio.items():
            yield cell.configuration, metric, ratio


def _holds(summary: Summary, truth: Truth) -> bool:
    return all(
        ratio.low * (1 - 1e-9) <= truth.of(configuration, metric) <= ratio.high * (1 + 1e-9)
        for configuration, metric, ratio in _ratios(summary)
    )


def _accuses(side: Side) -> bool:
    board = score(side.experiment, side.records, TWINS[0])
    told = [aspect.mean for aspect in board.aspects] + [row.ratio for aspect in board.aspects for row in aspect.rows]
    return any(ratio is not None and ratio.different for ratio in told)


def table(found: Sequence[tuple[str, int, Tally]]) -> str:
    """The tallies as Markdown; shares are per cent of tables."""
    heads = ["noise", "rounds", "all intervals true", "twins accused: compare", "bench", "diff", *PLANTED]
    lines = [
        f"| {' | '.join(heads)} |",
        f"| --- |{' ---: |' * (len(heads) - 1)}",
    ]
    for kind, rounds, of in found:
        shares = [of.tables - of.untrue, of.accused, of.accused_boards, of.accused_differences, *of.found.values()]
        cells = [f"{100 * count / of.tables:.3g} %" for count in shares]
        lines.append(f"| {kind} | {rounds} | {' | '.join(cells)} |")
    return "\n".join(lines)
