"""Any store over HTTP, for readers that know files and URLs: `served(store)` yields the URL."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

from omnizarr.stores import Store

_ranged = re.compile(r"bytes=(\d*)-(\d*)").fullmatch


@contextmanager
def served(store: Store) -> Iterator[str]:
    """Serve the values of a store on 127.0.0.1 while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            value = store.get(unquote(self.path.partition("?")[0]).lstrip("/"))
            body = b"" if value is None else bytes(value)
            status = 404 if value is None else 200
            if status == 200 and (found := _ranged(self.headers.get("Range", ""))):
                size = len(body)
                first = int(found[1]) if found[1] else max(0, size - int(found[2]))
                last = min(size - 1, int(found[2])) if found[1] and found[2] else size - 1
                if first > last:
                    status, body = 416, b""
                else:
                    status, body = 206, body[first : last + 1]
            self.send_response(status)
            if status == 206:
                self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - the name that BaseHTTPRequestHandler looks for

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
