"""The parts of a diagnosis on the page, as the template reads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from freestone.reports.drawn import Figure, Table
from freestone.reports.page.parts import ExperimentPart, Value


@dataclass(frozen=True)
class ExplainedPart:
    """A symptom explained, as ``freestone doctor --explain`` does."""

    mechanism: str
    picture: str
    rules: list[str]
    recognised: str
    cure: str
    known: str


@dataclass(frozen=True)
class SymptomPart:
    """A symptom that was found."""

    name: str
    says: str
    """In a few words."""
    share: str
    """Of processor time or memory; nothing where neither is known."""
    evidence: list[str]
    explained: ExplainedPart


@dataclass(frozen=True)
class CurePart:
    """One remedy that was tried."""

    colour: int
    name: str
    why: str
    values: list[Value]
    """Time, memory, faults: empty where it was discarded."""
    outcome: str
    """In a word: ``best``, ``kept``, ``beaten``, ``no gain``, ``not known``, ``discarded``."""
    reason: str
    """Why that came of it, in a sentence."""


@dataclass(frozen=True)
class TriedPart:
    """What was tried, and what came of it."""

    columns: list[str]
    """Of the values of cures."""
    cures: list[CurePart]
    before_after: Table | None
    """Of the best; None where nothing is."""
    price: str
    """What the best costs, in a sentence; nothing where there is no best."""
    figures: list[Figure]
    """Ratios with their intervals, and time against memory."""


@dataclass(frozen=True)
class DiagnosisPart:
    """Everything the page says of one diagnosis. What lacks data is a line instead of a figure."""

    kind: ClassVar[str] = "diagnosis"
    anchor: str
    id: str
    headline: str
    created_at: str
    strip: list[tuple[str, str]]
    command: str
    notes: list[str]
    use: list[str]
    """Lines to be copied; none where nothing is prescribed."""
    use_says: str
    """What they are for, in a sentence."""
    symptoms: list[SymptomPart]
    also: list[str]
    """Sentences about what it suffers from beside its symptoms."""
    by_itself: list[str]
    """What the program sets itself."""
    in_code: list[str]
    """What no setting does."""
    over_time: list[Figure]
    lacking_over_time: list[str]
    where: list[str]
    """Where its memory lies, in sentences."""
    calls: Table | None
    call_sizes: Figure | None
    sites: Table | None
    lacking_calls: list[str]
    tried: TriedPart | None
    not_tried: list[str]
    """What is for what was found and was not tried, with why not; or why nothing was."""
    unseen: list[tuple[str, str]]
    """Part, and why it is missing."""
    unjudged: list[str]
    """Symptoms that could not be judged without."""
    machine_id: str
    machine_key: str
    """What is equal for results of one machine, also where it was set otherwise in between."""
    machine: list[tuple[str, str]]
    rounds: ExperimentPart | None = None
    """The rounds with the remedies as a comparison shows them; None where none was run."""
    rounds_say: str = ""
    """How many, in a sentence."""
    again: str = ""
    """The command line that was given."""
    disturbance: str = ""
    """What watching its heap cost, in a sentence."""
    figures: list[Figure] = field(default_factory=list)
    """All that are drawn of the diagnosis itself, for pictures."""
