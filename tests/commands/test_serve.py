"""``freestone serve``: started, opened, ended as its users do."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from waiting import soon

Tool = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., tuple[subprocess.Popen[str], str, str]]


@pytest.fixture
def start(command: list[str], environment: dict[str, str], tmp_path: Path, heard_signals: None) -> Iterator[Start]:
    """``start(words)`` gives the running tool, the line that it printed, and the address in it."""
    running: list[subprocess.Popen[str]] = []

    def begin(*words: str, **more: str) -> tuple[subprocess.Popen[str], str, str]:
        process = subprocess.Popen(
            [*command, "serve", *words],
            cwd=tmp_path,
            env={**environment, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        line = process.stdout.readline()
        return process, line, next((word for word in line.split() if word.startswith("http")), "")

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def test_it_answers_until_ctrl_c(start: Start, tmp_path: Path) -> None:
    process, line, address = start("--port", "0")
    assert line == f"All results of results: {address} (Ctrl-C ends it)\n"
    assert b"No results yet" in urlopen(address).read()
    lost = tmp_path / "results" / "20261120T131500Z-lost"
    lost.mkdir(parents=True)
    assert b"20261120T131500Z-lost" in urlopen(address).read()
    with pytest.raises(HTTPError, match="404"):
        urlopen(f"{address}20261120T131500Z-lost/report.html")
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == ("", "freestone: the page is closed\n")
    assert process.returncode == 0
    assert list(lost.iterdir()) == [], "nothing is written"


def test_a_port_that_is_taken_is_one_line(freestone: Tool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = freestone("serve", "--port", str(port))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"freestone: port {port} is taken; --port 0 takes one that is free\n"


@pytest.mark.parametrize("port", ["-1", "65536", "1.5", "http"])
def test_what_is_no_port_is_one_line(freestone: Tool, port: str) -> None:
    done = freestone("serve", "--port", port)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_a_folder_that_is_none_is_one_line(freestone: Tool, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, said in (("nowhere", "does not exist"), ("file", "is no folder")):
        done = freestone("serve", name, "--port", "0")
        assert (done.returncode, done.stdout) == (5, "")
        assert done.stderr == f"freestone: {name} {said}; give the folder that holds all results\n"


def test_the_browser_is_opened_where_that_is_asked_for(start: Start, tmp_path: Path) -> None:
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\necho "$1" >{seen}.new && mv {seen}.new {seen}\n')
    browser.chmod(0o755)
    _, _, address = start("--port", "0", "--open", BROWSER=f"{browser} %s")
    assert soon(seen.exists, 60)
    assert seen.read_text() == f"{address}\n"
