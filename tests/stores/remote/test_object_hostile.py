"""Web servers that lie, or do not end: a clear error, in bounded time and memory, for those who wait and who await."""

import asyncio
import contextlib
import threading
import time

import pytest

import omnizarr
import omnizarr.aio
from omnizarr.errors import StoreError, StoreLimitError
from omnizarr.stores import ObjectStore, verbs
from tests import certificates
from tests.stores.recording import FAST, recording

pytest.importorskip("obstore")

MOST = 64 * 2**20
"""Bytes after which a server that does not end by itself has been listened to for too long."""

READS = {
    "get": lambda store: store.get("a"),
    "part": lambda store: store.get("a", (0, 10)),
    "end": lambda store: store.get("a", (-10, None)),
    "rest": lambda store: store.get("a", (0, None)),
    "stamped": lambda store: verbs.get_stamped(store, "a"),
    "spans": lambda store: verbs.get_spans(store, "a", [(0, 3), (4, 10)]),
    "pinned": lambda store: verbs.pinned(store, "a")([(0, 10)]),
    "array": lambda store: omnizarr.open_array(store, mode="r"),
    "within": lambda store: verbs.get_within(store, "a", 2**30),
    "awaited array": lambda store: asyncio.run(omnizarr.aio.open_array(store)),
}


@pytest.fixture(params=READS)
def read(request):
    return READS[request.param]


@pytest.fixture(scope="module")
def server():
    with recording() as server:
        yield server


@pytest.fixture
def store(server):
    server.knows_ranges = True
    return ObjectStore.from_url(server.url("/data"), {**FAST, "read_timeout": 5, "retry_timeout": 5})


@contextlib.contextmanager
def soon(seconds=10):
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < seconds


def head(handler, length, total, **fields):
    """Send the head of an answer to every request: a number of bytes and the total."""
    is_part = "Range" in handler.headers
    handler.send_response(206 if is_part else 200)
    handler.send_header("ETag", '"1"')
    if is_part:
        start = total - length if handler.headers["Range"].startswith("bytes=-") else 0
        handler.send_header("Content-Range", f"bytes {start}-{start + length - 1}/{total}")
    for name, value in fields.items():
        handler.send_header(name.replace("_", "-"), str(value))
    handler.end_headers()


@pytest.mark.parametrize("announced", [0, 10])
def test_body_that_never_ends_is_given_up(server, store, read, announced):
    sent = 0

    def endless(handler):
        nonlocal sent
        handler.close_connection = True
        head(handler, announced or 1, announced or 1, Content_Length=announced or 1, Transfer_Encoding="chunked")
        piece = b"%x\r\n" % 2**16 + b"x" * 2**16 + b"\r\n"
        with contextlib.suppress(OSError):
            while sent < 4 * MOST:
                handler.wfile.write(piece)
                sent += 2**16
        return True

    server.answer = endless
    with soon(), contextlib.suppress(StoreError):
        read(store)
    time.sleep(0.05)
    assert sent < MOST


@pytest.mark.parametrize("difference", [-5, 5])
@pytest.mark.parametrize("how", sorted(READS.keys() - {"stamped"}))  # which asks for no range
def test_body_of_another_length_than_its_range_is_an_error(server, store, how, difference):
    def other(handler):
        head(handler, 10, 10, Content_Length=10 + difference)
        handler.wfile.write(b"x" * (10 + difference))
        return True

    server.answer = other
    with soon(), pytest.raises(StoreError):
        READS[how](store)


@pytest.mark.parametrize("difference", [-5, 0, 5])
def test_large_body_of_another_length_than_its_range_is_an_error(server, store, difference):
    length = 9 * 2**20 + 1
    sent = bytes(range(256)) * (length // 256 + 1)

    def other(handler):
        head(handler, length, length, Content_Length=length + difference)
        with contextlib.suppress(OSError):
            handler.wfile.write(sent[: length + difference])
        return True

    server.answer = other
    with soon():
        if difference:
            with pytest.raises(StoreError):
                store.get("a", (0, 2**24 + 1))
        else:
            value = store.get("a", (0, 2**24 + 1))
            assert memoryview(value).readonly
            assert bytes(value) == sent[:length]


def test_range_that_was_not_asked_for_is_an_error(server, store, read):
    def shifted(handler):
        if "Range" not in handler.headers:
            handler.respond(400)
            return True
        handler.respond(206, b"0123456789", Content_Range="bytes 10-19/30", ETag='"1"')
        return True

    server.answer = shifted
    with soon(), pytest.raises(StoreError):
        read(store)


def test_value_of_ten_gigabytes_is_refused_before_it_is_sent(server, read):
    """A document, too: the array's is one."""
    store = ObjectStore.from_url(server.url("/data"), {**FAST, "max_value_bytes": 2**30})
    sent = 0

    def huge(handler):
        nonlocal sent
        handler.close_connection = True
        size = 10 * 10**9
        asked = handler.headers.get("Range")
        if asked and not asked.endswith("-"):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            size = int(last) + 1 - int(first) if first else int(last)
        head(handler, size, 10 * 10**9, Content_Length=size)
        with contextlib.suppress(OSError):
            for _ in range(min(size, 4 * MOST) // 2**16 + 1):
                sent += handler.wfile.write(b"x" * min(size, 2**16))
        return True

    server.answer = huge
    is_small_part = read in {READS[name] for name in ("part", "end", "spans", "pinned")}
    with soon(), contextlib.nullcontext() if is_small_part else pytest.raises(StoreLimitError, match="10000000000"):
        read(store)
    time.sleep(0.05)
    assert sent < MOST


def test_head_that_never_ends_is_given_up(server, store):
    sent = 0

    def endless(handler):
        nonlocal sent
        handler.close_connection = True
        handler.send_response(200)
        handler.flush_headers()
        with contextlib.suppress(OSError):
            handler.wfile.write(b"X-Long: ")
            while sent < MOST:
                sent += handler.wfile.write(b"x" * 2**16)
        return True

    server.answer = endless
    with soon(), pytest.raises(StoreError):
        store.get("a")
    assert sent < MOST


def test_more_than_ten_redirects_are_not_followed(server, store):
    hops = 10

    def onwards(handler):
        hop = int(handler.path.partition("?")[2] or 0)
        return hop < hops and (handler.respond(302, Location=f"/data/a?{hop + 1}") or True)

    server.answer = onwards
    server.values["/data/a?10"] = b"there"
    assert store.get("a") == b"there"
    hops = 11
    with soon(), pytest.raises(StoreError, match="redirect"):
        store.get("a")


def test_redirect_to_plain_http_is_refused(server, tmp_path):
    certificate = certificates.self_signed(tmp_path)
    with recording() as secure:
        address = certificates.secure(secure, certificate)
        server.answer = None
        server.values["/data/a"] = b"plain"
        secure.values["/data/b"] = b"secure"
        secure.answer = lambda handler: (
            handler.path == "/data/a" and (handler.respond(302, Location=server.url("/data/a")) or True)
        )
        options = {**FAST, "allow_invalid_certificates": True}
        store = ObjectStore.from_url(f"{address}/data", options)
        assert store.get("b") == b"secure"
        server.requests()
        with soon(), pytest.raises(StoreError):
            store.get("a")
    assert not server.requests()


@pytest.mark.parametrize("status", [200, 404, 500])
def test_server_that_sends_a_byte_now_and_then_is_given_up_in_time(server, status):
    """Each byte is in time; all together are not."""
    store = ObjectStore.from_url(server.url("/data"), {**FAST, "timeout": 0.5, "retry_timeout": 0.5})
    stop = threading.Event()

    def drip(handler):
        handler.close_connection = True
        handler.send_response(206 if status == 200 else status)
        for name, value in {"Content-Length": 1000, "Content-Range": "bytes 0-999/1000", "ETag": '"1"'}.items():
            handler.send_header(name, str(value))
        handler.end_headers()
        with contextlib.suppress(OSError):
            while not stop.wait(0.1):
                handler.wfile.write(b"x")
        return True

    server.answer = drip
    try:
        with soon(), contextlib.suppress(StoreError) if status == 404 else pytest.raises(StoreError):
            assert store.get("a", (0, 1000)) is None
    finally:
        stop.set()
