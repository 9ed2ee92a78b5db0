"""What was seen of one program, each fact in the run that disturbs it least. Written as ``observations.json``.

Every part may be missing; ``unseen`` says why, in a line that a reader can act on. Units are in the names, as in
:mod:`freestone.records.schema`.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, ser_json_inf_nan="strings", defer_build=True)


CHOICE: Final = "another allocator"
"""Stands among what was not seen where nothing can be preloaded: a static program."""


class FaultPrice(_Row):
    """One page fault of some kind."""

    ns: float = Field(gt=0)
    kib: float = Field(description="how much it brings in", gt=0)


class Prices(_Row):
    """What the kernel's services cost on this machine, in nanoseconds, medians of many.

    A fault's price includes clearing what it brings in.
    """

    page_kib: int = Field(description="of the smallest page", gt=0)
    small: FaultPrice = Field(description="first touch, huge pages forbidden")
    plain: FaultPrice | None = Field(None, description="first touch as the kernel is set here: folios or huge pages")
    advised: FaultPrice | None = Field(None, description="first touch where huge pages were asked for")
    map_unmap_ns: float = Field(description="mmap and munmap of 1 MiB that nobody touched", gt=0)
    unmap_page_ns: float = Field(description="munmap, for each page that was touched", ge=0)
    dontneed_page_ns: float = Field(description="madvise(MADV_DONTNEED), for each page that was touched", ge=0)
    protect_ns: float = Field(description="one mprotect that opens one page", gt=0)
    brk_ns: float = Field(description="brk up and down again by 128 KiB, untouched", gt=0)
    clear_kib_ns: float = Field(description="memset of a KiB, in 4 MiB that were used a moment before", gt=0)
    copy_kib_ns: float = Field(description="memcpy of a KiB, likewise", gt=0)


class Cost(_Row):
    """The whole tree in a run that nobody watched: of several the one in the middle, by its processor time."""

    runs: int = Field(ge=1)
    wall_s: float
    user_s: float
    sys_s: float
    minor_faults: int | None = None
    major_faults: int | None = None
    peak_rss_kib: int | None = None
    end_rss_kib: int | None = None
    voluntary_switches: int | None = None
    most_voluntary_switches: int | None = Field(
        None, description="the most of these runs: what threads slept in another run may be as much"
    )
    involuntary_switches: int | None = None
    processes: int = 1
    trial_s: float | None = Field(
        None, description="seconds from one such run to the next: what a trial takes with its start and its proof"
    )
    resident_before_kib: int = Field(
        0, description="resident when the looking began: of a process that ran already; its pages cost no fault here"
    )


class Point(_Row):
    """One look at the tree from outside, while it ran by itself."""

    at_s: float
    virtual_kib: int
    rss_kib: int
    faults: int = Field(description="minor faults so far")
    cpu_s: float = Field(0.0, description="processor time so far")


class CallSite(_Row):
    """Where in the program calls come from: functions from the caller of the C library outwards, at most 8."""

    frames: list[str]
    calls: int
    kib: int = 0


class MemoryCalls(_Row):
    """One system call about memory, in a run under a tracer."""

    name: Literal["brk", "mmap", "munmap", "mremap", "mprotect", "madvise", "futex"]
    calls: int
    kib: int = Field(0, description="what they were about, in all")
    sizes: dict[int, int] = Field(default_factory=dict, description="KiB, rounded up to a power of two -> calls")
    sites: list[CallSite] = Field(default_factory=list, description="the most frequent, where stacks were taken")
    with_stack: int = Field(0, description="calls in the run that took stacks, which may have been broken off")


class Growth(_Row):
    """How heaps grow and shrink, from the same run."""

    brk_up: int = 0
    brk_down: int = 0
    brk_down_up: int = Field(0, description="times that the top was given back and taken again")
    anonymous_maps: int = Field(
        0, description="private anonymous mmaps that are no thread's stack and no heap's reserve"
    )
    map_unmap_pairs: int = Field(0, description="of these, taken back whole by munmap")
    pairs_128k_32m: int = Field(0, description="of these, of 128 KiB to 32 MiB, which glibc's threshold moves about")
    heap_reserves: int = Field(0, description="mappings of 64 or 128 MiB without access: glibc's heaps of threads")
    heap_mprotects: int = Field(0, description="mprotects that open such a heap further")
    heap_shrinks: int = Field(0, description="madvise(DONTNEED) or mmaps that close it again")


class Calls(_Row):
    """All that a run under a tracer has shown."""

    wall_s: float = Field(description="of the run under the tracer, which takes time; no measurement of the program")
    by_kind: list[MemoryCalls] = Field(default_factory=list)
    growth: Growth = Growth()
    huge_pages_off: bool = Field(False, description="a process of it has called prctl(PR_SET_THP_DISABLE, 1)")
    locked: bool = Field(False, description="likewise mlockall(MCL_FUTURE)")


class Sizes(_Row):
    """Requests of one range of sizes: above half of ``to_bytes``, up to it."""

    to_bytes: int
    calls: int
    kib: int


class HeapPoint(_Row):
    """The heap at one moment: what the program holds, and what the C library says of itself."""

    at_s: float
    live_kib: int = Field(description="asked for and not yet freed")
    asked_kib: int = Field(description="ever asked for so far")
    held_kib: int | None = Field(None, description="what the heap has from the kernel (glibc: arena + hblkhd)")
    free_kib: int | None = Field(None, description="of it, free blocks (fordblks)")
    top_kib: int | None = Field(
        None, description="of it, what could be trimmed from the end of the main heap (keepcost)"
    )
    mapped_kib: int | None = Field(None, description="of it, in mappings of single blocks (hblkhd)")
    arenas: int | None = None
    rss_kib: int | None = None


class Realloc(_Row):
    """How blocks grow."""

    calls: int = 0
    moved: int = 0
    copied_kib: int = Field(0, description="what moved blocks held")
    small_steps: int = Field(0, description="of calls that grow a block of 4 KiB or more, those by less than an eighth")


class HeapUse(_Row):
    """What the program asks of malloc, from a preload of ours: one process, the one that asks most."""

    wall_s: float = Field(description="of this run")
    disturbance: float | None = Field(None, description="its processor time / that of the runs that nobody watched")
    complete: bool = Field(True, description="whether it ended by itself; what a signal ended has no last look at it")
    mallocs: int = 0
    callocs: int = 0
    frees: int = 0
    realloc: Realloc = Realloc()
    calloc_kib: int = 0
    asked_kib: int = 0
    sizes: list[Sizes] = Field(default_factory=list)
    lifetimes: dict[int, int] = Field(
        default_factory=dict, description="bytes asked for meanwhile, rounded up to a power of two -> sampled blocks"
    )
    peak_live_kib: int = 0
    end_live_kib: int = 0
    threads: int = Field(1, description="most that had asked for memory and lived at once")
    remote_frees: int = Field(0, description="sampled frees in another thread than the malloc")
    sampled_frees: int = 0
    waited: int = Field(0, description="sampled calls in which the thread was put to sleep")
    waited_s: float = Field(0.0, description="for how long, in the sample")
    sampled_calls: int = Field(0, description="calls that were looked at for this")
    mallopts: list[tuple[int, int]] = Field(default_factory=list, description="parameter, value; in order")
    points: list[HeapPoint] = Field(default_factory=list)
    trimmed_kib: int | None = Field(None, description="what malloc_trim(0) at the end took off the resident set")


class Kept(_Row):
    """Where resident memory lies, from smaps, when it was most and at the end of what was watched."""

    at_s: float
    rss_kib: int
    anonymous_kib: int
    huge_kib: int = 0
    lazy_free_kib: int = 0
    main_heap_kib: int = Field(0, description="resident in [heap]")
    thread_heaps: int = Field(0, description="glibc's heaps of threads; none where another library's malloc was loaded")
    thread_heaps_kib: int = Field(0, description="resident in them")
    mappings: int = 0
    huge_pages_off: bool = Field(False, description="the kernel gives it no huge pages: THP_enabled 0 in its status")


class Platform(_Row):
    """The rules under which it ran."""

    libc: Literal["glibc", "musl", "other"] = "glibc"
    libc_version: str | None = None
    machine: str = "x86_64"
    kernel: str = ""
    cpus: int = 1
    online_cpus: int = 1
    page_kib: int = 4
    huge_pages: str | None = Field(
        None, description="/sys/kernel/mm/transparent_hugepage/enabled: always, madvise, never"
    )
    folios: dict[int, str] = Field(default_factory=dict, description="KiB -> enabled: always, inherit, madvise, never")
    memory_limit_kib: int | None = Field(None, description="the smallest of its control groups' limits")
    memory_used_kib: int | None = Field(None, description="of that group, at the start")
    pressure_some: float | None = Field(None, description="share of time in which some of it waited for memory, 0 to 1")
    overcommit: int | None = None


class Settings(_Row):
    """What steers its allocator already, and who says so."""

    environment: dict[str, str] = Field(default_factory=dict, description="variables that steer an allocator, in force")
    taken_out: dict[str, str] = Field(
        default_factory=dict, description="such variables of whoever asked the doctor, which no run of the program has"
    )
    scripts: dict[str, str] = Field(
        default_factory=dict, description="such variables that processes found and nobody gave them: scripts set them"
    )
    huge_pages_off: bool = Field(False, description="prctl(PR_SET_THP_DISABLE)")
    locked: bool = Field(False, description="mlockall(MCL_FUTURE): what is mapped is resident at once")


class OwnHeap(_Row):
    """What no allocator under test can serve."""

    what: str
    share: float | None = Field(None, description="of its resident memory that comes from malloc, 0 to 1")
    remedy: str | None = None


class Observations(_Row):
    """Everything that was seen of one program."""

    version: Literal[1] = 1
    command: list[str]
    service: bool = False
    running: int | None = Field(None, description="the process that was looked at while it ran; None where it was run")
    platform: Platform
    settings: Settings = Settings()
    prices: Prices | None = None
    cost: Cost | None = None
    course: list[Point] = Field(default_factory=list)
    calls: Calls | None = None
    heap: HeapUse | None = None
    kept_at_peak: Kept | None = None
    kept_at_end: Kept | None = None
    own_heaps: list[OwnHeap] = Field(default_factory=list)
    served_by: str = Field("glibc", description="whose malloc it has, by itself")
    malloc_file: str | None = Field(
        None, description="of a process that ran already: what its malloc comes from, where that is not the C library"
    )
    done: list[str] = Field(default_factory=list, description="parts that were taken, or found impossible, in order")
    unseen: dict[str, str] = Field(default_factory=dict, description="part -> why it is missing, in one line")
