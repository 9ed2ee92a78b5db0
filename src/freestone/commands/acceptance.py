"""Options that say what counts as a result: which trials are taken, and as what. Shared by the verbs that measure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from freestone.commands.options import Whole
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
    allow_failures: Annotated[
        Whole, Parameter(help="So many trials of an allocator may fail. Default: none. Not for time-outs and INVALID.")
    ] = None
    ignore_status: Annotated[
        str | None, Parameter(help="Exit statuses that are as good as 0, with commas between, as in 1,2.")
    ] = None
    output_may_differ: Annotated[
        bool, Parameter(negative="", help="Rank allocators under which the program prints something else, too.")
    ] = False
    compare_output: Annotated[
        str | None,
        Parameter(help="A shell command that filters the output before it is compared, as in 'grep -v time'."),
    ] = None

    def given(self) -> dict[str, object]:
        """Option -> its value, None where it was not given."""
        return {
            "--wait-tree": self.wait_tree or None,
            "--allow-survivors": self.allow_survivors or None,
            "--allow-failures": self.allow_failures,
            "--ignore-status": self.ignore_status,
            "--output-may-differ": self.output_may_differ or None,
            "--compare-output": self.compare_output,
        }

    def applied(self, workload: Workload) -> Workload:
        """The workload under these rules.

        Raises:
            PlanError: one of them is nothing that can be asked for, or two say opposite things.
        """
        if self.wait_tree and self.allow_survivors:
            raise PlanError("--wait-tree and --allow-survivors say opposite things of what outlives the first process")
        if self.output_may_differ and self.compare_output is not None:
            raise PlanError("--output-may-differ compares no output, so --compare-output has nothing to do")
        if self.compare_output is not None and not self.compare_output.strip():
            raise PlanError("--compare-output takes a shell command, as in 'grep -v time'")
        if self.allow_failures is not None and self.allow_failures < 0:
            raise PlanError(f"--allow-failures takes a number from 0 up, not {self.allow_failures}")
        survivors: Survivors = "wait" if self.wait_tree else "allow" if self.allow_survivors else workload.survivors
        return workload.model_copy(
            update={
                "survivors": survivors,
                "allow_failures": self.allow_failures or workload.allow_failures,
                "ignore_status": _statuses(self.ignore_status) or workload.ignore_status,
                "output_may_differ": self.output_may_differ or workload.output_may_differ,
                "compare_output": self.compare_output or workload.compare_output,
            }
        )


def _statuses(text: str | None) -> list[int]:
    """Exit statuses from a list with commas.

    Raises:
        PlanError: one is none.
    """
    found = []
    for word in [] if text is None else text.split(","):
        if not re.fullmatch(r" *[0-9]{1,3} *", word) or int(word) > 255:
            raise PlanError(f"--ignore-status takes exit statuses from 0 to 255, as in 1,2, not '{text}'")
        found.append(int(word))
    return found


STRICT = Acceptance()
