"""The verdict: every gap in the evidence makes it invalid, with the reason that explains most."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.trials.census import Ending, Image
from freestone.trials.evidence import Cause, Evidence, Finding, Provider, Rehearsed
from freestone.trials.loader_complaint import complaint
from freestone.trials.proof import ROWS, prove
from freestone.trials.witness import ENTRIES, Departure, Entry, Stray
from freestone.trials.witness import Testimony as Report

ALLOCATOR = Provider("swift", "/lib/libswift.so", "aa11", (8, 1), 77, "x86_64 64-bit")
LIBC = "/usr/lib/libc.so.6"


@dataclass(frozen=True)
class Facts:
    is_elf: bool = True
    static: bool = False
    libc: str | None = "glibc"
    own_malloc: str | None = None
    own_freestone: bool = False
    machine: str | None = "x86_64 64-bit"
    setuid: bool = False
    file_capabilities: bool = False


def entries(file: str = ALLOCATOR.file, build_id: str | None = ALLOCATOR.build_id) -> tuple[Entry, ...]:
    return tuple(Entry(symbol, file, build_id, (8, 1), 77 if file == ALLOCATOR.file else 5) for symbol in ENTRIES)


def report(pid: int = 10, at_s: float = 1.5, exe: str = "/bin/app", **changes: object) -> Report:
    whole = Report(
        pid, 1, at_s, exe, "ee", heap_works=True, entries=entries(), departure=Departure(at_s + 1, pid, 4000)
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def image(pid: int = 10, exe: str | None = "/bin/app", begin_s: float = 1.0, end_s: float = math.inf) -> Image:
    return Image(pid, 1, begin_s, end_s, "app", exe)


def evidence(
    *testimonies: Report,
    images: list[Image] | None = None,
    facts: Callable[[str], Facts | None] = lambda _: Facts(),
    **changes: object,
) -> Evidence:
    return Evidence(
        expected=ALLOCATOR,
        testimonies=testimonies,
        facts_of=facts,
        images=[image()] if images is None else images,
        **changes,  # type: ignore[arg-type]
    )


def test_a_witnessed_image_is_proved():
    verdict = prove(evidence(report()))
    assert verdict.finding is None
    assert (verdict.proof.valid, verdict.proof.reason, verdict.proof.census) == (True, None, "perf")
    assert (verdict.proof.images, verdict.sequences) == (1, {("/bin/app",): 1})
    (row,) = verdict.proof.processes
    assert (row.pid, row.exe, row.proved, row.end_rss_kib) == (10, "/bin/app", True, 4000)
    assert [entry.symbol for entry in row.entries] == list(ENTRIES)


@pytest.mark.parametrize(
    ("facts", "cause", "words"),
    [
        (Facts(static=True), Cause.STATIC, "static binary: /bin/app"),
        (Facts(setuid=True), Cause.SETUID, "setuid: the loader ignores preloads for /bin/app"),
        (Facts(file_capabilities=True), Cause.SETUID, "file capabilities: "),
        (Facts(libc="musl"), Cause.OTHER_LIBC, "musl program: /bin/app"),
        (Facts(machine="x86 32-bit"), Cause.OTHER_MACHINE, "other machine: /bin/app is x86 32-bit"),
        (Facts(), Cause.UNSEEN, "unseen process: /bin/app ran without the witness"),
        (Facts(is_elf=False), Cause.UNSEEN, "unseen process: /bin/app"),
        (None, Cause.UNSEEN, "unseen process: /bin/app"),
    ],
)
def test_an_image_without_witness_is_explained_by_its_file(facts, cause, words):
    verdict = prove(evidence(facts=lambda _: facts))
    assert verdict.finding is not None
    assert verdict.finding.cause is cause
    assert verdict.proof.reason is not None
    assert verdict.proof.reason.startswith(words)
    assert not verdict.proof.valid


@pytest.mark.parametrize("allocator_libc", ["glibc", "musl", "unknown", None])
def test_a_musl_program_is_told_that_the_witness_is_built_for_glibc(allocator_libc):
    """A libfreestone built for musl would not help it: the witness is preloaded too."""
    asked = evidence(facts=lambda _: Facts(libc="musl"), witness_libc="glibc")
    verdict = prove(replace(asked, expected=replace(ALLOCATOR, libc=allocator_libc)))
    assert verdict.finding is not None
    assert verdict.finding.cause is Cause.OTHER_LIBC
    assert verdict.finding.text.startswith(
        "musl program: the lab's witness is built for glibc, so /bin/app cannot load it"
    )
    assert "CONTRIBUTING.md" in verdict.finding.text


def test_an_image_the_kernel_will_not_name_has_gained_rights():
    verdict = prove(evidence(images=[image(exe=None)]))
    assert verdict.finding == Finding(Cause.SETUID, "setuid: app gained rights, so the loader ignored preloads")


def test_the_linker_s_complaint_explains_an_unseen_process():
    verdict = prove(evidence(preload_complaint="ld.so ignored '/lib/libswift.so': it is broken"))
    assert verdict.proof.reason == "failed preload: ld.so ignored '/lib/libswift.so': it is broken"


def test_a_program_that_defines_malloc_has_its_own():
    verdict = prove(evidence(report(entries=entries("/bin/app", "ee"))))
    assert verdict.finding == Finding(Cause.OWN_MALLOC, "own malloc: /bin/app defines malloc itself")


def test_a_program_that_carries_an_allocator_under_another_name_has_its_own():
    verdict = prove(evidence(report(), facts=lambda _: Facts(own_malloc="embeds jemalloc (_rjem_malloc)")))
    assert verdict.proof.reason == "own malloc: /bin/app embeds jemalloc (_rjem_malloc)"


def test_libc_in_the_allocator_s_place_is_a_failed_preload():
    verdict = prove(evidence(report(entries=entries(LIBC, "cc"))))
    assert verdict.finding is not None
    assert verdict.finding.cause is Cause.FAILED_PRELOAD
    assert LIBC in verdict.finding.text


def test_one_entry_elsewhere_is_enough():
    mixed = (*entries()[:3], entries("/lib/other.so", "dd")[3])
    verdict = prove(evidence(report(entries=mixed)))
    assert verdict.proof.reason == (
        "other provider: free of /bin/app come from /lib/other.so, not from /lib/libswift.so"
    )


def test_another_build_at_the_same_path_is_not_the_allocator():
    verdict = prove(evidence(report(entries=entries(build_id="bb22"))))
    assert verdict.proof.reason == "/lib/libswift.so is not the file that was found: its build-id differs"


def test_the_same_file_under_another_path_is_the_allocator():
    linked = tuple(replace(entry, file="/elsewhere/libswift.so.1", build_id=None) for entry in entries())
    assert prove(evidence(report(entries=linked))).proof.valid


def test_files_without_build_id_are_told_apart_by_path():
    other = tuple(replace(entry, build_id=None, inode=5) for entry in entries("/lib/other.so", None))
    assert not prove(evidence(report(entries=other))).proof.valid


def test_code_of_no_file_never_matches_an_allocator_that_is_gone():
    gone = Provider("gone", "")
    nowhere = tuple(Entry(symbol, "", None, (0, 0), 0) for symbol in ENTRIES)
    weighed = replace(evidence(report(entries=nowhere)), expected=gone)
    assert not prove(weighed).proof.valid


def test_a_stray_object_is_named():
    strays = (Stray("malloc", "/lib/plugin.so", "/lib/own.so"),)
    departure = Departure(2.0, 10, 1, strays, 3)
    verdict = prove(evidence(report(departure=departure)))
    assert verdict.proof.reason == "stray object: /lib/plugin.so takes malloc from /lib/own.so (and 2 more)"
    assert verdict.proof.processes[0].strays == ["/lib/plugin.so: /lib/own.so"]


def test_a_stray_object_in_a_fork_counts():
    fork = Report(
        11, 10, 3.0, fork_of=(10, 1.5), departure=Departure(3.0, 11, 1, (Stray("free", "/a.so", "/b.so"),), 1)
    )
    verdict = prove(evidence(report(), fork))
    assert verdict.finding is not None
    assert verdict.finding.cause is Cause.STRAY


def test_a_fork_of_an_image_that_never_spoke_is_unseen():
    verdict = prove(evidence(Report(11, 10, 3.0, fork_of=(10, 1.5))))
    assert verdict.finding is not None
    assert verdict.finding.cause is Cause.UNSEEN


def test_a_heap_that_gives_nothing_is_broken():
    assert prove(evidence(report(heap_works=False))).proof.reason == (
        "broken heap: swift gave /bin/app no usable memory"
    )


def test_a_damaged_report_proves_nothing():
    verdict = prove(evidence(report(damage="the report breaks off")))
    assert verdict.proof.reason == "damaged report of /bin/app: the report breaks off"


def test_images_of_one_process_are_matched_by_time():
    first, second = image(exe="/bin/env", end_s=2.0), image(exe="/bin/app", begin_s=2.0)
    only_second = evidence(report(at_s=2.5), images=[first, second])
    verdict = prove(only_second)
    assert [row.proved for row in verdict.proof.processes] == [False, True]
    assert prove(evidence(report(at_s=1.5, exe="/bin/env"), report(at_s=2.5), images=[first, second])).proof.valid


def test_a_witness_the_census_knows_nothing_of_is_judged_too():
    stranger = report(pid=99, exe="/bin/stranger", entries=entries(LIBC, "cc"))
    verdict = prove(evidence(report(), stranger))
    assert verdict.proof.images == 2
    assert not verdict.proof.valid


def test_the_cause_that_explains_most_comes_first():
    facts = {"/bin/app": Facts(), "/bin/busybox": Facts(static=True)}
    verdict = prove(evidence(images=[image(), image(11, "/bin/busybox")], facts=facts.get))
    assert verdict.finding is not None
    assert verdict.finding.text.startswith("static binary: /bin/busybox")
    assert verdict.finding.text.endswith("(and 1 more)")


def test_a_census_with_gaps_is_not_enough():
    verdict = prove(evidence(report(), census_gap="the kernel lost side-band records"))
    assert (verdict.proof.valid, verdict.proof.census) == (False, "none")
    assert verdict.proof.reason == ("no complete census: the kernel lost side-band records, and there was no rehearsal")


def test_a_census_without_a_process_is_not_enough():
    assert prove(evidence(images=[])).proof.reason == "incomplete census: it holds no process at all"


def test_a_rehearsal_stands_in_for_the_census():
    rehearsed = Rehearsed({("/bin/app",): 1}, None, 1)
    weighed = replace(evidence(report(), rehearsed=rehearsed, census_gap="refused"), images=None)
    assert (prove(weighed).proof.valid, prove(weighed).proof.census) == (True, "rehearsal")


@pytest.mark.parametrize(
    ("sequences", "words"),
    [
        (
            {("/bin/app",): 1, ("/bin/ls",): 1},
            "unseen process: /bin/ls ran in the rehearsal but was not witnessed here",
        ),
        ({}, "unseen process: /bin/app did not run in the rehearsal"),
        (
            {("/bin/sh", "/bin/app"): 1},
            "unseen process: /bin/sh then /bin/app ran in the rehearsal but was not witnessed here",
        ),
    ],
)
def test_a_trial_that_differs_from_its_rehearsal_is_not_proved(sequences, words):
    weighed = replace(evidence(report(), rehearsed=Rehearsed(sequences, None, 1), census_gap="refused"), images=None)
    assert prove(weighed).proof.reason == words


def test_one_of_many_processes_of_a_program_cannot_run_unseen_where_a_rehearsal_counted_them():
    """By the set of their files, nothing is missing."""
    rehearsed = Rehearsed({("/bin/app",): 3}, None, 3)
    two = [report(), report(pid=11)]
    reason = prove(replace(evidence(*two, rehearsed=rehearsed, census_gap="refused"), images=None)).proof.reason
    assert reason is not None
    assert reason.startswith("unseen process: of /bin/app 2 were witnessed here and 3 in the rehearsal")
    three = [*two, report(pid=12)]
    assert prove(replace(evidence(*three, rehearsed=rehearsed, census_gap="refused"), images=None)).proof.valid


def test_processes_that_end_without_last_words_are_counted_and_named():
    ends = [Ending(10, 0.0, 9.0, "/bin/app"), Ending(11, 1.0, 2.0, "/bin/app"), Ending(12, 1.0, 2.0, "/bin/app")]
    proof = prove(evidence(report(), endings=ends)).proof
    assert proof.valid, "that alone is no reason: it may be how the program works"
    assert proof.silent == {"/bin/app": 2}


def test_without_a_census_those_that_began_and_said_no_more_are_silent():
    silent = replace(report(), departure=None)
    rehearsed = Rehearsed({("/bin/app",): 1}, None, 1)
    weighed = replace(evidence(silent, rehearsed=rehearsed, census_gap="refused"), images=None)
    assert prove(weighed).proof.silent == {"/bin/app": 1}


def test_what_the_rehearsal_found_holds_for_the_trial():
    finding = Finding(Cause.STATIC, "static binary: /bin/ls")
    weighed = replace(
        evidence(report(), rehearsed=Rehearsed({("/bin/app",): 1}, finding, 1), census_gap="refused"),
        images=None,
    )
    verdict = prove(weighed)
    assert verdict.finding == Finding(Cause.STATIC, "static binary: /bin/ls (in the rehearsal)")


def test_what_the_trial_shows_again_is_told_once():
    finding = Finding(Cause.BROKEN_HEAP, "broken heap: swift gave /bin/app no usable memory")
    again = replace(
        evidence(
            report(heap_works=False),
            rehearsed=Rehearsed({("/bin/app",): 1}, finding, 1),
            census_gap="refused",
        ),
        images=None,
    )
    assert prove(again).proof.reason == finding.text


def test_images_of_one_program_share_a_row():
    images = [image(pid, begin_s=float(pid)) for pid in range(10, 510)]
    verdict = prove(evidence(*(report(pid, pid + 0.5) for pid in range(10, 510)), images=images))
    assert [(row.images, row.pid) for row in verdict.proof.processes] == [(500, 10)]
    assert verdict.proof.images == 500


def test_what_is_not_proved_is_kept_when_rows_are_many():
    exes = [f"/bin/{number}" for number in range(3 * ROWS)]
    seen = [report(number + 10, exe=exe) for number, exe in enumerate(exes[:-1])]
    images = [image(number + 10, exe) for number, exe in enumerate(exes)]
    verdict = prove(evidence(*seen, images=images))
    assert len(verdict.proof.processes) == ROWS
    assert not verdict.proof.processes[0].proved


# --- properties

files = st.sampled_from([ALLOCATOR.file, LIBC, "/bin/app", "/lib/other.so", ""])
some_entries = st.lists(
    st.builds(
        Entry,
        st.sampled_from(ENTRIES),
        files,
        st.sampled_from(["aa11", "cc", None]),
        st.just((8, 1)),
        st.integers(0, 80),
    ),
    max_size=5,
).map(tuple)
some_pids = st.integers(10, 13)
some_times = st.sampled_from([0.5, 1.5, 2.5, 3.5])
some_testimonies = st.lists(
    st.builds(
        Report,
        some_pids,
        some_pids,
        some_times,
        st.sampled_from(["/bin/app", "/bin/ls", ""]),
        st.none(),
        st.sampled_from([True, False, None]),
        st.just(entries()) | some_entries,
        st.none() | st.builds(Departure, some_times, some_pids, st.none(), st.just(()), st.integers(0, 2)),
        st.none() | st.tuples(some_pids, some_times),
        st.none() | st.just("broken"),
    ),
    max_size=6,
)
some_images = st.none() | st.lists(
    st.builds(image, some_pids, st.sampled_from(["/bin/app", "/bin/ls", None]), some_times, st.just(9.0)), max_size=6
)
some_facts = st.builds(
    Facts, st.booleans(), st.booleans(), st.sampled_from(["glibc", "musl", None]), st.none() | st.just("x"),
    st.sampled_from(["x86_64 64-bit", None]), st.booleans(), st.booleans(),
)  # fmt: skip


@given(some_testimonies, some_images, st.none() | some_facts, st.none() | st.just("gap"))
def test_a_valid_proof_has_no_gap_anywhere(testimonies, images, facts, gap):
    weighed = Evidence(ALLOCATOR, testimonies, lambda _: facts, images, gap)
    verdict = prove(weighed)
    assert verdict.proof.valid == (verdict.finding is None) == (verdict.proof.reason is None)
    assert "\n" not in (verdict.proof.reason or "")
    if verdict.proof.valid:
        assert images
        assert gap is None
        assert all(row.proved for row in verdict.proof.processes)
        assert len(testimonies) >= len(images)
        assert all(one.damage is None for one in testimonies)
        assert all(one.heap_works for one in testimonies if one.fork_of is None)


@given(st.integers(1, 8), st.data())
def test_losing_any_report_makes_a_valid_proof_invalid(count, data):
    images = [image(pid, f"/bin/{pid % 3}", begin_s=float(pid)) for pid in range(count)]
    reports = [report(one.pid, one.begin_s + 0.1, one.exe or "") for one in images]
    assert prove(evidence(*data.draw(st.permutations(reports)), images=images)).proof.valid
    lost = data.draw(st.integers(0, count - 1))
    assert not prove(evidence(*reports[:lost], *reports[lost + 1 :], images=images)).proof.valid


# --- the dynamic linker's messages


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        (
            "ERROR: ld.so: object '/x/liba.so' from LD_PRELOAD cannot be preloaded "
            "(cannot open shared object file): ignored.\nhello\n",
            "ld.so ignored '/x/liba.so': cannot open shared object file",
        ),
        ("ls: symbol lookup error: /x/liba.so: undefined symbol: gone\n", "/x/liba.so: undefined symbol: gone"),
        (
            "ls: error while loading shared libraries: libdep.so.1: cannot open shared object file: No such file\n",
            "libdep.so.1: cannot open shared object file: No such file",
        ),
        ("ERROR: ld.so: object '/x/users.so' from LD_PRELOAD cannot be preloaded (gone): ignored.\n", None),
        ("ls: error while loading shared libraries: libprogram.so: cannot open shared object file\n", None),
        ("the program speaks of /x/liba.so\n", None),
        ("", None),
    ],
)
def test_only_the_linker_s_words_about_our_files_count(stderr, said):
    assert complaint(stderr, ["/x/liba.so", "libdep.so.1"]) == said


@given(st.text())
def test_any_stderr_can_be_searched(text):
    complaint(text, ["/x/liba.so"])
