"""The application behind the page of ``omnizarr view``, over HTTP."""

import http.client
import json
import socket
import subprocess
import sys
import threading
from urllib.parse import urlsplit

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import NodeNotFoundError, Remedy, ServerError

pytest.importorskip("starlette", reason="the extra serve is not installed")
pytest.importorskip("uvicorn", reason="the extra serve is not installed")
from omnizarr import view
from omnizarr.storage import MemoryStore, ZipStore
from omnizarr.stores.wrap.observed import ObservedStore
from omnizarr.web import plain, viewing
from omnizarr.web.application import application
from omnizarr.web.serving import running
from omnizarr.web.viewing import viewer
from tests.fakes import failing

VALUES = np.arange(600 * 700, dtype="i4").reshape(600, 700)


@pytest.fixture
def page(tmp_path):
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html><title>page</title>")
    (folder / "app.js").write_text("export {}")
    return folder


@pytest.fixture
def group():
    root = omnizarr.create_group({}, zarr_format=2)
    root.create_array("ocean/temp", data=VALUES, chunks=(100, 200))
    root.create_array("names", data=np.array(["<b>", "ä"]))
    return root


@pytest.fixture
def url(page, group):
    with running(viewer(group, page=page)) as address:
        yield address


def get(url, path="/", method="GET", **headers):
    """Return status, headers and body of an answer; the path is sent unchanged."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def asked(url, path):
    status, _, body = get(url, path)
    assert status == 200, body
    return json.loads(body)


class TestPage:
    def test_the_page_and_its_files(self, url):
        assert get(url)[2] == b"<!doctype html><title>page</title>"
        status, headers, body = get(url, "/app.js")
        assert (status, body) == (200, b"export {}")
        assert "javascript" in headers["Content-Type"]

    def test_no_other_files(self, url, page):
        (page.parent / "secret").write_text("x")
        assert get(url, "/../secret")[0] == 404
        assert get(url, "/%2e%2e/secret")[0] == 404
        assert get(url, "/nothing.js")[0] == 404

    @pytest.mark.parametrize(
        "path", ["/", "/app.js", "/api/datasets", "/api/0/tree", "/nothing", "/data/0/zarr.json", "/tiles/0/x/y"]
    )
    def test_nothing_comes_from_elsewhere(self, url, path):
        headers = get(url, path)[1]
        assert "default-src 'self'" in headers["Content-Security-Policy"]
        assert "unsafe-eval" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"

    def test_pages_of_others_may_not_read(self, url):
        headers = get(url, "/api/datasets", Origin="https://example.org")[1]
        assert "Access-Control-Allow-Origin" not in headers

    def test_a_page_that_was_not_built(self, group, tmp_path):
        with pytest.raises(ServerError, match=r"not built.*make page"):
            viewer(group, page=tmp_path)

    def test_nothing_to_show(self, page):
        with pytest.raises(ValueError, match="at least one"):
            viewer(page=page)

    def test_nothing_there(self, page, tmp_path):
        with pytest.raises(NodeNotFoundError):
            viewer(tmp_path / "x.zarr", page=page)


class TestQuestions:
    def test_datasets(self, page, group, tmp_path):
        omnizarr.create_array(tmp_path / "x.zarr", shape=(3,), dtype="i2")
        with running(viewer(group["ocean"], str(tmp_path / "x.zarr"), page=page)) as url:
            answer = asked(url, "/api/datasets")
        first, second = answer["datasets"]
        assert answer["version"] == omnizarr.__version__
        assert (first["number"], first["format"], first["kind"]) == (0, "Zarr v2", "group")
        assert second == {
            "number": 1,
            "name": "x.zarr",
            "location": str(tmp_path / "x.zarr"),
            "format": "Zarr v3",
            "kind": "array",
        }

    def test_each_question(self, url):
        assert asked(url, "/api/0/tree?path=ocean")["nodes"][0]["path"] == "ocean/temp"
        assert asked(url, "/api/0/search?q=TEMP")["nodes"][0]["path"] == "ocean/temp"
        assert asked(url, "/api/0/info?path=ocean/temp")["array"]["shape"] == [600, 700]
        assert asked(url, "/api/0/labels?path=ocean/temp&dimension=1&start=5&stop=9&step=2")["labels"] == [5, 7]
        assert asked(url, "/api/0/values?path=names&select=[[0,2]]")["values"] == ["<b>", "ä"]
        assert asked(url, "/api/0/chunks?path=ocean/temp")["grid"] == [6, 4]
        assert asked(url, "/api/0/check?path=ocean/temp&data=1")["complete"]

    def test_answers_are_no_html(self, url):
        headers = get(url, "/api/0/values?path=names&select=[[0,2]]")[1]
        assert headers["Content-Type"] == "application/json"

    def test_a_page_is_not_advised_to_create_what_is_missing(self, url):
        assert b"create" not in get(url, "/api/0/info?path=nothing")[2]

    @pytest.mark.parametrize(
        ("path", "status"),
        [
            ("/api/0/info?path=nothing", 404),
            ("/api/7/info", 404),
            ("/api/0/what", 404),
            ("/api/0/tree?path=..", 400),
            ("/api/0/tree?offset=x", 400),
            ("/api/0/tree?limit=-1", 400),
            ("/api/0/labels?path=ocean/temp", 400),
            ("/api/0/labels?path=ocean/temp&dimension=2", 400),
            ("/api/0/values?path=ocean/temp", 400),
            ("/api/0/values?path=ocean/temp&select=[0]", 400),
            ("/api/0/values?path=ocean/temp&select=" + "[" * 5000, 400),
            ("/api/0/values?path=ocean&select=[]", 400),
            ("/tiles/0/1.1/nothing/zarr.json", 404),
            ("/tiles/0/1.1/ocean/temp/c/99/0", 404),
            ("/tiles/0/1.1/ocean/temp", 404),
            ("/tiles/0/1/zarr.json", 400),
            ("/tiles/0/0.1/ocean/temp/zarr.json", 400),
            ("/tiles/0/one/ocean/temp/zarr.json", 400),
            ("/tiles/0/1/names/zarr.json", 400),
            ("/tiles/5/1.1/ocean/temp/zarr.json", 404),
        ],
    )
    def test_what_cannot_be_answered(self, url, path, status):
        found, headers, body = get(url, path)
        assert found == status
        assert headers["Content-Type"] == "application/json"
        assert json.loads(body)["error"]

    def test_a_store_that_fails(self, page):
        store = MemoryStore({})
        omnizarr.create_array(store, shape=(4,), dtype="i2", compressors=None, fill_value=0)[:] = 1

        broken = failing(store, OSError("the disk is gone"), key="^c/")
        with running(viewer(omnizarr.open(broken, mode="r"), page=page)) as url:
            status, _, body = get(url, "/api/0/values?path=&select=[[0,4]]")
        assert status == 500
        assert "the disk is gone" in json.loads(body)["error"]

    def test_a_chunk_that_is_broken(self, page):
        store = {}
        array = omnizarr.create_array(store, data=np.ones((4, 4), "i2"), chunks=(2, 2), compressors="gzip")
        store["c/0/0"] = b"no gzip"
        with running(viewer(array, page=page)) as url:
            for path in ("/tiles/0/1.1/c/0/0", "/api/0/values?path=&select=[0,0]"):
                status, _, body = get(url, path)
                assert status == 500
                assert "gzip" in json.loads(body)["error"]

    def test_it_is_read_only(self, url):
        for path in ("/api/datasets", "/api/0/tree", "/data/0/zarr.json", "/"):
            assert get(url, path, "POST")[0] == 405
            assert get(url, path, "DELETE")[0] == 405


class TestData:
    def test_the_hierarchy_as_zarr_v3(self, url):
        found = omnizarr.open_array(f"{url}/data/0/ocean/temp", zarr_format=3)
        np.testing.assert_array_equal(found[::100, ::100], VALUES[::100, ::100])

    @pytest.mark.parametrize("strides", [(1, 1), (2, 3), (64, 1)])
    def test_tiles_are_zarr_v3_to_another_reader(self, url, strides):
        tensorstore = pytest.importorskip("tensorstore")
        base = f"{url}/tiles/0/{strides[0]}.{strides[1]}/ocean/temp/"
        spec = {"driver": "zarr3", "kvstore": {"driver": "http", "base_url": url, "path": urlsplit(base).path}}
        found = tensorstore.open(spec, read=True).result().read().result()
        np.testing.assert_array_equal(found, VALUES[:: strides[0], :: strides[1]])

    def test_browsers_keep_tiles(self, url):
        headers = get(url, "/tiles/0/1.1/ocean/temp/c/0/0")[1]
        assert headers["Cache-Control"] == "private, max-age=60"
        assert headers["Omnizarr-Thinning"] == "1"

    def test_names_that_urls_escape(self, page):
        root = omnizarr.create_group({})
        root.create_array("ä b/c%2F", data=VALUES)
        with running(viewer(root, page=page)) as url:
            assert get(url, "/tiles/0/1.1/%C3%A4%20b/c%252F/zarr.json")[0] == 200
            assert asked(url, "/api/0/info?path=%C3%A4%20b/c%252F")["path"] == "ä b/c%2F"

    def test_a_lone_array(self, page, tmp_path):
        array = omnizarr.create_array(tmp_path / "x.zarr", data=VALUES)
        with running(viewer(array, page=page)) as url:
            assert get(url, "/tiles/0/1.1/zarr.json")[0] == 200
            assert len(get(url, "/tiles/0/1.1/c/0/0")[2]) % 4 == 0
            assert asked(url, "/api/0/info?path=")["kind"] == "array"


class TestGuards:
    def test_a_token_is_asked_for(self, page, group):
        with running(viewer(group, page=page, token="let-me-in")) as url:
            for path in ("/", "/app.js", "/api/datasets", "/data/0/zarr.json", "/tiles/0/1.1/ocean/temp/zarr.json"):
                assert get(url, path)[0] == 401
            status, headers, _ = get(url, "/?token=let-me-in")
            assert status == 200
            cookie = headers["Set-Cookie"].partition(";")[0]
            assert get(url, "/api/datasets", Cookie=cookie)[0] == 200
            assert get(url, "/tiles/0/1.1/ocean/temp/c/0/0", Cookie=cookie)[0] == 200

    def test_names_of_others_are_refused(self, page, group):
        with running(viewer(group, page=page, hosts=())) as url:
            assert get(url, "/api/datasets", Host="evil.example")[0] == 421

    def test_an_address_that_others_reach_needs_a_token(self, group):
        with pytest.raises(ValueError, match="token"):
            view(group, host="0.0.0.0")


class Gated(ObservedStore):
    """A store whose chunks come when the gate is opened."""

    def __init__(self, store):
        super().__init__(store)
        self.asked = threading.Event()
        self.gate = threading.Event()
        self.keys = set()

    def _begin(self, verb, key, span=None):
        if key.startswith("c/"):
            self.keys.add(key)
            self.asked.set()
            assert self.gate.wait(60)
        return super()._begin(verb, key, span)


def test_the_page_shows_no_remedy_that_needs_a_keyword():
    error = NodeNotFoundError("it is not there", remedy=Remedy("look above") | Remedy("pass {mode}", mode="a"))
    assert plain.words(error) == "it is not there; look above"


def test_tiles_that_nobody_waits_for_are_not_read(page, monkeypatch):
    """One tile is being read, and others wait for room; whose clients go away meanwhile are never read."""
    monkeypatch.setattr(viewing, "_AT_ONCE", 1)
    memory = MemoryStore({})
    omnizarr.create_array(memory, data=np.ones((2560, 256), "u1"), chunks=(256, 256), compressors=None, fill_value=0)
    store = Gated(memory)
    with running(viewer(omnizarr.open(store, mode="r"), page=page)) as url:
        parts = urlsplit(url)

        def ask(number):
            connection = socket.create_connection((parts.hostname, parts.port), timeout=60)
            head = f"GET /tiles/0/1.1/c/{number}/0 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
            connection.sendall(head.encode())
            return connection

        first = ask(0)
        assert store.asked.wait(60)
        others = [ask(number) for number in range(1, 9)]
        last = ask(9)
        get(url, "/api/datasets")  # all of these have arrived
        for connection in others:
            connection.close()
        get(url, "/api/datasets")
        store.gate.set()
        for connection in (first, last):
            with connection, connection.makefile("rb") as answer:
                assert answer.readline().split()[1] == b"200"
                answer.read()
    assert store.keys == {"c/0/0", "c/9/0"}


def test_a_tile_that_is_given_up_is_not_read_to_its_end(page, monkeypatch):
    monkeypatch.setattr("omnizarr.web.tiles._MOST_AT_ONCE", 1)
    memory = MemoryStore({})
    omnizarr.create_array(memory, data=np.ones((256, 256), "u1"), chunks=(16, 16), compressors=None, fill_value=0)
    store = Gated(memory)
    with running(viewer(omnizarr.open(store, mode="r"), page=page)) as url:
        parts = urlsplit(url)
        connection = socket.create_connection((parts.hostname, parts.port), timeout=60)
        connection.sendall(b"GET /tiles/0/1.1/c/0/0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert store.asked.wait(60)
        connection.close()
        get(url, "/api/datasets")
        get(url, "/api/datasets")  # the server has seen by now that it was closed
        store.gate.set()
    assert len(store.keys) < 256


class TestFarAway:
    """Hierarchies on a web server, which cannot list."""

    @pytest.fixture
    def place(self, tmp_path):
        root = omnizarr.create_group(tmp_path / "x.zarr", zarr_format=2)
        root.create_array("temp", data=VALUES, chunks=(100, 200))
        return tmp_path / "x.zarr"

    def test_members_that_nothing_names(self, page, place):
        with running(application(place, raw=True)) as far, running(viewer(far, page=page)) as url:
            answer = asked(url, "/api/0/tree")
            assert (answer["nodes"], answer["total"]) == ([], 0)
            assert "cannot list" in answer["note"]
            assert asked(url, "/api/0/info?path=temp")["array"]["shape"] == [600, 700]
            assert len(asked(url, "/api/0/chunks?path=temp")["sizes"]) == 24

    def test_members_of_consolidated_metadata(self, page, place):
        omnizarr.consolidate_metadata(place)
        with running(application(place, raw=True)) as far, running(viewer(far, page=page)) as url:
            assert [node["path"] for node in asked(url, "/api/0/tree")["nodes"]] == ["temp"]
            assert asked(url, "/api/0/search?q=t")["nodes"][0]["shape"] == [600, 700]
            assert get(url, "/tiles/0/2.2/temp/c/0/0")[0] == 200


class TestMembers:
    def test_a_table_and_its_pictures(self, url):
        rows = asked(url, "/api/0/members?limit=1")
        assert [row["name"] for row in rows["nodes"]] == ["names"]
        assert (rows["total"], rows["next"]) == (2, 1)
        status, headers, body = get(url, "/small/0?path=ocean/temp")
        assert (status, headers["Content-Type"]) == (200, "image/png")
        assert body.startswith(b"\x89PNG")
        assert get(url, "/small/0?path=names")[0] == 204
        assert get(url, "/small/0?path=nowhere")[0] == 404


class TestView:
    def test_the_browser_is_opened(self, group, page, monkeypatch):
        opened, told = [], []
        has_opened = threading.Event()

        def note(address):
            opened.append(address)
            has_opened.set()

        monkeypatch.setattr(viewing, "PAGE", page)
        monkeypatch.setattr(viewing.webbrowser, "open", note)

        def run(app, host, port, started):
            with running(app, host=host, port=port) as url:
                assert get(url)[0] == 401
                started(url)
                assert has_opened.wait(30)

        monkeypatch.setattr(viewing, "run", run)
        view(group, token="abc", started=told.append)
        assert opened == told
        assert opened[0].endswith("/?token=abc")

    def test_no_browser(self, group, page, monkeypatch):
        monkeypatch.setattr(viewing, "PAGE", page)
        monkeypatch.setattr(viewing.webbrowser, "open", lambda _: pytest.fail("a browser was opened"))
        monkeypatch.setattr(viewing, "run", lambda *_, started, **__: started("http://127.0.0.1:1"))
        told = []
        omnizarr.view(group, browser=False, started=told.append)
        assert told == ["http://127.0.0.1:1/"]

    def test_it_does_not_block_if_told(self, group, page, monkeypatch):
        monkeypatch.setattr(viewing, "PAGE", page)
        monkeypatch.setattr(viewing.webbrowser, "open", lambda _: pytest.fail("a browser was opened"))
        told = []
        with omnizarr.view(group, block=False, started=told.append) as shown:
            assert told == [shown.url]
            status, headers, _ = get(shown.url)
            assert status == 200
            assert "frame-ancestors http://localhost:*" in headers["Content-Security-Policy"]
            assert f'src="{shown.url}"' in shown._repr_html_()
            assert repr(shown) == f"<Viewing {shown.url}>"
        assert shown.closed
        assert "iframe" not in shown._repr_html_()
        with pytest.raises(OSError):
            get(shown.url)
        shown.close()

    def test_it_does_not_block_in_notebooks(self, group, page, monkeypatch):
        monkeypatch.setattr(viewing, "PAGE", page)
        monkeypatch.setattr(viewing, "notebook", object)
        with omnizarr.view(group) as shown:
            assert get(shown.url)[0] == 200
        monkeypatch.setattr(viewing, "run", lambda *_, **__: None)
        assert omnizarr.view(group, block=True, browser=False) is None

    def test_a_page_that_is_not_for_notebooks_is_in_no_frame(self, url):
        assert "frame-ancestors 'none'" in get(url)[1]["Content-Security-Policy"]

    def test_a_page_with_a_token_is_a_link(self, group, page, monkeypatch):
        monkeypatch.setattr(viewing, "PAGE", page)
        with omnizarr.view(group, block=False, token="abc") as shown:
            assert shown.url.endswith("/?token=abc")
            assert "iframe" not in shown._repr_html_()
            assert f'href="{shown.url}"' in shown._repr_html_()

    def test_its_store_is_closed_with_it(self, tmp_path, page, monkeypatch):
        monkeypatch.setattr(viewing, "PAGE", page)
        omnizarr.create_array(tmp_path / "x.zip", data=VALUES)
        closed = []

        def close(store):
            closed.append(store)

        monkeypatch.setattr(ZipStore, "close", close)
        omnizarr.view(str(tmp_path / "x.zip"), block=False).close()
        assert len(closed) == 1

    def test_a_process_ends_while_a_page_is_served(self):
        code = "import omnizarr; print(omnizarr.view(omnizarr.create_group({}), block=False))"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
        if "the page of the viewer was not built" in found.stderr:
            pytest.skip("the page was not built: make page")
        assert (found.returncode, found.stdout[:16]) == (0, "<Viewing http://")

    def test_nothing_of_it_is_imported_before_it_is_used(self):
        code = "import sys, omnizarr, omnizarr.cli.commands; print(*sys.modules)"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert not {"starlette", "uvicorn", "webbrowser"} & set(found.stdout.split())
