"""Colours that stand beside each other are told apart by every eye, in light and dark, or differ in something else.

Eyes without one kind of cones are simulated after G. M. Machado, M. M. Oliveira and L. A. F. Fernandes, "A
Physiologically-based Model for Simulation of Color Vision Deficiency", IEEE Transactions on Visualization and Computer
Graphics 15, 2009. Distances are CIEDE2000: about 1 is just seen where two fields touch, 10 from afar in thin marks.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
from coloraide import Color as Basic
from coloraide.everything import ColorAll as Color
from hypothesis import given
from hypothesis import strategies as st

from freestone.reports import figures, heatmap, html, parameter_figure, vega
from freestone.reports.page import experiment_part
from freestone.reports.parameter_series import Trials, families, series
from freestone.reports.theme import COLOURS, DARK, LIGHT, Theme

EYES = (None, "protan", "deutan", "tritan")
"""With all cones; without the long, the middle, the short ones."""
APART = 10.0
SEEN_ON_PAPER = 3.0
"""Contrast of a mark with what it stands on, as WCAG 2.2 asks of graphics (1.4.11)."""
READ = 4.5
"""Contrast of words (1.4.3)."""
THEMES = {"light": LIGHT, "dark": DARK}
BEFORE = {
    "light": ("#6B7280", "#4477AA", "#EE6677", "#228833", "#AA3377", "#B39B13", "#2BA5C9"),
    "dark": ("#9CA3AF", "#6FA8DC", "#F58A97", "#4DB868", "#D46BA4", "#CCBB44", "#66CCEE"),
}
"""What the palettes were, told apart by most eyes and not by all."""


class Mark(NamedTuple):
    """How a configuration is drawn in a figure of lines."""

    colour: str
    dash: tuple[int, ...] = ()
    shape: str = ""


def seen(colour: str, eye: str | None) -> Basic:
    """A colour as an eye sees it."""
    return Color(colour) if eye is None else Color(colour).filter(eye, 1, method="machado").clip()


def distance(one: str, other: str) -> float:
    """The least over all eyes."""
    return min(seen(one, eye).delta_e(seen(other, eye), method="2000") for eye in EYES)


def too_near(marks: Sequence[Mark]) -> set[tuple[int, int]]:
    """Pairs that some eye does not tell apart, by their places."""
    far: dict[tuple[str, str], bool] = {}
    found = set()
    for (first, one), (second, other) in itertools.combinations(enumerate(marks), 2):
        if (one.dash, one.shape) == (other.dash, other.shape):
            pair = (one.colour, other.colour)
            if pair not in far:
                far[pair] = distance(*pair) >= APART
            if not far[pair]:
                found.add((first, second))
    return found


def shade(log: float) -> str:
    """The colour of a ratio's logarithm, mixed as the overview's scale does."""
    least, one, greatest = heatmap.COLOURS
    share = min(1.0, abs(log) / heatmap.FARTHEST)
    mixed = Color.interpolate([one, least if log < 0 else greatest], space="lab")(share)
    return mixed.convert("srgb").clip().to_string(hex=True)


def drawn(chart: vega.Chart | None, theme: Theme) -> list[Mark]:
    """How a chart draws each configuration."""
    assert chart is not None
    encodings = [layer["encoding"] for layer in vega.specification(chart, theme)["layer"]]

    def scale(channel: str) -> dict[str, Any]:
        return next((each[channel]["scale"] for each in encodings if channel in each), {})

    names = scale("color")["domain"]
    dashes, shapes = (scale(channel).get("range", [""] * len(names)) for channel in ("strokeDash", "shape"))
    assert all(scale(channel).get("domain", names) == names for channel in ("strokeDash", "shape"))
    category = theme.config()["range"]["category"]  # which Vega begins anew where it ends
    return [
        Mark(category[place % len(category)], tuple(dash), shape)
        for place, (dash, shape) in enumerate(zip(dashes, shapes, strict=True))
    ]


@pytest.fixture(scope="module")
def measured(family_maker: Callable[..., Any]) -> Callable[[int], Any]:
    """Results of so many configurations on three workloads of a family; only the first was measured."""
    made = family_maker(
        "server-{threads}", ["server", "--threads", "{threads}"], {"threads": ("1", "2", "16")}, operations=10.0
    )

    def results(count: int) -> Any:
        first = made.experiment.configurations[0]
        more = [first.model_copy(update={"name": f"other-{number}"}) for number in range(count - 1)]
        cells = [each for each in made.summary.cells if each.configuration == first.name]
        return type(made)(
            made.experiment.model_copy(update={"configurations": [first, *more]}),
            [record for record in made.records if record.configuration == first.name],
            made.summary.model_copy(update={"cells": cells}),
        )

    return results


# --- the check itself ------------------------------------------------------------------------------------------------


def test_the_simulation_is_the_published_one() -> None:
    published = {  # the columns for pure linear red, green and blue, at full severity
        "protan": [(0.152286, 0.114503, -0.003882), (1.052583, 0.786281, -0.048116), (-0.204868, 0.099216, 1.051998)],
        "deutan": [(0.367322, 0.280085, -0.011820), (0.860646, 0.672501, 0.042940), (-0.227968, 0.047413, 0.968881)],
        "tritan": [(1.255528, -0.078411, 0.004733), (-0.076749, 0.930809, 0.691367), (-0.178779, 0.147602, 0.303900)],
    }
    for eye, columns in published.items():
        for pure, column in zip(([1, 0, 0], [0, 1, 0], [0, 0, 1]), columns, strict=True):
            found = Color("srgb-linear", pure).filter(eye, 1, method="machado", out_space="srgb-linear").coords()
            assert found == pytest.approx(column, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "near"), [("light", {(0, 4), (1, 3)}), ("dark", {(0, 2), (0, 4), (1, 3), (1, 6), (2, 3), (2, 4), (3, 5)})]
)
def test_the_palettes_there_were_are_refused(name: str, near: set[tuple[int, int]]) -> None:
    assert too_near([Mark(colour) for colour in BEFORE[name]]) == near


def test_red_and_green_of_one_lightness_are_refused_unless_something_else_differs() -> None:
    red, green = "#C0504D", "#6F7A1E"
    assert seen(red, None).delta_e(seen(green, None), method="2000") > 40
    assert too_near([Mark(red), Mark(green)]) == {(0, 1)}
    assert too_near([Mark(red, (1, 0), "circle"), Mark(green, (6, 2), "square")]) == set()


# --- what is drawn ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("count", [2, 7, 8, 14, 35])
def test_lines_and_points_of_a_figure_are_told_apart(measured: Callable[[int], Any], name: str, count: int) -> None:
    results = measured(count)
    (family,) = families(results.experiment.workloads)
    trials = Trials(results.experiment, results.summary, results.records)
    charts = (
        parameter_figure.draw(results.experiment, series(trials, results.summary, family)[0]),
        figures.trade(results.experiment, results.summary, next(iter(family.members))),
    )
    for chart in charts:
        marks = drawn(chart, THEMES[name])
        assert len(marks) == count
        assert too_near(marks) == set()


@pytest.mark.parametrize("name", THEMES)
def test_a_palette_has_as_many_colours_as_marks_reckon_with(name: str) -> None:
    assert len(THEMES[name].palette) == COLOURS


@pytest.mark.parametrize("name", THEMES)
def test_the_first_colours_need_nothing_else(name: str) -> None:
    assert too_near([Mark(colour) for colour in THEMES[name].palette]) == set()


@pytest.mark.parametrize("name", THEMES)
def test_every_colour_stands_out_from_the_paper(name: str) -> None:
    theme = THEMES[name]
    assert all(Color(colour).contrast(theme.paper) >= SEEN_ON_PAPER for colour in theme.palette)


@given(st.floats(1.3, 8))
def test_less_is_told_from_more(ratio: float) -> None:
    assert distance(shade(math.log(ratio)), shade(-math.log(ratio))) >= APART


@given(st.floats(1, 3.2), st.sampled_from([1, -1]))
def test_a_ratio_a_quarter_farther_from_one_is_farther_from_grey(ratio: float, side: int) -> None:
    near, far = (distance(shade(side * math.log(each)), heatmap.COLOURS[1]) for each in (ratio, 1.25 * ratio))
    assert far > near + 3


@given(st.floats(0, heatmap.FARTHEST), st.sampled_from([1, -1]))
def test_the_number_of_a_square_can_be_read(log: float, side: int) -> None:
    ink = heatmap.INK_ON_DARK if log >= heatmap.DARK_FROM else heatmap.INK
    assert Color(shade(side * log)).contrast(ink) >= READ - 0.3


def test_better_is_told_from_worse_in_the_tables(results: Any) -> None:
    page = html.render([experiment_part(results.experiment, results.summary, results.records, anchor="only")])
    found = {kind: re.findall(rf"--{kind}: (#\w{{6}});", page) for kind in ("better", "worse")}
    papers = (LIGHT.paper, DARK.paper, LIGHT.paper)  # print is light
    assert len(found["better"]) == len(found["worse"]) == len(papers)
    for better, worse, paper in zip(found["better"], found["worse"], papers, strict=True):
        assert distance(better, worse) >= APART
        assert min(Color(colour).contrast(paper) for colour in (better, worse)) >= READ
