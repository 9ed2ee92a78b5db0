"""Has a source package fetched by cargo and takes it apart.

Cargo is asked like any program's build would ask it, so that its settings, mirrors and proxies hold. What it keeps of a
package is the very file whose SHA-256 the catalogue pins.
"""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path

from freestone.allocators.peers import execution, toolchain
from freestone.allocators.peers.catalogue import Package
from freestone.allocators.peers.errors import SourceError, Unreachable
from freestone.allocators.peers.execution import Command, CommandFailed
from freestone.records import cached

_MANIFEST = """\
[package]
name = "freestone-peer-source"
version = "0.0.0"
edition = "2018"
publish = false

[lib]
path = "lib.rs"

[dependencies]
{name} = "={version}"

[workspace]
"""
_NO_NETWORK = re.compile(
    r"resolve host|could(?: not|n't) connect|connection|timed? ?out|network|unreachable|offline mode"
)


def unpack(package: Package, work: Path, log: Path) -> Path:
    """The source of a package, unpacked below ``work``.

    Args:
        package: with its pinned checksum.
        work: an empty folder to work in.
        log: what cargo says is added here.

    Raises:
        Unreachable: cargo did not reach the registry.
        SourceError: cargo is missing, the registry lacks the package, or its checksum differs.
        CommandFailed: the disk is full.
        OSError: the folder cannot be written.
    """
    archive = kept(package)
    if archive is None:
        refusal = _fetch(package, work, log)
        archive = kept(package)
        # What is asked of cargo is one package; that others which it names cannot be had does not matter.
        if archive is None:
            raise refusal or SourceError(_no_match(package))
    into = work / "source"
    try:
        with tarfile.open(archive, "r:gz") as tar:
            # Python before 3.11.4 knows no filters; the checksum has vouched for the content already.
            tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _path: member)
            tar.extractall(into)
    except (tarfile.TarError, EOFError) as error:
        raise SourceError(f"{archive} is no source package: {error}") from None
    (folder,) = into.iterdir()
    return folder


def kept(package: Package) -> Path | None:
    """The file that cargo keeps of a package it has fetched before, if its checksum is the pinned one."""
    return next((file for file in _files(package) if _sha256(file) == package.sha256), None)


def _no_match(package: Package) -> str:
    files = _files(package)
    if not files:
        return f"cargo fetched {package} and keeps no file of it in {_cargo_home() / 'registry' / 'cache'}"
    return (
        f"{package} has another checksum than the one pinned: {files[0]} has SHA-256 {_sha256(files[0])}, expected "
        f"{package.sha256}; remove that file and try again, and do not trust it if it stays so"
    )


def _files(package: Package) -> list[Path]:
    """What cargo keeps under the package's name, one file for each registry it was fetched from."""
    return sorted((_cargo_home() / "registry" / "cache").glob(f"*/{package.name}-{package.version}.crate"))


def _cargo_home(environment: Mapping[str, str] = os.environ) -> Path:
    named = environment.get("CARGO_HOME")
    return Path(named) if named else cached.home(environment) / ".cargo"


def _fetch(package: Package, work: Path, log: Path) -> SourceError | None:
    """Have cargo fetch a package; what kept it from doing so, or None."""
    cargo = toolchain.CARGO.words()
    if cargo is None:
        return SourceError(f"no cargo, which fetches {package}; {toolchain.remedy(toolchain.CARGO)}")
    project = work / "fetch"
    project.mkdir()
    (project / "Cargo.toml").write_text(_MANIFEST.format(name=package.name, version=package.short_version))
    (project / "lib.rs").write_text("")
    # No colour and no progress: what it says is read below.
    environment = execution.environment(work, {"CARGO_TERM_COLOR": "never", "CARGO_TERM_PROGRESS_WHEN": "never"})
    try:
        execution.run([Command((*cargo, "fetch"), project)], jobs=1, log=log, environment=environment)
    except CommandFailed as error:
        if error.disk_full:
            raise
        return _refusal(package, log)
    return None


def _refusal(package: Package, log: Path) -> SourceError:
    """What cargo says went wrong: the last of its causes, or the error itself where it gives none."""
    text = log.read_text(encoding="utf-8", errors="replace")
    said = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("$ ")]
    errors = [line.removeprefix("error: ") for line in said if line.startswith("error: ")]
    last = said[-1] if said else "cargo said nothing"
    cause = last if "Caused by:" in said or not errors else errors[0]
    if _NO_NETWORK.search(text.lower()):
        return Unreachable(
            f"{package} cannot be fetched, the registry is not reached: {cause[:200]}; try again with a network; "
            f"full log: {log}"
        )
    return SourceError(f"{package} cannot be fetched: {cause[:200]}; full log: {log}")


def _sha256(file: Path) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
