"""Which trials count: the verdict over all of them may be taken again, by a report that has taken it already."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freestone.analysis import arms, score
from freestone.records.schema import Experiment, Output, TrialRecord, Workload

MakeExperiment = Callable[..., Experiment]
MakeRecord = Callable[..., TrialRecord]

TRIAL = st.tuples(
    st.sampled_from(["ok", "ok", "ok", "failed", "timeout", "invalid"]),
    st.sampled_from(["same", "same", "half"]),
    st.sampled_from([0, 40]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    trials=st.dictionaries(
        st.tuples(st.sampled_from(["glibc", "freestone"]), st.integers(0, 4), st.integers(0, 1)), TRIAL, max_size=20
    ),
    allowed=st.integers(0, 2),
)
def test_a_second_look_changes_nothing(
    trials: dict[tuple[str, int, int], tuple[str, str, int]],
    allowed: int,
    make_experiment: MakeExperiment,
    make_record: MakeRecord,
) -> None:
    workload = Workload(name="work", command=["true"], allow_failures=allowed)
    experiment = make_experiment(("glibc", "freestone"), workloads=[workload])
    records = [
        make_record(name, number, repeat=repeat, status=status).model_copy(
            update={"output": Output(stdout_sha256=said, stdout_bytes=written, stdout_lines=written)}
        )
        for (name, number, repeat), (status, said, written) in trials.items()
    ]
    once = arms.counted(experiment, records)
    assert arms.counted(experiment, once) == once
    assert score(experiment, once, "freestone") == score(experiment, records, "freestone")


def test_a_record_is_no_better_than_its_proof(
    make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord]
) -> None:
    record = make_record("glibc", 0)
    unproved = record.model_copy(update={"proof": record.proof.model_copy(update={"valid": False, "reason": "forged"})})
    (counted,) = arms.counted(make_experiment(), [unproved])
    assert (counted.status, counted.reason) == ("invalid", "forged")


def test_cpu_time_that_only_the_longer_trials_tell_is_left_out(make_record: MakeRecord) -> None:
    told = [{"rss_kib_loaded": 9.0 + number, "cpu_seconds": 1.0 + number} for number in range(3)]
    records = [make_record("glibc", number).model_copy(update={"figures": each}) for number, each in enumerate(told)]
    assert all("cpu_seconds" in (each.figures or {}) for each in arms.without_parameters(records))
    del told[1]["cpu_seconds"]
    records = [make_record("glibc", number).model_copy(update={"figures": each}) for number, each in enumerate(told)]
    assert all(set(each.figures or {}) == {"rss_kib_loaded"} for each in arms.without_parameters(records))
