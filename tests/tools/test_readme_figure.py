"""The README's measurement: everything in it comes from a results folder, and taking it twice changes nothing."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime
from pathlib import Path

import pytest

import readme_figure
from freestone.analysis import summarise
from freestone.records import store
from freestone.records.schema import (
    Allocator,
    Configuration,
    Experiment,
    Machine,
    Metrics,
    Proof,
    TrialRecord,
    Workload,
)
from freestone.reports import table

pytestmark = pytest.mark.long

ROUNDS = 6


def experiment() -> Experiment:
    titles = {"glibc": "glibc", "freestone": "libfreestone", "own": "Own malloc"}
    return Experiment(
        id="20261120T130000Z-json",
        created_at="2026-11-20T13:00:00Z",
        freestone_version="0.1.0",
        command_line=["freestone", "compare"],
        machine=Machine(id="here", facts={"cpu": "A processor", "cores_allowed": 2, "kernel": "6.1.0-17-amd64"}),
        workloads=[Workload(name="json", command=["true"])],
        configurations=[
            Configuration(name=name, allocator=Allocator(name=name, title=title, version="1.0"))
            for name, title in titles.items()
        ],
        baseline="glibc",
        rounds=ROUNDS,
        seed=1,
    )


def trials() -> list[TrialRecord]:
    wall = {"glibc": 2.0, "freestone": 1.5}
    rows: list[TrialRecord] = []
    for turn in range(ROUNDS):
        for name, repeat in (("glibc", 0), ("glibc", 1), ("freestone", 0), ("own", 0)):
            served = name in wall
            metrics = Metrics(
                wall_s=wall[name] * (1 + 0.01 * turn + 0.002 * repeat),
                user_s=1.0,
                sys_s=0.1,
                peak_rss_kib=100 * 1024,
                end_rss_kib=90 * 1024,
                minor_faults=20_000,
            ) if served else None  # fmt: skip
            rows.append(
                TrialRecord(
                    experiment="20261120T130000Z-json",
                    workload="json",
                    configuration=name,
                    round=turn,
                    position=len(rows) % 4,
                    repeat=repeat,
                    started_at="2026-11-20T13:00:00Z",
                    status="ok" if served else "invalid",
                    reason=None if served else "own malloc: the program carries jemalloc",
                    metrics=metrics,
                    proof=Proof(valid=served),
                )
            )
    return rows


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = store.create_folder(tmp_path / "results", "json", datetime(2026, 11, 20, 13, tzinfo=UTC))
    store.write_experiment(folder, experiment())
    with store.TrialLog(folder) as log:
        for row in trials():
            log.append(row)
    store.write_summary(folder, summarise(experiment(), trials()))
    return folder


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of which nothing but the README matters."""
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "README.md").write_text(f"before\n{readme_figure.BEGIN}\nold\n{readme_figure.END}\nafter\n")
    monkeypatch.setattr(readme_figure, "REPOSITORY", folder)
    return folder


def test_the_table_and_the_pictures_are_put_between_the_markers(results: Path, tree: Path) -> None:
    assert readme_figure.main([str(results)]) == 0
    text = (tree / "README.md").read_text()
    assert text.startswith(f"before\n{readme_figure.BEGIN}\n")
    assert text.endswith(f"{readme_figure.END}\nafter\n")
    assert "old" not in text
    sources = re.findall(r'src(?:set)?="([^"]+)"', text)
    assert len(sources) == 4
    beginnings = {".png": b"\x89PNG", ".svg": b"<svg"}
    assert all((tree / source).read_bytes().startswith(beginnings[Path(source).suffix]) for source in sources)


def test_the_terminal_shows_what_compare_prints(results: Path, tree: Path) -> None:
    readme_figure.main([str(results)])
    summary = summarise(experiment(), trials())
    printed = table.render(summary, width=readme_figure.width_of(summary), colour=False)
    for name in ("terminal-light.svg", "terminal-dark.svg"):
        shown = text_of(tree / "docs" / "images" / name)
        assert shown.startswith("$freestonecompare--json" + "".join(printed.split()))


def test_a_picture_of_the_terminal_is_whole_without_a_network(results: Path, tree: Path) -> None:
    readme_figure.main([str(results)])
    picture = (tree / "docs" / "images" / "terminal-dark.svg").read_text(encoding="utf-8")
    assert not re.search(r"url\((?!#)|href=|https?://(?!www\.w3\.org/2000/svg)", picture)


def test_the_terminal_names_no_folder_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    here = "/home/somebody/elsewhere"
    file = "/home/somebody/.cache/libfreestone.so"
    workload = Workload(
        name="json", command=[f"{here}/.venv/bin/python", f"{here}/workload.py"], directory=here, environment={}
    )
    best = Allocator(name="freestone", title="libfreestone", file=file, preload=[file])
    configurations = [
        Configuration(name=each.name, allocator=best) if each.name == "freestone" else each
        for each in experiment().configurations
    ]
    taken = experiment().model_copy(update={"workloads": [workload], "configurations": configurations})
    shown = readme_figure.terminal(taken, summarise(taken, trials()))
    assert "LD_PRELOAD=~/.cache/libfreestone.so ~/freestone/.venv/bin/python ~/freestone/workload.py" in shown
    assert "somebody" not in shown


def text_of(picture: Path) -> str:
    """What an SVG of a terminal shows, line by line, without the blanks."""
    lines: dict[float, list[tuple[float, str]]] = {}
    for element in ElementTree.parse(picture).getroot().iter("{http://www.w3.org/2000/svg}text"):
        if element.get("clip-path"):
            place = float(element.get("x", "0")), "".join(element.itertext())
            lines.setdefault(float(element.get("y", "0")), []).append(place)
    return "".join("".join(text.split()) for _, parts in sorted(lines.items()) for _, text in sorted(parts))


def test_the_rows_are_the_measurement(results: Path, tree: Path) -> None:
    readme_figure.main([str(results)])
    text = (tree / "README.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert [row.split(" | ")[0] for row in rows] == ["| libfreestone 1.0", "| glibc 1.0", "| Own malloc 1.0"]
    assert re.search(r"1\.5\d s \| 0\.7[45]\d \[", rows[0])
    assert rows[1].split(" | ")[2] == "1"
    assert len({row.count("|") for row in rows}) == 1


def test_a_cell_that_is_not_valid_shows_its_reason_and_no_number(results: Path, tree: Path) -> None:
    readme_figure.main([str(results)])
    (row,) = [line for line in (tree / "README.md").read_text().splitlines() if "Own malloc" in line]
    assert "INVALID: own malloc" in row
    assert not re.search(r"\d", row.replace("Own malloc 1.0", ""))


def test_taking_it_twice_changes_nothing(results: Path, tree: Path) -> None:
    readme_figure.main([str(results)])
    once = (tree / "README.md").read_text()
    readme_figure.main([str(results)])
    assert (tree / "README.md").read_text() == once


def test_a_folder_without_a_measurement_is_one_line(
    tmp_path: Path, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (tree / "README.md").read_text()
    assert readme_figure.main([str(tmp_path / "nothing")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert (tree / "README.md").read_text() == before


def test_a_readme_without_the_markers_is_left_alone(
    results: Path, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "README.md").write_text("nothing marked\n")
    assert readme_figure.main([str(results)]) == 1
    assert "no place for a measurement" in capsys.readouterr().err
    assert (tree / "README.md").read_text() == "nothing marked\n"
