"""A score as tables: the subject against its best peer, the field, every workload; for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from freestone.analysis import digits
from freestone.records.schema import Aspect, CellStatus, Ratio, Score, ScoreRow
from freestone.reports import grid, quantities
from freestone.reports.grid import Grid, Mark, Piece

_NOTHING = Piece("–", "same")
_PLAIN = str.maketrans({"–": "-", "×": "x", "≈": "~", "’": "'"})


def render(score: Score, *, width: int, colour: bool, ascii_only: bool = False) -> str:
    """The scoreboard for a terminal, at most ``width`` columns wide."""
    grids = [_subject(score), _field(score), _workloads(score)]
    parts = [grid.text(each, width=width, colour=colour, ascii_only=ascii_only) for each in grids if each.rows]
    text = "\n".join([*parts, *_left_out(score)])
    return text.translate(_PLAIN).encode("ascii", "replace").decode() if ascii_only else text


def markdown(score: Score, *, heading: str, command_line: str) -> str:
    """The scoreboard as a Markdown document: the same tables, and the subject's ratio to every peer everywhere.

    Args:
        heading: of the whole.
        command_line: what reproduces it.
    """
    grids = [_subject(score), _field(score), *(_against_all(score, aspect) for aspect in score.aspects)]
    rounds = f"{score.rounds_complete} complete round{'' if score.rounds_complete == 1 else 's'}"
    parts = [
        f"# {heading}\n",
        f"Experiment `{score.experiment}`, {rounds}, all configurations interleaved. Reproduce it with:\n",
        f"    {command_line}\n",
        *(grid.markdown(each) for each in grids if each.rows),
    ]
    absent = _left_out(score)
    if absent:
        parts.append("## Left out\n\n" + "\n".join(f"- {line}" for line in absent) + "\n")
    return "\n".join(parts)


def _subject(score: Score) -> Grid:
    rows = []
    for aspect in score.aspects:
        if aspect.mean is None:
            continue
        held = [row for row in aspect.rows if row.counted and row.ratio is not None]
        worst = aspect.worst
        rows.append(
            [
                Piece(aspect.name, "title"),
                _ratio(aspect.mean, with_interval=True),
                _ratio(aspect.held_out, with_interval=True) if aspect.held_out is not None else _NOTHING,
                _ratio(worst.ratio) if worst is not None and worst.ratio is not None else _NOTHING,
                Piece(f"{worst.workload}, against {worst.best_peer}" if worst is not None else ""),
                Piece(str(len(held))),
            ]
        )
    return Grid(
        f"{score.subject} against the best peer of each workload",
        ["", "geometric mean", "best chosen by other rounds", "worst", "where", "workloads"],
        rows,
        "Ratios: below 1 is less time, memory or faults than the best of all others on that workload. The lowest of "
        "many is so in part by luck: the first figure is rather too high. Chosen by the other half of the rounds it "
        "may be the wrong one: the second is rather too low.",
        left=frozenset({0, 4}),
    )


def _field(score: Score) -> Grid:
    """Configurations in the order of their time."""
    names = [standing.configuration for standing in score.aspects[0].field] if score.aspects else []
    names += [each.configuration for aspect in score.aspects for each in aspect.field]
    rows = []
    for name in dict.fromkeys(names):
        row = [Piece(name, "title" if name == score.subject else "")]
        for aspect in score.aspects:
            row += _standing(aspect, name)
        rows.append(row)
    heads = [""]
    for aspect in score.aspects:
        heads += [aspect.name, "worst"]
    return Grid(
        "The field: ratio to the best of all, workload by workload",
        heads,
        rows,
        "Geometric mean over workloads, and the worst single ratio. 1 would be the best of all everywhere. "
        "(n): on n workloads only.",
        together=2,
    )


def _standing(aspect: Aspect, name: str) -> list[Piece]:
    most = max((each.workloads for each in aspect.field), default=0)
    for place, each in enumerate(aspect.field):
        if each.configuration == name:
            fewer = f" ({each.workloads})" if each.workloads < most else ""
            return [Piece(f"{each.mean:.3f}{fewer}", "better" if place == 0 else ""), Piece(f"{each.worst:.2f}")]
    return [_NOTHING, _NOTHING]


def _workloads(score: Score) -> Grid:
    """Each workload with the subject's ratio to its best peer, and who that is."""
    by_name = {aspect.name: {row.workload: row for row in aspect.rows} for aspect in score.aspects}
    shown = [name for name in by_name if not name.endswith(", lean")]
    rows = []
    for workload in dict.fromkeys(row.workload for aspect in score.aspects for row in aspect.rows):
        row = [Piece(workload)]
        for name in shown:
            found = by_name[name].get(workload)
            row += [_ratio_in(found), Piece((found.best_peer or "") if found is not None else "", "same")]
        rows.append(row)
    heads = [""]
    for name in shown:
        heads += [name, "best peer"]
    return Grid(
        f"{score.subject} against its best peer",
        heads,
        rows,
        "≈: no difference seen; ?: too few rounds to tell. (x): not counted in the means.",
        left=frozenset({0, *range(2, 2 * len(shown) + 1, 2)}),
        together=2,
    )


def _against_all(score: Score, aspect: Aspect) -> Grid:
    """One aspect: the subject's own figure, and its ratio to each peer's."""
    peers = [each.configuration for each in aspect.field if each.configuration != score.subject]
    rows = []
    for row in aspect.rows:
        own = row.values.get(score.subject)
        line = [
            Piece(row.workload + ("" if row.counted else " (not counted)")),
            Piece(quantities.of_aspect(aspect.name, own)),
        ]
        for peer in peers:
            there = row.values.get(peer)
            line.append(_NOTHING if own is None or there is None else Piece(f"{own / there:.3f}"))
        line += [_ratio(row.ratio, with_interval=True) if row.ratio else _NOTHING, Piece(row.best_peer or "")]
        rows.append(line)
    return Grid(
        f"{aspect.name[:1].upper()}{aspect.name[1:]}: {score.subject}'s ratio to every peer",
        ["workload", score.subject, *peers, "to the best", "the best"],
        rows,
        "Geometric means over rounds. Bold: a difference seen, in the subject's favour.",
        left=frozenset({0, len(peers) + 3}),
    )


def _ratio_in(row: ScoreRow | None) -> Piece:
    if row is None or row.ratio is None:
        return _NOTHING
    piece = _ratio(row.ratio)
    return piece if row.counted else Piece(f"({piece.text})", piece.mark)


def _ratio(ratio: Ratio, *, with_interval: bool = False) -> Piece:
    known = quantities.is_known(ratio)
    mark: Mark = "same" if not ratio.different else "better" if ratio.value < 1 else "worse"
    sign = "" if ratio.different else " ≈" if known else " ?"
    interval = f" {quantities.interval(ratio)}" if with_interval and known else ""
    return Piece(f"{digits.number(ratio.value, 3, different=ratio.different)}{interval}{sign}", mark)


def _left_out(score: Score) -> list[str]:
    return [
        f"{configuration} is left out on {_and(workloads)}: {quantities.STATUS_WORDS[status]}: {reason}"
        for (configuration, status, reason), workloads in _gathered(score).items()
    ]


def _gathered(score: Score) -> dict[tuple[str, CellStatus, str], list[str]]:
    found: dict[tuple[str, CellStatus, str], list[str]] = {}
    for each in score.left_out:
        found.setdefault((each.configuration, each.status, each.reason), []).append(each.workload)
    return found


def _and(names: Sequence[str] | Iterable[str]) -> str:
    words = list(names)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
