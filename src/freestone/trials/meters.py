"""What a trial cost, read off the launcher's result and the first process's last words. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable

from freestone.records.schema import Metrics, Sample, Survivors
from freestone.trials.launch import LaunchReading
from freestone.trials.unwaited import Unwaited
from freestone.trials.witness import Testimony, Usage

ACCURACY_S = 0.05
"""By how much processor time may seem to exceed what there was: it is counted in ticks on some kernels."""

ACCURACY = 0.02
"""And by what part of it: of processes that end it is not all told at once."""

LAG_KIB = 1024
"""By how much the kernel's counters of a process's memory may lag behind."""


def read(
    reading: LaunchReading,
    testimonies: Iterable[Testimony],
    survivors: Survivors = "fail",
    rest_s: float | None = None,
    unwaited: Unwaited | None = None,
) -> Metrics:
    """The metrics of a program that was started. A value that was not measured is None.

    The time is the whole tree's: work that is handed to a process which outlives the first is work all the same. Only
    where survivors are allowed it is the first process's.

    Args:
        rest_s: seconds for which each process was asked to stay at its end; None where none was: then none has.
        unwaited: those that the kernel adds to nobody. What they used is added, or nothing is told of the whole.
    """
    testimonies = list(testimonies)
    whole_s = reading.wall_s if reading.tree_wall_s is None else reading.tree_wall_s
    lasted_s = reading.wall_s if survivors == "allow" else whole_s
    resting_s = 0.0 if rest_s is None else rested_s(testimonies, reading.started_monotonic_s, lasted_s)
    peak_kib = _peak_rss_kib(reading, testimonies)
    usage = _usage(reading, unwaited)
    if unwaited is not None and peak_kib is not None:
        peak_kib = None if usage is None else max(peak_kib, usage.peak_rss_kib)
    return Metrics(
        wall_s=lasted_s - resting_s,
        outlived_s=whole_s - reading.wall_s,
        rested_s=resting_s,
        user_s=None if usage is None else usage.user_s,
        sys_s=None if usage is None else max(0.0, usage.sys_s - looked_s(testimonies)),
        peak_rss_kib=peak_kib,
        tree_peak_rss_kib=_tree_peak_rss_kib(reading, peak_kib),
        end_rss_kib=_end_rss_kib(reading.pid, testimonies),
        minor_faults=None if usage is None or reading.minor_faults is None else usage.minor_faults,
        major_faults=None if usage is None or reading.major_faults is None else usage.major_faults,
        # Nobody says at its end how often it was switched.
        voluntary_switches=reading.voluntary_switches if unwaited is None else None,
        involuntary_switches=reading.involuntary_switches if unwaited is None else None,
        counters=reading.counters,
        series=[Sample(at_s=at, rss_kib=kib, processes=processes) for at, kib, processes in reading.series],
    )


def contradiction(metrics: Metrics, testimonies: Iterable[Testimony], processors: int) -> str | None:
    """Why the figures cannot all be true, in one line; None where they can.

    Args:
        metrics: of one trial.
        testimonies: of its processes, who say at their end what they have used.
        processors: that the program may use.
    """
    used_s = metrics.cpu_s
    if metrics.rested_s > 0 and used_s is not None and used_s > processors * (metrics.wall_s + ACCURACY_S):
        return (
            "it took more processor time than there was: some of its processes were kept at their end while others "
            "worked, so its time is not known; measure it without --idle"
        )
    departures = [one.departure for one in testimonies if one.departure is not None]
    said_s = math.fsum(one.spent.cpu_s for one in departures if one.spent is not None)
    if used_s is not None and said_s > (1 + ACCURACY) * used_s + ACCURACY_S:
        return (
            f"its processes say that they used {said_s:.2f} s of processor time, and the kernel has told of "
            f"{used_s:.2f} s: nobody waited for some of them, so CPU time and faults are not known"
        )
    peak_kib = metrics.peak_rss_kib or 0
    if peak_kib and any(sample.rss_kib > sample.processes * (1.1 * peak_kib + LAG_KIB) for sample in metrics.series):
        return (
            "it had more memory than any process that somebody waited for: where SIGCHLD is ignored the kernel tells "
            "nothing of children, so CPU time, faults and peak RSS are not known"
        )
    return None


def _usage(reading: LaunchReading, unwaited: Unwaited | None) -> Usage | None:
    """What the whole tree used; None where that is not known."""
    waited = Usage(reading.user_s, reading.sys_s, reading.minor_faults or 0, reading.major_faults or 0)
    if unwaited is None:
        return waited
    return waited + unwaited.usage if unwaited.known else None


def idle(testimonies: Iterable[Testimony]) -> dict[str, float] | None:
    """What memory a tree had whose processes were kept at their end; None where none was.

    ``rss_kib_idle`` after the rest; ``pss_kib``, ``huge_kib`` (in transparent huge pages) and ``lazy_free_kib``
    (resident, and the kernel's to take) before it, and with ``_idle`` after it. They are those of the process that had
    most resident as its end came: of a compiler's driver, its compiler.
    """
    rested = [one.departure for one in testimonies if one.departure is not None and one.departure.rest is not None]
    largest = max(rested, key=lambda departure: departure.resident_kib or 0, default=None)
    if largest is None or largest.rest is None:
        return None
    rest = largest.rest
    found = {"rss_kib_idle": float(rest.resident_kib)}
    for ending, memory in (("", rest.end), ("_idle", rest.idle)):
        if memory is not None:
            found[f"pss_kib{ending}"] = float(memory.pss_kib)
            found[f"huge_kib{ending}"] = float(memory.huge_kib)
            found[f"lazy_free_kib{ending}"] = float(memory.lazy_free_kib)
    return found


def rested_s(testimonies: Iterable[Testimony], started_s: float, wall_s: float) -> float:
    """Seconds of a run, ``wall_s`` from ``started_s`` on, in which some process of its tree rested.

    Where another one worked meanwhile, that work is taken for rest too.
    """
    rests = [one.departure.rest for one in testimonies if one.departure is not None and one.departure.rest is not None]
    total_s, covered_s = 0.0, started_s
    for rest in sorted(rests, key=lambda rest: rest.from_s):
        from_s, until_s = max(rest.from_s, covered_s), min(rest.until_s, started_s + wall_s)
        if until_s > from_s:
            total_s += until_s - from_s
            covered_s = until_s
    return total_s


def looked_s(testimonies: Iterable[Testimony]) -> float:
    """Processor time in the kernel that went into looking at processes that were kept at their end."""
    rests = [one.departure.rest for one in testimonies if one.departure is not None and one.departure.rest is not None]
    return math.fsum(rest.looked_s for rest in rests)


def _peak_rss_kib(reading: LaunchReading, testimonies: Iterable[Testimony]) -> int | None:
    """The largest single process.

    ``ru_maxrss`` comes from counters that lag by some pages per CPU, so a process may have said on its way out that it
    was larger; the larger is the truth. At or below the launcher's own high-water mark the figure may be the
    launcher's: then nothing is known.
    """
    said = [one.departure.resident_kib or 0 for one in testimonies if one.departure is not None]
    if reading.peak_rss_kib is None:
        return None
    peak_kib = max([reading.peak_rss_kib, *said])
    return peak_kib if peak_kib > reading.floor_kib else None


def _tree_peak_rss_kib(reading: LaunchReading, peak_kib: int | None) -> int | None:
    """The largest sampled sum over the tree, and no less than its largest process: a peak between samples is one too.

    None where no sample was taken.
    """
    if reading.tree_peak_rss_kib is None:
        return None
    return max(reading.tree_peak_rss_kib, peak_kib or 0)


def _end_rss_kib(pid: int | None, testimonies: Iterable[Testimony]) -> int | None:
    """Resident set of the first process as its last image ended; None when it ended without a word (a signal)."""
    last = None
    for testimony in testimonies:
        if testimony.pid == pid and testimony.fork_of is None and (last is None or testimony.at_s >= last.at_s):
            last = testimony
    return last.departure.resident_kib if last is not None and last.departure is not None else None
