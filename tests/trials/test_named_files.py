"""The files that a command names are known by their content."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from freestone.records.schema import FOLDER, Input, Workload
from freestone.trials.named_files import NamedFiles, code, untouched

ENVIRONMENT = {"PATH": os.environ["PATH"]}


def _workload(folder: Path, *command: str) -> Workload:
    return Workload(name="work", command=list(command), directory=str(folder))


def _named(folder: Path, *command: str) -> set[str]:
    return {Path(path).name for path in NamedFiles().contents(_workload(folder, *command), ENVIRONMENT)}


def test_the_program_and_what_its_words_name(tmp_path: Path) -> None:
    for name in ("job.py", "a.csv", "b c.csv"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder").mkdir()
    shell = Path("/bin/sh").name
    assert _named(tmp_path, "sh", "-c", "python3 job.py <'b c.csv'", "--from=a.csv", "folder", "nothing") == {
        shell,
        "job.py",
        "a.csv",
        "b c.csv",
        "folder",
    }
    assert _named(tmp_path, "./job.py") == {"job.py"}
    assert _named(tmp_path, sys.executable, "-c", "print('\n\"')") == {Path(sys.executable).name}


def test_another_content_is_seen_however_it_came(tmp_path: Path) -> None:
    script, files = tmp_path / "job.py", NamedFiles()
    workload = _workload(tmp_path, "./job.py")
    script.write_text("print(1)")
    first = files.contents(workload, ENVIRONMENT)
    assert files.contents(workload, ENVIRONMENT) == first
    script.touch()
    assert files.contents(workload, ENVIRONMENT) == first, "a file that is only touched is the same"
    times = script.stat()
    script.write_text("print(2)")
    os.utime(script, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert files.contents(workload, ENVIRONMENT) != first, "nobody can set the time at which it was changed"
    other = tmp_path / "other"
    other.write_text("print(1)")
    other.rename(script)
    assert files.contents(workload, ENVIRONMENT) == first


def test_what_was_written_to_is_left_out() -> None:
    assert untouched({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "5", "d": "4"}) == {"a": "1"}


def test_what_it_reads_as_its_standard_input_is_one_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("one")
    workload = _workload(tmp_path, "cat").model_copy(update={"input": Input(file=str(tmp_path / "in"))})
    files = NamedFiles()
    before = files.contents(workload, ENVIRONMENT)[str(tmp_path / "in")]
    (tmp_path / "in").write_text("another")
    assert files.contents(workload, ENVIRONMENT)[str(tmp_path / "in")] != before


def test_a_name_is_found_whatever_stands_around_it(tmp_path: Path) -> None:
    (tmp_path / "nl").write_text("1\n")
    lines = [
        "read n < nl; ./p $n",
        "sort nl|uniq",
        "cat nl&& x",
        "(cat nl)",
        "sort <nl>out",
        "x $(cat nl)",
        '"nl";',
        "it's nl",
    ]
    for line in lines:
        assert "nl" in _named(tmp_path, "sh", "-c", line), line
    for word in ("@nl", "-fnl", "nl,5", "nl:5", "file:nl", "--in=nl", "-f=nl", "of=nl"):
        assert "nl" in _named(tmp_path, "cat", word), word


def test_code_is_told_from_what_a_program_may_write_to(tmp_path: Path) -> None:
    for name in ("job.sh", "data"):
        (tmp_path / name).write_text(name)
    shell = _workload(tmp_path, "sh", "job.sh", "data")
    found = code(shell, NamedFiles().contents(shell, ENVIRONMENT))
    assert [Path(path).name for path in found][1:] == ["job.sh"]
    plain = _workload(tmp_path, "cat", "data")
    assert [Path(path).name for path in code(plain, NamedFiles().contents(plain, ENVIRONMENT))] == ["cat"]


def test_a_folder_is_known_by_the_names_and_contents_in_it(tmp_path: Path) -> None:
    def told(where: Path, word: str) -> str:
        return NamedFiles().contents(_workload(where, "ls", word), ENVIRONMENT)[
            str(where / (word.partition("=")[2] or word))
        ]

    for side in ("before", "after"):
        (tmp_path / side / "data" / "deep").mkdir(parents=True)
        (tmp_path / side / "data" / "deep" / "file").write_text("same")
        (tmp_path / side / "data" / "link").symlink_to("deep")
    before, after = tmp_path / "before", tmp_path / "after"
    same = told(before, "data")
    assert same.startswith(FOLDER)
    assert told(after, "data") == told(after, str(after / "data")) == told(after, "--from=data") == same
    (after / "data" / "deep" / "file").write_text("else")
    assert told(after, "data") != same
    (after / "data" / "deep" / "file").write_text("same")
    (after / "data" / "deep" / "file").rename(after / "data" / "file")
    assert told(after, "data") != same
    assert Path(tmp_path).name not in _named(tmp_path, "sh", "-c", "echo . ; cd data")


def test_a_folder_of_too_much_is_told_by_where_it_lies(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        for number in range(1100):
            (tmp_path / name / str(number)).touch()
    contents = NamedFiles().contents(_workload(tmp_path, "ls", "one", "other"), ENVIRONMENT)
    assert contents[str(tmp_path / "one")] != contents[str(tmp_path / "other")]


def test_a_folder_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "scandir", lambda _path: (_ for _ in ()).throw(PermissionError))
        assert str(tmp_path / "data") not in NamedFiles().contents(_workload(tmp_path, "ls", "data"), ENVIRONMENT)
