"""What a user writes for a configuration: read back as it was written, and refused where it is a slip."""

from __future__ import annotations

import contextlib
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.allocators import notation
from freestone.allocators.errors import UnknownAllocator
from freestone.allocators.notation import Asked

KNOWN = ["glibc", "jemalloc", "mimalloc3"]

names = st.from_regex(r"[A-Za-z][A-Za-z0-9_.+-]{0,8}", fullmatch=True) | st.sampled_from(KNOWN)
variables = st.from_regex(r"[A-Z_][A-Z0-9_]{0,6}", fullmatch=True)
pieces = st.sampled_from([",", ":", "\\", "=", " ", "/", ".so", "A=", ":B=1", ",glibc", ",jemalloc:x", "\n", "true"])
values = st.lists(pieces | st.text(string.printable, max_size=3), max_size=6).map("".join)
asked = st.builds(Asked, names, st.dictionaries(variables, values, max_size=3))


@given(st.lists(asked, max_size=4))
def test_what_was_written_is_read_back_in_any_list(wanted: list[Asked]) -> None:
    text = ",".join(notation.write(each.allocator, each.settings, KNOWN) for each in wanted)
    assert notation.read(text, KNOWN) == wanted


@given(st.lists(names, max_size=5), st.sampled_from([",", ", ", " ,", ",,"]))
def test_names_alone_are_separated_by_commas_as_ever(wanted: list[str], separator: str) -> None:
    assert notation.read(separator.join(wanted)) == [Asked(name) for name in wanted]


@given(st.text(alphabet=",:\\=AZ_az/. \n", max_size=24))
def test_any_text_is_read_or_refused(text: str) -> None:
    found: list[Asked] = []
    with contextlib.suppress(UnknownAllocator):
        found = notation.read(text, KNOWN)
    assert all(each.allocator.strip() == each.allocator != "" for each in found)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "glibc,glibc:MALLOC_ARENA_MAX=2,jemalloc:MALLOC_CONF=background_thread:true",
            [
                Asked("glibc"),
                Asked("glibc", {"MALLOC_ARENA_MAX": "2"}),
                Asked("jemalloc", {"MALLOC_CONF": "background_thread:true"}),
            ],
        ),
        (
            "jemalloc:MALLOC_CONF=background_thread:true,dirty_decay_ms:0,glibc",
            [Asked("jemalloc", {"MALLOC_CONF": "background_thread:true,dirty_decay_ms:0"}), Asked("glibc")],
        ),
        (
            "freestone:FREESTONE_OPTIONS=retain_mib=16,keeper=2,./lib.so:A=1:B=x:y",
            [
                Asked("freestone", {"FREESTONE_OPTIONS": "retain_mib=16,keeper=2"}),
                Asked("./lib.so", {"A": "1", "B": "x:y"}),
            ],
        ),
        (
            "glibc:GLIBC_TUNABLES=glibc.malloc.arena_max=1:glibc.malloc.mxfast=0",
            [Asked("glibc", {"GLIBC_TUNABLES": "glibc.malloc.arena_max=1:glibc.malloc.mxfast=0"})],
        ),
        (r"glibc:A=x\,jemalloc", [Asked("glibc", {"A": "x,jemalloc"})]),
        (r"glibc:A=x\:B=1", [Asked("glibc", {"A": "x:B=1"})]),
        ("mine=./a.so:A=1,libx.so.2", [Asked("mine=./a.so", {"A": "1"}), Asked("libx.so.2")]),
        ("glibc:A=", [Asked("glibc", {"A": ""})]),
    ],
)
def test_examples(text: str, wanted: list[Asked]) -> None:
    assert notation.read(text, KNOWN) == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("glibc:", "'' is no setting of glibc"),
        (
            "glibc:arena_max=2",
            "'arena_max=2' is no setting of glibc; write glibc:GLIBC_TUNABLES=glibc.malloc.arena_max=2",
        ),
        ("glibc:ARENA", "'ARENA' is no setting of glibc; write glibc:VARIABLE=VALUE"),
        (
            "jemalloc:background_thread:true",
            "'background_thread:true' is no setting of jemalloc; write jemalloc:MALLOC_CONF=background_thread:true",
        ),
        (
            "freestone:retain_mib=4",
            "'retain_mib=4' is no setting of freestone; write freestone:FREESTONE_OPTIONS=retain_mib=4",
        ),
        ("mimalloc:purge_delay=0", "'purge_delay=0' is no setting of mimalloc; write mimalloc:VARIABLE=VALUE"),
        ("glibc:A=1,jemalloc:narenas:2", "'jemalloc:narenas:2' is no configuration; write jemalloc:VARIABLE=VALUE"),
        (":A=1", "':A=1' sets something for no allocator"),
        ("glibc:A=1:A=2", "A is set twice for glibc"),
    ],
)
def test_slips_are_named(text: str, said: str) -> None:
    with pytest.raises(UnknownAllocator, match="^" + said.replace("?", r"\?")):
        notation.read(text, KNOWN)


def test_what_would_start_another_program_is_no_setting() -> None:
    with pytest.raises(UnknownAllocator, match="PATH is no setting of glibc: it would start other programs"):
        notation.read("glibc:PATH=/elsewhere")
