"""The page of the mutants has a row for each that the simulator has to find, and says of it what the table says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs" / "results" / "mutants.md").read_text(encoding="utf-8")
FOUND, SURVIVORS = PAGE.split("\n## Survivors\n")


@pytest.fixture(scope="module")
def mutants() -> list[dict[str, Any]]:
    table = REPOSITORY / "allocator" / "tests" / "simulator" / "mutants.toml"
    return tomllib.loads(table.read_text(encoding="utf-8"))["fault"]


def rows_of(text: str) -> list[list[str]]:
    """The cells of every row of every table of a page, heads left out."""
    tables = re.findall(r"^\| ---.*\n((?:\|.*\n)*)", text, re.MULTILINE)
    return [row[2:-2].split(" | ") for table in tables for row in table.splitlines()]


def test_the_page_has_every_mutant_that_is_found_and_no_other(mutants: list[dict[str, Any]]) -> None:
    found = [each for each in mutants if "survives" not in each]
    rows = [(name, file, breaks, kinds) for name, file, breaks, kinds, _ in rows_of(FOUND)]
    assert rows == [(each["name"], each["file"], each["breaks"], ", ".join(each["found_as"])) for each in found]


def test_the_page_counts_them(mutants: list[dict[str, Any]]) -> None:
    head = " ".join(FOUND.split())
    said = re.search(
        r"(\d+) slips in (\d+) sources: .* The simulator finds (\d+) of them, (\d+) of them by a script", head
    )
    found = sum("survives" not in each for each in mutants)
    scripts = sum("a script" in row[4] for row in rows_of(FOUND))
    assert said is not None
    assert tuple(map(int, said.groups())) == (len(mutants), len({each["file"] for each in mutants}), found, scripts)


def test_the_page_has_those_that_survive(mutants: list[dict[str, Any]]) -> None:
    rows = [(name, breaks) for name, breaks, _ in rows_of(SURVIVORS)]
    assert rows == [(each["name"], each["breaks"]) for each in mutants if "survives" in each]
