"""Gives processes of a pid namespace of their own the numbers that the kernel's census has of them. Pure.

Inside such a namespace a process is told another number than outside, and says that one. Its words are then matched by
the program and the time instead. That makes nothing valid that is not: in a complete census every report is of an image
that stands there. Where each image has found a report, each has made one, whichever of two of one program it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from freestone.trials.census import Ending, Image
from freestone.trials.evidence import Evidence
from freestone.trials.witness import Testimony

_Key = tuple[int, float]
"""Of an image's report: the number it says and its time."""


def numbered(evidence: Evidence) -> Evidence:
    """The same evidence, its reports with the census's numbers as far as they are found; without a census as it is."""
    if evidence.images is None or evidence.census_gap is not None:
        return evidence
    found = _found(evidence.images, evidence.testimonies)
    if not found:
        return evidence
    told = [_renumbered(each, found) for each in evidence.testimonies]
    images = {(image.pid, at_s) for (_, at_s), image in found.items()}
    return replace(evidence, testimonies=_forks_numbered(told, images, evidence.endings or ()))


def _found(images: Sequence[Image], testimonies: Sequence[Testimony]) -> dict[_Key, Image]:
    """The images of those reports that have none by their number."""
    by_pid: dict[int, list[Image]] = {}
    for image in images:
        by_pid.setdefault(image.pid, []).append(image)
    unmatched: list[Testimony] = []
    for each in (one for one in testimonies if one.fork_of is None):
        its = by_pid.get(each.pid, [])
        mine = next((image for image in its if _lived(image, each)), None)
        if mine is not None:
            its.remove(mine)
        elif each.damage is None:
            unmatched.append(each)
    silent = [image for rest in by_pid.values() for image in rest]
    found: dict[_Key, Image] = {}
    for each in sorted(unmatched, key=lambda one: one.at_s):
        # By the one that ends first: a later report cannot be of that one, and may be of the others.
        fitting = [image for image in silent if image.exe == each.exe and _lived(image, each)]
        if fitting:
            found[each.pid, each.at_s] = mine = min(fitting, key=lambda image: image.end_s)
            silent.remove(mine)
    return found


def _lived(image: Image, testimony: Testimony) -> bool:
    return image.begin_s <= testimony.at_s < image.end_s


def _renumbered(testimony: Testimony, found: dict[_Key, Image]) -> Testimony:
    if testimony.fork_of is not None:
        image = found.get(testimony.fork_of)
        return testimony if image is None else replace(testimony, fork_of=(image.pid, testimony.fork_of[1]))
    image = found.get((testimony.pid, testimony.at_s))
    return testimony if image is None else replace(_as(testimony, image.pid), parent=image.parent)


def _forks_numbered(testimonies: Sequence[Testimony], images: set[_Key], endings: Sequence[Ending]) -> list[Testimony]:
    """Forks of such images too, by the program that they run on and the time of their last words."""
    programs = {(each.pid, each.at_s): each.exe for each in testimonies if each.fork_of is None}
    numbers = {each.pid for each in testimonies if each.fork_of not in images}
    silent = [each for each in endings if each.pid not in numbers]
    told: list[Testimony] = []
    for each in testimonies:
        mine = None
        if each.fork_of is not None and each.fork_of in images:
            program = programs[each.fork_of]
            mine = next(
                (one for one in silent if one.program == program and one.born_s <= each.at_s <= one.ended_s), None
            )
        if mine is not None:
            silent.remove(mine)
        told.append(each if mine is None else _as(each, mine.pid))
    return told


def _as(testimony: Testimony, pid: int) -> Testimony:
    departure = testimony.departure
    return replace(testimony, pid=pid, departure=None if departure is None else replace(departure, pid=pid))
