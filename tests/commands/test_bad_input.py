"""Whatever is wrong: one clear line, the right exit status, and no finished measurement lost."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from freestone.cli import VERBS
from freestone.records import store

Tool = Callable[..., subprocess.CompletedProcess[str]]

PROGRAM = [sys.executable, "-I", "-S", "-c", "print(1)"]


def _one_line(done: subprocess.CompletedProcess[str], status: int, pattern: str) -> None:
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert re.match(f"freestone: .*{pattern}", done.stderr), done.stderr


@pytest.mark.parametrize("verb", ["compare", "run"])
@pytest.mark.parametrize(
    ("program", "status", "pattern"),
    [
        ("no-such-program", 127, "program 'no-such-program' not found"),
        ("./no/such/program", 127, "program './no/such/program' not found"),
        ("./text", 126, "program 'text' is not executable: permission denied"),
        ("./folder", 126, "program 'folder' is not executable: it is a folder"),
        ("", 2, "no program given"),
    ],
)
def test_a_program_that_cannot_be_run(
    freestone: Tool, tmp_path: Path, verb: str, program: str, status: int, pattern: str
) -> None:
    (tmp_path / "text").write_text("not a program")
    (tmp_path / "folder").mkdir()
    _one_line(freestone(verb, "--", program), status, pattern)
    assert not (tmp_path / "results").exists(), "nothing is begun"


@pytest.mark.parametrize("verb", ["compare", "doctor"])
def test_a_word_before_the_dashes_is_told_from_the_program_behind_them(freestone: Tool, verb: str) -> None:
    pattern = "program 'minutes' not found; it stands before --, and the program, ./mix, behind it"
    _one_line(freestone(verb, "--time-budget", "5", "minutes", "--", "./mix", "fast"), 127, pattern)
    plain = freestone(verb, "--time-budget", "5", "--", "minutes", "--", "./mix")
    assert plain.stderr == "freestone: program 'minutes' not found\n"


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (["compare", "-n"], "-n takes a value, and none stands behind it"),
    ],
)
def test_what_is_missing_is_named_as_it_is_typed(freestone: Tool, words: list[str], pattern: str) -> None:
    _one_line(freestone(*words), 2, pattern)


@pytest.mark.parametrize("verb", ["compare", "run"])
def test_no_program(freestone: Tool, verb: str) -> None:
    _one_line(freestone(verb), 2, f"no program given; write it after --, as in: freestone {verb} -- ")


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        (["-n", "0"], "0 rounds measure nothing"),
        (["-n", "-3"], "-3 rounds measure nothing"),
        (["-n", "many"], "-n"),
        (["--time-budget", "0"], "--time-budget: it takes from 1 ms to 365 d, not '0'"),
        (["--time-budget", "inf"], "--time-budget: it takes from 1 ms to 365 d, not 'inf'"),
        (["--timeout", "-1"], "--timeout: it takes from 1 ms to 7 d, not '-1'"),
        (["--timeout", "nan"], "--timeout: it takes from 1 ms to 7 d, not 'nan'"),
        (["--env", "NOVALUE"], "--env takes NAME=VALUE, or NAME of a variable that is set, not 'NOVALUE'"),
        (["--seed", "-1"], "--seed takes a number from 0 up"),
        (["-a", "jemaloc"], "unknown allocator 'jemaloc'; did you mean jemalloc"),
        (["--baseline", "glib"], "unknown allocator 'glib'; did you mean glibc"),
        (["-a", "glibc:arena_max=2"], "'arena_max=2' is no setting of glibc; write glibc:GLIBC_TUNABLES="),
        (["-a", "glibc:A=1,freestone:b:c"], "'freestone:b:c' is no configuration; write freestone:VARIABLE=VALUE"),
        (["--baseline", "glibc,freestone"], "--baseline takes one allocator, not 2"),
        (["-a", "./text.so"], r"text\.so is not a shared library"),
        (["-a", "./missing.so"], r"missing\.so does not exist"),
        (["--colour"], "[Uu]nknown option.*--colour.*see freestone compare --help"),
    ],
)
def test_wrong_use(freestone: Tool, tmp_path: Path, arguments: list[str], pattern: str) -> None:
    (tmp_path / "text.so").write_text("not a library")
    _one_line(freestone("compare", *arguments, "--", *PROGRAM), 2, pattern)
    assert not (tmp_path / "results").exists(), "nothing is begun"


def test_an_allocator_that_is_not_here_says_how_to_get_it(freestone: Tool, tmp_path: Path) -> None:
    catalogue = tmp_path / "home" / ".config" / "freestone" / "allocators.toml"
    catalogue.parent.mkdir(parents=True)
    catalogue.write_text('[absentmalloc]\ntitle = "Absent"\nsonames = ["libabsentmalloc.so.1"]\n')
    done = freestone("compare", "-a", "absentmalloc", "--", *PROGRAM)
    _one_line(done, 2, r"'absentmalloc' is not available: .*put libabsentmalloc\.so\.1 into")


def test_a_catalogue_that_is_none(freestone: Tool, tmp_path: Path) -> None:
    catalogue = tmp_path / "home" / ".config" / "freestone" / "allocators.toml"
    catalogue.parent.mkdir(parents=True)
    catalogue.write_text("[")
    _one_line(freestone("compare", "--", *PROGRAM), 2, "allocators.toml")
    _one_line(freestone("allocators"), 2, "allocators.toml")


def test_a_forgotten_separator_is_named(freestone: Tool) -> None:
    _one_line(freestone("compare", "ls", "-l"), 2, "-l.*the program stands after --")


def test_a_name_that_cannot_be_recorded(freestone: Tool) -> None:
    _one_line(freestone("compare", "--", "ls", os.fsdecode(b"\xff")), 2, "not UTF-8")


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        (["compar", "--", *PROGRAM], r"no verb is called 'compar'; did you mean compare\? \(see freestone --help\)"),
        (["help"], rf"no verb is called 'help'; there are {', '.join(VERBS)} \(see freestone --help\)"),
        (["list", "one", "two"], "'two' is too much .*see freestone list --help"),
    ],
)
def test_words_that_nothing_can_be_made_of(freestone: Tool, arguments: list[str], pattern: str) -> None:
    _one_line(freestone(*arguments), 2, pattern)


def test_no_verb_is_help_and_wrong_use(freestone: Tool) -> None:
    done = freestone()
    assert done.returncode == 2
    assert "compare" in done.stdout


@pytest.mark.parametrize("results", ["file/results", "/proc/results", "/dev/null"])
def test_results_that_cannot_be_written(freestone: Tool, tmp_path: Path, results: str) -> None:
    (tmp_path / "file").touch()
    _one_line(freestone("compare", "--results", results, "--", *PROGRAM), 5, f"cannot write results into {results}: ")


def test_results_without_permission(freestone: Tool, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    (tmp_path / "results").mkdir(mode=0o555)
    _one_line(freestone("compare", "--", *PROGRAM), 5, "cannot write results into results: permission denied")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting a small tmpfs needs root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def _kept(done: subprocess.CompletedProcess[str], folder: Path, why: str) -> None:
    """The measurement stopped at a full disk: status, one line, records whole, table shown."""
    assert done.returncode == 5, done.stderr
    last = done.stderr.splitlines()[-1]
    reading = store.read_trials(folder)
    assert reading.damage == []
    assert reading.records
    path = re.escape(f"{folder.name}/{store.TRIALS_FILE}")
    kept = f"{len(reading.records)} finished trials? kept, go on with: freestone compare --resume"
    expected = rf"freestone: cannot write .*{path}: {why}; {kept}"
    assert re.fullmatch(f"{expected} .*", last), last
    assert "glibc" in done.stdout


def test_a_disk_that_fills_up_keeps_what_was_measured(freestone: Tool, small_disk: Path) -> None:
    done = freestone("compare", "-a", "glibc", "-n", "40", "--no-report", "--results", str(small_disk), "--", *PROGRAM)
    (folder,) = small_disk.iterdir()
    _kept(done, folder, "no space left on device")
    subprocess.run(["mount", "-o", "remount,size=10m", str(small_disk)], check=True)
    kept = len(store.read_trials(folder).records)
    resumed = freestone("compare", "--resume", str(folder), "--no-report", timeout=240)
    assert resumed.returncode == 0, resumed.stderr
    assert len(store.read_trials(folder).records) == 80 > kept


def test_a_file_that_may_not_grow_keeps_what_was_measured(freestone: Tool, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, 16_384))

    done = freestone("compare", "-a", "glibc", "-n", "40", "--no-report", "--", *PROGRAM, preexec_fn=limit)
    (folder,) = (tmp_path / "results").iterdir()
    _kept(done, folder, "file too large")


@pytest.fixture
def finished(freestone: Tool, only_folder: Callable[[], Path]) -> Path:
    done = freestone("compare", "-a", "freestone", "-n", "2", "--no-report", "--", *PROGRAM)
    assert done.returncode == 0, done.stderr
    return only_folder()


def test_a_corrupted_record_is_named_and_left_out(freestone: Tool, finished: Path) -> None:
    path = finished / store.TRIALS_FILE
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = b"".join([lines[0], lines[1][:100] + b"\n", b"\x00\xff\n", *lines[2:5], lines[5][:-20]])
    path.write_bytes(damaged)
    done = freestone("report", str(finished))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 1
    assert "3 damaged, left out (line 2: " in done.stderr
    assert path.read_bytes() == damaged, "nothing is taken away"
    assert sum(cell.trials_total for cell in store.read_summary(finished).cells) == 4
    resumed = freestone("compare", "--resume", str(finished), "--no-report")
    assert resumed.returncode == 0, resumed.stderr
    assert "3 damaged, left out" in resumed.stderr
    assert len(store.read_trials(finished).records) == 6
    assert path.read_bytes().startswith(damaged)


@pytest.mark.parametrize(
    ("arguments", "status", "pattern"),
    [
        ([], 2, "no results folder given"),
        (["any", "--no-html", "-o", "page.html"], 2, "-o names the HTML file that --no-html leaves out"),
        (["nowhere"], 5, "nowhere does not exist; give a results folder"),
        (["empty"], 5, "holds no experiment.json"),
        (["."], 2, "holds results folders; give one of them, as in damaged"),
        (["damaged"], 5, "damaged/experiment.json is damaged: "),
    ],
)
def test_a_report_of_what_is_no_results_folder(
    freestone: Tool, tmp_path: Path, arguments: list[str], status: int, pattern: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "experiment.json").write_text("{]")
    _one_line(freestone("report", *arguments), status, pattern)


def test_a_folder_that_cannot_be_written_any_more_is_still_reported(freestone: Tool, finished: Path) -> None:
    frozen = finished.rename(finished.parent / "frozen")
    mount = ["mount", "--bind", "-o", "ro", str(frozen), str(frozen)]
    if os.geteuid() == 0 and subprocess.run(mount, capture_output=True).returncode == 0:
        unfreeze = ["umount", str(frozen)]
    elif os.geteuid() != 0:
        frozen.chmod(0o555)
        unfreeze = ["chmod", "755", str(frozen)]
    else:
        pytest.skip("root without the right to mount can write anywhere")
    try:
        assert freestone("report", str(frozen), "-o", "page.html").returncode == 0
        _one_line(freestone("report", str(frozen)), 5, "cannot write .*report.html: .*; -o FILE writes it elsewhere")
        assert freestone("report", str(frozen), "--no-html").returncode == 0
    finally:
        subprocess.run(unfreeze, check=True)


def test_a_report_that_cannot_be_written(freestone: Tool, finished: Path) -> None:
    _one_line(freestone("report", str(finished), "-o", "/proc/report.html"), 5, "cannot write /proc/report.html: ")


def test_a_reader_that_goes_away_is_no_error(command: list[str], environment: dict[str, str], tmp_path: Path) -> None:
    tool = subprocess.Popen(
        [*command, "allocators", "--json", "--no-verify"],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert tool.stdout is not None
    tool.stdout.close()
    assert tool.stderr is not None
    assert tool.stderr.read() == ""
    assert tool.wait(60) == 0


def test_standard_output_that_is_full_is_one_line(
    freestone: Tool, tmp_path: Path, command: list[str], environment: dict[str, str]
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*command, "--help"], cwd=tmp_path, env=environment, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 5
    assert done.stderr == "freestone: cannot write to standard output: no space left on device\n"


def test_options_behind_a_program_without_dashes_are_refused(freestone: Tool, tmp_path: Path) -> None:
    """They may be the program's: nobody measures another command in silence."""
    done = freestone("compare", "sh", "-n", "1", "-a", "glibc", "x")
    assert done.returncode == 2
    assert "options behind sh would be freestone's: write -- before it" in done.stderr
    assert not (tmp_path / "results").exists()
    assert freestone("compare", "-n", "1", "-a", "glibc", "--no-report", "true").returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ["--command", "true", "--command", "echo a", "-n", "1"],
        ["--command=true", "-n", "1", "--command", "echo a"],
        ["-n", "1", "--scan", "n=1,2", "echo", "{n}"],
    ],
)
def test_programs_that_are_values_of_options_have_nothing_behind_them(freestone: Tool, words: list[str]) -> None:
    done = freestone("compare", "-a", "glibc", "--no-report", *words)
    assert (done.returncode, done.stderr.count("would be freestone's")) == (0, 0), done.stderr


@pytest.mark.parametrize("words", [["compare", "--", "true"], ["bench", "patterns"], ["doctor", "--pid", "1"]])
def test_a_folder_that_was_removed_is_named(
    words: list[str], command: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f'cd "{gone}" && rmdir "{gone}" && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", line, "sh", *command, *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 5
    assert done.stderr.count("the current folder was removed; go to one that is there (cd), and start again") == 1
