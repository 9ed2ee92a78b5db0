"""A program that changes while it is measured is two programs."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from freestone.analysis import arms, same_program
from freestone.records.schema import Experiment, TrialRecord


def _ran(make_record: Callable[..., TrialRecord], number: int, **files: str) -> TrialRecord:
    record = make_record("glibc", number)
    named = {f"/srv/{name}": content for name, content in files.items()}
    return record.model_copy(update={"files": named, "started_at": f"2026-11-25T10:{number:02d}:00+00:00"})


def test_what_ran_another_script_failed_and_says_which(make_record: Callable[..., TrialRecord]) -> None:
    records = [_ran(make_record, 0, job="a", data="x"), _ran(make_record, 1, job="a"), _ran(make_record, 2, job="b")]
    marked = same_program.marked(records)
    assert [each.status for each in marked] == ["ok", "ok", "failed"]
    assert marked[2].reason == "job is not what it was in the first trial: measure again"


def test_what_a_run_writes_to_is_no_input(make_record: Callable[..., TrialRecord]) -> None:
    # A run that leaves a file changed has no entry for it.
    records = [_ran(make_record, number, job="a") for number in range(3)]
    assert same_program.marked(records) == records


def test_the_first_trial_is_the_earliest_not_the_first_in_the_file(make_record: Callable[..., TrialRecord]) -> None:
    marked = same_program.marked([_ran(make_record, 5, job="b"), _ran(make_record, 1, job="a")])
    assert [each.status for each in marked] == ["failed", "ok"]


def test_an_experiment_counts_no_such_trial(
    make_experiment: Callable[..., Experiment], make_record: Callable[..., TrialRecord]
) -> None:
    records = [_ran(make_record, number, job="a" if number < 3 else "b") for number in range(5)]
    counted = arms.counted(make_experiment(), records)
    assert sorted(each.round for each in arms.good(counted)) == [0, 1, 2]


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.sampled_from("01"), max_size=3), max_size=8))
def test_all_that_is_left_agrees(contents: list[dict[str, str]]) -> None:
    before: dict[str, str] = {}
    for files in contents:
        if same_program.what_changed(before, files) is None:
            before = {**files, **before}
            assert all(before[path] == content for path, content in files.items())
