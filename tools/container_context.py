#!/usr/bin/env python3
"""Lays out what an image with libfreestone is built from: its Dockerfile, which is packaging/container/Containerfile,
beside the libraries.

Usage: ``python3 tools/container_context.py [--dist dist] [--out build/container]``

The libraries are those of the wheels: of the one for the oldest glibc, which newer ones load as well, and of the one
for musl. The exit status is 1 where dist does not have both; one line says what to do.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
CONTAINERFILE = REPOSITORY / "packaging" / "container" / "Containerfile"
LAID_OUT = "Dockerfile"
"""What docker looks for; podman and buildah read it as well."""
IN_WHEEL = "freestone/_native/libfreestone.so"
LIBRARIES = {"manylinux": "libfreestone.so", "musllinux": "libfreestone-musl.so"}
"""By the kind of a wheel, what its library is called in the image."""


class Failure(RuntimeError):
    """There is nothing to build an image from; the message is one line."""


def oldest(names: Iterable[str], kind: str) -> str | None:
    """Of wheels by their names, the one for the oldest C library of a kind, ``manylinux`` or ``musllinux``."""
    floors = {name: match for name in names if (match := re.search(rf"-{kind}_(\d+)_(\d+)_\w+\.whl$", name))}
    return min(floors, key=lambda name: (int(floors[name][1]), int(floors[name][2])), default=None)


def lay_out(dist: Path, out: Path) -> None:
    """Fills a folder with the Containerfile and the libraries; what was in it goes.

    Raises:
        Failure: a wheel is not there.
    """
    names = [file.name for file in dist.glob("freestone-*.whl")]
    chosen = {kind: oldest(names, kind) for kind in LIBRARIES}
    absent = [kind for kind, name in chosen.items() if name is None]
    if absent:
        raise Failure(f"{dist} has no {' and no '.join(absent)} wheel: make wheel")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    shutil.copy(CONTAINERFILE, out / LAID_OUT)
    for kind, name in chosen.items():
        with zipfile.ZipFile(dist / str(name)) as wheel:
            (out / LIBRARIES[kind]).write_bytes(wheel.read(IN_WHEEL))


def main(arguments: list[str] | None = None) -> int:
    """Parses, lays out, says what to type next."""
    parser = argparse.ArgumentParser(description="Lay out what an image with libfreestone is built from.")
    parser.add_argument("--dist", type=Path, default=REPOSITORY / "dist", help="where the wheels are; default: dist")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "build" / "container", help="default: build/container")
    options = parser.parse_args(arguments)
    try:
        lay_out(options.dist, options.out)
    except Failure as failure:
        print(f"freestone: no image: {failure}", file=sys.stderr)
        return 1
    print(f"podman build --tag freestone {options.out}      # or docker, or buildah")
    return 0


if __name__ == "__main__":
    sys.exit(main())
