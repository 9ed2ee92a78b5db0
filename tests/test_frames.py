"""``freestone.load``: data frames that say the same as the records, and the example notebook."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbclient
import nbformat
import pytest

import freestone
from freestone.analysis import summarise
from freestone.records import store
from freestone.records.schema import Experiment, TrialRecord
from freestone.records.store import StoreError

EXAMPLE = Path(__file__).resolve().parents[1] / "docs" / "notebooks" / "overview.ipynb"


@pytest.fixture
def folder(tmp_path: Path, make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord]) -> Path:
    """Five rounds of two allocators that can be measured, and of one that fails."""
    experiment = make_experiment(("glibc", "freestone", "broken"), rounds=5)
    store.write_experiment(tmp_path, experiment)
    with store.TrialLog(tmp_path) as log:
        for number in range(5):
            wall_s = 1 + number / 100
            log.append(make_record("glibc", number, wall_s=wall_s))
            log.append(make_record("glibc", number, repeat=1, wall_s=wall_s))
            faster = make_record("freestone", number, wall_s=wall_s / 2)
            log.append(faster.model_copy(update={"figures": {"seconds": 0.5}}))
            log.append(make_record("broken", number, status="failed"))
    return tmp_path


def test_every_trial_is_a_row(folder: Path) -> None:
    trials, records = freestone.load(folder).trials, store.read_trials(folder).records
    told = zip(trials["configuration"], trials["round"], trials["repeat"], trials["wall_s"].fillna(0), strict=True)
    wall_s = [0.0 if each.metrics is None else each.metrics.wall_s for each in records]
    mine = [(each.configuration, each.round, each.repeat) for each in records]
    assert sorted(told) == sorted((*key, time) for key, time in zip(mine, wall_s, strict=True))
    assert trials["figure:seconds"].dropna().tolist() == [0.5] * 5


def test_cells_are_the_summary_and_the_others_are_left_out(folder: Path) -> None:
    found = freestone.load(folder)
    summary = summarise(store.read_experiment(folder), store.read_trials(folder).records)
    for cell in summary.cells:
        mine = found.cells[(found.cells.workload == cell.workload) & (found.cells.configuration == cell.configuration)]
        assert dict(zip(mine.metric, mine["median"], strict=True)) == (cell.median if cell.status == "ok" else {})
    time = found.cells[(found.cells.configuration == "freestone") & (found.cells.metric == "wall_s")]
    assert time.ratio.item() == pytest.approx(0.5)
    assert time.low.item() <= time.ratio.item() <= time.high.item()
    assert found.left_out[["configuration", "status"]].values.tolist() == [["broken", "failed"]]


def test_damaged_lines_are_left_out_with_a_warning(folder: Path, tmp_path: Path) -> None:
    whole = len(freestone.load(folder).trials)
    with (folder / store.TRIALS_FILE).open("a") as log:
        log.write("{half a rec\n")
    with pytest.warns(UserWarning, match="1 damaged"):
        assert len(freestone.load(folder).trials) == whole
    with pytest.raises(StoreError, match="does not exist"):
        freestone.load(tmp_path / "nowhere")


def test_the_example_runs_from_top_to_bottom(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FREESTONE_RESULTS", str(folder))
    book = nbformat.read(EXAMPLE, as_version=4)
    assert all(not cell.outputs for cell in book.cells if cell.cell_type == "code"), "committed without outputs"
    client = nbclient.NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [each for each in outputs if each.output_type in ("error", "stream")]
    assert [each for each in outputs if "vegaEmbed" in each.get("data", {}).get("text/html", "")]


def test_the_command_line_does_not_load_it() -> None:
    script = "import sys, freestone.cli; sys.exit('pandas' in sys.modules or 'freestone.frames' in sys.modules)"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    assert subprocess.run([sys.executable, "-c", script], env=environment).returncode == 0
