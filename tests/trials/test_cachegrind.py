"""The reader of cachegrind's files: it reads what is written as it is written, and nothing that is damaged."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freestone.trials import cachegrind

pytestmark = pytest.mark.long

EVENTS = ("Ir", "I1mr", "ILmr", "Dr", "D1mr", "DLmr", "Dw", "D1mw", "DLmw")

counts = st.lists(st.integers(0, 10**12), min_size=len(EVENTS), max_size=len(EVENTS))
words = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x24F, exclude_categories=["Zs"], exclude_characters="\x7f"),
    min_size=1,
)
places = st.dictionaries(st.tuples(words, words), st.lists(counts, min_size=1, max_size=4), min_size=1, max_size=8)
"""(file, function) -> the counts of its lines."""


def written(lines: dict[tuple[str, str], list[list[int]]], summary: list[int] | None = None) -> str:
    """As cachegrind writes it; ``summary`` instead of the true one."""
    text = ["desc: I1 cache:         32768 B, 64 B, 8-way associative", "cmd: ./program --with words: and more"]
    text.append(f"events: {' '.join(EVENTS)} ")
    for (file, name), each in lines.items():
        text += [f"fl={file}", f"fn={name}"]
        text += [f"{number} {' '.join(map(str, line))} " for number, line in enumerate(each)]
    return "\n".join([*text, f"summary: {' '.join(map(str, summary or total(lines)))} "]) + "\n"


def total(lines: dict[tuple[str, str], list[list[int]]]) -> list[int]:
    every = [line for each in lines.values() for line in each]
    return [sum(column) for column in zip(*every, strict=True)]


@given(places)
@settings(deadline=None)
def test_what_is_written_is_read(lines: dict[tuple[str, str], list[list[int]]]) -> None:
    profile = cachegrind.parse(written(lines))
    assert profile.totals == dict(zip(EVENTS, total(lines), strict=True))
    assert profile.caches == ("I1 cache: 32768 B, 64 B, 8-way associative",)
    assert set(profile.functions) == {name for _, name in lines}
    for name, function in profile.functions.items():
        mine = {place: each for place, each in lines.items() if place[1] == name}
        assert function.counts == dict(zip(EVENTS, total(mine), strict=True))
        most = max(sum(line[0] for line in each) for each in mine.values())
        assert sum(line[0] for line in lines[function.file, name]) == most, "the file of most of its instructions"
    order = [each.counts["Ir"] for each in profile.functions.values()]
    assert order == sorted(order, reverse=True)


@given(places, st.data())
@settings(deadline=None)
def test_a_file_that_breaks_off_is_never_read_as_a_whole_one(
    lines: dict[tuple[str, str], list[list[int]]], data: st.DataObject
) -> None:
    text = written(lines)
    cut = text[: data.draw(st.integers(0, len(text.rstrip()) - 1))]
    try:
        profile = cachegrind.parse(cut)
    except cachegrind.Damaged:
        return
    assert profile.totals == cachegrind.parse(text).totals, "only zeros at the end of the summary may be missing"


@given(places, st.data())
@settings(deadline=None)
def test_counts_that_do_not_add_up_are_refused(
    lines: dict[tuple[str, str], list[list[int]]], data: st.DataObject
) -> None:
    summary = total(lines)
    summary[data.draw(st.integers(0, len(summary) - 1))] += data.draw(st.integers(1, 10**6))
    with pytest.raises(cachegrind.Damaged, match="do not add up"):
        cachegrind.parse(written(lines, summary))


@given(st.text(st.sampled_from("flnd=: 019\nsumary.-?evts"), max_size=200))
@settings(deadline=None)
def test_rubbish_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(cachegrind.Damaged) as refused:
        cachegrind.parse(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "breaks off"),
        ("events: Ir Dr\nfl=a\nfn=b\n1 2 3\nsummary: 2 3", "it has no Dw, D1mr"),
        ("events: Ir\nfl=a\nfn=b\n1 2 3 4\nsummary: 2", "line 4 holds what no event counts"),
        ("events: Ir\nfl=a\nfn=b\n1 -2\nsummary: 2", "line 4 holds what no event counts"),
        ("events: Ir\nfl=a\nfn=b\n1 x\nsummary: 2", "line 4 holds what is no count"),
        ("events: Ir\n1 2\nsummary: 2", "line 2 makes no sense"),
        ("events: Ir\nsummary: 0\nfl=a", "line 3 stands behind the summary"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, said: str) -> None:
    with pytest.raises(cachegrind.Damaged, match=said):
        cachegrind.parse(text)


def test_zeros_left_out_and_dots_are_zero() -> None:
    profile = cachegrind.parse(
        f"events: {' '.join(EVENTS)}\nfl=a.c\nfn=f\n7 5\n8 1 . . 2\nsummary: 6 0 0 2 0 0 0 0 0\n"
    )
    assert profile.functions["f"].counts == {**dict.fromkeys(EVENTS, 0), "Ir": 6, "Dr": 2}


@given(st.lists(places, min_size=1, max_size=4))
@settings(deadline=None)
def test_processes_add_up(several: list[dict[tuple[str, str], list[list[int]]]]) -> None:
    profiles = [cachegrind.parse(written(each)) for each in several]
    together = cachegrind.merged(profiles)
    assert together.totals == {event: sum(each.totals[event] for each in profiles) for event in EVENTS}
    for name, function in together.functions.items():
        alone = [each.functions[name].counts["Ir"] for each in profiles if name in each.functions]
        assert function.counts["Ir"] == sum(alone)
    assert [each.functions for each in profiles] == [cachegrind.parse(written(each)).functions for each in several]
