"""What to use is said for every program: one answer for those that have one, and never of what nobody knows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_arms import FAST, SYSTEM, TUNED

from freestone.analysis import headline, summarise
from freestone.records.schema import Cell, Configuration, Experiment, Ratio, Summary, TrialRecord, Workload
from freestone.reports import recommendation
from freestone.reports.recommendation import Recommendation

MakeExperiment = Callable[..., Experiment]
MakeRecord = Callable[..., TrialRecord]


def told(
    make_experiment: MakeExperiment,
    make_record: MakeRecord,
    arm: Configuration,
    wall_s: float,
    peak: int,
    *,
    environment: dict[str, str] | None = None,
    brings_malloc: bool = False,
) -> list[str]:
    """What is told of ten rounds in which the baseline took a second and 1000 KiB, and ``arm`` what is given."""
    workload = Workload(name="work", command=["./app", "a b"], environment=environment or {})
    experiment = make_experiment(rounds=10, configurations=[SYSTEM, arm], workloads=[workload])
    records = [
        record
        for number in range(10)
        for record in (
            make_record("glibc", number, wall_s=1 + number / 1000, peak_rss_kib=1000 + number),
            make_record("glibc", number, repeat=1, wall_s=1 + number / 1000, peak_rss_kib=1000 + number),
            make_record(arm.name, number, wall_s=wall_s + number / 1000, peak_rss_kib=peak + number),
        )
    ]
    bringing = ["work"] if brings_malloc else []
    found = recommendation.recommendations(experiment, summarise(experiment, records), bringing_malloc=bringing)
    return [line for each in found for line in (each.sentence, *each.lines)]


def test_what_was_measured_in_an_environment_is_started_in_it(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    environment = {"PYTHONMALLOC": "malloc", "NOTE": "a 'b'"}
    lines = told(make_experiment, make_record, FAST, 0.5, 1000, environment=environment)
    started = [line for line in lines if "./app" in line]
    assert len(started) == 2, "by the tool, and by a shell"
    for line in started:
        assert "PYTHONMALLOC=malloc" in line
        assert shlex.split(line.split(maxsplit=1)[1])[-2:] == ["./app", "a b"]
    text = "\n".join(lines)
    assert 'Environment="PYTHONMALLOC=malloc"' in text
    assert 'ENV PYTHONMALLOC="malloc"' in text


def test_a_winner_comes_with_its_price_and_every_way_to_use_it(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    lines = told(make_experiment, make_record, FAST, 0.5, 2000)
    assert re.fullmatch(
        r"To use it, fast:FAST_CONF=a:b,c%d \(time 0\.\d+× glibc, peak memory [12]\.\d+× glibc\):", lines[0]
    )
    assert [line.strip() for line in lines[1:]] == [
        "freestone   freestone run -a fast:FAST_CONF=a:b,c%d -- ./app 'a b'",
        "shell       LD_PRELOAD=/usr/lib/libfast.so.2 FAST_CONF=a:b,c%d ./app 'a b'",
        "systemd     [Service]",
        'Environment="LD_PRELOAD=/usr/lib/libfast.so.2"',
        'Environment="FAST_CONF=a:b,c%%d"',
        "Dockerfile  # for an image of the release that was measured; one with musl (Alpine): see docs/guide/deploy.md",
        "RUN apt-get update && apt-get install -y --no-install-recommends libfast2",
        'ENV LD_PRELOAD="/usr/lib/libfast.so.2"',
        'ENV FAST_CONF="a:b,c%d"',
    ]


def test_without_a_winner_there_is_nothing_to_use(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    for wall_s, peak in ((1.0, 1000), (1.5, 1000), (1.5, 500)):
        lines = told(make_experiment, make_record, FAST, wall_s, peak)
        assert lines == ["To use it: there is nothing to change; no allocator is really better than glibc here."]


def test_who_takes_less_memory_and_no_more_time_wins(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    assert told(make_experiment, make_record, FAST, 1.0, 500)[0].startswith("To use it, fast:FAST_CONF=a:b,c%d (time ")


def test_settings_of_the_systems_malloc_need_no_preload_but_where_the_program_brings_another(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    text = "\n".join(told(make_experiment, make_record, TUNED, 0.5, 1000))
    assert "MALLOC_ARENA_MAX=2 ./app" in text
    assert "LD_PRELOAD" not in text
    text = "\n".join(told(make_experiment, make_record, TUNED, 0.5, 1000, brings_malloc=True))
    assert "LD_PRELOAD=/lib/libc.so.6 MALLOC_ARENA_MAX=2 ./app" in text


def test_a_library_in_a_home_is_installed_for_services(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    file = "/home/me/a clone/libfast.so"
    changed = {"file": file, "preload": [file], "origin": "built here"}
    built = FAST.model_copy(update={"allocator": FAST.allocator.model_copy(update=changed)})
    lines = [line.strip() for line in told(make_experiment, make_record, built, 0.5, 1000)]
    place = lines.index("install     install -m 644 '/home/me/a clone/libfast.so' /usr/lib/libfast.so")
    assert lines[place + 1 :] == [
        "systemd     [Service]",
        'Environment="LD_PRELOAD=/usr/lib/libfast.so"',
        'Environment="FAST_CONF=a:b,c%%d"',
        "Dockerfile  # for an image with this glibc or a newer one; one with musl (Alpine): see docs/guide/deploy.md",
        "# first put the library beside the Dockerfile: cp '/home/me/a clone/libfast.so' .",
        "COPY libfast.so /usr/local/lib/",
        'ENV LD_PRELOAD="/usr/local/lib/libfast.so"',
        'ENV FAST_CONF="a:b,c%d"',
    ]


def test_a_program_with_a_malloc_of_its_own_is_left_as_it_is_for_want_of_a_reason(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    """What was measured as the baseline is not what it runs on by itself: that one is not recommended."""
    lines = told(make_experiment, make_record, FAST, 2.0, 2000, brings_malloc=True)
    assert lines == [
        "To use it: nothing that was measured speaks for a change: no allocator is really better than glibc here, and "
        "the program brings a malloc of its own, which was not measured."
    ]
    plain = told(make_experiment, make_record, FAST, 2.0, 2000)
    assert plain == ["To use it: there is nothing to change; no allocator is really better than glibc here."]


@given(low=st.floats(0.01, 1.0), high=st.floats(1.0, 100))
def test_rounds_that_saw_little_say_so(low: float, high: float) -> None:
    """An interval that reaches far below 1 rules no gain out."""
    ratio = Ratio(value=(low * high) ** 0.5, low=low, high=high, pairs=9, different=False)
    plain = {"workload": "w", "status": "ok", "trials_ok": 9, "trials_total": 9}
    cells = [Cell(configuration="glibc", **plain), Cell(configuration="other", ratio={"wall_s": ratio}, **plain)]
    summary = Summary(experiment="e", baseline="glibc", rounds_complete=9, cells=cells, headline="")
    said = recommendation.coarseness(summary, ["w"])
    assert bool(said) == (low < recommendation.COARSE)
    assert not said or f"other may still take {low:.2f} times glibc's time" in said


Times = Mapping[str, Mapping[str, float]]
"""Workload -> configuration -> seconds; the baseline takes one."""


def of_several(
    make_experiment: MakeExperiment,
    make_record: MakeRecord,
    times: Times,
    *,
    rounds: int = 10,
    verb: str = "compare",
    environments: Mapping[str, dict[str, str]] | None = None,
) -> list[Recommendation]:
    """What is told of some programs, each under glibc and under what stands beside it in ``times``."""
    workloads = [
        Workload(name=name, command=[f"./{name}", "x"], environment=(environments or {}).get(name, {}))
        for name in times
    ]
    names = list(dict.fromkeys(["glibc", *(name for each in times.values() for name in each)]))
    experiment = make_experiment(tuple(names), rounds=rounds, workloads=workloads)
    experiment = experiment.model_copy(update={"command_line": ["freestone", verb]})
    records = [
        make_record(name, number, repeat=repeat, workload=work, wall_s=seconds + number / 1000)
        for work, each in times.items()
        for name, seconds in {"glibc": 1.0, **each}.items()
        for number in range(rounds)
        for repeat in range(2 if name == "glibc" else 1)
    ]
    summary = summarise(experiment, records)
    level = headline.level_with_best(experiment, records, summary)
    return recommendation.recommendations(experiment, summary, level=level)


def test_programs_that_agree_have_one_answer_with_a_line_for_each(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    (told,) = of_several(make_experiment, make_record, {"a": {"freestone": 0.5}, "b": {"freestone": 0.7}})
    assert (told.configuration, told.workloads) == ("freestone", ["a", "b"])
    assert told.sentence.startswith("To use it for both programs, freestone: with a (time 0.5")
    assert "; with b (time 0.7" in told.sentence
    started = [line.split(maxsplit=1)[-1] for line in told.lines if line.endswith(" x")]
    assert [line for line in started if "freestone run -a freestone -- " in line] != []
    assert sum("./a x" in line for line in started) == sum("./b x" in line for line in started) == 2
    assert sum("[Service]" in line for line in told.lines) == 1, "a unit's lines are the same for both"


def test_each_program_is_told_its_own_where_they_differ(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    told = of_several(
        make_experiment,
        make_record,
        {"a": {"freestone": 0.5, "jemalloc": 0.9}, "b": {"freestone": 0.9, "jemalloc": 0.5}, "c": {"freestone": 1.5}},
    )
    assert [(each.workloads, each.configuration) for each in told] == [
        (["a"], "freestone"),
        (["b"], "jemalloc"),
        (["c"], None),
    ]
    assert told[0].sentence.startswith("To use it for a, freestone (time 0.5")
    assert told[2].sentence == (
        "To use it for c: there is nothing to change; no allocator is really better than glibc."
    )
    assert not any("./b" in line for line in told[0].lines)


def test_programs_in_different_environments_have_lines_of_their_own(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    told = of_several(
        make_experiment,
        make_record,
        {"a": {"freestone": 0.5}, "b": {"freestone": 0.5}},
        environments={"a": {"N": "1"}, "b": {"N": "2"}},
    )
    assert [each.workloads for each in told] == [["a"], ["b"]]
    for each, value in zip(told, "12", strict=True):
        assert any(f'ENV N="{value}"' in line for line in each.lines)


def test_of_many_programs_one_stands_for_the_others(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    (told,) = of_several(make_experiment, make_record, {f"p{n}": {"freestone": 0.5} for n in range(6)})
    assert len(told.workloads) == 6
    assert "the lines are those of p0, the others' have another command" in told.sentence
    assert len(told.sentence) < 300


def test_what_nobody_knows_is_not_answered(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    times = {"a": {"freestone": 0.5}, "b": {"freestone": 0.5}}
    assert of_several(make_experiment, make_record, times, rounds=2) == []
    assert of_several(make_experiment, make_record, times, verb="bench") == [], "a suite is nobody's program"


@pytest.mark.parametrize("bad", ["failed", "invalid"])
def test_a_program_without_a_result_is_said_to_have_none(
    make_experiment: MakeExperiment, make_record: MakeRecord, bad: str
) -> None:
    workloads = [Workload(name=name, command=[name]) for name in "ab"]
    experiment = make_experiment(("glibc", "freestone"), rounds=10, workloads=workloads)
    records = [
        make_record(
            name, number, repeat=repeat, workload=work, status=bad if work == "b" else "ok",
            reason="it is so", wall_s=seconds + number / 1000,
        )
        for work in "ab"
        for name, seconds in (("glibc", 1.0), ("freestone", 0.5))
        for number in range(10)
        for repeat in range(2 if name == "glibc" else 1)
    ]  # fmt: skip
    told = recommendation.recommendations(experiment, summarise(experiment, records))
    assert [(each.workloads, each.configuration) for each in told] == [(["a"], "freestone"), (["b"], None)]
    assert told[1].sentence == "To use it for b: there is no telling yet, for lack of good rounds."
    assert told[1].lines == []
