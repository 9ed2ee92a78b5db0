#!/usr/bin/env python3
"""Builds the Debian packages of this tree, by packaging/deb, into dist.

Usage: ``python3 tools/build_deb.py [--out FOLDER]``

Works in a copy, build/deb/freestone-VERSION, where packaging/deb is called debian. Python packages that the lab needs
are fetched by pip, in the versions of tools/constraints.txt, for the system's own Python. Whoever builds packages for
others says who answers for them, as for Debian's own tools: DEBEMAIL, and DEBFULLNAME for the name. The exit status is
1 where something is missing or fails: one line says what, and names the log.
"""

from __future__ import annotations

import argparse
import email.utils
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCES = ("CHANGELOG.md", "CMakeLists.txt", "LICENSE", "allocator", "cmake", "docs", "probes", "src", "workloads")
"""What is built; nothing else of the tree goes into the copy."""
NOT_SOURCES = ("__pycache__", "_native", "*.egg-info", "images")
SYSTEM_PYTHON = "/usr/bin/python3"
NOBODY = ("The Freestone authors", "no-mail@freestone.invalid")
"""Name and address where nobody has said who answers for the packages: mail to .invalid can reach nobody (RFC 6761)."""


class Failure(RuntimeError):
    """The packages cannot be built; the message is one line."""


def version_of(init: str) -> str:
    """The version that the package's ``__init__.py`` gives.

    Raises:
        Failure: there is none.
    """
    match = re.search(r'^__version__ = "(.+)"$', init, re.MULTILINE)
    if match is None:
        raise Failure('src/freestone/__init__.py has no line __version__ = "..."')
    return match.group(1)


def debian_version(version: str) -> str:
    """A version of PEP 440 as Debian orders it: a, b, rc and dev come before the release, by a tilde."""
    return re.sub(r"\.?(a|b|rc|dev)(\d+)", r"~\1\2", version)


def maintainer(environment: Mapping[str, str]) -> str:
    """Who answers for the packages, as ``Name <address>``: by DEBEMAIL, which may hold both, and DEBFULLNAME.

    Raises:
        Failure: DEBEMAIL holds no address.
    """
    given = environment.get("DEBEMAIL", "").strip()
    name, address = email.utils.parseaddr(given)
    if given and not re.fullmatch(r"[^@\s<>]+@[^@\s<>]+", address):
        raise Failure(f"DEBEMAIL is '{given}', which is no address: you@somewhere.org, or 'Name <you@somewhere.org>'")
    name = environment.get("DEBFULLNAME", "").strip() or name or NOBODY[0]
    return f"{name} <{address or NOBODY[1]}>"


def control(text: str, maintained_by: str) -> str:
    """debian/control with who answers for the packages.

    Raises:
        Failure: it has no place for that.
    """
    made, places = re.subn(r"^Maintainer:.*$", lambda _: f"Maintainer: {maintained_by}", text, flags=re.MULTILINE)
    if places != 1:
        raise Failure(f"packaging/deb/control has {places} lines 'Maintainer:', and should have one")
    return made


def changelog(version: str, maintained_by: str, seconds: float) -> str:
    """debian/changelog with one entry, at a time in seconds since 1970."""
    when = email.utils.formatdate(seconds)
    return (
        f"freestone ({debian_version(version)}) unstable; urgency=medium\n\n"
        f"  * What has changed: /usr/share/doc/libfreestone0/docs/CHANGELOG.md.\n\n -- {maintained_by}  {when}\n"
    )


def copyright_page(beginning: str, licence: str, vendored: Mapping[str, str]) -> str:
    """debian/copyright: its beginning, the project's licence, and those of what comes with it, by distribution."""
    texts = [("MIT", licence), *((f"of-{name}", text) for name, text in sorted(vendored.items()))]
    files = [f"Files: vendored/{name}*\nCopyright: see the licence\nLicense: of-{name}\n" for name in sorted(vendored)]
    licences = [f"License: {name}\n{_indented(text)}" for name, text in texts]
    return "\n".join([beginning.rstrip("\n") + "\n", *files, *licences])


def licence_text(text: str) -> str:
    """A licence as a page of copyright has it: one that every Debian system has is named and not repeated."""
    if re.search(r"Apache License\s+Version 2\.0", text):
        return "Apache License, Version 2.0: /usr/share/common-licenses/Apache-2.0"
    return text


def _indented(text: str) -> str:
    return "".join(f" {line}\n" if line.strip() else " .\n" for line in text.strip().splitlines())


def requirements(pyproject: str) -> list[str]:
    """What the lab cannot do without, as pip reads it."""
    return list(tomllib.loads(pyproject)["project"]["dependencies"])


def distribution_name(folder: str) -> str:
    """The distribution of a ``NAME-VERSION.dist-info`` folder."""
    return folder.rsplit("-", 1)[0] if "-" in folder else folder


def licences(site: Path) -> dict[str, str]:
    """The licence texts of the distributions in a folder, by name.

    Raises:
        Failure: one comes without a text, so that it cannot be passed on.
    """
    found = {}
    for info in sorted(site.glob("*.dist-info")):
        files = [f for f in info.rglob("*") if f.is_file() and re.match(r"(licen[cs]e|copying|notice)", f.name, re.I)]
        if not files:
            raise Failure(f"{info.name} brings no licence text: it cannot be part of a package")
        found[distribution_name(info.name.removesuffix(".dist-info"))] = "\n\n".join(
            licence_text(f.read_text(encoding="utf-8", errors="replace")) for f in sorted(files)
        )
    return found


def run(command: Sequence[str], log: Path, folder: Path, environment: Mapping[str, str]) -> None:
    """Runs a command in a folder; what it says goes to the end of the log.

    Raises:
        Failure: the program is missing or failed.
    """
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(command)}\n")
        file.flush()
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, stdout=file, stderr=subprocess.STDOUT, check=False
            )
        except FileNotFoundError:
            raise Failure(
                f"{command[0]} is missing; as root: {sys.executable} tools/system_packages.py packages"
            ) from None
    if done.returncode != 0:
        last = next((line for line in reversed(log.read_text(errors="replace").splitlines()) if "rror" in line), "")
        raise Failure(f"{command[0]} failed with {done.returncode}, see {log}: {last.strip()}")


def copy_of_tree(work: Path, version: str) -> Path:
    """A copy of what is built, with packaging/deb as its debian folder."""
    copy = work / f"freestone-{version}"
    shutil.rmtree(work, ignore_errors=True)
    copy.mkdir(parents=True)
    for name in SOURCES:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns(*NOT_SOURCES), symlinks=True)
        else:
            shutil.copy(source, copy / name)
    shutil.copytree(REPOSITORY / "packaging" / "deb", copy / "debian")
    return copy


def vendor(site: Path, log: Path) -> None:
    """Puts what the lab needs into a folder, for the system's Python."""
    version = subprocess.run(
        [SYSTEM_PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    wanted = requirements((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--target", str(site), "--no-compile"]
    where = ["--python-version", version, "--only-binary=:all:", "-c", str(REPOSITORY / "tools" / "constraints.txt")]
    run([*pip, *where, *wanted], log, REPOSITORY, os.environ)
    shutil.rmtree(site / "bin", ignore_errors=True)


def build(out: Path) -> list[Path]:
    """The packages, built and looked over by lintian, in a folder.

    Raises:
        Failure: something is missing, or failed.
    """
    version = version_of((REPOSITORY / "src" / "freestone" / "__init__.py").read_text(encoding="utf-8"))
    maintained_by = maintainer(os.environ)
    work = REPOSITORY / "build" / "deb"
    copy = copy_of_tree(work, version)
    log = work / "log"
    vendor(copy / "vendored", log)
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH", (REPOSITORY / "CHANGELOG.md").stat().st_mtime))
    debian = copy / "debian"
    (debian / "changelog").write_text(changelog(version, maintained_by, seconds), encoding="utf-8")
    told = (debian / "control").read_text(encoding="utf-8")
    (debian / "control").write_text(control(told, maintained_by), encoding="utf-8")
    beginning = (debian / "copyright").read_text(encoding="utf-8")
    licence = (copy / "LICENSE").read_text(encoding="utf-8")
    for name, vendored in {"copyright": {}, "freestone.copyright": licences(copy / "vendored")}.items():
        (debian / name).write_text(copyright_page(beginning, licence, vendored), encoding="utf-8")
    # No packages of debug symbols: a clone's own build has them.
    environment = {**os.environ, "DEB_BUILD_OPTIONS": "noautodbgsym parallel=2", "LC_ALL": "C.UTF-8"}
    environment = {name: value for name, value in environment.items() if name not in ("CFLAGS", "CXXFLAGS", "LDFLAGS")}
    run(["dpkg-buildpackage", "--build=binary", "--no-sign"], log, copy, environment)
    if shutil.which("lintian"):
        (changes,) = work.glob("*.changes")
        run(["lintian", "--allow-root", "--fail-on", "error", str(changes)], log, work, environment)
    else:
        print("freestone: lintian is not installed: the packages were not looked over", file=sys.stderr)
    out.mkdir(parents=True, exist_ok=True)
    for old in [*out.glob("libfreestone*.deb"), *out.glob("freestone_*.deb")]:
        old.unlink()
    return [Path(shutil.copy(package, out)) for package in sorted(work.glob("*.deb"))]


def main(arguments: list[str] | None = None) -> int:
    """Parses, builds, prints a line for each package: its size in KiB and its file."""
    parser = argparse.ArgumentParser(description="Build the Debian packages of this tree.")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "dist", help="where the packages go; default: dist")
    options = parser.parse_args(arguments)
    try:
        packages = build(options.out)
    except Failure as failure:
        print(f"freestone: no Debian packages: {failure}", file=sys.stderr)
        return 1
    for package in packages:
        print(f"{package.stat().st_size // 1024:>8} KiB  {package}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
