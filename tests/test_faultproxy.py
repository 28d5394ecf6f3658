"""The proxy of faults passes everything through, except the faults that a test requests."""

import http.client
import math
import socket
import threading
import time
from contextlib import closing

import pytest

from tests import servers
from tests.faultproxy import Answer, Call, Delay, FaultProxy, Hang, Refuse, Request, Reset, Slow, Truncate

BODY = bytes(range(256)) * 40


@pytest.fixture
def page(http_server):
    place = http_server.fresh()
    (place.directory / "a b").write_bytes(BODY)
    return place


@pytest.fixture
def proxy(page):
    with FaultProxy(page.endpoint) as proxy:
        yield proxy


@pytest.fixture
def ask(page, proxy):
    def ask(verb="GET", timeout=10, name="a%20b", **fields):
        path = page.at(proxy.endpoint).url.removeprefix(proxy.endpoint)
        with closing(http.client.HTTPConnection(proxy.endpoint.removeprefix("http://"), timeout=timeout)) as connection:
            connection.request(verb, f"{path}/{name}?q=1", headers=fields)
            with connection.getresponse() as answer:
                return answer.status, answer.read()

    return ask


def test_requests_and_answers_pass_unchanged(ask):
    assert ask() == (200, BODY)
    assert ask("HEAD") == (200, b"")
    assert ask(Range="bytes=1-3") == (206, BODY[1:4])
    assert ask(name="none")[0] == 404


def test_bodies_of_requests_pass_unchanged(moto_server):
    place = moto_server.fresh()
    with FaultProxy(place.endpoint) as proxy, servers.s3_client(proxy.endpoint) as client:
        client.put_object(Bucket=place.name, Key="k", Body=BODY)
        assert proxy.log[0].fields["expect"] == "100-continue"
        assert client.get_object(Bucket=place.name, Key="k")["Body"].read() == BODY


def test_bodies_in_chunks_pass_unchanged():
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    heard = bytearray()

    def answer():
        connection, _ = listener.accept()
        with connection:
            while not heard.endswith(b"\r\n0\r\n\r\n"):
                heard.extend(connection.recv(100))
            connection.sendall(chunked)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=answer)
        server.start()
        with (
            FaultProxy(f"http://127.0.0.1:{listener.getsockname()[1]}") as proxy,
            closing(http.client.HTTPConnection(proxy.endpoint[7:], timeout=10)) as connection,
        ):
            connection.request("PUT", "/", body=iter([b"first", b"second"]))
            assert connection.getresponse().read() == b"abcde"
        server.join()
    assert heard.endswith(b"\r\n\r\n5\r\nfirst\r\n6\r\nsecond\r\n0\r\n\r\n")


def test_requests_are_counted_by_method_and_path(ask, proxy, page):
    ask()
    ask()
    ask("HEAD", Range="bytes=0-1")
    path = f"/{page.name}/a b"
    assert proxy.requests == {("GET", path): 2, ("HEAD", path): 1}
    assert proxy.methods == {"GET": 2, "HEAD": 1}
    last = proxy.log[-1]
    assert isinstance(last, Request)
    assert (last.query, last.fields["range"]) == ("q=1", "bytes=0-1")


def test_the_nth_requests_are_answered_by_the_proxy(ask, proxy):
    proxy.fault(Answer(503, {"Retry-After": "1"}, b"busy"), method="GET", path="a b$", first=2, times=2)
    assert [ask()[0], ask("HEAD")[0], ask()[0], ask()[0], ask()[0]] == [200, 200, 503, 503, 200]
    assert proxy.struck == 2


def test_an_answer_may_be_wrong_about_what_was_done(moto_server):
    exceptions = pytest.importorskip("botocore.exceptions")
    place = moto_server.fresh()
    with FaultProxy(place.endpoint) as proxy, servers.s3_client(proxy.endpoint) as client:
        proxy.fault(Answer(403, done=True), method="PUT")
        with pytest.raises(exceptions.ClientError, match="403"):
            client.put_object(Bucket=place.name, Key="k", Body=BODY)
        assert client.get_object(Bucket=place.name, Key="k")["Body"].read() == BODY


def test_the_first_rule_that_takes_a_request_decides(ask, proxy):
    proxy.fault(Answer(500), times=1)
    proxy.fault(Answer(429), times=2)
    assert [ask()[0], ask()[0], ask()[0]] == [500, 429, 200]


def test_healed_faults_are_no_more(ask, proxy):
    proxy.fault(Answer(500), times=math.inf)
    assert ask()[0] == 500
    proxy.heal()
    assert ask()[0] == 200


@pytest.mark.parametrize("fault", [Refuse(), Reset(), Reset(100)], ids=repr)
def test_connections_are_reset(ask, proxy, fault):
    proxy.fault(fault)
    with pytest.raises(ConnectionResetError):
        ask()
    assert ask() == (200, BODY)


def test_bodies_are_truncated(ask, proxy):
    proxy.fault(Truncate(100))
    with pytest.raises(http.client.IncompleteRead) as caught:
        ask()
    assert BODY.startswith(caught.value.partial)
    assert len(caught.value.partial) == 100


def test_a_request_hangs_for_ever(ask, proxy):
    proxy.fault(Hang())
    with pytest.raises(TimeoutError):
        ask(timeout=0.3)
    assert ask() == (200, BODY)


@pytest.mark.parametrize(
    ("fault", "least"), [(Slow(len(BODY) * 4), 0.2), (Delay(0.25), 0.25)], ids=["slow", "delayed"]
)  # fmt: skip
def test_answers_take_their_time(ask, proxy, fault, least):
    proxy.fault(fault)
    started = time.monotonic()
    assert ask() == (200, BODY)
    assert time.monotonic() - started >= least


def test_every_request_has_the_latency(ask, proxy):
    proxy.latency = 0.1
    started = time.monotonic()
    ask()
    ask()
    assert time.monotonic() - started >= 0.2


def test_a_function_of_the_test_is_called_before_the_request_goes_on(ask, proxy, page):
    proxy.fault(Call(lambda: (page.directory / "a b").write_bytes(b"new")))
    assert ask() == (200, b"new")


def test_a_proxy_that_is_down_refuses_connections_and_resets_those_that_are_there(ask, proxy):
    with socket.create_connection(("127.0.0.1", int(proxy.endpoint.rpartition(":")[2]))) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(1) == b"H"
        proxy.down()
        with pytest.raises(ConnectionResetError):
            any(not connection.recv(1 << 16) for _ in range(1000))
    with pytest.raises(ConnectionRefusedError):
        ask()
    proxy.up()
    assert ask() == (200, BODY)
