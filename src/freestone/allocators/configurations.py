"""The configurations a user asks for by name, path and settings, held against the allocators of this machine."""

from __future__ import annotations

import re
from collections.abc import Iterable

from freestone.allocators import notation
from freestone.allocators.discovery import called, configuration_for, discover, find, is_path
from freestone.allocators.errors import AllocatorError, BrokenLibrary
from freestone.records.schema import Allocator, Configuration


def configurations(words: Iterable[str], *, known: Iterable[Allocator] | None = None) -> list[Configuration]:
    """The configurations asked for, in the order asked, each once.

    One is named as it is written (:mod:`freestone.allocators.notation`), so that its name asks for it again; an
    allocator without settings has its own name.

    Args:
        words: what the user wrote, each a list with commas.
        known: what :func:`discover` returned, to not look twice.

    Raises:
        AllocatorError: no such allocator, not here, not fit, or settings that are none; the message is one line.
    """
    here = list(discover() if known is None else known)
    names = {allocator.name for allocator in here}
    chosen: dict[str, Configuration] = {}
    for asked in (each for word in words for each in notation.read(word, names)):
        (allocator,) = find([asked.allocator], known=here)
        name = notation.write(allocator.name, asked.settings, names)
        same = [each.allocator for each in chosen.values() if each.allocator.name == allocator.name]
        if any(each.file != allocator.file for each in same):
            raise BrokenLibrary(f"two allocators are named '{allocator.name}'; write NAME={allocator.file}")
        chosen.setdefault(name, configuration_for(allocator, name=name, environment=asked.settings))
    return list(chosen.values())


def present(
    words: Iterable[str], *, known: Iterable[Allocator] | None = None
) -> tuple[list[str], list[AllocatorError]]:
    """Which of the configurations asked for there are here, each as it is written, and why the others are not.

    Args:
        words: what the user wrote, each a list with commas.
        known: what :func:`discover` returned, to not look twice.

    Raises:
        AllocatorError: what was written is no configuration.
    """
    here = list(discover() if known is None else known)
    names = {allocator.name for allocator in here}
    found: list[str] = []
    missing: list[AllocatorError] = []
    for asked in (each for word in words for each in notation.read(word, names)):
        try:
            find([asked.allocator], known=here)
        except AllocatorError as error:
            missing.append(error)
        else:
            # A path was read with its backslashes taken away.
            typed = re.sub(r"([\\,:])", r"\\\1", asked.allocator)
            found.append(notation.write(typed, asked.settings, names))
    return found, missing


def require_known(words: Iterable[str], baseline: str | None, *, known: Iterable[Allocator] | None = None) -> None:
    """Every name that was asked for is in the catalogue. A path may be one of another machine.

    Args:
        words: what the user wrote, each a list with commas.
        baseline: what the user wrote for it, which may be the name of one of these; None for nothing.
        known: what :func:`discover` returned, to not look twice.

    Raises:
        AllocatorError: a name is in no catalogue, or what was written is no configuration.
    """
    by_name = {allocator.name: allocator for allocator in (discover() if known is None else known)}
    asked = [each.allocator for word in words for each in notation.read(word, by_name)]
    for each in asked:
        if not is_path(each):
            called(each, by_name)
    given = {each.partition("=")[0] for each in asked if "=" in each}
    for held_against in notation.read(baseline or "", {*by_name, *given}):
        if not is_path(held_against.allocator) and held_against.allocator not in given:
            called(held_against.allocator, by_name)


def twins(configurations: Iterable[Configuration]) -> list[str]:
    """A line for all that are one build with the same settings: what differs between them is noise."""
    alike: dict[tuple[object, ...], list[str]] = {}
    for each in configurations:
        if each.allocator.build_id is not None:
            settings = (*sorted(each.environment.items()), *sorted(each.kernel.items()), each.huge_pages_off)
            alike.setdefault((each.allocator.build_id, settings), []).append(each.name)
    return [
        f"{', '.join(names[:-1])} and {names[-1]} are one build with the same settings: what differs is noise"
        for names in alike.values()
        if len(names) > 1
    ]
