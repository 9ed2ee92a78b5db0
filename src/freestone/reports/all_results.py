"""The page over all results: a list that is searched as one types, and by its address without scripts. Pure."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import markupsafe

import freestone
from freestone.reports.templating import templates
from freestone.reports.theme import DARK, FONT, LIGHT


@dataclass(frozen=True)
class Row:
    """What the page says of a result; empty where nothing is known."""

    name: str
    when: str
    state: str
    progress: str
    what: str
    configurations: str
    machine: str
    verdict: str
    reason: str
    """What is damaged."""
    address: str
    """Of its report; empty where there is none."""
    of_all: str
    """Address of the report of several places, of which this is one with a report of its own."""
    instead: str
    """The command that makes the report, or renews it."""
    is_older: bool
    """Whether the report is older than its trials."""
    go_on: str
    """The command that goes on with it."""

    @property
    def text(self) -> str:
        """All that a search finds it by, in small letters."""
        said = (
            self.name,
            self.when,
            self.state,
            self.progress,
            self.what,
            self.configurations,
            self.machine,
            self.verdict,
            self.reason,
        )
        return " ".join(" ".join(said).lower().split())


def matches(text: str, query: str) -> bool:
    """Whether a text holds every word of a search, wherever they stand; ``all_results.js`` does the same.

    Args:
        text: in small letters.
    """
    return all(word in text for word in query.lower().split())


def render(place: str, rows: Sequence[Row], query: str) -> str:
    """The page.

    Args:
        place: the folder of all results, as a reader knows it.
        rows: in their order.
        query: what is searched for; empty for everything.
    """
    told = [(row, text, matches(text, query)) for row in rows for text in [row.text]]
    return (
        templates()
        .get_template("all_results.html.jinja")
        .render(
            place=place,
            rows=told,
            shown=sum(shown for _, _, shown in told),
            damaged=sum(row.state == "damaged" for row in rows),
            query=query,
            style=markupsafe.Markup(_style()),
            script=markupsafe.Markup(_script()),
            version=freestone.__version__,
        )
    )


@functools.cache
def policy() -> str:
    """The content policy of the page: its own style and script by their contents, and nothing else from anywhere."""
    return (
        f"default-src 'none'; style-src {_hash(_style())}; script-src {_hash(_script())}; img-src data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@functools.cache
def _style() -> str:
    return templates().get_template("all_results.css").render(font=markupsafe.Markup(FONT), light=LIGHT, dark=DARK)


@functools.cache
def _script() -> str:
    return templates().get_template("all_results.js").render()
