"""The runner: every case under every allocator, the tables on the terminal or in a page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Generic, TypeVar

from conformance import markdown
from conformance.building import BuildFailed
from conformance.columns import Column
from freestone.allocators.errors import AllocatorError
from made_part import put

Case = TypeVar("Case")
Answer = TypeVar("Answer")


class Refused(Exception):
    """A question that cannot be answered, in one line."""


class Suite(Generic[Case, Answer]):
    """A catalogue of cases, how one is tried under one allocator, and the tables of the answers."""

    name: str
    whole = "all cases under all allocators"
    """The run that may write a page."""
    shown: Sequence[str] = ()
    """The tables of the terminal."""
    at_a_time = 1
    """Cases at the same time."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the suite's own options."""

    def choose(self, told: argparse.Namespace) -> Sequence[Case]:
        """Return the cases that were asked for; Refused if there is no such case."""
        raise NotImplementedError

    def prepare(self, cases: Sequence[Case], told: argparse.Namespace, until: ExitStack) -> None:
        """Build programs; Refused or BuildFailed if a case cannot be tried."""
        raise NotImplementedError

    def columns(self, told: argparse.Namespace) -> Sequence[Column]:
        """Return the allocators that were asked for; AllocatorError or Refused if one does not serve."""
        raise NotImplementedError

    def title(self, case: Case) -> str:
        """Return the name of a case on the terminal."""
        raise NotImplementedError

    def answer(self, case: Case, column: Column) -> Answer:
        """Try a case under an allocator."""
        raise NotImplementedError

    def told(self, answer: Answer) -> str:
        """Return an answer as the terminal has it; nothing if only the tables tell it."""
        return ""

    def parts(
        self, cases: Sequence[Case], columns: Sequence[Column], answers: Mapping[tuple[Case, str], Answer]
    ) -> dict[str, str]:
        """Return the tables, and what else a page has between marks, by name."""
        raise NotImplementedError

    def pictures(
        self, cases: Sequence[Case], columns: Sequence[Column], answers: Mapping[tuple[Case, str], Answer]
    ) -> None:
        """Draw the pictures of the page."""

    def failed(self, answers: Mapping[tuple[Case, str], Answer]) -> bool:
        """Return whether an answer is one that a build has to stop at."""
        raise NotImplementedError

    def instead(self, cases: Sequence[Case], told: argparse.Namespace) -> int | None:
        """Do something else with the cases, if that was asked for, and return the exit status."""
        return None


def run(suite: Suite[Case, Answer], words: Sequence[str]) -> int:
    """Try cases under allocators; 1 if an answer is bad, 2 for wrong use, 130 after an interruption."""
    parser = argparse.ArgumentParser(prog=suite.name, description=(suite.__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="which cases, by name")
    parser.add_argument("--allocators", default="", help="names or libraries, with commas between")
    parser.add_argument("--page", type=Path, help="the page that gets the tables; of a whole run only")
    suite.add_options(parser)
    told = parser.parse_args(words)
    answers: dict[tuple[Case, str], Answer] = {}
    with ExitStack() as until:
        try:
            if told.page and (told.only or told.allocators):
                raise Refused(f"a page is written by a run of {suite.whole} only")
            cases = suite.choose(told)
            suite.prepare(cases, told, until)
            if (status := suite.instead(cases, told)) is not None:
                return status
            columns = suite.columns(told)
            interrupted = _ask(suite, cases, columns, answers)
        except (Refused, BuildFailed, AllocatorError) as error:
            print(f"{suite.name}: {error}", file=sys.stderr)
            return 2
    if interrupted:
        asked = {case for case, _ in answers}
        cases = [case for case in cases if case in asked]
    parts = suite.parts(cases, columns, answers)
    for name in suite.shown:
        if parts.get(name):
            print(parts[name])
    if interrupted:
        print(f"{suite.name}: interrupted; answers so far: {len(answers)}", file=sys.stderr)
        return 130
    if told.page:
        suite.pictures(cases, columns, answers)
        for name, text in ({"origin": markdown.origin()} | parts).items():
            put(told.page, text.strip() or "Nothing.", f"make {suite.name}: {name}")
    return int(suite.failed(answers))


def _ask(
    suite: Suite[Case, Answer],
    cases: Sequence[Case],
    columns: Sequence[Column],
    answers: dict[tuple[Case, str], Answer],
) -> bool:
    """Answer case by case, so that the allocators meet each at about the same time; True after an interruption."""

    def one(pair: tuple[Case, Column]) -> Answer:
        case, column = pair
        if suite.at_a_time == 1 or column is columns[0]:
            print(f"{suite.name}: {suite.title(case)}, {column.name} ...\n", end="", file=sys.stderr, flush=True)
        return suite.answer(case, column)

    pairs = [(case, column) for case in cases for column in columns]
    try:
        with ExitStack() as until:
            if suite.at_a_time > 1:
                found = until.enter_context(ThreadPoolExecutor(suite.at_a_time)).map(one, pairs)
            else:  # in this thread, which the terminal's signal reaches
                found = map(one, pairs)
            for (case, column), answer in zip(pairs, found, strict=True):
                answers[case, column.name] = answer
                if said := suite.told(answer):
                    print(f"{suite.title(case):28} {column.name:12} {said}", flush=True)
    except KeyboardInterrupt:
        return True
    return False
