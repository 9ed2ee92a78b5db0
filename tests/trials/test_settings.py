"""A setting that is measured is in force in every process, or the trial is none."""

from __future__ import annotations

import subprocess

import pytest

from freestone import native
from freestone.allocators import configuration_for, find
from freestone.records.schema import Configuration
from freestone.trials import witness
from freestone.trials.environment import steers, under_test
from freestone.trials.setting_complaint import complaint

ARENAS = {"MALLOC_ARENA_MAX": "2"}


@pytest.fixture
def arenas(glibc: Configuration) -> Configuration:
    return glibc.model_copy(update={"name": "glibc:MALLOC_ARENA_MAX=2", "environment": ARENAS})


def test_settings_that_arrive_are_proved(attempt, arenas) -> None:
    record = attempt("sh", "-c", "ls / > /dev/null; (ls / | wc -l)", configuration=arenas)
    assert (record.status, record.reason) == ("ok", None)


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("env -u MALLOC_ARENA_MAX ls /", "did not find it"),
        ("MALLOC_ARENA_MAX=1 ls /", "found '1'"),
        ("MALLOC_ARENA_MAX= ls /", "found ''"),
        ("unset MALLOC_ARENA_MAX; exec ls /", "did not find it"),
    ],
)
def test_a_setting_that_a_script_takes_away_or_changes_makes_the_trial_invalid(attempt, arenas, line, instead) -> None:
    record = attempt("sh", "-c", line, configuration=arenas)
    assert record.status == "invalid"
    assert record.reason.startswith("other setting: MALLOC_ARENA_MAX=2 is what is measured, and /")
    assert instead in record.reason
    assert attempt("sh", "-c", line).status == "ok", "where it is not measured, it is the program's own affair"


def test_a_long_value_and_strange_bytes_arrive(attempt, glibc) -> None:
    for value in ("x" * 1023, "a b%c\td", "x" * 5000, "é"):
        arm = glibc.model_copy(update={"environment": {"MIMALLOC_NOBODY_S": value, "JEMALLOC_NOBODY_S": value}})
        record = attempt("ls", "/", configuration=arm)
        assert (record.status, record.reason) == ("ok", None), value[:20]


def test_a_report_holds_any_number_of_variables_and_any_name(attempt) -> None:
    """More than fits the witness's buffer, and what would break its lines."""
    many = {f"MIMALLOC_{number}": f"{number} " + "% " * 500 for number in range(200)}
    strange = {"MALLOC_\n_": "a\nb", "MALLOC_ %": " ", "MALLOC_é": "é"}
    record = attempt("sh", "-c", "ls / | wc -l", environment=many | strange)
    assert (record.status, record.reason) == ("ok", None)
    assert record.steered == {}, "they were given"
    words = [f"{name}={value}" for name, value in (many | strange).items()]
    record = attempt("env", *words, "ls", "/")
    assert (record.status, record.reason) == ("ok", None)
    assert record.steered == many | strange


STEERING = (
    "MALLOC_X", "GLIBC_TUNABLES", "LD_BIND_NOW", "FREESTONE_OPTIONS", "MIMALLOC_X", "JEMALLOC_X", "MALLOC_CONF",
    "_RJEM_MALLOC_CONF", "JE_MALLOC_CONF", "TCMALLOC_X", "HEAPPROFILE", "HEAPCHECK", "HEAP_PROFILE_X", "HEAP_CHECK_X",
    "PPROF_X", "TBB_X", "SNMALLOC_X", "RPMALLOC_X", "SCUDO_OPTIONS", "HARDENED_MALLOC_X", "PYTHONMALLOC",
    "PYTHONMALLOCSTATS",
)  # fmt: skip
"""One name for each pattern of what steers."""


def test_the_witness_reports_all_that_steers_and_the_lab_takes_out(tmp_path) -> None:
    """So that a setting under test can be proved, whoever reads it."""
    assert all(steers(name) for name in STEERING)
    others = ("PATH", "HOME", "OMP_NUM_THREADS", "HEAPPROFILER", "MALLOC", "TBB", "OF_MALLOC_CONFUSION", "LD")
    assert not any(steers(name) for name in others)
    environment = dict.fromkeys((*STEERING, *others), "v")
    witnessed = {"LD_PRELOAD": str(native.path("libfreestone-witness.so")), "FREESTONE_WITNESS": str(tmp_path)}
    subprocess.run(["/bin/ls", "/"], env=environment | witnessed, capture_output=True, check=True)
    (testimony,) = witness.read_folder(tmp_path)
    assert testimony.damage is None
    assert sorted(name for name, _ in testimony.settings) == sorted(STEERING)


def test_what_steers_no_allocator_is_not_proved(glibc) -> None:
    arm = glibc.model_copy(update={"environment": {"PATH": "/bin", "MALLOC_CONF": "a:b", "OMP_NUM_THREADS": "2"}})
    assert under_test(arm) == {"MALLOC_CONF": "a:b"}


@pytest.mark.parametrize(
    ("allocator", "variable", "value", "said"),
    [
        ("freestone", "FREESTONE_OPTIONS", "hardn=1", "'hardn=1' is not an option"),
        ("freestone", "FREESTONE_OPTIONS", "harden=yes", "'harden=yes' has a value that is not a number from 0 to 1"),
        ("jemalloc", "MALLOC_CONF", "nobody_knows:1", "nobody_knows"),
    ],
)
def test_a_setting_that_the_allocator_refuses_makes_the_trial_invalid(
    attempt, allocator, variable, value, said
) -> None:
    found = find([allocator])[0]
    if not found.available:
        pytest.skip(f"{allocator} is not on this machine: {found.reason}")
    arm = configuration_for(found).model_copy(update={"environment": {variable: value}})
    record = attempt("ls", "/", configuration=arm)
    assert record.status == "invalid"
    assert record.reason.startswith("a setting is not in force: ")
    assert said in record.reason


def test_only_words_of_who_reads_the_setting_count() -> None:
    line = "freestone: FREESTONE_OPTIONS: 'heap=4' is not an option; ignored (docs/reference/options.md lists them)"
    assert complaint(f"hello\n{line}\n", {"FREESTONE_OPTIONS": ""}) == line
    assert complaint(f"hello\n{line}\n", {"MALLOC_CONF": ""}) is None
    assert (
        complaint("<jemalloc>: Invalid conf pair: a:b\n", {"MALLOC_CONF": ""}) == "<jemalloc>: Invalid conf pair: a:b"
    )
    assert complaint("<jemalloc>: Invalid conf pair: a:b\n", {"JE_MALLOC_CONF": ""}) is not None
    assert complaint("all is well\n", {"MALLOC_CONF": "", "FREESTONE_OPTIONS": ""}) is None


def test_what_a_script_of_the_program_sets_is_told(attempt) -> None:
    line = "export MALLOC_TRIM_THRESHOLD_=0 JE_MALLOC_CONF=a:b OTHER=1; exec ls /"
    record = attempt("sh", "-c", line)
    assert record.status == "ok", record.reason
    assert record.steered == {"MALLOC_TRIM_THRESHOLD_": "0", "JE_MALLOC_CONF": "a:b"}
    given = attempt("ls", "/", environment={"MALLOC_TRIM_THRESHOLD_": "0"})
    assert given.steered == {}
