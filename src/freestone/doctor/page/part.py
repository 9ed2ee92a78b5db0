"""One diagnosis, in the order in which the page tells it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from freestone.analysis import machines
from freestone.doctor import explanation, in_code, judgement, remedies, symptoms, words
from freestone.doctor.diagnosis import Diagnosis
from freestone.doctor.finding import Finding
from freestone.doctor.headline import headline
from freestone.doctor.judgement import GOALS
from freestone.doctor.page import calls, course, cures, short
from freestone.doctor.remedies import title
from freestone.records.schema import Experiment
from freestone.reports import deployment, vega
from freestone.reports.diagnosis.parts import DiagnosisPart, ExplainedPart, SymptomPart
from freestone.reports.page import ExperimentPart, experiment_part
from freestone.reports.page.words import fact, moment, title_of_fact

MOST_TO_TRY = 8
"""Remedies that are named for a process on which none can be tried."""


def diagnosis_part(told: Diagnosis, *, anchor: str = "experiment-1") -> DiagnosisPart:
    """Everything the page says of a diagnosis.

    Args:
        anchor: identifier of the part within the page.
    """
    with vega.unchecked():
        return _part(told, anchor)


def _part(told: Diagnosis, anchor: str) -> DiagnosisPart:
    seen, found = told.seen, told.found
    head = told.chart.experiment if told.chart is not None else None
    over_time, sizes = course.figures(seen), calls.sizes(seen)
    tried = cures.tried(told)
    says, use = _to_use(told)
    unnamed = words.unnamed(found, seen)
    drawn = [*over_time, *([sizes] if sizes is not None else []), *(tried.figures if tried is not None else [])]
    return DiagnosisPart(
        anchor=anchor,
        id=told.name,
        headline=headline(told),
        created_at=moment(head.created_at) if head is not None else "",
        strip=_strip(told),
        command=shlex.join(seen.command),
        notes=_notes(told),
        use=use,
        use_says=says,
        symptoms=[_symptom(each, symptoms.unjudged(seen)) for each in found],
        also=[
            *([unnamed] if unnamed is not None else []),
            *([*words.looked_at(seen), words.whose(seen)] if seen.running is not None else []),
        ],
        by_itself=words.by_itself(seen),
        in_code=in_code.advice(found, seen),
        over_time=over_time,
        lacking_over_time=course.lines(seen),
        where=words.where(seen),
        calls=calls.kinds(seen),
        call_sizes=sizes,
        sites=calls.sites(seen),
        lacking_calls=calls.lines(seen),
        tried=tried,
        not_tried=_not_tried(told),
        unseen=list(seen.unseen.items()),
        unjudged=symptoms.unjudged(seen),
        machine_id=head.machine.id if head is not None else "",
        machine_key=machines.key(head.machine) if head is not None else "",
        machine=_machine(told, head),
        rounds=_rounds(told, anchor),
        rounds_say=_how_many(told),
        again=shlex.join(head.command_line) if head is not None else _of_process(told),
        disturbance=words.disturbance(seen),
        figures=drawn,
    )


def _symptom(each: Finding, unjudged: Sequence[str]) -> SymptomPart:
    text = explanation.explain(each.symptom)
    return SymptomPart(
        name=each.symptom,
        says=words.plain(each, unjudged),
        share=words.share(each).strip(" ()"),
        evidence=list(each.evidence),
        explained=ExplainedPart(text.mechanism, text.picture, list(text.rules), text.recognised, text.cure, text.known),
    )


def _strip(told: Diagnosis) -> list[tuple[str, str]]:
    """The few facts that belong next to the headline."""
    seen = told.seen
    strip = [("program", shlex.join(seen.command))]
    if seen.running is not None:
        strip.append(("process", str(seen.running)))
    if seen.cost is not None:
        cost = seen.cost
        strip += [
            ("elapsed", f"{cost.wall_s:.2f} s"),
            ("user + system", f"{cost.user_s:.2f} s + {cost.sys_s:.2f} s"),
        ]
        strip += [("minor faults", f"{cost.minor_faults:,}")] if cost.minor_faults is not None else []
        strip += [("peak RSS", f"{cost.peak_rss_kib / 1024:,.1f} MiB")] if cost.peak_rss_kib is not None else []
    if told.verdict is not None:
        strip.append(("goal", GOALS[told.goal]))
    libc = f"{seen.platform.libc} {seen.platform.libc_version or ''}".strip()
    strip += [("kernel", seen.platform.kernel or "not known"), ("libc", libc)]
    if seen.platform.huge_pages is not None:
        strip.append(("huge pages", seen.platform.huge_pages))
    return strip


def _notes(told: Diagnosis) -> list[str]:
    notes = [told.source.damage] if told.source is not None and told.source.damage else []
    if told.interrupted or _half_done(told):
        notes.append(f"This diagnosis is not complete: freestone doctor --resume RESULTS/{told.name} goes on with it.")
    if told.source is not None:
        summary = told.source.summary
        notes += [f"{workload}: {line}" for workload, lines in summary.notes.items() for line in lines]
    return notes


def _half_done(told: Diagnosis) -> bool:
    """Whether a round was begun and is not whole."""
    if told.source is None:
        return False
    return len({record.round for record in told.source.records}) > told.source.summary.rounds_complete


def _to_use(told: Diagnosis) -> tuple[str, list[str]]:
    """What puts the best to use; of a process that runs, lines to start it anew by, none of which was tried."""
    if told.verdict is not None and told.source is not None and told.verdict.best is not None:
        best = told.verdict.best
        (workload,) = told.source.experiment.workloads
        chosen = next(each for each in told.source.experiment.configurations if each.name == best.configuration)
        lines = [*deployment.lines(workload, chosen), *deployment.more_lines(workload, chosen)]
        return f"To use {best.configuration}{judgement.why(told.verdict)}", lines
    if told.seen.running is not None:
        plan = remedies.plan(told.found, told.seen, MOST_TO_TRY)
        text = words.to_try(plan.tried, told.seen.command, width=10_000).splitlines()
        return (text[0].rstrip(":"), [line for line in text[1:] if line]) if text else ("", [])
    return "", []


def _not_tried(told: Diagnosis) -> list[str]:
    if told.chart is None:
        return ["Nothing was tried: a process keeps the allocator that it began with."]
    if told.chart.observe_only:
        return ["Nothing was tried: --observe-only."]
    if told.chart.remedies == {}:
        why = [f"{words.nothing_to_try(told.found, told.seen)}."]
    elif told.source is None:
        why = ["Nothing has been tried yet."]
    else:
        why = []
    return why + [f"{title(each)}: {reason}" for each, reason in told.chart.left_out]


def _machine(told: Diagnosis, head: Experiment | None) -> list[tuple[str, str]]:
    if head is not None:
        return [(title_of_fact(key), fact(key, value)) for key, value in head.machine.facts.items()]
    told_by = told.seen.platform.model_dump(exclude={"folios"})
    return [(title_of_fact(key), fact(key, value)) for key, value in told_by.items()]


def _rounds(told: Diagnosis, anchor: str) -> ExperimentPart | None:
    if told.source is None:
        return None
    source = short.renamed(told.source, short.names(told.source.experiment))
    return experiment_part(
        source.experiment,
        source.summary,
        source.records,
        anchor=f"{anchor}-rounds",
        calls=source.calls,
        instructions=source.instructions,
    )


def _how_many(told: Diagnosis) -> str:
    if told.source is None:
        return ""
    done = told.source.summary.rounds_complete
    return f"{done} round{'' if done == 1 else 's'}, in each of which every configuration ran, the untouched one twice."


def _of_process(told: Diagnosis) -> str:
    return f"freestone doctor --pid {told.seen.running}"
