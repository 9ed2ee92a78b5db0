"""The overview: every square says its ratio, and a number can be read on every colour in either theme."""

from __future__ import annotations

import pytest

from freestone.reports import heatmap
from freestone.reports.heatmap import Square

SEEN = Square("a", "freestone", 0.1, "0.10")
UNSEEN = Square("b", "freestone", 0.1, "0.10 ≈")
UNKNOWN = Square("c", "freestone", 9.0, "9.00 ?")
ABSENT = Square("d", "freestone", None, "INVALID")


def rows(*shown: Square, links: dict[str, str] | None = None) -> list[dict[str, object]]:
    document = heatmap.draw(shown, links).to_dict()
    (data,) = document["datasets"].values()
    return list(data)


def test_a_ratio_beyond_the_scale_has_the_last_colour() -> None:
    assert rows(SEEN)[0]["log"] == pytest.approx(-heatmap.FARTHEST)


@pytest.mark.parametrize("square", [UNSEEN, UNKNOWN])
def test_what_was_not_seen_is_pale_and_its_number_dark(square: Square) -> None:
    (row,) = rows(square)
    assert abs(float(str(row["log"]))) == pytest.approx(heatmap.FARTHEST * heatmap.PALE)
    assert abs(float(str(row["log"]))) < heatmap.DARK_FROM, "from there on numbers are white"
    assert row["words"] == square.words


def test_what_has_no_ratio_has_no_colour() -> None:
    assert rows(ABSENT)[0]["log"] == 0


def test_squares_lead_somewhere_only_where_there_is_a_place() -> None:
    assert "link" not in rows(SEEN)[0]
    assert rows(SEEN, UNSEEN, links={"a": "#x", "b": "#y"})[1]["link"] == "#y"
    for layer in heatmap.draw([SEEN], {"a": "#x"}).to_dict()["layer"]:
        assert layer["encoding"]["href"] == {"field": "link", "type": "nominal"}
