"""The slowest tests are named, whoever ran them."""

from __future__ import annotations

from pathlib import Path

import slowest_tests


def test_the_slowest_come_first_and_a_missing_file_is_no_error(tmp_path: Path) -> None:
    native = tmp_path / "native.xml"
    native.write_text(
        '<testsuite><testcase name="unit.bits" classname="unit.bits" time="0.5"/>'
        '<testcase name="unit.arena" classname="unit.arena" time="12.25"/></testsuite>'
    )
    python = tmp_path / "python.xml"
    python.write_text(
        '<testsuites><testsuite><testcase classname="tests.a.test_b" name="test_c" time="3"/></testsuite></testsuites>'
    )
    told = slowest_tests.told([native, tmp_path / "none.xml", python]).splitlines()
    assert told == [
        "native: 2 tests, 13 s of work; the slowest:",
        "    12.2 s  unit.arena",
        "     0.5 s  unit.bits",
        "python: 1 tests, 3 s of work; the slowest:",
        "     3.0 s  tests.a.test_b::test_c",
    ]


def test_no_more_than_ten_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "many.xml"
    cases = "".join(f'<testcase name="t{number}" classname="t{number}" time="{number}"/>' for number in range(30))
    file.write_text(f"<testsuite>{cases}</testsuite>")
    lines = slowest_tests.told([file]).splitlines()
    assert len(lines) == 1 + slowest_tests.MOST
    assert lines[1].endswith("t29")
