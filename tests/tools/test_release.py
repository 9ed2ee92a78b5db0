"""A release: what it refuses, where the version goes, and what is in dist at its end."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import release.__main__ as tool
from release import versions

NUMBERS = st.tuples(*[st.integers(0, 10**6)] * 3)


def text_of(numbers: tuple[int, int, int]) -> str:
    return ".".join(map(str, numbers))


# --- what is decided


@given(NUMBERS)
def test_a_version_is_three_numbers(numbers: tuple[int, int, int]) -> None:
    assert versions.parse(text_of(numbers)) == numbers


@pytest.mark.parametrize("text", ["", "1", "1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.2.3-rc.1", "1.2.3\n", "1.2.٣", "a"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(versions.Refusal, match=r"is no version: write MAJOR\.MINOR\.PATCH"):
        versions.parse(text)


@given(NUMBERS, st.lists(NUMBERS), NUMBERS)
def test_a_release_is_newer_than_all_others_and_not_older_than_the_tree(
    wanted: tuple[int, int, int], released: list[tuple[int, int, int]], current: tuple[int, int, int]
) -> None:
    tags = ["v1", "vague", *(f"v{text_of(each)}" for each in released)]
    is_newer = all(wanted > each for each in released) and wanted >= current
    try:
        versions.check_newer(text_of(wanted), text_of(current), tags)
    except versions.Refusal:
        assert not is_newer
    else:
        assert is_newer


@pytest.mark.parametrize(
    ("changelog", "said"),
    [
        ("# Changelog\n\n## [Unreleased]\n\n- new\n", "no section of 1.2.0"),
        ("## [1.2.0] - 2026-12-01\n\n## [1.1.0]\n\n- old\n", "says nothing of 1.2.0"),
        ("## [Unreleased]\n\n- more\n\n## [1.2.0]\n\n- new\n", "entries under [Unreleased]"),
        ("## [1.2.01]\n\n- new\n", "no section of 1.2.0"),
    ],
)
def test_a_changelog_that_does_not_tell_is_refused(changelog: str, said: str) -> None:
    with pytest.raises(versions.Refusal) as refusal:
        versions.check_changelog(changelog, "1.2.0")
    assert said in str(refusal.value)


def test_a_changelog_that_tells_is_taken() -> None:
    versions.check_changelog("## [Unreleased]\n\n## [1.2.0] - 2026-12-01\n\n### Added\n\n- new\n", "1.2.0")


COMPLETE = [
    "freestone-1.2.0-py3-none-any.whl",
    "freestone-1.2.0.tar.gz",
    "freestone_1.2.0_amd64.deb",
    "freestone-1.2.0.crate",
]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (COMPLETE[1:], "dist has no .whl: "),
        (COMPLETE[2:], "dist has no .whl and no .tar.gz: "),
        ([*COMPLETE, "libfreestone0_1.2.01_amd64.deb"], "libfreestone0_1.2.01_amd64.deb, which is not of 1.2.0"),
        ([*COMPLETE, "freestone-11.2.0.crate"], "freestone-11.2.0.crate, which is not of 1.2.0"),
    ],
)
def test_packages_that_are_missing_or_of_another_version_are_refused(names: list[str], said: str) -> None:
    with pytest.raises(versions.Refusal) as refusal:
        versions.check_packages(names, "1.2.0")
    assert said in str(refusal.value)


def test_packages_of_every_kind_and_of_the_version_are_taken() -> None:
    versions.check_packages([*COMPLETE, "SHA256SUMS", "freestone-1.1.0.cdx.json"], "1.2.0")


def test_a_page_that_says_there_is_no_release_is_refused() -> None:
    versions.check_pages({"a.md": "It was released."})
    with pytest.raises(versions.Refusal, match=r"^b\.md says 'not released yet'"):
        versions.check_pages({"a.md": "", "b.md": "It is not\nreleased yet."})


def test_all_places_of_this_tree_hold_one_version(repository: Path) -> None:
    held = {
        (str(file.relative_to(repository)), version)
        for place in versions.PLACES
        for file in tool.files_of(place, repository)
        for version in versions.found(place, file.read_text(encoding="utf-8"))
    }
    assert {version for _, version in held} == {tool.version_of_tree(repository)}
    assert {"src/freestone/__init__.py", "packaging/crate/Cargo.toml", "docs/reference/options.md"} <= {
        file for file, _ in held
    }


# --- what is done, in a small clone

FAKE_MAKE = """#!/bin/sh
echo "$2" >>asked
[ "$2" = packages ] || exit 0
mkdir -p dist
version=$(sed -n 's/.* = "\\(.*\\)"/\\1/p' src/freestone/__init__.py)
for name in -$version-py3-none-any.whl -$version.tar.gz _${version}_all.deb -$version.crate; do
    printf 'a package' >"dist/freestone$name"
done
"""


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=A", "-c", "user.email=a@b.org"]
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A committed tree with what a release looks at; make does next to nothing there, and no package is looked into."""
    folder = tmp_path / "clone"
    texts = {
        "src/freestone/__init__.py": '__version__ = "0.1.0"\n',
        "packaging/crate/Cargo.toml": '[package]\nversion = "0.1.0"\n\n[build-dependencies]\ncc = "1"\n',
        "docs/guide/install.md": "It says `freestone: 0.1.0 serves malloc`.\n",
        "CHANGELOG.md": "## [0.2.0] - 2026-12-01\n\n- new\n",
        ".gitignore": "dist\nasked\n",
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    git(folder.parent, "init", "--quiet", str(folder))
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "all")
    make = tmp_path / "make"
    make.write_text(FAKE_MAKE, encoding="utf-8")
    make.chmod(0o755)
    monkeypatch.setenv("MAKE", str(make))
    real = tool.steps
    monkeypatch.setattr(tool, "steps", lambda skip_tests: [step for step in real(skip_tests) if step[0] == str(make)])
    return folder


def status(clone: Path, *words: str) -> int:
    return tool.main([*words, "--repository", str(clone)])


def refused(clone: Path, version: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a release is refused with; nothing was run."""
    assert status(clone, version) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("freestone: no release: ")
    assert said.err.count("\n") == 1
    assert not (clone / "asked").exists()
    return said.err


def test_a_release_sets_the_version_builds_tries_and_sums_up(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (clone / "dist").mkdir()
    (clone / "dist" / "freestone-0.1.0.crate").write_text("old", encoding="utf-8")
    assert status(clone, "0.2.0") == 0
    said = capsys.readouterr().out
    assert (clone / "asked").read_text(encoding="utf-8").split() == ["packages", "test-packages"]
    assert (clone / "src/freestone/__init__.py").read_text(encoding="utf-8") == '__version__ = "0.2.0"\n'
    assert 'version = "0.2.0"' in (clone / "packaging/crate/Cargo.toml").read_text(encoding="utf-8")
    assert "0.2.0 serves" in (clone / "docs/guide/install.md").read_text(encoding="utf-8")
    digest = hashlib.sha256(b"a package").hexdigest()
    names = ["-0.2.0-py3-none-any.whl", "-0.2.0.crate", "-0.2.0.tar.gz", "_0.2.0_all.deb"]
    lines = [f"{digest}  freestone{name}" for name in names]
    assert (clone / "dist" / tool.SUMS).read_text(encoding="utf-8").splitlines() == lines
    assert (
        subprocess.run(["sha256sum", "--check", "--quiet", tool.SUMS], cwd=clone / "dist", check=False).returncode == 0
    )
    assert said.splitlines()[-1] == "    git tag --annotate v0.2.0 --message 'Version 0.2.0'"
    tags = subprocess.run(["git", "-C", str(clone), "tag"], capture_output=True, text=True, check=True).stdout
    assert tags == ""


def test_a_release_goes_on_after_a_step_that_failed(
    clone: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(tool, "steps", lambda skip_tests: [[sys.executable, "-c", "raise SystemExit(3)"]])
        assert status(clone, "0.2.0") == 1
    assert "ended with 3: mend that" in capsys.readouterr().err
    assert '"0.2.0"' in (clone / "src/freestone/__init__.py").read_text(encoding="utf-8")
    assert status(clone, "0.2.0") == 0


def test_packages_that_nobody_tried_are_told_of(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(clone, "0.2.0", "--skip-tests") == 0
    assert "nobody has tried these packages" in capsys.readouterr().err
    assert (clone / "asked").read_text(encoding="utf-8").split() == ["packages"]


def test_a_dry_run_changes_nothing(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(clone, "0.2.0", "--dry-run") == 0
    said = capsys.readouterr().out.splitlines()
    assert "would set 0.2.0 in src/freestone/__init__.py" in said
    assert said[-1] == f"would write dist/{tool.SUMS}"
    assert not (clone / "dist").exists()
    changed = subprocess.run(["git", "-C", str(clone), "status", "--porcelain"], capture_output=True, check=True)
    assert changed.stdout == b""


@pytest.mark.parametrize("name", ["CHANGELOG.md", "src/freestone/__init__.py", "new.py"])
def test_a_tree_that_is_not_as_committed_is_refused(clone: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with (clone / name).open("a", encoding="utf-8") as file:
        file.write("# more\n")
    assert f"{name} is not as it was committed" in refused(clone, "0.2.0", capsys)


def test_a_version_that_has_a_tag_is_refused(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(clone, "tag", "v0.2.0")
    assert "0.2.0 is not newer than 0.2.0" in refused(clone, "0.2.0", capsys)


def test_what_users_are_not_told_of_is_refused(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "CHANGELOG.md has no section of 0.3.0" in refused(clone, "0.3.0", capsys)


def test_outside_a_clone_there_is_no_release(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (clone / ".git").rename(clone.parent / "taken")
    assert "git status fails, and a release is made in a clone" in refused(clone, "0.2.0", capsys)


def test_the_steps_are_packages_tests_and_what_is_in_them() -> None:
    assert [step[-1] for step in tool.steps(skip_tests=False)] == ["packages", "test-packages", "dist"]
    assert [step[-1] for step in tool.steps(skip_tests=True)] == ["packages", "dist"]
