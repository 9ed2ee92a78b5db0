"""The wheels of dist: what their tags say is so, and they are used where there is neither clone nor compiler.

`make test-wheel` builds them before.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import old_root
import pytest

import bill_of_materials
from wheels import symbols
from wheels.sysroot import SysrootMissing

pytestmark = [pytest.mark.packages, pytest.mark.xdist_group("wheels")]

REPOSITORY = Path(__file__).resolve().parents[2]
DIST = REPOSITORY / "dist"
TAG = re.compile(r"-py3-none-(manylinux|musllinux)_(\d+)_(\d+)_(\w+)\.whl$")
OLDEST = (2, 31)
"""The oldest glibc that docs/guide/install.md promises."""

OF_GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2"}
COMPILERS = ("cc", "gcc", "clang", "c++", "g++", "ld", "make", "cmake", "ninja")


def built(kind: str) -> list[Path]:
    return sorted(
        path for path in DIST.glob("freestone-*.whl") if (tag := TAG.search(path.name)) and tag.group(1) == kind
    )


def wheels(kind: str) -> list[Path]:
    found = built(kind)
    assert found, f"no {kind} wheel in dist: run make wheel"
    return found


def floor_of(wheel: Path) -> tuple[int, int]:
    tag = TAG.search(wheel.name)
    assert tag
    return int(tag.group(2)), int(tag.group(3))


# --- what a tag says --------------------------------------------------------------------------------------------------


def test_no_symbol_is_newer_than_the_tag_says() -> None:
    for wheel in wheels("manylinux"):
        files = symbols.of_wheel(wheel)
        assert len(files) > 20
        assert symbols.newer_than(files, floor_of(wheel)) == []
        assert max(symbols.newest_glibc(files)[:2], OLDEST) == floor_of(wheel), (
            "a tag that is too new keeps machines out"
        )


def test_nothing_is_wanted_but_glibc() -> None:
    for wheel in wheels("manylinux"):
        files = symbols.of_wheel(wheel)
        assert {library for file in files for library in file.libraries} <= OF_GLIBC
        assert symbols.foreign_versions(files) == []
        assert not [file.name for file in files if file.loader is not None and symbols.MUSL_LOADER.match(file.loader)]


def test_the_oldest_glibc_is_the_one_the_guide_names() -> None:
    assert min(map(floor_of, wheels("manylinux"))) <= OLDEST
    guide = (REPOSITORY / "docs" / "guide" / "install.md").read_text(encoding="utf-8")
    assert f"glibc {OLDEST[0]}.{OLDEST[1]}" in guide


def test_the_library_for_newer_machines_wants_libc_alone() -> None:
    """One library more is opened and mapped at the start of every program."""
    newest = max(wheels("manylinux"), key=floor_of)
    (library,) = [file for file in symbols.of_wheel(newest) if file.name.endswith("/libfreestone.so")]
    assert library.libraries == ("libc.so.6",)


def test_a_wheel_for_musl_wants_musl_alone() -> None:
    for wheel in wheels("musllinux"):
        files = symbols.of_wheel(wheel)
        assert len(files) > 20
        assert {library for file in files for library in file.libraries} == {"libc.musl-x86_64.so.1"}
        assert [need for file in files for need in file.needs] == []
        loaders = {file.loader for file in files if file.loader is not None}
        assert len(loaders) == 1
        assert symbols.MUSL_LOADER.fullmatch(loaders.pop())


def test_auditwheel_says_the_same() -> None:
    auditwheel = Path(sysconfig.get_path("scripts")) / "auditwheel"
    for wheel in [*wheels("manylinux"), *wheels("musllinux")]:
        tag = TAG.search(wheel.name)
        assert tag
        shown = subprocess.run([auditwheel, "show", wheel], capture_output=True, text=True, check=True)
        assert re.search(
            rf'consistent\s+with\s+the\s+following\s+platform\s+tag:\s+"{tag.group(1)}_{tag.group(2)}_{tag.group(3)}_',
            shown.stdout,
        )


def test_what_a_static_program_holds_comes_with_its_licence() -> None:
    for wheel in [*wheels("manylinux"), *wheels("musllinux")]:
        with zipfile.ZipFile(wheel) as archive:
            texts = {
                Path(name).name: archive.read(name).decode()
                for name in archive.namelist()
                if ".dist-info/licenses/" in name and not name.endswith("/")
            }
        entry, _ = bill_of_materials.read(wheel)
        held = {part["name"] for part in entry["components"]} - {"libfreestone"}
        assert held in ({"glibc", "libgcc"}, {"musl", "libgcc"})
        assert "freestone-launch is a static program" in texts["static-programs.txt"]
        assert "GNU LESSER GENERAL PUBLIC LICENSE" in texts["LGPL-2.1.txt"]
        assert texts["LICENSE"] == (REPOSITORY / "LICENSE").read_text(encoding="utf-8")


# --- installed and used -----------------------------------------------------------------------------------------------


class Installed:
    """A virtual environment outside of the clone, and a PATH on which there is no compiler."""

    def __init__(self, folder: Path, package: Sequence[str]) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        tools = folder / "tools"
        tools.mkdir()
        for tool in ("sh", "env", "true", "cat"):
            found = shutil.which(tool)
            assert found
            (tools / tool).symlink_to(Path(found).resolve())
        base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
        subprocess.run([base, "-m", "venv", folder / "venv"], check=True)
        self.python = folder / "venv" / "bin" / "python"
        kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "LANG", "LC_"))}
        self.environment = {
            **kept,
            "PATH": f"{folder / 'venv' / 'bin'}:{tools}",
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
        }
        assert not [tool for tool in COMPILERS if shutil.which(tool, path=self.environment["PATH"])]
        self.before = self.listed()
        self.install(*package)

    def install(self, *package: str) -> None:
        self.run("python", "-m", "pip", "install", "--quiet", *package)

    def listed(self) -> set[Path]:
        return set((self.folder / "venv").rglob("*"))

    def run(self, *command: str, status: int = 0) -> str:
        ran = subprocess.run(command, cwd=self.home, env=self.environment, capture_output=True, text=True, timeout=300)
        assert ran.returncode == status, ran.stdout + ran.stderr
        return ran.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The wheel that pip chooses for this machine, with its dependencies."""
    wheels("manylinux")
    folder = tmp_path_factory.mktemp("installed")
    place = Installed(folder, ["--no-index", "--no-deps", "--find-links", str(DIST), f"freestone=={version()}"])
    (chosen,) = place.listed() & set((folder / "venv").rglob("freestone-*.dist-info"))
    (tag,) = re.findall(r"^Tag: py3-none-(\S+)$", (chosen / "WHEEL").read_text(encoding="utf-8"), re.MULTILINE)
    assert tag in max(wheels("manylinux"), key=floor_of).name
    place.install(str(max(wheels("manylinux"), key=floor_of)))  # now what it depends on
    yield place
    shutil.rmtree(folder, ignore_errors=True)


def version() -> str:
    found = re.search(r'^__version__ = "(.+)"$', (REPOSITORY / "src/freestone/__init__.py").read_text(), re.MULTILINE)
    assert found
    return found.group(1)


def test_the_command_is_there_and_knows_its_version(installed: Installed) -> None:
    assert version() in installed.run("freestone", "--version")


def test_it_is_not_the_clones(installed: Installed) -> None:
    where = Path(installed.run("python", "-c", "import freestone; print(freestone.__file__)").strip())
    assert where.is_relative_to(installed.folder)


def test_a_program_runs_under_the_library(installed: Installed) -> None:
    installed.run("freestone", "run", "--", "true")
    said = installed.run("freestone", "run", "--", "cat", "/proc/self/maps")
    assert "/venv/lib/" in said
    assert "libfreestone.so" in said


def test_allocators_are_compared(installed: Installed) -> None:
    results = installed.home / "results"
    line = [
        "freestone",
        "compare",
        "-n",
        "2",
        "-a",
        "glibc,freestone",
        "--results",
        str(results),
        "--",
        shutil.which("true") or "true",
    ]
    assert "freestone" in installed.run(*line)
    (trials,) = results.rglob("trials.jsonl")
    rows = [json.loads(row) for row in trials.read_text(encoding="utf-8").splitlines()]
    assert {row["configuration"] for row in rows} == {"glibc", "freestone"}
    assert {(row["status"], row["proof"]["valid"]) for row in rows} == {("ok", True)}
    served = {entry["file"] for row in rows if row["configuration"] == "freestone" for entry in entries(row)}
    (library,) = (installed.folder / "venv").rglob("libfreestone.so")
    assert served == {str(library.resolve())}


def entries(row: dict[str, Any]) -> list[dict[str, str]]:
    return [entry for process in row["proof"]["processes"] for entry in process["entries"]]


def test_allocators_are_listed(installed: Installed) -> None:
    listed = installed.run("freestone", "allocators")
    assert re.search(r"^\W*freestone\b.*", listed, re.MULTILINE)


def test_what_an_extra_needs_is_had_by_the_line_that_says_so(installed: Installed) -> None:
    """The lab's own name stands in none: on a public registry it is somebody else's."""
    ask = "from freestone.records import parquet; print(parquet.missing())"
    said = installed.run("python", "-c", ask).strip()
    words = shlex.split(said.removeprefix("it needs: "))
    assert words[:4] == [str(installed.python), "-m", "pip", "install"]
    assert not [word for word in words[4:] if word.startswith("freestone")]
    installed.run(*words, "--quiet")
    assert installed.run("python", "-c", ask).strip() == "None"


def test_it_is_installed_as_the_guide_says(tmp_path: Path) -> None:
    wheels("manylinux")
    guide = (REPOSITORY / "docs" / "guide" / "install.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(python3 -m venv freestone\n.*?)```", guide, re.DOTALL)
    (tmp_path / "dist").symlink_to(DIST)
    environment = {**os.environ, "PATH": f"{sys.base_prefix}/bin:{os.environ['PATH']}"}
    ran = subprocess.run(["sh", "-ec", block], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "freestone" in ran.stdout


def test_programs_of_a_suite_are_there(installed: Installed) -> None:
    installed.run("freestone", "bench", "--help")
    code = "from freestone import native; print(native.path('workloads/trees'))"
    program = installed.run("python", "-c", code).strip()
    assert os.access(program, os.X_OK)


def test_nothing_is_left_when_it_is_removed(tmp_path: Path) -> None:
    (wheel,) = [path for path in wheels("manylinux") if floor_of(path) == max(map(floor_of, wheels("manylinux")))]
    place = Installed(tmp_path, ["--no-deps", str(wheel)])
    assert [path for path in place.listed() if path.name == "freestone"]
    place.run("python", "-c", "import freestone; print(freestone.__version__)")
    place.run("python", "-m", "pip", "uninstall", "--quiet", "--yes", "freestone")
    assert {path for path in place.listed() - place.before if "__pycache__" not in path.parts} == set()
    assert not list((place.folder / "venv").rglob("*freestone*"))


# --- the source -------------------------------------------------------------------------------------------------------


def test_the_source_that_is_packed_can_be_installed(tmp_path: Path) -> None:
    """Built by what is in this environment, without the registry; the compilers are this machine's."""
    (source,) = DIST.glob("freestone-*.tar.gz")
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "--quiet", "install", "--no-deps", "--no-build-isolation", "--no-index"]
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    subprocess.run([*pip, "--target", site, source], check=True, cwd=tmp_path, env={**os.environ, "PATH": path})
    search = os.pathsep.join([str(site), sysconfig.get_path("purelib")])
    ran = subprocess.run(
        [sys.executable, "-S", site / "bin" / "freestone", "run", "--", "cat", "/proc/self/maps"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"{site}/freestone/_native/libfreestone.so" in ran.stdout


# --- where glibc is as old as the tag says ----------------------------------------------------------------------------

IN_ROOT = ["unshare", "--mount", "--pid", "--fork", "sh", "-c"]
"""A namespace for the mounts: they end with the command."""
SETTLE = (
    'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && root=$0 && exec chroot "$root" /usr/bin/env -i "$@"'
)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A root of Debian 11, without a compiler, with a Python; the wheels and what they depend on are in /wheels."""
    try:
        archive = old_root.make(REPOSITORY / "build" / "wheels" / "bullseye.tar")
    except SysrootMissing as missing:
        pytest.skip(str(missing))
    root = tmp_path_factory.mktemp("old")
    subprocess.run(["tar", "--extract", "--file", archive, "--directory", root], check=True)
    house = root / "wheels"
    oldest = min(wheels("manylinux"), key=floor_of)
    pip = [sys.executable, "-m", "pip", "--quiet", "download", "--only-binary", ":all:", "--python-version", "3.11"]
    platforms = [option for glibc in (17, 28, 31) for option in ("--platform", f"manylinux_2_{glibc}_x86_64")]
    subprocess.run([*pip, *platforms, "-d", house, oldest, "pip"], check=True)
    for wheel in [*wheels("manylinux"), *wheels("musllinux")]:  # pip has to choose
        shutil.copy(wheel, house)
    (pip_itself,) = house.glob("pip-*.whl")
    run_pip = ["python3.11", f"/wheels/{pip_itself.name}/pip"]
    inside(root, *run_pip, "install", "--quiet", "--no-index", "--find-links", "/wheels", "freestone")
    yield root
    shutil.rmtree(root, ignore_errors=True)


def inside(root: Path, *command: str) -> str:
    """What a command prints in the root."""
    settings = ["PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/root"]
    ran = subprocess.run([*IN_ROOT, SETTLE, root, *settings, *command], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_root_is_as_old_as_is_promised(old: Path) -> None:
    assert f" {OLDEST[0]}.{OLDEST[1]}" in inside(old, "ldd", "--version").splitlines()[0]
    assert not [tool for tool in COMPILERS if (old / "usr" / "bin" / tool).exists()]


def test_on_the_oldest_glibc_allocators_are_compared(old: Path) -> None:
    assert version() in inside(old, "freestone", "--version")
    said = inside(old, "freestone", "run", "--", "cat", "/proc/self/maps")
    assert "libfreestone.so" in said
    line = ["compare", "-n", "2", "-a", "glibc,freestone", "--results", "/tmp/results", "--", "/bin/true"]
    inside(old, "freestone", *line)
    (trials,) = (old / "tmp" / "results").rglob("trials.jsonl")
    rows = [json.loads(row) for row in trials.read_text(encoding="utf-8").splitlines()]
    assert {(row["status"], row["proof"]["valid"]) for row in rows} == {("ok", True)}
    served = {entry["file"] for row in rows if row["configuration"] == "freestone" for entry in entries(row)}
    assert {name.endswith("/freestone/_native/libfreestone.so") for name in served} == {True}


def test_on_the_oldest_glibc_programs_with_threads_are_served(old: Path) -> None:
    code = "from freestone import native; print(native.path('libfreestone.so'), native.path('workloads/patterns'))"
    library, patterns = inside(old, "python3.11", "-c", code).split()
    assert "usage" in inside(old, "env", f"LD_PRELOAD={library}", patterns, "--help")
    threads = "import threading as t; all = [t.Thread(target=bytearray, args=(n << 12,)) for n in range(99)]; "
    threads += "[each.start() for each in all]; [each.join() for each in all]; print('joined')"
    for options in ("keeper=1", "harden=1", "guard=100"):
        said = inside(old, "env", f"LD_PRELOAD={library}", f"FREESTONE_OPTIONS={options}", "python3.11", "-c", threads)
        assert said == "joined\n"


def test_on_the_oldest_glibc_every_library_finds_what_it_names(old: Path) -> None:
    """In a program that has no threads, and so not the library that these are in."""
    assert "libpthread" not in inside(old, "ldd", "/bin/cat")
    folder = inside(
        old, "python3.11", "-c", "from freestone import native; print(native.path('libfreestone.so').parent)"
    )
    libraries = sorted((old / folder.strip()[1:]).glob("*.so"))
    assert len(libraries) == 4
    for library in libraries:
        preload = f"LD_PRELOAD={folder.strip()}/{library.name}"
        assert library.name in inside(old, "env", preload, "/bin/cat", "/proc/self/maps")


WATCHED = """
import mmap, os, subprocess, sys, tempfile
from pathlib import Path
from freestone import native
from freestone.doctor import heap_watch

program = "import mmap, sys; _ = mmap.mmap(-1, int(sys.argv[1]), flags=0x4022); all = [bytes(n) for n in range(9000)]"
for mapped in (1 << 20, 5 << 30):
    with tempfile.TemporaryDirectory() as folder:
        watched = {"LD_PRELOAD": str(native.path(heap_watch.WATCHER)), heap_watch.FOLDER: folder}
        settings = {**os.environ, **watched, "PYTHONMALLOC": "malloc"}
        subprocess.run([sys.executable, "-c", program, str(mapped)], env=settings, check=True)
        use = heap_watch.read_folder(Path(folder))
        print(use.mallocs > 9000, use.peak_live_kib > 30_000, len(use.points) > 0)
"""


def test_on_the_oldest_glibc_a_heap_that_its_counts_cannot_hold_has_no_curve(old: Path) -> None:
    """glibc before 2.33 has nothing but mallinfo, of 32 bits: what may have wrapped is not told."""
    told = inside(old, "python3.11", "-c", WATCHED).splitlines()
    assert told == ["True True True", "True True False"]
