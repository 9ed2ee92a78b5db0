"""The sources that the crate compiles, and the names that they have: what can be told without cargo.

The crate is compiled here as its build.rs says, by the C compiler. What its Rust does is left to test_crate.py.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import crate_names
import fuzz

REPOSITORY = Path(__file__).resolve().parents[2]
CRATE = REPOSITORY / "packaging" / "crate"
ALLOCATOR = REPOSITORY / "allocator"
ARCHIVE = REPOSITORY / "build" / "libfreestone.a"
SCRIPT = (CRATE / "build.rs").read_text(encoding="utf-8")
RUST = (CRATE / "src" / "lib.rs").read_text(encoding="utf-8")
FEATURES = ("plain", "override")

OFFERED = {
    *("malloc", "free", "calloc", "realloc", "reallocarray", "aligned_alloc", "memalign", "valloc", "pvalloc"),
    *("posix_memalign", "__posix_memalign", "free_sized", "free_aligned_sized", "malloc_usable_size"),
    *("__libc_malloc", "__libc_free", "__libc_calloc", "__libc_realloc", "__libc_memalign", "__libc_valloc"),
    *("__libc_pvalloc", "mallinfo", "mallinfo2", "malloc_info", "malloc_stats", "malloc_trim", "mallopt"),
    *("capset", "prctl", "unshare", "setns", "close_range", "syscall"),
}
"""libc's names that the archive stands for; beside them the C++ operators, and what begins with ``freestone_``."""

pytestmark = [
    pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm (package binutils)"),
    pytest.mark.skipif(not ARCHIVE.is_file(), reason=f"needs {ARCHIVE.name}: make build"),
    pytest.mark.xdist_group("crate"),
]


def listed(constant: str) -> set[str]:
    """The files of a list in build.rs."""
    found = re.search(rf"const {constant}: &\[&str\] = &\[([^\]]*)\]", SCRIPT)
    assert found
    return set(re.findall(r'"(\w+\.c)"', found.group(1)))


def compiled(feature: str) -> set[str]:
    left_out = listed("LEFT_OUT") | (set() if feature == "override" else listed("OF_OVERRIDE"))
    return {path.name for path in (ALLOCATOR / "src").glob("*.c")} - left_out


# --- what it says -----------------------------------------------------------------------------------------------------


def test_it_compiles_what_the_static_library_is_made_of() -> None:
    cmake = (ALLOCATOR / "CMakeLists.txt").read_text(encoding="utf-8")
    lists = dict(re.findall(r"^set\((sources\w*)\s([^)]+)\)", cmake, re.MULTILINE))
    static = set(re.findall(r"src/(\w+\.c)", lists["sources"] + lists["sources_static"]))
    assert listed("OF_OVERRIDE") < compiled("override")
    missing = {name for name in static - compiled("override") if "cxx" not in name}
    assert missing == set(), "only what is C++'s may be missing"
    assert compiled("override") - static == set()


def test_fuzzers_are_linked_with_the_sources_of_the_plain_crate() -> None:
    """These too are linked without what stands before libc's functions."""
    assert {source.name for source in fuzz._sources()} == compiled("plain") | {"api_glibc.c"}


def test_its_figures_are_those_of_the_header() -> None:
    header = (ALLOCATOR / "include" / "freestone.h").read_text(encoding="utf-8")
    struct = re.search(r"struct freestone_stats \{(.*?)\n\};", header, re.DOTALL)
    rust = re.search(r"pub struct Statistics \{(.*?)\n\}", RUST, re.DOTALL)
    assert struct
    assert rust
    fields = re.findall(r"^\s*size_t (\w+);", struct.group(1), re.MULTILINE)
    assert len(fields) > 10
    assert len(re.findall(";", re.sub(r"/\*.*?\*/", "", struct.group(1)))) == len(fields), "every field is a size_t"
    assert re.findall(r"^\s*pub (\w+): usize,", rust.group(1), re.MULTILINE) == fields


def test_its_version_is_the_labs() -> None:
    lab = (REPOSITORY / "src" / "freestone" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', lab, re.MULTILINE)
    assert found
    assert f'\nversion = "{found.group(1)}"\n' in (CRATE / "Cargo.toml").read_text(encoding="utf-8")


# --- names ------------------------------------------------------------------------------------------------------------


def without_prefix(names: set[str]) -> set[str]:
    return {name for name in names if not name.startswith("freestone_")}


def test_its_names_are_those_of_the_archive() -> None:
    made = crate_names.header(crate_names.defined(ARCHIVE))
    if platform.machine() != "x86_64":
        pytest.skip("made from the archive for x86-64")
    assert (CRATE / "names.h").read_text(encoding="ascii") == made, (
        "make build, then python3 tools/crate_names.py build/libfreestone.a packaging/crate/names.h"
    )


def test_a_name_of_the_archive_has_a_prefix_or_is_offered() -> None:
    names = crate_names.defined(ARCHIVE)
    assert names >= OFFERED
    operators = {name for name in names if re.match(r"_Z(nw|na|dl|da)", name)}
    assert without_prefix(names) - operators == OFFERED


def test_a_program_may_have_variables_of_the_librarys_names(tmp_path: Path) -> None:
    """Each of the archive's own names is the program's as well, and keeps its value."""
    compiler = _compiler()
    own = [name.removeprefix(crate_names.OWN) for name in crate_names.defined(ARCHIVE) if crate_names.OWN in name]
    names = sorted(name for name in own if not name.startswith("__"))
    assert "direct_functions" in names
    source = tmp_path / "program.c"
    source.write_text(
        "#include <stdlib.h>\n"
        + "".join(f"long {name}[8] = {{1, 2, 3, 4, 5, 6, 7, 8}};\n" for name in names)
        + "static long *const every[] = {"
        + ", ".join(names)
        + "};\nint main(void) {\n"
        "    for (size_t bytes = 1; bytes < 10000000; bytes += bytes / 2 + 1) {\n"
        "        void *volatile block = malloc(bytes);\n"
        "        if (block == NULL) return 1;\n"
        "        free(block);\n"
        "    }\n"
        "    for (size_t i = 0; i < sizeof every / sizeof *every; i++)\n"
        "        for (long n = 0; n < 8; n++)\n"
        "            if (every[i][n] != n + 1) return 2;\n"
        "    return 0;\n}\n",
        encoding="utf-8",
    )
    program = tmp_path / "program"
    subprocess.run([compiler, "-w", "-fno-builtin", source, ARCHIVE, "-pthread", "-o", program], check=True)
    for options in ("", "harden=1", "guard=1"):
        ran = _run(program, options)
        assert ran.returncode == 0, (options, ran.stderr)


# --- compiled, linked and run -----------------------------------------------------------------------------------------

PROGRAM = """
#include <signal.h>
#include <stddef.h>

DECLARED
static void *const every[] = {NAMED};
static volatile sig_atomic_t heard;

static void hear(int number) {
    (void)number;
    heard++;
}

int main(void) {
    struct sigaction action = {.sa_handler = hear}, before;
    void *volatile blocks[100];
    for (size_t i = 0; i < sizeof every / sizeof *every; i++)
        if (every[i] == NULL) return 5;
    for (size_t i = 0; i < 100; i++)
        if ((blocks[i] = PREFIXmalloc(i * i * 7 + 1)) == NULL) return 1;
    for (size_t i = 0; i < 100; i++) PREFIXfree_sized(blocks[i], i * i * 7 + 1);
    if (sigaction(SIGUSR1, &action, NULL) != 0 || signal(SIGUSR2, hear) == SIG_ERR) return 2;
    if (sigaction(SIGSEGV, &action, NULL) != 0 || sigaction(SIGSEGV, NULL, &before) != 0) return 3;
    if (before.sa_handler != hear || raise(SIGUSR1) != 0 || raise(SIGUSR2) != 0 || heard != 2) return 4;
    return 0;
}
"""


def _compiler() -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    return compiler


def _run(program: Path, options: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key not in ("FREESTONE_OPTIONS", "LD_PRELOAD")}
    environment |= {"FREESTONE_OPTIONS": options} if options else {}
    return subprocess.run([program], env=environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module", params=FEATURES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A feature, and the archive that it gives."""
    feature, compiler = request.param, _compiler()
    folder = tmp_path_factory.mktemp(feature)
    flags = re.findall(r'\.flag\("(-[^"]+|names\.h)"\)', SCRIPT)
    assert "names.h" in flags
    command = [compiler, *flags, f"-I{CRATE}", f"-I{ALLOCATOR / 'include'}", "-fPIC", "-O1", "-w", "-c"]
    command += ["-D_GNU_SOURCE", "-DNDEBUG", '-DFREESTONE_BUILD_VERSION="tried"']
    command += ["-DFREESTONE_OVERRIDE"] if feature == "override" else []
    command += [str(ALLOCATOR / "src" / name) for name in sorted(compiled(feature))]
    subprocess.run(command, cwd=folder, check=True)
    archive = folder / "libfreestone.a"
    subprocess.run(["ar", "rcs", archive, *sorted(folder.glob("*.o"))], check=True)
    return feature, archive


def test_a_program_of_its_sources_is_linked_and_runs(made: tuple[str, Path], tmp_path: Path) -> None:
    feature, archive = made
    prefix = "freestone_" if feature == "plain" else ""
    of_malloc = {prefix + name.removeprefix("freestone_") for name in re.findall(r'link_name = "(\w+)"', RUST)}
    names = sorted(of_malloc | set(re.findall(r"pub fn (freestone_\w+)\(", RUST)))
    assert len(names) >= 9
    text = PROGRAM.replace("PREFIX", prefix).replace("NAMED", ", ".join(f"(void *){name}" for name in names))
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(text.replace("DECLARED", "\n".join(f"void *{name}();" for name in names)), encoding="utf-8")
    compile_it = [_compiler(), "-std=gnu17", "-w", "-fno-builtin", str(source), "-pthread", "-o", str(program)]
    whole = ["-Wl,--whole-archive", str(archive), "-Wl,--no-whole-archive"]
    # As rustc does, and whole: nothing is missing that no test refers to.
    for libraries in [[str(archive)], whole] if feature == "plain" else [whole]:
        subprocess.run([*compile_it, *libraries], check=True)
        for options in ("", "harden=1", "guard=1"):
            ran = _run(program, options)
            assert (ran.returncode, ran.stderr) == (0, ""), options


def test_its_names_have_a_prefix_or_are_offered(made: tuple[str, Path]) -> None:
    feature, archive = made
    may = OFFERED | crate_names.IN_ASSEMBLY if feature == "override" else set()
    assert without_prefix(crate_names.defined(archive)) - may == set()
