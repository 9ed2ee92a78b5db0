"""Python packages: what a package asks for, at which versions it was tested, and under which licences they come."""

from __future__ import annotations

import email
import re
from collections.abc import Iterable, Iterator, Mapping
from email.message import Message
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bill_of_materials.part import Part, licence_expression

OF_CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": None,  # which of them it does not say
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}
"""What older metadata calls a licence, after ``License :: OSI Approved ::``."""


def locked(constraints: str) -> dict[str, str]:
    """The versions of a file of constraints, by the canonical names of the packages."""
    lines = (line.split("#")[0].strip() for line in constraints.splitlines())
    pairs = (line.split("==", 1) for line in lines if "==" in line)
    return {str(canonicalize_name(name.strip())): version.strip() for name, version in pairs}


def requirements(text: str) -> tuple[list[Requirement], dict[str, list[Requirement]]]:
    """What a package's metadata asks for always, and by extra."""
    always: list[Requirement] = []
    extras: dict[str, list[Requirement]] = {}
    message = email.message_from_string(text)
    for name in message.get_all("Provides-Extra", []):
        extras[str(name)] = []
    for line in message.get_all("Requires-Dist", []):
        wanted = Requirement(str(line))
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", str(wanted.marker or ""))
        (extras.setdefault(extra.group(1), []) if extra else always).append(wanted)
    return always, extras


def with_theirs(wanted: Iterable[Requirement]) -> list[str]:
    """The canonical names of what is asked for, and of all that this asks for in turn, as installed here."""
    found: dict[str, None] = {}
    left = [str(canonicalize_name(each.name)) for each in wanted]
    while left:
        name = left.pop()
        if name in found:
            continue
        found[name] = None
        left += [str(canonicalize_name(each.name)) for each in _asked_by(name)]
    return sorted(found)


def _asked_by(name: str) -> Iterator[Requirement]:
    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return
    for line in lines:
        wanted = Requirement(line)
        if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
            yield wanted


def part_of(message: Message) -> Part:
    """The part that a package's own metadata describes."""
    licence, said = _licence(message)
    return Part(str(canonicalize_name(str(message["Name"]))), str(message["Version"]), "python", licence, said)


def part_named(name: str, versions: Mapping[str, str]) -> Part:
    """The part of a canonical name at its locked version; the licence is that of what is installed here, if it is."""
    try:
        found = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return Part(name, versions.get(name), "python")
    licence, said = _licence(found)  # type: ignore[arg-type]  # a Message under another type
    return Part(name, versions.get(name), "python", licence, said)


def _licence(message: Message) -> tuple[str | None, str]:
    """The licence as SPDX has it, and in the package's words, on one line."""
    stated = str(message.get("License-Expression") or "")
    if expression := licence_expression(stated):
        return expression, stated
    classifiers = [str(each).split(" :: ")[-1] for each in message.get_all("Classifier", []) if "License ::" in each]
    named = [OF_CLASSIFIERS.get(each) for each in classifiers]
    words = str(message.get("License") or "").strip().splitlines()
    said = "; ".join([*words[:1], *classifiers])
    if words and (expression := licence_expression(words[0])):
        return expression, said
    if named and all(named):
        return " OR ".join(str(each) for each in named), said
    return None, said
