"""The smaller verbs, their help, and what a shell completes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import freestone as package
from freestone import native
from freestone.cli import PARTS, USAGE, VERBS, program_apart
from freestone.records import store

Tool = Callable[..., subprocess.CompletedProcess[str]]

PROGRAM = [sys.executable, "-I", "-S", "-c", "print(1)"]


def test_the_version(freestone: Tool) -> None:
    assert freestone("--version").stdout == f"freestone {package.__version__}\n"


def test_help_names_every_verb(freestone: Tool) -> None:
    done = freestone("--help")
    assert done.returncode == 0
    for verb in VERBS:
        assert re.search(rf"^\W*{verb}\b", done.stdout, re.MULTILINE)


def _imported(lines: list[list[str]], environment: dict[str, str]) -> list[set[str]]:
    """The modules that are there after each of these calls of the tool, all in one process."""
    script = (
        "import contextlib, io, json, sys\n"
        "from freestone.cli import main\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "        main(words)\n"
        "    print(*sys.modules)"
    )
    call = [sys.executable, "-c", script, json.dumps(lines)]
    done = subprocess.run(call, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [set(line.split()) for line in done.stdout.splitlines()]


def test_help_imports_no_verb(environment: dict[str, str]) -> None:
    (imported,) = _imported([["--help"]], environment)
    assert not {"altair", "duckdb", "numpy", "pydantic", "freestone.commands.compare"} & imported


def test_help_of_a_verb_waits_for_no_large_library(environment: dict[str, str]) -> None:
    large = {"altair", "duckdb", "elftools", "jinja2", "numpy", "vl_convert"}
    after = _imported([[*verb.split(), "--help"] for verb in USAGE], environment)
    assert len(after) == len(USAGE)
    assert {verb: large & imported for verb, imported in zip(USAGE, after, strict=True) if large & imported} == {}


@pytest.mark.parametrize("verb", USAGE)
def test_help_of_a_verb_has_examples_and_statuses(freestone: Tool, verb: str) -> None:
    done = freestone(*verb.split(), "--help")
    assert done.returncode == 0
    assert f"Usage: freestone {verb}" in done.stdout
    assert re.search(rf"Examples:\n\n    .*freestone {verb}", done.stdout)
    assert "Exit status:" in done.stdout
    for part in PARTS.get(verb, {}):
        assert re.search(rf"^\W*{part}\b", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("verb", USAGE)
def test_the_reference_documents_every_option(freestone: Tool, repository: Path, verb: str) -> None:
    reference = (repository / "docs" / "reference" / "cli.md").read_text()
    section = reference.partition(f"## freestone {verb}")[2].partition("\n## ")[0]
    for option in re.findall(r"--[a-z][a-z-]+", freestone(*verb.split(), "--help").stdout.partition("Examples:")[0]):
        assert option in section, f"docs/reference/cli.md, freestone {verb}: {option} is missing"


def _written(text: str, verb: str) -> list[list[str]]:
    """The commands of a page that use this verb: their words up to the program that they run."""
    # What stands in quotes is for somebody else: a command that drives a server.
    lines = re.sub(r"'[^'\n]*'|\"[^\"\n]*\"", "QUOTED", text.replace("\\\n", " ")).splitlines()
    others = "|".join(PARTS.get(verb, {})) or "$."
    command = rf"\s*(?:\$ )?(?:\.venv/bin/)?freestone {verb}\b(?! (?:{others})\b)(.*)"
    found = [re.match(command, line) for line in lines]
    return [re.split(r" -- | #|\|", match[1])[0].split() for match in found if match]


@pytest.mark.parametrize("verb", USAGE)
def test_commands_in_the_documents_use_options_that_there_are(freestone: Tool, repository: Path, verb: str) -> None:
    help = freestone(*verb.split(), "--help").stdout.partition("Examples:")[0]
    told = re.findall(r"(?<![\w-])--?[a-z][a-z-]*", help)
    pages = [*repository.glob("*.md"), *(repository / "docs").rglob("*.md")]
    commands = [(page.name, words) for page in pages for words in _written(page.read_text(), verb)]
    assert commands, "no document shows it"
    used = {(page, word) for page, words in commands for word in words if word.startswith("-")}
    assert not {(page, word) for page, word in used if word not in [*told, "--"]}


def test_the_reference_lists_every_verb_with_its_place(repository: Path) -> None:
    reference = (repository / "docs" / "reference" / "cli.md").read_text()
    assert re.findall(r"^\| \[`(\w+)`\]\(#freestone-(\w+)\)", reference, re.MULTILINE) == [(v, v) for v in VERBS]


def test_run_gives_the_program_libfreestone_and_its_own_exit_status(freestone: Tool) -> None:
    done = freestone(
        "run", "--", "sh", "-c", 'echo "$LD_PRELOAD $$ $1"; exit 7', "sh", "--help", env={"LD_PRELOAD": ""}
    )
    assert done.returncode == 7
    assert done.stderr == ""
    preload, _, argument = done.stdout.split()
    assert preload == str(native.path("libfreestone.so"))
    assert argument == "--help"


def test_run_takes_the_place_of_the_tool(command: list[str], environment: dict[str, str]) -> None:
    tool = subprocess.Popen(
        [*command, "run", "--", "sh", "-c", "echo $$"], env=environment, stdout=subprocess.PIPE, text=True
    )
    stdout, _ = tool.communicate(timeout=60)
    assert int(stdout) == tool.pid


def test_run_keeps_what_else_is_preloaded(freestone: Tool) -> None:
    other = str(native.path("libfreestone-witness.so"))
    done = freestone("run", "--", "sh", "-c", 'echo "$LD_PRELOAD"', env={"LD_PRELOAD": other})
    assert done.stdout.strip() == f"{native.path('libfreestone.so')}:{other}"


SHOW = ("sh", "-c", 'echo "$LD_PRELOAD|$MALLOC_ARENA_MAX|$FREESTONE_OPTIONS"')


def test_run_gives_the_program_any_allocator_and_its_settings(freestone: Tool) -> None:
    libc = json.loads(freestone("allocators", "glibc", "--no-verify", "--json").stdout)[0]["file"]
    done = freestone("run", "-a", "glibc:MALLOC_ARENA_MAX=2:FREESTONE_OPTIONS=a:b,c=1", "--", *SHOW)
    assert done.returncode == 0
    assert "this glibc reads no variable of that name" in done.stderr, "a setting of another's is given, and told of"
    assert done.stdout == f"{libc}|2|a:b,c=1\n"


@pytest.mark.parametrize(
    ("options", "before", "wanted"),
    [
        (["--harden"], "", "harden=1"),
        (["--guard", "auto"], "", "guard=auto"),
        (["--guard", "5000"], "keeper=2", "keeper=2,guard=5000"),
        (["-a", "freestone:FREESTONE_OPTIONS=keeper=0,heaps=1", "--harden"], "", "keeper=0,heaps=1,harden=1"),
        (["-a", f"mine={native.path('libfreestone.so')}", "--harden"], "", "harden=1"),
    ],
)
def test_run_switches_modes_of_libfreestone_on(freestone: Tool, options: list[str], before: str, wanted: str) -> None:
    done = freestone("run", *options, "--", *SHOW, env={"FREESTONE_OPTIONS": before})
    assert (done.returncode, done.stderr) == (0, ""), "libfreestone understands every key"
    assert done.stdout == f"{native.path('libfreestone.so')}||{wanted}\n"


def test_a_write_behind_a_block_stops_the_program_under_run_harden(
    freestone: Tool, compile_c: Callable[..., Path]
) -> None:
    program = compile_c(
        "#include <stdlib.h>\n#include <stdio.h>\nint main(void) {\n"
        '  volatile char *p = malloc(40);\n  p[40] = 1;\n  free((void *)p);\n  puts("went on");\n  return 5;\n}'
    )
    assert freestone("run", "--", program).returncode == 5, "nothing is looked at by default"
    done = freestone("run", "--harden", "--", program)
    assert done.returncode == -6
    assert "overflow" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-a", "glibc,freestone"], "-a takes one allocator, not 2: 'glibc,freestone'"),
        (["-a", ","], "-a takes one allocator, not 0: ','"),
        (["-a", "jemaloc"], "unknown allocator 'jemaloc'"),
        (["-a", "glibc:arenas=2"], "'arenas=2' is no setting of glibc; write glibc:GLIBC_TUNABLES="),
        (["-a", "glibc", "--harden"], "--harden is a mode of libfreestone; leave out -a"),
        (["--guard", "0"], "--guard takes a number from 1 to 1000000000, or auto, not '0'"),
        (["--guard", "99999999999"], "--guard takes a number from 1 to"),
        (["--guard", "often"], "or auto, not 'often'"),
        (["--harden", "--guard", "5"], "--harden checks every block already; leave out --guard"),
    ],
)
def test_run_refuses_what_it_cannot_give(freestone: Tool, options: list[str], said: str) -> None:
    done = freestone("run", *options, "--", "true")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


@pytest.mark.parametrize(
    ("source", "flags", "why"),
    [
        ("int main(void) { return 5; }", ["-static"], "is static"),
        (
            "#include <stddef.h>\nvoid *malloc(size_t n) { (void)n; return NULL; }\nint main(void) { return 5; }",
            ["-fno-builtin", "-rdynamic"],
            "has a malloc of its own",
        ),
    ],
)
def test_run_says_in_one_line_what_it_cannot_serve(
    freestone: Tool, compile_c: Callable[..., Path], source: str, flags: list[str], why: str
) -> None:
    done = freestone("run", "--", str(compile_c(source, *flags)))
    assert done.returncode == 5, "and runs it"
    assert done.stderr.count("\n") == 1
    assert why in done.stderr
    assert "libfreestone will not serve it" in done.stderr


def _with_sanitizer(folder: Path, *flags: str) -> Path:
    source, program = folder / "program.c", folder / "program"
    source.write_text("#include <stdlib.h>\nint main(void) { free(malloc(7)); return 5; }")
    built = subprocess.run(["gcc", source, *flags, "-o", program], capture_output=True, text=True, check=False)
    if built.returncode != 0 or subprocess.run([program], capture_output=True, check=False).returncode != 5:
        pytest.skip(f"gcc's runtime for {flags} does not work here, without any preload")
    return program


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("AddressSanitizer", ["-fsanitize=address"]),
        ("AddressSanitizer", ["-fsanitize=address", "-static-libasan"]),
        ("LeakSanitizer", ["-fsanitize=leak"]),
        ("ThreadSanitizer", ["-fsanitize=thread"]),
        ("ThreadSanitizer", ["-fsanitize=thread", "-static-libtsan"]),
    ],
)
def test_run_leaves_the_preload_from_a_program_with_a_sanitizer(
    freestone: Tool, tmp_path: Path, name: str, flags: list[str]
) -> None:
    """A runtime in a shared library refuses to start behind another malloc, or finds no leaks any more."""
    program = _with_sanitizer(tmp_path, *flags)
    done = freestone("run", "--", str(program))
    said = f"freestone: {program} has a malloc of its own (brings {name}'s malloc); libfreestone will not serve it"
    assert done.stderr.splitlines()[:1] == [said]
    if "unexpected memory mapping" not in done.stderr:  # by chance of the address space layout, without a preload too
        assert done.returncode == 5, done.stderr


def test_compare_counts_no_trial_of_a_program_with_a_sanitizer(freestone: Tool, tmp_path: Path) -> None:
    program = _with_sanitizer(tmp_path, "-fsanitize=leak")
    done = freestone("compare", "-a", "freestone", "-n", "1", "--results", str(tmp_path / "r"), "--", str(program))
    assert done.returncode != 0
    assert "brings LeakSanitizer's malloc" in done.stdout + done.stderr


def test_run_leaves_the_preload_from_a_program_of_another_c_library(freestone: Tool, tmp_path: Path) -> None:
    compiler = shutil.which("musl-gcc")
    if compiler is None:
        pytest.skip("no musl-gcc here (Debian: musl-tools)")
    source = tmp_path / "program.c"
    source.write_text('#include <unistd.h>\nint main(void) { return execlp("sh", "sh", "-c", "exit 5", NULL); }')
    subprocess.run([compiler, source, "-o", tmp_path / "program"], check=True)
    done = freestone("run", "--", str(tmp_path / "program"))
    assert done.returncode == 5, done.stderr
    assert done.stderr.count("\n") == 1
    assert "is built for musl; libfreestone will not serve it" in done.stderr
    script = tmp_path / "script"
    script.write_text(f"#!{tmp_path}/program\n")
    script.chmod(0o755)
    assert freestone("run", "--", str(script)).returncode == 5, "nor from what interprets a script"


OWN = """
#include <stdlib.h>
static void *volatile block;
int main(void) { free(block = malloc(40)); return 5; }
"""


@pytest.mark.parametrize("flags", [[], ["-s"], ["-static"], ["-static", "-s"]])
def test_a_program_with_libfreestone_in_it_is_said_to_be_served_by_that(
    freestone: Tool, compile_c: Callable[..., Path], tmp_path: Path, flags: list[str]
) -> None:
    archive = next((Path(native.__file__).parents[2] / "build").glob("libfreestone.a"), None)
    if archive is None:
        pytest.skip("libfreestone.a is not built here")
    program = compile_c(OWN, "-x", "none", str(archive), "-pthread", *flags)
    done = freestone("run", "--", str(program))
    assert done.returncode == 5
    assert done.stderr.count("\n") == 1
    assert "brings libfreestone itself and is served by that" in done.stderr
    assert "will not serve" not in done.stderr
    results = str(tmp_path / "results")
    compared = freestone("compare", "-a", "glibc", "-n", "1", "--results", results, "--", str(program))
    assert "libfreestone linked into it" in compared.stdout + compared.stderr


def test_run_warns_of_a_set_user_id_program_of_somebody_else(freestone: Tool, compile_c: Callable[..., Path]) -> None:
    if os.geteuid() != 0:
        pytest.skip("giving a program to somebody else needs root")
    program = compile_c("int main(void) { return 5; }")
    program.chmod(0o4755)
    assert freestone("run", "--", str(program)).stderr == "", "root's own: nothing changes hands"
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    assert "is set-user-ID; libfreestone will not serve it" in freestone("run", "--", str(program)).stderr


def test_run_of_what_the_kernel_refuses(freestone: Tool, tmp_path: Path) -> None:
    program = tmp_path / "broken"
    program.write_bytes(b"\x7fELF" + bytes(60))
    program.chmod(0o755)
    done = freestone("run", "--", str(program))
    assert done.returncode == 126
    assert done.stderr.splitlines()[-1].endswith("cannot be executed: exec format error")


def test_allocators_says_what_is_here_and_that_it_works(freestone: Tool) -> None:
    done = freestone("allocators", "--json")
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert {"glibc", "freestone", "mimalloc", "jemalloc", "tcmalloc", "tbb"} <= rows.keys()
    for name in ("glibc", "freestone"):
        assert rows[name]["working"] == {"verified": True, "reason": None}
        assert rows[name]["build_id"]
        assert Path(rows[name]["file"]).is_file()
    for row in rows.values():
        assert row["available"] or row["reason"], "what is missing says how to get it"
    assert done.returncode == (0 if all(r["working"]["verified"] for r in rows.values() if r["available"]) else 4)
    table = freestone("allocators", env={"COLUMNS": "200"})
    for name in rows:
        assert re.search(rf"^{name}\b", table.stdout, re.MULTILINE)
    assert rows["freestone"]["build_id"] in table.stdout


def test_allocators_says_which_does_not_work(freestone: Tool, compile_c: Callable[..., Path]) -> None:
    source = "".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in ("malloc", "calloc", "realloc", "free"))
    library = compile_c(source, "-shared", "-fPIC", "-fno-builtin", name="libtrap.so")
    done = freestone("allocators", str(library), env={"COLUMNS": "200"})
    assert done.returncode == 4
    assert "killed by SIG" in done.stdout


def test_allocators_unverified_starts_no_process(freestone: Tool) -> None:
    done = freestone("allocators", "--no-verify", "--json", "glibc")
    assert done.returncode == 0
    assert [row["working"] for row in json.loads(done.stdout)] == [None]


def test_an_unknown_allocator_suggests_the_nearest(freestone: Tool) -> None:
    done = freestone("allocators", "mimaloc")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean mimalloc" in done.stderr


def test_a_report_of_several_experiments(freestone: Tool, tmp_path: Path) -> None:
    for name in ("one", "two"):
        arguments = ["-a", "glibc", "-n", "1", "--no-report", "--name", name, "--", *PROGRAM]
        assert freestone("compare", *arguments).returncode == 0
    folders = sorted(str(folder) for folder in (tmp_path / "results").iterdir())
    done = freestone("report", *folders, "-o", "both.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Records: ") == 2
    page = (tmp_path / "both.html").read_text()
    for folder in folders:
        assert store.read_experiment(Path(folder)).id in page or store.read_summary(Path(folder)).headline in page
    summaries = json.loads(freestone("report", *folders, "--json").stdout)
    assert [summary["experiment"].split("-")[1] for summary in summaries] == ["one", "two"]
    assert (tmp_path / "freestone-report.html").exists()
    assert all(summary["score"] is None for summary in summaries), (
        "of what compare measured, nobody asked for a scoreboard"
    )

    (tmp_path / "freestone-report.html").unlink()
    scored = freestone("report", *folders, "--markdown", "both.md", "--no-html")
    assert (scored.returncode, scored.stderr) == (0, "")
    assert scored.stdout.count("The field: ratio to the best of all") == 2, "below the tables"
    assert (tmp_path / "both.md").read_text().count("# Scoreboard: 1 workload, 1 allocator\n") == 2
    assert not (tmp_path / "freestone-report.html").exists()


def test_a_summary_is_computed_again_from_the_records(freestone: Tool, only_folder: Callable[[], Path]) -> None:
    assert freestone("compare", "-a", "glibc", "-n", "2", "--no-report", "--", *PROGRAM).returncode == 0
    before = store.read_summary(only_folder())
    (only_folder() / store.SUMMARY_FILE).write_text("{}")
    assert freestone("report", str(only_folder())).returncode == 0
    assert store.read_summary(only_folder()) == before
    assert (only_folder() / store.REPORT_FILE).exists()


@pytest.mark.parametrize(
    ("shell", "place", "check"),
    [
        ("bash", ".local/share/bash-completion/completions/freestone", ["bash", "-n"]),
        ("zsh", ".zsh/completions/_cyclopts_freestone", ["zsh", "-n"]),
        ("fish", ".config/fish/completions/freestone.fish", ["fish", "--no-execute"]),
    ],
)
def test_completion_is_installed(freestone: Tool, tmp_path: Path, shell: str, place: str, check: list[str]) -> None:
    done = freestone("--install-completion", "--shell", shell, env={"SHELL": f"/bin/{shell}"})
    assert done.returncode == 0, done.stderr
    script = tmp_path / "home" / place
    text = script.read_text()
    for word in (*VERBS, *PARTS["allocators"], "--time-budget" if shell != "fish" else "time-budget"):
        assert word in text
    if shutil.which(check[0]) is None:
        pytest.skip(f"{shell} is not here to check the script's syntax; its words were checked")
    subprocess.run([*check, str(script)], check=True)


def test_bash_completes_verbs_and_options(freestone: Tool, tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    freestone("--install-completion", "--shell", "bash")
    script = tmp_path / "home" / ".local/share/bash-completion/completions/freestone"

    def complete(*words: str) -> list[str]:
        line = f"source {script}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
        line += '_freestone; printf "%s\\n" "${COMPREPLY[@]}"'
        if words[-1] == "":
            line = line.replace(f"({' '.join(words)})", f'({" ".join(words[:-1])} "")')
        return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True).stdout.split()

    assert set(VERBS) <= set(complete("freestone", ""))
    assert complete("freestone", "comp") == ["compare"]
    assert "--time-budget" in complete("freestone", "compare", "--ti")
    assert {"add", "remove"} <= set(complete("freestone", "allocators", ""))


def test_options_behind_a_program_that_is_run_are_its_own(freestone: Tool) -> None:
    done = freestone("run", "echo", "--help", "-a", "x")
    assert (done.returncode, done.stdout) == (0, "--help -a x\n")
    done = freestone("run", "-a", "glibc", "echo", "--", "-n")
    assert (done.returncode, done.stdout) == (0, "-- -n\n")
    assert "Run a program under libfreestone" in freestone("run", "--help").stdout


@given(st.lists(st.sampled_from(["-a", "x", "--guard", "--harden", "--", "-", "--help", "--guard=7"]), max_size=6))
def test_dashes_are_put_before_the_program_once_and_nothing_is_lost(words: list[str]) -> None:
    found = program_apart(["run", *words])
    assert [word for word in found if word != "--"] == ["run", *(word for word in words if word != "--")]
    assert program_apart(found) == found
