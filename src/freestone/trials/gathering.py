"""Gathers the evidence of one run, from the launcher, the witness and the files, and has it weighed."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from freestone import native
from freestone.allocators import elf
from freestone.records.schema import Allocator
from freestone.trials import census
from freestone.trials.evidence import Evidence, Provider, Rehearsed
from freestone.trials.launch import LaunchReading
from freestone.trials.proof import Verdict, prove
from freestone.trials.witness import Testimony


def weighed(
    allocator: Allocator,
    reading: LaunchReading,
    testimonies: Sequence[Testimony],
    complaint: str | None,
    rehearsed: Rehearsed | None,
    *,
    settings: Mapping[str, str],
    refused: str | None,
) -> Verdict:
    """The verdict over one run.

    Args:
        allocator: that ought to have served it.
        complaint: what the dynamic linker said of the preload.
        rehearsed: what a rehearsal has shown, where this run has no census of its own.
        settings: that every process has to have found.
        refused: what the allocator said of a setting that it does not take.
    """
    images, complaints = census.images(reading.census.events)
    taken = reading.census.source != "none"
    gap = None if taken and reading.census.complete else reading.census.reason or "the kernel did not take part"
    evidence = Evidence(
        expected=_expected(allocator),
        testimonies=testimonies,
        facts_of=functools.cache(facts),
        images=images if taken else None,
        endings=census.endings(reading.census.events) if taken and reading.census.complete else None,
        census_gap=gap or (complaints[0] if complaints else None),
        rehearsed=rehearsed,
        preload_complaint=complaint,
        settings=settings,
        setting_complaint=refused,
        witness_libc=_facts_of_witness().libc,
    )
    return prove(evidence)


def facts(path: str) -> elf.ElfFacts | None:
    """What is known of a program's or a library's file; None where there is none."""
    return elf.inspect(path) if path.startswith("/") and os.path.exists(path) else None


@functools.cache
def _facts_of_witness() -> elf.ElfFacts:
    return elf.inspect(native.path("libfreestone-witness.so"))


def _expected(allocator: Allocator) -> Provider:
    file = allocator.file or ""
    provider = Provider(allocator.name, os.path.realpath(file) if file else "", allocator.build_id)
    try:
        status = os.stat(file)
    except OSError:
        return provider  # nothing will match it, and the reason will name the file
    known = elf.inspect(file)
    return replace(
        provider,
        device=(os.major(status.st_dev), os.minor(status.st_dev)),
        inode=status.st_ino,
        machine=known.machine,
        libc=known.libc,
    )
