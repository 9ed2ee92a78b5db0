"""The parts of the page, as the template reads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from freestone.reports.drawn import Figure, Name, Panel, Table
from freestone.reports.recommendation import Recommendation


@dataclass(frozen=True)
class Value:
    """One entry of the results table: a figure, what it is to the baseline, and how to mark it."""

    figure: str
    ratio: str = ""
    interval: str = ""
    verdict: str = ""
    mark: str = ""
    """``better``, ``worse``, ``same``, ``unknown`` or nothing."""


@dataclass(frozen=True)
class ResultRow:
    name: Name
    values: list[Value]
    status: str = ""
    """In words when there is no result; values then only where the output is another: shown, and not ranked."""


@dataclass(frozen=True)
class ReferencesPart:
    """What valgrind counted of a workload."""

    how: str
    command: str
    references: Table
    remarks: list[str]
    requests: str
    functions: Table


@dataclass(frozen=True)
class WorkloadPart:
    anchor: str
    """Identifier within the page."""
    name: str
    gist: str
    """The least time, in a line."""
    command: str
    directory: str | None
    environment: str
    headers: list[tuple[str, str]]
    """Title and unit of each column of the results table."""
    rows: list[ResultRow]
    absent: list[tuple[Name, str, str]]
    """Configuration, status in words, reason: what was not measured."""
    notes: list[str]
    figures: list[Figure]
    panels: list[Panel]
    """Memory over time."""
    left_out: str
    """Whose memory over time is not shown, in a sentence; nothing where everything has a result."""
    calls: Table | None
    """System calls by kind; None where they were not counted."""
    references: ReferencesPart | None
    """Instructions and references; None where they were not counted."""
    also: Table | None
    """Figures and ratios of what the results table leaves out; None when there is nothing more."""
    trials: Table


@dataclass(frozen=True)
class PublishedPart:
    """A table that others published, beside what was measured here."""

    title: str
    source: str
    figure: Figure


@dataclass(frozen=True)
class ParameterPart:
    """Workloads that differ in one parameter, and what changes with it."""

    name: str
    parameter: str
    values: list[str]
    figures: list[Figure]


@dataclass(frozen=True)
class ConfigurationRow:
    name: Name
    title: str
    version: str
    file: str
    build_id: str
    origin: str
    settings: str
    proof: str
    proved: bool


@dataclass(frozen=True)
class ExperimentPart:
    kind: ClassVar[str] = "experiment"
    anchor: str
    id: str
    headline: str
    created_at: str
    strip: list[tuple[str, str]]
    workloads: list[WorkloadPart]
    configurations: list[ConfigurationRow]
    machine_id: str
    machine_key: str
    """What is equal for results of one machine, also where it was set otherwise in between."""
    machine: list[tuple[str, str]]
    command_line: str
    seed: int
    overview: Figure | None = None
    """Every workload under every configuration; None where there is one workload only."""
    published: list[PublishedPart] = field(default_factory=list)
    parameters: list[ParameterPart] = field(default_factory=list)
    """Metrics against the parameters of a suite or a scan."""
    notes: list[str] = field(default_factory=list)
    use: list[Recommendation] = field(default_factory=list)
    """Which allocator to use for its programs, and how; none where nothing is known or a suite was measured."""
