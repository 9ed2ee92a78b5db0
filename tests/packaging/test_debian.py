"""The Debian packages, installed and used where there is neither clone nor compiler, and taken away again."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from debian_root import DebianRoot

import freestone

pytestmark = pytest.mark.timeout(1800)  # the first time a Debian system is fetched

SERVES = f"freestone: {freestone.__version__} serves malloc"


def listed(package: Path) -> set[str]:
    """The paths in a package, relative to the root, without folders."""
    text = subprocess.run(["dpkg-deb", "--contents", str(package)], capture_output=True, text=True, check=True).stdout
    return {line.split(" ./", 1)[1].split(" -> ")[0] for line in text.splitlines() if not line.startswith("d")}


def test_each_file_is_in_one_package(debs: dict[str, Path]) -> None:
    files = [file for package in debs.values() for file in listed(package)]
    assert len(files) == len(set(files))
    names = {Path(file).name for file in listed(debs["libfreestone0"])}
    assert {"libfreestone.so.0", "freestone-run", "freestone-run.1.gz"} <= names


def test_the_pages_that_messages_name_are_there(debs: dict[str, Path], repository: Path) -> None:
    """By the very names: docs/guide/deploy.md is /usr/share/doc/freestone/docs/guide/deploy.md."""
    sources = {"freestone": repository / "src" / "freestone", "libfreestone0": repository / "allocator" / "src"}
    for package, folder in sources.items():
        texts = [*folder.rglob("*.py"), *folder.rglob("options.c")]
        said = "".join(re.findall(r'"[^"\n]*"|Documentation: \S+', "".join(file.read_text() for file in texts)))
        named = set(re.findall(r"docs/(?:guide|reference|explanation)/[\w-]+\.md", said))
        assert len(named) > (2 if package == "freestone" else 0)
        assert {f"usr/share/doc/{package}/{page}" for page in named} <= listed(debs[package])
    assert "usr/share/doc/libfreestone0/docs/CHANGELOG.md" in listed(debs["libfreestone0"])


def machine_code(library: Path, folder: Path) -> bytes:
    """What a library executes: its section .text, which no debug information changes."""
    taken = folder / "text"
    command = ["objcopy", "-O", "binary", "--only-section=.text", str(library), str(taken)]
    subprocess.run(command, check=True)
    return taken.read_bytes()


def test_the_packaged_library_is_the_one_that_is_measured(
    debs: dict[str, Path], freestone_library: Path, tmp_path: Path
) -> None:
    subprocess.run(["dpkg-deb", "--extract", str(debs["libfreestone0"]), str(tmp_path)], check=True)
    (packaged,) = tmp_path.rglob("libfreestone.so.0")
    code = machine_code(packaged, tmp_path)
    assert len(code) > 50_000
    assert code == machine_code(freestone_library, tmp_path)


def test_the_library_serves_a_bare_system_and_leaves_nothing(bare_root: DebianRoot, debs: dict[str, Path]) -> None:
    before = bare_root.files()
    bare_root.install([debs["libfreestone0"]])

    served = bare_root.run("freestone-run", "perl", "-e", "print 6 * 7", FREESTONE_OPTIONS="identify=1")
    assert (served.returncode, served.stdout) == (0, "42")
    assert served.stderr.splitlines() == [SERVES]
    assert "libfreestone.so.0" in bare_root.succeed("freestone-run", "--", "cat", "/proc/self/maps")
    assert SERVES not in bare_root.run("perl", "-e", "1", FREESTONE_OPTIONS="identify=1").stderr

    bare_root.succeed("dpkg", "--purge", "libfreestone0")
    assert bare_root.files() == before
    assert "freestone" not in bare_root.succeed("ldconfig", "-p")
    assert bare_root.run("perl", "-e", "print 1").stderr == ""


def test_every_symbol_is_listed_as_older_than_its_version(repository: Path) -> None:
    """One that came with the very version that is built could go again without a word of dpkg-gensymbols."""
    text = (repository / "packaging" / "deb" / "libfreestone0.symbols").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith(" ")]
    assert len(lines) > 70
    assert not [line for line in lines if not re.fullmatch(r" \S+@Base [\d.]+~", line)]


@pytest.mark.parametrize("further", ["", " freestone_that_has_gone@Base 0.1.0~\n"], ids=["as_listed", "gone"])
def test_a_symbol_that_disappears_is_noticed(
    repository: Path, debs: dict[str, Path], tmp_path: Path, further: str
) -> None:
    subprocess.run(["dpkg-deb", "--extract", str(debs["libfreestone0"]), str(tmp_path)], check=True)
    listed_symbols = (repository / "packaging" / "deb" / "libfreestone0.symbols").read_text(encoding="utf-8")
    (tmp_path / "symbols").write_text(listed_symbols + further, encoding="utf-8")
    (library,) = tmp_path.rglob("libfreestone.so.0")
    of_rules = ["-plibfreestone0", "-c4", f"-v{freestone.__version__}"]
    command = [
        "dpkg-gensymbols",
        *of_rules,
        f"-P{tmp_path}",
        f"-e{library}",
        f"-I{tmp_path / 'symbols'}",
        "-O/dev/null",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == bool(further), done.stderr
    assert ("freestone_that_has_gone" in done.stdout + done.stderr) == bool(further)


@pytest.mark.parametrize(
    ("words", "status", "line"),
    [
        (["--", "sh", "-c", "exit 7"], 7, ""),
        ([], 2, "freestone-run: no program given; usage: freestone-run [--] PROGRAM [ARGUMENT...]"),
        (["./nosuch"], 127, "freestone-run: program './nosuch' not found"),
        (["no-such-program"], 127, "freestone-run: program 'no-such-program' not found"),
        (["if"], 127, "freestone-run: program 'if' not found"),
        (["cd", "/"], 127, "freestone-run: program 'cd' not found"),
        (["--", "-x"], 127, "freestone-run: program '-x' not found"),
        (["/etc"], 126, "freestone-run: program '/etc' is not executable"),
        (["/etc/passwd"], 126, "freestone-run: program '/etc/passwd' is not executable"),
        (["--harden"], 2, "freestone-run: --harden is not an option; usage: freestone-run [--] PROGRAM [ARGUMENT...]"),
    ],
)
def test_freestone_run_says_what_is_wrong(repository: Path, words: list[str], status: int, line: str) -> None:
    script = repository / "packaging" / "deb" / "commands" / "freestone-run"
    done = subprocess.run(
        ["sh", str(script), *words], capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"}
    )
    assert done.returncode == status
    said = [each for each in done.stderr.splitlines() if "ld.so" not in each]  # the library is not installed here
    assert said == [line] * bool(line)


@pytest.mark.parametrize(
    ("here", "path", "status"),
    [
        *[(".", "folder", 5), (".", "nowhere:folder:", 5), (".", "nowhere:", 127)],
        *[("folder", ":nowhere", 5), ("folder", "nowhere:", 5), ("folder", "nowhere::more", 5)],
        *[(".", "*", 127), (".", "f*:nowhere", 127)],
    ],
)
def test_freestone_run_finds_what_the_shell_then_starts(
    repository: Path, tmp_path: Path, here: str, path: str, status: int
) -> None:
    """An empty part is the folder that one is in, also at the end, and a star is a star."""
    (tmp_path / "folder").mkdir()
    program = tmp_path / "folder" / "program"
    program.write_text("#!/bin/sh\nexit 5\n")
    program.chmod(0o755)
    script = repository / "packaging" / "deb" / "commands" / "freestone-run"
    shell = shutil.which("sh") or ""
    done = subprocess.run(
        [shell, str(script), "program"],
        cwd=tmp_path / here, capture_output=True, text=True, check=False, env={"PATH": path},
    )  # fmt: skip
    assert done.returncode == status
    said = [each for each in done.stderr.splitlines() if "ld.so" not in each]  # the library is not installed here
    assert said == ["freestone-run: program 'program' not found"] * (status == 127)


def test_the_lab_measures_there_and_leaves_nothing(root_with_needs: DebianRoot, debs: dict[str, Path]) -> None:
    before = root_with_needs.files()
    root_with_needs.install(list(debs.values()))

    assert freestone.__version__ in root_with_needs.succeed("freestone", "--version")
    served = root_with_needs.run("freestone", "run", "--", "perl", "-e", "print 6 * 7", FREESTONE_OPTIONS="identify=1")
    assert (served.returncode, served.stdout, served.stderr.splitlines()) == (0, "42", [SERVES])
    compared = root_with_needs.run("freestone", "compare", "-n", "2", "--results", "/tmp/results", "--", "true")
    assert compared.returncode == 0, compared.stderr
    assert "which the lab can have where pip has installed it from its wheel" in compared.stderr
    assert "clone" not in compared.stderr
    (records,) = root_with_needs.folder.glob("tmp/results/*/trials.jsonl")
    rows = [json.loads(line) for line in records.read_text(encoding="utf-8").splitlines()]
    ours = [row for row in rows if row["configuration"] == "freestone" and row["proof"]["valid"]]
    assert len(ours) == 2

    root_with_needs.succeed("dpkg", "--purge", "freestone", "libfreestone-dev", "libfreestone0")
    assert root_with_needs.files() == before
