"""From templates to workloads: every combination once, every placeholder filled, what nothing stands for is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.suites.expansion import Planned, expand
from freestone.suites.schema import Entry, Suite, SuiteError

PLACES = {"python": "/bin/py", "cores": "2", "4cores": "8"}


def planned(small: bool = False, **entry: Any) -> list[Planned]:
    made = Entry.model_validate({"name": "w", "command": ["run"], **entry})
    return expand([Suite(title="t", workload=[made])], PLACES, quick=small)


def test_a_matrix_is_every_combination() -> None:
    found = planned(
        name="w-{order}-{size}", command=["run", "{order}", "{size}"], matrix={"order": ["a", "b"], "size": [1, 2]}
    )
    assert [each.name for each in found] == ["w-a-1", "w-a-2", "w-b-1", "w-b-2"]
    assert [each.command for each in found] == [
        ["run", "a", "1"],
        ["run", "a", "2"],
        ["run", "b", "1"],
        ["run", "b", "2"],
    ]


def test_cases_go_together_and_times_the_matrix() -> None:
    found = planned(
        name="{o}-{size}",
        command=["{o}", "{size}", "{n}"],
        matrix={"o": ["x", "y"]},
        cases=[{"size": 16, "n": 9}, {"size": 64, "n": 3}],
    )
    assert [each.command for each in found] == [["x", "16", "9"], ["x", "64", "3"], ["y", "16", "9"], ["y", "64", "3"]]


def test_quick_values_replace_all_others() -> None:
    entry: dict[str, Any] = {"command": ["run", "{n}"], "values": {"n": 100}, "quick": {"n": 1}}
    assert planned(**entry)[0].command == ["run", "100"]
    assert planned(True, **entry)[0].command == ["run", "1"]


def test_counting_takes_the_quick_values_and_its_own_words() -> None:
    entry: dict[str, Any] = {"command": ["run", "{n}"], "values": {"n": 100}, "quick": {"n": 1}}
    assert planned(**entry)[0].counting == ["run", "1"]
    assert planned(True, **entry)[0].counting is None, "it is what is run anyway"
    assert planned(**entry, counting=["--once", "{cores}"])[0].counting == ["run", "1", "--once", "2"]
    assert planned(True, **entry, counting=["--once"])[0].counting == ["run", "1", "--once"]
    assert planned()[0].counting is None


def test_what_is_counted_does_not_sleep() -> None:
    made = Entry.model_validate({"name": "w", "command": ["run", "{n}"], "reads": "json", "values": {"n": 9}})
    small = made.model_copy(update={"quick": {"n": 1}, "name": "v"})
    found = expand([Suite(title="t", idles=True, workload=[made, small])], PLACES, idle_s=2)
    assert [each.idle for each in found] == [["--idle", "2"]] * 2
    assert [each.counting for each in found] == [None, ["run", "1"]], "None: the command, which has no sleep in it"


def test_a_value_may_be_a_placeholder_whose_name_is_the_same_on_every_machine() -> None:
    (found,) = planned(name="w-{threads}", command=["run", "{threads}"], matrix={"threads": ["{4cores}"]})
    assert (found.name, found.command) == ("w-4cores", ["run", "8"])


def test_the_parameters_are_those_of_the_name_with_what_the_command_got() -> None:
    (found,) = planned(
        name="s-{threads}-{live}",
        command=["s", "{threads}", "{live}", "{rounds}"],
        values={"live": "1M", "rounds": 5},
        matrix={"threads": ["{4cores}"]},
        smaller=[{"live": "1K"}],
    )
    assert found.parameters == {"threads": "8", "live": "1M"}
    assert found.smaller[0].parameters == {"threads": "8", "live": "1K"}
    assert planned()[0].parameters == {}


def test_the_environment_is_filled_too() -> None:
    (found,) = planned(environment={"THREADS": "{cores}"})
    assert found.environment == {"THREADS": "2"}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"command": ["{pyton}"]}, "workload 'w': nothing stands for {pyton}; did you mean {python}?"),
        (
            {"name": "w-{sise}", "values": {"size": 1}},
            "the name 'w-{sise}': nothing stands for {sise}; did you mean {size}?",
        ),
        ({"command": ["{x}"], "values": {"x": "{nothing_like_it}"}}, "nothing stands for {nothing_like_it}; there are"),
    ],
)
def test_what_nothing_stands_for_is_refused_with_the_nearest(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(SuiteError) as error:
        planned(**entry)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_sleep_goes_to_programs_that_measure_themselves_in_suites_that_idle() -> None:
    entries = [Entry(name="own", command=["a", "1"], reads="json"), Entry(name="whole", command=["b"])]
    wakeful = Suite(title="t", workload=[Entry(name="other", command=["c"], reads="json")])
    suites = [Suite(title="t", idles=True, workload=entries), wakeful]
    planned = expand(suites, PLACES, idle_s=2)
    assert [each.command for each in planned] == [["a", "1"], ["b"], ["c"]]
    assert [each.idle for each in planned] == [["--idle", "2"], [], []]
    assert [each.rest_s for each in planned] == [None, 2, None], "whoever does not measure itself is kept at its end"
    assert [each.command for each in expand(suites, PLACES)] == [["a", "1"], ["b"], ["c"]]
    with pytest.raises(SuiteError, match="--idle is for suites whose programs sleep"):
        expand([wakeful], PLACES, idle_s=2)


def test_a_program_may_have_words_of_its_own_for_its_sleep() -> None:
    entry = Entry(name="w", command=["a"], reads="json", idle=["--", "@idle", "{idle}"])
    (found,) = expand([Suite(title="t", idles=True, workload=[entry])], PLACES, idle_s=7)
    assert (found.command, found.idle) == (["a"], ["--", "@idle", "7"])


@pytest.mark.parametrize("seconds", [-1, 0, 3601])
def test_a_sleep_that_no_program_takes_is_refused(seconds: int) -> None:
    with pytest.raises(SuiteError, match=f"--idle is a whole number of seconds from 1 to 3600, not {seconds}"):
        expand([Suite(title="t", idles=True, workload=[Entry(name="w", command=["a"])])], PLACES, idle_s=seconds)


def test_two_workloads_of_one_name_are_refused_also_over_two_suites() -> None:
    with pytest.raises(SuiteError, match="two workloads are named 'w'"):
        planned(matrix={"n": [1, 2]})
    one = Suite(title="t", workload=[Entry(name="w", command=["a"])])
    with pytest.raises(SuiteError, match="two workloads are named 'w'"):
        expand([one, one], PLACES)


def test_a_matrix_without_end_is_refused_at_once() -> None:
    axes = {key: list(range(300)) for key in "abc"}
    with pytest.raises(
        SuiteError, match=r"the matrix of 'w-\{a\}-\{b\}-\{c\}' makes 27,000,000 workloads; 10,000 are the most"
    ):
        planned(name="w-{a}-{b}-{c}", matrix=axes)


@given(st.text().filter(lambda text: "\0" not in text))
def test_text_without_a_known_placeholder_stays_or_is_refused(text: str) -> None:
    try:
        (found,) = planned(command=[text])
    except SuiteError:
        assert "{" in text
    else:
        assert found.command == [text] or any("{" + place + "}" in text for place in PLACES)
