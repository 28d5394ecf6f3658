"""Web servers that mean harm, and honest ones that send the victim on to them."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from tests import certificates
from tests.attacks.arena import Field, attack

Handler = http.server.BaseHTTPRequestHandler
Answer = Callable[[Handler], None]

ARRAY = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4],
    "data_type": "int32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    "fill_value": 0,
    "attributes": {},
}
SHARDED = {
    **ARRAY,
    "shape": [1 << 20],
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1 << 20]}},
    "codecs": [
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [1 << 14],
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            },
        }
    ],
}
VALUES = {
    "/x.zarr/zarr.json": json.dumps(ARRAY).encode(),
    "/x.zarr/c/0": np.arange(2, dtype="<i4").tobytes(),
    "/x.zarr/c/1": np.arange(2, 4, dtype="<i4").tobytes(),
}
ENGINES = ("native", "reference")


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


def serving(field: Field, answer: Answer, *, secure: bool = False, host: str = "127.0.0.1") -> str:
    """Serve until the attack ends; return the address."""

    class Answering(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer(self)

        do_HEAD = do_PUT = do_DELETE = do_PROPFIND = do_GET  # noqa: N815 - as the library calls them

        def log_message(self, *_: object) -> None:
            pass

    server = _Server((host, 0), Answering)
    if secure:
        certificate = certificates.self_signed(field.root / "elsewhere")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    field.ending += [server.shutdown, server.server_close]
    return f"http{'s' * secure}://{host}:{server.server_port}"


def respond(handler: Handler, status: int, body: bytes = b"", **headers: object) -> None:
    handler.send_response(status)
    for name, value in {"Content_Length": len(body), **headers}.items():
        if value is not None:
            handler.send_header(name.replace("_", "-"), str(value))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


def give(handler: Handler, values: dict[str, bytes] = VALUES) -> None:
    """Answer as an honest server."""
    value = values.get(handler.path.partition("?")[0])
    if value is None:
        respond(handler, 404)
        return
    asked = handler.headers.get("Range")
    if asked is None:
        respond(handler, 200, value)
        return
    first, _, last = asked.removeprefix("bytes=").partition("-")
    start = int(first) if first else max(0, len(value) - int(last))
    stop = min(len(value), int(last) + 1) if first and last else len(value)
    respond(handler, 206, value[start:stop], Content_Range=f"bytes {start}-{stop - 1}/{len(value)}")


def endless(handler: Handler, status: int, *, length: int | None = None, **headers: object) -> None:
    """Answer with a body that ends only after 5 GB."""
    handler.close_connection = True
    respond(handler, status, Content_Length=length, **headers)
    piece = b"x" * (1 << 20)
    try:
        for _ in range(5000):
            handler.wfile.write(piece)
    except OSError:
        pass


# -- what other servers get ---------------------------------------------------------------

WORDS = ("hush-key", "hush-token", "hush-cookie", "hush-sig", "hush-pass", "hush-bearer")
HEADERS = {
    "X-Api-Key": "hush-key",
    "X-Amz-Security-Token": "hush-token",
    "Cookie": "a=hush-cookie",
    "Authorization": "Bearer hush-bearer",
}
READ = "print({opener}[...])"


def _reads(url: str, options: str) -> tuple[str, ...]:
    opener = f"omnizarr.open_array('{url}', mode='r', storage_options={options})"
    return tuple(
        f"omnizarr.config.set(dict(engine='{engine}'))\narray = {opener}\nassert array[...].tolist() == [0, 1, 2, 3]"
        for engine in ENGINES
    )


OBSTORE = {"headers": HEADERS, "max_retries": 1, "allow_invalid_certificates": True}
FSSPEC = {"headers": HEADERS}
AWAITED = f"""
import asyncio, omnizarr.aio
async def read():
    array = await omnizarr.aio.open_array('{{x}}/x.zarr?sig=hush-sig', storage_options={OBSTORE!r})
    return await array.getitem(...)
assert asyncio.run(read()).tolist() == [0, 1, 2, 3]
"""
LOUD = (
    *_reads("{x}/x.zarr?sig=hush-sig", repr(OBSTORE)),
    *_reads("{x}/x.zarr?sig=hush-sig", "dict(max_retries=1)"),
    *_reads("{x}/x.zarr", repr(OBSTORE)),
    *_reads("fsspec+{x}/x.zarr", repr(FSSPEC)),
    AWAITED,
)


def listening(field: Field) -> Answer:
    """Return an honest answer that notes secrets which are heard."""

    def answer(handler: Handler) -> None:
        heard = [word for word in WORDS if word in handler.path or word in str(handler.headers)]
        if heard:
            field.hits.append(f"{', '.join(heard)} at another server")
        give(handler)

    return answer


@attack("servers", "a redirect to another server gets no secrets", *LOUD)
def _(field: Field) -> None:
    other = serving(field, listening(field))
    field.served = serving(
        field, lambda handler: respond(handler, 302, Location=other + handler.path.partition("?")[0])
    )


@attack("servers", "two redirects, to another server and within it, get no secrets", *LOUD[:4], *LOUD[-3:])
def _(field: Field) -> None:
    honest = listening(field)

    def answer(handler: Handler) -> None:
        if handler.path.startswith("/a"):
            respond(handler, 307, Location=handler.path[2:])
        else:
            honest(handler)

    other = serving(field, answer)
    field.served = serving(
        field, lambda handler: respond(handler, 307, Location=f"{other}/a{handler.path.partition('?')[0]}")
    )


@attack("servers", "a redirect from https to http is refused", *LOUD[:2], *LOUD[4:6], refused=True)
def _(field: Field) -> None:
    other = serving(field, listening(field))
    field.served = serving(field, lambda handler: respond(handler, 302, Location=other + handler.path), secure=True)


@attack("servers", "a redirect leads to a file or to another protocol", *LOUD[:2], *LOUD[4:], refused=True)
def _(field: Field) -> None:
    def answer(handler: Handler) -> None:
        place = "ftp://127.0.0.1:9" if "c/" in handler.path else f"file://{field.secret}"
        respond(handler, 302, Location=place)

    field.served = serving(field, answer)


# -- answers without end -----------------------------------------------------------------------

OPENS = (
    "omnizarr.open('{x}/x.zarr', mode='r', storage_options=dict(max_retries=1, retry_timeout=1))",
    "omnizarr.open('{x}/x.zarr?sig=1', mode='r', storage_options=dict(max_retries=1, retry_timeout=1))",
    "omnizarr.open('fsspec+{x}/x.zarr', mode='r')",
)
BRIEF = "dict(max_retries=1, retry_timeout=1)"
SLICES = tuple(
    f"omnizarr.config.set(dict(engine='{engine}'))\n"
    f"omnizarr.open_array('{{x}}/x.zarr{query}', mode='r', storage_options={options})[:2]"
    for query, options in (("", BRIEF), ("?sig=1", BRIEF))
    for engine in ENGINES
)
SMALL = {"memory": 256 << 20, "cpu": 20}


@attack("servers", "an endless 404 for every document", *OPENS, **SMALL)
def _(field: Field) -> None:
    field.served = serving(field, lambda handler: endless(handler, 404))


@attack("servers", "an endless 500 for every document", *OPENS, refused=True, **SMALL)
def _(field: Field) -> None:
    field.served = serving(field, lambda handler: endless(handler, 500))


@attack("servers", "an endless redirect for every document", *OPENS, refused=True, **SMALL)
def _(field: Field) -> None:
    field.served = serving(field, lambda handler: endless(handler, 302, Location=f"{handler.path}x"))


@attack("servers", "an endless 404 for every chunk", *SLICES, **SMALL)
def _(field: Field) -> None:
    field.served = serving(field, lambda handler: endless(handler, 404) if "/c/" in handler.path else give(handler))


@attack("servers", "5 GB for a shard of which 1 kB was asked for", *SLICES, refused=True, **SMALL)
def _(field: Field) -> None:
    values = {"/x.zarr/zarr.json": json.dumps(SHARDED).encode()}
    field.served = serving(
        field,
        lambda handler: endless(handler, 200, length=5000 << 20) if "/c/" in handler.path else give(handler, values),
    )
