"""Explanations: a text for every symptom, lines that fit, ASCII where there is nothing else, the page made of them."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import resources
from pathlib import Path

import pytest

import symptoms_page
from freestone.commands.doctor_explain import explain as verb
from freestone.commands.status import ExitStatus, Stop
from freestone.doctor import explanation, in_code, remedies, symptoms, thresholds
from freestone.doctor.explanation import NAMES, ExplanationError
from freestone.doctor.words import PLAIN

REPOSITORY = Path(__file__).parents[2]
TEXTS = {
    Path(each.name).stem: each.read_text(encoding="utf-8")
    for each in (resources.files("freestone.doctor") / "explanations").iterdir()
}
GOOD = TEXTS["trim-churn"]


def test_every_symptom_has_a_text_and_no_text_is_left_over() -> None:
    assert set(TEXTS) == {rule.__name__.replace("_", "-") for rule in symptoms.RULES} | {"healthy"}
    assert set(NAMES) == set(PLAIN) == set(remedies.CANDIDATES)


@pytest.mark.parametrize("name", NAMES)
def test_a_text_has_100_to_200_words(name: str) -> None:
    prose = re.sub(r"(?s:```.*?```)|^#.*$", "", TEXTS[name], flags=re.MULTILINE)
    assert 100 <= len(prose.split()) <= 200


@pytest.mark.parametrize("name", NAMES)
def test_prose_is_ascii_and_pictures_stay_small(name: str) -> None:
    told = explanation.explain(name)
    assert "".join([told.mechanism, *told.rules, told.recognised, told.cure, told.known, told.patient]).isascii()
    assert max(map(len, told.picture.splitlines())) <= 64


@pytest.mark.parametrize("width", [20, 33, 66, 80, 100, 200])
@pytest.mark.parametrize("name", NAMES)
def test_every_line_fits_the_width(name: str, width: int) -> None:
    text = explanation.render(explanation.explain(name), width=width, ascii_only=False)
    assert [line for line in text.splitlines() if len(line) > width] == []


@pytest.mark.parametrize("width", [24, 45, 46, 80])
def test_the_overview_fits_the_width_and_names_all(width: int) -> None:
    lines = explanation.overview(width=width).splitlines()
    assert [line for line in lines if len(line) > width] == []
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_is_shown_where_it_fits(name: str) -> None:
    told = explanation.explain(name)
    first = told.picture.splitlines()[0].strip()
    assert first in explanation.render(told, width=66, ascii_only=False)
    assert "A picture stands here" in " ".join(explanation.render(told, width=20, ascii_only=False).split())


@pytest.mark.parametrize("name", NAMES)
def test_the_ascii_variant_is_ascii_only_with_nothing_lost(name: str) -> None:
    told = explanation.explain(name)
    drawn = explanation.render(told, width=80, ascii_only=False)
    plain = explanation.render(told, width=80, ascii_only=True)
    assert plain.isascii()
    assert plain.count("?") == drawn.count("?"), "a character of the picture has no counterpart"
    assert [len(line) for line in plain.splitlines()] == [len(line) for line in drawn.splitlines()]


def test_thresholds_are_those_of_the_symptoms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "WORTH", 0.07)
    monkeypatch.setattr(thresholds, "MOVES", 4321)
    said = explanation.explain("trim-churn").recognised
    assert "7 % of processor time" in said
    assert "4321 times" in said


@pytest.mark.parametrize("name", NAMES)
def test_no_threshold_is_typed_into_a_text(name: str) -> None:
    tells = TEXTS[name].partition("## How the doctor tells")[2].partition("## ")[0]
    # What malloc_trim and the like are called with is no threshold.
    assert not re.search(r"\d", re.sub(r"\{[^}]*\}|malloc_trim\(0\)", "", tells))


@pytest.mark.parametrize("name", NAMES)
def test_what_the_doctor_tries_is_shown(name: str) -> None:
    text = explanation.render(explanation.explain(name), width=400, ascii_only=True)
    for each in remedies.CANDIDATES[name]:
        assert each.why in text
        assert all(f"{setting}={value}" in text for setting, value in each.settings)
    assert all(line in text for line in in_code.ADVICE.get(name, ()))


def test_texts_name_the_patients_that_there_are() -> None:
    folder = REPOSITORY / "workloads" / "patients"
    sources = "".join(each.read_text(encoding="utf-8") for each in folder.glob("*.c"))
    listed = set(re.findall(r'\{"([a-z+-]+)", \w+\}', sources))
    expected = tomllib.loads((folder / "expected.toml").read_text(encoding="utf-8"))
    assert listed == {name for name, row in expected.items() if "program" not in row}
    there = {name for name in expected if name in TEXTS or name.startswith("healthy")}
    named = {name: set(re.findall(r"build/patients ([a-z-]+)", text)) for name, text in TEXTS.items()}
    for name, row in expected.items():
        if "program" in row and f"build/{row['program']}`" in TEXTS[name]:
            named[name].add(name)
    assert there
    assert set().union(*named.values()) == there
    for name, patients in named.items():
        assert (name in patients) if name in there else not patients
        assert bool(patients) != explanation.explain(name).patient.startswith("None yet")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("trim-chrun", "no symptom is called 'trim-chrun'; did you mean trim-churn?"),
        ("churn", "no symptom is called 'churn'; did you mean mapping-churn or trim-churn?"),
        ("huge", "no symptom is called 'huge'; did you mean huge-page-bloat or huge-pages-missing?"),
        ("TRIM_CHURN", "no symptom is called 'TRIM_CHURN'; did you mean trim-churn?"),
        ("leaks", "no symptom is called 'leaks'; did you mean leak?"),
        ("zzz", "no symptom is called 'zzz'; freestone doctor --explain all lists them"),
        ("../words", "no symptom is called '../words'; freestone doctor --explain all lists them"),
    ],
)
def test_an_unknown_symptom_is_one_line_with_the_nearest_name(asked: str, said: str) -> None:
    with pytest.raises(Stop) as stopped:
        verb(asked, as_json=False)
    assert stopped.value.message == said
    assert stopped.value.status == ExitStatus.USAGE


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (GOOD.replace("# trim-churn", "# other"), "must be headed"),
        (GOOD.replace("## Known from", "## Known"), "have the parts"),
        (GOOD.replace("```text", "```"), "between"),
        (GOOD.partition("`build/patients")[0], "nothing is said under Patient"),
        (GOOD.replace("{WORTH:%}", "{WORTHY:%}"), "no threshold"),
        (GOOD.replace("{WORTH:%}", "{WORTH:s}"), "no threshold"),
        (GOOD.replace("{WORTH:%}", "{RULES}"), "no threshold"),
    ],
)
def test_a_text_that_cannot_be_read_is_named(text: str, complaint: str) -> None:
    with pytest.raises(ExplanationError, match=complaint):
        explanation.parse("trim-churn", text)


def test_json_has_the_fields_of_one_symptom(capsys: pytest.CaptureFixture[str]) -> None:
    assert verb("leak", as_json=True) == ExitStatus.FINE
    told = json.loads(capsys.readouterr().out)
    assert told["symptom"] == "leak"
    assert told["summary"] == PLAIN["leak"]
    assert set(told) == {
        *("symptom", "summary", "mechanism", "picture", "rules", "recognised"),
        *("cure", "tried", "advice", "known", "patient"),
    }


def test_json_without_a_symptom_has_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert verb("all", as_json=True) == ExitStatus.FINE
    assert [each["symptom"] for each in json.loads(capsys.readouterr().out)] == list(NAMES)


def test_the_page_is_up_to_date() -> None:
    written = symptoms_page.PAGE.read_text(encoding="utf-8")
    assert written == explanation.page(), "python tools/symptoms_page.py renews it"
