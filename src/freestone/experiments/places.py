"""The machines on which an order is carried out: the grammar of ``--on``. Pure.

local                          this machine
ssh:HOST[,HOST...]             machines that ssh reaches, each as ssh knows it (user@host, an alias)
slurm[:KIND[,KIND...]]         a job for each kind of node, as the cluster names its features
dask:ADDRESS[#KIND[,KIND...]]  a scheduler of Dask; a task for each resource, or one for any worker
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from freestone.experiments.plan import PlanError
from freestone.records import store
from freestone.records.schema import Place

_HOST: Final = re.compile(r"[A-Za-z0-9_][\w.@:\[\]%-]*")
_KIND: Final = re.compile(r"[\w.&|-]+")
_LAST_PORT: Final = 65535

_EXAMPLES: Final = {"ssh": "ssh:board1,me@board2:2222", "slurm": "slurm:rome,arm64", "dask": "dask:tcp://h:8786#a,b"}


def read(words: Sequence[str]) -> list[Place]:
    """Return the places that ``--on`` names, in the order given.

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
    if word == "local":
        return [Place(name="local", engine="local")]
    if engine == "ssh":
        hosts = _listed(word, rest, _HOST, "a host")
        for host in hosts:
            _require_port(word, host)
        return [Place(name=_slug(host), engine="ssh", address=host) for host in hosts]
    if engine == "slurm":
        return _of_kinds("slurm", None, _listed(word, rest, _KIND, "a feature of nodes") if rest else [])
    if engine == "dask":
        address, mark, kinds = rest.partition("#")
        if not address or (mark and not kinds):
            raise PlanError(f"--on {word}: the scheduler's address is missing, as in {_EXAMPLES['dask']}")
        return _of_kinds("dask", address, _listed(word, kinds, _KIND, "a resource of workers") if mark else [])
    raise PlanError(f"--on takes local, ssh, slurm, dask, as in ssh:board1,board2, not '{word}'")


def _of_kinds(engine: Literal["slurm", "dask"], address: str | None, kinds: Sequence[str]) -> list[Place]:
    if not kinds:
        return [Place(name=engine, engine=engine, address=address)]
    return [Place(name=_slug(f"{engine}-{kind}"), engine=engine, address=address, kind=kind) for kind in kinds]


def _require_port(word: str, host: str) -> None:
    """Raise PlanError if the colon of a host has no port behind it; an IPv6 address has more than one colon."""
    name, colon, port = host.partition(":")
    if colon and ":" not in port and not (re.fullmatch("[0-9]{1,5}", port) and 0 < int(port) <= _LAST_PORT):
        raise PlanError(f"--on {word}: '{port}' is no port of {name}: a port is a number up to {_LAST_PORT}")


def _listed(word: str, text: str, form: re.Pattern[str], what: str) -> list[str]:
    """Return the parts between the commas of a word, each in a given form.

    Raises:
        PlanError: a part is not.
    """
    parts = text.split(",")
    if "" in parts:
        raise PlanError(
            f"--on '{word}' lacks {what} next to a comma or colon, as in {_EXAMPLES[word.partition(':')[0]]}"
        )
    wrong = next((part for part in parts if not form.fullmatch(part)), None)
    if wrong is not None:
        raise PlanError(f"--on {word}: '{wrong}' is not {what}")
    return parts


def _slug(name: str) -> str:
    """Return a name that a folder can have."""
    return store.unlike_files(store.folder_name(name) or "place")
