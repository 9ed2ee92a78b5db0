"""The doctor's check: patients are listed, answers are kept and counted, and a wrong one shows."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import doctor_check
from doctor_check import Patient, count, kept, rates, table


def test_every_patient_of_the_table_is_there() -> None:
    patients = doctor_check.patients_of(doctor_check.EXPECTED.read_text(encoding="utf-8"))
    assert len(patients) > 30
    assert all(each.has for each in patients)


THIS = dict.fromkeys((False, True), "this")
LOOK = {"patient": "a", "cure": False, "found": ["leak"]}


@given(answers=st.lists(st.sampled_from([LOOK, {**LOOK, "found": []}, {"patient": "a", "cure": True, "best": "x"}])))
def test_what_was_kept_comes_back(tmp_path_factory: pytest.TempPathFactory, answers: list[doctor_check.Answer]) -> None:
    file = tmp_path_factory.mktemp("answers") / "build" / "answers.jsonl"
    for answer in answers:
        doctor_check.keep(file, {**answer, "of": "this"})
        doctor_check.keep(file, {**answer, "of": "another"})
    assert kept(file, THIS) == [{**answer, "of": "this"} for answer in answers]


def test_a_line_that_was_cut_off_costs_itself_alone(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    doctor_check.keep(file, {**LOOK, "of": "this"})
    whole = file.read_bytes()
    for length in range(1, len(whole)):
        file.write_bytes(whole + whole[:length])
        doctor_check.keep(file, {**LOOK, "of": "this", "number": 3})
        found = kept(file, THIS)
        assert (found[0], found[-1]) == ({**LOOK, "of": "this"}, {**LOOK, "of": "this", "number": 3})


def test_what_was_not_found_and_what_is_not_there_show() -> None:
    patient = Patient("a", has=frozenset({"leak"}), goal="memory")
    for found in (["leak"], [], ["leak", "trim-churn"], ["leak", "first-touch-faults"]):
        count(patient, {**LOOK, "found": found})
    count(patient, {"patient": "a", "cure": True, "best": None})
    count(patient, {"patient": "a", "cure": True, "best": "glibc:X=1"})
    count(patient, {"patient": "a", "cure": False, "broken": "it said nothing"})
    row = table([patient]).splitlines()[-1]
    assert row == "| a | leak 3 of 5 | first-touch-faults 1 | **trim-churn 1** | 1 of 2 | `glibc:X=1` 1 |"
    assert "found 3 of 5 times; in 5 looks 1 symptoms" in rates([patient])
    assert patient.broken == ["it said nothing"]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("src/freestone/reports/html.py", ()),
        ("src/freestone/doctor/words.py", ()),
        ("src/freestone/doctor/remedies.py", (True,)),
        ("src/freestone/experiments/schedule.py", (True,)),
        ("src/freestone/doctor/shares.py", (False, True)),
        ("workloads/patients/time.c", (False, True)),
    ],
)
def test_another_doctor_is_another_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, changes: Collection[bool]
) -> None:
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text("1")
    monkeypatch.setattr(doctor_check, "REPOSITORY", tmp_path)
    before = {cure: doctor_check.asked_of(cure=cure) for cure in (False, True)}
    (tmp_path / name).write_text("2")
    assert {cure for cure in before if doctor_check.asked_of(cure=cure) != before[cure]} == set(changes)


def test_an_answer_counts_for_what_was_asked(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    look, cure = {**LOOK, "of": "looks"}, {"patient": "a", "cure": True, "best": "x", "of": "cures"}
    for answer in (look, cure, {**look, "of": "cures"}, {**cure, "of": "looks"}):
        doctor_check.keep(file, answer)
    assert kept(file, {False: "looks", True: "cures"}) == [look, cure]
