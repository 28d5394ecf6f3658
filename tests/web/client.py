"""Requests to an ASGI application, without a server."""

import asyncio
import json
from dataclasses import dataclass
from urllib.parse import unquote


@dataclass(frozen=True)
class Answer:
    status: int
    fields: dict
    pieces: tuple
    """The body, as it was sent."""

    @property
    def body(self):
        return b"".join(self.pieces)

    @property
    def error(self):
        return json.loads(self.body)["error"]


def ask(app, target, method="GET", *, root_path="", **fields):
    """Return the answer to a request; underscores in the names of header fields are hyphens."""
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": root_path,
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").lower().encode(), text.encode()) for name, text in fields.items()],
        "server": ("127.0.0.1", 8000),
    }
    sent, received = [], []

    async def receive():
        if received:
            await asyncio.Event().wait()  # the client stays
        received.append(True)
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    head, *pieces = sent
    names = {name.decode(): text.decode() for name, text in head["headers"]}
    return Answer(head["status"], names, tuple(each["body"] for each in pieces if each["body"]))
