"""Suites are found and read: those that come along hold together, and a mistake is one line with its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from freestone import suites
from freestone.suites import SuiteError
from freestone.suites.expansion import expand

PLACES = {"workloads": "/w", "inputs": "/i", "python": "/bin/py", "cores": "2", "4cores": "8"}


def test_there_are_suites_by_name() -> None:
    assert {"apps", "curves", "field", "idle", "patterns"} <= set(suites.names())


@pytest.mark.parametrize("quick", [False, True])
def test_every_suite_that_comes_along_holds_together_beside_the_others(quick: bool) -> None:
    for name in suites.names():
        assert expand([suites.load(name)], PLACES, quick=quick)
    assert expand(
        [suites.load("field"), suites.load("apps"), suites.load("idle"), suites.load("curves")], PLACES, quick=quick
    )


def test_every_workload_of_every_suite_has_a_quick_size() -> None:
    """But for the compiler, whose whole run is half a second, and the program that does nothing."""
    slow = []
    for name in suites.leaders():
        suite = suites.load(name)
        usual, quick = (expand([suite], PLACES, quick=each) for each in (False, True))
        pairs = [(one, other) for one, other in zip(usual, quick, strict=True) if one.cannot is None]
        slow += [one.name for one, other in pairs if one.command == other.command]
        assert all(one.environment == other.environment for one, other in pairs), "counting keeps the environment"
    assert slow == ["gcc-functions", "empty"]


def test_every_program_that_a_package_brings_is_named_with_it(repository: Path) -> None:
    packages = (repository / "tools" / "system_packages.toml").read_text()
    needs = [need for name in suites.names() for entry in suites.load(name).workload for need in entry.needs]
    assert needs
    for need in needs:
        assert f"\n'{need.package}' = " in packages or need.package == "gcc", "make bench brings it"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title = ", "is not TOML"),
        ("title = 't'", "workload: field required"),
        ("title = 't'\nworkload = []", "workload: list should have at least 1 item"),
        ("titel = 't'\n[[workload]]\nname = 'a'\ncommand = ['b']", "titel: is not known; did you mean title?"),
        (
            "title = 't'\nx = 1\n[[workload]]\nname = 'a'\ncommand = ['b']",
            "x: is not known; there are title, idles, include, setting, workload",
        ),
        (
            "title = 't'\n[[workload]]\nname = 'a'\ncomand = ['b']",
            "workload 'a', comand: is not known; did you mean command?",
        ),
        ("title = 't'\n[[workload]]\nname = 'a'", "workload 'a', command: field required"),
        (
            "title = 't'\n[[workload]]\nname = 'a'\ncommand = ['b']\nprepare = ' '",
            "workload 'a', prepare: it holds no command",
        ),
        (
            "title = 't'\n[[workload]]\nname = 'a'\ncommand = ['b']\nwait_tree = true\nallow_survivors = true",
            "workload 'a': wait_tree and allow_survivors say opposite things",
        ),
        (
            "title = 't'\n[[workload]]\nname = 'a'\ncommand = ['b']\noutput_may_differ = true\ncompare_output = 'x'",
            "workload 'a': output_may_differ compares no output",
        ),
        (
            "title = 't'\n[[workload]]\nname = 'a'\ncommand = ['b']\nignore_status = [256]",
            "workload 'a', ignore_status.0: input should be less than or equal to 255",
        ),
        (
            "title = 't'\n[[workload]]\nname = 'a'\ncommand = ['b']\nquik = {}",
            "workload 'a', quik: is not known; did you mean quick?",
        ),
        (
            "title = 't'\n[[workload]]\nname = 'a'\ncommand = ['b', \"\\u0000\"]",
            "workload 'a', command.1: it cannot hold a NUL character",
        ),
        (
            "title = 't'\n[[workload]]\nname = \"a\\nb\"\ncommand = ['b']",
            r"workload 'a\nb', name: it cannot hold a control character",
        ),
        (
            "title = 't'\n[[workload]]\nname = 'a'\ncommand = ['b']\nenvironment = { 'A=B' = '1' }",
            "workload 'a', environment.A=B.[key]: it cannot hold = or a NUL character",
        ),
        (
            "title = 't'\n[[workload]]\nname = 'a'\ncommand = ['b']\nmatrix = { n = [] }",
            "workload 'a', matrix.n: list should have at least 1 item",
        ),
        (
            "title = 't'\n[[workload]]\nname = 'a'\ncommand = ['b']\nvalues = " + "{a = " * 3000 + "1" + "}" * 3000,
            "is nested too deeply",
        ),
        ("title = 't'\n[[workload]]\ncommand = ['b']", "workload number 1, name: field required"),
        (
            "title = 't'\n[[workload]]\nname = 'a'\ncommand = ['b']\nreads = 'xml'",
            "workload 'a', reads: input should be",
        ),
        (
            "title = 't'\n[[workload]]\nname = 'a'\ncommand = ['b']\nneeds = [{ program = 'p', pakage = 'q' }]",
            "workload 'a', needs.0.pakage: is not known; did you mean package?",
        ),
    ],
)
def test_a_mistake_is_one_line_that_names_the_place(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(SuiteError) as error:
        suites.load(str(path))
    assert said in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_or_no_text_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"cannot read the suite .*none\.toml: no such file"):
        suites.load(str(tmp_path / "none.toml"))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SuiteError, match="not UTF-8"):
        suites.load(str(tmp_path / "binary.toml"))


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(SuiteError, match=r"no suite is called 'feild'; did you mean field\?"):
        suites.load("feild")
    with pytest.raises(SuiteError, match=r"there are apps, curves, faults, field, .*or give a \.toml file"):
        suites.load("zzz")


@pytest.mark.parametrize("page", ["reference/suites.md", "guide/measure-a-suite.md"])
def test_the_suites_in_the_documents_are_suites(repository: Path, tmp_path: Path, page: str) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", (repository / "docs" / page).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        (tmp_path / "block.toml").write_text(block)
        assert expand([suites.load(str(tmp_path / "block.toml"))], PLACES)


def test_a_suite_has_what_it_includes_behind_its_own(tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner.toml", tmp_path / "outer.toml"
    inner.write_text(
        "title = 'i'\n[[setting]]\nname = 's'\nallocators = ['glibc']\nenvironment = { A = '1' }\n"
        "[[workload]]\nname = 'a'\ncommand = ['x']\n"
    )
    outer.write_text(f"title = 'o'\ninclude = ['{inner}']\n[[workload]]\nname = 'b'\ncommand = ['y']\n")
    suite = suites.load(str(outer))
    assert (suite.title, [entry.name for entry in suite.workload]) == ("o", ["b", "a"])
    assert [setting.name for setting in suite.setting] == ["s"]


def test_a_suite_that_includes_itself_is_an_error(tmp_path: Path) -> None:
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    for path, other in ((one, two), (two, one)):
        path.write_text(f"title = 't'\ninclude = ['{other}']\n[[workload]]\nname = '{path.stem}'\ncommand = ['x']\n")
    with pytest.raises(SuiteError, match=r"one.toml includes itself, by way of .*one.toml, .*two.toml"):
        suites.load(str(one))


def test_all_suites_together_have_every_workload_once() -> None:
    loaded = [suites.load(name) for name in suites.leaders()]
    every = [entry.name for suite in loaded for entry in suite.workload]
    assert {entry.name for name in suites.names() for entry in suites.load(name).workload} == set(every)
    assert "stress" not in suites.leaders()


def test_settings_are_picked_by_name() -> None:
    faults = suites.load("faults")
    assert [each.name for each in suites.settings([faults], ["trim-0,arenas-1"])] == ["trim-0", "arenas-1"]
    assert suites.settings([faults], ["none"]) == []
    assert suites.settings([faults]) == faults.setting
    with pytest.raises(SuiteError, match="no setting is called 'trim'; did you mean trim-0"):
        suites.settings([faults], ["trim"])
    assert "trim-0" in [each.name for each in suites.settings([faults, suites.load("sizes")])], "the same in both"
    other = faults.setting[1].model_copy(update={"environment": {"A": "1"}})
    with pytest.raises(SuiteError, match="two different settings are named 'trim-0'"):
        suites.settings([faults, faults.model_copy(update={"setting": [other]})])
    with pytest.raises(SuiteError, match="these suites have none"):
        suites.settings([suites.load("idle")], ["trim-0"])
