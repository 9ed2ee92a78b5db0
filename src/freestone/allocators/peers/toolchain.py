"""The system's compilers and build tools: which a recipe needs, where they are, how to get those that are missing."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from freestone.allocators import packages
from freestone.allocators.peers.catalogue import CMake, Compile, Configure, Peer, Recipe


@dataclass(frozen=True, eq=False)
class Tool:
    title: str
    programs: tuple[str, ...]
    """Tried in this order on PATH."""
    variable: str | None = None
    """Environment variable that names another program, with arguments if need be."""
    packages: Mapping[str, list[str]] = field(default_factory=dict)
    """Who ships it: distribution -> package names."""

    def words(self, environment: Mapping[str, str] = os.environ) -> list[str] | None:
        """What starts it, or None where it is not installed."""
        named = environment.get(self.variable, "") if self.variable else ""
        if named:
            words = shlex.split(named)
            return words if words and shutil.which(words[0], path=environment.get("PATH")) else None
        found = (shutil.which(name, path=environment.get("PATH")) for name in self.programs)
        return next(([path] for path in found if path), None)


def _shipped(debian: str, fedora: str, arch: str, alpine: str) -> dict[str, list[str]]:
    return {"debian": [debian], "fedora": [fedora], "arch": [arch], "alpine": [alpine]}


C = Tool("C compiler", ("cc", "gcc", "clang"), "CC", _shipped("gcc", "gcc", "gcc", "gcc musl-dev"))
CXX = Tool("C++ compiler", ("c++", "g++", "clang++"), "CXX", _shipped("g++", "gcc-c++", "gcc", "g++"))
MAKE = Tool("make", ("make", "gmake"), None, _shipped("make", "make", "make", "make"))
CMAKE = Tool("cmake", ("cmake",), None, _shipped("cmake", "cmake", "cmake", "cmake"))
CARGO = Tool("cargo", ("cargo",), None, _shipped("cargo", "cargo", "rust", "cargo"))
"""Not needed for a package that cargo has fetched before."""


def needed(recipe: Recipe) -> list[Tool]:
    """The tools a recipe is built with."""
    match recipe:
        case Compile():
            return [C, CXX] if recipe.is_cxx else [C]
        case Configure():
            return [C, CXX, MAKE]
        case CMake():
            return [C, CXX, MAKE, CMAKE]


def missing(peers: Iterable[Peer], environment: Mapping[str, str] = os.environ) -> dict[Tool, list[Peer]]:
    """Each build tool that is not installed, with the peers that are built with it."""
    found: dict[Tool, list[Peer]] = {}
    for peer in peers:
        for tool in needed(peer.recipe):
            if tool.words(environment) is None:
                found.setdefault(tool, []).append(peer)
    return found


def remedy(tool: Tool, environment: Mapping[str, str] = os.environ) -> str:
    """What to do about a missing tool, as the end of a sentence."""
    named = environment.get(tool.variable, "") if tool.variable else ""
    if named:
        return f"{tool.variable} names '{named}', which is not there"
    command = packages.how_to_get(tool.packages, packages.distribution())
    return f"install one with: {command}" if command else f"install {tool.programs[0]}"


def identity(tools: Iterable[Tool]) -> dict[str, str]:
    """Each tool's own first line on its version, by the tool's name."""
    lines: dict[str, str] = {}
    for tool in tools:
        words = tool.words()
        if words:
            lines[tool.title] = _first_line([*words, "--version"])
    return lines


def _first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout.splitlines() or [""])[0].strip()
