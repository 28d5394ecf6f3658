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


_PORTS = set()
"""Those that servers of this process have had: clients are shared by URL, and remember what a server cannot do."""


@contextlib.contextmanager
def recording(*, has_conditions=False):
    """Yield a server that runs; `has_conditions`: PUT takes notice of If-Match and If-None-Match, as S3 does."""
    with Recording(has_conditions=has_conditions) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


class Recording(ThreadingHTTPServer):
    """A server of `values`.

    `answer` (and `put_answer`, for PUT) is called with each request first, and returns whether it has answered.
    `tag` makes the ETag of a value; None: there is none.
    """

    daemon_threads = True
    request_queue_size = 512  # clients may connect many times at once

    def __init__(self, *, has_conditions=False):
        self.has_conditions, self.tag, self.marks = has_conditions, lambda value: f'"{hash(value)}"', {}
        self.values, self.asked, self.answer, self.put_answer, self.knows_ranges = {}, [], None, None, True
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), Handler)
        while self.server_port in _PORTS:
            self.server_close()
            super().__init__(("127.0.0.1", 0), Handler)
        _PORTS.add(self.server_port)

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
        tag = server.tag(value)
        told = {} if tag is None else {"ETag": tag}
        if (mark := server.marks.get(self.path)) is not None:
            told["x-amz-meta-omnizarrwrite"] = mark
        if self.headers.get("If-None-Match", "") == tag:
            self.respond(304, **told)
        elif self.headers.get("If-Match", tag) != tag:
            self.respond(412)
        elif "Range" in self.headers and server.knows_ranges:
            first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
            start = int(first) if first else max(0, len(value) - int(last))
            stop = min(len(value), int(last) + 1) if first and last else len(value)
            if start >= len(value):
                self.respond(416, Content_Range=f"bytes */{len(value)}")
            else:
                self.respond(206, value[start:stop], Content_Range=f"bytes {start}-{stop - 1}/{len(value)}", **told)
        else:
            self.respond(200, value, **told)

    do_HEAD = do_GET  # noqa: N815 - as the library calls it

    def do_PUT(self):
        self.server.asked.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
        value = self.rfile.read(int(self.headers["Content-Length"]))
        server = self.server
        self.body = value
        if server.put_answer is not None and server.put_answer(self):
            return
        with server.lock:
            is_met = not server.has_conditions or self.is_condition_met()
            if is_met:
                self.store()
        self.respond(200 if is_met else 412, ETag=f'"{hash(value)}"')

    def is_condition_met(self):
        """Return whether the value is the one that the request names."""
        value = self.server.values.get(self.path)
        wanted = self.headers.get("If-Match")
        if self.headers.get("If-None-Match") == "*":
            return value is None
        return wanted is None or (value is not None and self.server.tag(value) == wanted)

    def store(self):
        """Do what a PUT asks for."""
        self.server.values[self.path] = self.body
        self.server.marks[self.path] = self.headers.get("x-amz-meta-omnizarrwrite")

    def do_DELETE(self):
        self.server.asked.append((self.command, self.path, {}))
        self.respond(204 if self.server.values.pop(self.path, None) is not None else 404)
