"""What the Debian packages are called, dated and licensed, decided before anything is built."""

from __future__ import annotations

import shutil
import subprocess
from email.utils import parsedate_to_datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import build_deb


def test_the_version_is_the_packages(repository: Path) -> None:
    init = (repository / "src" / "freestone" / "__init__.py").read_text(encoding="utf-8")
    assert f'__version__ = "{build_deb.version_of(init)}"' in init


def test_a_package_without_a_version_is_refused() -> None:
    with pytest.raises(build_deb.Failure, match="__version__"):
        build_deb.version_of("version = 1\n")


def test_what_comes_before_a_release_is_older_for_debian_too() -> None:
    if shutil.which("dpkg") is None:
        pytest.skip("dpkg is missing: nobody says which version is older")
    rising = [build_deb.debian_version(each) for each in ("1.0.dev1", "1.0a1", "1.0b2", "1.0rc1", "1.0", "1.0.1")]
    for older, newer in pairwise(rising[1:]):
        assert subprocess.run(["dpkg", "--compare-versions", older, "lt", newer], check=False).returncode == 0
    assert subprocess.run(["dpkg", "--compare-versions", rising[0], "lt", "1.0"], check=False).returncode == 0


@given(st.integers(0, 4_000_000_000))
def test_the_changelog_has_its_time_in_debians_form(seconds: int) -> None:
    text = build_deb.changelog("0.1.0", "Somebody <somebody@example.org>", seconds)
    first, *_, last = text.rstrip("\n").splitlines()
    assert first == "freestone (0.1.0) unstable; urgency=medium"
    who, when = last.removeprefix(" -- ").split(">  ")
    assert who == "Somebody <somebody@example.org"
    assert parsedate_to_datetime(when).timestamp() == seconds


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "The Freestone authors <no-mail@freestone.invalid>"),
        ({"DEBEMAIL": "a@b.org"}, "The Freestone authors <a@b.org>"),
        ({"DEBEMAIL": "A B <a@b.org>"}, "A B <a@b.org>"),
        ({"DEBEMAIL": "A B <a@b.org>", "DEBFULLNAME": "C"}, "C <a@b.org>"),
        ({"DEBFULLNAME": "C"}, "C <no-mail@freestone.invalid>"),
    ],
)
def test_who_builds_packages_says_who_answers_for_them(
    environment: dict[str, str], expected: str, repository: Path
) -> None:
    assert build_deb.maintainer(environment) == expected
    told = build_deb.control((repository / "packaging" / "deb" / "control").read_text(encoding="utf-8"), expected)
    assert f"\nMaintainer: {expected}\n" in told


@pytest.mark.parametrize("given", ["me", "<>", "me@", "@b"])
def test_an_address_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(build_deb.Failure, match=r"^DEBEMAIL is '.*', which is no address"):
        build_deb.maintainer({"DEBEMAIL": given})


def test_a_control_file_without_a_place_for_it_is_refused() -> None:
    with pytest.raises(build_deb.Failure, match="0 lines 'Maintainer:'"):
        build_deb.control("Source: freestone\n", "A <a@b.org>")


@given(st.lists(st.text(st.characters(categories=["L", "N", "P"])), min_size=1))
def test_a_licence_stays_one_field_of_the_page(lines: list[str]) -> None:
    licence = "\n".join(lines)
    page = build_deb.copyright_page("Format: 1.0\n", licence, {"thing": licence})
    fields = [line for line in page.splitlines() if line and not line.startswith(" ")]
    assert [field.split(":")[0] for field in fields] == [
        "Format",
        "Files",
        "Copyright",
        "License",
        "License",
        "License",
    ]


def test_what_every_debian_has_is_named_and_not_repeated() -> None:
    long = "                  Apache License\n              Version 2.0, January 2004\n  TERMS"
    assert build_deb.licence_text(long).endswith("/usr/share/common-licenses/Apache-2.0")
    assert build_deb.licence_text("Permission is hereby granted") == "Permission is hereby granted"


def test_what_comes_without_a_licence_is_not_packaged(tmp_path: Path) -> None:
    with_text = tmp_path / "good_thing-1.0.dist-info" / "licenses"
    with_text.mkdir(parents=True)
    (with_text / "LICENSE").write_text("may be copied")
    assert build_deb.licences(tmp_path) == {"good_thing": "may be copied"}
    (tmp_path / "bare-2.0.dist-info").mkdir()
    with pytest.raises(build_deb.Failure, match=r"bare-2.0\.dist-info brings no licence"):
        build_deb.licences(tmp_path)


def test_a_program_that_is_missing_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(build_deb.Failure, match=r"no-such-program is missing; .*system_packages\.py packages"):
        build_deb.run(["no-such-program"], tmp_path / "log", tmp_path, {"PATH": str(tmp_path)})


def test_a_program_that_fails_is_named_with_its_log(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo 'error: broken'; exit 3"]
    with pytest.raises(build_deb.Failure, match=r"sh failed with 3, see .*log: .*error: broken"):
        build_deb.run(command, tmp_path / "log", tmp_path, {"PATH": "/usr/bin:/bin"})
