"""The page as a browser, and whoever else sends requests, gets it."""

from __future__ import annotations

import html
import os
import re
import socket
from collections.abc import Callable
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from untouched import settle

from freestone.browse.addresses import address
from freestone.browse.server import Server
from freestone.records import store

MakeResult = Callable[..., Path]

SECRET = "nobody else's"
OWN = "<p>a report</p>"


def ask(server: Server, target: str, method: str = "GET", **headers: str) -> tuple[HTTPResponse, str]:
    """An answer, by a request that is sent as it stands."""
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.putrequest(method, "/", skip_host=True, skip_accept_encoding=True)
    sent = {"Host": f"localhost:{server.server_port}", **headers}
    connection._buffer[0] = f"{method} {target} HTTP/1.1".encode("latin-1", "replace")  # type: ignore[attr-defined]
    for name, value in sent.items():
        if value:
            connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def names(page: str, *, shown: bool = True) -> list[str]:
    """The results that a page shows, or hides."""
    rows = re.findall(r'<li data-text="[^"]*"( hidden)?>\s*<h2>(?:<a[^>]*>)?([^<]*)', page)
    return [html.unescape(name) for hidden, name in rows if bool(hidden) != shown]


def test_the_list_has_every_result_newest_first_and_leads_to_their_reports(
    server: Server, make_result: MakeResult
) -> None:
    older = make_result(1, program="solve", verdict="jemalloc is best in time.", report=OWN)
    newer = make_result(2, program="a b&<c>")
    answer, page = ask(server, "/")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert names(page) == [newer.name, older.name]
    for said in ("jemalloc is best in time.", "./solve", "2026-11-20 00:00 UTC", "5 of 5 rounds", "Model 1, 4 CPUs"):
        assert said in page
    assert f'<a href="/{older.name}/report.html">{older.name}</a>' in page
    made_by = f"freestone report '{server.place}/{newer.name}'"
    assert f"No report yet; made by <code>{html.escape(made_by, quote=True)}</code>" in page.replace("&#39;", "&#x27;")
    assert ask(server, f"/{older.name}/report.html")[1] == OWN
    assert ask(server, address([newer.name, store.REPORT_FILE]))[0].status == 404


def test_a_search_in_the_address_shows_what_holds_every_word(server: Server, make_result: MakeResult) -> None:
    one = make_result(1, program="solve", verdict="foomalloc is best")
    two = make_result(2, program="solve", verdict="glibc is best")
    three = make_result(3, program="other", verdict="foomalloc is best")
    for search, found in (("FOOmalloc+solve", [one]), ("best+is", [three, two, one]), ("machine0", [three]), ("x", [])):
        page = ask(server, f"/?q={search}")[1]
        assert names(page) == [each.name for each in found]
        assert f"{len(found)} of 3 results" in page
    page = ask(server, "/?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E")[1]
    assert "<script>alert" not in page


def test_a_page_of_which_nothing_has_changed_opens_nothing(
    server: Server, make_result: MakeResult, opens: list[str]
) -> None:
    for number in range(50):
        make_result(number, report=OWN if number % 2 else None)
    make_result(90, below="fleet")
    (server.place / "fleet" / store.ORDER_FILE).write_text("{}")
    settle(server.place)
    first = ask(server, "/")[1]
    assert opens
    opens.clear()
    assert ask(server, "/")[1] == first
    assert ask(server, "/?q=work")[0].status == 200
    assert opens == []


def test_a_name_that_is_no_text_leads_to_its_report(server: Server) -> None:
    folder = server.place / os.fsdecode(b"20261120T131500Z-caf\xe9")
    folder.mkdir()
    (folder / store.EXPERIMENT_FILE).write_text("{")
    (folder / store.REPORT_FILE).write_text(OWN)
    page = ask(server, "/")[1]
    assert 'href="/20261120T131500Z-caf%E9/report.html"' in page
    assert ask(server, "/20261120T131500Z-caf%E9/report.html")[1] == OWN


def test_what_comes_while_it_runs_is_there_on_reload(server: Server, make_result: MakeResult) -> None:
    assert "No results yet" in ask(server, "/")[1]
    made = make_result(1)
    assert names(ask(server, "/")[1]) == [made.name]
    server.place.rename(server.place.parent / "gone")
    assert "No results yet" in ask(server, "/")[1]


def test_damaged_folders_stand_there_with_their_reason(server: Server, make_result: MakeResult) -> None:
    good, bad = make_result(1), make_result(2)
    (bad / store.EXPERIMENT_FILE).write_text("{")
    page = ask(server, "/")[1]
    assert names(page) == [good.name, bad.name]
    assert f"{bad.name}/experiment.json is damaged" in page
    assert '<a href="/?q=damaged">1 damaged</a>' in page
    assert names(ask(server, "/?q=damaged")[1]) == [bad.name]


def test_places_of_an_order_lead_to_the_report_of_all(server: Server, make_result: MakeResult) -> None:
    one = make_result(1, below="fleet")
    two = make_result(2, below="fleet", report=OWN)
    (server.place / "fleet" / store.ORDER_FILE).write_text("{}")
    (server.place / "fleet" / store.REPORT_FILE).write_text("of all")
    page = ask(server, "/")[1]
    assert f'<a href="/fleet/report.html">fleet/{one.name}</a>' in page
    assert f'<a href="/fleet/{two.name}/report.html">fleet/{two.name}</a>' in page
    assert page.count('<a href="/fleet/report.html">Side by side with other places</a>') == 1
    assert ask(server, "/fleet/report.html")[1] == "of all"
    assert ask(server, f"/fleet/{two.name}/report.html")[1] == OWN


def test_a_report_older_than_its_trials_is_told(server: Server, make_result: MakeResult) -> None:
    made = make_result(1, report=OWN)
    assert "older than its trials" not in ask(server, "/")[1]
    settle(server.place)
    (made / store.TRIALS_FILE).touch()
    assert "The report is older than its trials; renewed by <code>freestone report" in ask(server, "/")[1]


def test_the_folder_may_be_one_result(make_result: MakeResult) -> None:
    from freestone.browse.rows import rows
    from freestone.browse.shelf import Shelf

    made = make_result(1, report=OWN)
    (row,) = rows(made, Shelf(made).look(), "freestone")
    assert (row.name, row.address) == (made.name, "/report.html")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "X"])
def test_only_reading_is_answered(server: Server, make_result: MakeResult, method: str) -> None:
    make_result(1)
    answer, text = ask(server, "/", method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
    assert text == "GET and HEAD are answered\n"


@pytest.mark.parametrize("target", ["/", "/?q=x", "/nowhere", "/20261120T000001Z-work/report.html"])
def test_head_says_what_get_would(server: Server, make_result: MakeResult, target: str) -> None:
    make_result(1, report=OWN)
    (got, text), (head, nothing) = ask(server, target), ask(server, target, "HEAD")
    assert nothing == ""
    assert got.status == head.status
    assert head.headers["Content-Length"] == str(len(text.encode()))
    drop = {"Date"}
    assert {k: v for k, v in got.headers.items() if k not in drop} == {
        k: v for k, v in head.headers.items() if k not in drop
    }


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example:80", "", "127.0.0.2", "localhost, evil.example"]
)
@pytest.mark.parametrize("target", ["/", "/20261120T000001Z-work/report.html", "/nowhere"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_request_for_another_name_learns_nothing(
    server: Server, make_result: MakeResult, host: str, target: str, method: str
) -> None:
    make_result(1, report=OWN)
    answer, text = ask(server, target, method, Host=host)
    assert answer.status == 403
    assert text in ("only localhost and 127.0.0.1 are answered\n", "")


def test_every_answer_forbids_to_load_and_to_guess(server: Server, make_result: MakeResult) -> None:
    made = make_result(1, report=OWN)
    for target in ("/", f"/{made.name}/report.html", "/nowhere"):
        headers = ask(server, target)[0].headers
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in headers
    assert "'unsafe" not in ask(server, "/")[0].headers["Content-Security-Policy"]
    assert "sandbox allow-scripts " in ask(server, f"/{made.name}/report.html")[0].headers["Content-Security-Policy"]


def test_it_is_bound_to_the_loopback_alone(server: Server) -> None:
    assert server.socket.getsockname() == ("127.0.0.1", server.server_port)
    with socket.socket() as other, pytest.raises(ConnectionRefusedError):
        other.connect(("127.0.0.2", server.server_port))


SEGMENTS = (
    *("..", "%2e%2e", ".%2e", "%2E%2E", ".", "%2f", "..%2f..", "%252e%252e", "", "%00", "\\", "..%5c"),
    *("secret", "report.html", "results", "linked", "linked-folder", "inside", "etc", "passwd", "experiment.json"),
    *("20261120T000001Z-work", "20261120T000002Z-work", "private"),
)


@pytest.fixture
def traps(server: Server, make_result: MakeResult) -> Server:
    """Secrets beside the results, and ways that seem to lead to them."""
    place = server.place
    make_result(1, report=OWN)
    make_result(2)
    outside = place.parent / "secret"
    outside.mkdir()
    (outside / store.REPORT_FILE).write_text(SECRET)
    (outside / store.EXPERIMENT_FILE).write_text("{}")
    (place.parent / store.REPORT_FILE).write_text(SECRET)
    (place / store.REPORT_FILE).write_text(SECRET)  # no result's
    (place / "private").mkdir()
    (place / "private" / store.REPORT_FILE).write_text(SECRET)
    (place / "linked-folder").symlink_to(outside)
    (place / "20261120T000002Z-work" / store.REPORT_FILE).symlink_to(outside / store.REPORT_FILE)
    (place / "20261120T000001Z-work" / "inside").symlink_to(outside)
    (place / "linked").symlink_to(place / "20261120T000001Z-work")
    os.mkfifo(make_result(3) / store.REPORT_FILE)
    return server


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(SEGMENTS), max_size=6).map(lambda found: "/" + "/".join(found)))
@example("/linked-folder/report.html")
@example("/20261120T000002Z-work/report.html")
@example("/20261120T000001Z-work/inside/report.html")
@example("/20261120T000001Z-work/../../secret/report.html")
@example("/20261120T000001Z-work%2freport.html")
@example("/20261120T000001Z-work/experiment.json")
@example("/private/report.html")
@example("/report.html")
def test_nothing_but_reports_of_results_is_answered(traps: Server, target: str) -> None:
    answer, text = ask(traps, target)
    assert SECRET not in text
    if not target.strip("/"):
        assert answer.status in ((200,) if target == "/" else (200, 404)), "Python's server takes several for one"
    elif target == "/20261120T000001Z-work/report.html":
        assert (answer.status, text) == (200, OWN)
    else:
        assert (answer.status, text) == (404, "no such report\n")


def test_a_pipe_in_the_place_of_a_report_holds_nobody_up(traps: Server) -> None:
    assert ask(traps, "/20261120T000003Z-work/report.html")[0].status == 404


@pytest.mark.parametrize("target", ["http://evil.example/", "*", "//evil.example/report.html", "report.html"])
def test_targets_that_are_no_path_are_missing(traps: Server, target: str) -> None:
    assert ask(traps, target)[0].status == 404


@pytest.mark.parametrize(
    "sent", [b"\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"G" * 70000]
)
def test_what_is_no_request_ends_nothing(
    server: Server, make_result: MakeResult, sent: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    make_result(1)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as other:
        other.sendall(sent)
        other.shutdown(socket.SHUT_WR)
        try:
            answer = other.recv(1 << 16)
        except ConnectionResetError:
            answer = b""
    assert b"Traceback" not in answer
    assert ask(server, "/")[0].status == 200
    assert "Traceback" not in capsys.readouterr().err


def test_a_result_that_is_a_link_says_no_command_that_would_not_help(server: Server, tmp_path: Path) -> None:
    (server.place / "20261120T000009Z-link").symlink_to(tmp_path)
    assert names(ask(server, "/")[1]) == ["20261120T000009Z-link"]
