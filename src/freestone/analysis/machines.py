"""Which results are of one machine. Pure."""

from __future__ import annotations

from typing import Final

from freestone.records.identity import UNKNOWN, hashed, identity
from freestone.records.schema import Machine

BESIDE_THE_HOST: Final = {"host_by", "boot"}
"""Facts that say which machine it is where its host does not, and nothing of what it is like."""

_NO_HOST: Final = hashed("host", UNKNOWN)
"""What results of before have as their host that knew of none."""


def key(machine: Machine) -> str:
    """What is equal for results of one machine, also where it was set otherwise in between, as by another kernel.

    That is its host where that was recorded, and else all that makes results incomparable. A host without an identity
    is known by its boot: containers of one machine have names of their own. Copies of one disk have one identity, so
    that machines with two processors are two.
    """
    cpu, host, boot = (machine.facts.get(name) for name in ("cpu", "host", "boot"))
    if machine.facts.get("host_by") == "name" and boot:
        return f"{cpu} boot {boot}"
    return f"{cpu} host {host}" if host and host != _NO_HOST else f"machine {machine.id}"


def alike(one: Machine, other: Machine) -> bool:
    """Whether results of two machines may be compared: it is one machine, set as it was."""
    return one.id == other.id or (_one_host(one, other) and _set_as(one) == _set_as(other))


def _one_host(one: Machine, other: Machine) -> bool:
    """Whether it is one machine by two hosts: containers of one boot, or a result of before that knew no host."""
    boots, hosts = ([each.facts.get(name) for each in (one, other)] for name in ("boot", "host"))
    return (boots[0] is not None and boots[0] == boots[1]) or _NO_HOST in hosts


def _set_as(machine: Machine) -> str:
    return identity({**machine.facts, "host": None})
