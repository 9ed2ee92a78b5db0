"""What a request may ask for: decided without a disk, for whatever somebody sends."""

from __future__ import annotations

import os

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from freestone.browse.addresses import address, is_for_here, parts, query

PIECES = st.sampled_from(
    ["/", "..", ".", "%2e", "%2E%2e", "%2f", "%5c", "\\", "%00", "%252f", "a", "report.html", "//", "?", "#", "%", " "]
)
TARGETS = st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=40)


@given(TARGETS | TARGETS.map(lambda text: f"/{text}"))
@example("/../../etc/passwd")
@example("/%2e%2e/%2e%2e/etc/passwd")
@example("/..%2f..%2fetc%2fpasswd")
@example("/a/%2fetc/passwd")
def test_no_target_leads_out_of_a_folder(target: str) -> None:
    found = parts(target)
    for part in found or ():
        assert part not in ("", ".", "..")
        assert "/" not in part
        assert "\0" not in part
    if found:
        joined = os.path.join("/place", *found)
        assert os.path.normpath(joined) == joined
        assert joined.startswith("/place/")


NAMES = st.text(min_size=1, max_size=20).filter(lambda name: name not in (".", "..") and not {"/", "\0"} & set(name))


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_an_address_says_the_file_it_was_made_of(names: list[str]) -> None:
    assert parts(address(names)) == tuple(names)
    assert parts(f"{address(names)}?q=%2e%2e#x") == tuple(names)


def test_a_name_that_is_no_text_has_an_address() -> None:
    name = os.fsdecode(b"caf\xe9")
    assert parts(address([name])) == (name,)


@pytest.mark.parametrize("host", ["localhost", "LocalHost:7233", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:7233"])
def test_this_machine_is_answered(host: str) -> None:
    assert is_for_here([host])


FOREIGN = ["", "evil.example", "localhost.evil.example", "evil.localhost", "127.0.0.1.evil.example", "127.0.0.2", "::1"]


@pytest.mark.parametrize(
    "host", [*FOREIGN, "localhost:7233:80", "localhost:", "localhost@evil", "0.0.0.0", "local\nhost"]
)
def test_other_names_are_not(host: str) -> None:
    assert not is_for_here([host])


def test_a_request_has_one_host() -> None:
    assert not is_for_here([])
    assert not is_for_here(["localhost", "evil.example"])
    assert not is_for_here(["localhost", "localhost"])


@given(
    st.text(max_size=30)
    | st.lists(st.sampled_from(["localhost", "127.0.0.1", "[::1]", ":", "80", ".", "evil", " ", "@"]), max_size=5).map(
        "".join
    )
)
def test_nothing_but_the_three_names_passes(host: str) -> None:
    name, _, port = host.strip().lower().rpartition(":")
    if port.isascii() and port.isdigit() and len(port) <= 5 and name:
        assert is_for_here([host]) == (name in ("localhost", "127.0.0.1", "[::1]"))
    else:
        assert is_for_here([host]) == (host.strip().lower() in ("localhost", "127.0.0.1", "[::1]"))


@given(st.text(max_size=30).filter(lambda text: not any("\ud800" <= each <= "\udfff" for each in text)))
def test_a_search_comes_back_as_it_was_typed(said: str) -> None:
    from urllib.parse import urlencode

    assert query(f"/?{urlencode({'q': said})}") == said


@given(TARGETS)
def test_a_search_of_any_form_is_a_text(target: str) -> None:
    assert isinstance(query(target), str)
