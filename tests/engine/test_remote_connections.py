"""Connections of the native engine to servers: shared by stores, and closed when nothing needs them."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest

from omnizarr.stores import ObjectStore
from tests.engine.remote import VALUES, ZSTD, by, needs_remote, put
from tests.stores.recording import FAST, recording

pytest.importorskip("obstore", reason="the extra cloud is not installed")

SOCKETS = Path("/proc/self/net/tcp")

pytestmark = [*needs_remote, pytest.mark.skipif(not SOCKETS.exists(), reason="the system does not list sockets")]


def connections(ports):
    """Return how many sockets of this process are connected to servers with these ports."""
    own = set()
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            own.add(str(link.readlink()))
    rows = [line.split() for line in SOCKETS.read_text().splitlines()[1:]]
    return sum(int(row[2].partition(":")[2], 16) in ports and f"socket:[{row[9]}]" in own for row in rows)


def settled(ports, count, seconds=15):
    """Return how many there are once there are no more than `count`, or when time is up."""
    end = time.monotonic() + seconds
    while (found := connections(ports)) > count and time.monotonic() < end:
        time.sleep(0.05)
    return found


@pytest.mark.parametrize("fetch", ["native", "python"])
def test_servers_that_come_and_go_leave_no_connections(fetch):
    ports, seen = set(), 0
    for _ in range(20):
        with recording() as server:
            ports.add(server.server_port)
            array = by(fetch, put(server, "/data/a", compressors=ZSTD), {**FAST, "pool_idle_timeout": 1})
            assert (array[...] == VALUES).sum() >= VALUES.size - 256
            seen += connections({server.server_port})
    assert seen > 0  # of a few, if the machine is slow
    if fetch == "python":  # it has no threads that close what is idle: what a store has open ends with it
        del array
    assert settled(ports, 0) == 0


def test_few_stores_that_nothing_uses_keep_connections():
    with recording() as server:
        server.values["/data/a"] = b"abc"
        for number in range(30):
            store = ObjectStore.from_url(server.url("/data"), {**FAST, "headers": {"Authorization": f"{number}"}})
            assert store.get("a") == b"abc"
        assert settled({server.server_port}, 8) <= 8


def test_connections_that_the_server_closes_are_closed():
    with recording() as server:
        array = by("native", put(server, "/data/a", compressors=ZSTD), FAST)

        def last(handler):
            handler.close_connection = True  # the answer does not tell
            return False

        to_open_it = connections({server.server_port})
        assert array[50, 50] == VALUES[50, 50]
        assert connections({server.server_port}) == to_open_it + 1
        server.answer = last
        assert array[50, 50] == VALUES[50, 50]
        server.answer = None
        assert settled({server.server_port}, to_open_it, 5) == to_open_it
        assert array[50, 50] == VALUES[50, 50]


def test_stores_of_one_server_share_connections():
    with recording() as server:
        url = put(server, "/data/a", compressors=ZSTD)
        made = 0
        for number in range(30):
            array = by("native", url, {**FAST, "headers": {"Authorization": f"Bearer {number}"}})
            server.requests()
            to_open_it = connections({server.server_port})
            assert array[50, 50] == VALUES[50, 50]
            assert server.requests()[0][2]["authorization"] == f"Bearer {number}"
            made += max(0, connections({server.server_port}) - to_open_it)
        assert made <= 2
