"""Reports of many machines: what each more of them costs does not grow with their number."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest

from freestone.commands.report import report
from freestone.records import store
from simulated_fleet import cost, fleet, machines

pytestmark = pytest.mark.long

SIZES = (20, 40, 80)
MOST_GROWTH = 1.5
"""One machine among many may cost so many times what one among few does."""


@pytest.fixture(scope="module")
def fleets(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Orders of each size, reported once, so that nothing is left to be made that is made once only."""
    results = tmp_path_factory.mktemp("fleets")
    folders = [fleet.write(results, size, seed=1, rounds=4) for size in SIZES]
    report(folders[0])
    return folders


def _per_machine(costs: list[int]) -> list[float]:
    """What one machine more costs, among few and among many; what every report costs cancels out."""
    pairs = zip(costs, costs[1:], SIZES, SIZES[1:], strict=False)
    return [(after - before) / (more - fewer) for before, after, fewer, more in pairs]


def _work(folder: Path) -> Counter[str]:
    """Calls of functions, and files opened, in one report."""
    counted: Counter[str] = Counter()

    def count(_: FrameType, event: str, called: object) -> None:
        if event == "call":
            counted["calls"] += 1
        elif event == "c_call" and getattr(called, "__name__", "") == "open":
            counted["opened"] += 1

    gc.disable()  # finalizers are called whenever it runs
    sys.setprofile(count)
    try:
        assert report(folder) == 0
    finally:
        sys.setprofile(None)
        gc.enable()
    return counted


def test_work_for_one_machine_is_the_same_among_many(fleets: list[Path]) -> None:
    found = [_work(folder) for folder in fleets]
    for what in ("calls", "opened"):
        few, many = _per_machine([each[what] for each in found])
        assert 0 < many <= MOST_GROWTH * few, (what, few, many)


def test_memory_for_one_machine_is_the_same_among_many_and_little(fleets: list[Path]) -> None:
    peaks = []
    for folder in fleets:
        gc.collect()
        tracemalloc.start()
        assert report(folder) == 0
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    few, many = _per_machine(peaks)
    assert many <= MOST_GROWTH * max(few, 16 << 10), (few, many)
    records = (fleets[0] / store.places(fleets[0])[0] / store.TRIALS_FILE).stat().st_size
    assert many < records / 2, "its trials are let go of"


def test_the_page_grows_by_a_row_for_each_machine(fleets: list[Path]) -> None:
    for folder in fleets:
        assert (folder / store.REPORT_FILE).exists() or report(folder) == 0, "each test may run alone"
    few, many = _per_machine([(folder / store.REPORT_FILE).stat().st_size for folder in fleets])
    assert many <= MOST_GROWTH * few
    assert many < 1024


def test_kinds_have_their_shares_and_rankings_that_differ() -> None:
    drawn = Counter(machines.of_place(number).name for number in range(1000))
    assert drawn == {kind.name: 10 * kind.share for kind in machines.KINDS}
    best = {kind.name: min(kind.time, key=lambda name: kind.time[name]) for kind in machines.KINDS}
    assert len(set(best.values())) > 2
    assert any(min(each) < 1 < max(each) for each in zip(*(kind.time.values() for kind in machines.KINDS), strict=True))


def test_a_table_of_costs_has_a_row_for_each_size() -> None:
    rows = cost.table([cost.Cost(1000, 2_000_000, 1.25, 2048, 160_000, None)]).splitlines()
    assert rows[-1] == "| 1,000 | 2.0 MB | 1.2 s | 2 MiB | 0.16 MB | – |"
