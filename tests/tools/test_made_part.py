"""What a command makes of a page is put between its marks, and nothing else of the page is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from made_part import END, begin, put


def test_the_page_is_changed_between_its_marks_only(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{begin('make a')}\nold\n{END}\n{begin('make b')}\nkept\n{END}\nafter\n", encoding="utf-8")
    put(page, "new", "make a")
    expected = f"before\n{begin('make a')}\n\nnew\n\n{END}\n{begin('make b')}\nkept\n{END}\nafter\n"
    assert page.read_text(encoding="utf-8") == expected
    with pytest.raises(ValueError, match="has no marks"):
        put(page, "new", "make c")
