"""A proxy in front of a real server, on 127.0.0.1, that injects the faults that a test specifies.

    with FaultProxy(server.endpoint) as proxy:
        place = server.fresh().at(proxy.endpoint)
        proxy.fault(Answer(503, {"Retry-After": "1"}), method="GET", path="/c/0", first=2, times=3)

It understands as much of HTTP/1.1 as it takes to know where requests and answers begin and end. Everything else goes
through unchanged, `Host` too, which is signed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import responses
from typing import Self
from urllib.parse import unquote, urlsplit

_PIECE = 1 << 16


class Fault:
    """What happens to a request; a `Fault` itself: nothing."""


@dataclass(frozen=True)
class Answer(Fault):
    """The proxy answers by itself, and the server hears of nothing; `done`: but it has done what it was asked to."""

    status: int
    fields: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    done: bool = False


@dataclass(frozen=True)
class Refuse(Fault):
    """The connection is reset, and the server hears of nothing."""


@dataclass(frozen=True)
class Reset(Fault):
    """The server does what it is asked to; the connection is reset after so many bytes of its answer's body.

    With None nothing of the answer arrives, not even its head: it is unknown whether the request was received.
    """

    after: int | None = None


@dataclass(frozen=True)
class Truncate(Fault):
    """The connection is closed in good order after so many bytes of the answer's body, fewer than it was to have."""

    after: int


@dataclass(frozen=True)
class Hang(Fault):
    """No answer, for ever; `done`: but the server has done what it was asked to."""

    done: bool = False


@dataclass(frozen=True)
class Slow(Fault):
    """The body of the answer arrives at so many bytes per second."""

    bytes_per_second: float


@dataclass(frozen=True)
class Delay(Fault):
    """The request goes on its way so many seconds later."""

    seconds: float


@dataclass(frozen=True)
class Call(Fault):
    """The test's own function is called, in another thread, before the request goes on its way."""

    function: Callable[[], object]


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    method: str
    path: str
    """Decoded, without the query."""
    query: str
    fields: Mapping[str, str]
    """By their names in small letters."""


@dataclass
class _Rule:
    fault: Fault
    method: str | None
    path: re.Pattern[str]
    query: re.Pattern[str]
    first: int
    times: float
    seen: int = 0

    def takes(self, request: Request) -> bool:
        """Count the request if it is meant; return whether the fault happens to it."""
        if self.method not in (None, request.method):
            return False
        if not (self.path.search(request.path) and self.query.search(request.query)):
            return False
        self.seen += 1
        return self.first <= self.seen < self.first + self.times


def _free_port() -> int:
    """Return a port below those that the system gives to clients, which might take it while the proxy is down."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("no free port")


class FaultProxy:
    """A proxy before the server at `upstream` (``http://127.0.0.1:40123``).

    Attributes
    ----------
    endpoint : str
        Where the proxy is; the same for as long as it lives.
    latency : float
        Seconds by which every request is delayed; may be changed at any time.
    log : list of Request
        Every request, in the order in which they came.
    struck : int
        How many requests a fault has happened to.
    """

    def __init__(self, upstream: str, latency: float = 0.0) -> None:
        parts = urlsplit(upstream)
        self._upstream = (parts.hostname, parts.port)
        self.latency = latency
        self.log: list[Request] = []
        self.struck = 0
        self._rules: list[_Rule] = []
        self._port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="faultproxy", daemon=True)
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def requests(self) -> Counter[tuple[str, str]]:
        """How often each (method, path) came."""
        return Counter((request.method, request.path) for request in self.log)

    @property
    def methods(self) -> Counter[str]:
        """How often each method came."""
        return Counter(request.method for request in self.log)

    def fault(
        self,
        fault: Fault,
        *,
        method: str | None = None,
        path: str = "",
        query: str = "",
        first: int = 1,
        times: float = 1,
    ) -> None:
        """Let `fault` happen to `times` of the requests of this method that match, from the `first` one on.

        Requests are counted from the call on. `path` and `query` are regular expressions, searched for;
        ``times=math.inf``: all.
        The first rule that takes a request decides; those behind it count it all the same.
        """
        self._rules.append(_Rule(fault, method, re.compile(path), re.compile(query), first, times))

    def heal(self) -> None:
        """Forget all faults, and what was counted."""
        self._rules.clear()
        self.log.clear()
        self.struck = 0

    def down(self) -> None:
        """Refuse connections, and reset those that exist."""
        asyncio.run_coroutine_threadsafe(self._down(), self._loop).result()

    def up(self) -> None:
        """Accept connections, again at the same address."""
        asyncio.run_coroutine_threadsafe(self._up(), self._loop).result()

    async def _up(self) -> None:
        if self._server is None:
            self._port = self._port or _free_port()
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, backlog=1024)
            self._port = self._server.sockets[0].getsockname()[1]

    async def _down(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    # -- one connection ---------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.current_task()
        self._talks.add(talk)
        upstream: asyncio.StreamWriter | None = None
        try:
            there, upstream = await asyncio.open_connection(*self._upstream)
            while await self._exchange(reader, writer, there, upstream):
                pass
            writer.close()
        except (asyncio.IncompleteReadError, OSError):
            reset(writer)
        except asyncio.CancelledError:  # by `_down`, which waits for us
            reset(writer)
        finally:
            self._talks.discard(talk)
            if upstream is not None:
                upstream.close()

    async def _exchange(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        there: asyncio.StreamReader,
        upstream: asyncio.StreamWriter,
    ) -> bool:
        """Pass one request on, and its answer back; return whether the connection is still good for another one."""
        head = await read_head(reader)
        if head is None:
            return False
        method, target, _ = head.line.split(" ", 2)
        parts = urlsplit(target)
        request = Request(method, unquote(parts.path), parts.query, head.fields)
        self.log.append(request)
        faults = [rule.fault for rule in self._rules if rule.takes(request)]
        fault = faults[0] if faults else Fault()
        self.struck += bool(faults)
        if head.fields.get("expect"):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = b"".join([piece async for piece in read_body(reader, head)])
        if self.latency:
            await asyncio.sleep(self.latency)
        if not await self._before(fault, method, writer):
            return True

        upstream.write(head.without("expect") + body)
        reply = await read_head(there)
        if reply is None:
            raise ConnectionResetError
        if isinstance(fault, Hang):
            await asyncio.Event().wait()
        if isinstance(fault, Answer):
            async for _ in _body_of_answer(there, method, reply):
                pass
            is_last = "close" in reply.fields.get("connection", "").lower()
            await _answer(fault, method, writer, is_last=is_last)
            return not is_last
        if fault == Reset():
            raise ConnectionResetError
        writer.write(reply.raw)
        limit = fault.after if isinstance(fault, Reset | Truncate) else None
        whole = await _pass_on(_body_of_answer(there, method, reply), writer, limit, fault)
        if not whole:
            if isinstance(fault, Reset):
                raise ConnectionResetError
            return False
        await writer.drain()
        return "close" not in (head.fields.get("connection", "").lower(), reply.fields.get("connection", "").lower())

    async def _before(self, fault: Fault, method: str, writer: asyncio.StreamWriter) -> bool:
        """Do what happens before the server hears of the request; return whether it shall hear of it."""
        match fault:
            case Answer(done=False):
                await _answer(fault, method, writer)
                return False
            case Refuse():
                raise ConnectionResetError
            case Hang(done=False):
                await asyncio.Event().wait()
            case Delay():
                await asyncio.sleep(fault.seconds)
            case Call():
                await asyncio.get_running_loop().run_in_executor(None, fault.function)
        return True


async def _answer(fault: Answer, method: str, writer: asyncio.StreamWriter, *, is_last: bool = False) -> None:
    fields = {"Content-Length": str(len(fault.body)), **fault.fields, **({"Connection": "close"} if is_last else {})}
    line = f"HTTP/1.1 {fault.status} {responses.get(fault.status)}"
    lines = [line, *(f"{name}: {text}" for name, text in fields.items())]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    writer.write(b"" if method == "HEAD" else fault.body)
    await writer.drain()


async def _body_of_answer(there: asyncio.StreamReader, method: str, reply: Head) -> AsyncIterator[bytes]:
    if method != "HEAD" and reply.status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        async for piece in read_body(there, reply, until_end=True):
            yield piece


async def _pass_on(pieces: AsyncIterator[bytes], writer: asyncio.StreamWriter, limit: int | None, fault: Fault) -> bool:
    """Write the pieces of a body, no more than `limit` bytes; return whether that was all of it."""
    sent = 0
    async for piece in pieces:
        part = piece if limit is None else piece[: limit - sent]
        step = max(1, int(fault.bytes_per_second / 20)) if isinstance(fault, Slow) else len(part) or 1
        for start in range(0, len(part), step):
            writer.write(part[start : start + step])
            await writer.drain()
            if isinstance(fault, Slow):
                await asyncio.sleep(1 / 20)
        sent += len(part)
        if len(part) < len(piece):
            return False
    return True


# -- as much of HTTP as it takes ------------------------------------------------------


@dataclass(frozen=True)
class Head:
    """The lines before the body of a request or of an answer."""

    raw: bytes

    @property
    def line(self) -> str:
        return self.raw.partition(b"\r\n")[0].decode("latin-1")

    @property
    def status(self) -> int:
        return int(self.line.split(" ", 2)[1])

    @property
    def fields(self) -> dict[str, str]:
        lines = self.raw.decode("latin-1").split("\r\n")[1:-2]
        return {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}

    def without(self, name: str) -> bytes:
        """Return the lines but those of one field."""
        return re.sub(rb"(?im)^" + re.escape(name.encode()) + rb":[^\r\n]*\r\n", b"", self.raw)


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """Read up to the empty line; None if the other side has closed the connection instead."""
    try:
        return Head(await reader.readuntil(b"\r\n\r\n"))
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None


async def read_body(reader: asyncio.StreamReader, head: Head, *, until_end: bool = False) -> AsyncIterator[bytes]:
    """Yield the body as it was sent, in pieces; `until_end`: one of unknown length ends with the connection."""
    if "chunked" in head.fields.get("transfer-encoding", "").lower():
        while True:
            size = await reader.readuntil(b"\r\n")
            length = int(size.partition(b";")[0], 16)
            yield size + await reader.readexactly(length + 2)
            if not length:
                return
    length = head.fields.get("content-length")
    if length is None:
        while until_end and (piece := await reader.read(_PIECE)):
            yield piece
        return
    left = int(length)
    while left:
        piece = await reader.read(min(left, _PIECE))
        if not piece:
            raise ConnectionResetError
        left -= len(piece)
        yield piece


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection with RST."""
    with contextlib.suppress(OSError):
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
