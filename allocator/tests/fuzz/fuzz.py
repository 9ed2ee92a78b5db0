"""Fuzzers over sequences of calls, with a model of what each block must be: libFuzzer under the sanitizers, and AFL++.

Usage: ``.venv/bin/python allocator/tests/fuzz/fuzz.py --seconds 60 [--keep]``

The target is ``allocator/tests/fuzz``; it is played by default, hardened and sampled. ``--keep`` puts the inputs that
reach what no other does into the corpus, where the tests play them. Exit status 1: something was found, in build/fuzz;
2: nothing can be built here.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
LIBRARY = REPOSITORY / "allocator" / "src"
TARGET = REPOSITORY / "allocator" / "tests" / "fuzz"
CORPUS = TARGET / "corpus"
BUILT = REPOSITORY / "build" / "fuzz"
MODES = ("", "harden=1", "guard=7")
"""FREESTONE_OPTIONS of each."""

# What the C++ runtime or a loaded library alone needs, and what stands before libc's functions.
LEFT_OUT = re.compile(r"(api_(?!malloc|glibc|freestone).*|cxx_.*|.*_loaded|libc_linked|object)\.c")
RENAMED = (
    *("malloc", "free", "calloc", "realloc", "reallocarray", "aligned_alloc", "memalign", "posix_memalign"),
    *("__posix_memalign", "valloc", "pvalloc", "malloc_usable_size", "free_sized", "free_aligned_sized"),
    *("malloc_trim", "mallopt", "mallinfo", "mallinfo2", "malloc_info", "malloc_stats"),
)
OPTIONS = ["-std=gnu17", "-g", "-O1", "-D_GNU_SOURCE", '-DFREESTONE_BUILD_VERSION="fuzzed"', "-fno-builtin", "-pthread"]
KEPT_MOST = 60
"""Inputs in the corpus; the tests play all of them in every mode."""


Run = Callable[[Path, str, int], bool]
"""(program, mode, seconds) -> whether it found something."""


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=int, default=60, help="in all, over engines and modes")
    parser.add_argument("--keep", action="store_true", help="put what reaches more into the corpus")
    told = parser.parse_args(words)
    BUILT.mkdir(parents=True, exist_ok=True)
    engines = [engine for engine in (_libfuzzer(), _afl()) if engine is not None]
    if not engines:
        print("fuzz: neither clang with libFuzzer nor AFL++ is here (Debian: clang, afl++)", file=sys.stderr)
        return 2
    share = max(told.seconds // (len(engines) * len(MODES)), 5)
    found = [run(program, mode, share) for program, run in engines for mode in MODES]
    if told.keep:
        _keep()
    return int(any(found))


def _sources() -> list[Path]:
    return [source for source in sorted(LIBRARY.glob("*.c")) if not LEFT_OUT.fullmatch(source.name)]


def _include() -> str:
    return f"-I{REPOSITORY / 'allocator' / 'include'}"


def _compile(command: list[str], output: Path, sources: list[Path], *, needs: str) -> bool:
    made = subprocess.run(
        [*command, *OPTIONS, _include(), *map(str, sources), "-o", str(output)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        print(f"fuzz: {needs}: {made.stderr.strip().splitlines()[-1:]}; left out", file=sys.stderr)
    return made.returncode == 0


# --- libFuzzer --------------------------------------------------------------------------------------------------------


def _libfuzzer() -> tuple[Path, Run] | None:
    compiler = shutil.which("clang")
    if compiler is None:
        print("fuzz: clang is not here (Debian: clang); libFuzzer is left out", file=sys.stderr)
        return None
    program = BUILT / "libfuzzer"
    renamed = [f"-D{name}=fuzzed_{name}" for name in RENAMED]
    objects = BUILT / "objects"
    shutil.rmtree(objects, ignore_errors=True)
    objects.mkdir()
    flags = [
        "-fsanitize=fuzzer-no-link,address,undefined",
        "-fno-sanitize-recover=undefined",
        "-ftls-model=initial-exec",
    ]
    made = subprocess.run(
        [compiler, *OPTIONS, *flags, *renamed, _include(), "-c", *map(str, _sources())],
        cwd=objects,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        print(f"fuzz: libFuzzer: {made.stderr.strip().splitlines()[-1:]}; left out", file=sys.stderr)
        return None
    linked = _compile(
        [compiler, "-fsanitize=fuzzer,address,undefined", "-DFREESTONE_FUZZED"],
        program,
        [TARGET / "calls.c", TARGET / "libfuzzer.c", *sorted(objects.glob("*.o"))],
        needs="libFuzzer (Debian: libclang-rt-dev)",
    )
    return (program, _run_libfuzzer) if linked else None


def _environment(mode: str) -> dict[str, str]:
    environment = {key: value for key, value in os.environ.items() if key != "FREESTONE_OPTIONS"}
    environment |= {"FREESTONE_OPTIONS": mode} if mode else {}
    return environment


SANITIZED = {"ASAN_OPTIONS": "detect_leaks=0:allow_user_segv_handler=1:use_sigaltstack=0"}


def _run_libfuzzer(program: Path, mode: str, seconds: int) -> bool:
    work = BUILT / f"inputs-{mode or 'default'}"
    work.mkdir(exist_ok=True)
    print(f"fuzz: libFuzzer, {mode or 'default'}, {seconds} s ...", flush=True)
    ended = subprocess.run(
        [program, f"-max_total_time={seconds}", "-max_len=4096", "-rss_limit_mb=6000", "-print_final_stats=1",
         f"-artifact_prefix={BUILT}/found-libfuzzer-{mode or 'default'}-", work, CORPUS],
        env=_environment(mode) | SANITIZED,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    done = re.search(r"stat::number_of_executed_units:\s*(\d+)", ended.stderr)
    print(f"fuzz:   {done[1] if done else '?'} sequences, {'FOUND something' if ended.returncode else 'nothing found'}")
    if ended.returncode:
        print("\n".join(ended.stderr.splitlines()[-40:]), file=sys.stderr)
    return ended.returncode != 0


# --- AFL++ ------------------------------------------------------------------------------------------------------------


def _afl() -> tuple[Path, Run] | None:
    compiler = shutil.which("afl-clang-fast") or shutil.which("afl-gcc-fast") or shutil.which("afl-cc")
    if compiler is None or shutil.which("afl-fuzz") is None:
        print("fuzz: AFL++ is not here (Debian: afl++); left out", file=sys.stderr)
        return None
    program = BUILT / "afl"
    flags = ["-ftls-model=initial-exec"]
    made = _compile(
        [compiler, *flags],
        program,
        [TARGET / "calls.c", TARGET / "inputs.c", *_sources()],
        needs="AFL++ (Debian: afl++)",
    )
    return (program, _run_afl) if made else None


def _run_afl(program: Path, mode: str, seconds: int) -> bool:
    output = BUILT / f"afl-{mode or 'default'}"
    shutil.rmtree(output, ignore_errors=True)
    print(f"fuzz: AFL++, {mode or 'default'}, {seconds} s ...", flush=True)
    environment = _environment(mode) | {
        "AFL_SKIP_CPUFREQ": "1",
        "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1",
        "AFL_NO_UI": "1",
        "AFL_NO_AFFINITY": "1",
    }
    ended = subprocess.run(
        ["afl-fuzz", "-i", CORPUS, "-o", output, "-V", str(seconds), "-t", "2000", "-m", "none", "--", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    stats = output / "default" / "fuzzer_stats"
    if not stats.exists():
        print("\n".join(ended.stdout.splitlines()[-15:]), file=sys.stderr)
        return True
    told = dict(line.split(":", 1) for line in stats.read_text().splitlines() if ":" in line)
    told = {key.strip(): value.strip() for key, value in told.items()}
    found = int(told.get("saved_crashes", "0")) + int(told.get("saved_hangs", "0"))
    print(f"fuzz:   {told.get('execs_done')} sequences, {f'FOUND {found} in {output}' if found else 'nothing found'}")
    return found > 0


# --- the corpus -------------------------------------------------------------------------------------------------------


def _keep() -> None:
    """The inputs that together reach all that any does, the shortest of them, KEPT_MOST at most."""
    merged = BUILT / "merged"
    shutil.rmtree(merged, ignore_errors=True)
    merged.mkdir()
    places = [CORPUS, *(BUILT / f"inputs-{mode or 'default'}" for mode in MODES)]
    subprocess.run(
        [BUILT / "libfuzzer", "-merge=1", merged, *(place for place in places if place.exists())],
        env=_environment("") | SANITIZED,
        capture_output=True,
        check=True,
    )
    kept = sorted(merged.iterdir(), key=lambda each: (each.stat().st_size, each.name))[:KEPT_MOST]
    for old in CORPUS.iterdir():
        old.unlink()
    for each in kept:
        shutil.copy(each, CORPUS / each.name[:12])
    print(f"fuzz: {len(kept)} inputs in {CORPUS.relative_to(REPOSITORY)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
