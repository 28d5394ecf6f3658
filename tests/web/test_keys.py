"""Values of stores over HTTP: what is found and what is not, parts, versions, and values that change."""

import email
import os
import zipfile

import pytest

from omnizarr.errors import ChunkError, StoreError, StoreTimeoutError
from omnizarr.stores import LocalStore, MemoryStore, WrapperStore, ZipStore, verbs
from omnizarr.web import keys
from omnizarr.web.keys import Keys
from tests.fakes import failing
from tests.web.client import ask

BODY = bytes(range(256)) * 40
LONG_AGO = 1_700_000_000


def settled(path):
    """Let a file look as if it had been written long ago."""
    os.utime(path, (LONG_AGO, LONG_AGO))


@pytest.fixture(params=["memory", "directory", "just written", "archive"])
def app(request, tmp_path, monkeypatch):
    """The keys of stores with stamps of files, of objects, and without stamps."""
    monkeypatch.setattr("omnizarr.stores.local.files._SETTLED", 0 if request.param == "directory" else 10**12)
    monkeypatch.setattr("omnizarr.stores.local.files._SETTLED_COARSELY", 0 if request.param == "directory" else 10**12)
    values = {"zarr.json": b"{}", "a b/c/0": BODY, "empty": b"", "\u00fc": b"u"}
    if request.param == "memory":
        return Keys(MemoryStore(values))
    if request.param == "archive":
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
            for key, value in values.items():
                archive.writestr(key, value)
        return Keys(ZipStore(tmp_path / "x.zip", mode="r"))
    store = LocalStore(tmp_path)
    verbs.set_many(store, values.items())
    return Keys(store)


def test_a_value_is_answered_with_its_size_and_etag(app):
    answer = ask(app, "/a%20b/c/0")
    assert (answer.status, answer.body) == (200, BODY)
    fields = answer.fields
    assert fields["content-length"] == "10240"
    assert fields["accept-ranges"] == "bytes"
    assert fields["content-type"] == "application/octet-stream"
    assert fields["etag"][0] == fields["etag"][-1] == '"'
    assert ask(app, "/zarr.json").fields["content-type"] == "application/json"
    assert ask(app, "/%C3%BC").body == b"u"
    assert ask(app, "/empty").fields["content-length"] == "0"


def test_head_is_get_without_the_body(app):
    head, get = ask(app, "/a%20b/c/0", "HEAD", Range="bytes=0-1"), ask(app, "/a%20b/c/0")
    assert (head.status, head.body, head.fields) == (200, b"", get.fields)


@pytest.mark.parametrize(
    "path",
    [
        *("/", "", "/none", "/a%20b", "/a%20b/", "/a%20b/c", "//zarr.json", "/zarr.json/", "/zarr.json/x"),
        *("/../zarr.json", "/a%20b/../zarr.json", "/%2e%2e/zarr.json", "/..%2fzarr.json", "/a%20b/%2E./zarr.json"),
        *("/./zarr.json", "/..%5czarr.json", "/zarr.json%00", "/C:/zarr.json", "/__omnizarr"),
    ],
)
def test_what_is_no_key_of_a_value_is_not_found(app, path):
    for method in ("GET", "HEAD"):
        assert ask(app, path, method).status == 404


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_refused(app, method):
    answer = ask(app, "/zarr.json", method)
    assert (answer.status, answer.fields["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    ("asked", "told", "body"),
    [
        ("bytes=0-9", "bytes 0-9/10240", BODY[:10]),
        ("bytes=10230-", "bytes 10230-10239/10240", BODY[10230:]),
        ("bytes=-4", "bytes 10236-10239/10240", BODY[-4:]),
        ("bytes=10000-99999", "bytes 10000-10239/10240", BODY[10000:]),
    ],
)
def test_a_part(app, asked, told, body):
    answer = ask(app, "/a%20b/c/0", Range=asked)
    assert (answer.status, answer.body, answer.fields["content-range"]) == (206, body, told)
    assert answer.fields["content-length"] == str(len(body))
    assert answer.fields["etag"] == ask(app, "/a%20b/c/0").fields["etag"]


def test_several_parts(app):
    answer = ask(app, "/a%20b/c/0", Range="bytes=0-3, 20000-, -2, 7-7")
    assert answer.status == 206
    assert answer.fields["content-length"] == str(len(answer.body))
    kind = answer.fields["content-type"].encode()
    message = email.message_from_bytes(b"Content-Type: " + kind + b"\r\n\r\n" + answer.body)
    parts = [(each["content-range"], each.get_payload(decode=True)) for each in message.get_payload()]
    assert parts == [
        ("bytes 0-3/10240", BODY[:4]),
        ("bytes 10238-10239/10240", BODY[-2:]),
        ("bytes 7-7/10240", BODY[7:8]),
    ]


@pytest.mark.parametrize(
    ("path", "asked"), [("/a%20b/c/0", "bytes=10240-"), ("/empty", "bytes=0-"), ("/empty", "bytes=-1")]
)
def test_parts_beyond_the_end_cannot_be_had(app, path, asked):
    answer = ask(app, path, Range=asked)
    size = 0 if path == "/empty" else 10240
    assert (answer.status, answer.fields["content-range"]) == (416, f"bytes */{size}")


def test_a_range_that_breaks_the_grammar_means_nothing(app):
    assert ask(app, "/a%20b/c/0", Range="bytes=9-1").status == 200


def test_a_version_that_the_client_has_is_not_sent(app):
    etag = ask(app, "/a%20b/c/0").fields["etag"]
    answer = ask(app, "/a%20b/c/0", If_None_Match=f'"x", {etag}', Range="bytes=0-1")
    assert (answer.status, answer.body, answer.fields["etag"]) == (304, b"", etag)
    assert "content-length" not in answer.fields
    assert ask(app, "/a%20b/c/0", If_None_Match='"x"').status == 200
    assert ask(app, "/a%20b/c/0", If_Match='"x"').status == 412
    assert ask(app, "/a%20b/c/0", If_Match=etag).status == 200
    assert ask(app, "/a%20b/c/0", Range="bytes=0-1", If_Range=etag).status == 206
    assert ask(app, "/a%20b/c/0", Range="bytes=0-1", If_Range='"x"').body == BODY


def test_another_value_has_another_etag(app):
    etags = {ask(app, path).fields["etag"] for path in ("/zarr.json", "/a%20b/c/0", "/empty", "/%C3%BC")}
    assert len(etags) == 4
    if not isinstance(app.store, ZipStore):
        before = ask(app, "/zarr.json").fields["etag"]
        app.store.set("zarr.json", b"[]")
        assert ask(app, "/zarr.json").fields["etag"] != before
        assert ask(app, "/zarr.json", If_None_Match=before).body == b"[]"


def test_etags_of_files_are_the_same_in_the_next_process(tmp_path):
    store = LocalStore(tmp_path)
    store.set("a", b"1")
    first, second = (ask(Keys(LocalStore(tmp_path)), "/a").fields["etag"] for _ in range(2))
    assert first == second


def test_links_out_of_the_directory_are_not_found(tmp_path):
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "root" / "inside").mkdir(parents=True)
    (tmp_path / "root" / "inside" / "a").write_bytes(b"a")
    (tmp_path / "root" / "file").symlink_to(tmp_path / "secret")
    (tmp_path / "root" / "folder").symlink_to(tmp_path)
    (tmp_path / "root" / "good").symlink_to(tmp_path / "root" / "inside")
    app = Keys(LocalStore(tmp_path / "root"))
    for path in ("/file", "/folder/secret", "/inside/../file"):
        for method in ("GET", "HEAD"):
            assert ask(app, path, method).status == 404
        assert ask(app, path, Range="bytes=0-1").status == 404
    assert ask(app, "/good/a").body == b"a"


def test_large_values_are_sent_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(keys, "PIECE", 1000)
    (tmp_path / "a").write_bytes(BODY)
    settled(tmp_path / "a")
    monkeypatch.setattr("omnizarr.stores.local.files._SETTLED", 0)
    monkeypatch.setattr("omnizarr.stores.local.files._SETTLED_COARSELY", 0)
    app = Keys(LocalStore(tmp_path))
    answer = ask(app, "/a")
    assert (answer.body, answer.fields["content-length"]) == (BODY, "10240")
    assert [len(piece) for piece in answer.pieces] == [1000] * 10 + [240]
    part = ask(app, "/a", Range="bytes=100-2099")
    assert (part.status, part.body, len(part.pieces)) == (206, BODY[100:2100], 2)
    several = ask(app, "/a", Range="bytes=100-2099,9000-")
    assert several.fields["content-length"] == str(len(several.body))
    assert BODY[100:2100] in several.body


class Changing(WrapperStore):
    """A store of which another process writes a value whenever it is read."""

    reads = 0

    def get(self, key, span=None):
        value = self.store.get(key, span)
        self.reads += 1
        self.store.set(key, bytes([self.reads]) * 3000)
        return value


def test_parts_of_a_value_that_changes_are_of_one_version():
    store = Changing(MemoryStore({"a": bytes(3000)}))
    answer = ask(Keys(store), "/a", Range="bytes=0-1999")
    assert (answer.status, len(answer.body), len(set(answer.body))) == (206, 2000, 1)


def test_a_value_that_changes_while_it_is_sent_ends_early(monkeypatch):
    monkeypatch.setattr(keys, "PIECE", 1000)
    sizes = []

    class ChangingLater(Changing):
        def get(self, key, span=None):
            sizes.append(span)
            return self.store.get(key, span) if len(sizes) < 2 else super().get(key, span)

    with pytest.raises(RuntimeError, match="changed while it was sent"):
        ask(Keys(ChangingLater(MemoryStore({"a": bytes(3000)}))), "/a")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StoreError("it is gone", store="LocalStore('/home/me')"), 500),
        (ChunkError("it is broken", store="LocalStore('/home/me')"), 500),
        (PermissionError("/home/me/a"), 500),
        (StoreTimeoutError("no answer from s3://me:pw@bucket/?x=y"), 504),
    ],
)
def test_failures_are_reported_without_places(error, status, caplog):
    answer = ask(Keys(failing(MemoryStore({"a": b""}), error, verb="^stamp$")), "/a")
    assert answer.status == status
    assert answer.error.startswith("a: ")
    assert not any(secret in answer.error for secret in ("/home", "pw"))
    assert str(error) in caplog.text


def test_below_a_prefix_of_the_url(app):
    assert ask(app, "/data/0/zarr.json", root_path="/data/0").body == b"{}"
