"""Hosts that a stand-in for ssh reaches: a shell with a home of its own for each, and with the lab."""

from __future__ import annotations

from pathlib import Path

import pytest

from freestone.records import store

HOSTS = {"board": "board", "twin": "board", "other": "other"}
"""The home of each host; two of them are names of one."""


@pytest.fixture
def by_ssh(tmp_path: Path, environment: dict[str, str], command: list[str]) -> dict[str, str]:
    """An environment whose ssh reaches :data:`HOSTS`, each with its home in the test's folder, and no other host.

    A host whose home holds ``greeting`` says what it holds to whoever comes in; one with ``hangs`` answers nobody.
    """
    homes = " ".join(f"{host}) HOME={tmp_path}/{home};;" for host, home in HOSTS.items())
    (tmp_path / "tools").mkdir()
    stand_in(tmp_path, "freestone", f'exec {" ".join(command)} "$@"')
    stand_in(
        tmp_path,
        "ssh",
        "for word; do host=$line; line=$word; done\n"
        f"case $host in {homes} "
        '*) echo "ssh: Could not resolve hostname $host" >&2; exit 255; esac\n'
        f'PATH={tmp_path}/tools:/usr/bin:/bin; export HOME PATH; mkdir -p "$HOME"; cd\n'
        "[ -e hangs ] && exec sleep 1000\n"
        "[ -e greeting ] && cat greeting\n"
        'exec sh -c "$line"',
    )
    return {**environment, "PATH": f"{tmp_path / 'tools'}:{environment['PATH']}"}


def stand_in(folder: Path, name: str, script: str) -> Path:
    """What stands for a tool on the path of those who measure by ssh."""
    tool = folder / "tools" / name
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    return tool


def trials(folder: Path) -> int:
    """How many a results folder holds."""
    return len(store.read_trials(folder).records)


def only(results: Path) -> Path:
    """The one folder in it."""
    (folder,) = results.iterdir()
    return folder
