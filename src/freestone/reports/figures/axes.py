"""The axes that figures of configurations share, and the words on them."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from freestone.records.schema import Cell, Ratio
from freestone.reports import quantities
from freestone.reports.pieces import Rows, inline, layered
from freestone.reports.quantities import Quantity, Scale

ROW = 36
"""Height of a configuration's row, pixels."""


@dataclass(frozen=True)
class Axis:
    """A quantitative axis of a layered figure. Every layer is given its domain: one that is not brings zero in."""

    domain: list[float]
    title: str
    labels: list[float] | None = None
    """Where it is labelled if it is logarithmic; None for a linear one."""

    def of(self, field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=self.title, scale=self._scale(), axis=self._axis())

    def vertical(self, field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title=self.title, scale=self._scale(), axis=self._axis(labelPadding=6))

    def share(self, value: float) -> float:
        """Where a value lies, 0 at the lower end and 1 at the upper."""
        low, high = self.domain
        if self.labels is not None:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (value - low) / (high - low)

    def _axis(self, **options: Any) -> alt.Axis:
        labels: dict[str, Any] = {} if self.labels is None else {"values": self.labels, "format": "~g"}
        return alt.Axis(grid=True, **labels, **options)

    def _scale(self) -> alt.Scale:
        if self.labels is not None:
            return alt.Scale(type="log", domain=self.domain, nice=False)
        return alt.Scale(domain=self.domain, nice=False, zero=False)


def y_of(
    order: Sequence[str],
    field: str = "configuration",
    *,
    named: bool = False,
    right: Mapping[str, str] | None = None,
) -> alt.Y:
    """The rows of a figure. One layer names them on the left; ``right`` writes something about each on the other side.

    What is written is an axis and not a mark, so the layout keeps room for it at every width.
    """
    axis = alt.Axis() if named else None
    if right is not None:
        words = {name: right.get(name, "") for name in order}
        axis = alt.Axis(orient="right", labelExpr=f"({json.dumps(words)})[datum.value]", labelFontWeight=600)
    return alt.Y(f"{field}:N", sort=list(order), title=None, scale=alt.Scale(domain=list(order)), axis=axis)


def title_of(quantity: Quantity, scale: Scale) -> str:
    """What an axis shows, and in what."""
    return f"{in_sentence(quantity)}, {scale.unit}".rstrip(", ")


def in_sentence(quantity: Quantity) -> str:
    """Its title as it stands within a sentence."""
    return quantity.title if quantity.title.startswith("RSS") else quantity.title[0].lower() + quantity.title[1:]


def domain_of(values: Iterable[float], *, left: float = 0.06, right: float = 0.06) -> list[float]:
    """The values' range, widened at both ends by shares of itself. Never empty."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    span = (high - low) or abs(high) * 0.1 or 1.0
    return [low - left * span, high + right * span]


def absent(cells: Mapping[str, Cell], order: Sequence[str], drawn: Collection[str] = ()) -> alt.Chart:
    """Why a row has no mark, in words.

    Args:
        order: the rows.
        drawn: those that have marks all the same.
    """
    rows: Rows = [
        {"configuration": name, "label": quantities.status_of(cells[name])}
        for name in order
        if cells[name].status != "ok" and name not in drawn
    ]
    marks = alt.Chart(inline(rows)).mark_text(style="faint", align="left", dx=4, fontStyle="italic")
    left = alt.XValue(0)  # type: ignore[no-untyped-call]  # alt.value(0) takes a hundred times as long to make
    labels: alt.Chart = marks.encode(x=left, y=y_of(order), text=alt.Text("label:N"))
    return labels


def rows_chart(marks: Sequence[alt.Chart], order: Sequence[str]) -> alt.LayerChart:
    """Marks over each other in rows of one height."""
    return layered(*marks, height=ROW * max(1, len(order)), twice=True)


def ends_of(ratio: Ratio) -> tuple[float, float]:
    """The ends of an interval as far as they can be drawn: with too few rounds there is nothing to draw but a point."""
    return (ratio.low, ratio.high) if quantities.is_known(ratio) else (ratio.value, ratio.value)
