"""Trials on this machine: which arms are rehearsed, and what a trial is told."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from freestone.analysis.rounds import Slot
from freestone.experiments import LocalTrials, local
from freestone.experiments.events import HeapsSeen, NeverReady, ToldNothing
from freestone.records.schema import Asked, Configuration, Experiment, Proof, TrialRecord
from freestone.records.store import StoreError
from freestone.trials import Permissions, Rehearsal, placement
from freestone.trials.evidence import Rehearsed

ARMS = [("one", "b"), ("two", "a"), ("one", "a")]


@pytest.mark.parametrize(("perf", "expected"), [(True, [("one", "b"), ("two", "a")]), (False, ARMS)])
def test_every_arm_is_rehearsed_only_where_timed_trials_have_no_census(
    make_experiment: Callable[..., Experiment],
    monkeypatch: pytest.MonkeyPatch,
    perf: bool,
    expected: list[tuple[str, str]],
) -> None:
    monkeypatch.setattr(local, "permissions", lambda: Permissions(perf=perf, ptrace=True))
    assert sorted(LocalTrials(make_experiment()).rehearsals(ARMS)) == sorted(expected)


@pytest.mark.parametrize("perf", [True, False])
def test_a_trial_knows_its_place_its_limit_and_what_its_rehearsal_has_shown(
    perf: bool,
    make_experiment: Callable[..., Experiment],
    make_record: Callable[..., TrialRecord],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = make_experiment(timeout_s=7.0)
    told: list[dict[str, Any]] = []

    def run_trial(workload: object, configuration: object, **more: Any) -> TrialRecord:
        assert more["scratch"].is_dir()
        told.append(more)
        return make_record("glibc", 3)

    monkeypatch.setattr(local, "run_trial", run_trial)

    def rehearse(workload: object, configuration: object, *, counting: bool, **more: Any) -> Rehearsal:
        """Only where the trials have a census of their own may the counter stand in malloc's place."""
        assert counting == perf
        return Rehearsal("ok", None, Proof(valid=True), Rehearsed({}, None, 1), asked if counting else None)

    asked = Asked(calls=1, most_kib=2, private_kib=3)
    monkeypatch.setattr(local, "permissions", lambda: Permissions(perf=perf, ptrace=True))
    monkeypatch.setattr(local, "can_count", lambda: True)
    monkeypatch.setattr(local, "rehearse", rehearse)
    workload, configuration = experiment.workloads[0], experiment.configurations[0]
    with LocalTrials(experiment) as trials:
        scratch = trials.scratch
        trials.trial(workload, configuration, Slot("work", "glibc", 3, 2, 1))
        seen = trials.rehearse(workload, configuration)
        trials.trial(workload, configuration, Slot("work", "glibc", 4, 0, 0))
    identity = told[0]["identity"]
    assert (identity.experiment, identity.round, identity.position, identity.repeat) == ("one", 3, 2, 1)
    assert told[0]["timeout_s"] == 7.0
    assert [more["rehearsal"] is None for more in told] == [True, perf]
    assert [more["asked"] for more in told] == [None, asked if perf else None]
    assert isinstance(seen, HeapsSeen)
    assert seen.asked == told[1]["asked"]
    assert not scratch.exists(), "captured output is not left behind"


def failing(
    reason: str, but_for: Sequence[str], monkeypatch: pytest.MonkeyPatch, *, perf: bool
) -> list[tuple[str, bool]]:
    """Rehearsals that fail so but under some allocators, and there too where malloc is counted; each as it is tried."""
    tried: list[tuple[str, bool]] = []

    def rehearse(workload: object, configuration: Configuration, *, counting: bool, **more: Any) -> Rehearsal:
        tried.append((configuration.name, counting))
        said = reason if counting or configuration.name not in but_for else None
        return Rehearsal("failed" if said else "ok", said, Proof(valid=False), Rehearsed({}, None, 1))

    monkeypatch.setattr(local, "permissions", lambda: Permissions(perf=perf, ptrace=True))
    monkeypatch.setattr(local, "can_count", lambda: True)
    monkeypatch.setattr(local, "rehearse", rehearse)
    return tried


NOT_READY = "the server was not ready after 3 s: refused"


@pytest.mark.parametrize("perf", [True, False])
@pytest.mark.parametrize("serving", [(), ("glibc",)])
def test_a_server_that_is_not_ready_is_tried_once_more_under_the_baseline(
    perf: bool, serving: tuple[str, ...], make_experiment: Callable[..., Experiment], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What other allocators do alone stops nothing."""
    experiment = make_experiment(("glibc", "jemalloc", "freestone"))
    workload = experiment.workloads[0]
    tried = failing(NOT_READY, serving, monkeypatch, perf=perf)
    with LocalTrials(experiment) as trials:
        seen = [trials.rehearse(workload, each) for each in experiment.configurations[1:]]
    if serving:
        assert all(isinstance(each, HeapsSeen) for each in seen)
        assert tried == [("jemalloc", perf), ("glibc", False), ("freestone", perf)], "the baseline once"
    else:
        assert seen[0] == NeverReady("work", NOT_READY)
        assert tried[:2] == [("jemalloc", perf), ("glibc", False)]


TOLD_NOTHING = "the load is no measurement: no figures of wrk; it printed nothing"


@pytest.mark.parametrize("perf", [True, False])
@pytest.mark.parametrize("first", ["glibc", "jemalloc"])
@pytest.mark.parametrize("telling", [(), ("glibc",)])
def test_a_load_that_tells_nothing_is_driven_once_more_where_that_may_be_an_allocator_s_doing(
    perf: bool,
    first: str,
    telling: tuple[str, ...],
    make_experiment: Callable[..., Experiment],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = make_experiment(("glibc", "jemalloc"))
    tried = failing(TOLD_NOTHING, telling, monkeypatch, perf=perf)
    configuration = next(each for each in experiment.configurations if each.name == first)
    with LocalTrials(experiment) as trials:
        seen = trials.rehearse(experiment.workloads[0], configuration)
    if telling:
        assert isinstance(seen, HeapsSeen)
    else:
        assert seen == ToldNothing("work", TOLD_NOTHING)
    again = [] if first == "glibc" and not perf else [("glibc", False)]
    assert tried == [(first, perf), *again]


def test_no_scratch_folder_is_one_line(
    make_experiment: Callable[..., Experiment], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(StoreError, match="no scratch folder"):
        LocalTrials(make_experiment()).__enter__()


def test_before_each_trial_the_program_and_the_allocator_get_pages_of_their_own(
    make_experiment: Callable[..., Experiment],
    make_record: Callable[..., TrialRecord],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """What a command names beside them stays where it is: data may be large, and is no code."""
    (tmp_path / "data").write_text("no program")
    experiment = make_experiment()
    workload = experiment.workloads[0].model_copy(update={"command": ["/bin/cat", str(tmp_path / "data")]})
    configuration = experiment.configurations[0]
    library = str(Path("/bin/sh").resolve())
    allocator = configuration.allocator.model_copy(update={"file": library, "preload": [library]})
    course: list[object] = []
    monkeypatch.setattr(placement, "renew", lambda files: course.append(sorted(files)))

    def run_trial(*ignored: object, **more: object) -> TrialRecord:
        course.append("run")
        return make_record("glibc", 0)

    monkeypatch.setattr(local, "run_trial", run_trial)
    with LocalTrials(experiment) as trials:
        arm = configuration.model_copy(update={"allocator": allocator})
        for number in range(2):
            trials.trial(workload, arm, Slot("work", "glibc", number, 0, 0))
    assert course == [sorted(["/bin/cat", library]), "run"] * 2


def test_what_needs_the_kernels_switches_is_not_measured_without_them(
    make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``compare --resume`` on a folder of the doctor's would give glibc's figures the name of glibc with folios."""
    experiment = make_experiment()
    arm = experiment.configurations[0].model_copy(update={"kernel": {"hugepages-64kB": "always"}})
    monkeypatch.setattr(local, "run_trial", lambda *words, **more: make_record("glibc", 0))
    with LocalTrials(experiment) as trials, pytest.raises(StoreError, match="which 'freestone doctor' alone makes"):
        trials.trial(experiment.workloads[0], arm, Slot(experiment.workloads[0].name, arm.name, 0, 0, 0))


def test_a_run_stands_within_what_its_configuration_needs(
    make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    @contextlib.contextmanager
    def around(configuration: Configuration) -> Iterator[None]:
        told.append(f"set for {configuration.name}")
        yield
        told.append("put back")

    def run_trial(*words: object, **more: object) -> TrialRecord:
        told.append("run")
        return make_record("glibc", 0)

    experiment = make_experiment()
    monkeypatch.setattr(local, "run_trial", run_trial)
    arm = experiment.configurations[0]
    with LocalTrials(experiment, around=around) as trials:
        trials.trial(experiment.workloads[0], arm, Slot(experiment.workloads[0].name, arm.name, 0, 0, 0))
    assert told == [f"set for {arm.name}", "run", "put back"]
