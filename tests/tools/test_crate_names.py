"""The names that the Rust crate's C is compiled with."""

from __future__ import annotations

import crate_names


def test_offered_names_stay_libcs_only_where_that_is_asked_for() -> None:
    text = crate_names.header(["malloc", "freestone_purge", "freestone_own_registry"])
    before, _, after = text.partition("#endif")
    assert "#define malloc freestone_malloc\n" in before
    assert before.index("#ifndef FREESTONE_OVERRIDE") < before.index("malloc freestone_malloc")
    assert after.split() == ["#define", "registry", "freestone_own_registry"]


def test_what_is_freestones_already_and_what_is_of_cxx_is_left() -> None:
    text = crate_names.header(["freestone_version", "_Znwm"])
    assert "define" not in text
