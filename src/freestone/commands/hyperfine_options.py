"""Options of hyperfine that fingers remember: each is refused with what it is called here."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

from cyclopts import Parameter

from freestone.commands.status import ExitStatus, Stop


def _word(*names: str) -> Parameter:
    return Parameter(name=list(names), show=False)


def _flag(*names: str) -> Parameter:
    return Parameter(name=list(names), negative="", show=False)


@Parameter(name="*")
@dataclass(frozen=True)
class HyperfineOptions:
    """What was typed of it. The help does not show these: they are no options of ours."""

    runs: Annotated[str | None, _word("--runs", "-r")] = None
    min_runs: Annotated[str | None, _word("--min-runs", "-m")] = None
    max_runs: Annotated[str | None, _word("--max-runs", "-M")] = None
    warmup: Annotated[str | None, _word("-w")] = None
    setup: Annotated[str | None, _word("-s")] = None
    prepare: Annotated[str | None, _word("-p")] = None
    conclude: Annotated[str | None, _word("-C")] = None
    cleanup: Annotated[str | None, _word("-c")] = None
    parameter_scan: Annotated[str | None, _word("--parameter-scan", "-P")] = None
    parameter_step: Annotated[str | None, _word("--parameter-step-size", "-D")] = None
    parameter_list: Annotated[str | None, _word("--parameter-list", "-L")] = None
    ignore_failure: Annotated[bool, _flag("--ignore-failure", "-i")] = False
    no_shell: Annotated[bool, _flag("-N")] = False
    shell: Annotated[str | None, _word("-S")] = None
    reference: Annotated[str | None, _word("--reference")] = None
    command_name: Annotated[str | None, _word("--command-name")] = None
    show_output: Annotated[bool, _flag("--show-output")] = False
    style: Annotated[str | None, _word("--style")] = None

    def refuse(self) -> None:
        """Say what to type instead.

        Raises:
            Stop: something of it was typed; one line.
        """
        for field in fields(self):
            if getattr(self, field.name) not in (None, False):
                typed, ours = HERE[field.name]
                raise Stop(f"{typed} is an option of hyperfine; here: {ours}", ExitStatus.USAGE)


HERE = {
    "runs": ("--runs", "-n, which is --rounds: so many of each allocator"),
    "min_runs": ("--min-runs", "-n for a number of rounds, or --time-budget for seconds"),
    "max_runs": ("--max-runs", "-n for a number of rounds, or --time-budget for seconds"),
    "warmup": ("-w", "--warmup"),
    "setup": ("-s", "--setup"),
    "prepare": ("-p", "--prepare"),
    "conclude": ("-C", "--conclude"),
    "cleanup": ("-c", "--cleanup"),
    "parameter_scan": ("--parameter-scan", "--scan NAME=FIRST..LAST, as in --scan threads=1..8"),
    "parameter_step": ("--parameter-step-size", "a step in --scan, as in --scan threads=1..9+2"),
    "parameter_list": ("--parameter-list", "--scan NAME=A,B, as in --scan level=1,6,9"),
    "ignore_failure": ("--ignore-failure", "--ignore-status with the statuses that are fine, as in --ignore-status 1"),
    "no_shell": ("-N", "leave it out: no shell is used unless --shell asks for one"),
    "shell": ("-S", "--shell, which uses sh, and the line in quotes"),
    "reference": ("--reference", "--baseline, an allocator"),
    "command_name": ("--command-name", "--name"),
    "show_output": ("--show-output", "leave it out: the output is compared, and not shown"),
    "style": ("--style", "leave it out: NO_COLOR=1 takes the colours away"),
}
"""Field -> how it is written, and what stands for it here."""

NOTHING_FOREIGN = HyperfineOptions()
