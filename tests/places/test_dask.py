"""A real scheduler of Dask with workers in folders of their own; one is killed in the middle."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ordered import TRIALS, Ordered, begun
from own_clusters.dask import Cluster, free_ports
from waiting import soon

from freestone.records import store

COMMAND = [sys.executable, "-m", "freestone"]


@pytest.fixture
def cluster(tmp_path: Path, environment: dict[str, str]) -> Iterator[Cluster]:
    made = Cluster(tmp_path, environment)
    yield made
    made.end()


def test_a_worker_that_is_killed_costs_a_trial(cluster: Cluster, tmp_path: Path, environment: dict[str, str]) -> None:
    cluster.worker("one", processor=0)
    cluster.worker("other")
    ordered = Ordered(tmp_path, environment, COMMAND, f"dask:{cluster.address}#one,other")
    assert begun(tmp_path / "other")
    cluster.kill("other")
    (lost,) = (tmp_path / "other" / "cache" / "freestone" / "orders").iterdir()
    assert soon(lambda: not store.is_being_written(lost), 60), "no lab is left behind that measures on"
    kept = (lost / store.TRIALS_FILE).read_bytes()
    assert 2 <= len(kept.splitlines()) < TRIALS
    cluster.worker("other")
    assert ordered.ended() == 0, ordered.said.read_text()
    assert ordered.trials() == {"dask-one": TRIALS, "dask-other": TRIALS}
    assert (ordered.folder / "dask-other" / store.TRIALS_FILE).read_bytes().startswith(kept), "nothing twice"
    if (os.cpu_count() or 1) > 1:
        machines = {store.read_experiment(place).machine.id for place in store.places(ordered.folder)}
        assert len(machines) == 2, "one of them has one processor: neither goes on with what the other began"
        assert "dask-one, dask-other are one machine, measured more than once" in ordered.said.read_text()


def test_a_scheduler_that_does_not_answer_is_one_line(tmp_path: Path, environment: dict[str, str]) -> None:
    ordered = Ordered(tmp_path, environment, COMMAND, f"dask:tcp://127.0.0.1:{free_ports(1)[0]}")
    assert ordered.ended() == 3
    said = ordered.said.read_text()
    assert "dask: no scheduler answers at tcp://127.0.0.1:" in said
    assert "Traceback" not in said


def test_a_place_that_nobody_serves_is_told_and_can_be_interrupted(
    cluster: Cluster, tmp_path: Path, environment: dict[str, str]
) -> None:
    cluster.worker("one")
    ordered = Ordered(tmp_path, environment, COMMAND, f"dask:{cluster.address}#one,absent")
    assert soon(lambda: "dask-absent: waits for a worker with the resource absent" in ordered.said.read_text(), 90)
    assert soon(lambda: ordered.trials().get("dask-one") == TRIALS, 90)
    ordered.process.terminate()
    assert ordered.ended() in (130, 143)
    assert "go on with: " in ordered.said.read_text()


def test_an_order_that_is_interrupted_measures_nothing_more_and_goes_on(
    cluster: Cluster, tmp_path: Path, environment: dict[str, str]
) -> None:
    cluster.worker("one")
    ordered = Ordered(tmp_path, environment, COMMAND, f"dask:{cluster.address}#one")
    assert begun(tmp_path / "one", 3)
    (there,) = (tmp_path / "one" / "cache" / "freestone" / "orders").iterdir()
    ordered.process.terminate()
    assert ordered.ended() in (130, 143), ordered.said.read_text()
    assert soon(lambda: not store.is_being_written(there), 60), "the lab there has ended"
    measured = store.read_trials(there).records
    assert 3 <= len(measured) < TRIALS
    words = [*COMMAND, "compare", "--resume", str(ordered.folder)]
    assert subprocess.run(words, env=environment, cwd=tmp_path, check=False).returncode == 0
    assert ordered.trials() == {"dask-one": TRIALS}
    assert store.read_trials(there).records[: len(measured)] == measured, "nothing twice"


def test_whoever_is_gone_without_a_word_leaves_nobody_measuring(
    cluster: Cluster, tmp_path: Path, environment: dict[str, str]
) -> None:
    cluster.worker("one")
    ordered = Ordered(tmp_path, environment, COMMAND, f"dask:{cluster.address}#one")
    assert begun(tmp_path / "one")
    (there,) = (tmp_path / "one" / "cache" / "freestone" / "orders").iterdir()
    ordered.process.kill()
    assert soon(lambda: not store.is_being_written(there), 60)
    assert len(store.read_trials(there).records) < TRIALS


def test_a_scheduler_that_goes_away_is_one_line_and_costs_one_place(
    cluster: Cluster, tmp_path: Path, environment: dict[str, str]
) -> None:
    cluster.worker("one")
    ordered = Ordered(tmp_path, environment, COMMAND, f"dask:{cluster.address}#one", "local")
    assert begun(tmp_path / "one")
    cluster.kill("scheduler")
    assert ordered.ended() == 4, ordered.said.read_text()
    assert ordered.trials() == {"local": TRIALS}
    said = ordered.said.read_text()
    assert f"dask-one: the scheduler at {cluster.address} is gone, or has cancelled the order" in said
    assert "Traceback" not in said
    assert "distributed" not in said
    assert "not finished: dask-one; go on with: " in said
