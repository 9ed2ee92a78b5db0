"""A folder or an order goes on as it was begun: whatever else is asked for is refused, and never dropped."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_records import MakeExperiment

from freestone.commands.asked_again import require_nothing_else, require_same_line
from freestone.experiments.plan import PlanError
from freestone.records import store
from freestone.records.schema import Order, Place

Tool = Callable[..., subprocess.CompletedProcess[str]]

OPTIONS = ["-n 1", "-a glibc", "--env X=1", "--keep-env"]
OF_THIS_PLACE = ["--into here", "--json", "--no-report", "--results r", "--export-csv x.csv"]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("begun")


@pytest.fixture
def folder(begun: Path, make_experiment: MakeExperiment) -> Path:
    if not (begun / store.EXPERIMENT_FILE).exists():
        line = ["freestone", "compare", "--into", "there", *_words(OPTIONS), "--", "work", "-n", "3"]
        store.write_experiment(begun, make_experiment(command_line=line))
    return begun


def _words(options: list[str]) -> list[str]:
    return [word for option in options for word in option.split()]


def test_the_same_options_are_the_same_line_however_they_are_written(folder: Path) -> None:
    @given(st.permutations(OPTIONS), st.lists(st.sampled_from(OF_THIS_PLACE)), st.booleans())
    def held(options: list[str], more: list[str], joined: bool) -> None:
        said = [each.replace(" ", "=", 1) if joined and each.startswith("--") else each for each in [*options, *more]]
        require_same_line(folder, ["compare", *_words(said), "--", "work", "-n", "3"])

    held()


def test_whatever_is_more_or_less_or_otherwise_is_refused(folder: Path) -> None:
    others = st.sampled_from(["-n 2", "-a jemalloc", "--env X=2", "--timeout 1", "-n glibc", *OPTIONS])

    @given(st.lists(others))
    def held(options: list[str]) -> None:
        line = ["compare", *_words(options), "--", "work", "-n", "3"]
        if sorted(options) == sorted(OPTIONS):
            require_same_line(folder, line)
            return
        with pytest.raises(PlanError, match="this line is not the one that began it: "):
            require_same_line(folder, line)

    held()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (["compare", "-n", "5", "-a", "glibc", "--env", "X=1", "--keep-env"], "began it: with -n 5, without -n 1"),
        (["compare", *_words(OPTIONS), "-n", "1"], "began it: one of them twice"),
        (["bench", *_words(OPTIONS)], "it was begun by freestone compare"),
    ],
)
def test_what_is_not_the_same_is_named(folder: Path, line: list[str], told: str) -> None:
    with pytest.raises(PlanError) as error:
        require_same_line(folder, [*line, "--", "work", "-n", "3"])
    assert str(error.value).startswith(f"cannot resume {folder}: ")
    assert str(error.value).endswith(told)


def test_another_program_is_named(folder: Path) -> None:
    with pytest.raises(PlanError, match=r"it measured another command \(work -n 3\)"):
        require_same_line(folder, ["compare", *_words(OPTIONS), "--", "work", "-n", "4"])


def test_an_order_goes_on_by_its_verb_and_with_nothing_else(tmp_path: Path) -> None:
    words = ["compare", "--seed", "1", "-n", "3", "--", "true"]
    places = [Place(name="board", engine="ssh", address="board")]
    store.write_order(tmp_path, Order(id="o", created_at="", freestone_version="1", words=words, places=places))
    require_nothing_else(tmp_path, "compare", {"-n": None}, ())
    require_nothing_else(tmp_path, "compare", {"-n": None}, ("true",))
    with pytest.raises(PlanError, match=r"leave out -n, --timeout$"):
        require_nothing_else(tmp_path, "compare", {"-n": 20, "-a": None, "--timeout": 1.0})
    with pytest.raises(PlanError, match="it measures another command; leave the program out"):
        require_nothing_else(tmp_path, "compare", {}, ("ls",))
    with pytest.raises(PlanError, match=f"was begun by freestone compare: go on with: .* compare --resume {tmp_path}$"):
        require_nothing_else(tmp_path, "bench", {"SUITE": ("field",)})


def test_a_folder_does_not_go_on_with_other_options(freestone: Tool, tmp_path: Path) -> None:
    line = ["compare", "-n", "1", "-a", "glibc", "--no-report", "--into", "here"]
    assert freestone(*line, "--", "true").returncode == 0
    kept = (tmp_path / "here" / store.TRIALS_FILE).read_bytes()
    other = freestone(*line, "--timeout", "1", "--", "true")
    assert (other.returncode, other.stdout) == (2, "")
    assert other.stderr == "freestone: cannot resume here: this line is not the one that began it: with --timeout 1\n"
    assert (tmp_path / "here" / store.TRIALS_FILE).read_bytes() == kept


@pytest.mark.parametrize("program", [["--shell", "--", "true | true"], ["--scan", "n=1,2", "--", "echo", "{n}"]])
def test_lines_for_a_shell_and_scans_go_on_too(freestone: Tool, program: list[str]) -> None:
    line = ["compare", "-n", "1", "-a", "glibc", "--no-report", "--into", "here", *program]
    assert freestone(*line).returncode == 0
    again = freestone(*line)
    assert (again.returncode, "is complete" in again.stderr) == (0, True), again.stderr


def test_an_order_that_goes_on_refuses_what_would_be_dropped(freestone: Tool, tmp_path: Path) -> None:
    assert freestone("compare", "--on", "local", "-n", "1", "-a", "glibc", "--", "true").returncode == 0
    (order,) = (tmp_path / "results").iterdir()
    for words, told in (
        (["compare", "--resume", order, "-n", "20"], f"--resume goes on with the settings of {order}; leave out -n"),
        (["compare", "--resume", order, "--", "ls"], "it measures another command"),
        (["compare", "--resume", order, "--json"], "--json: that is of one machine's results"),
        (["compare", "--resume", order, "--no-report"], "leave out --no-report"),
        (["bench", "field", "--resume", order], "was begun by freestone compare: go on with: "),
    ):
        done = freestone(*words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert told in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--on", "local", "--json"], "--json: that is of one machine's results"),
        (["--on", "local", "--no-report"], "--no-report: what several places have measured is shown by a report"),
        (["--on", "local", "--into", "x"], "--on makes a results folder for each place, and --into names one"),
        (["--into", "x", "--resume", "y"], "--into and --resume both name the results folder"),
    ],
)
def test_what_would_be_dropped_is_refused_before_anything_runs(
    freestone: Tool, tmp_path: Path, more: list[str], told: str
) -> None:
    done = freestone("compare", *more, "-n", "1", "-a", "glibc", "--", "true")
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert not any((tmp_path / name).exists() for name in ("results", "x"))
