"""Where a bare Debian system is fetched from."""

from __future__ import annotations

import pytest
from debian_root import mirror

OF_FIELDS = """Types: deb
# a comment
URIs: http://one/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb
URIs: http://two/security
Suites: bookworm-security
"""


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (OF_FIELDS, "http://one/debian"),
        ("deb http://other main\n" + OF_FIELDS, "http://one/debian"),
        ("# deb http://no bookworm main\ndeb [signed-by=/k] http://three/ubuntu bookworm main", "http://three/ubuntu"),
        ("deb http://three bookworm-security main", None),
        ("", None),
    ],
)
def test_the_mirror_is_the_one_with_the_release(sources: str, expected: str | None) -> None:
    assert mirror(sources, "bookworm") == expected
