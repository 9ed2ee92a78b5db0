"""The page of a diagnosis in a browser without a network: every figure is drawn, nothing scrolls, links lead on."""

from __future__ import annotations

from pathlib import Path

import pytest
from invented_results import make_results
from opened_page import MARKS, Opened, expect_drawn

from freestone.doctor import symptoms
from freestone.doctor.chart import Chart
from freestone.doctor.diagnosis import Diagnosis, judge
from freestone.doctor.observations import Observations
from freestone.doctor.page import diagnosis_part
from freestone.doctor.remedies import remedy
from freestone.reports import html
from freestone.reports.source import Source

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("browser")]

RECORDED = Path(__file__).parents[1] / "recorded"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What was seen of a real program; rounds that were made up, with a cell INVALID and one failed."""
    seen = Observations.model_validate_json((RECORDED / "trim-churn.json").read_bytes())
    results = make_results()
    found = symptoms.name(seen)
    remedies = {
        each.name: remedy(each.allocator.name, "another allocator")
        for each in results.experiment.configurations
        if each.name != results.experiment.baseline
    }
    chart = Chart(experiment=results.experiment, remedies=remedies, left_out=[(remedy("musl", "x"), "not here")])
    source = Source(results.experiment, results.summary, results.records)
    judged = judge(results.summary, chart, found, "balanced")
    part = diagnosis_part(Diagnosis("one", chart, seen, found, "balanced", source, judged))
    return html.write_parts([part], tmp_path_factory.mktemp("page") / "report.html")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_figure_is_drawn_without_a_network(browser, page_file: Path, scheme: str) -> None:
    opened = Opened(browser, page_file, scheme=scheme)
    open_figures = opened.page.evaluate(MARKS.replace("'.drawing'", "'.drawing:has(svg)'"))
    assert len(open_figures) >= 8
    expect_drawn(opened, open_figures)


@pytest.mark.parametrize("width", [400, 800, 1600])
def test_the_page_never_scrolls_sideways(browser, page_file: Path, width: int) -> None:
    opened = Opened(browser, page_file, width=width)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = opened.page.evaluate(
        "[...document.querySelectorAll('.drawing svg')].map(s => s.getBoundingClientRect().right)"
    )
    assert max(boxes) <= width


def test_a_symptom_s_link_opens_its_explanation_and_the_rounds_are_drawn_when_opened(browser, page_file: Path) -> None:
    opened = Opened(browser, page_file)
    opened.page.get_by_text("What that is, and what helps").first.click()
    assert opened.page.locator("#experiment-1-explained-1[open] .picture").is_visible()
    before = opened.page.locator(".drawing svg").count()
    opened.page.get_by_text("All that was measured").click()
    opened.page.wait_for_function(f"document.querySelectorAll('.drawing svg').length > {before}")
    assert opened.complaints == []
