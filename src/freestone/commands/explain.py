"""``freestone explain``: what a symptom is that the doctor names."""

from __future__ import annotations

import dataclasses
import json as json_format
import sys
from typing import Annotated

from cyclopts import Parameter

from freestone.commands import terminal
from freestone.commands.status import ExitStatus, Stop
from freestone.doctor import explanation
from freestone.doctor.explanation import ExplanationError


def explain(
    symptom: Annotated[str | None, Parameter(show=False)] = None,
    /,
    *,
    json: Annotated[bool, Parameter(negative="", help="Print JSON.")] = False,
) -> int:
    """Explain a symptom that freestone doctor names: what happens, by which rules, how it is told, what helps.

    Without a symptom all are listed, with a line each.

    Examples:

        freestone explain
        freestone explain trim-churn
        freestone explain trim-churn --json

    Exit status: 0 fine, 2 wrong use, or no symptom of that name.
    """
    if symptom is None:
        _list(as_json=json)
        return ExitStatus.FINE
    try:
        told = explanation.explain(symptom)
    except ExplanationError as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    if json:
        _print_json(dataclasses.asdict(told))
    else:
        print(explanation.render(told, width=terminal.width(), ascii_only=terminal.is_ascii(sys.stdout)), end="")
    return ExitStatus.FINE


def _list(*, as_json: bool) -> None:
    if as_json:
        _print_json([dataclasses.asdict(explanation.explain(name)) for name in explanation.NAMES])
    else:
        print(explanation.overview(width=terminal.width()), end="")
        print("\nfreestone explain SYMPTOM has more of each.")


def _print_json(found: object) -> None:
    print(json_format.dumps(found, indent=2, ensure_ascii=False))
