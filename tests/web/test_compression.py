"""Compressed answers: documents and the page, for those who accept gzip; ETags, ranges and chunks as they are."""

import gzip
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

import omnizarr
from omnizarr.storage import MemoryStore
from omnizarr.web.application import application
from omnizarr.web.serving import running
from omnizarr.web.viewing import viewer
from tests.web.client import ask

GZIP = {"Accept_Encoding": "gzip, deflate, br"}


@pytest.fixture
def store():
    store = MemoryStore()
    attributes = {"history": "to and fro " * 500}
    array = omnizarr.create_array(store, name="a", shape=(64, 64), dtype="i4", compressors=None, attributes=attributes)
    array[...] = 1
    return store


@pytest.fixture
def app(store):
    return application(store)


def varies(answer):
    return sorted(name.strip() for name in answer.fields.get("vary", "").split(","))


def test_documents_are_compressed_for_those_who_accept_it(app):
    plain = ask(app, "/a/zarr.json")
    answer = ask(app, "/a/zarr.json", **GZIP)
    assert "content-encoding" not in plain.fields
    assert answer.fields["content-encoding"] == "gzip"
    assert varies(answer).count("Accept-Encoding") == varies(plain).count("Accept-Encoding") == 1
    assert int(answer.fields["content-length"]) == len(answer.body) < len(plain.body) / 5
    assert gzip.decompress(answer.body) == plain.body


def test_chunks_stay_as_they_are(app):
    answer = ask(app, "/a/c/0/0", **GZIP)
    assert len(answer.body) == 64 * 64 * 4
    assert "content-encoding" not in answer.fields
    assert "Accept-Encoding" not in varies(answer)
    assert answer.fields["etag"].startswith('"')


def test_ranges_are_those_of_the_value(app):
    whole = ask(app, "/a/zarr.json")
    part = ask(app, "/a/zarr.json", Range="bytes=10-2009", **GZIP)
    assert (part.status, part.body) == (206, whole.body[10:2010])
    assert "content-encoding" not in part.fields
    assert part.fields["etag"] == whole.fields["etag"]


def test_etag_of_what_may_be_compressed_is_weak(app):
    strong = ask(app, "/a/zarr.json").fields["etag"]
    weak = ask(app, "/a/zarr.json", **GZIP).fields["etag"]
    assert weak == f"W/{strong}"
    for etag in (weak, strong):
        known = ask(app, "/a/zarr.json", If_None_Match=etag, **GZIP)
        assert (known.status, known.body, known.fields["etag"]) == (304, b"", weak)
        assert "Accept-Encoding" in varies(known)
    assert ask(app, "/a/zarr.json", If_Match=strong).status == 200
    assert ask(app, "/a/zarr.json", If_Match=weak).status == 412
    whole = ask(app, "/a/zarr.json", Range="bytes=0-9", If_Range=weak)
    assert whole.status == 200


def test_head_says_what_is_there_without_compression(app):
    plain = ask(app, "/a/zarr.json")
    head = ask(app, "/a/zarr.json", "HEAD", **GZIP)
    assert head.fields["content-length"] == str(len(plain.body))
    assert head.fields["etag"] == plain.fields["etag"]


def test_short_answers_are_not_worth_it(store):
    app = application(store, consolidated=False)
    assert "content-encoding" not in ask(app, "/zarr.json", **GZIP).fields


def test_answers_to_pages_vary_by_origin_too(store):
    app = application(store, origins=["https://example.org"])
    answer = ask(app, "/a/zarr.json", Origin="https://example.org", **GZIP)
    assert varies(answer) == ["Accept-Encoding", "Origin"]


def test_the_page_and_its_answers_are_compressed(store, tmp_path):
    (tmp_path / "index.html").write_text("<p>text</p>" * 500)
    (tmp_path / "app.js").write_text("let x = 1;" * 500)

    def answer(path, **fields):
        with urlopen(Request(url + path, headers=fields), timeout=60) as found:
            return dict(found.headers), found.read()

    with running(viewer(store, page=tmp_path)) as url:
        for path in ("/", "/app.js", "/api/0/info?path=a", "/data/0/a/zarr.json"):
            fields, body = answer(path, **{"Accept-Encoding": "gzip"})
            assert fields["content-encoding"] == "gzip", path
            assert gzip.decompress(body) == answer(path)[1], path
        known = answer("/app.js", **{"Accept-Encoding": "gzip"})[0]["etag"]
        assert known.startswith("W/")
        with pytest.raises(HTTPError, match="304"):
            answer("/app.js", **{"Accept-Encoding": "gzip", "If-None-Match": known})
        fields, tile = answer("/tiles/0/1.1/a/c/0/0", **{"Accept-Encoding": "gzip"})
        assert "content-encoding" not in fields
        np.testing.assert_array_equal(np.frombuffer(tile, "<i4"), 1)
