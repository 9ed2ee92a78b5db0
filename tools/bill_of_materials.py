"""Writes what is in each package of dist: ``dist/freestone-VERSION.cdx.json``, a bill of CycloneDX.

Usage: ``.venv/bin/python tools/bill_of_materials.py [--dist dist]``

cyclonedx-py lists the Python packages that Freestone asks for, as installed here, with their licences. Added are the
files of dist with their checksums; in each, the allocator, the C library and the compiler's in its static programs, the
Python packages that it holds with their own bills, the crates of its Cargo.lock and the packages that Debian's asks
for; and the scripts in pages of a report. Exit status 1: dist has no package, or the bill is not valid.
"""

from __future__ import annotations

import argparse
import email
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.spdx import is_expression
from cyclonedx.validation.json import JsonStrictValidator
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import freestone
from freestone.allocators import elf

REPOSITORY = Path(__file__).resolve().parents[1]
NOT_OF_USERS = ("test", "lint", "packages")
"""Extras of those who work on Freestone."""
KINDS = (".whl", ".tar.gz", ".deb", ".crate")
ALLOCATOR = re.compile(r"(^|/)(libfreestone\.(so[.\d]*|a)|src/allocate\.c)$")
C_LIBRARIES = {"glibc": "LGPL-2.1-or-later", "musl": "MIT"}
COMPILERS = ("libgcc", "GPL-3.0-or-later WITH GCC-exception-3.1")
"""gcc's own library in a static program: the unwinder, and arithmetic that a processor lacks."""
OF_COMPILER = re.compile(r"_Unwind_\w+|__gcc_\w+|__register_frame\w*")
OF_CRATES = {"cc": "MIT OR Apache-2.0", "find-msvc-tools": "MIT OR Apache-2.0", "shlex": "MIT OR Apache-2.0"}
SCRIPT = re.compile(rb"npm/((?:@[a-z0-9-]+/)?[a-z0-9._-]+)@(\d+\.\d+\.\d+)(?![\w.-])")
"""The address of a script within vl-convert-python's native library, of which pages are made."""
OF_SCRIPTS = (
    (r"vega(-.*)?", "BSD-3-Clause"),
    (r"d3-.*|topojson-client|internmap|delaunator", "ISC"),
    (r"robust-predicates", "Unlicense"),
    (r"fast-.*|clone|lodash\..*|json-stringify-pretty-compact", "MIT"),
)
"""Names of npm's packages, as regular expressions, with their licences: the library leaves the texts out."""

Entry = dict[str, Any]


class Failure(RuntimeError):
    """There is no bill; the message is one line."""


def component(name: str, version: str | None = None, licence: str | None = None, **more: object) -> Entry:
    """Return a part of a bill; a licence that is no expression of SPDX is told in its own words."""
    entry: Entry = {"type": "library", "name": name, **({"version": version} if version else {}), **more}
    if licence:
        entry["licenses"] = [{"expression": licence} if is_expression(licence) else {"license": {"name": licence}}]
    return entry


def is_package(file: Path) -> bool:
    """Return whether a file of dist is a package."""
    return file.name.endswith(KINDS)


def members(file: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files in a package, with their contents; links are left out."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            yield from ((name, archive.read(name)) for name in archive.namelist())
        return
    packed = file.read_bytes()
    if file.suffix == ".deb":
        packed = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(file)], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                yield member.name.removeprefix("./"), content.read()


def linked(content: bytes, *, musl: bool) -> dict[str, str]:
    """Return what a static program holds of others, with licences. musl leaves no mark, the package says it."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        facts = elf.inspect(file.name)
    library = "musl" if musl else "glibc" if facts.libc == "glibc" else None
    if not facts.static or library is None:
        return {}
    return {library: C_LIBRARIES[library]} | (dict([COMPILERS]) if holds_compilers(content) else {})


def holds_compilers(content: bytes) -> bool:
    """Return whether a static program holds the compiler's own library; one that is stripped is taken to."""
    try:
        tables = [each for each in ELFFile(io.BytesIO(content)).iter_sections() if isinstance(each, SymbolTableSection)]
    except ELFError:
        return True
    symbols = [each for table in tables for each in table.iter_symbols()]
    return not symbols or any(OF_COMPILER.match(each.name) for each in symbols)


def read(file: Path) -> tuple[Entry, str]:
    """Return the entry of a package with all that is in it, and Python's metadata of Freestone if it has any."""
    parts: dict[str, Entry] = {}
    bills: dict[str, list[Entry]] = {}
    own_metadata = ""
    for name, content in members(file):
        top = name.count("/") == 1
        if ALLOCATOR.search(name):
            parts["libfreestone"] = component("libfreestone", freestone.__version__, "MIT")
        if re.search(r"(^|/)[^/]+\.dist-info/METADATA$", name) or (top and name.endswith("/PKG-INFO")):
            message = email.message_from_bytes(content)
            own = str(canonicalize_name(str(message["Name"])))
            if own == "freestone":
                own_metadata = content.decode()
            else:
                licence = str(message["License-Expression"] or message["License"] or "").strip().partition("\n")[0]
                parts[own] = component(own, str(message["Version"]), licence)
        elif inner := re.search(r"(?:^|/)([^/]+)-[^/-]+\.dist-info/sboms/[^/]+\.cyclonedx\.json$", name):
            said = json.loads(content).get("components", [])
            bills[str(canonicalize_name(inner.group(1)))] = [
                _plain(one) for one in said if one.get("scope") != "excluded"
            ]
        elif top and name.endswith("/Cargo.toml"):
            manifest = tomllib.loads(content.decode())
            for own in (*manifest.get("dependencies", {}), *manifest.get("build-dependencies", {})):
                parts.setdefault(own, component(own, None, OF_CRATES.get(own)))
        elif top and name.endswith("/Cargo.lock"):
            for crate in tomllib.loads(content.decode()).get("package", []):
                if "source" in crate:  # of a registry
                    parts[crate["name"]] = component(crate["name"], crate["version"], OF_CRATES.get(crate["name"]))
        elif content.startswith(b"\x7fELF"):
            for own, licence in linked(content, musl="musllinux" in file.name).items():
                parts[own] = component(own, None, licence)
    if file.suffix == ".deb":
        parts |= {name: component(name, purl=f"pkg:deb/debian/{name}") for name in debian_needs(file)}
    for owner, those in bills.items():
        parts.setdefault(owner, component(owner))["components"] = those
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    entry = component(file.name, hashes=[{"alg": "SHA-256", "content": digest}], **{"bom-ref": file.name})
    return entry | {"type": "file", "components": [parts[name] for name in sorted(parts)]}, own_metadata


def _plain(said: Entry) -> Entry:
    """Return a part of another bill by its name, version and licences, without references into that bill."""
    return {key: said[key] for key in ("type", "name", "version", "purl", "licenses") if key in said}


def debian_needs(file: Path) -> list[str]:
    """Return the names that a Debian package asks for."""
    asked = ["dpkg-deb", "--field", str(file), "Depends"]
    depends = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    return re.findall(r"(?:^|[,|]\s*)([a-z0-9][a-z0-9+.-]*)", depends.strip())


def scripts(content: bytes, vega_lite: str) -> list[Entry]:
    """Return the scripts in a library's bytes; of several Vega-Lites the one of this version, such as ``6.4``."""
    found = sorted({(name.decode(), version.decode()) for name, version in SCRIPT.findall(content)})
    chosen = [(name, version) for name, version in found if name != "vega-lite" or version.startswith(f"{vega_lite}.")]
    licences = {name: next((one for names, one in OF_SCRIPTS if re.fullmatch(names, name)), None) for name, _ in chosen}
    return [component(name, version, licences[name]) for name, version in chosen]


def of_pages() -> list[Entry]:
    """Return the scripts of pages that are written with what is installed here."""
    import vl_convert

    from freestone.reports.vega import VEGA_LITE

    (library,) = Path(vl_convert.__file__).parent.glob("*.so")
    return scripts(library.read_bytes(), VEGA_LITE.removeprefix("v"))


def requirements(text: str) -> tuple[set[str], set[str]]:
    """Return the canonical names that Freestone asks for, always and by an extra of users."""
    always: set[str] = set()
    optional: set[str] = set()
    for line in email.message_from_string(text).get_all("Requires-Dist", []):
        wanted = Requirement(str(line))
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", str(wanted.marker or ""))
        if extra is None or extra[1] not in NOT_OF_USERS:
            (always if extra is None else optional).add(str(canonicalize_name(wanted.name)))
    return always, optional


def installed() -> Entry:
    """Return the bill of everything that is installed here, as cyclonedx-py makes it."""
    command = [
        sys.executable,
        "-m",
        "cyclonedx_py",
        "environment",
        "--output-reproducible",
        "--no-validate",
        sys.executable,
    ]
    done = subprocess.run([*command, "--pyproject", str(REPOSITORY / "pyproject.toml")], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"cyclonedx-py ended with {done.returncode}: {(done.stderr.splitlines() or [''])[-1]}")
    made: Entry = json.loads(done.stdout)
    return made


def reached(names: Iterable[str]) -> set[str]:
    """Return packages, and all that they ask for in turn as installed here, by canonical names."""
    left, found = list(names), set[str]()
    while left:
        if (name := left.pop()) not in found:
            found.add(name)
            with suppress(metadata.PackageNotFoundError):
                wanted = map(Requirement, metadata.requires(name) or [])
                left += [
                    str(canonicalize_name(each.name))
                    for each in wanted
                    if each.marker is None or each.marker.evaluate({"extra": ""})
                ]
    return found


def bill(folder: Path) -> Entry:
    """Return the bill of the packages of a folder.

    Raises:
        Failure: it has none.
    """
    packages = [read(file) for file in sorted(folder.glob("*")) if is_package(file)]
    if not packages:
        raise Failure(f"{folder} has no package: make packages")
    made = installed()
    root = made["metadata"]["component"]
    root["version"] = freestone.__version__
    of_files = {entry["bom-ref"]: requirements(own) for entry, own in packages}
    always = reached(name for wanted, _ in of_files.values() for name in wanted)
    optional = reached(name for _, wanted in of_files.values() for name in wanted) - always
    every = {str(canonicalize_name(each["name"])): each for each in made["components"]}
    kept = {name: each for name, each in every.items() if name in always | optional}
    for name, each in kept.items():
        each["scope"] = "required" if name in always else "optional"
        if name == "vl-convert-python":
            each["components"] = of_pages()
    made["components"] = [entry for entry, _ in packages] + list(kept.values())
    made["dependencies"] = [{"ref": root["bom-ref"], "dependsOn": list(of_files)}] + [
        {"ref": file, "dependsOn": sorted(kept[name]["bom-ref"] for name in reached(wanted | more) & kept.keys())}
        for file, (wanted, more) in of_files.items()
    ]
    return made


def write(made: Entry, target: Path) -> None:
    """Write a bill.

    Raises:
        Failure: it is not as CycloneDX wants it.
    """
    text = json.dumps(made, indent=1)
    if wrong := JsonStrictValidator(SchemaVersion.from_version(made["specVersion"])).validate_str(text):
        raise Failure(f"it is not as CycloneDX wants it: {str(wrong).splitlines()[0]}")
    target.write_text(text + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Read packages and write their bill; print how many packages and parts it has."""
    parser = argparse.ArgumentParser(prog="bill_of_materials", description="Write what is in each package of dist.")
    parser.add_argument("--dist", type=Path, default=REPOSITORY / "dist", help="the folder; default: dist")
    options = parser.parse_args(arguments)
    target = options.dist / f"freestone-{freestone.__version__}.cdx.json"
    try:
        made = bill(options.dist)
        write(made, target)
    except Failure as failure:
        print(f"freestone: no bill of materials: {failure}", file=sys.stderr)
        return 1
    packages = sum(each["type"] == "file" for each in made["components"])
    print(f"{target}  {packages} packages, {len(made['components']) - packages} parts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
