"""A page opened in a browser that has no network, for tests of what a reader sees."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium here: install Debian's package 'chromium' to see the report drawn")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    with playwright.sync_playwright() as engine:
        program = engine.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield program
        program.close()


FOLDED = "details:not([open])"


class Opened:
    """A page in the browser, with whatever it complained of and whatever it tried to load."""

    def __init__(
        self, browser: Any, file: Path, *, width: int = 1280, scheme: str = "light", anchor: str | None = None
    ) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = context.new_page()
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.route("**/*", self.answer)
        self.page.goto(file.as_uri() + (f"#{anchor}" if anchor else ""))
        self.page.wait_for_function(
            f"[...document.querySelectorAll('.drawing')].every(d => d.querySelector('svg') || d.closest('{FOLDED}'))",
            timeout=60_000,
        )

    def answer(self, route: Any) -> None:
        if route.request.url.startswith("file:"):
            route.continue_()
        else:
            self.requests.append(route.request.url)
            route.abort()


MARKS = """[...document.querySelectorAll('.drawing')].map(drawing => {
  const kinds = ['symbol > path', 'rule > line', 'line > path', 'area > path', 'rect > path', 'text > text'];
  const marks = [...drawing.querySelectorAll(kinds.map(kind => '.mark-' + kind).join(', '))];
  const box = drawing.querySelector('svg').getBoundingClientRect();
  const seen = marks.filter(mark => { const b = mark.getBoundingClientRect(); return b.width > 0 || b.height > 0; });
  const label = drawing.parentElement.getAttribute('aria-label');
  return {label, width: box.width, height: box.height, marks: seen.length};
})"""


def expect_drawn(opened: Opened, figures: Iterable[Any]) -> None:
    """Each of the figures that ``MARKS`` gave has a label, a size and marks, and the page loaded nothing for it."""
    for figure in figures:
        assert figure["label"]
        assert figure["width"] > 100, figure
        assert figure["height"] > 50, figure
        assert figure["marks"] > 0, figure
    assert opened.complaints == []
    assert opened.requests == []
