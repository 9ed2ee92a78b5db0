"""The command line: which verbs there are, and how every error becomes one line and an exit status.

Verbs are imported when they are used, so that ``freestone --help`` does not wait for the libraries of a report.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from cyclopts import App, CycloptsError, UnknownCommandError, UnusedCliTokensError

import freestone
from freestone.commands.status import ExitStatus, Stop

VERBS = {
    "compare": "Run a program under every allocator and say which is best for what.",
    "advise": "Say in one sentence which allocator to run a program under.",
    "bench": "Run a suite of workloads under every allocator and show the scoreboard.",
    "score": "Show the scoreboard of a results folder.",
    "diff": "Say what changed between two results.",
    "gate": "Fail when a change exceeds limits: for a CI.",
    "run": "Run a program under libfreestone, or another allocator.",
    "allocators": "Show which allocators are here, whether they work, and how to get the others.",
    "peers": "Build current versions of other allocators, to compare with them.",
    "calls": "Count the system calls of what was measured, in runs of their own.",
    "instructions": "Count the instructions and memory references of what was measured, by valgrind.",
    "report": "Write results as one HTML file.",
}

USAGE = {
    "compare": "Usage: freestone compare [OPTIONS] -- CMD [ARGUMENTS]",
    "advise": "Usage: freestone advise [OPTIONS] -- CMD [ARGUMENTS]",
    "bench": "Usage: freestone bench [OPTIONS] SUITE...",
    "score": "Usage: freestone score [OPTIONS] RESULTS",
    "diff": "Usage: freestone diff [OPTIONS] BEFORE AFTER",
    "gate": "Usage: freestone gate [OPTIONS] BEFORE AFTER",
    "run": "Usage: freestone run [OPTIONS] -- CMD [ARGUMENTS]",
    "allocators": "Usage: freestone allocators [OPTIONS] [NAMES]",
    "peers": "Usage: freestone peers [add|list|remove] [OPTIONS] [NAMES]",
    "calls": "Usage: freestone calls [OPTIONS] RESULTS",
    "instructions": "Usage: freestone instructions [OPTIONS] RESULTS",
    "report": "Usage: freestone report [OPTIONS] RESULTS...",
}

EPILOGUE = """\
Examples:

    freestone compare -- python3 program.py
    freestone run -- redis-server
    freestone allocators
    freestone bench field

'freestone VERB --help' has more of each. Documentation: docs/reference/cli.md"""


def build_app(verb: str | None = None) -> App:
    """The parser with every verb, none of them imported yet.

    Args:
        verb: the one that is going to be used. Its help is its own docstring; the others have a line each, because
            reading a docstring means importing.
    """
    description, examples = _manual(verb) if verb else ("", EPILOGUE)
    app = App(
        name="freestone",
        help="Run any program under any memory allocator, prove which one served it, measure honestly.",
        help_epilogue=examples,
        help_format="plaintext",
        version=f"freestone {freestone.__version__}",
        version_flags=["--version", "-V"],
        # Reported below, in one line.
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    for name, purpose in VERBS.items():
        place = f"freestone.commands.{name}:{name}"
        if name == verb:
            app.command(place, name=name, help=description, usage=USAGE[name])
        else:
            app.command(place, name=name, help=purpose)
    app.register_install_completion_command(
        name="--install-completion", help="Install completion for bash, zsh or fish."
    )
    return app


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the tool and exit. The statuses are those of :class:`ExitStatus`, and of CMD for ``freestone run``."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark; it is no reason to lose a table.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    status = _run(tokens)
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python must not try again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # A reader that has seen enough is no error.
        if not isinstance(error, BrokenPipeError) and status == ExitStatus.FINE:
            status = complain(_of_system(error), ExitStatus.STORE)
    sys.exit(status)


def _run(tokens: list[str]) -> int:
    verb = tokens[0] if tokens and tokens[0] in VERBS else None
    app = build_app(verb)
    try:
        if not tokens:
            app.help_print([])
            return ExitStatus.USAGE
        result = app(tokens)
        return int(result) if isinstance(result, int) else ExitStatus.FINE
    except Stop as stop:
        return complain(stop.message, stop.status)
    except CycloptsError as error:
        where = f"freestone {verb} --help" if verb else "freestone --help"
        forgotten = verb in ("compare", "advise", "run") and "--" not in tokens
        hint = f"the program stands after --; see {where}" if forgotten else f"see {where}"
        return complain(f"{_one_line(error)} ({hint})", ExitStatus.USAGE)
    except KeyboardInterrupt:
        return complain("interrupted", ExitStatus.INTERRUPTED)
    except BrokenPipeError:
        return ExitStatus.FINE
    except OSError as error:
        return complain(_of_system(error), ExitStatus.STORE)
    except Exception as error:
        if os.environ.get("FREESTONE_TRACEBACK"):
            raise
        return complain(
            f"internal error, {type(error).__name__}: {' '.join(str(error).split())[:300]} "
            "(FREESTONE_TRACEBACK=1 shows where; please report it)",
            ExitStatus.INTERNAL,
        )


def complain(message: str, status: int) -> int:
    """One line on standard error; returns the status."""
    print(f"freestone: {message}", file=sys.stderr)
    return status


def _manual(verb: str) -> tuple[str, str]:
    """A verb's docstring as help: what stands before the options, and the examples after them.

    Paragraphs become long lines, which the terminal's width breaks; examples stay as they are.
    """
    function = getattr(importlib.import_module(f"freestone.commands.{verb}"), verb)
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    lines = [part if part.startswith(" ") else " ".join(part.split()) for part in paragraphs]
    split = lines.index("Examples:")
    return "\n\n".join(lines[:split]), "\n\n".join(lines[split:])


def _of_system(error: OSError) -> str:
    """What the system refused, where nobody closer to it had more to say."""
    why = (error.strerror or str(error)).lower()
    return f"{error.filename}: {why}" if error.filename else f"cannot write to standard output: {why}"


def _one_line(error: CycloptsError) -> str:
    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        asked = error.unused_tokens[0]
        near = difflib.get_close_matches(asked, VERBS, n=1)
        return f"no verb is called '{asked}'; " + (
            f"did you mean {near[0]}?" if near else f"there are {', '.join(VERBS)}"
        )
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"nothing more can be given: '{' '.join(error.unused_tokens)}' is too much"
    return " ".join(str(error).split()).rstrip(".")
