"""The page: one file, opened in a browser that has no network."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from opened_page import MARKS, Opened, expect_drawn

from freestone.records import store
from freestone.reports import html

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("browser")]  # what they share is made once


@pytest.fixture(scope="module")
def folder(results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return results.write(tmp_path_factory.mktemp("results") / "one")


@pytest.fixture(scope="module")
def page_file(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return html.write([folder], tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="module")
def opened(browser, page_file: Path) -> Opened:
    """The page as most people see it; for tests that only look."""
    return Opened(browser, page_file)


def test_every_figure_is_drawn_without_a_network(opened: Opened) -> None:
    drawn = opened.page.evaluate(MARKS)
    assert len(drawn) >= 10
    expect_drawn(opened, drawn)


def test_every_raw_point_is_on_the_page(opened: Opened) -> None:
    figure = opened.page.locator("figure", has=opened.page.get_by_role("heading", name="Time of every trial"))
    assert figure.locator("[class*='layer_0_marks'] > path").count() == 4 * 10


def test_dark_and_light_differ_and_both_can_be_read(browser, page_file: Path) -> None:
    look = """() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,
                     getComputedStyle(document.querySelector('.drawing svg .role-axis-label text')).fill]"""
    seen = {}
    for scheme in ("light", "dark"):
        background, ink, label = Opened(browser, page_file, scheme=scheme).page.evaluate(look)
        assert contrast(background, ink) > 7
        assert contrast(background, label) > 4.5
        seen[scheme] = background
    assert luminance(seen["light"]) > 0.8
    assert luminance(seen["dark"]) < 0.05


def test_figures_follow_a_change_of_scheme_and_paper_is_light(browser, page_file: Path) -> None:
    opened = Opened(browser, page_file, scheme="dark")
    look = "getComputedStyle(document.querySelector('.drawing svg .role-axis-label text')).fill"
    dark = opened.page.evaluate(look)
    opened.page.emulate_media(color_scheme="light")
    light = opened.page.evaluate(look)
    assert dark != light
    opened.page.emulate_media(media="print", color_scheme="dark")
    assert opened.page.evaluate(look) == light


@pytest.mark.parametrize("width", [400, 800, 1600])
def test_the_page_never_scrolls_sideways(browser, page_file: Path, width: int) -> None:
    opened = Opened(browser, page_file, width=width)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = opened.page.evaluate(
        "[...document.querySelectorAll('.drawing svg')].map(s => s.getBoundingClientRect().right)"
    )
    assert max(boxes) <= width


def test_every_figure_has_words_and_a_table_instead(opened: Opened) -> None:
    for figure in opened.page.locator("figure").all():
        assert len(figure.locator("[role=img]").get_attribute("aria-label") or "") > 20
        assert figure.locator("details table tbody tr").count() >= 4


def test_the_page_says_what_it_must(page_file: Path, results) -> None:
    text = page_file.read_text()
    experiment = results.experiment
    assert results.summary.headline in text
    for configuration in experiment.configurations:
        assert configuration.allocator.build_id in text
        assert configuration.allocator.file in text
    assert "jemalloc INVALID" in text
    assert "served by /usr/lib/x86_64-linux-gnu/libc.so.6" in text
    assert "killed by SIGSEGV" in text
    assert "AMD EPYC 7B13" in text
    assert "python3 workloads/json_sqlite.py &#39;a b&#39;" in text
    assert "proved in all 10 trials" in text
    assert "proved in 0 of 10 trials" in text
    assert "no difference seen" in text.lower()


def test_what_was_not_measured_is_never_a_number(page_file: Path) -> None:
    text = page_file.read_text()
    for name in ("jemalloc", "tbb"):
        rows = re.findall(rf"<tr><t[hd][^>]*>(?:<span[^>]*></span>)?{name}(?:</t[hd]>|, ).*?</tr>", text, re.S)
        results = [row for row in rows if 'class="absent"' in row]
        assert len(results) == 1
        assert not re.search(r">[^<]*\d", results[0])
    trials = re.findall(r"<tr><td>\d+</td><td>\d+</td><td>(?:jemalloc|tbb)</td>(.*?)</tr>", text)
    assert len(trials) == 20
    for row in trials:
        cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
        assert set(cells[1:]) == {"–"}


def test_the_page_names_no_address_to_load(page_file: Path) -> None:
    text = page_file.read_text()
    page_itself = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert not re.search(r"(src|href)\s*=\s*[\"']?(?!#)", page_itself)
    assert "@import" not in page_itself
    assert "default-src 'none'" in text


def test_machines_are_never_pooled(browser, results, results_maker, tmp_path: Path) -> None:
    one = results.write(tmp_path / "one")
    other = results_maker(("json-sqlite", "redis"), seed=3, machine="Neoverse N1").write(tmp_path / "other")
    opened = Opened(browser, html.write([one, other], tmp_path / "both.html"))
    assert opened.page.locator("h1").first.inner_text() == "2 experiments on 2 machines"
    articles = opened.page.locator("article")
    assert articles.count() == 2
    assert "Neoverse N1" not in articles.nth(0).inner_text()
    assert "AMD EPYC" not in articles.nth(1).inner_text()
    assert articles.nth(1).locator("table.results").count() == 2
    assert opened.complaints == []


@pytest.fixture(scope="module")
def many_file(results_maker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    made = results_maker(("json-sqlite", "redis", "lua"), seed=5)
    return html.write([made.write(folder / "results")], folder / "report.html")


DRAWN = "fold => [...fold.querySelectorAll('.drawing')].map(d => d.querySelector('svg')?.getBoundingClientRect().width)"


def test_a_square_of_the_overview_opens_its_workload(browser, many_file: Path) -> None:
    opened = Opened(browser, many_file)
    folds = opened.page.locator("details.fold")
    assert [each.locator("summary h3").inner_text() for each in folds.all()] == ["json-sqlite", "redis", "lua"]
    assert opened.page.locator("details.fold[open]").count() == 0
    assert set(folds.nth(1).evaluate(DRAWN)) == {None}, "what nobody sees is not drawn"
    rows = opened.page.locator("section[aria-label=Overview] .mark-rect path")
    rows.nth(5 + 2).click(position={"x": 9, "y": 9})  # its number stands in the middle
    opened.page.wait_for_function("document.querySelectorAll('details.fold[open]').length === 1")
    assert opened.page.url.endswith("#experiment-1-workload-2")
    opened.page.wait_for_function(
        "[...document.querySelectorAll('details.fold[open] .drawing')].every(d => d.querySelector('svg'))"
    )
    assert min(folds.nth(1).evaluate(DRAWN)) > 100
    assert opened.page.locator("details.fold[open] summary h3").inner_text() == "redis"
    assert opened.complaints == []
    assert opened.requests == []


def test_an_address_with_a_workload_opens_it(browser, many_file: Path) -> None:
    opened = Opened(browser, many_file, anchor="experiment-1-workload-3")
    assert opened.page.locator("details.fold[open] summary h3").all_inner_texts() == ["lua"]
    assert opened.page.evaluate("scrollY") > 0


def test_paper_has_every_workload_drawn(browser, many_file: Path, tmp_path: Path) -> None:
    opened = Opened(browser, many_file)
    opened.page.pdf(path=tmp_path / "report.pdf")
    drawn = opened.page.evaluate("[...document.querySelectorAll('.drawing')].map(d => d.querySelector('svg') !== null)")
    assert all(drawn)
    assert len(drawn) > 30
    assert opened.page.locator("details.fold[open]").count() == 0, "the screen is as it was"
    assert opened.complaints == []


def test_every_figure_has_an_identifier_of_its_own(many_file: Path) -> None:
    identifiers = re.findall(
        r' id="([^"]+)"', re.sub(r"<script(?! type=).*?</script>", "", many_file.read_text(), flags=re.S)
    )
    assert len(identifiers) > 30
    assert len(set(identifiers)) == len(identifiers)


def test_text_from_outside_stays_text(browser, results, tmp_path: Path) -> None:
    evil = "</script><script>document.title='taken'</script><img src=x onerror=document.title='taken'>"
    cells = [c.model_copy(update={"reason": evil, "note": evil}) for c in results.summary.cells]
    summary = results.summary.model_copy(update={"headline": evil, "cells": cells})
    first = results.experiment.workloads[0].model_copy(update={"command": ["sh", "-c", evil]})
    experiment = results.experiment.model_copy(update={"workloads": [first], "command_line": [evil]})
    folder = type(results)(experiment, results.records, summary).write(tmp_path / "evil")
    opened = Opened(browser, html.write([folder], tmp_path / "evil.html"))
    assert "taken" not in opened.page.title().split("·")[1]
    assert opened.page.locator("h1").inner_text() == evil
    assert opened.complaints == []


def test_a_workload_named_like_markup_does_not_leave_its_figure(browser, results_maker, tmp_path: Path) -> None:
    name = "</script><b>json"
    opened = Opened(browser, html.write([results_maker((name,)).write(tmp_path / "odd")], tmp_path / "odd.html"))
    assert opened.page.locator("h2").first.inner_text() == name
    assert opened.complaints == []


def test_an_experiment_in_which_nothing_counts_has_a_page(browser, results, tmp_path: Path) -> None:
    records = [
        r.model_copy(update={"status": "failed", "reason": "exit status 1", "metrics": None}) for r in results.records
    ]
    cells = [
        c.model_copy(update={"status": "failed", "reason": "exit status 1", "median": {}, "ratio": {}, "trials_ok": 0})
        for c in results.summary.cells
    ]
    summary = results.summary.model_copy(update={"cells": cells, "noise": {}, "headline": "Nothing was measured."})
    folder = type(results)(results.experiment, records, summary).write(tmp_path / "none")
    opened = Opened(browser, html.write([folder], tmp_path / "none.html"))
    assert opened.page.locator(".absent").count() == 6
    assert opened.complaints == []


def test_an_experiment_with_too_few_rounds_has_a_page(browser, results, tmp_path: Path) -> None:
    unknown = {"low": 0.0, "high": math.inf, "different": False}
    cells = [
        c.model_copy(update={"ratio": {key: r.model_copy(update=unknown) for key, r in c.ratio.items()}})
        for c in results.summary.cells
    ]
    noise = {w: {key: r.model_copy(update=unknown) for key, r in n.items()} for w, n in results.summary.noise.items()}
    summary = results.summary.model_copy(update={"cells": cells, "noise": noise, "headline": "Too few rounds."})
    folder = type(results)(results.experiment, results.records, summary).write(tmp_path / "few")
    opened = Opened(browser, html.write([folder], tmp_path / "few.html"))
    text = opened.page.locator("article").inner_text()
    assert "too few rounds" in text
    assert "Infinity" not in text
    assert "no difference seen" not in text
    assert opened.complaints == []


def test_notes_of_trials_are_told_once_with_their_number(results, tmp_path: Path) -> None:
    records = [
        r.model_copy(update={"notes": ["a daemon was left behind"]}) if r.configuration == "mimalloc" else r
        for r in results.records
    ]
    folder = type(results)(results.experiment, records, results.summary).write(tmp_path / "notes")
    text = html.write([folder], tmp_path / "notes.html").read_text()
    assert text.count("mimalloc: a daemon was left behind (10 of 10 trials)") == 1


def test_damaged_records_are_named_and_left_out(results, tmp_path: Path) -> None:
    folder = results.write(tmp_path / "damaged")
    with (folder / store.TRIALS_FILE).open("a") as file:
        file.write('{"half": ')
    assert "1 damaged, left out" in html.write([folder], tmp_path / "damaged.html").read_text()


def test_an_interrupted_experiment_says_how_far_it_came(results, tmp_path: Path) -> None:
    summary = results.summary.model_copy(update={"rounds_complete": 7})
    folder = type(results)(results.experiment, results.records, summary).write(tmp_path / "part")
    assert "7 of 10 rounds are complete" in html.write([folder], tmp_path / "part.html").read_text()


def test_a_folder_as_destination_gets_the_usual_name(folder: Path, tmp_path: Path) -> None:
    assert html.write([folder], tmp_path) == tmp_path / "report.html"


def test_what_cannot_be_read_or_written_is_one_line(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(html.ReportError, match="at least one"):
        html.write([], tmp_path / "x.html")
    with pytest.raises(store.StoreError, match="does not exist"):
        html.write([tmp_path / "absent"], tmp_path / "x.html")
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(html.ReportError, match="cannot write") as caught:
        html.write([folder], blocked / "x.html")
    assert "\n" not in str(caught.value)


def test_figure_data_is_json(page_file: Path) -> None:
    documents = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page_file.read_text(), re.S)
    assert len(documents) >= 10
    for document in documents:
        assert json.loads(document)["$schema"].startswith("https://vega.github.io/schema/vega-lite/")


def contrast(one: str, other: str) -> float:
    """WCAG contrast ratio of two computed colours, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_what_no_preload_reaches_is_on_the_page(results, tmp_path: Path) -> None:
    told = "31 % of this program's memory comes from malloc"
    summary = results.summary.model_copy(update={"notes": {results.summary.cells[0].workload: [told]}})
    folder = type(results)(results.experiment, results.records, summary).write(tmp_path / "heaps")
    assert told.replace("'", "&#39;") in html.write([folder], tmp_path / "heaps.html").read_text()
