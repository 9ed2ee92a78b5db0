"""The protocol between threads: the models have no error, and a planted one is found."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import check_models

MODELS = sorted(check_models.MODELS.glob("*.pml"))
needs_spin = pytest.mark.skipif(
    shutil.which("spin") is None or shutil.which("gcc") is None, reason="spin or gcc is missing: see make model"
)


@pytest.mark.long
@needs_spin
@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.stem)
def test_no_order_of_steps_breaks_the_protocol(model: Path) -> None:
    assert check_models.search(model).error == ""


@pytest.mark.long
@needs_spin
@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.stem)
def test_nobody_goes_round_for_ever(model: Path) -> None:
    assert check_models.search(model, cycles=True).error == ""


@pytest.mark.long
@needs_spin
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("borrow", "ASKS_UNTIL_OUT"),
        ("child", "TORN_TRIES_AGAIN"),
        ("gate", "REFUSED_TRIES_AGAIN"),
        ("keeper", "WISHED_UNTOLD"),
        ("lock", "HOLDER_GOES_ON"),
        ("orphan", "NEVER_ZEROED"),
    ],
)
def test_who_goes_round_for_ever_is_found_by_the_search_for_cycles_alone(name: str, fault: str) -> None:
    found = check_models.find(check_models.MODELS / f"{name}.pml", fault)
    assert found.cycles, f"the search for states finds {found.error}"
    assert found.error == "goes round for ever"


@pytest.mark.long
@needs_spin
@pytest.mark.parametrize(("name", "fault"), [("lock", "FREE_WAKES_NOBODY"), ("borrow", "OUT_BEFORE_UNLINKED")])
def test_a_planted_fault_is_found(name: str, fault: str) -> None:
    assert check_models.search(check_models.MODELS / f"{name}.pml", fault).error != ""


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.stem)
def test_every_planted_fault_changes_the_model(model: Path) -> None:
    text = model.read_text(encoding="utf-8")
    faults = check_models.faults(model)
    assert faults
    assert not [fault for fault in faults if f"def {fault}\n" not in text]


def test_the_page_has_a_row_for_every_search() -> None:
    page = (check_models.MODELS.parents[1] / "docs" / "results" / "models.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| (\w+) \| (.+?) \| \d+ \| \d+ \|$", page, re.MULTILINE)
    assert [row[:2] for row in rows if row[1] != "none"] == [
        (model.stem, fault) for model in MODELS for fault in check_models.faults(model)
    ]
    assert [row for row in rows if row[1] == "none"] == [
        (model.stem, "none", found) for model in MODELS for found in ("no error", "no cycle")
    ]


def test_a_search_that_was_cut_off_is_no_search() -> None:
    with pytest.raises(check_models.ModelError):
        check_models.read_outcome("error: max search depth too small\nState-vector 48 byte, depth reached 9, errors: 0")
    with pytest.raises(check_models.ModelError):
        check_models.read_outcome("Segmentation fault")


def test_an_error_is_told_by_its_kind() -> None:
    assert check_models.read_outcome("depth reached 9, errors: 0") == ""
    said = "pan:1: {} (at depth 4)\nState-vector 48 byte, depth reached 9, errors: 1"
    assert check_models.read_outcome(said.format("assertion violated (holders==1)")) == "wrong state"
    assert check_models.read_outcome(said.format("invalid end state")) == "waits for ever"
    assert check_models.read_outcome(said.format("non-progress cycle")) == "goes round for ever"


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(SystemExit):
        check_models.main(["no-such-model"])


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.stem)
def test_what_a_comment_of_a_model_names_is_in_the_sources(model: Path) -> None:
    sources = "".join(path.read_text() for path in sorted((check_models.MODELS.parent / "src").glob("*.[ch]")))
    said = model.read_text()
    code = re.sub(r"/\*.*?\*/", "", said, flags=re.DOTALL)
    comments = " ".join(re.findall(r"/\*(.*?)\*/", said, flags=re.DOTALL))
    named = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", comments))
    assert {name for name in named if not re.search(rf"\b{name}\b", sources + code)} == set()
