"""``omnizarr serve``: what it prints, what it refuses, and how it ends."""

import json
import signal
import socket
import subprocess
import sys
from urllib.request import Request, urlopen

import pytest

import omnizarr
from omnizarr.cli import main
from omnizarr.cli.serve import FEW

pytest.importorskip("uvicorn", reason="the extra serve is not installed")
application = pytest.importorskip("omnizarr.web.application", reason="the extra serve is not installed")


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    omnizarr.create_group("old.zarr", zarr_format=2).create_array("temp", data=[280.5, 281.0])
    return "old.zarr"


@pytest.fixture
def serve(place):
    """Return a function that starts the command, and returns its process and the address it prints."""
    started = []

    def serve(*options):
        command = [sys.executable, "-m", "omnizarr", "serve", "--port", "0", *options]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process, process.stdout.readline().strip()

    yield serve
    for process in started:
        process.kill()
        process.communicate()


def answer(url, **headers):
    with urlopen(Request(url, headers=headers), timeout=30) as response:
        return response.read()


def test_a_hierarchy_is_served_as_v3_until_ctrl_c(serve, place):
    process, line = serve(place)
    text, _, url = line.rpartition(": ")
    assert text == "old.zarr as Zarr v3"
    assert json.loads(answer(f"{url}/temp/zarr.json"))["zarr_format"] == 3
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "Ctrl-C ends this.\n")


def test_sigterm_ends_it_without_a_word(serve, place):
    process, _ = serve(place)
    process.terminate()
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (-signal.SIGTERM, "Ctrl-C ends this.\n")


@pytest.mark.parametrize(
    ("options", "key", "text"),
    [(("--as", "v2"), "temp/.zarray", "as Zarr v2"), (("--raw",), "temp/.zarray", "as it is stored")],
)
def test_other_formats_and_stored_bytes(serve, place, options, key, text):
    _, line = serve(*options, place)
    assert text in line
    assert json.loads(answer(f"{line.rpartition(': ')[2]}/{key}"))["zarr_format"] == 2


def test_consolidated_metadata_is_made_unless_it_is_refused(serve, place):
    assert FEW == application.FEW
    for options, is_made in (((), True), (("--consolidated", "0"), False), (("--consolidated", "1"), True)):
        _, line = serve(*options, place)
        assert (b"consolidated_metadata" in answer(f"{line.rpartition(': ')[2]}/zarr.json")) is is_made


def test_a_new_token_is_part_of_the_address(serve, place):
    _, line = serve("--token", "new", f"{place}/temp")
    url, _, token = line.rpartition(": ")[2].partition("/?token=")
    assert len(token) == 32
    assert answer(f"{url}/zarr.json?token={token}") == answer(f"{url}/zarr.json", Authorization=f"Bearer {token}")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--host", "0.0.0.0", "old.zarr"], 2, "--token new, or --public"),
        (["--raw", "--as", "v2", "old.zarr"], 2, "leave out --as"),
        (["--token", "a;b", "old.zarr"], 2, "letters, digits"),
        (["--port", "70000", "old.zarr"], 2, "70000"),
        (["none.zarr"], 1, "none.zarr"),
        (["--cors", "viewer.example.org", "old.zarr"], 2, "--cors: not an origin: found 'viewer.example.org'"),
        (["--origin", "https://viewer.example.org/", "old.zarr"], 2, "expected one as in https://viewer.example.org"),
        (["--allow-host", "http://data.example.org", "old.zarr"], 2, "--allow-host: not the name of a host"),
        (["--allow-host", "data.example.org:80", "old.zarr"], 2, "expected one as in data.example.org"),
        (["--host", "203.0.113.1", "--public", "old.zarr"], 1, "no address of this machine"),
    ],
)
def test_refusals(place, capsys, arguments, code, text):
    assert main(["serve", *arguments]) == code
    err = capsys.readouterr().err
    assert text in err
    assert "bug" not in err


def test_a_port_that_is_taken_is_reported_with_the_option(place, capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["serve", "--port", str(port), place]) == 1
    assert f"port {port} of 127.0.0.1 is taken; choose another with --port" in capsys.readouterr().err
