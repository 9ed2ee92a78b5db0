"""The sentences of the page, around its tables. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from classic_case import page
from classic_case.counted import CURED, Case
from classic_case.page import Promise
from classic_case.rule import PerCall
from freestone.records.schema import Cell

CHURN = {"trim-churn", "mapping-churn"}
FACTS = ("cpu", "cores_online", "memory_kib", "page_size", "kernel", "thp", "libc", "distribution")


@dataclass(frozen=True)
class Diagnosis:
    """What the doctor said."""

    symptoms: tuple[str, ...]
    evidence: tuple[str, ...]
    """Of the first symptom."""
    time: float | None
    """The share of processor time that the first symptom has."""
    best: str | None
    tried: tuple[tuple[str, float, float, float], ...]
    """What it kept or not: configuration, ratio of its time to the untouched program's, lower and upper end."""

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Self:
        """From its JSON."""
        findings = said["findings"]
        return cls(
            symptoms=tuple(each["symptom"] for each in findings),
            evidence=tuple(findings[0]["evidence"]) if findings else (),
            time=findings[0]["time"] if findings else None,
            best=said["best"],
            tried=tuple(
                (each["configuration"], *(float(each["time"][end]) for end in ("value", "low", "high")))
                for each in said["tried"]
                if each["time"] is not None and each["discarded"] is None
            ),
        )


@dataclass(frozen=True)
class Story:
    """All that the page says."""

    day: str
    facts: Mapping[str, object]
    rounds: int
    program: str
    many: str
    """The program with more matrices live at once."""
    diagnosis: Diagnosis
    after: Diagnosis
    cells: Mapping[str, Cell]
    """Of the program as it is, by configuration."""
    promises: Sequence[Promise]
    found: Mapping[Case, PerCall]
    calls: int
    """In each run that was counted."""
    apart: Sequence[str]
    """Where glibc did something else than its rule says."""
    picture: str

    @property
    def wrong(self) -> list[str]:
        """What is not as it has to be, a line each."""
        lines = list(self.apart)
        if not CHURN & set(self.diagnosis.symptoms):
            lines.append(f"the doctor names no churn: {', '.join(self.diagnosis.symptoms) or 'nothing'}")
        if self.diagnosis.best is None:
            lines.append("the doctor keeps no cure")
        if CHURN & set(self.after.symptoms):
            lines.append(f"with the cure the doctor still names {', '.join(self.after.symptoms)}")
        if any(not each.kept for each in self.promises):
            lines.append("libfreestone does not keep 1 % of the faults at 10 % over what is live")
        return lines


def _between(low: float, high: float) -> str:
    return f"[{low:.2f}, {high:.2f}]" if low > 0 and math.isfinite(high) else "[?]"


def _diagnosis(story: Story) -> str:
    said = story.diagnosis
    share = f", with {100 * said.time:.0f} % of the processor time" if said.time is not None else ""
    evidence = "".join(f"\n- {line[:1].upper()}{line[1:]}." for line in said.evidence)
    tried = "\n".join(
        f"| `{name}` | {value:.2f} {_between(low, high)} | {'the best' if name == said.best else ''} |"
        for name, value, low, high in said.tried
    )
    after = ", ".join(f"`{each}`" for each in story.after.symptoms) or "nothing"
    return f"""It names {", ".join(f"`{each}`" for each in said.symptoms) or "nothing"}{share}.
{evidence}

It tried, each beside the untouched program:

| setting | its time, of the program's [95 %] | |
| --- | ---: | --- |
{tried}

Asked again with the published cure set, it names: {after}."""


def text(story: Story) -> str:
    """The page."""
    cured = story.cells[CURED].ratio.get("wall_s")
    gain = f"{1 / cured.value:.2f} times as fast" if cured is not None and cured.value > 0 else "not measured"
    machine = ", ".join(f"{key} {story.facts[key]}" for key in FACTS if story.facts.get(key) is not None)
    apart = (
        "What was counted is what the rule says, in every cell of glibc: system calls to the last one, faults within "
        "0.1 a call. The rule is played by `tools/classic_case/rule.py`."
        if not story.apart
        else "**Not as the rule says:**\n\n" + "\n".join(f"- {line}" for line in story.apart)
    )
    picture = (
        "![Resident size and page faults over time: before, the size moves and faults rise all the time; with the cure "
        f"the size stays and no more faults come](images/{story.picture})"
    )
    kept = "It holds" if all(each.kept for each in story.promises) else "**It does not hold everywhere**"
    return f"""# The classic case: memory given back in each call, and taken again

Written by `make classic-case` on {story.day}; do not edit. [Machine and rounds](#machine-and-rounds).

In 2001 Ezolt found a chemistry code that spent 43 % of its time in the kernel: glibc gave the freed end of the heap
back in each call, and the next call took it again, page fault by page fault. Two settings of glibc made the code
1.75 times as fast. `{story.program}` does the same: each call allocates 4 matrices of 127 KiB, works on them and
frees them in reverse order. The same two settings make it {gain} here.

{picture}

Looked at from outside, in a run each. Before: the end of the heap comes and goes, and faults come all the time.
With the cure: the memory of the first call is that of all others.

## Published, and here

{page.beside_published(story.cells)}

Absolute times do not carry over; what is left of them does. *Left*: after / before, of published means, and here of
means with the interval. Published: user and system of its table, elapsed from 6:29 to 3:42. Before: glibc as it is.
The cure: `MALLOC_MMAP_MAX_=0` and `MALLOC_TRIM_THRESHOLD_=-1`, the variables for the published `M_MMAP_MAX=0`,
`M_TRIM_THRESHOLD=-1`. A system time of 0 is one that the kernel's clock did not see.

## What the doctor says

    freestone doctor --goal time -- {story.program}

{_diagnosis(story)}

## 126, 127, 128 KiB

Each cell: system calls a call of the program; page faults a call. `brk` moves the end of the heap, `mmap` makes a
mapping for one block (and `munmap` takes it back). A matrix of 127 KiB has 32 pages. What the first call takes is
in it, spread over {story.calls} calls.

One matrix a call:

{page.thresholds(story.found, 1)}

Four matrices a call:

{page.thresholds(story.found, 4)}

Matrices of 127 KiB, by their number:

{page.by_number(story.found, 127)}

{apart}

### Why the edges lay there

`MALLOC_TOP_PAD_=0` sets today's glibc as that of 2001 was: nothing is asked for ahead, and the thresholds stay
where they are, since setting any of them stops their moving. Both are 128 KiB (131,072 bytes). With one matrix a
call:

- A request of whole KiB becomes a chunk of 16 bytes more. The heap grows to the next page behind the chunk and 32
  bytes. Each free looks: with 131,072 bytes or more free at the end, the end goes back.
- Below the matrix lie 1,696 bytes: the thread's cache (656) and the block of 1 KiB that the program keeps (1,040).
- **126 KiB**: 1,696 + 129,040 + 32 bytes fit into 32 pages. After the free 129,376 bytes are free at the end, too
  few to be given back.
- **127 KiB**: 1,696 + 130,064 + 32 do not fit; with 33 pages 133,472 bytes are free. They go back at each free.
- **128 KiB**: the chunk, 131,088 bytes, has reached the threshold for mappings.

So 128 KiB is a rule, and 127 an accident: it is the edge while 977 to 2,000 bytes live on in the page below the
matrix.

### Where they lie today

- The heap asks for 128 KiB more than it needs, and keeps as much when it shrinks. One matrix of up to 130 KiB lies
  in what the heap has from its first growth (132 KiB), and less than a page would go back. No call.
- From 131 KiB on one matrix does not fit, and is a mapping, once: freeing it moves the threshold for mappings to
  its size (132 or 136 KiB), and that for trimming to twice as much. From then on it lies in the heap, which keeps
  it. That ends at 32 MiB: a mapping of so much moves nothing, and comes and goes in each call.
- Two or more matrices that are no mappings make the heap grow beyond that. Each free finds 128 KiB or more at the
  end and gives back what is more than 128 KiB: all sizes churn. The edge today is no size of a block; it is what a
  call frees at the end of the heap.
- From 128 KiB on the thresholds move, to 264 KiB for trimming, which four matrices exceed as well: fewer calls, the
  same illness.
- With the cure nothing is mapped and nothing goes back.

## Under libfreestone

Held to: a call has under 1 % of the faults that it has under glibc as it is, and the peak is at most 10 % over what
is live. {kept}:

{page.promises(story.promises)}

Peak RSS and faults of the program's start alone are taken off both. The kernel counts resident pages in batches, so
the smaller program's peak is known to some dozens of KiB only. 64 matrices: `{story.many}`.

## Machine and rounds

{story.rounds} rounds in random order. Times are means of so few, on a machine that had other work too: look at the
intervals. Faults and calls are counted: medians of 2 runs, and one run under strace. {machine}.
"""
