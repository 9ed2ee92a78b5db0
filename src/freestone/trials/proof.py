"""The verdict of law 1: was every program image of the tree served by the allocator under test? Pure.

Three voices are heard: the census (the kernel: which images there were), the witness (from inside each: which file its
four entry points lead to) and the program files themselves (why an image could not be witnessed).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from freestone.records.schema import EntryPoint, ProcessProof, Proof
from freestone.trials import coverage
from freestone.trials.census import Image
from freestone.trials.evidence import Cause, Evidence, Finding, Sequences
from freestone.trials.judged_image import JudgedImage, file_name, judge
from freestone.trials.namespaced import numbered
from freestone.trials.silence import silent
from freestone.trials.witness import Testimony

ROWS = 64
"""Most rows of processes in one record; images of one program with one verdict share a row already."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of the proof of one run."""

    proof: Proof
    finding: Finding | None
    """None exactly when the proof is valid."""
    sequences: Sequences
    """What was seen to be executed."""


def prove(evidence: Evidence) -> Verdict:
    """Weigh the evidence. Every way in which something is missing makes the proof invalid; none is ever guessed."""
    evidence = numbered(evidence)
    matched = _matched(evidence)
    apart = frozenset(file_name(one.exe) for image, one, _ in matched if image is None and one is not None and one.exe)
    judged = [judge(evidence, image, testimony, forks, apart) for image, testimony, forks in matched]
    general, census = coverage.gap(evidence, judged)
    refused = _refused_setting(evidence)
    findings = sorted(
        [one.finding for one in judged if one.finding is not None] + [one for one in (general, refused) if one],
        key=lambda finding: finding.cause,
    )
    finding = _summed_up(findings)
    proof = Proof(
        valid=finding is None,
        reason=finding.text if finding else None,
        census=census,
        processes=_rows(judged),
        images=len(judged),
        silent=silent(evidence),
    )
    return Verdict(proof, finding, coverage.sequences(judged))


def _matched(evidence: Evidence) -> list[tuple[Image | None, Testimony | None, list[Testimony]]]:
    """Images with their testimony and those of their forks.

    A testimony belongs to the image of its pid in whose time it was given. One that finds none is judged by itself: its
    image ran, whatever the census says.
    """
    forks: dict[tuple[int, float], list[Testimony]] = {}
    by_pid: dict[int, list[Testimony]] = {}
    for testimony in evidence.testimonies:
        if testimony.fork_of is not None:
            forks.setdefault(testimony.fork_of, []).append(testimony)
        else:
            by_pid.setdefault(testimony.pid, []).append(testimony)

    matched: list[tuple[Image | None, Testimony | None, list[Testimony]]] = []
    for image in evidence.images or ():
        mine = by_pid.get(image.pid, [])
        found = next((one for one in mine if image.begin_s <= one.at_s < image.end_s), None)
        if found is not None:
            mine.remove(found)
        matched.append((image, found, forks.pop((found.pid, found.at_s), []) if found else []))
    for testimony in (one for rest in by_pid.values() for one in rest):
        matched.append((None, testimony, forks.pop((testimony.pid, testimony.at_s), [])))
    # Forks of an image that never spoke: their image is missing as well, and they say so.
    matched.extend((None, orphan, []) for rest in forks.values() for orphan in rest)
    return matched


def _refused_setting(evidence: Evidence) -> Finding | None:
    if evidence.setting_complaint is None:
        return None
    return Finding(Cause.SETTING, f"a setting is not in force: {evidence.setting_complaint}")


def _summed_up(findings: Sequence[Finding]) -> Finding | None:
    if not findings:
        return None
    first = findings[0]
    others = len({finding.text for finding in findings}) - 1
    return first if others == 0 else Finding(first.cause, f"{first.text} (and {others} more)")


def _rows(judged: Sequence[JudgedImage]) -> list[ProcessProof]:
    """Rows for the record: images of one program with the same verdict and providers are folded into the first."""
    rows: dict[tuple[object, ...], ProcessProof] = {}
    for one in judged:
        strays = [f"{stray.object}: {stray.target}" for departure in one.departures for stray in departure.strays]
        key = (one.exe, one.finding.text if one.finding else None, one.entries, tuple(strays))
        if key in rows:
            rows[key] = rows[key].model_copy(update={"images": rows[key].images + 1})
            continue
        own = next((departure for departure in one.departures if departure.pid == one.pid), None)
        rows[key] = ProcessProof(
            pid=one.pid,
            parent=one.parent,
            exe=one.exe,
            exe_build_id=one.exe_build_id,
            proved=one.finding is None,
            reason=one.finding.text if one.finding else None,
            entries=[EntryPoint(symbol=e.symbol, file=e.file, build_id=e.build_id) for e in one.entries],
            strays=strays,
            end_rss_kib=own.resident_kib if own else None,
        )
    # What is not proved must not fall off the end of a long list.
    return sorted(rows.values(), key=lambda row: row.proved)[:ROWS] if len(rows) > ROWS else list(rows.values())
