"""Who did other work than the baseline, by what its program said."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freestone.analysis import same_work
from freestone.records.schema import Output, TrialRecord, Workload

MakeRecord = Callable[..., TrialRecord]
Trials = Callable[..., list[TrialRecord]]

WORK = Workload(name="work", command=["true"])


@pytest.fixture
def trials(make_record: MakeRecord) -> Trials:
    """``trials(outputs, ...)``: a good trial with each of these outputs."""

    def make(outputs: Sequence[Output], **changes: object) -> list[TrialRecord]:
        return [
            make_record("any", number).model_copy(update={"output": output, **changes})
            for number, output in enumerate(outputs)
        ]

    return make


def _out(said: str, lines: int | None = None) -> Output:
    return Output(stdout_sha256=said, stdout_bytes=len(said), stdout_lines=lines)


def _differ(agreed: Sequence[TrialRecord], records: Sequence[TrialRecord], workload: Workload = WORK) -> list[bool]:
    return [each.status == "different" for each in same_work.marked(workload, "glibc", agreed, records)]


def test_whoever_says_something_else_than_a_baseline_that_agrees_with_itself_did_other_work(trials: Trials) -> None:
    agreed = trials([_out("same")] * 4)
    assert _differ(agreed, trials([_out("same"), _out("half"), _out("same")])) == [False, True, False]


def test_one_trial_of_the_baseline_holds_nobody_to_it(trials: Trials) -> None:
    assert _differ(trials([_out("same")]), trials([_out("half")])) == [False]


def test_a_baseline_that_never_says_the_same_holds_nobody_to_its_words(trials: Trials) -> None:
    assert _differ(trials([_out("a"), _out("b")]), trials([_out("c")])) == [False]


@pytest.mark.parametrize(
    ("lines", "differs"), [(41, False), (38, False), (37, False), (36, True), (20, True), (45, False), (90, True)]
)
def test_where_the_words_are_never_the_same_the_lines_tell(trials: Trials, lines: int, differs: bool) -> None:
    agreed = trials([_out("a", 41), _out("b", 41), _out("c", 41)])
    assert _differ(agreed, trials([_out("d", lines)])) == [differs]


def test_what_a_filter_leaves_is_what_is_compared(trials: Trials) -> None:
    def filtered(said: str, left: str) -> Output:
        return _out(said).model_copy(update={"compared_sha256": left})

    agreed = trials([filtered("at 1", "rows"), filtered("at 2", "rows")])
    assert _differ(agreed, trials([filtered("at 3", "rows"), filtered("at 4", "half")])) == [False, True]


def test_another_exit_status_than_the_baselines_is_other_work_even_if_it_is_ignored(trials: Trials) -> None:
    agreed = trials([_out("same")] * 2, exit_code=0)
    assert _differ(agreed, trials([_out("same")], exit_code=1)) == [True]
    restless = [*trials([_out("same")], exit_code=0), *trials([_out("same")], exit_code=1)]
    assert _differ(restless, trials([_out("same")], exit_code=1)) == [False]


def test_a_program_that_measures_itself_is_held_to_the_operations_it_tells(trials: Trials) -> None:
    agreed = trials([_out("a"), _out("b")], figures={"seconds": 1.0, "operations": 1000.0})
    half = trials([_out("c")], figures={"seconds": 0.5, "operations": 500.0})
    silent = trials([_out("d")], figures={"seconds": 0.5})
    assert _differ(agreed, [*half, *silent]) == [True, True]
    free = trials([_out("a"), _out("b")], figures={"seconds": 1.0, "spins": 1000.0})
    assert _differ(free, trials([_out("c")], figures={"seconds": 1.0, "spins": 1.0})) == [False]


def test_output_that_may_differ_is_not_looked_at(trials: Trials) -> None:
    free = WORK.model_copy(update={"output_may_differ": True})
    assert _differ(trials([_out("same")] * 3), trials([_out("half")]), free) == [False]


_outputs = st.lists(st.sampled_from("ab"), min_size=0, max_size=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_outputs, _outputs)
def test_a_configuration_that_says_what_the_baseline_says_is_never_accused(
    trials: Trials, agreed: list[str], said: list[str]
) -> None:
    found = _differ(trials([_out(each) for each in agreed]), trials([_out(each) for each in said]))
    for each, differs in zip(said, found, strict=True):
        assert not (differs and each in agreed)
        if len(agreed) >= 2 and set(agreed) == {"a"}:
            assert differs == (each == "b")
