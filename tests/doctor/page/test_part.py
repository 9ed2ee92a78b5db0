"""The page of a diagnosis: whatever was seen has one, its numbers are the record's, and what is lacking is a line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freestone.doctor import symptoms
from freestone.doctor.diagnosis import Diagnosis
from freestone.doctor.observations import Observations
from freestone.doctor.over_time import faults_between
from freestone.doctor.page import diagnosis_part
from freestone.reports import html
from freestone.reports.quantities import Scale

RECORDED = sorted((Path(__file__).parents[1] / "recorded").glob("*.json"))
PARTS = ("cost", "course", "calls", "heap", "kept_at_end", "prices")


def read(file: Path) -> Observations:
    return Observations.model_validate_json(file.read_bytes())


def told(seen: Observations) -> Diagnosis:
    return Diagnosis("20261126T000000Z-doctor-x", None, seen, symptoms.name(seen), "balanced", None, None)


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_a_page_says_what_was_recorded(file: Path) -> None:
    seen = read(file)
    part = diagnosis_part(told(seen))
    assert [each.name for each in part.symptoms] == [each.symptom for each in symptoms.name(seen)]
    assert [each.evidence for each in part.symptoms] == [list(each.evidence) for each in symptoms.name(seen)]
    by_title = {figure.title: figure for figure in part.figures}
    if seen.calls is not None:
        assert part.calls is not None
        shown = {row[0]: row[1] for row in part.calls.rows}
        assert shown == {each.name: f"{each.calls:,}" for each in seen.calls.by_kind}
        sizes = {(kind, size): calls for kind, size, calls in by_title["Calls by size"].numbers.rows}
        assert sum(int(calls.replace(",", "")) for calls in sizes.values()) == sum(
            calls for each in seen.calls.by_kind for calls in each.sizes.values()
        )
    if "Resident size" in by_title:
        scale = Scale.over("memory", [each.rss_kib for each in seen.course])
        looks = {each.at_s: each.rss_kib for each in seen.course}
        assert by_title["Resident size"].numbers.rows == [[f"{at:.3f} s", scale.text(kib)] for at, kib in looks.items()]
        assert f"{faults_between(seen.course):,} minor faults" in by_title["Page faults a second"].caption
    if "The heap" in by_title:
        assert seen.heap is not None
        scale = Scale.over("memory", [each.live_kib for each in seen.heap.points])
        assert by_title["The heap"].numbers.rows[-1][1] == scale.text(seen.heap.points[-1].live_kib)


@settings(max_examples=25, deadline=None)
@given(
    file=st.sampled_from(RECORDED),
    gone=st.sets(st.sampled_from(PARTS)),
    why=st.text(st.characters(codec="utf-8"), min_size=1, max_size=40),
    words=st.lists(st.text(st.characters(codec="utf-8"), max_size=20), min_size=1, max_size=4),
)
def test_what_was_not_seen_is_a_line_and_no_figure(file: Path, gone: set[str], why: str, words: list[str]) -> None:
    seen = read(file)
    blank: dict[str, object] = {part: [] if part == "course" else None for part in gone}
    unseen = {part: why for part in gone if part in ("cost", "course", "calls", "heap")}
    seen = seen.model_copy(update={**blank, "unseen": unseen, "command": words})
    part = diagnosis_part(told(seen))
    assert dict(part.unseen) == unseen
    titles = {figure.title for figure in part.figures}
    if "course" in gone:
        assert not titles & {"Resident size", "Virtual size", "Page faults a second"}
        assert any(why in line for line in part.lacking_over_time)
    if "heap" in gone:
        assert "The heap" not in titles
        assert any(why in line for line in part.lacking_over_time)
    if "calls" in gone:
        assert part.calls is None
        assert part.call_sizes is None
        assert any(why in line for line in part.lacking_calls)
    for figure in part.figures:
        json.loads(figure.document)
        assert "<" not in figure.document
    page = html.render([part])
    assert page.rstrip().endswith("</html>")
    assert part.headline
    if "cost" in gone and not seen.own_heaps:
        assert part.headline == f"Nothing could be observed: {why}"


def test_nothing_a_program_is_called_is_taken_for_markup() -> None:
    seen = read(RECORDED[0]).model_copy(update={"command": ["<script>alert(1)</script>"], "unseen": {"<b>": "<i>"}})
    page = html.render([diagnosis_part(told(seen))])
    assert "<script>alert" not in page
    assert "<b>" not in page
    assert page.count("&lt;script&gt;alert(1)") >= 1


def test_each_symptom_leads_to_its_explanation() -> None:
    page = html.render([diagnosis_part(told(read(RECORDED[0])))])
    links = re.findall(r'href="#([\w-]+-explained-\d+)"', page)
    assert links
    assert all(f'id="{link}"' in page for link in links)
