"""Which results are of one machine. Pure."""

from __future__ import annotations

from freestone.records.schema import Machine


def key(machine: Machine) -> str:
    """What is equal for results of one machine, also where it was set otherwise in between, as by another kernel.

    That is its host where that was recorded, and else all that makes results incomparable.
    """
    host = machine.facts.get("host")
    return f"host {host}" if host else f"machine {machine.id}"
