"""``freestone doctor --explain``: the description of a symptom that the doctor names."""

from __future__ import annotations

import dataclasses
import json as json_format
import sys
from typing import Final

from freestone.commands import terminal
from freestone.commands.status import ExitStatus, Stop
from freestone.doctor import explanation
from freestone.doctor.explanation import ExplanationError

ALL: Final = "all"


def explain(symptom: str, *, as_json: bool) -> ExitStatus:
    """Print the description of a symptom, or a line for each of ``all``.

    Raises:
        Stop: no symptom has that name.
    """
    if symptom == ALL:
        _list(as_json=as_json)
        return ExitStatus.FINE
    try:
        told = explanation.explain(symptom)
    except ExplanationError as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    if as_json:
        _print_json(dataclasses.asdict(told))
    else:
        print(explanation.render(told, width=terminal.width(), ascii_only=terminal.is_ascii(sys.stdout)), end="")
    return ExitStatus.FINE


def _list(*, as_json: bool) -> None:
    if as_json:
        _print_json([dataclasses.asdict(explanation.explain(name)) for name in explanation.NAMES])
    else:
        print(explanation.overview(width=terminal.width()), end="")
        print("\nfreestone doctor --explain SYMPTOM has more of each.")


def _print_json(found: object) -> None:
    print(json_format.dumps(found, indent=2, ensure_ascii=False))
