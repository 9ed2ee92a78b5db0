"""The page of a real diagnosis says what its record says; ``report`` renews it, ``list`` shows it, damage is a line."""

from __future__ import annotations

import html as entities
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from answers import said

from freestone import native
from freestone.doctor import over_time
from freestone.doctor.chart import Chart
from freestone.doctor.observations import Observations
from freestone.records.schema import Summary
from freestone.reports import quantities

Tool = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def patient(repository: Path) -> Path:
    try:
        native.path("libfreestone-heapwatch.so")
    except native.NativePartMissing as error:
        pytest.skip(f"heaps are watched under glibc alone: {error}")
    program = repository / "build" / "patients"
    if not program.exists():
        pytest.fail(f"no patients at {program}: run 'make test'")
    return program


def text_of(page: Path) -> str:
    """What a reader sees, without scripts and styles."""
    text = re.sub(r"<(script|style)\b.*?</\1>", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return " ".join(entities.unescape(re.sub(r"<[^>]+>", " ", text)).split())


@pytest.mark.long
def test_the_page_s_numbers_are_the_record_s(freestone: Tool, patient: Path, only_folder: Callable[[], Path]) -> None:
    done = freestone("doctor", "--goal", "time", "--time-budget", "25", "--", str(patient), "mapping-churn")
    assert done.returncode == 0, done.stderr
    folder = only_folder()
    page = folder / "report.html"
    assert f"Report:  {page.relative_to(folder.parents[1])}" in done.stdout
    text = text_of(page)
    seen = Observations.model_validate_json((folder / "observations.json").read_bytes())
    assert seen.cost is not None
    assert seen.calls is not None
    shown = over_time.drawn(seen, width=100, ascii_only=False) or over_time.lacking(seen)
    assert shown
    assert shown in done.stdout, "it was looked at too seldom to be drawn, and that is said, or it is drawn"
    assert f"minor faults {seen.cost.minor_faults:,}" in text
    for each in seen.calls.by_kind:
        assert f" {each.name} {each.calls:,} " in text
    told = said(freestone("report", "--json", folder))[0]["diagnosis"]  # type: ignore[index]
    for finding in told["findings"]:
        for line in finding["evidence"]:
            assert " ".join(line.split()) in text
    summary = Summary.model_validate_json((folder / "summary.json").read_bytes())
    base = next(each for each in summary.cells if each.configuration == summary.baseline)
    for each in told["tried"]:
        if each["discarded"] is None:
            cell = next(cell for cell in summary.cells if cell.configuration == each["configuration"])
            ratio = cell.ratio["wall_s"]
            assert f"×{quantities.ratio_number(ratio)} {quantities.interval(ratio)}" in text
    if told["best"] is None:  # a machine that is busy with others leaves too few rounds to tell
        verdict = "of what was tried nothing is told apart, and the page says so"
        assert re.search("nothing that was tried is really better for time|too few", text), verdict
    else:
        cell = next(each for each in summary.cells if each.configuration == told["best"])
        assert f"{told['best']} helps: time " in text
        faults = [each.figure("minor_faults") for each in (base, cell)]
        assert f"Minor faults {faults[0]:,.0f} {faults[1]:,.0f} " in text
    before = text
    page.unlink()
    again = freestone("report", folder)
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("mapping-churn: ")
    best = "".join(again.stdout.split()).partition("Bestfortime:")[2].partition("(")[0]
    assert best == (told["best"] or ""), "a terminal breaks long names"
    assert re.sub(r"Written .*? UTC", "", text_of(page)) == re.sub(r"Written .*? UTC", "", before)
    listed = freestone("list").stdout
    assert "doctor -- " in listed
    assert "mapping-churn (" in listed


@pytest.mark.long
def test_what_was_only_looked_at_has_a_page_is_listed_and_may_be_damaged(
    freestone: Tool, patient: Path, only_folder: Callable[[], Path], tmp_path: Path
) -> None:
    assert freestone("doctor", "--observe-only", "--", str(patient), "mapping-churn").returncode == 0
    folder = only_folder()
    assert "It suffers from mapping-churn" in text_of(folder / "report.html")
    assert "Nothing was tried: --observe-only." in text_of(folder / "report.html")
    (listed,) = json.loads(freestone("list", "--json").stdout)
    assert (listed["state"], listed["verb"], listed["rounds"]) == ("complete", "doctor", None)
    assert listed["headline"].startswith("It suffers from mapping-churn (")
    pictures = freestone("report", "--figures", "pictures", folder)
    assert pictures.returncode == 0, pictures.stderr
    assert (tmp_path / "pictures" / "diagnosis.calls-by-size.svg").exists()  # a course of time needs looks
    # as an older Freestone wrote it, and as a newer one may
    chart = json.loads((folder / "doctor.json").read_text())
    older = {key: value for key, value in chart.items() if key not in ("left_out", "given")}
    (folder / "doctor.json").write_text(json.dumps({**older, "of_tomorrow": 1}))
    assert freestone("report", folder).returncode == 0
    assert Chart.model_validate(older).given == {}
    for name, content, line in (
        ("observations.json", "{", "observations.json is damaged: "),
        ("doctor.json", json.dumps({"version": 7}), "doctor.json is damaged: "),
    ):
        kept = (folder / name).read_text()
        (folder / name).write_text(content)
        done = freestone("report", folder)
        assert done.returncode == 5
        assert line in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert line in freestone("list").stderr
        (folder / name).write_text(kept)
    (folder / "observations.json").unlink()
    done = freestone("report", folder)
    assert done.returncode == 5
    assert "nothing was seen yet; go on with: freestone doctor --resume" in done.stderr
    assert "go on with: " in freestone("list").stdout
