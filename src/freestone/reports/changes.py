"""A difference and a gate as tables, for a terminal and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from freestone.analysis import digits
from freestone.records.schema import Change, Difference, Gate, GateRow
from freestone.reports import grid, quantities
from freestone.reports.grid import Grid, Mark, Piece

_PLAIN = str.maketrans({"–": "-", "≈": "~", "≤": "<=", "’": "'"})
_MARKS: dict[str, Mark] = {"more": "worse", "less": "better", "same": "same", "unknown": "same"}
_SIGNS = {"more": "", "less": "", "same": " ≈", "unknown": " ?"}
_OUTCOMES: dict[str, tuple[str, Mark]] = {
    "kept": ("kept", "better"),
    "open": ("open", ""),
    "exceeded": ("EXCEEDED", "worse"),
}


def headline(difference: Difference) -> str:
    """One sentence: what of it all is real."""
    means = [each for each in difference.changes if each.workload is None]
    real = [each for each in means if each.verdict in ("more", "less")]
    single = [each for each in difference.changes if each.workload is not None and each.verdict in ("more", "less")]
    against = "" if difference.held_against is None else f" against {difference.held_against}"
    by_configuration: dict[str, list[str]] = {}
    for each in real:
        by_configuration.setdefault(each.configuration, []).append(f"{_percent(each)} {each.aspect}")
    told = [f"{name}{against}: {', '.join(changed)}" for name, changed in by_configuration.items()]
    if not told and single:
        told = [
            f"{each.configuration}{against} on {each.workload}: {_percent(each)} {each.aspect}"
            for each in sorted(single, key=_size)[:3]
        ]
    told = [f"{each.what} has no result any more" for each in difference.lost[:3]] + told
    if told:
        return "; ".join(told) + "."
    if all(each.verdict == "unknown" for each in difference.changes):
        return "Too little is known to tell any change."
    return "No change seen."


def render(difference: Difference, *, width: int, colour: bool, ascii_only: bool = False) -> str:
    """The difference for a terminal, at most ``width`` columns wide."""
    parts = [headline(difference) + "\n", *_preface(difference), ""]
    parts += [grid.text(each, width=width, colour=colour, ascii_only=ascii_only) for each in _grids(difference)]
    return _printable("\n".join([*parts, *_apart_lines(difference)]).rstrip() + "\n", ascii_only)


def markdown(difference: Difference, *, heading: str) -> str:
    """The difference as a Markdown document under a heading."""
    parts = [
        f"# {heading}\n",
        headline(difference) + "\n",
        "\n".join(f"- {line}" for line in _preface(difference)) + "\n",
    ]
    parts += [grid.markdown(each) for each in _grids(difference)]
    return "\n".join([*parts, *_apart_list(difference)])


def render_gate(gate: Gate, *, width: int, colour: bool, ascii_only: bool = False) -> str:
    """The gate for a terminal: the outcome first, then what decided it."""
    parts = [gate_headline(gate) + "\n", *_preface(gate.difference), ""]
    parts += [grid.text(each, width=width, colour=colour, ascii_only=ascii_only) for each in _gate_grids(gate)]
    return _printable("\n".join([*parts, *_apart_lines(gate.difference)]).rstrip() + "\n", ascii_only)


def gate_markdown(gate: Gate) -> str:
    """The gate as Markdown for a pull request."""
    parts = [
        f"# {_SHORT[gate.outcome]}\n",
        gate_headline(gate) + "\n",
        "\n".join(f"- {line}" for line in _preface(gate.difference)) + "\n",
    ]
    parts += [grid.markdown(each) for each in _gate_grids(gate)]
    parts += [f"<details><summary>Everything measured</summary>\n\n{_everything(gate.difference)}\n</details>\n"]
    return "\n".join([*parts, *_apart_list(gate.difference)])


_SHORT = {"kept": "Within the limits", "open": "Not exceeded, not proved", "exceeded": "A limit is exceeded"}


def gate_headline(gate: Gate) -> str:
    """The outcome in one sentence."""
    limits = " and ".join(f"{aspect} at most {limit * 100:+g} %" for aspect, limit in gate.limits.items())
    over = [row for row in gate.rows if row.outcome == "exceeded"]
    if gate.difference.lost:
        first, *others = gate.difference.lost
        more = f" (and {len(others)} more)" if others else ""
        return f"Exceeded: {first.what} has no result any more: {first.reason.rstrip('.')}{more} ({limits})."
    if over:
        worst = max(over, key=lambda row: row.change.low / (1 + row.limit))
        more = f", and {len(over) - 1} more" if len(over) > 1 else ""
        change = worst.change
        return (
            f"Exceeded: {change.configuration}, {_place(change)}: {_percent(change)} {change.aspect}{more} ({limits})."
        )
    unsettled = [row for row in gate.rows if row.outcome == "open"]
    if unsettled:
        needed = [row.rounds_needed for row in unsettled if row.rounds_needed is not None]
        hint = (
            f"; about {max(needed)} rounds a side would settle {'it' if len(needed) == 1 else 'most'}" if needed else ""
        )
        reasons = "".join(f"; {reason}" for reason in dict.fromkeys(row.reason for row in unsettled if row.reason))
        counted = f"{len(unsettled)} of {len(gate.rows)}"
        return f"Not exceeded, and not proved to be kept in {counted}: {limits}{reasons}{hint}."
    return f"Kept: {limits}."


def _gate_grids(gate: Gate) -> list[Grid]:
    """The means, and the single workloads that are not kept."""
    means = [row for row in gate.rows if row.change.workload is None]
    singles = [row for row in gate.rows if row.change.workload is not None]
    shown = sorted(
        (row for row in singles if row.outcome != "kept"),
        key=lambda row: (row.outcome != "exceeded", -row.change.ratio / (1 + row.limit)),
    )
    kept = len(singles) - len(shown)
    grids = [_gate_grid("All workloads, geometric mean", means, "")]
    note = f"{kept} more kept." if kept else ""
    if shown:
        grids.append(_gate_grid("Workloads", shown, note))
    return grids


def _gate_grid(title: str, rows: Sequence[GateRow], note: str) -> Grid:
    return Grid(
        title,
        ["", "", "limit", "change", "at least", "at most", "outcome"],
        [
            [
                Piece(_place(row.change) if row.change.workload else row.change.configuration, "title"),
                Piece(
                    row.change.aspect
                    if row.change.workload is None
                    else f"{row.change.configuration}, {row.change.aspect}"
                ),
                Piece(f"{row.limit * 100:+g} %"),
                Piece(_percent(row.change)),
                Piece(_signed(row.change.low, different=_is_real(row.change))),
                Piece(_signed(row.change.high, different=_is_real(row.change))),
                _outcome(row),
            ]
            for row in rows
        ],
        note,
        left=frozenset({0, 1}),
    )


def _outcome(row: GateRow) -> Piece:
    word, mark = _OUTCOMES[row.outcome]
    rounds = f"{row.change.rounds} round{'' if row.change.rounds == 1 else 's'}"
    return Piece(f"{word}: {rounds}" if row.reason else word, mark)


def _grids(difference: Difference) -> list[Grid]:
    grids = [_mean_grid(difference)]
    for aspect in dict.fromkeys(each.aspect for each in difference.changes):
        rows = [each for each in difference.changes if each.aspect == aspect and each.workload is not None]
        grids.append(_row_grid(aspect, rows, several=difference.held_against is None))
    if difference.drift:
        grids.append(_drift_grid(difference.drift))
    return [each for each in grids if each.rows]


def _mean_grid(difference: Difference) -> Grid:
    return Grid(
        "All workloads, geometric mean",
        ["", "", "after / before"],
        [
            [Piece(each.configuration, "title"), Piece(each.aspect), _ratio(each)]
            for each in difference.changes
            if each.workload is None
        ],
        "≈: no change seen; ?: not known. All intervals of a difference hold at once, 19 times in 20.",
        left=frozenset({0, 1}),
    )


def _row_grid(aspect: str, rows: Sequence[Change], *, several: bool) -> Grid:
    """The workloads in one aspect; which configuration it is stands there where there may be ``several``."""
    ordered = sorted(rows, key=lambda each: _size(each) if each.verdict in ("more", "less") else 0.0)
    return Grid(
        aspect[:1].upper() + aspect[1:],
        ["", *(["configuration"] if several else []), "before", "after", "after / before"],
        [
            [
                Piece(each.workload or ""),
                *([Piece(each.configuration)] if several else []),
                Piece(quantities.of_aspect(aspect, each.before)),
                Piece(quantities.of_aspect(aspect, each.after)),
                _ratio(each),
            ]
            for each in ordered
        ],
        left=frozenset({0, 1} if several else {0}),
    )


def _drift_grid(drift: Sequence[Change]) -> Grid:
    return Grid(
        "What the machine did in between: controls, time",
        ["", "after / before"],
        [[Piece(each.configuration), Piece(_number(each))] for each in drift],
        "Taken out of the times above.",
    )


def _everything(difference: Difference) -> str:
    return "\n".join(grid.markdown(each, level=3) for each in _grids(difference))


def _preface(difference: Difference) -> list[str]:
    if difference.held_against is not None:
        lines = [*difference.subjects.values(), f"both in {difference.after}, paired within rounds"]
    else:
        lines = [f"{name}: {what}" for name, what in difference.subjects.items()]
        lines.append(f"before: {difference.before}; after: {difference.after}")
        if difference.controls:
            lines.append(f"the same on both sides: {', '.join(difference.controls)}")
    if difference.unrelated:
        lines.append(f"times cannot be held against each other: {difference.unrelated}")
    return lines


def _apart(difference: Difference) -> list[str]:
    return [f"{each.what}: {each.reason}" for each in difference.apart]


def _apart_lines(difference: Difference) -> list[str]:
    return [f"not compared: {line}" for line in _apart(difference)]


def _apart_list(difference: Difference) -> list[str]:
    lines = _apart(difference)
    return ["## Not compared\n", "\n".join(f"- {line}" for line in lines) + "\n"] if lines else []


def _place(change: Change) -> str:
    return change.workload or "all workloads"


def _ratio(change: Change) -> Piece:
    return Piece(_number(change) + _SIGNS[change.verdict], _MARKS[change.verdict])


def _number(change: Change) -> str:
    known = change.low > 0 and math.isfinite(change.high)
    value, low, high = (
        digits.number(each, 3, different=_is_real(change)) for each in (change.ratio, change.low, change.high)
    )
    return f"{value} [{low}, {high}]" if known else f"{value} [?]"


def _size(change: Change) -> float:
    """Smaller for what changed more; a ratio that no float holds changed most."""
    return -abs(math.log(change.ratio)) if 0 < change.ratio < math.inf else -math.inf


def _percent(change: Change) -> str:
    return _signed(change.ratio, different=_is_real(change))


def _is_real(change: Change) -> bool:
    return change.verdict in ("more", "less")


def _signed(ratio: float, *, different: bool) -> str:
    if not math.isfinite(ratio) or ratio <= 0:
        return "–"
    percent = (ratio - 1) * 100
    return f"{percent:+.{digits.seen(abs(percent), 1) if different else 1}f} %"


def _printable(text: str, ascii_only: bool) -> str:
    return text.translate(_PLAIN).encode("ascii", "replace").decode() if ascii_only else text
