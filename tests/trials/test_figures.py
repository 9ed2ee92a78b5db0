"""What a program says of itself is read, or its trial has failed; nothing else is taken for a figure."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.trials import figures


@pytest.fixture
def said(tmp_path: Path):
    def write(text: bytes) -> tuple[dict[str, float] | None, str | None]:
        path = tmp_path / "stdout"
        path.write_bytes(text)
        return figures.read(path)

    return write


def test_numbers_are_figures_and_a_list_counts_with_its_last(said) -> None:
    line = (
        b'{"program": "x", "seconds": 0.5, "operations": 12, "floor_seconds": null, "flat": true, "rss_kib": [1, 2]}\n'
    )
    assert said(line) == ({"seconds": 0.5, "operations": 12.0, "rss_kib": 2.0}, None)


def test_the_last_line_counts(said) -> None:
    assert said(b'warming up\n{"seconds": 9}\n{"seconds": 1}\n\n') == ({"seconds": 1.0}, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "no line of JSON"),
        (b" \n\n", "no line of JSON"),
        (b"Segmentation fault\n", "not JSON: Segmentation fault"),
        (b'{"seconds": 1\n', "not JSON"),
        (b"\xff\xfe{}\n", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"12\n", "no JSON object: 12"),
        (b"{}\n", "no 'seconds' above 0"),
        (b'{"seconds": 0}\n', "no 'seconds' above 0"),
        (b'{"seconds": null}\n', "no 'seconds' above 0"),
        (b'{"seconds": NaN}\n', "no 'seconds' above 0"),
        (b'{"seconds": "1"}\n', "no 'seconds' above 0"),
        (b'{"seconds": true}\n', "no 'seconds' above 0"),
    ],
)
def test_what_is_missing_or_damaged_is_named_in_one_line(said, text: bytes, reason: str) -> None:
    found, why = said(text)
    assert found is None
    assert reason in why
    assert "\n" not in why
    assert len(why) < 200


def test_a_file_that_was_never_made_has_no_figures(tmp_path: Path) -> None:
    assert figures.read(tmp_path / "none")[0] is None


@given(st.binary(max_size=200))
def test_no_output_breaks_the_reader(tmp_path_factory, text: bytes) -> None:
    path = tmp_path_factory.mktemp("said") / "stdout"
    path.write_bytes(text)
    found, why = figures.read(path)
    assert (found is None) != (why is None)
