"""Whether a configuration did the work that the baseline does, by what its program said. Pure functions.

A program that does half of its work in half of the time is no faster. What it prints is the evidence: where the
baseline prints the same in all of its trials, everybody has to. Where it does not (a date, a duration), the numbers of
lines tell at least of work that is missing as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from freestone.records.schema import Output, TrialRecord, Workload

FEWEST: Final = 2
"""Trials of the baseline that agree before anybody is held to them."""

SLACK: Final = 0.1
"""Share by which the lines of an output that is never the same may leave the range of the baseline's."""

WORK: Final = ("operations", "checksum")
"""Figures of a program that measures itself that say what was done, and not what came of it."""


def marked(
    workload: Workload, baseline: str, agreed: Sequence[TrialRecord], records: Sequence[TrialRecord]
) -> list[TrialRecord]:
    """The records of one configuration, those of them ``different`` that did other work than the baseline.

    Args:
        baseline: its name, for the reason.
        agreed: its good trials.
    """
    # What a server writes is its log; what it did is told by whoever drove it.
    if workload.output_may_differ or workload.service is not None or len(agreed) < FEWEST:
        return list(records)

    def checked(record: TrialRecord) -> TrialRecord:
        reason = _other_work(baseline, agreed, record) if record.status == "ok" else None
        return record if reason is None else record.model_copy(update={"status": "different", "reason": reason})

    return [checked(record) for record in records]


def is_the_same(records: Sequence[TrialRecord]) -> bool:
    """Whether the output of these trials agrees with itself."""
    return len({_key(record.output) for record in records if record.output is not None}) == 1


def said(records: Sequence[TrialRecord]) -> str | None:
    """What the trials of one configuration all say, as a digest; None where they are too few, or do not agree."""
    outputs = [record.output for record in records if record.output is not None]
    return _key(outputs[0]) if len(outputs) >= FEWEST and is_the_same(records) else None


def _key(output: Output) -> str:
    return output.stdout_sha256 if output.compared_sha256 is None else output.compared_sha256


def _other_work(baseline: str, agreed: Sequence[TrialRecord], record: TrialRecord) -> str | None:
    statuses = {each.exit_code for each in agreed}
    if len(statuses) == 1 and record.exit_code not in statuses:
        return f"exit status {record.exit_code} where {baseline} has {statuses.pop()}"
    for name in WORK:
        values = {(each.figures or {}).get(name) for each in agreed}
        mine = (record.figures or {}).get(name)
        if len(values) == 1 and (value := values.pop()) is not None and mine != value:
            return f"it says {name} {'nothing' if mine is None else f'{mine:g}'} where {baseline} says {value:g}"
    outputs = [each.output for each in agreed if each.output is not None]
    if record.output is None or not outputs:
        return None
    if is_the_same(agreed):
        return None if _key(record.output) == _key(outputs[0]) else _told_apart(baseline, outputs[0], record.output)
    return _fewer_lines(baseline, outputs, record.output)


def _told_apart(baseline: str, expected: Output, output: Output) -> str:
    one, other = output.stdout_bytes, expected.stdout_bytes
    if output.compared_sha256 is not None:
        return f"what is compared of its output is not what {baseline} says"
    if one != other:
        return f"it wrote {one} bytes where {baseline} writes {other}"
    return f"it wrote other words than {baseline}, {one} bytes"


def _fewer_lines(baseline: str, outputs: Sequence[Output], output: Output) -> str | None:
    """Of outputs that are never the same: whether one has more or fewer lines than could be chance."""
    counts = [each.stdout_lines for each in outputs if each.stdout_lines is not None]
    if output.stdout_lines is None or not counts:
        return None
    least, most = min(counts), max(counts)
    slack = max(1.0, SLACK * most)
    if least - slack <= output.stdout_lines <= most + slack:
        return None
    usual = f"{least}" if least == most else f"{least} to {most}"
    return f"it wrote {output.stdout_lines} lines where {baseline} writes {usual}"
