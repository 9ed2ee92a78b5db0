"""The doctor's check: patients are listed, answers are kept and counted, and a wrong one shows."""

from __future__ import annotations

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


LOOK = {"patient": "a", "cure": False, "found": ["leak"]}


@given(answers=st.lists(st.sampled_from([LOOK, {**LOOK, "found": []}, {"patient": "a", "cure": True, "best": "x"}])))
def test_what_was_kept_comes_back(tmp_path_factory: pytest.TempPathFactory, answers: list[doctor_check.Answer]) -> None:
    file = tmp_path_factory.mktemp("answers") / "build" / "answers.jsonl"
    for answer in answers:
        doctor_check.keep(file, {**answer, "of": "this"})
        doctor_check.keep(file, {**answer, "of": "another"})
    assert kept(file, "this") == [{**answer, "of": "this"} for answer in answers]


def test_a_line_that_was_cut_off_costs_itself_alone(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    doctor_check.keep(file, {**LOOK, "of": "this"})
    whole = file.read_bytes()
    for length in range(1, len(whole)):
        file.write_bytes(whole + whole[:length])
        doctor_check.keep(file, {**LOOK, "of": "this", "number": 3})
        found = kept(file, "this")
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


def test_another_doctor_is_another_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("src/freestone/doctor/shares.py", "src/freestone/reports/html.py", "workloads/patients/time.c"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("1")
    monkeypatch.setattr(doctor_check, "REPOSITORY", tmp_path)
    before = doctor_check.asked_of()
    (tmp_path / "src/freestone/reports/html.py").write_text("2")
    assert doctor_check.asked_of() == before
    for name in ("src/freestone/doctor/shares.py", "workloads/patients/time.c"):
        (tmp_path / name).write_text("2")
        assert doctor_check.asked_of() != before
        before = doctor_check.asked_of()
