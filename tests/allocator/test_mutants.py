"""The page of the mutants has a row for each that the simulator has to find, and says of it what the table says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
DESIGN = REPOSITORY / "docs" / "design"


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
    rows = [
        (name, file, breaks, kinds)
        for name, file, breaks, kinds, _ in rows_of((DESIGN / "mutants.md").read_text(encoding="utf-8"))
    ]
    assert rows == [(each["name"], each["file"], each["breaks"], ", ".join(each["found_as"])) for each in found]


def test_the_page_of_the_simulator_counts_them(mutants: list[dict[str, Any]]) -> None:
    page = " ".join((DESIGN / "simulator.md").read_text(encoding="utf-8").split())
    said = re.search(
        r"(\d+) slips in (\d+) sources: .* The simulator finds (\d+) [^.]*\.md\)\), (\d+) of them by a script", page
    )
    found = sum("survives" not in each for each in mutants)
    scripts = sum("a script" in row[4] for row in rows_of((DESIGN / "mutants.md").read_text(encoding="utf-8")))
    assert said is not None
    assert tuple(map(int, said.groups())) == (len(mutants), len({each["file"] for each in mutants}), found, scripts)


def test_the_page_of_the_simulator_has_those_that_survive(mutants: list[dict[str, Any]]) -> None:
    section = (DESIGN / "simulator.md").read_text(encoding="utf-8").split("\n## Mutants\n")[1]
    rows = [(name, breaks) for name, breaks, _ in rows_of(section)]
    assert rows == [(each["name"], each["breaks"]) for each in mutants if "survives" in each]
