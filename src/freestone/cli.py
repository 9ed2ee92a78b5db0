"""The command line: which verbs there are, and how every error becomes one line and an exit status.

Verbs are imported when they are used, so that ``freestone --help`` does not wait for the libraries of a report.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from cyclopts import App, CycloptsError, MissingArgumentError, UnknownCommandError, UnusedCliTokensError

import freestone
from freestone.commands.status import ExitStatus, Stop
from freestone.streams import outlast_readers

VERBS = {
    "compare": "Run a program under every allocator and say which is best for what.",
    "doctor": "Say what a program's memory suffers from, and try what may help.",
    "bench": "Run a suite of workloads under every allocator and show the scoreboard.",
    "list": "Show the results so far.",
    "report": "Write results as one HTML file, and show their tables or scoreboard.",
    "diff": "Say what changed between two results, and whether it stays within limits: for a CI.",
    "run": "Run a program under libfreestone, or another allocator.",
    "allocators": "Show which allocators are here, whether they work, and how to get the others.",
}

PARTS = {
    "allocators": {
        "add": "Build current versions of other allocators.",
        "remove": "Take away what 'add' has built.",
    },
}
"""Verbs that hold others, which are typed behind them."""

USAGE = {
    "compare": "Usage: freestone compare [OPTIONS] -- CMD [ARGUMENTS]",
    "doctor": "Usage: freestone doctor [OPTIONS] -- CMD [ARGUMENTS]",
    "bench": "Usage: freestone bench [OPTIONS] SUITE...",
    "list": "Usage: freestone list [OPTIONS]",
    "report": "Usage: freestone report [OPTIONS] RESULTS...",
    "diff": "Usage: freestone diff [OPTIONS] BEFORE AFTER",
    "run": "Usage: freestone run [OPTIONS] -- CMD [ARGUMENTS]",
    "allocators": "Usage: freestone allocators [OPTIONS] [NAMES]",
    "allocators add": "Usage: freestone allocators add [OPTIONS] [NAMES]",
    "allocators remove": "Usage: freestone allocators remove NAMES",
}
"""By verb, those that stand behind another included."""

EPILOGUE = """\
Examples:

    freestone compare -- python3 program.py
    freestone run -- redis-server
    freestone allocators
    freestone bench field

'freestone VERB --help' has more of each. Documentation: docs/reference/cli.md. Pages that are named docs/... are in the
clone and in the packed source; the Debian package has put them into /usr/share/doc/freestone."""

REMOVED = "the current folder was removed; go to one that is there (cd), and start again"
"""What a relative path that is not there means then."""


def build_app(verb: str | None = None, *, whole: bool = False) -> App:
    """The parser with every verb, none of them imported yet.

    Args:
        verb: the one that is going to be used, as in ``allocators add``. Its help is its own docstring; the others have
            a line each, because reading a docstring means importing.
        whole: with all that stands behind verbs, which is needed to write a completion down.
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
        if name in PARTS and (whole or (verb or "").partition(" ")[0] == name):
            app.command(_with_parts(name, verb, description))
        else:
            _add(app, name, verb, description, purpose)
    app.register_install_completion_command(
        name="--install-completion", help="Install completion for bash, zsh or fish."
    )
    return app


def _with_parts(name: str, verb: str | None, description: str) -> App:
    """The parser of a verb that holds others."""
    app = App(name=name, help=description if name == verb else VERBS[name], usage=USAGE[name])
    app.default(_function(name))
    for part, purpose in PARTS[name].items():
        _add(app, f"{name} {part}", verb, description, purpose)
    return app


def _add(app: App, name: str, verb: str | None, description: str, purpose: str) -> None:
    """Make a verb known, with its whole help where it is the one that is going to be used."""
    place, last = ":".join(_place(name)), name.rpartition(" ")[2]
    if name == verb:
        app.command(place, name=last, help=description, usage=USAGE[name])
    else:
        app.command(place, name=last, help=purpose)


def _place(verb: str) -> tuple[str, str]:
    """The module of a verb, and the function in it: ``commands.allocators_add`` and ``add`` for ``allocators add``."""
    if verb == "list":  # Python has a function of that name
        return "freestone.commands.list_results", "list_results"
    return f"freestone.commands.{verb.replace(' ', '_')}", verb.rpartition(" ")[2]


def _function(verb: str) -> Callable[..., object]:
    module, name = _place(verb)
    found: Callable[..., object] = getattr(importlib.import_module(module), name)
    return found


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the tool and exit. The statuses are those of :class:`ExitStatus`, and of CMD for ``freestone run``."""
    _keep_streams()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark; it is no reason to lose a table.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    outlast_readers()
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    status = _run(tokens)
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python must not try again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if status == ExitStatus.FINE:
            status = complain(_of_system(error), ExitStatus.STORE)
    sys.exit(status)


def _keep_streams() -> None:
    """Put nothing in the place of a stream that is closed: what is opened next would get its number, and the table."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _run(tokens: list[str]) -> int:
    verb = _verb(tokens)
    if verb == "run":
        tokens = program_apart(tokens)
    app = build_app(verb, whole=tokens[:1] == ["--install-completion"])
    try:
        if not tokens:
            app.help_print([])
            return ExitStatus.USAGE
        result = app(tokens)
        return int(result) if isinstance(result, int) else ExitStatus.FINE
    except Stop as stop:
        here = f" ({REMOVED})" if stop.status == ExitStatus.STORE and _is_folder_removed() else ""
        return complain(f"{stop.message}{here}", stop.status)
    except CycloptsError as error:
        where = f"freestone {verb} --help" if verb else "freestone --help"
        forgotten = verb in ("compare", "doctor", "run") and "--" not in tokens
        hint = f"the program stands after --; see {where}" if forgotten else f"see {where}"
        return complain(f"{_missing(error, verb, tokens) or _one_line(error)} ({hint})", ExitStatus.USAGE)
    except KeyboardInterrupt:
        return complain("interrupted", ExitStatus.INTERRUPTED)
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
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


def program_apart(tokens: Sequence[str]) -> list[str]:
    """The words behind ``freestone`` with a ``--`` before the program that ``run`` starts, where nobody typed one.

    The program is the first word that is no option of ours, and no value of one: what stands behind it is its own.
    """
    place = 1
    while place < len(tokens):
        word = tokens[place]
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            return [*tokens[:place], "--", *tokens[place:]]
        valued = word in ("-a", "--allocator", "--guard", "--print") and tokens[place + 1 : place + 2] != ["--"]
        place += 2 if valued else 1
    return list(tokens)


def _verb(tokens: Sequence[str]) -> str | None:
    """The verb that is going to be used, as in ``allocators add``; None where there is none."""
    two = " ".join(tokens[:2])
    return two if two in USAGE else tokens[0] if tokens and tokens[0] in VERBS else None


def complain(message: str, status: int) -> int:
    """One line on standard error; returns the status."""
    print(f"freestone: {message}", file=sys.stderr)
    return status


def _manual(verb: str) -> tuple[str, str]:
    """A verb's docstring as help: what stands before the options, and the examples after them.

    Paragraphs become long lines, which the terminal's width breaks; examples stay as they are.
    """
    paragraphs = (inspect.getdoc(_function(verb)) or "").split("\n\n")
    lines = [part if part.startswith(" ") else " ".join(part.split()) for part in paragraphs]
    split = lines.index("Examples:")
    return "\n\n".join(lines[:split]), "\n\n".join(lines[split:])


def _of_system(error: OSError) -> str:
    """What the system refused, where nobody closer to it had more to say."""
    if isinstance(error, FileNotFoundError) and _is_folder_removed():
        return REMOVED
    why = (error.strerror or str(error)).lower()
    return f"{error.filename}: {why}" if error.filename else f"cannot write to standard output: {why}"


def _is_folder_removed() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _missing(error: CycloptsError, verb: str | None, tokens: Sequence[str]) -> str | None:
    """What is not there that has to be: an option or argument, or the value of one; None where it is another error."""
    if verb is None or not isinstance(error, MissingArgumentError) or error.argument is None:
        return None
    typed = next((word for word in tokens if word in error.argument.names), None)
    if typed is not None:
        return f"{typed} takes a value, and none stands behind it"
    return f"{error.argument.name} is missing, as in: {USAGE[verb].removeprefix('Usage: ')}"


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
