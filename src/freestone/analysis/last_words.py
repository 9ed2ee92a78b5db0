"""Whose processes end without last words where the baseline's have them. Pure functions.

A process says at its end what it had loaded. One that is killed, or leaves by a plain system call, says nothing, and a
second allocator may have come in unseen. Where the program is like that under the baseline too, it is told; where it is
not, something else happened here than there, and nobody knows what.
"""

from __future__ import annotations

from collections.abc import Sequence

from freestone.records.schema import TrialRecord


def marked(baseline: str, agreed: Sequence[TrialRecord], records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """The records of one configuration, those of them ``invalid`` that lack last words which the baseline has.

    Args:
        baseline: its name, for the reason.
        agreed: its good trials.
    """
    programs = {program for record in agreed for program in record.proof.silent}
    counts = {program: [record.proof.silent.get(program, 0) for record in agreed] for program in programs}

    def checked(record: TrialRecord) -> TrialRecord:
        # What was left behind and ended by the lab had no time for any.
        lacking = sorted(
            program
            for program, count in record.proof.silent.items()
            if program not in record.survivors and count > _most(counts.get(program, [0]))
        )
        if not agreed or not lacking or record.status != "ok":
            return record
        count, most = record.proof.silent[lacking[0]], max(counts.get(lacking[0], [0]))
        beside = f"and {'none' if most == 0 else 'at most ' + str(most)} did under {baseline}"
        reason = f"no last words: {processes(count)} of {lacking[0]} ended without them, {beside}"
        return record.model_copy(update={"status": "invalid", "reason": reason})

    return [checked(record) for record in records]


def _most(counts: Sequence[int]) -> int:
    """How many may lack them: as many as under the baseline where that is always the same, else twice its most."""
    return max(counts) if len(set(counts)) == 1 else 2 * max(counts)


def note(records: Sequence[TrialRecord], *, served: bool = False) -> str | None:
    """Whose processes ended without last words, for a reader; None where all had them.

    Args:
        served: whether it was a server, which the lab itself told to end.
    """
    most: dict[str, int] = {}
    for record in records:
        for program, count in record.proof.silent.items():
            most[program] = max(count, most.get(program, 0))
    if not most:
        return None
    told = ", ".join(f"{processes(count)} of {program}" for program, count in sorted(most.items())[:3])
    more = f" and of {len(most) - 3} more programs" if len(most) > 3 else ""
    by = " as by the SIGTERM that ends a server" if served else ""
    how = f"killed{by}, left without exit, or not let write"
    return f"without last words ({how}): {told}{more}; what these had loaded is not known"


def processes(count: int) -> str:
    """``1 process``, ``3 processes``."""
    return f"{count} process{'' if count == 1 else 'es'}"
