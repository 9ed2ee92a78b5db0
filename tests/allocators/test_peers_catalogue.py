"""The catalogue of peers: what it holds, and which peers a word on the command line stands for."""

from __future__ import annotations

import copy
import tomllib
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.allocators import catalogue, peers
from freestone.allocators.peers.catalogue import ALL, parse

WORDS = sorted({ALL, *peers.load(), *(peer.project for peer in peers.load().values())})
TEXT = (files("freestone.allocators.peers") / "catalogue.toml").read_text(encoding="utf-8")


def test_it_has_the_allocators_people_compare_with() -> None:
    assert list(peers.load()) == [
        "mimalloc2",
        "mimalloc3",
        "mimalloc3-secure",
        "jemalloc5",
        "snmalloc",
        "snmalloc-checks",
        "rpmalloc",
        "rpmalloc-populated",
        "tcmalloc-google",
        "hardened_malloc",
    ]


def test_no_peer_has_the_name_of_a_systems_allocator() -> None:
    assert not peers.load().keys() & catalogue.load().keys()


def test_no_project_has_the_name_of_another_projects_peer() -> None:
    for peer in peers.load().values():
        for other in peers.load().values():
            assert peer.project != other.name or other.project == peer.project


def test_it_names_no_host() -> None:
    assert "://" not in TEXT


@given(st.lists(st.sampled_from(WORDS), min_size=1))
def test_words_stand_for_peers_each_once_in_catalogue_order(words: list[str]) -> None:
    chosen = [peer.name for peer in peers.chosen(words)]
    assert chosen == [name for name in peers.load() if name in chosen]
    for name, peer in peers.load().items():
        assert (name in chosen) == (bool({name, peer.project} & set(words)) or (ALL in words and not peer.variant))
    assert peers.chosen([",".join(words)]) == peers.chosen(words)


def test_no_word_and_all_are_every_peer() -> None:
    usual = [peer for peer in peers.load().values() if not peer.variant]
    assert peers.chosen([]) == peers.chosen([ALL]) == usual
    assert peers.chosen([ALL], variants=True) == list(peers.load().values()) != usual


def test_a_project_with_two_peers_is_both() -> None:
    assert [peer.name for peer in peers.chosen(["mimalloc"])] == ["mimalloc2", "mimalloc3"]


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        peers.UnknownPeer, match="no allocator that can be built is called 'jemaloc'; did you mean jemalloc"
    ):
        peers.chosen(["jemaloc"])


@given(st.text(min_size=1).filter(lambda text: "," not in text and text.strip() and text.strip() not in WORDS))
def test_any_other_word_is_one_line(word: str) -> None:
    with pytest.raises(peers.UnknownPeer, match=r"known: |did you mean") as caught:
        peers.chosen([word])
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda tables: tables["peer"]["rpmalloc"].update(package="nothing-sys"),
        lambda tables: tables["peer"]["rpmalloc"].update(colour="red"),
        lambda tables: tables["peer"]["rpmalloc"].pop("version"),
        lambda tables: tables["peer"]["rpmalloc"]["recipe"].update(kind="bazel"),
        lambda tables: tables["peer"]["rpmalloc"]["recipe"].update(sources=[]),
        lambda tables: tables["package"]["rpmalloc-sys"].update(sha256="0123"),
    ],
)
def test_a_wrong_catalogue_is_refused(damage: Any) -> None:
    tables = copy.deepcopy(tomllib.loads(TEXT))
    damage(tables)
    with pytest.raises(ValueError, match=r"rpmalloc|Compile|recipe|Package|Peer"):
        parse(tables)
