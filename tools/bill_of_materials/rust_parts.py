"""Rust's crates: what a crate is built with, and what a library that is written in Rust was made of."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterator
from typing import Any, Final

from bill_of_materials.part import Part, licence_expression

LICENCES: Final = dict.fromkeys(("cc", "find-msvc-tools", "shlex"), "MIT OR Apache-2.0")
"""What the manifests of the crates say that ours is built with: a lock names no licence."""


def needs(manifest: str) -> Iterator[Part]:
    """What a manifest asks for: at no version, cargo takes the newest of the range."""
    table = tomllib.loads(manifest)
    for name in [*table.get("dependencies", {}), *table.get("build-dependencies", {})]:
        yield Part(name, None, "rust", LICENCES.get(name))


def locked(lock: str) -> Iterator[Part]:
    """What a ``Cargo.lock`` has from a registry: all that is asked for, with what this asks for in turn."""
    for each in tomllib.loads(lock).get("package", []):
        if "source" in each:
            yield Part(each["name"], each["version"], "rust", LICENCES.get(each["name"]))


def of_one_version(parts: Collection[Part]) -> Iterator[Part]:
    """Parts of any kind, without what a manifest asks for where a lock says the version."""
    known = {each.name for each in parts if each.kind == "rust" and each.version}
    return (each for each in parts if each.kind != "rust" or each.version or each.name not in known)


def of_bill(text: str) -> Iterator[Part]:
    """The crates in a bill of CycloneDX that a Python package brings of its native library.

    It also names what is for other systems, and what only the build has used: which of them is in the file it does not
    say.
    """
    for each in json.loads(text).get("components", []):
        if each.get("scope") != "excluded" and str(each.get("purl", "")).startswith("pkg:cargo/"):
            said = " AND ".join(_said(one) for one in each.get("licenses", []))
            yield Part(each["name"], each.get("version"), "rust", licence_expression(said), said)


def _said(licence: dict[str, Any]) -> str:
    alone = licence.get("license", {})
    return str(licence.get("expression") or alone.get("id") or alone.get("name") or "")
