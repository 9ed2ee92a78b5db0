"""The measured quantities as people read them: titles, units, digits, and words for a ratio."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from freestone.analysis import digits
from freestone.records.schema import (
    FIGURE,
    OWN_TIME,
    WALL_TIME,
    Cell,
    CellStatus,
    ChangeVerdict,
    Ratio,
    Status,
    TrialRecord,
)

Kind = Literal["time", "memory", "count"]

STATUS_WORDS: Mapping[CellStatus | Status, str] = {
    "ok": "ok",
    "invalid": "INVALID",
    "failed": "failed",
    "timeout": "timed out",
    "different": "different output",
    "allowed": "failed, as allowed",
    "unmeasured": "not measured",
}

NOT_RANKED = (
    "different output: not ranked; --compare-output CMD compares what a filter leaves of it, "
    "--output-may-differ nothing"
)
"""What is said where some configuration's output is not the baseline's."""

MEDIAN = "*"
"""Behind a figure that is no geometric mean as those beside it are."""

SAME, UNKNOWN = "≈", "?"
"""What stands for a ratio that is no difference, and for one of too few rounds."""

_UNITS: dict[Kind, tuple[tuple[float, str], ...]] = {
    "time": ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")),
    "memory": ((1.0, "KiB"), (1024.0, "MiB"), (1024.0**2, "GiB")),
    "count": ((1.0, ""), (1e6, "million")),
}


@dataclass(frozen=True)
class Quantity:
    """One metric and how to speak of it. Less is better for all of them."""

    key: str
    title: str
    short: str
    kind: Kind
    meaning: str
    less: str = "less"
    more: str = "more"


QUANTITIES = (
    Quantity(OWN_TIME, "Time", "time", "time", "of what the program itself measures", "faster", "slower"),
    Quantity(f"{FIGURE}mean_seconds", "Latency, mean", "mean", "time", "of a request, as the load says"),
    Quantity(f"{FIGURE}p50_seconds", "Latency, median", "p50", "time", "of a request, as the load says"),
    Quantity(f"{FIGURE}p99_seconds", "Latency, 99 %", "p99", "time", "99 of 100 requests took less, as the load says"),
    Quantity(f"{FIGURE}p999_seconds", "Latency, 99.9 %", "p99.9", "time", "999 of 1000 requests took less"),
    Quantity(
        f"{FIGURE}cpu_seconds", "CPU per request", "CPU/request", "time", "of the server's whole tree, under load"
    ),
    Quantity(f"{FIGURE}rss_kib_loaded", "RSS after load", "RSS loaded", "memory", "the server's tree after its load"),
    Quantity(f"{FIGURE}faults_per_1000", "Faults per 1000 requests", "faults/1000", "count", "minor faults under load"),
    Quantity("wall_s", "Wall time", "wall", "time", "from start to end of the program", "faster", "slower"),
    Quantity("user_s", "User time", "user", "time", "CPU time of the whole tree, in the program"),
    Quantity("sys_s", "System time", "system", "time", "CPU time of the whole tree, in the kernel"),
    Quantity("peak_rss_kib", "Peak RSS", "peak RSS", "memory", "largest resident set of any one process"),
    Quantity("tree_peak_rss_kib", "Tree peak RSS", "tree peak", "memory", "largest sampled sum over the process tree"),
    Quantity("end_rss_kib", "RSS at end", "end RSS", "memory", "resident set of the first process as it exited"),
    *(
        Quantity(f"{FIGURE}{key}{ending}", f"{title}{when}", f"{short}{after}", "memory", f"{meaning}{told}")
        for ending, when, after, told in (
            ("", " at end", "", ", of the process that was kept at its end"),
            ("_idle", " after idle", " idle", ", after it was idle at its end"),
        )
        for key, title, short, meaning in (
            ("rss_kib", "RSS", "RSS", "resident set"),
            ("pss_kib", "PSS", "PSS", "resident set, each page divided by how many processes have it"),
            ("huge_kib", "Huge pages", "huge pages", "memory in transparent huge pages"),
            ("lazy_free_kib", "Lazily freed", "lazily freed", "resident, but the kernel's to take (MADV_FREE)"),
        )
    ),
    Quantity("minor_faults", "Minor faults", "minor faults", "count", "ru_minflt: traps and populated pages alike"),
    Quantity("major_faults", "Major faults", "major faults", "count", "page faults that waited for a disk"),
    Quantity("voluntary_switches", "Voluntary switches", "voluntary switches", "count", "context switches to wait"),
    Quantity(
        "involuntary_switches",
        "Involuntary switches",
        "involuntary switches",
        "count",
        "context switches when preempted",
    ),
)
_EVENTS = {
    "page-faults": ("Page-fault traps", "perf's page-faults event: traps alone, populated pages left out"),
    "cycles": ("Cycles", "processor cycles"),
    "instructions": ("Instructions", "instructions retired"),
    "cache-misses": ("Cache misses", "last-level cache misses"),
}


def quantity_of(key: str) -> Quantity:
    """The quantity of a metric's name; for perf counters and programs' figures, which are endless, one made up."""
    for quantity in QUANTITIES:
        if quantity.key == key:
            return quantity
    if key.startswith(FIGURE):
        return _figure(key)
    event, _, modifier = key.partition(":")
    title, meaning = _EVENTS.get(event, (event, "perf counter"))
    if modifier == "u":
        title, meaning = f"{title}, user mode", f"{meaning}, counted in user mode only"
    return Quantity(key, title, title[0].lower() + title[1:], "count", meaning)


def _figure(key: str) -> Quantity:
    """A figure of a program's own. Names tell units: ``_kib``, ``seconds``; anything else is shown as it was said."""
    name = key.removeprefix(FIGURE)
    words = name.replace("_", " ")
    kind: Kind = "memory" if "kib" in name.split("_") else "time" if name.endswith("seconds") else "count"
    return Quantity(key, words[:1].upper() + words[1:], words, kind, "as the program says")


def time_of(cells: Iterable[Cell]) -> str:
    """The metric that is the time of a workload: what its programs say where they measure themselves."""
    return OWN_TIME if any(cell.figure(OWN_TIME) is not None for cell in cells) else WALL_TIME


def value_of(record: TrialRecord, key: str) -> float | None:
    """One metric of a trial, in the schema's unit; None where it was not measured."""
    if key.startswith(FIGURE):
        return (record.figures or {}).get(key.removeprefix(FIGURE))
    value = getattr(record.metrics, key, None)
    if value is None:
        return record.metrics.counters.get(key) if record.metrics is not None else None
    return float(value) if isinstance(value, int | float) else None


@dataclass(frozen=True)
class Scale:
    """One unit and one number of decimals for all values of a column or an axis."""

    unit: str
    divisor: float
    decimals: int

    @classmethod
    def over(cls, kind: Kind, values: Iterable[float]) -> Scale:
        """The unit in which the largest value reads well, with decimals for three digits of the median value."""
        sizes = sorted(abs(value) for value in values if math.isfinite(value) and value != 0)
        if not sizes:
            divisor, unit = _UNITS[kind][-1] if kind == "time" else _UNITS[kind][0]
            return cls(unit, divisor, 0)
        divisor, unit = _UNITS[kind][0]
        for step, name in _UNITS[kind]:
            if sizes[-1] >= step:
                divisor, unit = step, name
        if unit == "million" and sizes[-1] < 10e6:
            divisor, unit = 1.0, ""
        if unit == "" and kind == "count":
            return cls(unit, divisor, 0)
        # A difference of logarithms: beside the largest value the middle one may be too small for a quotient.
        digits = math.floor(math.log10(sizes[len(sizes) // 2]) - math.log10(divisor))
        return cls(unit, divisor, min(3, max(0, 2 - digits)))

    def number(self, value: float) -> str:
        """A value without its unit: ``1,234`` or ``0.412``."""
        return f"{value / self.divisor:,.{self.decimals}f}"

    def text(self, value: float) -> str:
        """A value with its unit: ``412 ms``."""
        return f"{self.number(value)} {self.unit}".rstrip()


def of_aspect(aspect: str, value: float | None) -> str:
    """A value of an aspect of a score, by the aspect's name; a dash where there is none."""
    if value is None:
        return "–"
    kind: Kind = "time" if aspect == "time" else "memory" if "RSS" in aspect else "count"
    return Scale.over(kind, [value]).text(value)


def is_known(ratio: Ratio) -> bool:
    """Whether its interval says anything: with too few rounds it reaches from nothing to infinity."""
    return ratio.low > 0 and all(math.isfinite(end) for end in (ratio.low, ratio.value, ratio.high))


def interval(ratio: Ratio) -> str:
    """``[0.905, 0.920]`` with as many decimals as its width deserves; ``[?]`` when the rounds were too few to tell."""
    if not is_known(ratio):
        return "[?]"
    decimals, low, high = _decimals(ratio), ratio.low, ratio.high
    return f"[{', '.join(digits.number(end, decimals, different=ratio.different) for end in (low, high))}]"


def ratio_number(ratio: Ratio) -> str:
    """The ratio itself, with the decimals of :func:`interval`."""
    return digits.number(ratio.value, _decimals(ratio), different=ratio.different)


def ratio_of(cell: Cell, key: str, baseline: str) -> Ratio | None:
    """A cell's ratio to the baseline; None for the baseline itself, and for what is no result."""
    return None if cell.status != "ok" or cell.configuration == baseline else cell.ratio.get(key)


def judgement(ratio: Ratio) -> ChangeVerdict:
    """Whether a ratio is really ``less`` or ``more`` than 1, the ``same`` as far as seen, or ``unknown``."""
    if not is_known(ratio):
        return "unknown"
    return "same" if not ratio.different else "less" if ratio.value < 1 else "more"


def factor(ratio: Ratio) -> str:
    """A ratio and its judgement in little room: ``×0.93``, ``≈`` for no difference seen, ``?`` for too few rounds."""
    found = judgement(ratio)
    return (
        UNKNOWN
        if found == "unknown"
        else SAME
        if found == "same"
        else f"×{digits.number(ratio.value, digits.seen(ratio.value, 2), different=True)}"
    )


def verdict(quantity: Quantity, ratio: Ratio) -> str:
    """A ratio in words: ``8.8 % faster``, ``3.1 times as much``, ``no difference seen`` or ``too few rounds``."""
    if not is_known(ratio):
        return "too few rounds"
    if not ratio.different or not math.isfinite(ratio.value) or ratio.value <= 0:
        return "no difference seen"
    word = quantity.less if ratio.value < 1 else quantity.more
    if ratio.value >= 2:
        return f"{ratio.value:.1f} times {'as slow' if word == 'slower' else 'as much'}"
    if ratio.value < 0.1:  # "99.5 % less" hides by how much
        return f"{1 / ratio.value:,.0f} times as fast" if word == "faster" else f"1/{1 / ratio.value:,.0f} of it"
    percent = abs(1 - ratio.value) * 100
    return f"{percent:.{digits.seen(percent, 1) if percent < 9.95 else 0}f} % {word}"


def has_figures(cell: Cell) -> bool:
    """Whether a cell has medians to show; that of another output has, though it is ranked nowhere."""
    return cell.status in ("ok", "different")


def status_of(cell: Cell) -> str:
    """What became of a cell, with the count of its trials where only some of them are why: ``2 of 10 failed``."""
    word = STATUS_WORDS[cell.status]
    if cell.status in ("ok", "unmeasured") or not 0 < cell.trials_ok < cell.trials_total:
        return word
    return f"{cell.trials_total - cell.trials_ok} of {cell.trials_total} {word}"


def is_a_tree(cells: Iterable[Cell]) -> bool:
    """Whether the process tree as a whole held more than its largest process, by over 5 % in any cell.

    Where it did not, the two peaks are one figure and the table needs one column for them.
    """
    medians = [cell.median for cell in cells if has_figures(cell)]
    return any(
        median["tree_peak_rss_kib"] > 1.05 * median["peak_rss_kib"]
        for median in medians
        if "tree_peak_rss_kib" in median and "peak_rss_kib" in median
    )


def _decimals(ratio: Ratio) -> int:
    width = abs(ratio.high - ratio.low)
    if not math.isfinite(width) or width <= 0:
        return digits.seen(ratio.value, 3)
    return digits.seen(min(ratio.low, ratio.value), min(3, max(2, 1 - math.floor(math.log10(width)))))
