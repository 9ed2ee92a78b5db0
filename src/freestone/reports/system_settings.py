"""Settings that no variable makes: the kernel's folio sizes, and no huge pages for a program. Names and lines. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from freestone.records.schema import Configuration

FOLDER = "/sys/kernel/mm/transparent_hugepage"
"""Of the kernel's switches."""

WITHOUT_HUGE_PAGES = (
    "python3",
    "-c",
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(41, 1, 0, 0, 0); os.execvp(sys.argv[1], sys.argv[1:])",
)
"""Runs what stands behind it under prctl(PR_SET_THP_DISABLE), which is handed on by fork and exec."""


def suffix(configuration: Configuration) -> str:
    """The end of a configuration's name that says what is set beside its environment; empty where nothing is."""
    sizes = "-".join(name.removeprefix("hugepages-") for name in configuration.kernel)
    return (f"+folios-{sizes}" if sizes else "") + ("+no-huge-pages" if configuration.huge_pages_off else "")


def command(configuration: Configuration, words: list[str]) -> list[str]:
    """A command that has what the configuration needs of the process itself."""
    return [*WITHOUT_HUGE_PAGES, *words] if configuration.huge_pages_off else words


def as_root(kernel: Mapping[str, str]) -> str:
    """One line that sets the kernel's switches until the next start of the machine; a comment says so."""
    switches = "; ".join(f"echo {word} > {FOLDER}/{name}/enabled" for name, word in kernel.items())
    return f"{switches}  # as root; for the whole machine, until its next start"


def lines(configuration: Configuration) -> dict[str, list[str]]:
    """What each is for -> lines to be copied. The kernel's switches are of the whole machine, and of the host where
    the program runs in a container."""
    files = {f"{FOLDER}/{name}/enabled": word for name, word in configuration.kernel.items()}
    sizes = {name.removeprefix("hugepages-").removesuffix("kB"): word for name, word in configuration.kernel.items()}
    parts = {
        "root, now": [f"echo {word} > {file}" for file, word in files.items()],
        "tmpfiles.d": [f"w {file} - - - - {word}" for file, word in files.items()],
        "kernel line": ["thp_anon=" + ";".join(f"{size}K:{word}" for size, word in sizes.items())] if sizes else [],
    }
    return {title: told for title, told in parts.items() if told}


def c_calls(configuration: Configuration) -> list[str]:
    """The call at the start of ``main`` that does the same for the process; nothing where there is none."""
    if not configuration.huge_pages_off:
        return []
    return ["#include <sys/prctl.h>", "prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);"]
