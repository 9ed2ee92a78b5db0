"""What glibc's settings do to each other, and which of them reach a program that sets some itself. Pure.

glibc moves two thresholds with the program, until one of four knobs is set by anybody (research note, section 5.1):
from then on both stand still. So a setting is whole only where whoever set it has set both, or has forbidden mappings.
Of one knob that several set, the last one counts: mallopt comes after the environment, and
GLIBC_TUNABLES over MALLOC_*.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from freestone.doctor.observations import Observations

FREEZING: Final = frozenset(("mmap_threshold", "trim_threshold", "top_pad", "mmap_max"))
"""Setting one of them stops both thresholds from following the program."""

VARIABLES: Final = {
    "MALLOC_ARENA_MAX": "arena_max",
    "MALLOC_ARENA_TEST": "arena_test",
    "MALLOC_CHECK_": "check",
    "MALLOC_MMAP_MAX_": "mmap_max",
    "MALLOC_MMAP_THRESHOLD_": "mmap_threshold",
    "MALLOC_PERTURB_": "perturb",
    "MALLOC_TOP_PAD_": "top_pad",
    "MALLOC_TRIM_THRESHOLD_": "trim_threshold",
}
"""glibc's old names -> its tunables, without ``glibc.malloc.``."""

PARAMETERS: Final = {
    1: "mxfast",
    -1: "trim_threshold",
    -2: "top_pad",
    -3: "mmap_threshold",
    -4: "mmap_max",
    -6: "perturb",
    -7: "arena_test",
    -8: "arena_max",
}
"""Of mallopt -> tunables."""

TUNABLES: Final = "GLIBC_TUNABLES"
_MALLOC: Final = "glibc.malloc."

MOST_MAPPINGS: Final = 65536
"""glibc's own M_MMAP_MAX: who asks for more, and for whole KiB, means bytes."""


def parameter(number: int) -> str:
    """As mallopt's caller writes it: ``M_TRIM_THRESHOLD``; the number where it has no name."""
    return f"M_{PARAMETERS[number].upper()}" if number in PARAMETERS else str(number)


def tunables(value: str) -> dict[str, str]:
    """The settings of a GLIBC_TUNABLES, the last of each."""
    found = (part.partition("=") for part in value.split(":"))
    return {name: setting for name, equals, setting in found if equals and name}


def written(settings: Mapping[str, str]) -> str:
    """And back."""
    return ":".join(f"{name}={value}" for name, value in settings.items())


def knobs(settings: Mapping[str, str]) -> frozenset[str]:
    """glibc's knobs that an environment sets."""
    old = {VARIABLES[name] for name in settings if name in VARIABLES}
    new = {name.removeprefix(_MALLOC) for name in tunables(settings.get(TUNABLES, "")) if name.startswith(_MALLOC)}
    return frozenset(old | new)


def by_mallopt(calls: Iterable[tuple[int, int]]) -> frozenset[str]:
    """glibc's knobs that a program sets itself."""
    return frozenset(PARAMETERS[number] for number, _ in calls if number in PARAMETERS)


def is_whole(names: Collection[str]) -> bool:
    """Whether these knobs, all that are set, leave no threshold standing at what it happens to be."""
    frozen = FREEZING.intersection(names)
    return not frozen or ("trim_threshold" in frozen and not frozen.isdisjoint(("mmap_threshold", "mmap_max")))


def slips(calls: Iterable[tuple[int, int]]) -> list[str]:
    """Calls of mallopt that mean something else, a sentence each."""
    return [
        f"mallopt(M_MMAP_MAX, {value}) reads like bytes, and is a number of mappings: M_MMAP_THRESHOLD is -3"
        for number, value in calls
        if PARAMETERS.get(number) == "mmap_max" and value > MOST_MAPPINGS and value % 1024 == 0
    ]


@dataclass(frozen=True)
class Unfit:
    """Why settings cannot be tried, in a few words."""

    why: str


def combined(settings: Mapping[str, str], seen: Observations, *, glibc: bool) -> dict[str, str] | Unfit:
    """A remedy's settings beside what steers the program already.

    A knob that the program sets itself is left out, since it would be overwritten; a tunable is put among those in
    force, which it would take the place of; what would leave a threshold frozen is unfit.

    Args:
        settings: variables of the remedy.
        seen: what the program has in force, and sets itself.
        glibc: whether they are for glibc's malloc.
    """
    scripts = sorted(settings.keys() & seen.settings.scripts.keys())
    if scripts:
        return Unfit(f"its own scripts set {', '.join(scripts)}")
    if not glibc or not settings:
        return dict(settings)
    own = by_mallopt(seen.heap.mallopts if seen.heap is not None else ())
    asked = {name: value for name, value in settings.items() if VARIABLES.get(name) not in own}
    mine = tunables(settings.get(TUNABLES, ""))
    kept = {name: value for name, value in mine.items() if name.removeprefix(_MALLOC) not in own}
    if not kept:
        asked.pop(TUNABLES, None)
    if not asked:
        names = sorted(knobs(settings) & own)
        return Unfit(f"the program sets {', '.join(f'M_{name.upper()}' for name in names)} itself, by mallopt")
    before = seen.settings.environment
    if not is_whole(knobs(asked) | own | knobs(before)) and FREEZING & knobs(asked):
        return Unfit("with what the program sets itself, it would freeze one of glibc's thresholds at its default")
    standing = tunables(before.get(TUNABLES, ""))
    over = {_MALLOC + VARIABLES[name]: value for name, value in asked.items() if name in VARIABLES}
    changed = {**{name: value for name, value in over.items() if name in standing}, **kept}
    if changed:
        asked[TUNABLES] = written({**standing, **changed})
    return asked
