"""Every suite, one after the other: what a later session finds of an earlier one. Small suites, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone import suites
from freestone.commands import bench_all, bench_suites
from freestone.commands.bench_request import BenchRequest
from freestone.experiments.plan import PlanError
from freestone.records import store
from freestone.records.store import StoreError
from freestone.suites import SuiteError

WISH = BenchRequest(["glibc"], 1, None, [], False, None, None, None, None, 60.0, 7)

SUITE = """
title = "one program"
[[workload]]
name = "{name}-work"
command = ["true"]
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three suites in place of those that come along; a folder for results."""
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.toml").write_text(SUITE.format(name=name))
    load = suites.load
    monkeypatch.setattr(suites, "leaders", lambda: ["one", "two", "three"])
    monkeypatch.setattr(suites, "load", lambda name: load(str(tmp_path / f"{name}.toml")))
    results = tmp_path / "results"
    results.mkdir()
    return results


def ends_with(monkeypatch: pytest.MonkeyPatch, status: int, at: str) -> Callable[[], None]:
    """One suite's measuring ends with a status before it has begun, until told otherwise."""
    real = bench_suites.measured

    def measured(folder: Path, *args: object, **options: object) -> int:
        return status if folder.name.endswith(at) else real(folder, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(bench_suites, "measured", measured)
    return lambda: monkeypatch.setattr(bench_suites, "measured", real)


def trials(results: Path) -> dict[str, int]:
    folders = sorted(folder for folder in results.iterdir() if folder.is_dir())
    return {folder.name.rpartition("-")[2]: len(store.read_trials(folder).records) for folder in folders}


@pytest.mark.long
def test_an_interrupted_run_of_all_suites_goes_on_where_it_was(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    as_ever = ends_with(monkeypatch, 130, "two")
    assert bench_all.begun(small, WISH, None) == 130
    assert trials(small) == {"one": 2, "two": 0}
    assert f"all suites go on with: freestone bench --resume {small}" in capsys.readouterr().err
    as_ever()
    assert bench_all.is_begun(small)
    assert bench_all.resumed(small, []) == 0
    assert trials(small) == {"one": 2, "two": 2, "three": 2}
    page = (small / bench_all.REPORT).read_text()
    assert all(f"{name}-work" in page for name in ("one", "two", "three"))
    assert bench_all.resumed(small, []) == 0, "once all is measured there is nothing but the report to write again"
    assert trials(small) == {"one": 2, "two": 2, "three": 2}


def test_what_failed_in_an_earlier_session_is_still_said_at_the_end(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (small.parent / "one.toml").write_text(SUITE.format(name="one").replace("true", "false"))
    ends_with(monkeypatch, 143, "three")
    assert bench_all.begun(small, WISH, None) == 143
    monkeypatch.undo()
    assert json.loads((small / "all.json").read_text())["ended"] == {"one": 3, "two": 0}


def test_a_full_disk_stops_all_and_is_no_end(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends_with(monkeypatch, 5, "one")
    assert bench_all.begun(small, WISH, None) == 5
    assert json.loads((small / "all.json").read_text())["ended"] == {}


def test_other_settings_and_a_damaged_account_are_refused_in_one_line(small: Path) -> None:
    (small / "all.json").write_text('{"request": 7}')
    with pytest.raises(StoreError, match=r"all\.json is damaged .* resume each suite's own folder") as damaged:
        bench_all.resumed(small, [])
    assert "\n" not in str(damaged.value)
    with pytest.raises(PlanError, match="leave out --quick"):
        bench_all.resumed(small, ["--quick"])


def test_what_is_for_single_suites_is_refused(small: Path) -> None:
    with pytest.raises(SuiteError, match="--only and --idle are for single suites"):
        bench_all.begun(small, BenchRequest(None, 1, None, ["x"], False, None, None, None, None, None, None), None)
    assert not bench_all.is_begun(small)
