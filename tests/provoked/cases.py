"""Errors that a user meets: what provokes each, in Python and on the command line, and what it must say."""

import contextlib
import http.server
import json
import pickle
import re
import threading
from dataclasses import dataclass, field

import numpy as np

import omnizarr
from omnizarr.errors import OmnizarrError

CASES = []

PYTHON = re.compile(r"(?<![\w'/?-])[a-z][a-z_]*[a-z]=(?=True|False|None|['\"\d])|Traceback")
"""Keywords and tracebacks, which the command line must not show."""


@dataclass(frozen=True)
class Case:
    """An error: what provokes it, the class by which a caller catches it, and what it must say."""

    prepare: object
    """From an empty directory to what raises it, and the command line that meets it too, if one can."""
    kind: type
    says: tuple
    """What the message holds: the place, what was found, what was expected. ``{at}`` is the directory."""
    remedy: str | None
    """A part of what to do about it; None where nothing can be advised."""
    has: dict = field(default_factory=dict)
    """Attributes of the error."""
    typed: tuple | None = None
    """What the command line says in place of `says` and `remedy`, which it says otherwise."""

    def check(self, error, at):
        """Check what an error says, and what it has for programs."""
        text = str(error)
        for said in filter(None, (*self.says, self.remedy)):
            assert said.replace("{at}", str(at)) in text
        assert "\n" not in text
        if not isinstance(error, OmnizarrError):
            assert self.remedy is None
            return
        assert type(error).__module__ == "omnizarr.errors"
        assert (self.remedy is None) == (error.remedy is None), error.remedy
        assert {name: getattr(error, name) for name in self.has} == self.has
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), text)

    def check_typed(self, said, at):
        """Check what the command line says."""
        for words in self.typed or filter(None, (*self.says, self.remedy)):
            assert words.replace("{at}", str(at)) in said
        assert said.startswith("omnizarr: ")
        assert said.count("\n") == 1
        assert not PYTHON.search(said)

    @property
    def name(self):
        return self.prepare.__name__


def case(kind, *says, remedy=None, typed=None, **has):
    """Put a function into the table."""

    def put(prepare):
        CASES.append(Case(prepare, kind, says, remedy, has, typed))
        return prepare

    return put


def hierarchy(at, **options):
    """Make a group `x.zarr` with an array `ocean/temp` of 4 x 6 in chunks of 2 x 3, which is written."""
    root = omnizarr.create_group(at / "x.zarr", **options)
    array = root.create_array("ocean/temp", shape=(4, 6), chunks=(2, 3), dtype="int16", dimension_names=["y", "x"])
    array[:] = np.arange(24).reshape(4, 6)
    return root


def document(at, name="zarr.json", **changes):
    """Change members of the document of the array of `hierarchy`; those that are None go."""
    file = at / "x.zarr/ocean/temp" / name
    members = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({name: value for name, value in members.items() if value is not None}))


@contextlib.contextmanager
def answering(status, body=b"", headers=(), *, secure=None):
    """A server that gives one answer to everything; yields its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            length = int(self.headers.get("content-length") or 0)
            self.rfile.read(length)
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def __getattr__(self, name):
            if name.startswith("do_"):
                return self.answer
            raise AttributeError(name)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # a client that does not trust the certificate
    address = secure(server) if secure else f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield address
    finally:
        server.shutdown()
        server.server_close()
