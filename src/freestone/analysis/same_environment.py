"""In what two environments differ: a program that reads another environment is another program. Pure."""

from __future__ import annotations

from typing import Final

from freestone.records.schema import Environment

_NAMED: Final = 4


def environments_differ(one: Environment | None, other: Environment | None) -> str | None:
    """What differs, as names in one line; None where nothing does, or where a side has no record of it.

    What was taken out was in force on neither side, and is not compared.
    """
    if one is None or other is None:
        return None
    found = [
        f"{name} ({_told(one, name)} and {_told(other, name)})"
        for name in sorted(one.told.keys() | other.told.keys())
        if one.told.get(name) != other.told.get(name)
    ]
    found += [
        f"{name} ({'changed' if name in one.others and name in other.others else 'set on one side only'})"
        for name in sorted(one.others.keys() | other.others.keys())
        if one.others.get(name) != other.others.get(name)
    ]
    if not found and one.others_sha256 != other.others_sha256:
        found = ["a variable whose value is not recorded"]
    if not found:
        return None
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more


def _told(environment: Environment, name: str) -> str:
    return f"'{environment.told[name]}'" if name in environment.told else "not set"
