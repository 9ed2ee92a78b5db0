"""System packages: what is missing is found, one absent package never stops the others, one line tells the rest."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="module")
def script(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("system_packages", repository / "tools" / "system_packages.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Archive:
    """Stands for apt: knows some names, refuses some, remembers what it was asked."""

    def __init__(self, known: list[str], after_update: list[str] | None = None, refuses: str = "") -> None:
        self.known, self.after_update, self.refuses = known, after_update, refuses
        self.installed: list[list[str]] = []
        self.updates = 0

    def names(self) -> list[str]:
        return self.known

    def update(self) -> None:
        self.updates += 1
        self.known = self.after_update if self.after_update is not None else self.known

    def install(self, names: list[str]) -> bool:
        if self.refuses in names:
            return False
        self.installed.append(names)
        return True


def package(script: ModuleType, apt: str, **fields: Any) -> Any:
    return script.Package(group="test", apt=apt, without="less is tested", **fields)


def test_the_catalogue_can_be_read_and_every_entry_can_be_seen(script: ModuleType) -> None:
    packages = script.read_catalogue()
    assert {each.group for each in packages} == {"compare", "test", "lint"}
    assert all(each.command or each.library or each.module for each in packages)
    assert all(each.pattern() for each in packages)


@pytest.mark.parametrize(
    ("names", "pattern", "chosen"),
    [
        (["libmimalloc-dev", "libmimalloc2.0"], r"libmimalloc[0-9.]+(t64)?", "libmimalloc2.0"),
        (["libmimalloc2.0", "libmimalloc3.0"], r"libmimalloc[0-9.]+(t64)?", "libmimalloc3.0"),
        (["lib9", "lib10"], r"lib[0-9]+", "lib10"),
        (["libtcmalloc-minimal4t64"], r"libtcmalloc-minimal[0-9]+(t64)?", "libtcmalloc-minimal4t64"),
        (["clang-14", "clang-format"], r"clang", None),
    ],
)
def test_the_newest_matching_name_is_taken(
    script: ModuleType, names: list[str], pattern: str, chosen: str | None
) -> None:
    assert script.newest_name(names, re.compile(pattern)) == chosen


def test_presence_is_seen_by_command_library_or_module(script: ModuleType) -> None:
    assert script.is_present(package(script, "sh", command=("no-such-command", "sh")), [])
    assert script.is_present(package(script, "j", library="libj.so"), ["libj.so.2"])
    assert script.is_present(package(script, "m", module="json.decoder"), [])
    assert not script.is_present(package(script, "n", command=("no-such-command",)), ["libj.so.2"])
    assert not script.is_present(package(script, "n", module="no_such_package.module"), [])


def test_all_are_installed_in_one_go(script: ModuleType) -> None:
    archive = Archive(["one1", "two"])
    script.install_missing([package(script, "one[0-9]"), package(script, "two")], archive)
    assert archive.installed == [["one1", "two"]]
    assert archive.updates == 0


def test_lists_are_fetched_only_when_a_name_is_not_known(script: ModuleType) -> None:
    archive = Archive([], after_update=["one"])
    script.install_missing([package(script, "one")], archive)
    assert archive.updates == 1
    assert archive.installed == [["one"]]


def test_a_package_that_fails_does_not_stop_the_others(script: ModuleType) -> None:
    archive = Archive(["bad", "good", "better"], refuses="bad")
    script.install_missing([package(script, name) for name in ("good", "bad", "better", "unknown")], archive)
    assert archive.installed == [["good"], ["better"]]


@pytest.mark.parametrize(("root", "apt"), [(True, True), (False, True), (True, False), (False, False)])
def test_one_line_names_what_is_missing_and_what_is_left_out(script: ModuleType, root: bool, apt: bool) -> None:
    absent = [package(script, "libmimalloc[0-9.]+(t64)?"), package(script, r"g\+\+")]
    line = script.one_line(absent, root=root, apt=apt)
    assert "\n" not in line
    assert "libmimalloc* (less is tested)" in line
    assert "g++ (less is tested)" in line


def test_a_missing_package_is_not_an_error(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "read_catalogue", lambda: [package(script, "absent", command=("no-such-command",))])
    monkeypatch.setattr(script.os, "geteuid", lambda: 1000)
    assert script.main(["test"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "less is tested" in said.err


def test_what_this_machine_cannot_provide_is_not_looked_for_again(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[list[Any]] = []
    monkeypatch.setattr(script, "read_catalogue", lambda: [package(script, "absent", command=("no-such-command",))])
    monkeypatch.setattr(script.os, "geteuid", lambda: 0)
    monkeypatch.setattr(script.shutil, "which", lambda name, **_: "/usr/bin/apt-get" if name == "apt-get" else None)
    monkeypatch.setattr(script, "cached_libraries", list)
    monkeypatch.setattr(script, "install_missing", lambda absent, apt: asked.append(absent))
    for _ in range(3):
        assert script.main(["test", "--tried", str(tmp_path / "tried")]) == 0
    assert len(asked) == 1


def test_apt_is_never_asked_a_question(script: ModuleType) -> None:
    calls: list[tuple[list[str], dict[str, Any]]] = []

    def record(command: list[str], **settings: Any) -> subprocess.CompletedProcess[str]:
        calls.append((command, settings))
        return subprocess.CompletedProcess(command, 0, "", "")

    assert script.Apt(record).install(["one"])
    command, settings = calls[0]
    assert "-y" in command
    assert "--no-install-recommends" in command
    assert settings["stdin"] == subprocess.DEVNULL
    assert settings["env"]["DEBIAN_FRONTEND"] == "noninteractive"
