"""Real programs, run twice: as the system has them, and under libfreestone, proved to be in force in each process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from foreign_programs.proof import build_preload

TIMEOUT_S = 300.0
"""Far beyond what any of them takes: only a program that hangs gets there."""


@dataclass(frozen=True)
class Run:
    """What a program said and left behind."""

    folder: Path
    status: int
    stdout: bytes
    stderr: bytes


@dataclass
class Bench:
    """Runs programs with or without libfreestone."""

    library: Path
    notes_preload: Path
    scratch: Path
    count: int = field(default=0)

    def environment(self, folder: Path, *, served: bool, extra: Mapping[str, str]) -> dict[str, str]:
        """The environment of one run; ``folder`` is where the notes about its processes go."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            **extra,
        }
        if served:
            environment["LD_PRELOAD"] = f"{self.notes_preload}:{self.library}"
            environment["PROVIDER_NOTES"] = str(self.notes(folder))
            if "FREESTONE_TESTED_OPTIONS" in os.environ:  # make test-modes
                environment["FREESTONE_OPTIONS"] = os.environ["FREESTONE_TESTED_OPTIONS"]
        return environment

    @staticmethod
    def notes(folder: Path) -> Path:
        return folder.parent / f"{folder.name}.notes"

    def prove(self, folder: Path, programs: Iterable[str]) -> None:
        """Fails unless every process seen was served by libfreestone, and ``programs`` (file names) are among them."""
        notes = self.notes(folder)
        lines = notes.read_text().splitlines() if notes.is_file() else []
        seen = set()
        for line in lines:
            program, *providers = line.split("\t")
            seen.add(Path(program).name)
            assert {os.path.realpath(provider) for provider in providers} == {str(self.library)}, (
                f"{program} was served by {providers}"
            )
        missing = set(programs) - seen
        assert not missing, f"libfreestone was not seen in {sorted(missing)}, only in {sorted(seen)}"

    def one(
        self,
        command: list[str],
        folder: Path,
        *,
        served: bool,
        stdin: bytes = b"",
        extra: Mapping[str, str] | None = None,
        statuses: Iterable[int] = (0,),
    ) -> Run:
        """Runs ``command`` in ``folder`` and fails unless it ends with one of ``statuses``."""
        done = subprocess.run(
            command,
            cwd=folder,
            env=self.environment(folder, served=served, extra=extra or {}),
            input=stdin,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode in statuses, (
            f"{command} {'under libfreestone ' if served else ''}ended with {done.returncode}:\n"
            f"{done.stdout.decode(errors='replace')[-2000:]}\n{done.stderr.decode(errors='replace')[-4000:]}"
        )
        return Run(folder, done.returncode, done.stdout, done.stderr)

    def folders(self) -> tuple[Path, Path]:
        """Two fresh folders: for the system's run and for the served one."""
        self.count += 1
        pair = (self.scratch / f"{self.count}-system", self.scratch / f"{self.count}-served")
        for folder in pair:
            folder.mkdir()
        return pair

    def both(
        self,
        work: Callable[[Path, bool], Run],
        programs: Iterable[str],
    ) -> tuple[Run, Run]:
        """Does ``work(folder, served)`` in both ways at once; proves the served one by the ``programs`` it ran."""
        system_folder, served_folder = self.folders()
        with ThreadPoolExecutor(2) as pool:
            system = pool.submit(work, system_folder, False)
            served = pool.submit(work, served_folder, True)
            pair = (system.result(), served.result())
        self.prove(served_folder, programs)
        return pair


@pytest.fixture(scope="session")
def bench(freestone_library: Path, open_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler, so nothing can be put into the programs to prove who serves them")
    scratch = tmp_path_factory.mktemp("programs")
    preload = open_folder / "note_provider.so"
    build_preload(compiler, preload)
    return Bench(freestone_library.resolve(), preload, scratch)


@pytest.fixture
def program() -> Callable[..., str]:
    """``program("ruby", package="ruby")``: its path, or a skip that says how to get it."""

    def find(name: str, package: str | None = None) -> str:
        path = shutil.which(name)
        if path is None:
            pytest.skip(f"{name} is not installed (Debian: {package or name})")
        return path

    return find


@pytest.fixture(scope="session")
def python_with_tests() -> str:
    """A Python that brings its own test suite along; distributions keep it in a package of its own."""
    base = getattr(sys, "_base_executable", sys.executable)
    for candidate in [base, "/usr/bin/python3", *filter(None, [shutil.which("python3")])]:
        found = subprocess.run(
            [candidate, "-c", "import sys, test.test_json, test.test_subprocess; print(sys.executable)"],
            capture_output=True,
            text=True,
            check=False,
        )
        if found.returncode == 0:
            return os.path.realpath(found.stdout.strip())
    pytest.skip("no Python here has its test suite (Debian: libpython3-testsuite)")
