"""The page that holds the table: what stands between its two marks is replaced. Pure."""

from __future__ import annotations

BEGIN = "<!-- table: written by make foreign -->"
END = "<!-- end of the table -->"


def with_table(page: str, caption: str, table: str) -> str:
    """The page with its table and the caption above it renewed; ValueError where the marks are missing."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no table between {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{caption}\n\n{table}\n{END}{after}"
