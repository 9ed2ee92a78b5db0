"""What each symptom is, for somebody who has never read a malloc: read from the package's texts, and rendered. Pure.

A text is a Markdown file in ``explanations``: the mechanism below the symptom's name, then the parts of ``PARTS`` under
headings of their own. A threshold stands in it by its name in :mod:`freestone.doctor.symptoms`, as in ``{WORTH:%}``;
what is tried comes from :mod:`freestone.doctor.remedies`, and the symptom in a few words from
:mod:`freestone.doctor.words`. Nothing of these is written twice.
"""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final

from freestone.doctor import in_code, remedies, symptoms, thresholds
from freestone.doctor.words import PLAIN

NAMES: Final = tuple(rule.__name__.replace("_", "-") for rule in (*symptoms.RULES, symptoms.healthy))
"""Every symptom, in the order of the rules, and ``healthy``."""

PARTS: Final = ("Picture", "Rules", "How the doctor tells", "Cure and price", "Known from", "Patient")
"""What a text has below the mechanism, in this order."""

SHORTEST_PART: Final = 3
"""Letters of what is asked for from which on it may be a part of a name."""

_ASCII: Final = str.maketrans(
    {
        **dict.fromkeys("┌┐└┘├┤┬┴┼", "+"),
        "│": "|",
        "─": "-",
        "█": "#",
        "▪": "#",
        "▒": "=",
        "░": ".",
        "▲": "^",
        "▼": "v",
        "▶": ">",
        "◀": "<",
        "×": "x",
    }
)
"""Each character of the pictures as one of ASCII, so that columns stay where they are."""

_UNITS: Final[dict[str, Callable[[float], str]]] = {
    "": lambda value: f"{value:g}",
    "%": lambda value: f"{100 * value:g} %",
    "MiB": lambda value: f"{value / 1024:g} MiB",
    ",": lambda value: f"{value:,}",
}
"""How a threshold is shown: as it is, a share in per cent, KiB as MiB, with commas between thousands."""


class ExplanationError(ValueError):
    """A text that cannot be read, or a symptom that there is not; the message is one line."""


@dataclass(frozen=True)
class Explanation:
    """A symptom explained. Texts are whole lines without markup but backquotes; thresholds are filled in."""

    symptom: str
    summary: str
    """In a few words."""
    mechanism: str
    picture: str
    """Lines of box characters."""
    rules: tuple[str, ...]
    """Of kernel and C libraries, each with the versions in which it holds."""
    recognised: str
    """By what the doctor tells it."""
    cure: str
    """What cures it, and at what price."""
    tried: tuple[str, ...]
    """What the doctor tries: allocator, settings, and why."""
    advice: tuple[str, ...]
    """What no setting does."""
    known: str
    """Where it was first described, or is well known from."""
    patient: str
    """Which program shows it."""


def explain(symptom: str) -> Explanation:
    """The explanation of a symptom.

    Raises:
        ExplanationError: there is no such symptom; the message names the nearest.
    """
    if symptom not in NAMES:
        raise ExplanationError(_unknown(symptom))
    place = resources.files("freestone.doctor") / "explanations" / f"{symptom}.md"
    return parse(symptom, place.read_text(encoding="utf-8"))


def parse(symptom: str, text: str) -> Explanation:
    """A text's parts, with thresholds filled in.

    Raises:
        ExplanationError: a part is missing, empty or out of order, or a threshold is not one of the symptoms'.
    """
    heading, *bodies = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    title, _, mechanism = heading.strip().partition("\n")
    if title != f"# {symptom}" or tuple(bodies[::2]) != PARTS:
        raise ExplanationError(f"{symptom}.md must be headed '# {symptom}' and have the parts {', '.join(PARTS)}")
    parts = {name: body.strip("\n") for name, body in zip(bodies[::2], bodies[1::2], strict=True)}
    empty = [name for name, body in [("mechanism", mechanism), *parts.items()] if not body.strip()]
    if empty:
        raise ExplanationError(f"{symptom}.md: nothing is said under {', '.join(empty)}")
    fence = re.fullmatch(r"```text\n(.*)\n```", parts["Picture"], re.DOTALL)
    if fence is None:
        raise ExplanationError(f"{symptom}.md: the picture must stand between ```text and ```")
    rules = [rule.removeprefix("- ") for rule in parts["Rules"].splitlines()]
    return Explanation(
        symptom=symptom,
        summary=PLAIN[symptom],
        mechanism=_filled(mechanism),
        picture=fence[1],
        rules=tuple(map(_filled, rules)),
        recognised=_filled(parts["How the doctor tells"]),
        cure=_filled(parts["Cure and price"]),
        tried=tuple(_tried(each) for each in remedies.CANDIDATES[symptom]),
        advice=tuple(in_code.ADVICE.get(symptom, ())),
        known=_filled(parts["Known from"]),
        patient=_filled(parts["Patient"]),
    )


def overview(*, width: int) -> str:
    """All symptoms with a line each; where the width is too small for that, with more."""
    room = max(map(len, NAMES)) + 2
    lines: list[str] = []
    for name in NAMES:
        if width >= room + 20:
            lines += textwrap.wrap(PLAIN[name], width, initial_indent=name.ljust(room), subsequent_indent=" " * room)
        else:
            lines += [*_wrapped(name, width), *_wrapped(PLAIN[name], width, "  ")]
    return "\n".join(lines) + "\n"


def render(told: Explanation, *, width: int, ascii_only: bool) -> str:
    """An explanation as lines of at most ``width`` columns; a picture that is wider is left out, and that is said."""
    lines = _wrapped(f"{told.symptom}: {told.summary}", width)
    lines += ["", *_wrapped(told.mechanism, width), ""]
    picture = [f"  {line}".rstrip() for line in told.picture.splitlines()]
    needed = max(map(len, picture))
    lines += picture if needed <= width else _wrapped(f"(A picture stands here from {needed} columns on.)", width)
    lines += _part("Rules", told.rules, width)
    lines += _part("How the doctor tells", [told.recognised], width)
    lines += _part("Cure and price", [told.cure], width)
    lines += _part("What the doctor tries", told.tried, width)
    lines += _part("In the code", told.advice, width)
    lines += _part("Known from", [told.known], width)
    lines += _part("Patient", [told.patient.replace("`", "")], width)
    text = "\n".join(lines) + "\n"
    return text.translate(_ASCII).encode("ascii", "replace").decode() if ascii_only else text


def page() -> str:
    """All explanations as one Markdown page: ``docs/explanation/symptoms.md``."""
    told = [explain(name) for name in NAMES]
    lines = [
        "# What a program's memory may suffer from",
        "",
        "The symptoms that [`freestone doctor`](../guide/doctor.md) names: what happens, by which rules, what helps.",
        "A terminal shows the same: `freestone doctor --explain SYMPTOM`. A patient is a program with one of them.",
        "",
        "<!-- Made by tools/symptoms_page.py from src/freestone/doctor/explanations: change it there. -->",
        "",
        "| symptom | |",
        "| --- | --- |",
        *(f"| [`{each.symptom}`](#{each.symptom}) | {each.summary} |" for each in told),
    ]
    for each in told:
        lines += ["", f"## {each.symptom}", "", _sentence(each.summary), "", each.mechanism]
        lines += ["", "```text", each.picture, "```"]
        lines += ["", "**Rules**", "", *(f"- {rule}" for rule in each.rules)]
        lines += ["", f"**How the doctor tells.** {each.recognised}", "", f"**Cure and price.** {each.cure}"]
        if each.tried:
            lines += ["", "What the doctor tries:", "", *(f"- {_as_code(line)}" for line in each.tried)]
        if each.advice:
            lines += ["", "In the code:", "", *(f"- {line}" for line in each.advice)]
        lines += ["", f"**Known from.** {each.known}", "", f"**Patient.** {each.patient}"]
    return "\n".join(lines) + "\n"


def _unknown(symptom: str) -> str:
    asked = symptom.lower().replace("_", "-")
    within = [name for name in NAMES if len(asked) >= SHORTEST_PART and asked in name]
    near = within or difflib.get_close_matches(asked, NAMES, n=1)
    return f"no symptom is called '{symptom}'; " + (
        f"did you mean {_or(near)}?" if near else "freestone doctor --explain all lists them"
    )


def _or(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _filled(text: str) -> str:
    """A text with its thresholds, in one line."""
    return " ".join(re.sub(r"\{(\w+)(?::([^}]*))?\}", _threshold, text).split())


def _threshold(match: re.Match[str]) -> str:
    value, unit = getattr(thresholds, match[1], None), _UNITS.get(match[2] or "")
    if unit is None or not isinstance(value, int | float):
        raise ExplanationError(f"{match[0]} is no threshold of the symptoms, or its unit is unknown")
    return unit(value)


def _tried(each: remedies.Remedy) -> str:
    return f"{remedies.title(each)}: {each.why}"


def _as_code(tried: str) -> str:
    configuration, _, why = tried.rpartition(": ")
    return f"`{configuration}`: {why}"


def _part(title: str, items: Sequence[str], width: int) -> list[str]:
    """A heading and what stands below it, as a list where there may be several; nothing where there is nothing."""
    if not items:
        return []
    mark = "- " if title in ("Rules", "What the doctor tries", "In the code") else ""
    body = [line for each in items for line in _wrapped(each, width, "  " + mark)]
    return ["", *_wrapped(f"{title}:", width), *body]


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of at most a width; only a word that is longer than a line, such as a setting, is broken."""
    later = " " * len(indent)
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=later, break_on_hyphens=False)


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."
