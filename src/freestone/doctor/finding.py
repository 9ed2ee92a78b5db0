"""What was found of a program: a symptom, what it rests on, its share of time or of memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A symptom that was found."""

    symptom: str
    evidence: tuple[str, ...]
    """Sentences with figures."""
    time: float | None = None
    """Share of the tree's processor time, or of ``time_of``, 0 to 1; None where it is not one of time, or not known."""
    time_of: str = "its processor time"
    """What that is a share of."""
    memory: float | None = None
    """Share of resident memory, 0 to 1; likewise."""
    outside_malloc: bool = False
    """It lies in memory that malloc did not give: no allocator and no setting of one helps."""
    same_faults_as: str | None = None
    """A symptom found before it whose page faults these are: the two shares are one."""

    def as_json(self) -> dict[str, object]:
        """What ``--json`` says of it."""
        return {
            "symptom": self.symptom,
            "evidence": list(self.evidence),
            "time": self.time,
            "time_of": self.time_of,
            "memory": self.memory,
            "outside_malloc": self.outside_malloc,
            "same_faults_as": self.same_faults_as,
        }

    @property
    def weight(self) -> float:
        """By which findings are ordered."""
        return max(self.time or 0.0, self.memory or 0.0)
