"""The local page over all results: an HTTP server that only this machine reaches, and that only reads."""

from __future__ import annotations

import os
import shutil
import socketserver
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO, Final

from freestone.browse import addresses, reports
from freestone.browse.listed import Listed
from freestone.browse.rows import rows
from freestone.browse.shelf import Shelf
from freestone.records import store
from freestone.records.whole import why
from freestone.reports import all_results
from freestone.reports.templating import POLICY

HERE: Final = "127.0.0.1"
"""The only address that it is bound to."""

REPORT_POLICY: Final = (
    f"{POLICY}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "sandbox allow-scripts allow-popups allow-downloads"
)
"""Of a report: what it allows itself, and an origin of its own. It may come from somebody else, and must not read the
others."""

PATIENCE_S: Final = 20.0
"""How long a reader may say or take nothing."""


class Server(ThreadingHTTPServer):
    """Answers with the page over all results, and with their reports."""

    daemon_threads = True
    allow_reuse_port = False

    def __init__(self, place: Path, port: int, tool: str) -> None:
        """Take a port; answer when :meth:`serve_forever` is called.

        Args:
            place: the folder of all results; it may come later.
            port: 0 for any that is free.
            tool: what starts freestone, for the commands on the page.

        Raises:
            OSError: the port cannot be taken.
        """
        self.place = place
        self._tool = tool
        self._shelf = Shelf(place)
        super().__init__((HERE, port), _Answer)

    def server_bind(self) -> None:
        """As HTTPServer's, which asks the network for the machine's name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HERE, self.server_address[1]

    @property
    def address(self) -> str:
        """Where it answers."""
        return f"http://{HERE}:{self.server_port}/"

    def page(self, query: str) -> str:
        """The page over what is there now.

        Args:
            query: what is searched for.

        Raises:
            OSError: the folder of all results cannot be read.
        """
        return all_results.render(str(self.place), rows(self.place, self._look(), self._tool), query)

    def report(self, parts: tuple[str, ...]) -> BinaryIO:
        """The report of a result that is on the page.

        Args:
            parts: the folders on the way to it, and its name.

        Raises:
            OSError, ValueError: there is none.
        """
        folder = self.place.joinpath(*parts[:-1])
        known = {Path(each.folder) for each in self._look()}
        several = any(each.parent == folder for each in known) and (folder / store.ORDER_FILE).exists()
        if parts[-1] != store.REPORT_FILE or not (folder in known or several):
            raise FileNotFoundError(f"{folder} is not on the page")
        return reports.opened(self.place, parts)

    def _look(self) -> list[Listed]:
        try:
            return self._shelf.look()
        except FileNotFoundError:
            if os.path.lexists(self.place):
                raise
            return []  # it comes with the first result

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say in one line what went wrong, unless a reader has left."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            said = " ".join(str(error).split())[:300]
            print(f"freestone: a request failed, {type(error).__name__}: {said}", file=sys.stderr, flush=True)


class _Answer(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.0"  # one answer a connection
    timeout = PATIENCE_S

    def do_GET(self) -> None:
        self._answer(whole=True)

    def do_HEAD(self) -> None:
        self._answer(whole=False)

    def _answer(self, *, whole: bool) -> None:
        if not addresses.is_for_here(self.headers.get_all("Host", [])):
            self._say(HTTPStatus.FORBIDDEN, "only localhost and 127.0.0.1 are answered", whole=whole)
            return
        parts = addresses.parts(self.path)
        if parts == ():
            self._list(whole=whole)
        elif parts is not None:
            self._report(parts, whole=whole)
        else:
            self._missing(whole=whole)

    def _list(self, *, whole: bool) -> None:
        try:
            page = self.server.page(addresses.query(self.path)).encode(errors="replace")
        except OSError as error:
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR, f"cannot read {self.server.place}: {why(error)}", whole=whole)
            return
        self._begin(HTTPStatus.OK, "text/html; charset=utf-8", len(page), all_results.policy())
        if whole:
            self.wfile.write(page)

    def _report(self, parts: tuple[str, ...], *, whole: bool) -> None:
        try:
            file = self.server.report(parts)
        except (OSError, ValueError):
            self._missing(whole=whole)
            return
        with file:
            length = os.fstat(file.fileno()).st_size
            self._begin(HTTPStatus.OK, "text/html; charset=utf-8", length, REPORT_POLICY)
            if whole:
                shutil.copyfileobj(file, self.wfile)

    def _missing(self, *, whole: bool) -> None:
        self._say(HTTPStatus.NOT_FOUND, "no such report", whole=whole)

    def _say(self, status: int, line: str, *, whole: bool = True) -> None:
        text = f"{line}\n".encode(errors="replace")
        self._begin(status, "text/plain; charset=utf-8", len(text), "default-src 'none'")
        if whole:
            self.wfile.write(text)

    def _begin(self, status: int, kind: str, length: int, policy: str) -> None:
        self.send_response(status)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.send_header("Content-Security-Policy", policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the library cannot answer: a request that is none, or one that wants to change something."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self._say(HTTPStatus.METHOD_NOT_ALLOWED, "GET and HEAD are answered")
        else:
            self._say(code, message or HTTPStatus(code).phrase)
        self.close_connection = True

    def version_string(self) -> str:
        """Who answers."""
        return "freestone"

    def log_message(self, format: str, *args: object) -> None:
        """Requests are nobody's concern."""
