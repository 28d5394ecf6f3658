"""Serving a hierarchy over HTTP: until Ctrl-C, or while a ``with`` block runs."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from omnizarr.errors import Remedy, ServerError, Wording
from omnizarr.support import workers
from omnizarr.web.application import FEW, application
from omnizarr.web.guards import is_loopback

MOST_CONNECTIONS: Final = 512
"""Connections that are open at the same time. A process may usually have 1,024 files, and reads some itself."""
HEAD_PATIENCE: Final = 10
"""Seconds that a client has to send the head of a request."""
_LONGEST_HEAD: Final = 1 << 16
"""Bytes of the head of a request."""
_PATIENCE: Final = 3
"""Seconds that responses in progress have to finish when the server stops."""


def serve(
    source: Any,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    zarr_format: int | str = 3,
    raw: bool = False,
    path: str | None = None,
    source_format: int | str | None = None,
    consolidated: bool | int = FEW,
    token: str | None = None,
    public: bool = False,
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
    allow_pickle: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    started: Callable[[str], object] | None = None,
) -> None:
    """Serve a hierarchy of any format over HTTP, read-only, until Ctrl-C.

    Clients see Zarr v3 (or v2), whatever the format of the hierarchy. Documents are translated when they are
    requested. Chunks are passed on unchanged if their bytes mean the same, and encoded again otherwise, as in
    `omnizarr.storage.TranslatedStore`. The server supports ranges and ETags, and CORS for the `origins` that you name.

    Parameters
    ----------
    source : path, URL, Store, StorePath, Array, Group or mapping
        The hierarchy to serve.
    host : str
        The address to listen at. By default, only programs on this machine can reach it; ``"0.0.0.0"`` means
        every address.
    port : int
        The port; 0 picks a free one.
    zarr_format : {3, 2}
        The format that clients see.
    raw : bool
        Whether to serve the stored bytes instead, in their own format.
    path : str, optional
        Path in the source of the node that becomes the root.
    source_format : int or str, optional
        The format to read, if the source has documents of several formats.
    consolidated : bool or int
        Whether to make consolidated metadata for groups that have none, so that clients find their members. A number:
        only for groups with at most this many nodes below them. See `omnizarr.storage.TranslatedStore`.
    token : str, optional
        A token that every request must contain: as ``?token=...``, as ``Authorization: Bearer ...``, or in the
        cookie that the first request sets.
    public : bool
        Whether to serve without a token at an address that other machines can reach.
    hosts : iterable of str
        Host names that a proxy on this machine uses for the server, in addition to those of the loopback.
    origins : iterable of str
        Origins of web pages that may read the data; ``"*"`` means every page. By default, none may: any page that is
        open in a browser on this machine can send requests to this machine.
    allow_pickle : bool
        Whether to read pickled objects. Reading them can run arbitrary code.
    storage_options : mapping, optional
        Options of the store, such as credentials; see `omnizarr.stores.resolve`.
    started : callable, optional
        Called with the URL as soon as the server answers requests.

    Raises
    ------
    NodeNotFoundError
        If the source does not exist.
    MissingDependencyError
        If Starlette or uvicorn is not installed.
    ServerError
        If the port is in use, or the address belongs to another machine.
    ValueError
        If other machines can reach the address, without a token and without `public`.

    Examples
    --------
    >>> import omnizarr
    >>> omnizarr.serve("era5.zarr", port=8000)  # doctest: +SKIP
    """
    if token is None and not public and not is_loopback(host):
        raise ValueError(
            Wording(
                f"all programs that reach {host} could read the data; set a {{token}}, or pass {{public}}",
                token=...,
                public=True,
            )
        )
    app = application(
        source,
        zarr_format=zarr_format,
        raw=raw,
        path=path,
        source_format=source_format,
        consolidated=consolidated,
        token=token,
        hosts=hosts if token is None and is_loopback(host) else None,
        origins=origins,
        allow_pickle=allow_pickle,
        storage_options=storage_options,
    )
    run(app, host=host, port=port, started=started)


def run(
    app: ASGIApp, *, host: str = "127.0.0.1", port: int = 8000, started: Callable[[str], object] | None = None
) -> None:
    """Serve an application until Ctrl-C, or SIGTERM.

    Raises
    ------
    ServerError
        If the port is in use, or the address belongs to another machine.
    """
    listener = listening(host, port)
    server = _Server(app, (lambda: None) if started is None else lambda: started(url_of(listener)))
    # uvicorn stops in order, and then raises the signal again
    with listener, suppress(KeyboardInterrupt):
        server.run(sockets=[listener])


@contextmanager
def running(app: ASGIApp, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serve an application in a thread of its own while the block runs. Yield the URL.

    Examples
    --------
    >>> import omnizarr
    >>> from omnizarr.web.application import application
    >>> group = omnizarr.create_group({})
    >>> group["temp"] = [280.5, 281.0]
    >>> with running(application(group)) as url:
    ...     omnizarr.open_array(f"{url}/temp")[...]
    array([280.5, 281. ])
    """
    with listening(host, port) as listener:
        has_started = SimpleQueue[None]()
        server = _Server(app, lambda: has_started.put(None))

        def work() -> None:
            try:
                server.run([listener])
            finally:
                has_started.put(None)

        thread = workers.start(work, "omnizarr-serve")
        try:
            has_started.get()
            yield url_of(listener)
        finally:
            server.should_exit = True
            thread.wait()


def _bounded() -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with limits for clients that never finish a request.

    uvicorn waits for the rest of a request for ever, so as many connections as a process may have files would block
    it. If there are too many, the one that has waited longest for its request is closed.
    """
    waiting: dict[Any, None] = {}

    class Bounded(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # h11 or httptools, chosen at run time
        alarm: asyncio.TimerHandle | None = None
        received = 0

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            if len(self.connections) > MOST_CONNECTIONS:
                next(iter(waiting), self).give_up()
            self.watch()

        def data_received(self, data: bytes) -> None:
            self.received += len(data)
            super().data_received(data)
            self.watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self.calm()
            super().connection_lost(exc)

        def watch(self) -> None:
            """Wait for the head of a request, but not for long, unless one is being answered."""
            if self.cycle is not None and not self.cycle.response_complete:
                self.calm()
            elif self.transport.is_closing() or self.received > _LONGEST_HEAD:
                self.give_up()
            elif self.alarm is None:
                self.alarm = self.loop.call_later(HEAD_PATIENCE, self.give_up)
                waiting[self] = None

        def calm(self) -> None:
            if self.alarm is not None:
                self.alarm.cancel()
            self.alarm, self.received = None, 0
            waiting.pop(self, None)

        def give_up(self) -> None:
            self.calm()
            self.transport.close()

    return Bounded


class _Server(uvicorn.Server):
    """A server that reports when it has started."""

    def __init__(self, app: ASGIApp, started: Callable[[], object]) -> None:
        config = uvicorn.Config(
            app,
            http=_bounded(),
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_PATIENCE,
        )
        super().__init__(config)
        self._tell = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and report it."""
        await super().startup(sockets)
        self._tell()


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address.

    Raises
    ------
    ServerError
        If the port is in use, or the address belongs to another machine.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address, family=family, backlog=2048)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            remedy = Remedy("choose another with {port}", port=...) | Remedy("{port} for one that is free", port=0)
            raise ServerError(f"port {port} of {host} is taken", remedy=remedy) from error
        if error.errno in (errno.EACCES, errno.EPERM):
            raise ServerError(f"port {port} of {host} is not allowed", remedy="choose one from 1024 on") from error
        raise ServerError(f"{host!r} is no address of this machine", found=str(error)) from error


def url_of(listener: socket.socket) -> str:
    """Return the URL of a socket that listens, as programs of this machine reach it."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
