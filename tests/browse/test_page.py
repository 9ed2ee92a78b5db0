"""The page over all results in a real browser: what a reader sees, types and reaches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from invented_results import make_results
from opened_page import MARKS

from freestone.browse.server import Server
from freestone.records import store
from freestone.reports import html

MakeResult = Callable[..., Path]

pytestmark = [pytest.mark.xdist_group("browser")]  # what they share is made once

DRAWN = MARKS.replace("querySelectorAll('.drawing')", "querySelectorAll('.drawing:has(svg)')", 1)


class Reader:
    """Somebody with a browser, and whatever it complained of."""

    def __init__(self, browser: Any, address: str, *, width: int = 1280, scheme: str = "light", scripts: bool = True):
        self.complaints: list[str] = []
        self.requests: list[str] = []
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, java_script_enabled=scripts
        )
        self.page = context.new_page()
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)

    def shown(self) -> list[str]:
        """The results that are seen."""
        rows: list[str] = self.page.locator("ol.results > li:visible h2").all_text_contents()
        return rows


@pytest.fixture
def results(make_result: MakeResult) -> list[Path]:
    return [
        make_result(1, program="solve", verdict="freestone is best in time."),
        make_result(2, program="sort", verdict="No difference is seen."),
        make_result(3, program="solve", verdict="jemalloc takes less memory."),
    ]


def test_rows_are_filtered_as_one_types(browser: Any, server: Server, results: list[Path]) -> None:
    one, two, three = (each.name for each in results)
    reader = Reader(browser, server.address)
    assert reader.shown() == [three, two, one]
    box = reader.page.get_by_label("Search")
    box.press_sequentially("solve")
    assert reader.shown() == [three, one]
    assert reader.page.get_by_role("status").inner_text() == "2 of 3 results"
    box.press_sequentially("  Takes")
    assert reader.shown() == [three]
    reader.page.reload()
    assert reader.shown() == [three], "a search outlives a reload"
    reader.page.get_by_label("Search").fill("nothing of it")
    assert reader.shown() == []
    reader.page.get_by_label("Search").fill("")
    assert reader.shown() == [three, two, one]
    assert reader.page.url == server.address
    assert reader.complaints == []
    assert all(url.startswith((server.address, "data:")) for url in reader.requests)


def test_a_search_in_the_address_needs_no_scripts(browser: Any, server: Server, results: list[Path]) -> None:
    one, two, three = (each.name for each in results)
    reader = Reader(browser, f"{server.address}?q=solve+best", scripts=False)
    assert reader.shown() == [one]
    reader.page.get_by_label("Search").fill("sort")
    reader.page.get_by_role("button", name="Search").click()
    assert reader.shown() == [two]
    assert "1 of 3 results" in reader.page.locator("body").inner_text()
    assert three not in reader.shown()


@pytest.mark.parametrize("width", [320, 1280])
def test_nothing_is_wider_than_the_window(browser: Any, server: Server, make_result: MakeResult, width: int) -> None:
    make_result(1, program="p" * 120, verdict="v" * 300)
    reader = Reader(browser, server.address, width=width)
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= width


def test_light_and_dark_differ(browser: Any, server: Server, results: list[Path]) -> None:
    look = "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    light, dark = (Reader(browser, server.address, scheme=scheme).page.evaluate(look) for scheme in ("light", "dark"))
    assert light[0] == "rgb(255, 255, 255)"
    assert dark[0] == "rgb(20, 24, 29)"
    assert light[1] != dark[1]


def test_a_row_leads_to_its_report_whose_figures_are_drawn(browser: Any, server: Server) -> None:
    made = make_results()
    folder = made.write(server.place / "20261120T131500Z-made")
    html.write([folder], folder / store.REPORT_FILE)
    reader = Reader(browser, server.address)
    reader.page.get_by_role("link", name=folder.name).click()
    reader.page.wait_for_function(
        "[...document.querySelectorAll('.drawing')].some(each => each.querySelector('svg'))", timeout=120_000
    )
    drawn = [each for each in reader.page.evaluate(DRAWN) if each["width"]]
    assert drawn
    assert all(each["marks"] > 0 for each in drawn)
    assert reader.complaints == []
    assert reader.page.evaluate("self.origin") == "null", "a report has an origin of its own, and reads no other"
