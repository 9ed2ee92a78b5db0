"""System packages: what is missing is found, one absent package never stops the others, one line tells the rest."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import system_packages
from foreign_programs.catalogue import PROGRAMS


class Archive(system_packages.Apt):
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


def package(apt: str, **fields: Any) -> Any:
    return system_packages.Package(groups=frozenset({"test"}), apt=apt, without="less is tested", **fields)


def test_the_catalogue_can_be_read_and_every_entry_can_be_seen() -> None:
    packages = system_packages.read_catalogue()
    assert {group for each in packages for group in each.groups} == {
        "compare",
        "test",
        "lint",
        "bench",
        "model",
        "aarch64",
        "riscv64",
        "ppc64le",
        "foreign",
        "fuzz",
        "packages",
        "places",
        "wheel",
    }
    assert all(each.command or each.library or each.module or each.file for each in packages)
    assert all(each.pattern() for each in packages)


def test_what_foreign_programs_want_names_them() -> None:
    named = {name for each in system_packages.read_catalogue() for name in each.programs}
    assert named == set(PROGRAMS) - {"gcc"}, "gcc is a package of `make model`: foreign takes the one that is there"
    assert all(("foreign" in each.groups) == bool(each.programs) for each in system_packages.read_catalogue())


def test_only_the_packages_of_chosen_programs_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name, **_: "/usr/bin/apt-get" if name == "apt-get" else None)
    monkeypatch.setattr(system_packages, "missing", list)
    monkeypatch.setattr(
        system_packages, "install_missing", lambda absent, apt: asked.extend(each.apt for each in absent)
    )
    assert system_packages.main(["foreign", "--only", "nginx", "git"]) == 0
    assert sorted(asked) == ["git", "nginx", "wrk"]
    asked.clear()
    assert system_packages.main(["foreign", "--only", "nosuch"]) == 0
    assert asked == []


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
def test_the_newest_matching_name_is_taken(names: list[str], pattern: str, chosen: str | None) -> None:
    assert system_packages.newest_name(names, re.compile(pattern)) == chosen


def test_presence_is_seen_by_command_library_module_or_file(tmp_path: Path) -> None:
    assert system_packages.is_present(package("sh", command=("no-such-command", "sh")), [])
    assert system_packages.is_present(package("j", library="libj.so"), ["libj.so.2"])
    assert system_packages.is_present(package("m", module="json.decoder"), [])
    (tmp_path / "15").mkdir()
    (tmp_path / "15" / "initdb").touch()
    assert system_packages.is_present(package("f", file=f"{tmp_path}/*/initdb"), [])
    assert not system_packages.is_present(package("f", file=f"{tmp_path}/*/pgbench"), [])
    assert not system_packages.is_present(package("n", command=("no-such-command",)), ["libj.so.2"])
    assert not system_packages.is_present(package("n", module="no_such_package.module"), [])


def test_all_are_installed_in_one_go() -> None:
    archive = Archive(["one1", "two"])
    system_packages.install_missing([package("one[0-9]"), package("two")], archive)
    assert archive.installed == [["one1", "two"]]
    assert archive.updates == 0


def test_lists_are_fetched_only_when_a_name_is_not_known() -> None:
    archive = Archive([], after_update=["one"])
    system_packages.install_missing([package("one")], archive)
    assert archive.updates == 1
    assert archive.installed == [["one"]]


def test_a_package_that_fails_does_not_stop_the_others() -> None:
    archive = Archive(["bad", "good", "better"], refuses="bad")
    system_packages.install_missing([package(name) for name in ("good", "bad", "better", "unknown")], archive)
    assert archive.installed == [["good"], ["better"]]


@pytest.mark.parametrize(("root", "apt"), [(True, True), (False, True), (True, False), (False, False)])
def test_one_line_names_what_is_missing_and_what_is_left_out(root: bool, apt: bool) -> None:
    absent = [package("libmimalloc[0-9.]+(t64)?"), package(r"g\+\+")]
    line = system_packages.one_line(absent, root=root, apt=apt)
    assert "\n" not in line
    assert "libmimalloc* (less is tested)" in line
    assert "g++ (less is tested)" in line


def test_a_missing_package_is_an_error_only_where_it_is_required(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(system_packages, "read_catalogue", lambda: [package("absent", command=("no-such-command",))])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert system_packages.main(["test"]) == 0
    assert system_packages.main(["test", "--required"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 2
    assert "less is tested" in said.err


def test_what_this_machine_cannot_provide_is_not_looked_for_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[list[Any]] = []
    monkeypatch.setattr(system_packages, "read_catalogue", lambda: [package("absent", command=("no-such-command",))])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name, **_: "/usr/bin/apt-get" if name == "apt-get" else None)
    monkeypatch.setattr(system_packages, "cached_libraries", list)
    monkeypatch.setattr(system_packages, "install_missing", lambda absent, apt: asked.append(absent))
    for _ in range(3):
        assert system_packages.main(["test", "--tried", str(tmp_path / "tried")]) == 0
    assert len(asked) == 1


def test_apt_is_never_asked_a_question() -> None:
    calls: list[tuple[list[str], dict[str, Any]]] = []

    def record(command: list[str], **settings: Any) -> subprocess.CompletedProcess[str]:
        calls.append((command, settings))
        return subprocess.CompletedProcess(command, 0, "", "")

    assert system_packages.Apt(record).install(["one"])
    command, settings = calls[0]
    assert "-y" in command
    assert "--no-install-recommends" in command
    assert settings["stdin"] == subprocess.DEVNULL
    assert settings["env"]["DEBIAN_FRONTEND"] == "noninteractive"
