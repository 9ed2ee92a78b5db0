"""Every bug under every allocator: stopped at once, late, harmless, or never.

Usage: ``PYTHONPATH=tools .venv/bin/python -m misuses [--only FAMILY] [--allocators freestone,glibc] [--page FILE]``

``--page`` writes the tables into a page of Markdown; only a run of all bugs under all allocators may. Exit status 2:
wrong use, or a program that cannot be compiled; 1: a program did not come as far as its bug.
"""

from __future__ import annotations

import argparse
import datetime
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from freestone.allocators import discovery
from freestone.allocators.errors import AllocatorError
from freestone.allocators.verification import verify
from freestone.records.schema import Configuration
from misuses import cases, page, picture
from misuses.cases import Case
from misuses.judging import Stop, judge

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = REPOSITORY / "tests" / "misuses"
BUILT = REPOSITORY / "build" / "misuses"
LIMIT_S = 30.0
MODES = ("guard=1", "harden=1")
# The compiler may neither see the bug nor know what malloc is.
OPTIONS = ("-std=c++17", "-O1", "-g", "-fno-builtin", "-Wall", "-Wextra", "-Wno-free-nonheap-object", "-pthread")


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="misuses", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", default="", help="bugs that have this text in 'family: program arguments'")
    parser.add_argument("--allocators", default="", help="names or libraries, with commas between")
    parser.add_argument("--page", type=Path)
    told = parser.parse_args(words)
    if told.page and (told.only or told.allocators):
        print("misuses: a page is written by a run of all bugs under all allocators only", file=sys.stderr)
        return 2
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    chosen = cases.choose(told.only)
    if not chosen:
        families = " | ".join(dict.fromkeys(case.family for case in cases.every()))
        print(f"misuses: no bug has '{told.only}' in its name; families: {families}", file=sys.stderr)
        return 2
    try:
        _build()
        configurations = _configurations(told.allocators)
    except (AllocatorError, subprocess.CalledProcessError) as error:
        print(f"misuses: {error}", file=sys.stderr)
        return 2
    answers: dict[tuple[Case, str], Stop] = {}
    for configuration in configurations:
        print(f"misuses: {configuration.name} ...", file=sys.stderr, flush=True)
        for case in chosen:
            answers[case, configuration.name] = _answer(case, configuration)
    names = [configuration.name for configuration in configurations]
    print(page.families(chosen, names, answers))
    print(page.each(chosen, names, answers))
    print(page.legend())
    if told.page:
        picture.save(picture.draw(chosen, names, answers), REPOSITORY / "docs" / "images")
        allocators = [configuration.allocator for configuration in configurations]
        told.page.write_text(
            page.text(chosen, names, allocators, answers, day=datetime.date.today().isoformat()), encoding="utf-8"
        )
    return int(Stop.INVALID in answers.values())


def _build() -> None:
    BUILT.mkdir(parents=True, exist_ok=True)
    newest = (SOURCES / "misuse.h").stat().st_mtime
    for source in sorted(SOURCES.glob("*.cpp")):
        output = BUILT / source.stem
        if not output.exists() or output.stat().st_mtime < max(newest, source.stat().st_mtime):
            subprocess.run(["g++", *OPTIONS, str(source), "-o", str(output)], check=True)


def _configurations(words: str) -> list[Configuration]:
    found = discovery.find([words]) if words else [each for each in discovery.discover() if each.available]
    found.sort(key=lambda each: each.name != "freestone")
    configurations = [mode for each in found for mode in _modes(discovery.configuration_for(each))]
    return [each for each in configurations if verify(each.allocator, settings=each.environment).verified]


def _modes(configuration: Configuration) -> list[Configuration]:
    """libfreestone is safer on request: a column more for each way to ask for it."""
    if "freestone" not in configuration.allocator.name:
        return [configuration]
    modes = [
        configuration.model_copy(
            update={
                "name": f"{configuration.name}, {options}",
                "environment": {**configuration.environment, "FREESTONE_OPTIONS": options},
            }
        )
        for options in MODES
    ]
    return [configuration, *modes]


def _answer(case: Case, configuration: Configuration) -> Stop:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("LD_", "MALLOC_"))}
    environment |= {"LC_ALL": "C", **configuration.environment}
    environment["LD_PRELOAD"] = ":".join(configuration.allocator.preload)
    with subprocess.Popen(
        [str(BUILT / case.words[0]), *case.words[1:]],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        status: int | None
        try:
            said, _ = process.communicate(timeout=LIMIT_S)
            status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
            status = None
    return judge(status, said)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
