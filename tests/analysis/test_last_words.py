"""Processes that end without a word: told where the baseline has them too, no proof where it has not."""

from __future__ import annotations

from collections.abc import Callable

from freestone.analysis import last_words, summarise
from freestone.records.schema import Experiment, Proof, TrialRecord

MakeExperiment = Callable[..., Experiment]
MakeRecord = Callable[..., TrialRecord]


def _silent(record: TrialRecord, **programs: int) -> TrialRecord:
    return record.model_copy(update={"proof": Proof(valid=True, silent=programs)})


def test_a_trial_that_lacks_last_words_which_the_baseline_has_is_not_proved(make_record: MakeRecord) -> None:
    agreed = [make_record("glibc", number) for number in range(3)]
    lacking = _silent(make_record("freestone", 0), worker=3)
    (marked, whole) = last_words.marked("glibc", agreed, [lacking, make_record("freestone", 1)])
    assert marked.status == "invalid"
    assert marked.reason == "no last words: 3 processes of worker ended without them, and none did under glibc"
    assert whole.status == "ok"


def test_who_kills_its_workers_does_so_under_everybody(make_record: MakeRecord) -> None:
    agreed = [make_record("glibc", 0), _silent(make_record("glibc", 1), worker=1)]
    (marked,) = last_words.marked("glibc", agreed, [_silent(make_record("freestone", 0), worker=2)])
    assert marked.status == "ok"


def test_workers_that_are_killed_more_often_than_under_the_baseline_are_no_proof(make_record: MakeRecord) -> None:
    """A pool begins those that crash anew: what is counted is that there are more of them."""
    agreed = [_silent(make_record("glibc", number), worker=2) for number in range(3)]
    more, same = _silent(make_record("freestone", 0), worker=3), _silent(make_record("freestone", 1), worker=2)
    (marked, whole) = last_words.marked("glibc", agreed, [more, same])
    assert marked.status == "invalid"
    assert marked.reason == "no last words: 3 processes of worker ended without them, and at most 2 did under glibc"
    assert whole.status == "ok"
    varying = [_silent(make_record("glibc", number), worker=number) for number in range(3)]
    (few, many) = last_words.marked("glibc", varying, [_silent(make_record("freestone", 0), worker=n) for n in (4, 5)])
    assert (few.status, many.status) == ("ok", "invalid")


def test_what_the_lab_ended_had_no_time_for_any(make_record: MakeRecord) -> None:
    left = _silent(make_record("freestone", 0), daemon=1).model_copy(update={"survivors": ["daemon"]})
    assert last_words.marked("glibc", [make_record("glibc", 0)], [left]) == [left]


def test_processes_without_last_words_are_told_in_the_summary(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    records = [
        _silent(make_record(name, n, repeat=r), worker=3) for name, n, r in (("a", 0, 0), ("a", 0, 1), ("b", 0, 0))
    ]
    for cell in summarise(make_experiment(("a", "b")), records).cells:
        assert cell.status == "ok"
        assert cell.note is not None
        assert cell.note.startswith(
            "without last words (killed, left without exit, or not let write): 3 processes of worker;"
        )
