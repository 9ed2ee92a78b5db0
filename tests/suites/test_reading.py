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
    for name in suites.names():
        suite = suites.load(name)
        usual, quick = (expand([suite], PLACES, quick=each) for each in (False, True))
        slow += [one.name for one, other in zip(usual, quick, strict=True) if one.command == other.command]
    assert slow == ["gcc-functions", "empty"]


def test_every_program_that_a_package_brings_is_named_with_it(repository: Path) -> None:
    packages = (repository / "tools" / "system_packages.toml").read_text()
    needs = [need for name in suites.names() for entry in suites.load(name).workload for need in entry.needs]
    assert needs
    for need in needs:
        assert f"apt = '{need.package}'" in packages or need.package == "gcc", "make bench brings it"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title = ", "is not TOML"),
        ("title = 't'", "workload: field required"),
        ("title = 't'\nworkload = []", "workload: list should have at least 1 item"),
        ("titel = 't'\n[[workload]]\nname = 'a'\ncommand = ['b']", "title: field required"),
        (
            "title = 't'\nx = 1\n[[workload]]\nname = 'a'\ncommand = ['b']",
            "x: is not known; there are title, idles, workload",
        ),
        ("title = 't'\n[[workload]]\nname = 'a'\ncomand = ['b']", "workload 'a', command: field required"),
        (
            "title = 't'\n[[workload]]\nname = 'a'\ncommand = ['b']\nquik = {}",
            "workload 'a', quik: is not known; did you mean quick?",
        ),
        ("title = 't'\n[[workload]]\ncommand = ['b']", "workload number 1, name: field required"),
        (
            "title = 't'\n[[workload]]\nname = 'a'\ncommand = ['b']\nreads = 'xml'",
            "workload 'a', reads: input should be",
        ),
        (
            "title = 't'\n[[workload]]\nname = 'a'\ncommand = ['b']\nneeds = [{ program = 'p', pakage = 'q' }]",
            "workload 'a', needs.0.package: field required",
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
    with pytest.raises(SuiteError, match=r"there are apps, curves, field, .*or give a \.toml file"):
        suites.load("zzz")


@pytest.mark.parametrize("page", ["reference/suites.md", "guide/measure-a-suite.md"])
def test_the_suites_in_the_documents_are_suites(repository: Path, tmp_path: Path, page: str) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", (repository / "docs" / page).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        (tmp_path / "block.toml").write_text(block)
        assert expand([suites.load(str(tmp_path / "block.toml"))], PLACES)
