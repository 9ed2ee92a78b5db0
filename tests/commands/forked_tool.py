"""The tool, imported once: each line on standard input is a call, done in a process forked from this one.

A call is JSON: {"words": [...], "folder": "...", "environment": {...}, "stdout": file, "stderr": file}. The answer is
two lines: the process, as soon as it is there, and its status as it ends. What a call finds is what it would find in a
process of its own: streams, folder, environment, words, one thread; but half a second earlier.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, NoReturn

import freestone
from freestone import cli
from freestone.allocators.discovery import discover
from freestone.reports import html
from freestone.reports.templating import templates

DRAWING = ("compare", "report")
"""Verbs that write a page, into which the same large script goes every time."""


def import_rooms() -> None:
    for module in pkgutil.walk_packages(freestone.__path__, "freestone."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def warm_up() -> None:
    """What every call would do again and find the same: load libraries, compile templates, read allocators' files."""
    for library in ("duckdb", "elftools.elf.elffile", "cyclopts.help"):
        importlib.import_module(library)
    for template in templates().list_templates():
        templates().get_template(template)
    discover()


def keep_script() -> None:
    """Made in another process: the engine that makes it starts threads, and a fork keeps none of them."""
    words = [sys.executable, "-c", "import sys; from freestone.reports import html; sys.stdout.write(html._vega())"]
    script = subprocess.run(words, capture_output=True, check=True, encoding="utf-8").stdout
    html._vega = lambda: script  # type: ignore[assignment]


def call(words: list[str], folder: str, environment: dict[str, str], stdout: str, stderr: str) -> NoReturn:
    """What Python does for ``python -m freestone``, from its start to its end."""
    status: Any = 1
    try:
        for number, file in ((1, stdout), (2, stderr)):
            opened = os.open(file, os.O_WRONLY | os.O_APPEND)
            os.dup2(opened, number)
            os.close(opened)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.path[0] = folder
        sys.argv = [str(Path(freestone.__file__).with_name("__main__.py")), *words]
        cli.main()
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status if isinstance(status, int) else 0 if status is None else 1)


def main() -> None:
    # Calls get neither end of the pipes that lead here.
    asked, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nothing, number)
    os.close(nothing)
    import_rooms()
    warm_up()
    gc.freeze()
    script_kept = False
    for line in asked:
        request = json.loads(line)
        if not script_kept and set(request["words"][:1]) & set(DRAWING):
            keep_script()
            script_kept = True
        assert threading.active_count() == len(os.listdir("/proc/self/task")) == 1, "a fork keeps one thread"
        process = os.fork()
        if process == 0:
            call(**request)
        print(process, file=answers, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), file=answers, flush=True)
    os._exit(0)  # the libraries' own ends are of no interest, and one of them tells what it left behind


if __name__ == "__main__":
    main()
