"""The client that only fetches, which `benchmarks.latency` compares omnizarr with; figures are not looked at."""

import shutil
import tomllib
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from benchmarks import bare_client
from benchmarks.running import ROOT

if not bare_client.CRATE.is_dir():
    pytest.skip("a source distribution does not have the client", allow_module_level=True)


def versions(lock):
    return {(each["name"], each["version"]) for each in tomllib.loads(lock.read_text(encoding="utf-8"))["package"]}


def test_client_has_the_libraries_of_the_native_engine():
    libraries = {(name, version) for name, version in versions(bare_client.CRATE / "Cargo.lock") if name != "bare"}
    assert ("hyper", bare_client.version()) in libraries
    assert libraries <= versions(ROOT / "rust" / "Cargo.lock")


def test_client_is_in_no_distribution():
    assert "prune benchmarks/bare" in (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def server(tmp_path):
    asked = []

    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def __init__(self, *args, **kwargs):
            super().__init__(*args, directory=str(tmp_path), **kwargs)

        def log_message(self, *_):
            asked.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        found.daemon_threads = True
        Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_port}/data", tmp_path / "data", asked
        found.shutdown()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is missing")
def test_client_fetches_each_file_once_in_each_run(server):
    url, folder, asked = server
    folder.mkdir()
    names = [f"c{number}" for number in range(20)]
    for number, name in enumerate(names):
        (folder / name).write_bytes(bytes(100 + number))
    size = sum(range(100, 120))
    found = bare_client.fetch(url, names, size, 4, 2, 60)
    assert len(found["seconds"]) == len(found["processor"]) == 2
    assert sorted(asked) == sorted(f"/data/{name}" for name in names * 3)
    assert bare_client.fetch(url, names, size + 1, 4, 2, 60) == {"reason": "another number of bytes"}
    assert "404" in bare_client.fetch(url, ["missing"], 0, 4, 2, 60)["reason"]
