"""Servers of S3 that cannot delete several keys in one request, or not all: they are deleted, or an error names one."""

import asyncio
import itertools
import pickle
import re
import threading
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import StoreAccessError, StoreError
from omnizarr.stores import ObjectStore, asynchronous, verbs
from omnizarr.stores.remote import object_errors
from tests.stores.recording import FAST, Handler, Recording

pytest.importorskip("obstore", reason="obstore is not installed")

RESULT = '<?xml version="1.0"?><DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{}</DeleteResult>'
LISTED = "<Contents><Key>{}</Key><LastModified>2026-11-22T00:00:00.000Z</LastModified><Size>{}</Size></Contents>"
DENIED = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"

REFUSALS = {
    "404": (404, ""),
    "404 of a key": (404, "<Error><Code>NoSuchKey</Code></Error>"),
    "405": (405, ""),
    "501": (501, ""),
    "400": (400, "bad request"),
    "403": (403, DENIED),
    "empty": (200, ""),
    "204": (204, ""),
    "a page": (200, "<html>welcome</html>"),
    "empty result": (200, RESULT.format("")),
}


class _Handler(Handler):
    def do_GET(self):
        if "list-type=2" not in self.path:
            super().do_GET()
            return
        prefix = parse_qs(urlsplit(self.path).query).get("prefix", [""])[0]
        found = {path.removeprefix("/bucket/"): value for path, value in self.server.values.items()}
        keys = [LISTED.format(escape(key), len(found[key])) for key in sorted(found) if key.startswith(prefix)]
        self.respond(200, f"<ListBucketResult><Name>bucket</Name>{''.join(keys)}</ListBucketResult>".encode())

    do_HEAD = do_GET  # noqa: N815 - as the library calls it

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        keys = re.findall("<Key>([^<]*)</Key>", body)
        self.server.asked.append(("POST", self.path, keys))
        if self.server.refusal is not None:
            status, text = self.server.refusal
            self.respond(status, text.encode())
            return
        told = ""
        for key in keys:
            if key in self.server.kept:
                told += f"<Error><Key>{key}</Key><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
            elif key in self.server.kept_at_first:
                told += f"<Error><Key>{key}</Key><Code>NoSuchKey</Code><Message>Not here</Message></Error>"
            else:
                self.server.values.pop(f"/bucket/{key}", None)
                told += f"<Deleted><Key>{key}</Key></Deleted>"
        self.respond(200, RESULT.format(told).encode())

    def do_DELETE(self):
        self.server.asked.append(("DELETE", self.path, {}))
        path = unquote(self.path)
        if path.removeprefix("/bucket/") in self.server.kept:
            self.respond(*self.server.denial)
        else:
            found = self.server.values.pop(path, None)
            self.respond(204 if found is not None else self.server.of_missing)


@pytest.fixture
def server():
    """A server of S3 with one bucket, whose `refusal` is its answer to the deletion of several keys.

    `kept`: keys that must not be deleted; `kept_at_first`: those that are only deleted by themselves.
    """
    with Recording(has_conditions=True) as server:
        server.RequestHandlerClass = _Handler
        server.refusal, server.kept, server.kept_at_first = None, set(), set()
        server.denial, server.of_missing = (403, DENIED.encode()), 204
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def url_and_options(server, **options):
    given = {"endpoint": server.url(), "key": "a" * 9, "secret": "b" * 9, "region": "us-east-1", **FAST, **options}
    return "s3://bucket/data", given


@pytest.fixture
def store(server):
    return filled(server)


def filled(server, keys="abcd", **options):
    server.values.update({f"/bucket/data/{key}": b"1" for key in keys})
    return ObjectStore.from_url(*url_and_options(server, **options))


def asked(server):
    """Return the requests that delete since the last time."""
    return [f"{verb} {path}" for verb, path, _ in server.requests() if verb in ("POST", "DELETE")]


def left(server):
    return "".join(sorted(path.rpartition("/")[2] for path in server.values))


DELETIONS = {
    "delete": (lambda store: store.delete("b"), "acd"),
    "delete_many": (lambda store: verbs.delete_many(store, ["a", "b", "missing"]), "cd"),
    "delete_prefix": (lambda store: verbs.delete_prefix(store, ""), ""),
    "awaited": (lambda store: asyncio.run(asynchronous.called(verbs.delete_many, store, ["a", "b"])), "cd"),
}


@pytest.mark.parametrize("deletion", DELETIONS)
@pytest.mark.parametrize("refusal", REFUSALS)
def test_server_that_deletes_no_keys_at_once_deletes_each(server, store, refusal, deletion):
    server.refusal = REFUSALS[refusal]
    delete, expected = DELETIONS[deletion]
    delete(store)
    assert left(server) == expected


def test_one_request_deletes_all_keys_where_the_server_can(server, store):
    verbs.delete_many(store, ["a", "b", "missing"])
    store.delete("c")
    assert left(server) == "d"
    assert asked(server) == ["POST /bucket?delete"] * 2


def test_server_is_asked_once_whether_it_deletes_several_keys(server, store):
    server.refusal = (404, "")
    for key in "abc":
        store.delete(key)
    filled(server, "").delete("d")
    assert left(server) == ""
    assert asked(server) == ["POST /bucket?delete", *(f"DELETE /bucket/data/{key}" for key in "abcd")]
    again = pickle.loads(pickle.dumps(store))
    again.set("e", b"1")
    again.delete("e")
    assert left(server) == ""


@pytest.mark.parametrize("of_missing", [204, 404])
def test_key_that_is_missing_is_no_error_where_keys_are_deleted_one_by_one(server, of_missing):
    server.refusal, server.of_missing = (404, ""), of_missing
    for options in {}, {"disable_bulk_delete": True}, {"disable_bulk_delete": "false"}:
        store = filled(server, **options)
        store.delete("missing")
        verbs.delete_many(store, ["none", "a", "missing", "b", "c"])
        assert left(server) == "d"


def test_option_and_environment_leave_requests_for_several_keys_out(server, monkeypatch):
    server.of_missing = 404
    verbs.delete_many(filled(server, disable_bulk_delete=True), ["none", "a", "b"])
    monkeypatch.setenv("AWS_DISABLE_BULK_DELETE", "true")
    store = filled(server, "")
    verbs.delete_many(store, ["missing", "c"])
    store.delete("d")
    store.delete("missing")
    assert left(server) == ""
    assert not any("POST" in each for each in asked(server))


def test_key_that_stays_although_the_server_says_404_is_an_error(server, store):
    server.refusal, server.kept, server.denial = (404, ""), {"data/b"}, (404,)
    with pytest.raises(StoreError, match=r"key 'b': .*'not found'.* still there"):
        store.delete("b")
    with pytest.raises(StoreError, match=r"key 'b': .*'not found'.* still there"):
        verbs.delete_many(store, ["a", "b", "c"])
    assert "b" in left(server)


@pytest.mark.parametrize("deletion", ["delete", "delete_many", "delete_prefix"])
def test_key_that_must_not_be_deleted_is_named(server, store, deletion):
    server.kept = {"data/b"}
    with pytest.raises(StoreAccessError, match="key 'b': access is denied"):
        DELETIONS[deletion][0](store)
    assert "b" in left(server)
    assert asked(server) == ["POST /bucket?delete", "DELETE /bucket/data/b"]
    store.delete("c")  # it can delete several keys
    assert asked(server) == ["POST /bucket?delete"]


def test_keys_that_only_the_common_request_does_not_delete_are_deleted(server, store):
    server.kept_at_first = {"data/b", "data/d"}
    verbs.delete_many(store, "abcd")
    assert left(server) == ""
    assert asked(server)[:2] == ["POST /bucket?delete", "DELETE /bucket/data/b"]


def test_first_failure_ends_the_deletion_of_single_keys(server):
    keys = ["".join(key) for key in itertools.product("abcdefgh", repeat=3)]
    store = filled(server, keys)
    server.refusal, server.kept = (403, DENIED), {f"data/{key}" for key in keys}
    with pytest.raises(StoreAccessError, match="key 'aaa': access is denied"):
        verbs.delete_many(store, keys)
    assert asked(server) == ["POST /bucket?delete", "DELETE /bucket/data/aaa"]


@pytest.mark.parametrize(
    ("refusal", "message"),
    [
        ((404, "<Error><Code>NoSuchBucket</Code></Error>"), "no such bucket"),
        ((503, "<Error><Code>SlowDown</Code></Error>"), "fewer requests"),
        ((500, ""), "the server failed"),
    ],
)
def test_single_keys_are_not_tried_where_that_is_of_no_use(server, store, refusal, message):
    server.refusal = refusal
    with pytest.raises(StoreError, match=message):
        store.delete("a")
    with pytest.raises(StoreError, match=message):
        verbs.delete_many(store, ["a", "b"])
    assert left(server) == "abcd"
    assert not any("DELETE" in each for each in asked(server))


@pytest.mark.parametrize("kept", ["404", "a key"])
def test_forked_children_say_which_deletion_failed(server, store, kept, monkeypatch):
    pytest.importorskip("omnizarr._native")
    monkeypatch.setattr(object_errors, "is_forked", lambda: True)
    if kept == "404":
        server.refusal, message = (404, ""), "no requests that delete several keys: .*'disable_bulk_delete': True"
    else:
        server.kept, message = {"data/b"}, "access is denied.* data/b"
    for delete in lambda: store.delete("b"), lambda: verbs.delete_many(store, ["a", "b"]):
        with pytest.raises(StoreError, match=message):
            delete()
    assert "b" in left(server)
    if kept == "404":
        verbs.delete_many(filled(server, disable_bulk_delete=True), ["missing", "a", "b"])
        assert left(server) == "cd"


@pytest.mark.parametrize("refusal", ["404", "empty"])
def test_array_is_deleted_from_a_group(server, refusal):
    place, options = url_and_options(server)
    group = omnizarr.create_group(place, storage_options=options)
    for name in "ab":
        group.create_array(name, shape=(4,), chunks=(1,), dtype="i4")[...] = 1
    server.refusal = REFUSALS[refusal]
    del group["a"]
    assert not any("/data/a/" in path for path in server.values)
    np.testing.assert_array_equal(group["b"][...], [1] * 4)


@pytest.mark.parametrize("refusal", ["404", "empty"])
def test_chunks_with_the_fill_value_alone_are_deleted(server, refusal):
    place, options = url_and_options(server)
    array = omnizarr.create_array(place, shape=(4,), chunks=(1,), dtype="i4", fill_value=0, storage_options=options)
    array[...] = 1
    server.refusal = REFUSALS[refusal]
    array[:2] = 0
    np.testing.assert_array_equal(omnizarr.open_array(place, storage_options=options)[...], [0, 0, 1, 1])
    assert sorted(path for path in server.values if "/c/" in path) == ["/bucket/data/c/2", "/bucket/data/c/3"]
