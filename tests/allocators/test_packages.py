"""What the distribution's tools say, and what they say when asked badly."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from freestone.allocators import packages


@pytest.mark.parametrize(
    ("version", "upstream"),
    [
        ("2.0.9+ds-2", "2.0.9"),
        ("5.3.0-1", "5.3.0"),
        ("2021.8.0-2+deb12u1", "2021.8.0"),
        ("1:2.10-1.1ubuntu1", "2.10"),
        ("2.16.0~rc1-1", "2.16.0"),
        ("5.3.0", "5.3.0"),
    ],
)
def test_the_upstream_version_leaves_out_what_the_distribution_added(version: str, upstream: str) -> None:
    assert packages.Package("any", version).upstream_version == upstream


@pytest.mark.parametrize(
    ("release", "family"),
    [
        ('ID=debian\nVERSION_ID="12"\n', "debian"),
        ("ID=ubuntu\nID_LIKE=debian\n", "debian"),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\n', "debian"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "fedora"),
        ("ID=alpine\n", "alpine"),
        ("ID=arch\n", "arch"),
        ("ID=nixos\n", ""),
        ("", ""),
    ],
)
def test_the_family_is_read_from_os_release(release: str, family: str) -> None:
    assert packages.distribution(release) == family


def test_the_command_to_get_one_is_the_familys() -> None:
    names = {"fedora": ["gperftools-libs"], "alpine": ["gperftools"]}
    assert packages.how_to_get(names, "fedora") == "dnf install gperftools-libs"
    assert packages.how_to_get(names, "alpine") == "apk add gperftools"
    assert packages.how_to_get(names, "arch") is None
    assert packages.how_to_get(names, "") is None


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A PATH that holds only the tools a test writes."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def write(name: str, script: str) -> None:
        tool = folder / name
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)

    return write


def test_debians_release_decides_which_of_two_names_it_uses(tools) -> None:
    names = {"debian": ["libtcmalloc-minimal4t64", "libtcmalloc-minimal4"]}
    assert packages.how_to_get(names, "debian") == "apt-get install libtcmalloc-minimal4t64"
    tools("apt-cache", "echo libtcmalloc-minimal4; echo libtcmalloc-minimal4-dbg")
    assert packages.how_to_get(names, "debian") == "apt-get install libtcmalloc-minimal4"


def test_dpkg_is_asked_once_for_every_file_and_both_spellings(tools) -> None:
    tools(
        "dpkg-query",
        "case $1 in\n"
        "-S) echo 'libfoo1:amd64: /lib/x/libfoo.so.1'; echo 'diversion by bar from: /usr/lib/x/libbar.so'; exit 1;;\n"
        "-W) printf 'libfoo1:amd64\\tlibfoo1\\t1.2-3\\n';;\n"
        "esac",
    )
    foo, bar = Path("/usr/lib/x/libfoo.so.1"), Path("/usr/lib/x/libbar.so")
    assert packages.owners([foo, bar]) == {foo: packages.Package("libfoo1", "1.2-3")}


def test_rpm_pacman_and_apk_are_understood(tools, tmp_path: Path) -> None:
    file = Path("/usr/lib64/libjemalloc.so.2")
    tools("apk", "echo '/usr/lib/libjemalloc.so.2 is owned by jemalloc-5.3.0-r6'")
    assert packages.owners([file]) == {file: packages.Package("jemalloc", "5.3.0-r6")}
    tools("pacman", "echo '/usr/lib/libjemalloc.so.2 is owned by jemalloc 1:5.3.0-5'")
    assert packages.owners([file])[file].upstream_version == "5.3.0"
    tools("rpm", "printf 'jemalloc\\t5.3.0-6.fc40\\n'")
    assert packages.owners([file]) == {file: packages.Package("jemalloc", "5.3.0-6.fc40")}


def test_without_any_tool_nobody_owns_anything(tools) -> None:
    assert packages.owners([Path(os.__file__)]) == {}
    assert packages.owners([]) == {}
