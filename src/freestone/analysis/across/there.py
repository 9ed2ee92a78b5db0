"""One machine's results of a workload, or of all its workloads together, as they stand beside those of others. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from freestone.analysis.across.beside import Work
from freestone.analysis.across.kinds import Kind
from freestone.analysis.across.packed_rounds import PackedRounds
from freestone.analysis.headline import MEMORY, TIME
from freestone.records.schema import CellStatus, Ratio

ASPECTS: Final = (TIME, MEMORY)
"""What somebody is best in."""

NO_RESULT: Final[Mapping[CellStatus, str]] = {
    "failed": "failed",
    "timeout": "timed out",
    "invalid": "was not proved",
    "different": "has other output",
    "unmeasured": "was not measured",
}
"""What has become of a configuration without a result, in words."""


@dataclass(frozen=True)
class Outcome:
    """What has become of a configuration."""

    status: CellStatus
    reason: str | None = None

    @property
    def said(self) -> str:
        """The status in words."""
        return NO_RESULT.get(self.status, self.status)


@dataclass(frozen=True)
class There:
    """One machine's results of a workload."""

    place: str
    machine: str
    """What is equal for results of one machine."""
    kind: Kind
    workload: str
    command: tuple[str, ...]
    baseline: str
    best: Mapping[str, str]
    """``time``, ``peak memory`` -> who is really best there."""
    ratios: Mapping[str, Mapping[str, Ratio]]
    """The same -> configuration -> its ratio to the baseline."""
    rounds: Mapping[str, PackedRounds]
    """The same -> what each configuration took: a table of many machines needs wider intervals than that of one, and
    asks how any two of them stand."""
    outcomes: Mapping[str, Outcome]
    """Configuration -> what has become of it, also of the baseline."""
    whole: bool = False
    """Whether it is all workloads together."""
    works: tuple[Work, ...] = ()
    """What it is made of: the workload, or all of them that count together."""
    lacking: tuple[str, ...] = ()
    """Of all workloads together: those that would count and are not among them."""
    build: str | None = None
    """The build-id of the program, where that is one and known."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Configuration -> the version of its allocator, where that is known."""

    def unknown(self, aspect: str) -> str | None:
        """Why nobody knows who is best there, in words; None where it is known, be it that nobody is."""
        ratios = self.ratios.get(aspect, {}).values()
        if any(ratio.low > 0 and ratio.high < math.inf for ratio in ratios):
            return None
        without = {name: each for name, each in self.outcomes.items() if each.status != "ok"}
        if without and len(without) == len(self.outcomes):
            said = {each.said for each in without.values()}
            return f"everything {said.pop()}" if len(said) == 1 else "nothing has a result"
        if self.baseline in without:
            return f"{self.baseline} {without[self.baseline].said}"
        if len(without) == len(self.outcomes) - 1:
            return f"only {self.baseline} has a result"
        return "too few rounds" if ratios else "no figures"
