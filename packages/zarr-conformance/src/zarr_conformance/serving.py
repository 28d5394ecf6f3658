"""Serve stores over HTTP on 127.0.0.1, as plain web servers do: ranges, 404 for what is missing, no listing."""

from __future__ import annotations

import contextlib
import re
import threading
import urllib.parse
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from zarr_conformance.case import Case

RANGE = re.compile(r"bytes=(\d*)-(\d*)$")


class Server:
    """A server that is started when the first case asks for it."""

    def __init__(self) -> None:
        self._server: ThreadingHTTPServer | None = None
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def publish(self, case: Case, path: Path) -> str:
        """Put the files of a case on the server, and return the URL of its node."""
        if self._server is None:
            self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self.files, self.faults))
            self._server.daemon_threads = True
            threading.Thread(target=self._server.serve_forever, daemon=True).start()
        prefix = f"/{case.name}"
        self.files.update({f"{prefix}/{key}": value for key, value in case.files.items()})
        self.faults.update({f"{prefix}/{key}": status for key, status in case.faults.items()})
        tail = f"/{urllib.parse.quote(case.path)}" if case.path else ""
        return f"http://127.0.0.1:{self._server.server_address[1]}{prefix}{tail}"


def handler(files: Mapping[str, bytes], faults: Mapping[str, int]) -> type[BaseHTTPRequestHandler]:
    """Return the class that answers from files."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def answer(self, *, with_body: bool) -> None:
            key = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
            value = files.get(key)
            status = faults.get(key, HTTPStatus.OK if value is not None else HTTPStatus.NOT_FOUND)
            body, headers = value or b"", {"Accept-Ranges": "bytes"}
            if status >= HTTPStatus.BAD_REQUEST:
                body = b""
            elif asked := RANGE.match(self.headers.get("Range", "")):
                total = len(body)
                first, last = asked.groups()
                start = int(first) if first else max(total - int(last), 0)
                stop = min(int(last) + 1, total) if first and last else total
                if start >= total:
                    status, body = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, b""
                    headers["Content-Range"] = f"bytes */{total}"
                else:
                    status, body = HTTPStatus.PARTIAL_CONTENT, body[start:stop]
                    headers["Content-Range"] = f"bytes {start}-{stop - 1}/{total}"
            self.send_response(status)
            for name, text in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, text)
            self.end_headers()
            if with_body:
                with contextlib.suppress(ConnectionError):  # a reader that has seen enough may leave
                    self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    return Handler
