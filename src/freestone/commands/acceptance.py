"""Options that say what counts as a result: which trials are taken, and as what. Shared by the verbs that measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from freestone.experiments.plan import PlanError
from freestone.records.schema import Survivors, Workload


@Parameter(name="*")
@dataclass(frozen=True)
class Acceptance:
    """What was asked for. Without any of it, nothing is taken for a result that may not be one."""

    wait_tree: Annotated[
        bool, Parameter(negative="", help="Measure to the end of the last process, where some outlive the first.")
    ] = False
    allow_survivors: Annotated[
        bool, Parameter(negative="", help="Measure the first process alone, and end those that outlive it.")
    ] = False

    def given(self) -> dict[str, object]:
        """Option -> its value, None where it was not given."""
        return {"--wait-tree": self.wait_tree or None, "--allow-survivors": self.allow_survivors or None}

    def applied(self, workload: Workload) -> Workload:
        """The workload under these rules.

        Raises:
            PlanError: two of them say opposite things.
        """
        if self.wait_tree and self.allow_survivors:
            raise PlanError("--wait-tree and --allow-survivors say opposite things of what outlives the first process")
        survivors: Survivors = "wait" if self.wait_tree else "allow" if self.allow_survivors else workload.survivors
        return workload.model_copy(update={"survivors": survivors})


STRICT = Acceptance()
