"""Two results in, what changed out: what is compared with what, what is left apart, and how seldom it is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.analysis import comparable, difference, gate
from freestone.analysis.comparable import NotComparable
from freestone.analysis.sides import Side
from freestone.records.schema import (
    PROGRAM,
    Change,
    Configuration,
    Difference,
    Environment,
    Experiment,
    Input,
    Machine,
    Output,
    TrialRecord,
    Workload,
)

MakeExperiment = Callable[..., Experiment]
MakeRecord = Callable[..., TrialRecord]
Costs = Mapping[str, tuple[float, float]]
"""Configuration -> seconds and KiB."""


@dataclass
class Laboratory:
    """Makes whole results: ``result("one", {"glibc": (1.0, 1000)}, builds={"freestone": "b2"})``."""

    experiment: MakeExperiment
    record: MakeRecord

    def result(
        self,
        name: str,
        costs: Costs,
        *,
        workloads: int = 1,
        builds: Mapping[str, str] | None = None,
        rounds: int = 8,
        noise: float = 0.0,
        drift: float = 1.0,
        seed: int = 0,
    ) -> Side:
        random = np.random.default_rng([seed, rounds, workloads])
        works = [Workload(name=f"w{number}", command=["/here/work", str(number)]) for number in range(workloads)]
        head = self.experiment(tuple(costs), id=name, workloads=works, rounds=rounds)
        head = head.model_copy(
            update={
                "configurations": [_built(each, (builds or {}).get(each.name, "ab")) for each in head.configurations]
            }
        )
        records = []
        for work in works:
            for configuration, (seconds, kib) in costs.items():
                # Checked once: a campaign has 100,000 records.
                one = self.record(configuration, 0, workload=work.name, experiment=name, peak_rss_kib=int(kib))
                assert one.metrics is not None
                for number in range(rounds):
                    for repeat in range(2 if configuration == head.baseline else 1):
                        wall_s = seconds * drift * math.exp(random.normal(0, noise))
                        metrics = one.metrics.model_copy(update={"wall_s": wall_s, "user_s": wall_s})
                        records.append(one.model_copy(update={"round": number, "repeat": repeat, "metrics": metrics}))
        return Side(head, records)


def _built(configuration: Configuration, build: str) -> Configuration:
    return configuration.model_copy(
        update={"allocator": configuration.allocator.model_copy(update={"build_id": build})}
    )


@pytest.fixture
def lab(make_experiment: MakeExperiment, make_record: MakeRecord) -> Laboratory:
    return Laboratory(make_experiment, make_record)


def only(found: Difference, aspect: str = "time", workload: str | None = "w0", of: str = "freestone") -> Change:
    (one,) = (
        each for each in found.changes if (each.aspect, each.workload, each.configuration) == (aspect, workload, of)
    )
    return one


NEW = {"freestone": "b2"}


def test_a_change_is_seen_past_what_the_machine_did(lab: Laboratory) -> None:
    """The machine is a third slower the second time; the library a tenth."""
    before = lab.result("one", {"glibc": (2.0, 1000), "freestone": (1.0, 1000)}, noise=0.01)
    after = lab.result(
        "two", {"glibc": (2.0, 1000), "freestone": (1.1, 1050)}, noise=0.01, drift=4 / 3, builds=NEW, seed=1
    )
    found = difference.between(before, after)
    assert found.subjects == {"freestone": "build ab -> build b2"}
    assert found.controls == ["glibc"]
    time, memory, faults = (only(found, aspect) for aspect in ("time", "peak RSS", "minor faults"))
    assert time.verdict == "more"
    assert time.ratio == pytest.approx(1.1, rel=0.02)
    assert time.after is not None
    assert time.before is not None
    assert time.after / time.before == pytest.approx(1.47, rel=0.03)
    assert memory.verdict == "more"
    assert memory.ratio == pytest.approx(1.05)
    assert faults.verdict == "same"
    assert faults.ratio == 1
    (drift,) = found.drift
    assert drift.configuration == "glibc"
    assert drift.ratio == pytest.approx(4 / 3, rel=0.02)


def _saying(side: Side, said: Mapping[str, str]) -> Side:
    """With these outputs under these configurations."""
    records = [
        record.model_copy(update={"output": Output(stdout_sha256=said[record.configuration])})
        if record.configuration in said
        else record
        for record in side.records
    ]
    return Side(side.experiment, records)


def test_a_program_that_says_something_else_did_other_work(lab: Laboratory) -> None:
    """A script that was changed in between: the same command, half of the work."""
    costs = {"glibc": (2.0, 1000), "freestone": (1.0, 1000)}
    after = _saying(
        lab.result("two", {"glibc": (1.0, 1000), "freestone": (0.5, 1000)}, builds=NEW), dict.fromkeys(costs, "half")
    )
    with pytest.raises(NotComparable, match="the program did other work"):
        difference.between(lab.result("one", costs), after)


def test_what_fails_now_and_did_not_before_is_lost(lab: Laboratory) -> None:
    costs = {"glibc": (2.0, 1000), "freestone": (1.0, 1000)}
    after = lab.result("two", costs, builds=NEW)
    failing = [
        record.model_copy(update={"status": "failed", "reason": "killed by SIGSEGV"})
        if (record.configuration, record.round) == ("freestone", 3)
        else record
        for record in after.records
    ]
    found = difference.between(lab.result("one", costs), Side(after.experiment, failing))
    assert [(each.what, each.reason) for each in found.lost] == [
        ("freestone on w0", "1 of 8 failed: killed by SIGSEGV")
    ]
    assert difference.between(lab.result("one", costs), after).lost == []


def test_a_configuration_that_does_other_work_than_another_is_lost_against_it(lab: Laboratory) -> None:
    """Also where the baseline says nothing of it."""
    side = _saying(lab.result("one", {"old": (2.0, 1000), "new": (1.0, 1000)}), {"new": "half"})
    found = difference.within(side, "old", "new")
    assert found.changes == []
    assert found.lost != []


def test_without_a_control_times_are_not_judged_and_memory_is(lab: Laboratory) -> None:
    before = lab.result("one", {"freestone": (1.0, 1000)}, noise=0.01)
    after = lab.result("two", {"freestone": (2.0, 2000)}, noise=0.01, builds=NEW)
    found = difference.between(before, after)
    assert found.unrelated is not None
    assert "no configuration is the same" in found.unrelated
    assert only(found).verdict == "unknown"
    assert only(found, "peak RSS").verdict == "more"


def test_settings_are_a_change_too_and_a_changed_allocator_is_no_control(lab: Laboratory) -> None:
    costs = {"glibc": (1.0, 1000), "freestone": (1.0, 1000), "jemalloc": (1.0, 1000)}
    before, after = lab.result("one", costs), lab.result("two", costs, builds={"jemalloc": "b3"})
    tuned = [
        each.model_copy(update={"environment": {"FREESTONE_OPTIONS": "heaps=1"}}) if each.name == "freestone" else each
        for each in after.experiment.configurations
    ]
    after = Side(after.experiment.model_copy(update={"configurations": tuned}), after.records)
    found = difference.between(before, after)
    assert found.subjects == {"freestone": "FREESTONE_OPTIONS: unset -> heaps=1", "jemalloc": "build ab -> build b3"}
    assert found.controls == ["glibc"]


def test_where_nothing_changed_all_but_the_baseline_are_looked_at(lab: Laboratory) -> None:
    costs = {"glibc": (1.0, 1000), "freestone": (1.0, 1000), "jemalloc": (1.0, 1000)}
    found = difference.between(lab.result("one", costs, noise=0.01), lab.result("two", costs, noise=0.01, seed=1))
    assert set(found.subjects) == {"freestone", "jemalloc"}
    assert found.controls == ["glibc"]
    assert {each.verdict for each in found.changes} == {"same"}


def test_subjects_can_be_chosen(lab: Laboratory) -> None:
    costs = {"glibc": (1.0, 1000), "freestone": (1.0, 1000), "jemalloc": (1.0, 1000)}
    sides = lab.result("one", costs), lab.result("two", costs, builds=NEW)
    assert set(difference.between(*sides, ["jemalloc"]).subjects) == {"jemalloc"}
    assert difference.between(*sides, ["jemalloc"]).controls == ["glibc"], "freestone has changed"
    with pytest.raises(NotComparable, match="'tbb' is not in both"):
        difference.between(*sides, ["tbb"])


def test_what_is_not_comparable_is_named_and_left_out(lab: Laboratory, make_record: MakeRecord) -> None:
    costs = {"glibc": (1.0, 1000), "freestone": (1.0, 1000)}
    before = lab.result("one", {**costs, "tbb": (1.0, 1000)}, workloads=4)
    after = lab.result("two", costs, workloads=3, builds=NEW)
    works = after.experiment.workloads
    works = [works[0], works[1].model_copy(update={"command": ["/here/work", "7"]}), works[2]]
    after = Side(after.experiment.model_copy(update={"workloads": works}), after.records)
    failed = [
        record.model_copy(update={"status": "failed", "reason": "it failed", "metrics": None})
        if (record.workload, record.configuration) == ("w2", "freestone")
        else record
        for record in after.records
    ]
    found = difference.between(before, Side(after.experiment, failed))
    assert {(each.what, each.reason) for each in found.apart} == {
        ("configuration tbb", "only in one"),
        ("workload w1", "another command"),
        ("workload w3", "only in one"),
        ("freestone on w2", "it failed"),
    }
    assert {each.workload for each in found.changes} == {None, "w0"}
    lost = {each.what for each in found.lost}
    assert lost == {"configuration tbb", "workload w3", "freestone on w2"}, (
        "what is not tried any more is kept by nobody"
    )
    assert gate.judge(found, {"peak RSS": 10.0}).outcome == "exceeded"


def test_what_was_cut_off_is_lost(lab: Laboratory) -> None:
    costs = {"glibc": (1.0, 1000), "freestone": (1.0, 1000)}
    before, after = lab.result("one", costs, workloads=2), lab.result("two", costs, workloads=2, builds=NEW)
    cut = [each for each in after.records if (each.workload, each.configuration) != ("w1", "freestone")]
    found = difference.between(before, Side(after.experiment, cut))
    assert [(each.what, each.reason) for each in found.lost] == [("freestone on w1", "not measured")]


def _with_files(side: Side, **contents: str) -> Side:
    named = {f"/{side.experiment.id}/{name}": content for name, content in contents.items()}
    return Side(side.experiment, [each.model_copy(update={"files": named}) for each in side.records])


def test_another_script_is_another_program(lab: Laboratory) -> None:
    costs = {"glibc": (1.0, 1000), "freestone": (1.0, 1000)}
    before, after = lab.result("one", costs), lab.result("two", costs, builds=NEW)
    same = difference.between(_with_files(before, job="a"), _with_files(after, job="a", more="x"))
    assert same.apart == []
    with pytest.raises(NotComparable, match="another content of job"):
        difference.between(_with_files(before, job="a"), _with_files(after, job="b"))
    rebuilt = difference.between(_with_files(before, app=PROGRAM + "a"), _with_files(after, app=PROGRAM + "b"))
    assert rebuilt.apart == [], "of a program its build-id tells"


def test_a_library_without_a_build_id_is_told_by_its_content(lab: Laboratory) -> None:
    costs = {"glibc": (1.0, 1000), "freestone": (1.0, 1000)}
    sides = []
    for name, content in (("one", "a"), ("two", "b")):
        side = lab.result(name, costs)
        bare = [
            each.model_copy(
                update={"allocator": each.allocator.model_copy(update={"file": f"/l/{each.name}.so", "build_id": None})}
            )
            for each in side.experiment.configurations
        ]
        files = {"/l/glibc.so": PROGRAM + "same", "/l/freestone.so": PROGRAM + content}
        records = [each.model_copy(update={"files": files}) for each in side.records]
        sides.append(Side(side.experiment.model_copy(update={"configurations": bare}), records))
    found = difference.between(sides[0], sides[1])
    assert found.subjects == {"freestone": "another content of its file"}
    assert found.controls == ["glibc"]


def test_another_checkout_is_no_other_work(lab: Laboratory) -> None:
    costs = {"glibc": (1.0, 1000), "freestone": (1.0, 1000)}
    before, after = lab.result("one", costs), lab.result("two", costs, builds=NEW)
    works = [after.experiment.workloads[0].model_copy(update={"command": ["/there/work", "0"]})]
    after = Side(after.experiment.model_copy(update={"workloads": works}), after.records)
    assert difference.between(before, after).apart == []


def _naming(side: Side, word: str, **contents: str) -> Side:
    """With a workload that has a word more, and what the files held that it names."""
    (work,) = side.experiment.workloads
    works = [work.model_copy(update={"command": [*work.command, word]})]
    return _with_files(Side(side.experiment.model_copy(update={"workloads": works}), side.records), **contents)


def test_what_the_runs_write_to_is_another_folder_where_its_path_is(lab: Laboratory) -> None:
    """Nobody knows what it held: the last part of its name says nothing of that."""
    costs = {"glibc": (1.0, 1000), "freestone": (1.0, 1000)}
    before, after = lab.result("one", costs), lab.result("two", costs, builds=NEW)
    with pytest.raises(NotComparable, match="another command: /one/data and /two/data are not known to hold the same"):
        difference.between(_naming(before, "/one/data"), _naming(after, "/two/data"))
    with pytest.raises(NotComparable, match="are not known to hold the same"):
        difference.between(_naming(before, "/one/data", data="a"), _naming(after, "/two/data", other="a"))
    assert difference.between(_naming(before, "/one/data"), _naming(after, "/one/data")).apart == []


def test_a_file_is_the_same_in_another_folder_where_its_content_is(lab: Laboratory) -> None:
    costs = {"glibc": (1.0, 1000), "freestone": (1.0, 1000)}
    before, after = lab.result("one", costs), lab.result("two", costs, builds=NEW)
    same = difference.between(_naming(before, "/one/data", data="a"), _naming(after, "/two/data", data="a"))
    assert same.apart == []
    relative = difference.between(_naming(before, "data", data="a"), _naming(after, "/two/data", data="a"))
    assert relative.apart == []
    for content in ("b", PROGRAM + "b"):
        with pytest.raises(NotComparable, match="another content of data"):
            difference.between(_naming(before, "/one/data", data="a"), _naming(after, "/two/data", data=content))


@given(st.lists(st.sampled_from(["/s/data", "/b/data", "/b/more", "data", "-n", "7"]), max_size=4), st.data())
def test_without_contents_commands_are_the_same_only_word_by_word(words: list[str], data: st.DataObject) -> None:
    other = data.draw(st.permutations(words))
    told = comparable._other_command(["/a/work", *words], ["/b/work", *other], ({}, {}))
    assert (told is None) == (words == other)


def test_an_input_of_unknown_content_is_told_by_its_whole_path(lab: Laboratory) -> None:
    costs = {"glibc": (1.0, 1000), "freestone": (1.0, 1000)}

    def reading(side: Side, file: str) -> Side:
        works = [each.model_copy(update={"input": Input(file=file)}) for each in side.experiment.workloads]
        return Side(side.experiment.model_copy(update={"workloads": works}), side.records)

    before, after = lab.result("one", costs), lab.result("two", costs, builds=NEW)
    with pytest.raises(NotComparable, match="another input"):
        difference.between(reading(before, "/one/in"), reading(after, "/two/in"))
    assert difference.between(reading(before, "/one/in"), reading(after, "/one/in")).apart == []


def test_another_build_of_the_program_is_another_program(lab: Laboratory) -> None:
    costs = {"glibc": (1.0, 1000), "freestone": (1.0, 1000)}
    sides = [_of_build(lab.result("one", costs), "11"), _of_build(lab.result("two", costs, builds=NEW), "22")]
    with pytest.raises(NotComparable, match="workload w0: another build of the program"):
        difference.between(sides[0], sides[1])


def _of_build(side: Side, build: str) -> Side:
    from freestone.records.schema import ProcessProof

    process = ProcessProof(pid=1, parent=0, exe="/here/work", exe_build_id=build, proved=True)
    return Side(
        side.experiment,
        [
            record.model_copy(update={"proof": record.proof.model_copy(update={"processes": [process]})})
            for record in side.records
        ],
    )


def test_machines_are_never_compared(lab: Laboratory) -> None:
    costs = {"glibc": (1.0, 1000), "freestone": (1.0, 1000)}
    before, after = lab.result("one", costs), lab.result("two", costs)
    elsewhere = after.experiment.model_copy(update={"machine": Machine(id="there", facts={"cpu": "other"})})
    with pytest.raises(NotComparable, match="different machines are never compared: cpu None and other"):
        difference.between(before, Side(elsewhere, after.records))


def test_environments_are_never_mixed(lab: Laboratory) -> None:
    costs = {"glibc": (1.0, 1000), "freestone": (1.0, 1000)}
    before, after = lab.result("one", costs), lab.result("two", costs)
    here, there = (
        Side(side.experiment.model_copy(update={"environment": Environment(told={"LANG": language})}), side.records)
        for side, language in ((before, "C"), (after, "de"))
    )
    with pytest.raises(NotComparable, match=r"different environments are never compared: LANG \('C' and 'de'\)"):
        difference.between(here, there)
    assert difference.between(before, there).changes, "results of before it was recorded are taken as they are"


def test_nothing_in_common_is_an_error(lab: Laboratory) -> None:
    before, after = lab.result("one", {"glibc": (1.0, 1000)}), lab.result("two", {"tbb": (1.0, 1000)})
    with pytest.raises(NotComparable, match="no configuration in common"):
        difference.between(before, after)


def test_two_configurations_of_one_result_are_paired_within_rounds(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    """Rounds differ tenfold; within each, the new one takes a fiftieth more, give or take a thousandth."""
    head = make_experiment(("old", "new"), rounds=8)
    random = np.random.default_rng(5)
    machine = np.exp(random.uniform(0, math.log(10), 8))
    records = [
        make_record(
            name, number, repeat=repeat, wall_s=float(machine[number] * cost * math.exp(random.normal(0, 0.001)))
        )
        for name, cost, repeats in (("old", 1.0, 2), ("new", 1.02, 1))
        for number in range(8)
        for repeat in range(repeats)
    ]
    found = difference.within(Side(head, records), "old", "new")
    assert only(found, workload="work", of="new").verdict == "more"
    assert only(found, workload="work", of="new").ratio == pytest.approx(1.02, rel=0.002)
    assert only(difference.within(Side(head, records), "new", "old"), workload="work", of="old").verdict == "less"


def test_two_arms_are_told_apart_by_what_differs_and_by_nothing_else(make_experiment: MakeExperiment) -> None:
    """Of one library at two builds, with two settings, and of two libraries: never two words that are the same."""

    def told(one: dict[str, object], other: dict[str, object]) -> str:
        head = make_experiment(("old", "new"))
        changed = [
            each.model_copy(
                update={
                    "environment": more.get("environment", {}),
                    "allocator": each.allocator.model_copy(
                        update={"title": "Lib", "version": "1.0", "build_id": "ab", **more}
                    ),
                }
            )
            for each, more in zip(head.configurations, (one, other), strict=True)
        ]
        found = difference.within(Side(head.model_copy(update={"configurations": changed}), []), "old", "new")
        assert found.held_against == "old"
        return found.subjects["new"]

    assert told({}, {"build_id": "cd"}) == "old (build ab) -> new (build cd)"
    assert told({}, {"version": "1.1", "build_id": "cd"}) == "old (Lib 1.0, build ab) -> new (Lib 1.1, build cd)"
    assert told({"environment": {"A": "1"}}, {"environment": {"B": "2"}}) == "old (A=1, B unset) -> new (A unset, B=2)"
    assert told({}, {}) == "old -> new: the same build and settings"
    assert (
        told({"build_id": None, "file": "/a.so"}, {"build_id": None, "file": "/b.so"}) == "old (/a.so) -> new (/b.so)"
    )
    assert told({"build_id": None}, {}) == "old (no build-id) -> new (build ab)"
    assert told({"build_id": "0123456789abc"}, {"build_id": "0123456789abd"}) == (
        "old (build 0123456789abc) -> new (build 0123456789abd)"
    )


def test_configurations_that_are_not_there(lab: Laboratory) -> None:
    side = lab.result("one", {"glibc": (1.0, 1000), "freestone": (1.0, 1000)})
    with pytest.raises(NotComparable, match="'tbb' is not measured in one"):
        difference.within(side, "glibc", "tbb")
    with pytest.raises(NotComparable, match="the same before and after"):
        difference.within(side, "glibc", "glibc")


def test_too_few_rounds_tell_nothing(lab: Laboratory) -> None:
    costs = {"glibc": (1.0, 1000), "freestone": (1.0, 1000)}
    found = difference.between(lab.result("one", costs, rounds=3), lab.result("two", costs, rounds=8, builds=NEW))
    assert {each.verdict for each in found.changes} == {"unknown"}


def test_the_mean_is_that_of_the_counted_workloads(lab: Laboratory) -> None:
    costs = {"glibc": (1.0, 1000), "freestone": (1.0, 1000)}
    before, after = lab.result("one", costs, workloads=3), lab.result("two", costs, workloads=3, builds=NEW)
    slower = [
        record.model_copy(update={"metrics": record.metrics.model_copy(update={"wall_s": factor})})
        if record.configuration == "freestone"
        and record.metrics is not None
        and (factor := {"w1": 1.21, "w2": 50.0}.get(record.workload, 0))
        else record
        for record in after.records
    ]
    works = [each.model_copy(update={"counted": each.name != "w2"}) for each in after.experiment.workloads]
    found = difference.between(before, Side(after.experiment.model_copy(update={"workloads": works}), slower))
    assert only(found, workload=None).ratio == pytest.approx(1.1)
    assert only(found, workload="w2").ratio == pytest.approx(50)


@pytest.mark.long
@pytest.mark.parametrize("rounds", [5, 10])
def test_an_unchanged_library_is_accused_at_most_once_in_twenty(lab: Laboratory, rounds: int) -> None:
    """Ten workloads, three aspects; noise of five per cent, and a machine that is slower the second time."""
    costs = {"glibc": (1.0, 1000), "freestone": (1.0, 1000)}
    accused = 0
    for number in range(120):
        before, after = (
            lab.result(name, costs, workloads=10, rounds=rounds, noise=0.05, drift=drift, seed=2 * number + place)
            for place, (name, drift) in enumerate((("one", 1.0), ("two", 1.2)))
        )
        accused += any(
            each.verdict in ("more", "less") for each in difference.between(before, after, ["freestone"]).changes
        )
    assert accused / 120 <= 0.1  # 0.05 and three standard errors


@pytest.mark.long
@pytest.mark.parametrize(("effect", "rounds"), [(1.02, 20), (1.05, 10)])
def test_a_slower_library_is_found_in_the_mean(lab: Laboratory, effect: float, rounds: int) -> None:
    found = 0
    for number in range(40):
        before = lab.result(
            "one",
            {"glibc": (1.0, 1000), "freestone": (1.0, 1000)},
            workloads=20,
            rounds=rounds,
            noise=0.03,
            seed=2 * number,
        )
        after = lab.result(
            "two",
            {"glibc": (1.0, 1000), "freestone": (effect, 1000)},
            workloads=20,
            rounds=rounds,
            noise=0.03,
            seed=2 * number + 1,
        )
        found += only(difference.between(before, after, ["freestone"]), workload=None).verdict == "more"
    assert found >= 36
