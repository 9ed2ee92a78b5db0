"""Writes what is in each package of dist: ``dist/freestone-VERSION.spdx.json``, a document of SPDX 2.3.

Usage: ``PYTHONPATH=tools python -m bill_of_materials [--dist dist]``

Of every package it has the checksum, the allocator if it is in it, the C library and the compiler's in its static
programs, what it holds of others, what those say that they are made of, and what it asks for, at the versions of
tools/constraints.txt and Cargo.lock; of the report's pages the scripts in them.
Licences are those that the parts state where they are installed; what states none says NOASSERTION. The exit status is
1 where dist has no package, or the document would not be right: one line says why.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

from spdx_tools.spdx.model import Document
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
from spdx_tools.spdx.writer.json.json_writer import write_document_to_file

import freestone
from bill_of_materials import dist, embedded, python_parts
from bill_of_materials.dist import Shipped
from bill_of_materials.document import document
from bill_of_materials.part import Part

REPOSITORY = Path(__file__).resolve().parents[2]
NOT_OF_USERS = ("test", "lint", "packages")
"""Extras of those who work on Freestone."""


class Failure(RuntimeError):
    """There is no bill; the message is one line."""


def read(folder: Path) -> list[Shipped]:
    """The packages of a folder.

    Raises:
        Failure: it has none.
    """
    found = [dist.read(file) for file in sorted(folder.glob("*")) if file.is_file()]
    packages = [each for each in found if each is not None]
    if not packages:
        raise Failure(f"{folder} has no package: make packages")
    return packages


def bill(packages: Sequence[Shipped], version: str, project: dict[str, object], constraints: str) -> Document:
    """The bill of packages, of a project as its pyproject.toml has it."""
    versions = python_parts.locked(constraints)
    wanted: dict[str, list[Part]] = {}
    optional: dict[str, list[Part]] = {}
    for each in packages:
        always, extras = python_parts.requirements(each.metadata)
        names = python_parts.with_theirs(always)
        for_extras = [one for extra, those in extras.items() if extra not in NOT_OF_USERS for one in those]
        more = [name for name in python_parts.with_theirs(for_extras) if name not in names]
        wanted[each.name] = [python_parts.part_named(name, versions) for name in names]
        optional[each.name] = [python_parts.part_named(name, versions) for name in more]
    authors: list[dict[str, str]] = project["authors"]  # type: ignore[assignment]
    return document(
        version,
        packages,
        wanted,
        optional,
        embedded.of_pages(),
        licence=str(project["license"]),
        author=authors[0]["name"],
        seconds=float(os.environ.get("SOURCE_DATE_EPOCH", time.time())),
    )


def write(made: Document, target: Path) -> None:
    """Writes a bill once it is known to be right.

    Raises:
        Failure: it is not as SPDX wants it.
    """
    wrong = validate_full_spdx_document(made)
    if wrong:
        raise Failure(f"{len(wrong)} things are not as SPDX wants them; the first: {wrong[0].validation_message}")
    write_document_to_file(made, str(target), validate=False)


def main(arguments: list[str] | None = None) -> int:
    """Parses, reads, writes; prints how many packages and parts the bill has."""
    parser = argparse.ArgumentParser(prog="bill_of_materials", description="Write what is in each package of dist.")
    parser.add_argument("--dist", type=Path, default=REPOSITORY / "dist", help="the folder; default: dist")
    options = parser.parse_args(arguments)
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    constraints = (REPOSITORY / "tools" / "constraints.txt").read_text(encoding="utf-8")
    version = freestone.__version__
    target = options.dist / f"freestone-{version}.spdx.json"
    try:
        packages = read(options.dist)
        made = bill(packages, version, project, constraints)
        write(made, target)
    except Failure as failure:
        print(f"freestone: no bill of materials: {failure}", file=sys.stderr)
        return 1
    print(f"{target}  {len(packages)} packages, {len(made.packages) - len(packages)} parts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
