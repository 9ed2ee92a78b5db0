"""Makes a release, up to its upload: ``make release VERSION=1.2.0``.

Usage: ``PYTHONPATH=tools python -m release VERSION [--skip-tests] [--dry-run] [--repository FOLDER]``

The tree must be as it was committed, and CHANGELOG.md must have a section of the version. Then the version is written
where it belongs (``versions.py``), ``make packages`` and ``make test-packages`` run, and dist gets a list of what is
in each package (SPDX) and SHA256SUMS. The last lines are what is left to a person: the commit and the tag.

``--dry-run`` says what would be done and changes nothing. The exit status is 1 where something stands in the way: one
line says what. After a step that failed the same command goes on: a tree that differs by the version alone is taken.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from release import versions
from release.versions import Place, Refusal

REPOSITORY = Path(__file__).resolve().parents[2]
SUMS = "SHA256SUMS"


def files_of(place: Place, repository: Path) -> list[Path]:
    """The files that a place names."""
    return sorted(repository.glob(place.files))


def version_of_tree(repository: Path) -> str:
    """What the tree says its version is.

    Raises:
        Refusal: it says none.
    """
    first = versions.PLACES[0]
    held = versions.found(first, (repository / first.files).read_text(encoding="utf-8"))
    if len(held) != 1:
        raise Refusal(f"{first.files} does not say which version this is")
    return held[0]


def changes(version: str, repository: Path) -> Iterator[tuple[Path, str]]:
    """The files that hold the version, with their texts as they are to be."""
    for place in versions.PLACES:
        for file in files_of(place, repository):
            yield file, versions.written(place, file.read_text(encoding="utf-8"), version)


def git(repository: Path, *words: str) -> str:
    """What git says.

    Raises:
        Refusal: it fails, as where this is no clone.
    """
    done = subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise Refusal(f"git {words[0]} fails, and a release is made in a clone: {last}")
    return done.stdout


def check_clean(version: str, repository: Path) -> None:
    """What is released is what was committed, but for the version itself.

    Raises:
        Refusal: something else differs.
    """
    will_be = dict(changes(version, repository))
    for line in git(repository, "status", "--porcelain", "-z").split("\0"):
        name = line[3:]
        file = repository / name
        if not name or (line[:2] == " M" and file in will_be and _differs_by_version(file, version, repository)):
            continue
        raise Refusal(f"{name} is not as it was committed: commit it, or take it out of the way")


def _differs_by_version(file: Path, version: str, repository: Path) -> bool:
    committed = git(repository, "show", f"HEAD:{file.relative_to(repository)}")
    for place in versions.PLACES:
        if file in files_of(place, repository):
            committed = versions.written(place, committed, version)
    return committed == file.read_text(encoding="utf-8")


def check(version: str, repository: Path) -> None:
    """Everything that can be known before anything is built.

    Raises:
        Refusal: the first thing that stands in the way.
    """
    versions.parse(version)
    check_clean(version, repository)
    tags = git(repository, "tag", "--list", "v*").split()
    versions.check_newer(version, version_of_tree(repository), tags)
    pages = [*repository.glob("*.md"), *repository.glob("docs/guide/*.md"), *repository.glob("docs/reference/*.md")]
    versions.check_pages({str(p.relative_to(repository)): p.read_text(encoding="utf-8") for p in sorted(pages)})
    versions.check_changelog((repository / "CHANGELOG.md").read_text(encoding="utf-8"), version)


def run(command: list[str], repository: Path) -> None:
    """Runs one step in the repository; what it says is said.

    Raises:
        Refusal: it fails.
    """
    print(f"freestone: {' '.join(command)}", flush=True)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "tools")}
    status = subprocess.run(command, cwd=repository, env=environment, check=False).returncode
    if status != 0:
        raise Refusal(f"{' '.join(command)} ended with {status}: mend that, then the same command goes on")


def sums(dist: Path) -> str:
    """What ``sha256sum --check`` reads: a line for each file in the folder, in the order of their names."""
    files = sorted(file for file in dist.iterdir() if file.is_file() and file.name != SUMS)
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)


def steps(skip_tests: bool) -> list[list[str]]:
    """The commands that a release consists of, in their order."""
    make = os.environ.get("MAKE", "make")
    tests = [] if skip_tests else [[make, "--no-print-directory", "test-packages"]]
    contents = [sys.executable, "tools/bill_of_materials.py", "--dist", "dist"]
    return [[make, "--no-print-directory", "packages"], *tests, contents]


def release(version: str, repository: Path, *, skip_tests: bool, dry_run: bool) -> None:
    """Makes the release of a version in a clone.

    Raises:
        Refusal: something stands in the way; the message says what.
    """
    check(version, repository)
    changed = [(file, text) for file, text in changes(version, repository) if text != file.read_text(encoding="utf-8")]
    wanted = steps(skip_tests)
    if dry_run:
        for file, _ in changed:
            print(f"would set {version} in {file.relative_to(repository)}")
        for step in wanted:
            print(f"would run {' '.join(step)}")
        print(f"would write dist/{SUMS}")
        return
    for file, text in changed:
        file.write_text(text, encoding="utf-8")
    dist = repository / "dist"
    if dist.is_dir():  # else packages of another version would be released with it
        for old in [*dist.glob("*freestone*"), *dist.glob(SUMS)]:
            old.unlink()
    for step in wanted:
        run(step, repository)
        versions.check_packages([file.name for file in dist.glob("*")], version)
    (dist / SUMS).write_text(sums(dist), encoding="utf-8")
    print(f"freestone: {version} is in {dist}:")
    print(sums(dist), end="")
    if skip_tests:
        print("freestone: SKIP_TESTS is set: nobody has tried these packages", file=sys.stderr)
    print("Nothing was committed, tagged or uploaded. What is left:")
    if changed or git(repository, "status", "--porcelain"):
        print(f"    git commit --all --message 'Version {version}'")
    print(f"    git tag --annotate v{version} --message 'Version {version}'")


def main(arguments: list[str] | None = None) -> int:
    """Parses, releases; 1 where something stands in the way."""
    parser = argparse.ArgumentParser(prog="make release", description="Make a release, up to its upload.")
    parser.add_argument("version", help="MAJOR.MINOR.PATCH")
    parser.add_argument("--skip-tests", action="store_true", help="do not try the packages")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and change nothing")
    parser.add_argument("--repository", type=Path, default=REPOSITORY, help="the clone; default: the one of this file")
    options = parser.parse_args(arguments)
    try:
        release(options.version, options.repository.resolve(), skip_tests=options.skip_tests, dry_run=options.dry_run)
    except Refusal as refusal:
        print(f"freestone: no release: {refusal}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
