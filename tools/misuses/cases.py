"""The bugs: families of programs in ``tests/misuses``, and the arguments that make one bug of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

SIZES = ("small", "medium", "large")
"""40, 5,000 and 600,000 bytes."""
BETWEEN = ("100", "20000", "100000")
"""Bytes, for the bugs of which the size decides who stops them."""


@dataclass(frozen=True)
class Case:
    """One bug: the family it counts in, its name, and the program with its arguments."""

    family: str
    name: str
    words: tuple[str, ...]

    @property
    def frees(self) -> bool:
        """It is a free that may not be."""
        return self.family in ("double free", "free of what is no block")

    @property
    def is_bug(self) -> bool:
        """Not so of what makes bugs worse: nobody could stop it."""
        return not self.family.startswith("reuse")


def every() -> list[Case]:
    """All bugs, in the order of the table."""
    return [Case(family, " ".join(words[1:]), words) for family, words in _every()]


def choose(text: str) -> list[Case]:
    """Those that have the text in ``family: program arguments``, in the order of the table."""
    return [case for case in every() if text in f"{case.family}: {' '.join(case.words)}"]


def _every() -> Iterator[tuple[str, tuple[str, ...]]]:
    for what in ("write", "read"):
        for side, family in (("over", "overflow"), ("under", "underflow")):
            for distance in ("1", "32", "4096", "1048576"):
                for size in SIZES:
                    yield f"{family}, {what}", ("out_of_bounds", what, side, distance, "call", size)
            for size in SIZES:
                yield f"{family}, {what}", ("out_of_bounds", what, side, "1", "direct", size)
            for distance in ("8", "200"):
                for size in BETWEEN:
                    yield f"{family}, {what}", ("out_of_bounds", what, side, distance, "call", size)
    for what in ("write", "read"):
        for when in ("at-once", "reused"):
            for way in ("direct", "call"):
                for size in SIZES:
                    yield f"{what} after free", ("after_free", what, when, way, size)
        for size in BETWEEN:
            yield f"{what} after free", ("after_free", what, "at-once", "direct", size)
    for when in ("at-once", "interleaved", "delayed", "threads", "reused"):
        for size in SIZES:
            yield "double free", ("double_free", when, "malloc", size)
    for way in ("new", "array"):
        for size in SIZES:
            yield "double free", ("double_free", "at-once", way, size)
    for what in ("stack", "global", "text", "mapped", "unmapped"):
        yield "free of what is no block", ("wrong_free", what, "small")
    for what in ("interior", "unaligned", "near"):
        for size in SIZES:
            yield "free of what is no block", ("wrong_free", what, size)
    for how in ("larger", "smaller", "array-larger"):
        for size in SIZES:
            yield "size that does not match", ("mismatch", how, size)
    for how in ("free-new", "delete-malloc", "delete-array", "array-delete", "aligned-plain", "plain-aligned"):
        yield "way that does not match", ("mismatch", how, "small")
    for what in ("read", "write"):
        for way in ("malloc", "new"):
            yield "block of no bytes", ("nothing", what, way)
    for what in ("contents", "address"):
        for size in SIZES:
            yield f"reuse: {'what was in it' if what == 'contents' else 'same address at once'}", ("reuse", what, size)
