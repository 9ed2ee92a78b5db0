"""The settings that are worth trying: each valid, and none that a library does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from freestone.allocators import notation, settings
from freestone.allocators.settings import SETTINGS
from freestone.doctor.remedies import CANDIDATES
from freestone.records.schema import Allocator, Configuration
from freestone.reports import deployment

EVERY = [(kin, name, dict(variables)) for kin, row in SETTINGS.items() for name, variables in row.items()]
FREEZING = {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_MAX_"}


def known(name: str, version: str = "9.9", file: Path | None = None) -> set[str]:
    return set(settings.known(Allocator(name=name, title=name, version=version, file=file and str(file))))


@pytest.mark.parametrize(("kin", "name", "variables"), EVERY, ids=str)
def test_a_setting_can_be_typed(kin: str, name: str, variables: dict[str, str]) -> None:
    named = Configuration(name=f"{kin}+{name}", allocator=Allocator(name=kin, title=kin), environment=variables)
    for written in (notation.write(kin, variables), deployment.as_typed(named)):
        (asked,) = notation.read(written)
        assert (asked.allocator, dict(asked.settings)) == (kin, variables)


def test_no_two_settings_of_an_allocator_are_one() -> None:
    assert len({(kin, tuple(variables.items())) for kin, _, variables in EVERY}) == len(EVERY)


def test_no_setting_of_glibc_freezes_a_threshold() -> None:
    for _, _, variables in EVERY:
        if variables.keys() & FREEZING:
            assert "MALLOC_TRIM_THRESHOLD_" in variables
            assert variables.keys() & {"MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_"}


@pytest.mark.parametrize(
    ("allocator", "wanted"),
    sorted({(each.allocator, each.settings) for row in CANDIDATES.values() for each in row if each.settings}),
    ids=str,
)
def test_every_remedy_of_the_doctor_is_among_them(allocator: str, wanted: tuple[tuple[str, str], ...]) -> None:
    assert dict(wanted) in [variables for kin, _, variables in EVERY if kin == allocator]


def test_a_library_has_the_settings_that_stand_in_its_file(tmp_path: Path) -> None:
    library = tmp_path / "libmimalloc.so"
    library.write_bytes(b"\0decommit_delay\0large_os_pages\0")
    assert known("mimalloc", file=library) == {"decommit-at-once", "huge-pages"}
    assert known("mimalloc", file=tmp_path / "gone.so") == set()


@pytest.mark.parametrize(
    ("version", "unknown"),
    [("2.36", set()), ("2.34", {"huge-pages"}), ("2.28", {"huge-pages", "no-thread-cache", "thread-cache-1024"})],
)
def test_a_libc_has_the_tunables_of_its_version(version: str, unknown: set[str]) -> None:
    assert known("glibc", version) == set(SETTINGS["glibc"]) - unknown


@pytest.mark.parametrize(
    ("name", "family"),
    [("jemalloc5", "jemalloc"), ("libjemalloc.so.2", "jemalloc"), ("mimalloc3-secure", "mimalloc"), ("snmalloc", None)],
)
def test_kin_have_the_same_settings(name: str, family: str | None) -> None:
    assert settings.family(name) == family


def test_a_stranger_has_no_settings() -> None:
    assert known("snmalloc") == set()
