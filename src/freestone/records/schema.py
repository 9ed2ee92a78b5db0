"""The lab's records: one documented, versioned schema for everything a results folder holds.

Units are in the names: ``_s`` seconds, ``_kib`` kibibytes, ``_bytes`` bytes; counts have no suffix.
Times are wall-clock UTC in ISO 8601. A value that could not be measured is ``None``, never zero.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 2
"""Raised when a field changes meaning or disappears; new optional fields do not raise it.

2: the intervals of a summary and of a difference hold all at once."""

Status = Literal["ok", "failed", "timeout", "invalid", "different", "allowed"]
"""What became of a trial. The last two are told by a look at all trials, and stand in no file: other output than the
baseline's, and a failure that was allowed."""

Survivors = Literal["fail", "wait", "allow"]
"""What becomes of a trial whose first process is outlived by others: it has failed; it lasts until the last of them
ends; or they are ended, and its time is that of the first process alone."""

CellStatus = Literal["ok", "failed", "timeout", "invalid", "different", "unmeasured"]
"""What became of a configuration on a workload; ``different``: its output is not the
baseline's; ``unmeasured``: it has no trial, as its turn never came."""

FIGURE = "figure:"
"""Stands before the name of a program's own figure where that is one metric among others: ``figure:seconds``."""

HISTOGRAM = "_calls/"
"""Stands in the name of a figure that is one bucket of a histogram: ``malloc_calls/64`` is how many calls of malloc
took less than 64 ns, and no less than the bucket before ends at. A bucket alone is no metric."""

KEPT_MEMORY = tuple(
    f"{FIGURE}{name}"
    for name in (
        "rss_kib_idle",
        "pss_kib",
        "huge_kib",
        "lazy_free_kib",
        "pss_kib_idle",
        "huge_kib_idle",
        "lazy_free_kib_idle",
    )
)
"""What a process had that was kept at its end; a table has columns for it."""

MOST_ROUNDS = 100_000
"""Of an experiment: ten of them a minute take a week. A record that tells of more is damaged."""

LONGEST_S = 1e9
"""Seconds, some thirty years. A record that tells of more is damaged."""

WALL_TIME = "wall_s"

PROGRAM = "elf:"
"""How the content of a program or a library begins in ``TrialRecord.files``."""

FOLDER = "folder:"
"""How the content of a folder begins there."""

OWN_TIME = f"{FIGURE}seconds"
"""The time of a workload that measures itself: without start-up and preparation, which the process's time holds."""


class _Row(BaseModel):
    # JSON has no infinity; as a string it survives every reader, and pydantic reads it back as the number it was.
    model_config = ConfigDict(extra="ignore", frozen=True, ser_json_inf_nan="strings", defer_build=True)


class Allocator(_Row):
    """A library that provides malloc, as found on this machine (or not)."""

    name: str = Field(description="catalogue name: glibc, freestone, mimalloc, jemalloc, tcmalloc, tbb, ...")
    title: str = Field(description="how people write it, e.g. 'TBB malloc'")
    version: str | None = None
    file: str | None = Field(None, description="real path of the file that provides malloc; None when absent")
    build_id: str | None = Field(None, description="GNU build-id of that file, lower-case hex")
    preload: list[str] = Field(default_factory=list, description="what LD_PRELOAD holds, in order")
    origin: str = Field("", description="where it came from: 'package libjemalloc2', 'built here', 'system libc'")
    available: bool = True
    reason: str | None = Field(None, description="why it is not available, and how to get it")


class Configuration(_Row):
    """An allocator with its settings: what one arm of an experiment runs under."""

    name: str = Field(description="unique within the experiment; the allocator's name when nothing is set")
    allocator: Allocator
    environment: dict[str, str] = Field(default_factory=dict, description="settings added to the program's environment")
    kernel: dict[str, str] = Field(
        default_factory=dict,
        description="switches of the kernel's transparent huge pages that are set while it runs, and put back behind "
        "it: 'hugepages-64kB' -> 'always'",
    )
    huge_pages_off: bool = Field(False, description="whether it runs under prctl(PR_SET_THP_DISABLE)")

    @property
    def needs_conditions(self) -> bool:
        """Whether more than the program's environment has to be set for it."""
        return bool(self.kernel) or self.huge_pages_off


class Service(_Row):
    """How a server is measured: it is started, waited for, driven from outside by a load, and stopped by SIGTERM."""

    ready: str = Field(description="shell command that succeeds as soon as the server answers, and not before")
    load: str = Field(description="shell command that drives it and prints what came of it")
    ready_timeout_s: float = Field(60.0, description="seconds until it has to be ready", gt=0)
    stop_timeout_s: float = Field(30.0, description="seconds after SIGTERM until it has to be gone", gt=0)


class Stages(_Row):
    """Shell commands around the runs of a workload: off the clock, and outside of the allocator under test."""

    setup: str | None = Field(None, description="once, before anything of the workload is run")
    prepare: str | None = Field(None, description="before each run, also those that are not timed")
    conclude: str | None = Field(None, description="after each run that was begun, however it ended")
    cleanup: str | None = Field(None, description="once, when nothing more of it is run, also after Ctrl-C")


class Input(_Row):
    """A file that each run reads as its standard input, from its beginning."""

    file: str = Field(description="absolute path")
    bytes: int | None = Field(None, description="its size; None where it was not there yet, or is a device")
    sha256: str | None = Field(None, description="of its content; None likewise")


class Workload(_Row):
    """What is measured: a command, where it runs and with which environment."""

    name: str
    command: list[str]
    environment: dict[str, str] = Field(default_factory=dict)
    keep_environment: bool = Field(
        False, description="whether variables that steer an allocator or the loader stay as they are where the lab runs"
    )
    directory: str | None = None
    reads: Literal["process", "json"] = Field(
        "process",
        description="where the time comes from: the process, or 'seconds' in the line of JSON that the program prints",
    )
    counted: bool = Field(True, description="whether it stands in the means over all workloads")
    counting: list[str] | None = Field(
        None, description="the command in runs that only count, where valgrind makes the other too slow"
    )
    idle: list[str] = Field(
        default_factory=list,
        description="words behind the command by which the program sleeps after its work and reads its RSS then",
    )
    idle_s: int | None = Field(None, description="seconds for which it sleeps by those words", ge=1)
    rest_s: int | None = Field(
        None,
        description="seconds for which each of its processes is kept at its end, for its RSS then; no part of its time",
        ge=1,
    )
    idle_rounds: int | None = Field(None, description="rounds, the first ones, in which it does; None for all", ge=1)
    survivors: Survivors = Field(
        "fail",
        description="of processes that outlive the first one: 'fail' for the trial has failed, 'wait' for it lasts "
        "until the last one ends, 'allow' for they are ended and the time is that of the first alone",
    )
    service: Service | None = Field(
        None, description="for a server: its time is that of a request, by the load's figures; None for a program"
    )
    allow_failures: int = Field(0, description="trials of a configuration that may fail without a word on it", ge=0)
    ignore_status: list[int] = Field(default_factory=list, description="exit statuses that are as good as 0")
    output_may_differ: bool = Field(False, description="whether configurations may print different things")
    compare_output: str | None = Field(
        None, description="shell command through which its output goes before it is compared; not on the clock"
    )
    stages: Stages = Field(default_factory=Stages, description="commands around its runs")
    warmup: int = Field(0, description="untimed runs under each configuration before the first round", ge=0)
    input: Input | None = Field(None, description="its standard input; None for an empty one")
    shell: bool = Field(False, description="whether it is a line for a shell, whose own start is in its time")
    parameters: dict[str, str] = Field(
        default_factory=dict, description="what the placeholders of a scan, or of its name in a suite, stand for in it"
    )
    series: str | None = Field(
        None, description="the scan of which it is one point: its name without the parameters; None for none"
    )
    template: str | None = Field(None, description="its name in a suite, with its parameters in braces; None for none")
    memory_mib: int | None = Field(None, description="what it takes of memory; None for little")
    disk_mib: int | None = Field(None, description="what it takes of disk, below TMPDIR; None for little")

    def in_round(self, number: int) -> Workload:
        """What is run in round ``number``, from 0: with the words that belong to it, and with its rest or without."""
        if self.idle_rounds is not None and number >= self.idle_rounds:
            return self.model_copy(update={"rest_s": None})
        return self.model_copy(update={"command": [*self.command, *self.idle]})

    @property
    def time(self) -> str:
        """The metric that is this workload's time."""
        return OWN_TIME if self.reads == "json" or self.service is not None else WALL_TIME


class Machine(_Row):
    """The machine is part of the result (law 11); results of different ``id`` are never pooled."""

    id: str = Field(description="hash of the facts that make results incomparable when they differ")
    facts: dict[str, str | int | float | bool | None] = Field(
        default_factory=dict,
        description="cpu, cores, caches, governor, turbo, kernel, page size, THP, mTHP, overcommit, cgroup, libc",
    )


class Environment(_Row):
    """What programs inherit from the lab. Values only of what allocators, loaders and runtimes read; no secrets."""

    kept: bool = Field(False, description="whether variables that steer an allocator or the loader stayed (--keep-env)")
    told: dict[str, str] = Field(default_factory=dict, description="variables in force whose values are recorded")
    taken_out: dict[str, str] = Field(
        default_factory=dict, description="variables that steer an allocator or the loader: no program has them"
    )
    others: dict[str, str] = Field(
        default_factory=dict,
        description="all other variables -> two hex digits of a hash of the value: enough to name one that changed. "
        "Without those of a login, a terminal or a CI job",
    )
    others_sha256: str = Field("", description="of NAME=value NUL of those, in the order of names")


class EntryPoint(_Row):
    """Where one entry point of the heap interface was found, from inside a process."""

    symbol: str
    file: str
    build_id: str | None = None


class ProcessProof(_Row):
    """One program image of the measured tree and who served its memory."""

    pid: int
    parent: int
    exe: str
    exe_build_id: str | None = None
    proved: bool
    reason: str | None = Field(None, description="why not proved, one line")
    entries: list[EntryPoint] = Field(default_factory=list, description="malloc, calloc, realloc, free")
    strays: list[str] = Field(
        default_factory=list, description="loaded objects bound to another provider, 'object: file'"
    )
    end_rss_kib: int | None = None
    images: int = Field(
        default=1, description="images of the same program with the same verdict that this row stands for"
    )


class OwnHeap(_Row):
    """A file in the measured tree whose memory does not come from the malloc that a preload replaces."""

    file: str
    what: str = Field(description="'jemalloc (je_malloc)', 'CPython', 'libc itself (__libc_malloc)', 'a malloc'")
    how: Literal["start", "later", "closed", "apart", "mapped"] = Field(
        description="loaded at the start, opened later, closed again, in a namespace of its own; or seen by the kernel"
    )
    remedy: str | None = Field(None, description="how to bring it to use malloc, where that is known")


class Asked(_Row):
    """What a program asks of malloc, counted once for all allocators in an untimed run; sums over the whole tree."""

    calls: int = Field(description="of malloc, calloc, realloc and their aligned kin")
    most_kib: int = Field(description="the most that was in use at once, by process")
    private_kib: int = Field(description="the most that was resident at once and is no file's, by process")


class Proof(_Row):
    """The verdict of law 1 over a whole trial."""

    valid: bool
    reason: str | None = None
    census: Literal["perf", "rehearsal", "none"] = "none"
    processes: list[ProcessProof] = Field(default_factory=list)
    images: int | None = Field(default=None, description="program images in the tree, by the census")
    own_heaps: list[OwnHeap] = Field(
        default_factory=list, description="what no preload reaches: it is named, and no reason to be invalid"
    )
    silent: dict[str, int] = Field(
        default_factory=dict,
        description="program -> its processes that ended without last words: what they had loaded by then is not known",
    )


class Sample(_Row):
    """One point of the resident-set series of the process tree."""

    at_s: float
    rss_kib: int
    processes: int


class Metrics(_Row):
    """What one trial cost. CPU times, faults and switches cover the whole tree of waited-for processes."""

    wall_s: float = Field(
        description="from exec to the end of the last process (of the first, where survivors are allowed), less what "
        "processes rested",
        gt=0,
        le=LONGEST_S,
        allow_inf_nan=False,
    )
    outlived_s: float = Field(
        0.0, description="how long others outlived the first process; part of wall_s where survivors are not allowed"
    )
    rested_s: float = Field(0.0, description="how long processes were kept at their end meanwhile")
    user_s: float | None = Field(
        None, description="None where nobody waited for some processes", ge=0, le=LONGEST_S, allow_inf_nan=False
    )
    sys_s: float | None = Field(None, description="likewise", ge=0, le=LONGEST_S, allow_inf_nan=False)
    peak_rss_kib: int | None = Field(
        None, description="largest single process (ru_maxrss, launcher's floor excluded by design)", gt=0
    )
    tree_peak_rss_kib: int | None = Field(
        None, description="largest sampled sum over the tree, and no less than peak_rss_kib"
    )
    end_rss_kib: int | None = Field(
        None, description="resident set of the first process as it exited, from the witness"
    )
    minor_faults: int | None = Field(None, description="ru_minflt: traps and populated pages alike")
    major_faults: int | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    counters: dict[str, int] = Field(default_factory=dict, description="hardware counters where the machine has them")
    series: list[Sample] = Field(default_factory=list)

    @property
    def cpu_s(self) -> float | None:
        """Processor time in the program and in the kernel; None where it is not known."""
        return None if self.user_s is None or self.sys_s is None else self.user_s + self.sys_s


class Output(_Row):
    """What the program said; kept small. A digest tells whether two trials said the same."""

    stdout_bytes: int = 0
    stdout_sha256: str = ""
    stdout_lines: int | None = None
    compared_sha256: str | None = Field(
        None, description="of what is compared, where that is not all of stdout: behind a filter, before the figures"
    )
    stderr_bytes: int = 0
    stderr_tail: str = ""


class TrialRecord(_Row):
    """One workload under one configuration, once."""

    schema_version: int = SCHEMA_VERSION
    experiment: str
    workload: str
    configuration: str
    round: int = Field(description="from 0", ge=0, lt=MOST_ROUNDS)
    position: int = Field(description="place within the round, from 0", ge=0)
    repeat: int = Field(
        0, description="1 for the second run of the baseline in a round (the A/A comparison)", ge=0, le=1
    )
    started_at: str
    status: Status
    reason: str | None = Field(None, description="one line when the status is not ok")
    exit_code: int | None = None
    signal: int | None = None
    metrics: Metrics | None = None
    output: Output | None = None
    figures: dict[str, float] | None = Field(
        None,
        description="numbers of the line of JSON it prints, of a list the last, and its RSS after a rest; None where "
        "there is neither",
    )
    notes: list[str] = Field(
        default_factory=list, description="what a reader should know, e.g. a daemon left behind and ended"
    )
    asked: Asked | None = Field(None, description="what was counted in the rehearsal; None where nothing was")
    files: dict[str, str] = Field(
        default_factory=dict,
        description="files that the command names, and the allocator's own, which the run left as they were -> start "
        "of their content's SHA-256, behind 'elf:' for programs and libraries",
    )
    survivors: list[str] = Field(
        default_factory=list, description="programs of the processes that were still there and were ended"
    )
    steered: dict[str, str] = Field(
        default_factory=dict, description="variables that steer an allocator, set by the program's own scripts"
    )
    stage_output: str | None = Field(None, description="the end of what a prepare or conclude that failed has written")
    proof: Proof


class Experiment(_Row):
    """The head of a results folder."""

    schema_version: int = SCHEMA_VERSION
    id: str
    created_at: str
    freestone_version: str
    command_line: list[str]
    machine: Machine
    workloads: list[Workload] = Field(min_length=1)
    configurations: list[Configuration]
    baseline: str = Field(description="name of a configuration")
    rounds: int = Field(ge=1, le=MOST_ROUNDS)
    seed: int
    timeout_s: float | None = Field(None, gt=0)
    time_budget_s: float | None = Field(None, gt=0)
    environment: Environment | None = Field(None, description="None in results of before it was recorded")
    racing: str | None = Field(
        None,
        description="the metric of memory, if a configuration gets no more rounds once another one is really better "
        "in time or in this metric, and really no worse in the other",
    )


class Place(_Row):
    """Where an order is carried out."""

    name: str = Field(description="what it is called, and its folder")
    engine: Literal["local", "ssh", "slurm", "dask", "merged"] = Field(
        description="how it is reached; 'merged': it was measured by itself, and its results were copied"
    )
    address: str | None = Field(None, description="of ssh the host, of dask the scheduler")
    kind: str | None = Field(None, description="of slurm a feature of nodes, of dask a resource of workers")


class Order(_Row):
    """What is to be measured at several places: the head of a folder that holds a results folder for each."""

    schema_version: int = SCHEMA_VERSION
    id: str
    created_at: str
    freestone_version: str
    words: list[str] = Field(description="the verb and its arguments, without what says where")
    directory: str = Field("", description="the working folder it was given in")
    places: list[Place]
    most_minutes: int = Field(1440, description="how long a job of a cluster may take")


class Ratio(_Row):
    """A configuration against the baseline, paired within rounds."""

    value: float = Field(description="geometric mean over rounds of configuration / baseline")
    low: float = Field(
        description="lower end of its interval; those of one table hold all at once, 95 times in 100; 0 when too few "
        "rounds say anything"
    )
    high: float = Field(description="upper end; 'Infinity' when too few rounds say anything")
    pairs: int
    different: bool = Field(description="the interval leaves out 1")


class Cell(_Row):
    """One configuration on one workload: medians, counts of trials, ratios to the baseline by metric name."""

    workload: str
    configuration: str
    status: CellStatus
    reason: str | None = None
    trials_ok: int
    trials_total: int
    median: dict[str, float] = Field(default_factory=dict, description="metric name -> median over ok trials")
    mean: dict[str, float] = Field(
        default_factory=dict,
        description="metric name -> geometric mean over rounds, of which the ratio is the quotient; none where a value "
        "was ever 0",
    )
    ratio: dict[str, Ratio] = Field(default_factory=dict)
    note: str | None = Field(None, description="e.g. 'output differs from the baseline's'")

    def is_median(self, metric: str) -> bool:
        """Whether :meth:`figure` is a median where others' are means, as a value was 0."""
        return self.status == "ok" and metric not in self.mean and metric in self.median

    def figure(self, metric: str) -> float | None:
        """What to show of a metric beside its ratio: the mean, or the median where a value was 0; None without any."""
        return self.mean.get(metric, self.median.get(metric))


class Summary(_Row):
    """What the statistics say of an experiment's records. Re-computable from them at any time."""

    schema_version: int = SCHEMA_VERSION
    experiment: str
    baseline: str
    rounds_complete: int
    cells: list[Cell]
    noise: dict[str, dict[str, Ratio]] = Field(
        default_factory=dict, description="workload -> metric -> A/A ratio (baseline's second run / first run)"
    )
    headline: str = Field(description="one sentence: which allocator is best for what, and whether it is real")
    best: dict[str, dict[str, str]] = Field(
        default_factory=dict,
        description="workload -> 'time', 'peak memory' -> the configuration that is really lower than the baseline "
        "there, and lowest of those; none where there is none",
    )
    advice: dict[str, list[str]] = Field(
        default_factory=dict, description="workload -> what to do where noise hides differences of 2 %; sentences"
    )
    notes: dict[str, list[str]] = Field(
        default_factory=dict, description="workload -> what no preload reaches there, a sentence each"
    )


class ScoreRow(_Row):
    """One workload in one aspect: every configuration's figure, and the subject against its best peer there."""

    workload: str
    counted: bool = Field(description="whether the means over all workloads hold it")
    values: dict[str, float] = Field(description="configuration -> geometric mean over rounds, in the metric's unit")
    best_peer: str | None = Field(None, description="the lowest of all but the subject; None where nobody else has one")
    ratio: Ratio | None = Field(None, description="subject / best peer, paired within rounds")
    held_out: Ratio | None = Field(
        None,
        description="subject / the peer that was best in the other half of the rounds; None with a single round",
    )


class Standing(_Row):
    """One configuration over all counted workloads: its ratio to the best of all configurations on each of them."""

    configuration: str
    mean: float = Field(description="geometric mean over workloads; 1 is the best of all everywhere")
    worst: float
    worst_workload: str
    workloads: int = Field(description="on how many it has a figure")


class Aspect(_Row):
    """One thing that is less or more: time, memory, faults."""

    name: str
    rows: list[ScoreRow]
    field: list[Standing] = Field(description="best mean first")
    mean: Ratio | None = Field(None, description="geometric mean over counted workloads of subject / best peer")
    held_out: Ratio | None = Field(
        None,
        description="the same against the peer that was best in the other half of the rounds, where all rows have it",
    )
    worst: ScoreRow | None = Field(None, description="the counted row of the largest ratio")


class LeftOut(_Row):
    """A configuration that has no figure on a workload, and why: it is never counted as fast."""

    workload: str
    configuration: str
    status: CellStatus
    reason: str


class Score(_Row):
    """What an experiment of many workloads says as a whole. Re-computable from its records at any time."""

    schema_version: int = SCHEMA_VERSION
    experiment: str
    subject: str = Field(description="the configuration that is held against the best of its peers")
    rounds_complete: int
    aspects: list[Aspect]
    left_out: list[LeftOut]


class CallCount(_Row):
    """System calls of one workload under one configuration, counted in a run of its own that no clock has seen."""

    workload: str
    configuration: str
    status: Status
    reason: str | None = None
    calls: dict[str, int] = Field(
        default_factory=dict, description="system call -> how often, the whole process tree and its start-up included"
    )


class CallCounts(_Row):
    """All counts of an experiment; ``calls.json``, replaced as a whole."""

    schema_version: int = SCHEMA_VERSION
    experiment: str
    counts: list[CallCount]


class FunctionCount(_Row):
    """What one function did, with what was inlined into it."""

    name: str
    file: str = Field(description="source file of most of it; '???' where there is no debugging information")
    instructions: int
    data_reads: int
    data_writes: int


class InstructionCount(_Row):
    """References of one workload under one configuration, counted by cachegrind in a run of its own."""

    workload: str
    configuration: str
    status: Status
    reason: str | None = None
    command: list[str] = Field(description="what was run: 'counting' of the workload, or its command")
    processes: int | None = Field(None, description="how many are in the sums; start-up and the witness are, too")
    caches: list[str] = Field(default_factory=list, description="the caches that were simulated")
    instructions: int | None = None
    data_reads: int | None = None
    data_writes: int | None = None
    d1_misses: int | None = Field(None, description="of data reads and writes in the first level")
    lld_misses: int | None = Field(None, description="of data reads and writes in the last level")
    functions: list[FunctionCount] = Field(default_factory=list, description="those with the most instructions")
    notes: list[str] = Field(default_factory=list)


class HeapCount(_Row):
    """What a workload asks of malloc, whoever that is: counted by memcheck in its place, once for all allocators."""

    workload: str
    status: Status
    reason: str | None = None
    command: list[str]
    processes: int | None = None
    allocations: int | None = Field(None, description="malloc, calloc, realloc, new, ...")
    frees: int | None = None
    allocated_bytes: int | None = None
    in_use_bytes: int | None = Field(None, description="at exit")
    in_use_blocks: int | None = None


class InstructionCounts(_Row):
    """All such counts of an experiment; ``instructions.json``, replaced as a whole whenever one is added."""

    schema_version: int = SCHEMA_VERSION
    experiment: str
    valgrind: str = Field(description="its version")
    counts: list[InstructionCount]
    heaps: list[HeapCount]


ChangeVerdict = Literal["more", "less", "same", "unknown"]


class Change(_Row):
    """One metric of one workload under one configuration, before and after; or the mean over all workloads."""

    workload: str | None = Field(description="None for the mean over all counted workloads")
    configuration: str = Field(description="by its name after")
    aspect: str = Field(description="'time', 'peak RSS', 'minor faults'")
    before: float | None = Field(None, description="geometric mean over rounds, in the metric's unit; None in a mean")
    after: float | None = None
    ratio: float = Field(description="after / before, less what the controls changed where time is compared")
    low: float = Field(
        description="lower end of its interval; those of one difference hold all at once, 95 times in 100; 0 when too "
        "few rounds say anything"
    )
    high: float = Field(description="upper end; 'Infinity' when too few rounds say anything")
    rounds: int = Field(description="in the smaller of the two sides")
    verdict: ChangeVerdict = Field(description="'more' and 'less': the interval leaves out 1")


class Apart(_Row):
    """Something of two results that must not be compared, and why."""

    what: str = Field(description="'workload lua-keys', 'configuration jemalloc'")
    reason: str


class Difference(_Row):
    """What changed between two results, or between two configurations of one. Re-computable from the records."""

    schema_version: int = SCHEMA_VERSION
    before: str = Field(description="the experiment")
    after: str
    held_against: str | None = Field(
        None, description="of one experiment: the configuration that the subject is held against; None for two"
    )
    subjects: dict[str, str] = Field(description="configuration -> what is different about it, in words")
    controls: list[str] = Field(description="configurations that are the same on both sides: what they change is drift")
    confidence: float
    changes: list[Change]
    drift: list[Change] = Field(default_factory=list, description="of the controls' time, over all counted workloads")
    apart: list[Apart]
    lost: list[Apart] = Field(
        default_factory=list, description="what had a result before and has none after, though it was tried"
    )
    unrelated: str | None = Field(None, description="why times of the two sides cannot be held against each other")


GateOutcome = Literal["kept", "open", "exceeded"]


class GateRow(_Row):
    """One change against its limit."""

    change: Change
    limit: float = Field(description="largest increase allowed, as a fraction")
    outcome: GateOutcome
    rounds_needed: int | None = Field(None, description="how many a side would probably settle an open one")
    reason: str | None = Field(None, description="why nothing can be told of an open one, where that is so")


class Gate(_Row):
    """Whether a difference stays within limits."""

    schema_version: int = SCHEMA_VERSION
    limits: dict[str, float] = Field(description="aspect -> fraction")
    rows: list[GateRow]
    outcome: GateOutcome = Field(description="the worst of the rows'; 'open' where there is none")
    difference: Difference
