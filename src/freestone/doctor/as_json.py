"""A diagnosis as JSON has it. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from freestone.doctor import in_code, remedies
from freestone.doctor.finding import Finding
from freestone.doctor.observations import Observations
from freestone.doctor.remedies import Remedy
from freestone.doctor.verdict import Verdict


def as_json(
    seen: Observations,
    found: Sequence[Finding],
    weighed: Verdict | None,
    left_out: Sequence[tuple[Remedy, str]],
) -> dict[str, object]:
    """What was seen, found and tried; a ratio is null where there is none."""
    tried = [] if weighed is None else weighed.tried
    return {
        "observations": json.loads(seen.model_dump_json()),
        "findings": [each.as_json() for each in found],
        "advice": in_code.advice(found, seen),
        "left_out": [{"remedy": remedies.title(each), "why": why} for each, why in left_out],
        "goal": None if weighed is None else weighed.goal,
        "best": None if weighed is None or weighed.best is None else weighed.best.configuration,
        "unknown": [] if weighed is None else [each.configuration for each in weighed.unknown],
        "enough_s": None if weighed is None else weighed.enough_s,
        "front": [] if weighed is None else [each.configuration for each in weighed.front],
        "tried": [
            {
                "configuration": each.configuration,
                "why": each.remedy.why if each.remedy is not None else None,
                "discarded": each.discarded,
                **{
                    name: None if ratio is None else json.loads(ratio.model_dump_json())
                    for name, ratio in (("time", each.time), ("memory", each.memory), ("faults", each.faults))
                },
            }
            for each in tried
        ],
    }
