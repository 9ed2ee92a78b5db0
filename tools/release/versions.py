"""What a version may be called, where it is written, and what the changelog says of it: decided, not done."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

NUMBER = r"(?:0|[1-9][0-9]*)"
KINDS = (".whl", ".tar.gz", ".deb", ".crate")
"""How the packages of a release end: at least one of each."""
WRITTEN = rf"{NUMBER}\.{NUMBER}\.{NUMBER}"


class Refusal(RuntimeError):
    """There is no such release; the message is one line that says what to do."""


@dataclass(frozen=True)
class Place:
    """Files that hold the version: by a pattern of paths, and the text around it, each as a regular expression."""

    files: str
    before: str
    after: str
    required: bool = False
    """Whether a file that matches has to hold it, once."""

    def expression(self) -> re.Pattern[str]:
        """What finds the version, and nothing around it, in a file's text."""
        return re.compile(rf"(?<={self.before}){WRITTEN}(?={self.after})", re.MULTILINE)


PLACES = (
    Place("src/freestone/__init__.py", r'__version__ = "', '"$', required=True),
    Place("packaging/crate/Cargo.toml", r'version = "', '"$', required=True),
    Place("docs/guide/*.md", r"freestone: ", " serves malloc"),
    Place("docs/reference/*.md", r"freestone: ", " serves malloc"),
)
"""CMake, the Debian packages and the tools ask the first; cargo cannot; the pages show what a program says."""


def parse(text: str) -> tuple[int, int, int]:
    """A version as numbers that can be compared.

    Versions before a release (``1.0.0-rc.1``) are not taken: pip, cargo and Debian write them in three ways.

    Raises:
        Refusal: it is no version of the form MAJOR.MINOR.PATCH.
    """
    if not re.fullmatch(WRITTEN, text, re.ASCII):
        raise Refusal(f"'{text}' is no version: write MAJOR.MINOR.PATCH, such as 1.2.0 (https://semver.org)")
    major, minor, patch = map(int, text.split("."))
    return major, minor, patch


def check_newer(version: str, current: str, tags: Iterable[str]) -> None:
    """A release comes after every one that has a tag, ``v1.2.0``, and goes on from what the tree says.

    Raises:
        Refusal: it does not.
    """
    wanted = parse(version)
    released = [parse(tag[1:]) for tag in tags if re.fullmatch(rf"v{WRITTEN}", tag, re.ASCII)]
    if released and wanted <= max(released):
        newest = ".".join(map(str, max(released)))
        raise Refusal(f"{version} is not newer than {newest}, which has the tag v{newest}: take a higher one")
    if wanted < parse(current):
        raise Refusal(f"{version} is older than {current}, which the tree says: take that, or a higher one")


def check_changelog(text: str, version: str) -> None:
    """Users are told of the version: it has a section with something in it, and nothing waits for a version.

    Raises:
        Refusal: it has none, or an empty one, or entries have been left where there is no version yet.
    """
    parts = re.split(r"^## \[([^\]]+)\][^\n]*\n", text, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    if version not in sections:
        raise Refusal(f"CHANGELOG.md has no section of {version}: call [Unreleased] ## [{version}] - YEAR-MONTH-DAY")
    if not re.search(r"^- ", sections[version], re.MULTILINE):
        raise Refusal(f"CHANGELOG.md says nothing of {version}: its section has no entry")
    if re.search(r"^- ", sections.get("Unreleased", ""), re.MULTILINE):
        raise Refusal(f"CHANGELOG.md still has entries under [Unreleased]: they go under [{version}]")


def check_pages(texts: Mapping[str, str]) -> None:
    """No page, by its name, says that there has been no release.

    Raises:
        Refusal: one does.
    """
    for name, text in texts.items():
        if re.search(r"not\s+released\s+yet", text):
            raise Refusal(f"{name} says 'not released yet': take that out, and commit")


def check_packages(names: Iterable[str], version: str) -> None:
    """Each kind of package is there, and all are of the version, by the names of their files.

    Raises:
        Refusal: one is missing, or of another version.
    """
    of_kinds = [name for name in names if name.endswith(KINDS)]
    absent = [kind for kind in KINDS if not any(name.endswith(kind) for name in of_kinds)]
    if absent:
        raise Refusal(f"dist has no {' and no '.join(absent)}: what make packages said tells why")
    if other := [name for name in of_kinds if not re.search(rf"[-_]{re.escape(version)}[-_.]", name)]:
        raise Refusal(f"dist has {other[0]}, which is not of {version}")


def found(place: Place, text: str) -> list[str]:
    """The versions that a file's text holds where the place says."""
    return place.expression().findall(text)


def written(place: Place, text: str, version: str) -> str:
    """The text with the version where the place says.

    Raises:
        Refusal: a file that has to hold it once does not.
    """
    changed, count = place.expression().subn(version, text)
    if place.required and count != 1:
        raise Refusal(f"{place.files} holds {count} versions where it should hold one: {place.before}...")
    return changed
