"""Finds a suite, by name in the package or by path, and reads it."""

from __future__ import annotations

import difflib
import tomllib
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from freestone.suites.schema import Suite, SuiteError

SUFFIX = ".toml"


def names() -> list[str]:
    """The suites that come with Freestone."""
    folder = files("freestone.suites")
    return sorted(file.name.removesuffix(SUFFIX) for file in folder.iterdir() if file.name.endswith(SUFFIX))


def load(name: str) -> Suite:
    """A suite by its name, or by the path of a file that ends in ``.toml``, with those it includes.

    Raises:
        SuiteError: there is none, or the file holds something else.
    """
    return _complete(name, ())


def leaders() -> list[str]:
    """The suites that come with Freestone and that no other includes: together they hold every workload once."""
    included = {each for name in names() for each in _alone(name).include}
    return [name for name in names() if name not in included]


def _complete(name: str, via: tuple[str, ...]) -> Suite:
    suite = _alone(name)
    if name in via:
        raise SuiteError(f"suite {name} includes itself, by way of {', '.join(via)}")
    parts = [_complete(each, (*via, name)) for each in suite.include]
    for part, each in zip(parts, suite.include, strict=True):
        if part.idles != suite.idles:
            raise SuiteError(f"suite {name} includes {each}, and only one of them says 'idles = true'")
    return suite.model_copy(
        update={
            "workload": [*suite.workload, *(entry for part in parts for entry in part.workload)],
            "setting": [*suite.setting, *(setting for part in parts for setting in part.setting)],
        }
    )


def _alone(name: str) -> Suite:
    if name.endswith(SUFFIX) or "/" in name:
        return _parsed(name, _text(Path(name)))
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names())}, or give a {SUFFIX} file"
        raise SuiteError(f"no suite is called '{name}'; {hint}")
    return _parsed(name, (files("freestone.suites") / f"{name}{SUFFIX}").read_text(encoding="utf-8"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path} is not UTF-8 text") from error
    except OSError as error:
        raise SuiteError(f"cannot read the suite {path}: {(error.strerror or str(error)).lower()}") from error


def _parsed(place: str, text: str) -> Suite:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"suite {place} is not TOML: {error}") from error
    except RecursionError as error:
        raise SuiteError(f"suite {place} is nested too deeply") from error
    try:
        return Suite.model_validate(table)
    except ValidationError as error:
        raise SuiteError(f"suite {place}: {_first_problem(error, table)}") from error


def _first_problem(error: ValidationError, table: dict[str, object]) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    # A key that is missing is often there, misspelt.
    problem = next((each for each in problems if each["type"] == "extra_forbidden"), problems[0])
    place = [str(part) for part in problem["loc"]]
    said = problem["msg"].removeprefix("Value error, ")
    said = said[:1].lower() + said[1:]
    if problem["type"] == "extra_forbidden":
        fields = list(Suite.model_fields) if len(place) == 1 else _fields_of(place)
        near = difflib.get_close_matches(place[-1], fields, n=1)
        said = "is not known; " + (f"did you mean {near[0]}?" if near else f"there are {', '.join(fields)}")
    return f"{_spoken(place, table)}: {said}"


def _fields_of(place: list[str]) -> list[str]:
    from freestone.suites.schema import Entry, Need, Setting

    if place[0] == "setting":
        return list(Setting.model_fields)
    return list(Need.model_fields if "needs" in place[2:-1] else Entry.model_fields)


def _spoken(place: list[str], table: dict[str, object]) -> str:
    """``workload.2.comand`` with the workload's or setting's name where it has one."""
    kind = place[0]
    entries = table.get(kind)
    if len(place) > 1 and kind in ("workload", "setting") and place[1].isdigit() and isinstance(entries, list):
        entry = entries[int(place[1])]
        name = entry.get("name") if isinstance(entry, dict) else None
        called = f"{kind} {name!r}" if isinstance(name, str) else f"{kind} number {int(place[1]) + 1}"
        return ", ".join([called, ".".join(place[2:])]) if place[2:] else called
    return ".".join(place)
