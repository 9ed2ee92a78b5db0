"""Source packages: fetched by cargo, held to their checksum, and what cargo's refusals become."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.allocators.peers import SourceError, Unreachable, execution, sources
from freestone.allocators.peers.catalogue import Package

Cargo = Callable[[str], None]


def archive(files: dict[str, str]) -> bytes:
    """A package file as the registry has it."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"bump-sys-0.1.0+1.0/{name}")
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return content.getvalue()


CONTENT = archive({"bump.c": "int bump;\n"})
PACKAGE = Package(name="bump-sys", version="0.1.0+1.0", sha256=hashlib.sha256(CONTENT).hexdigest())
KEPT = "registry/cache/registry-0123456789abcdef/bump-sys-0.1.0+1.0.crate"


@pytest.fixture(autouse=True)
def cargo_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "cargo"
    monkeypatch.setenv("CARGO_HOME", str(home))
    (home / KEPT).parent.mkdir(parents=True)
    return home


@pytest.fixture
def cargo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cargo:
    """``cargo(script)`` stands for cargo."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def write(script: str) -> None:
        program = folder / "cargo"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return write


def unpack(tmp_path: Path, package: Package = PACKAGE) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return sources.unpack(package, work, tmp_path / "log")


def test_what_cargo_fetches_is_unpacked(tmp_path: Path, cargo: Cargo) -> None:
    (tmp_path / "served").write_bytes(CONTENT)
    wants = 'grep -q \'^bump-sys = "=0.1.0"$\' Cargo.toml && test "$1" = fetch'
    cargo(f'{wants} && cp {tmp_path}/served "$CARGO_HOME/{KEPT}"')
    assert (unpack(tmp_path) / "bump.c").read_text() == "int bump;\n"


def test_cargo_is_not_asked_again(tmp_path: Path, cargo: Cargo, cargo_home: Path) -> None:
    cargo("exit 1")
    (cargo_home / KEPT).write_bytes(CONTENT)
    assert sources.kept(PACKAGE) == cargo_home / KEPT
    assert (unpack(tmp_path) / "bump.c").is_file()


def test_a_package_with_another_checksum_is_not_used(tmp_path: Path, cargo: Cargo, cargo_home: Path) -> None:
    other = archive({"bump.c": "int something_else;\n"})
    (tmp_path / "served").write_bytes(other)
    cargo(f'cp {tmp_path}/served "$CARGO_HOME/{KEPT}"')
    with pytest.raises(SourceError) as caught:
        unpack(tmp_path)
    message = str(caught.value)
    assert message.startswith("bump-sys 0.1.0 has another checksum than the one pinned: ")
    assert hashlib.sha256(other).hexdigest() in message
    assert PACKAGE.sha256 in message
    assert str(cargo_home / KEPT) in message
    assert not (tmp_path / "work" / "source").exists()


def test_a_right_file_of_another_registry_is_taken(tmp_path: Path, cargo: Cargo, cargo_home: Path) -> None:
    cargo("exit 1")
    (cargo_home / KEPT).write_bytes(b"damaged")
    mirror = cargo_home / "registry/cache/mirror" / Path(KEPT).name
    mirror.parent.mkdir()
    mirror.write_bytes(CONTENT)
    assert (unpack(tmp_path) / "bump.c").is_file()


def test_without_cargo_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceError, match=r"^no cargo, which fetches bump-sys 0\.1\.0; install"):
        unpack(tmp_path)


NOT_REACHED = """\
    Updating index
warning: spurious network error (3 tries remaining): [7] Could not connect to server
error: failed to get `bump-sys` as a dependency of package `freestone-peer-source v0.0.0`

Caused by:
  failed to download from `sparse`

Caused by:
  [6] Could not resolve host: registry
"""
OFFLINE = """\
error: no matching package named `bump-sys` found
location searched: the index
required by package `freestone-peer-source v0.0.0`
As a reminder, you're using offline mode (--offline) which can sometimes cause surprising resolution failures
"""
NO_SUCH = """\
    Updating index
error: no matching package named `bump-sys` found
location searched: the index
required by package `freestone-peer-source v0.0.0`
"""


@pytest.mark.parametrize(
    ("said", "kind", "told"),
    [
        (NOT_REACHED, Unreachable, "the registry is not reached: [6] Could not resolve host: registry; try again with"),
        (
            OFFLINE,
            Unreachable,
            "the registry is not reached: no matching package named `bump-sys` found; try again with",
        ),
        (NO_SUCH, SourceError, "cannot be fetched: no matching package named `bump-sys` found; full log: "),
        ("", SourceError, "cannot be fetched: cargo said nothing; full log: "),
    ],
)
def test_a_refusal_is_one_line_with_its_cause(
    tmp_path: Path, cargo: Cargo, said: str, kind: type[SourceError], told: str
) -> None:
    cargo(f"cat <<'END' >&2\n{said}END\nexit 101")
    with pytest.raises(SourceError) as caught:
        unpack(tmp_path)
    assert type(caught.value) is kind
    assert told in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_full_disk_under_cargo_is_told_apart(tmp_path: Path, cargo: Cargo) -> None:
    cargo("echo 'error: No space left on device (os error 28)' >&2; exit 101")
    with pytest.raises(execution.CommandFailed) as caught:
        unpack(tmp_path)
    assert caught.value.disk_full


def test_that_another_package_cannot_be_had_does_not_matter(tmp_path: Path, cargo: Cargo) -> None:
    (tmp_path / "served").write_bytes(CONTENT)
    cargo(f'cp {tmp_path}/served "$CARGO_HOME/{KEPT}"; echo "error: failed to download windows-core" >&2; exit 101')
    assert (unpack(tmp_path) / "bump.c").is_file()


def test_a_cargo_that_keeps_no_file_is_one_line(tmp_path: Path, cargo: Cargo) -> None:
    cargo("exit 0")
    with pytest.raises(SourceError, match=r"keeps no file of it in .*/registry/cache"):
        unpack(tmp_path)


def test_a_package_that_is_no_archive_is_one_line(tmp_path: Path, cargo: Cargo, cargo_home: Path) -> None:
    cargo("exit 1")
    (cargo_home / KEPT).write_bytes(b"no archive")
    package = PACKAGE.model_copy(update={"sha256": hashlib.sha256(b"no archive").hexdigest()})
    with pytest.raises(SourceError, match="is no source package"):
        unpack(tmp_path, package)
