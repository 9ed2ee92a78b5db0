"""Where an order is carried out: the grammar of ``--on``. Pure.

local                          this machine
ssh:HOST[,HOST...]             machines that ssh reaches, each as ssh knows it (user@host, an alias)
slurm[:KIND[,KIND...]]         a job for each kind of node, as the cluster names its features
dask:ADDRESS[#KIND[,KIND...]]  a scheduler of Dask; a place for each resource, or one for each worker
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from freestone.experiments.plan import PlanError
from freestone.records import store
from freestone.records.schema import Place

ENGINES: Final = ("local", "ssh", "slurm", "dask")

_HOST: Final = re.compile(r"[A-Za-z0-9_][\w.@:\[\]%-]*")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_LAST_PORT: Final = 65535
_KIND: Final = re.compile(r"[\w.&|-]+")

_EXAMPLES: Final = {
    "ssh": "ssh:board1,me@board2:2222",
    "slurm": "slurm:rome,arm64",
    "dask": "dask:tcp://10.0.0.1:8786#rome,arm64",
}


def read(words: Sequence[str]) -> list[Place]:
    """The places that ``--on`` names, each once, in the order given.

    Raises:
        PlanError: a word is none, or two places have one name.
    """
    places = [place for word in words for place in _of(word)]
    names = [place.name for place in places]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise PlanError(f"--on names the place '{twice}' twice")
    return places


def _of(word: str) -> list[Place]:
    engine, _, rest = word.partition(":")
    if engine == "local" and not rest:
        return [Place(name="local", engine="local")]
    if engine == "ssh":
        hosts = _listed(word, rest, _HOST, "a host")
        for host in hosts:
            _require_port(word, host)
        return [Place(name=_slug(host), engine="ssh", address=host) for host in hosts]
    if engine == "slurm":
        kinds = _listed(word, rest, _KIND, "a feature of nodes") if rest else [""]
        return [
            Place(name=_slug(f"slurm-{kind}" if kind else "slurm"), engine="slurm", kind=kind or None) for kind in kinds
        ]
    if engine == "dask":
        address, mark, kinds_told = rest.partition("#")
        if not address or (mark and not kinds_told):
            raise PlanError(f"--on {word}: after 'dask:' comes the scheduler's address, as in dask:tcp://10.0.0.1:8786")
        kinds = _listed(word, kinds_told, _KIND, "a resource of workers") if mark else [""]
        return [
            Place(name=_slug(f"dask-{kind}" if kind else "dask"), engine="dask", address=address, kind=kind or None)
            for kind in kinds
        ]
    raise PlanError(f"--on takes {', '.join(ENGINES)}, as in ssh:board1,board2, not '{word}'")


def _require_port(word: str, host: str) -> None:
    """Raise PlanError where what is behind the host's colon is no port; an IPv6 address has more than one."""
    name, colon, port = host.partition(":")
    if colon and ":" not in port and not (_PORT.fullmatch(port) and 0 < int(port) <= _LAST_PORT):
        raise PlanError(f"--on {word}: '{port}' is no port of {name}: a port is a number up to {_LAST_PORT}")


def _listed(word: str, text: str, form: re.Pattern[str], what: str) -> list[str]:
    """What stands between the commas of a word that ``--on`` was given.

    Args:
        text: of the word, behind the engine.
        form: of each part.
        what: each part is, as in "a host".

    Raises:
        PlanError: a part is none.
    """
    parts = text.split(",")
    if "" in parts:
        where = "before and after each comma" if len(parts) > 1 else f"after '{word}'"
        raise PlanError(f"--on '{word}' lacks {what} {where}, as in {_EXAMPLES[word.partition(':')[0]]}")
    wrong = next((part for part in parts if not form.fullmatch(part)), None)
    if wrong is not None:
        raise PlanError(f"--on {word}: '{wrong}' is not {what}")
    return parts


def _slug(name: str) -> str:
    """A name that a folder can have."""
    return store.unlike_files(store.folder_name(name) or "place")
