"""The servers that tests start do what tests rely on."""

import contextlib
import http.client
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from tests import servers

obstore = pytest.importorskip("obstore")
obstores = pytest.importorskip("obstore.store")

CLASSES = {"s3": obstores.S3Store, "gs": obstores.GCSStore, "az": obstores.AzureStore, "http": obstores.HTTPStore}


@pytest.fixture(params=["s3_server", "moto_server", "azurite_server", "gcs_server"])
def place(request):
    return request.getfixturevalue(request.param).fresh()


def connect(place):
    options = dict(place.options)
    client = {"client_options": {"allow_http": options.pop("allow_http")}}
    kind = CLASSES[place.url.partition("://")[0]]
    if kind is obstores.HTTPStore:
        return kind(place.url, **client)
    return kind(place.name, config=options, **client)


def test_a_bucket_is_empty_and_keeps_values(place):
    store = connect(place)
    assert list(obstore.list(store)) == []
    obstore.put(store, "a/b c%20é", b"12345")
    assert bytes(obstore.get(store, "a/b c%20é").bytes()) == b"12345"
    assert bytes(obstore.get_range(store, "a/b c%20é", start=1, end=3)) == b"23"


def test_a_put_if_absent_fails_where_a_value_is(place):
    store = connect(place)
    obstore.put(store, "a", b"1", mode="create")
    with pytest.raises(obstore.exceptions.AlreadyExistsError):
        obstore.put(store, "a", b"2", mode="create")


def test_a_put_on_an_old_version_fails(place):
    store = connect(place)
    first = {name: value for name, value in obstore.put(store, "a", b"1").items() if value is not None}
    obstore.put(store, "a", b"2", mode=first)
    with pytest.raises(obstore.exceptions.PreconditionError):
        obstore.put(store, "a", b"3", mode=first)


@pytest.fixture
def page(http_server):
    place = http_server.fresh()
    (place.directory / "a b").write_bytes(b"12345")
    return place


def test_files_of_a_directory_are_served_in_full_and_in_part(page):
    store = connect(page)
    got = obstore.get(store, "a b")
    assert bytes(got.bytes()) == b"12345"
    assert got.meta["e_tag"]
    assert bytes(obstore.get_range(store, "a b", start=1, end=3)) == b"23"
    assert bytes(obstore.get(store, "a b", options={"range": {"suffix": 2}}).bytes()) == b"45"
    with pytest.raises(FileNotFoundError):
        obstore.get(store, "b")


def test_a_delayed_directory_answers_later(page):
    started = time.monotonic()
    assert bytes(obstore.get_range(connect(page.delayed(0.25)), "a b", start=1, end=3)) == b"23"
    assert time.monotonic() - started >= 0.25


def test_the_static_server_of_our_own_does_what_nginx_does(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a b").write_bytes(b"12345")
    process = servers._static(tmp_path)
    with servers._running(process):
        url = f"http://127.0.0.1:{process.port}/"

        def ask(verb="GET", path="a%20b", **fields):
            connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=30)
            connection.request(
                verb, f"/{path}", headers={name.replace("_", "-"): text for name, text in fields.items()}
            )
            with contextlib.closing(connection), connection.getresponse() as answer:
                return answer.status, answer.read(), answer.headers

        status, body, headers = ask()
        assert (status, body) == (200, b"12345")
        etag = headers["ETag"]
        assert ask("HEAD")[:2] == (200, b"")
        assert ask("HEAD")[2]["Content-Length"] == "5"
        assert ask(Range="bytes=1-2")[:2] == (206, b"23")
        assert ask(Range="bytes=1-2")[2]["Content-Range"] == "bytes 1-2/5"
        assert ask(Range="bytes=3-99")[:2] == (206, b"45")
        assert ask(Range="bytes=-2")[:2] == (206, b"45")
        assert ask(Range="bytes=5-")[0] == 416
        assert ask(If_None_Match=etag)[:2] == (304, b"")
        assert ask(If_Match='"other"')[0] == 412
        assert ask(If_Match=etag)[0] == 200
        assert ask(path="b")[0] == 404
        assert ask(path="%2e%2e/log")[0] == 404
        assert ask("DELETE")[0] == 405
        assert (
            bytes(obstore.get(obstores.HTTPStore(url, client_options={"allow_http": True}), "a b").bytes()) == b"12345"
        )


def test_a_server_that_is_killed_comes_back_at_the_same_address_with_its_values(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_bytes(b"1")
    process = servers._static(tmp_path)
    with servers._running(process):
        url = f"http://127.0.0.1:{process.port}/a"
        process.kill()
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(url, timeout=5)
        process.start()
        with urllib.request.urlopen(url, timeout=5) as answer:
            assert answer.read() == b"1"


@pytest.mark.skipif(os.name != "posix", reason="kills as POSIX does")
def test_a_server_ends_with_the_process_that_started_it_even_if_that_is_killed(tmp_path):
    (tmp_path / "data").mkdir()
    script = (
        "import pathlib, sys, time; from tests import servers\n"
        f"process = servers._static(pathlib.Path({str(tmp_path)!r})); process.start()\n"
        "print(process.port, flush=True); time.sleep(60)"
    )
    owner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=servers.ROOT)
    with owner:
        port = int(owner.stdout.readline())
        socket.create_connection(("127.0.0.1", port), 5).close()
        owner.kill()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except ConnectionRefusedError:
            return
        time.sleep(0.05)
    pytest.fail("the server is still there")


@pytest.mark.slow
def test_the_end_of_a_run_counts_the_tests_that_lacked_their_server(pytester_run):
    assert "2  nothing-of-the-kind (make servers)" in pytester_run


@pytest.fixture
def pytester_run(tmp_path):
    (tmp_path / "conftest.py").write_text("from tests.servers import pytest_terminal_summary\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\nfrom tests import servers\n"
        "@pytest.fixture(scope='session')\ndef server():\n    servers.need('nothing-of-the-kind')\n"
        "def test_one(server): pass\ndef test_two(server): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(servers.ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    return done.stdout
