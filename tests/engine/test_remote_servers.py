"""Servers of all kinds that the native engine fetches from: few connections, TLS, redirects, endless answers."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from textwrap import dedent

import numpy as np
import pytest

import omnizarr
from omnizarr import aio, engine
from omnizarr.errors import StoreError
from tests import certificates
from tests.engine.both import needs_posix
from tests.engine.remote import VALUES, ZSTD, by, chunks, needs_remote, put, respond, run
from tests.stores.recording import FAST, Recording, recording

pytest.importorskip("obstore", reason="the extra cloud is not installed")

pytestmark = needs_remote

SMALL = {"compressors": ZSTD, "chunks": (4, 5)}
"""450 chunks, of which one is missing."""


@pytest.fixture
def server():
    with recording() as server:
        yield server


# -- connections ---------------------------------------------------------------------------------


class Counting(Recording):
    """A server that counts connections."""

    def __init__(self):
        self.connections = 0
        super().__init__()

    def get_request(self):
        accepted = super().get_request()
        self.connections += 1
        return accepted


class Slow(Counting):
    """A server that takes connections one by one, and lets few of them wait."""

    request_queue_size = 5

    def get_request(self):
        time.sleep(0.01)
        return super().get_request()


class Few(Counting):
    """A server that refuses more than three connections."""

    request_queue_size = 0  # or the system would take more

    def get_request(self):
        accepted = super().get_request()
        if self.connections == 3:
            self.socket.close()
            self.shutdown_soon()
        return accepted

    def shutdown_soon(self):
        threading.Thread(target=self.shutdown, daemon=True).start()


@contextlib.contextmanager
def running(kind):
    with kind() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


ONCE = {**FAST, "max_retries": 0, "connect_timeout": 2}
SOMETIMES = {**FAST, "max_retries": 20, "connect_timeout": 2}


def test_server_that_takes_connections_slowly_is_read_without_repetition():
    with running(Slow) as server:
        array = by("native", put(server, "/data/a", **SMALL), ONCE)
        server.answer = lambda _: time.sleep(0.01)
        np.testing.assert_array_equal(array[4:], VALUES[4:])
        assert set(chunks(server).values()) == {1}


def test_server_that_refuses_more_connections_is_read_over_those_that_there_are():
    with running(Few) as server:
        url = put(server, "/data/a", **SMALL)
        array = by("native", url, SOMETIMES)  # one connection, of obstore
        server.answer = lambda _: time.sleep(0.002)
        np.testing.assert_array_equal(array[4:], VALUES[4:])
        assert server.connections in (2, 3)


def test_connections_are_used_again():
    with running(Counting) as server:
        url = put(server, "/data/a", **SMALL)
        array, other = by("native", url, FAST), by("native", url, FAST)
        before = server.connections
        for row in range(20):
            assert array[row + 40, 50] == other[row + 40, 50] == VALUES[row + 40, 50]
        assert server.connections == before + 1
        array[...]
        assert server.connections <= before + 450


def test_connections_that_the_server_closes_are_replaced():
    with running(Counting) as server:
        array = by("native", put(server, "/data/a", **SMALL), SOMETIMES)

        def last(handler):
            handler.close_connection = True

        server.answer = last
        for _ in range(3):
            np.testing.assert_array_equal(array[4:], VALUES[4:])


@pytest.mark.slow
def test_reads_that_are_given_up_do_not_keep_others_from_connections():
    with running(Few) as server:
        array = aio.AsyncArray(by("native", put(server, "/data/a", **SMALL), SOMETIMES))
        server.answer = lambda _: time.sleep(0.05)

        async def main():
            tasks = [asyncio.create_task(array.getitem((row, slice(None)))) for row in range(4, 90)]
            await asyncio.sleep(0.2)
            for task in tasks[::2]:
                task.cancel()
            return await asyncio.gather(*tasks, return_exceptions=True)

        for row, got in enumerate(asyncio.run(main()), 4):
            assert isinstance(got, asyncio.CancelledError) or np.array_equal(got, VALUES[row])


# -- TLS -----------------------------------------------------------------------------------------

READ = """
import sys
import omnizarr
from omnizarr import engine
omnizarr.config.set({"fetch": sys.argv[2]})
array = omnizarr.open_array(sys.argv[1], mode="r", storage_options={"max_retries": 1})
print(engine.is_remote(array._bind().binding), int(array[4:].sum()))
"""


@pytest.fixture
def secure(tmp_path, server):
    """A server over TLS, with a certificate in `tmp_path`."""
    certificate = certificates.self_signed(tmp_path)
    with running(Counting) as secure:
        secure.address = certificates.secure(secure, certificate)
        put(secure, "/data/a", **SMALL)
        yield secure


def read(url, fetch, **environment):
    return subprocess.run(
        [sys.executable, "-c", dedent(READ), url, fetch],
        capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_certificates_of_the_environment_are_trusted(secure, tmp_path, host):
    url = secure.address.replace("127.0.0.1", host) + "/data/a"
    done = read(url, "native", SSL_CERT_FILE=str(tmp_path / "certificate.pem"))
    assert done.stdout.split() == ["True", str(VALUES[4:].sum())], done.stderr[-2000:]
    assert set(chunks(secure).values()) == {1}


def test_server_that_cannot_be_trusted_is_the_same_error(secure, tmp_path):
    said = []
    for fetch in ("native", "python"):
        done = read(f"{secure.address}/data/a", fetch)
        assert done.returncode
        said.append(done.stderr.splitlines()[-1])
    assert said[0] == said[1]
    assert "certificate" in said[0]
    assert not secure.requests()


def test_what_only_obstore_trusts_goes_the_old_way(secure, server):
    """Metadata come from a server in the clear; what the engine itself would not trust is tried once by each task."""
    options = {**FAST, "allow_invalid_certificates": True}
    with omnizarr.config.set({"fetch": "native"}):
        array = omnizarr.open_array(f"{secure.address}/data/a", mode="r", storage_options=options)
    np.testing.assert_array_equal(array[4:], VALUES[4:])


def test_redirect_to_plain_http_is_refused(secure, server, tmp_path):
    url = put(server, "/data/a", **SMALL)
    secure.answer = lambda handler: (
        "/c/" in handler.path and (handler.respond(302, Location=server.url(handler.path)) or True)
    )
    done = read(f"{secure.address}/data/a", "native", SSL_CERT_FILE=str(tmp_path / "certificate.pem"))
    assert done.returncode
    assert "StoreError" in done.stderr
    assert url
    assert not server.requests()


# -- redirects and refusals ----------------------------------------------------------------------


def test_store_that_redirects_goes_the_old_way(server):
    array = by("native", put(server, "/data/a", **SMALL), FAST)
    server.values.update({key.replace("/data/", "/moved/"): value for key, value in server.values.items()})
    server.answer = lambda handler: (
        "/data/" in handler.path and (handler.respond(302, Location=handler.path.replace("/data/", "/moved/")) or True)
    )
    assert array[50, 50] == VALUES[50, 50]
    server.requests()
    np.testing.assert_array_equal(array[4:], VALUES[4:])
    assert set(chunks(server).values()) == {1}


@pytest.mark.parametrize("fetch", ["native", "python"])
def test_chunk_that_may_not_be_fetched_is_not_a_missing_one(server, fetch):
    array = by(fetch, put(server, "/data/a", **SMALL), FAST)
    server.answer = respond(405)
    for task in (
        lambda: array[50, 50],
        lambda: omnizarr.read_many([(array, (50, 50)), (array, (60, 50))]),
        lambda: asyncio.run(aio.AsyncArray(array).getitem((50, 50))),
    ):
        with pytest.raises(StoreError, match="does not allow"):
            task()


def test_proxies_of_the_environment_are_used(server):
    """A proxy is asked for the whole URL."""
    url = put(server, "/data/a", **SMALL)
    far = "http://far.example.invalid/data/a"
    server.values.update({far + key.removeprefix("/data/a"): value for key, value in server.values.items()})
    assert url
    done = read(far, "native", HTTP_PROXY=server.url(), http_proxy=server.url(), NO_PROXY="", no_proxy="")
    assert done.stdout.split() == ["False", str(VALUES[4:].sum())], done.stderr[-2000:]


# -- answers that do not end ---------------------------------------------------------------------

MOST = 64 * 2**20


@pytest.mark.parametrize("status", [200, 404, 500])
@pytest.mark.parametrize("layout", ["whole", "shards"])
def test_body_that_never_ends_is_given_up(server, status, layout):
    how = {"shards": (16, 15), **SMALL} if layout == "shards" else SMALL
    options = {**FAST, "timeout": 5, "retry_timeout": 5}
    array, sent = by("native", put(server, "/data/a", **how), options), 0

    def endless(handler):
        nonlocal sent
        handler.close_connection = True
        handler.send_response(status)
        handler.send_header("ETag", '"1"')
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        piece = b"%x\r\n" % 2**16 + b"x" * 2**16 + b"\r\n"
        with contextlib.suppress(OSError):
            while sent < 4 * MOST:
                handler.wfile.write(piece)
                sent += 2**16
        return True

    server.answer = endless
    begun = time.monotonic()
    with contextlib.suppress(StoreError):
        array[50, 50]
    assert time.monotonic() - begun < 20
    time.sleep(0.05)
    assert sent < MOST


# -- processes -----------------------------------------------------------------------------------


@needs_posix
def test_child_that_is_forked_while_tasks_read_can_end_and_read(server):
    url = put(server, "/data/a", **SMALL)
    by("native", url, FAST)
    server.answer = lambda _: time.sleep(0.3)
    said = run(
        """
        import asyncio, gc, os, signal, sys, warnings
        import omnizarr
        from omnizarr import aio, engine
        warnings.simplefilter("ignore")
        omnizarr.config.set({"fetch": "native"})
        signal.alarm(60)
        array = omnizarr.open_array(sys.argv[1], mode="r")

        async def main():
            reading = asyncio.create_task(aio.AsyncArray(array).getitem(...))
            await asyncio.sleep(0.1)
            child = os.fork()
            if not child:
                signal.alarm(30)
                from omnizarr.aio import fetching
                for _, desk in fetching._requests_by_loop.values():
                    desk._batches.clear()  # as if the loop were gone
                gc.collect()
                print(int(array[50, 50]), flush=True)
                os._exit(0)
            await reading
            assert os.waitpid(child, 0)[1] == 0

        asyncio.run(main())
        print("done")
        """,
        url,
    )
    assert said.split() == [str(VALUES[50, 50]), "done"]


def test_spawned_workers_read(server):
    with omnizarr.config.set({"fetch": "native"}):
        array = omnizarr.open_array(put(server, "/data/a", **SMALL), mode="r", storage_options=FAST)
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            assert pool.map(total, [array] * 4) == [int(VALUES[4:].sum())] * 4


def total(array):
    """Return the sum of an array, in a process of its own."""
    omnizarr.config.set({"fetch": "native"})
    assert engine.is_remote(array._bind().binding)
    return int(array[4:].sum())
