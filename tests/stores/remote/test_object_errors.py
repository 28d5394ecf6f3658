"""`omnizarr.stores.remote.object_errors`: why a request failed."""

import socket
import threading

import pytest

import omnizarr
from omnizarr.errors import StoreError, StoreTimeoutError
from omnizarr.stores.remote import object_urls

pytest.importorskip("obstore", reason="obstore is not installed")


class Listener:
    """Accepts connections, counts them, and answers with what it is given: nothing (None), or bytes and the end."""

    def __init__(self, answer):
        self.answer = answer
        self.connections = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.connections.append(connection)
            if self.answer is not None:
                connection.recv(65536)
                connection.sendall(self.answer)
                connection.close()

    def close(self):
        self.socket.close()
        for connection in self.connections:
            connection.close()


@pytest.fixture
def listener():
    made = []

    def listen(answer):
        made.append(Listener(answer))
        return made[-1]

    yield listen
    for each in made:
        each.close()


def open_at(kind, endpoint, **options):
    """Open an array at a server, without sending anything again."""
    url, more = {
        "http": (f"{endpoint}/x.zarr", {}),
        "s3": ("s3://bucket/x.zarr", {"endpoint": endpoint, "anon": True, "region": "us-east-1"}),
        "gs": ("gs://bucket/x.zarr", {"endpoint": endpoint, "anon": True}),
        "az": ("az://container/x.zarr", {"endpoint": endpoint, "anon": True, "account_name": "account"}),
    }[kind]
    return omnizarr.open_array(url, mode="r", storage_options={"max_retries": 0, **more, **options})


KINDS = ("http", "s3", "gs", "az")


@pytest.mark.parametrize("kind", KINDS)
class TestReasons:
    def test_nobody_listens(self, kind):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with pytest.raises(StoreError, match="the connection is refused") as caught:
            open_at(kind, f"http://127.0.0.1:{port}")
        assert caught.value.key
        assert caught.value.remedy

    def test_host_is_unknown(self, kind):
        with pytest.raises(StoreError, match="the host is not known") as caught:
            open_at(kind, "http://no-such-host.invalid")
        assert "no-such-host.invalid" in str(caught.value)

    def test_server_speaks_no_tls(self, kind, listener):
        server = listener(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        with pytest.raises(StoreError, match="no secure connection"):
            open_at(kind, f"https://127.0.0.1:{server.port}")

    def test_server_breaks_the_connection_off(self, kind, listener):
        server = listener(b"")
        with pytest.raises(StoreError, match="breaks the connection off"):
            open_at(kind, f"http://127.0.0.1:{server.port}")

    def test_server_is_silent(self, kind, listener):
        server = listener(None)
        with pytest.raises(StoreTimeoutError, match="no answer in time"):
            open_at(kind, f"http://127.0.0.1:{server.port}", read_timeout=0.3)


def test_silent_server_is_not_asked_again_once_the_time_for_that_is_over(listener):
    server = listener(None)
    with pytest.raises(StoreTimeoutError):
        open_at("http", f"http://127.0.0.1:{server.port}", read_timeout=0.4, retry_timeout=0.4, max_retries=10)
    assert len(server.connections) == 1


def test_by_default_a_silent_server_is_given_up_at_the_first_timeout():
    """The manual says 20 seconds: what is not answered by then is not sent again."""
    arguments = object_urls._RETRY_DEFAULTS["retry_timeout"], object_urls._CLIENT_DEFAULTS["read_timeout"]
    assert (arguments[0].total_seconds(), arguments[1]) == (20, "20s")
