"""A web server of values, on 127.0.0.1, that notes what it is asked, and that can be told to misbehave."""

import contextlib
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAST = {
    "max_retries": 1,
    "backoff": {"init_backoff": timedelta(milliseconds=1), "max_backoff": timedelta(milliseconds=2)},
}
"""Options for stores that shall not wait before they try again."""

DATE = "Sun, 22 Nov 2026 00:00:00 GMT"


@contextlib.contextmanager
def recording():
    """Yield a server that runs."""
    with Recording() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


class Recording(ThreadingHTTPServer):
    """A server of `values`.

    `answer` (and `put_answer`, for PUT) is called with each request first, and returns whether it has answered.
    """

    daemon_threads = True
    request_queue_size = 512  # clients may connect many times at once

    def __init__(self):
        self.values, self.asked, self.answer, self.put_answer, self.knows_ranges = {}, [], None, None, True
        super().__init__(("127.0.0.1", 0), Handler)

    def handle_error(self, request, client_address):
        """Say nothing: clients may go away."""

    def url(self, path="", host="127.0.0.1"):
        return f"http://{host}:{self.server_port}{path}"

    def requests(self):
        """Return what was asked since the last time: method, path, and headers."""
        asked, self.asked = self.asked, []
        return asked


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, *args):
        """Say nothing."""

    def respond(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content_Length": len(body), "Last_Modified": DATE, **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        server = self.server
        server.asked.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
        if server.answer is not None and server.answer(self):
            return
        value = server.values.get(self.path)
        if value is None:
            self.respond(404)
            return
        tag = f'"{hash(value)}"'
        if self.headers.get("If-None-Match") == tag:
            self.respond(304, ETag=tag)
        elif self.headers.get("If-Match", tag) != tag:
            self.respond(412)
        elif "Range" in self.headers and server.knows_ranges:
            first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
            start = int(first) if first else max(0, len(value) - int(last))
            stop = min(len(value), int(last) + 1) if first and last else len(value)
            if start >= len(value):
                self.respond(416, Content_Range=f"bytes */{len(value)}")
            else:
                told = f"bytes {start}-{stop - 1}/{len(value)}"
                self.respond(206, value[start:stop], Content_Range=told, ETag=tag)
        else:
            self.respond(200, value, ETag=tag)

    do_HEAD = do_GET  # noqa: N815 - as the library calls it

    def do_PUT(self):
        self.server.asked.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
        value = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.put_answer is not None and self.server.put_answer(self):
            return
        self.server.values[self.path] = value
        self.respond(200, ETag=f'"{hash(value)}"')

    def do_DELETE(self):
        self.server.asked.append((self.command, self.path, {}))
        self.respond(204 if self.server.values.pop(self.path, None) is not None else 404)
