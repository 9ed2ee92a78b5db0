"""What is kept is what was made; a cache that is damaged or closed costs time only."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.allocators import catalogue, discovery
from freestone.allocators.errors import UnknownAllocator
from freestone.allocators.search import LibrarySearch
from freestone.records import cached


class Maker:
    def __init__(self, text: str) -> None:
        self.text, self.asked = text, 0

    def __call__(self) -> str:
        self.asked += 1
        return self.text


@given(text=st.text())
def test_it_is_made_once_and_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    kept = tmp_path_factory.mktemp("cache") / "not" / "yet"
    make = Maker(text)
    assert [cached.text("x", make, kept) for _ in range(3)] == [text] * 3
    assert make.asked == 1
    assert cached.text("y", Maker("other"), kept) == "other", "another name is another text"


@pytest.mark.parametrize("damage", [b"", b"\xff", b"no digest", b"0" * 64 + b"\nsomething else"])
def test_what_is_damaged_is_made_again(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "x").write_bytes(damage)
    make = Maker("text\r\n")
    assert [cached.text("x", make, tmp_path) for _ in range(2)] == ["text\r\n"] * 2
    assert make.asked == 1


def test_half_of_it_is_none(tmp_path: Path) -> None:
    cached.text("x", Maker("a long text"), tmp_path)
    (tmp_path / "x").write_bytes((tmp_path / "x").read_bytes()[:-1])
    assert cached.text("x", Maker("a long text"), tmp_path) == "a long text"


def test_a_cache_that_cannot_be_written_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert cached.text("x", Maker("text"), tmp_path / "file") == "text"
    assert cached.text("x", Maker("text"), tmp_path / "file" / "below") == "text"


def test_where_it_lies() -> None:
    assert cached.folder({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/freestone")
    assert cached.folder({"HOME": "/h"}) == Path("/h/.cache/freestone")


def test_an_account_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(number: int) -> object:
        raise KeyError(number)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.delenv("HOME", raising=False)
    assert not cached.home({}).exists()
    assert cached.folder({}) == cached.home({}) / ".cache" / "freestone"
    assert not catalogue.user_catalogue({}).exists()
    assert cached.home({"HOME": "/h"}) == Path("/h")
    assert cached.expanded("~/x") == Path("~/x")
    with pytest.raises(UnknownAllocator, match="does not exist"):
        discovery.from_path("~/lib.so")


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_home_that_nobody_has_is_a_name_as_another(text: str) -> None:
    try:
        home = Path(f"~{text}").expanduser()
    except RuntimeError:
        home = Path(f"~{text}")
    assert cached.expanded(f"~{text}") == home
    assert LibrarySearch.of_this_machine({"LD_LIBRARY_PATH": "~nobody-is-called-so/x"}).folders
