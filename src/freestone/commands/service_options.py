"""Options of a server that is measured under load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from freestone.commands.durations import Limit
from freestone.experiments.plan import PlanError
from freestone.records.schema import Service, Workload


@Parameter(name="*")
@dataclass(frozen=True)
class ServiceOptions:
    """How a server is waited for, driven and stopped; without any of it, the program is no server."""

    ready: Annotated[
        str | None,
        Parameter(help="CMD is a server: a shell command that succeeds as soon as it answers. Goes with --load."),
    ] = None
    load: Annotated[
        str | None,
        Parameter(
            help="A shell command that drives the server and prints figures: wrk, redis-benchmark, pgbench, or a line "
            "of JSON."
        ),
    ] = None
    ready_timeout: Annotated[Limit, Parameter(help="Seconds until the server has to be ready. Default: 60.")] = None
    stop_timeout: Annotated[
        Limit, Parameter(help="Seconds from SIGTERM until the server has to be gone. Default: 30.")
    ] = None

    def given(self) -> dict[str, object]:
        """Option -> its value, None where it was not given."""
        return {
            "--ready": self.ready,
            "--load": self.load,
            "--ready-timeout": self.ready_timeout,
            "--stop-timeout": self.stop_timeout,
        }

    def applied(self, workload: Workload) -> Workload:
        """The workload as a server, where it is one.

        Raises:
            PlanError: half of what a server needs.
        """
        asked = [option for option, value in self.given().items() if value is not None]
        if not asked:
            return workload
        if not (self.ready or "").strip() or not (self.load or "").strip():
            raise PlanError(f"a server needs both --ready and --load, each a command; there is {' and '.join(asked)}")
        limits = {"ready_timeout_s": self.ready_timeout, "stop_timeout_s": self.stop_timeout}
        said = {name: value for name, value in limits.items() if value is not None}
        service = Service.model_validate({"ready": self.ready, "load": self.load, **said})
        return workload.model_copy(update={"service": service})


NO_SERVICE = ServiceOptions()
