"""The points of a search: valid settings only, each written in one way, and none that a library does not know."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.allocators import notation
from freestone.doctor.remedies import CANDIDATES
from freestone.records.schema import Allocator
from freestone.tuning import space
from freestone.tuning.knobs import AS_IS, KNOBS, PRESETS, SEPARATORS
from freestone.tuning.space import Point, Room

EVERY: Room = KNOBS
"""A room in which every allocator knows every knob."""

FREEZING = {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_MAX_"}


@st.composite
def points(draw: st.DrawFn) -> Point:
    def choose(name: str, values: Sequence[str], ordered: bool) -> str:
        return draw(st.sampled_from(list(values)))

    return space.draw(EVERY, choose)


def called(name: str, version: str = "9.9") -> Allocator:
    return Allocator(name=name, title=name, version=version)


@given(points())
def test_settings_are_read_as_the_point_that_they_were_written_from(point: Point) -> None:
    assert space.read(EVERY, point.allocator, space.environment(EVERY, point)) == point


@given(points())
def test_a_point_is_typed_as_it_is_called(point: Point) -> None:
    settings = space.environment(EVERY, point)
    (asked,) = notation.read(notation.write(point.allocator, settings))
    assert (asked.allocator, dict(asked.settings)) == (point.allocator, settings)


@given(points())
def test_no_knob_of_glibc_freezes_another(point: Point) -> None:
    said = space.environment(EVERY, point).keys() & FREEZING
    if said:
        assert "MALLOC_TRIM_THRESHOLD_" in said
        assert said & {"MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_"}


@given(points())
def test_an_entry_stands_once_in_a_list(point: Point) -> None:
    for variable, value in space.environment(EVERY, point).items():
        entries = value.split(SEPARATORS[variable]) if variable in SEPARATORS else [value]
        names = [entry.replace("=", ":").partition(":")[0] for entry in entries]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("allocator", KNOBS)
def test_a_plain_allocator_sets_nothing(allocator: str) -> None:
    assert space.environment(EVERY, space.plain(EVERY, allocator)) == {}


def test_presets_are_of_the_room_and_differ() -> None:
    found = list(space.presets(EVERY))
    assert len(set(found)) == len(found) == sum(map(len, PRESETS.values()))
    assert all(space.environment(EVERY, each) for each in found)
    assert [each.allocator for each in found[: len(PRESETS)]] == list(EVERY)


@pytest.mark.parametrize(
    ("allocator", "settings"),
    sorted({(each.allocator, each.settings) for row in CANDIDATES.values() for each in row if each.settings}),
    ids=str,
)
def test_what_the_doctor_tries_is_a_point(allocator: str, settings: tuple[tuple[str, str], ...]) -> None:
    assert entries(dict(settings)) in [
        entries(space.environment(EVERY, each)) for each in space.presets(EVERY) if each.allocator == allocator
    ]


def entries(settings: dict[str, str]) -> set[tuple[str, str]]:
    return {
        (name, entry)
        for name, value in settings.items()
        for entry in (value.split(SEPARATORS[name]) if name in SEPARATORS else [value])
    }


def test_other_settings_are_no_point() -> None:
    assert space.read(EVERY, "glibc", {"MALLOC_PERTURB_": "1"}) is None
    assert space.read(EVERY, "glibc", {"MALLOC_MMAP_THRESHOLD_": "65536"}) is None
    assert space.read(EVERY, "nobody", {}) is None


def test_a_library_has_the_knobs_that_stand_in_its_file() -> None:
    known = space.knobs(called("mimalloc"), b"\0decommit_delay\0large_os_pages\0")
    assert [each.name for each in known] == ["decommit_delay", "large_os_pages"]


@pytest.mark.parametrize(
    ("version", "unknown"), [("2.36", set()), ("2.34", {"huge_pages"}), ("2.28", {"huge_pages", "tcache_count"})]
)
def test_a_libc_has_the_tunables_of_its_version(version: str, unknown: set[str]) -> None:
    known = {each.name for each in space.knobs(called("glibc", version), b"")}
    assert known == {each.name for each in KNOBS["glibc"]} - unknown


@pytest.mark.parametrize(
    ("name", "family"),
    [("jemalloc5", "jemalloc"), ("libjemalloc.so.2", "jemalloc"), ("mimalloc3-secure", "mimalloc"), ("snmalloc", None)],
)
def test_kin_have_the_same_knobs(name: str, family: str | None) -> None:
    assert space.family(name) == family


def test_a_stranger_has_no_knobs() -> None:
    assert space.knobs(called("snmalloc"), b"purge_delay") == ()


def test_a_value_that_sets_nothing_is_called_so_everywhere() -> None:
    silent = {label for row in KNOBS.values() for knob in row for label, sets in knob.values.items() if not sets}
    assert silent == {AS_IS}
