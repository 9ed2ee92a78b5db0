"""What tells two configurations apart: version, build, content of the file, settings. In words, pure."""

from __future__ import annotations

from freestone.analysis.sides import Side
from freestone.records.schema import Configuration


def other_library(one: Configuration, other: Configuration, before: Side, after: Side) -> str:
    """Whether a library without a build-id has another content, in words; nothing where it has not, or nobody knows."""
    contents = [
        {
            content
            for record in side.records
            if record.configuration == each.name and (content := record.files.get(each.allocator.file or ""))
        }
        for each, side in ((one, before), (other, after))
    ]
    return "another content of its file" if all(contents) and not contents[0] & contents[1] else ""


def change_of(one: Configuration, other: Configuration) -> str:
    """What is different about a configuration, in words; nothing when it is the same: build-id and settings decide."""
    told = []
    mine, theirs = one.allocator, other.allocator
    if mine.build_id is None or mine.build_id != theirs.build_id:
        sides = [", ".join(_library(*pair)) for pair in ((one, other), (other, one))]
        if any(sides):
            told.append(" -> ".join(side or "the same" for side in sides))
    told += [f"{name}: {_told(values[0])} -> {_told(values[1])}" for name, values in _settings(one, other).items()]
    return ", ".join(told)


def told_from(one: Configuration, other: Configuration) -> str:
    """Two configurations by their names, each with what the other has not: ``old (build 12ab) -> new (build 34cd)``."""
    own = [
        [*_library(*pair), *(f"{name} unset" if value is None else f"{name}={value}" for name, (value, _) in pairs)]
        for pair in ((one, other), (other, one))
        for pairs in [_settings(*pair).items()]
    ]
    sides = [
        f"{each.name} ({', '.join(parts)})" if parts else each.name
        for each, parts in zip((one, other), own, strict=True)
    ]
    return " -> ".join(sides) + ("" if any(own) else ": the same build and settings")


def _library(one: Configuration, other: Configuration) -> list[str]:
    """What tells a configuration's library from another's; what is the same on both sides tells nothing."""
    mine, theirs = one.allocator, other.allocator
    told = []
    if (mine.title, mine.version) != (theirs.title, theirs.version) and mine.version is not None:
        told.append(f"{mine.title} {mine.version}" if mine.title != one.name else mine.version)
    if mine.build_id != theirs.build_id:
        short = None if mine.build_id is None else mine.build_id[:12]
        alike = theirs.build_id is not None and short == theirs.build_id[:12]
        told.append("no build-id" if short is None else f"build {mine.build_id if alike else short}")
    elif mine.build_id is None and mine.file != theirs.file:
        told.append(mine.file or "no file")
    return told


def _settings(one: Configuration, other: Configuration) -> dict[str, tuple[str | None, str | None]]:
    """Variable -> its two values, of those that differ; None where it is not set."""
    pairs = {
        name: (one.environment.get(name), other.environment.get(name))
        for name in sorted(one.environment.keys() | other.environment.keys())
    }
    return {name: values for name, values in pairs.items() if values[0] != values[1]}


def _told(value: str | None) -> str:
    return "unset" if value is None else value or "empty"
