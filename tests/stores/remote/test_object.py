"""Object stores by way of obstore: the contract on servers of three clouds, and what they are asked on the wire."""

import base64
import itertools
import multiprocessing
import os
import pickle
import subprocess
import sys
import time
from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

import omnizarr
from omnizarr.errors import (
    ConflictError,
    InvalidKeyError,
    MissingDependencyError,
    StoreAccessError,
    StoreError,
    StoreLimitError,
    StoreTimeoutError,
)
from omnizarr.stores import LocalStore, ObjectStore, resolve, verbs
from omnizarr.stores.remote import object_answers
from tests.stores.contract import VALID_KEYS, LikeADictionary, StoreContract, in_threads
from tests.stores.recording import FAST, recording

obstore = pytest.importorskip("obstore")
stores = pytest.importorskip("obstore.store")

numbers = itertools.count()


class ObjectStoreContract(StoreContract):
    """The contract, but for keys with control characters, which obstore does not take."""

    mebibytes = 40
    """Of a large value; from 32 on it is sent in parts."""

    @pytest.fixture
    def store(self, place):
        return ObjectStore.from_url(f"{place.url}/{next(numbers)} %41ä", place.options)

    @pytest.mark.parametrize("key", [key for key in VALID_KEYS if key.isprintable()])
    def test_unusual_key_is_a_key(self, store, key):
        super().test_unusual_key_is_a_key(store, key)

    def test_key_with_control_characters_is_refused(self, store):
        for verb in (store.get, store.exists, store.delete, store.lock, lambda key: store.set(key, b"")):
            with pytest.raises(InvalidKeyError, match="control"):
                verb("a\nb")

    def test_writers_are_kept_apart_by_conditions(self, store):
        assert store.features.exclusion == "condition"

    def test_change_by_others_within_a_lock_is_a_conflict(self, store):
        other = store.with_read_only().with_read_only(read_only=False)
        store.set("a", b"1")
        with store.lock("a"):
            assert store.get("a") == b"1"
            in_threads(lambda value: other.set("a", value), [b"2"])
            with pytest.raises(ConflictError):
                store.set("a", b"3")
        assert store.get("a") == b"2"

    @pytest.mark.parametrize(
        "read",
        [
            lambda store: store.get("a", (0, 1)),
            lambda store: list(verbs.get_many(store, [("b", None), ("a", None)])),
            lambda store: verbs.get_spans(store, "a", [(0, 1), (1, 2)]),
            lambda store: verbs.pinned(store, "a")([(0, 1)]),
            lambda store: verbs.get_stamped(store, "a"),
            lambda store: verbs.read_into(store, "a", memoryview(bytearray(2))),
            lambda store: store.size("a"),
            lambda store: verbs.stamp(store, "a"),
        ],
        ids=["part", "many", "spans", "pinned", "stamped", "into", "size", "stamp"],
    )
    @pytest.mark.parametrize("before", [None, b"12"], ids=["absent", "present"])
    def test_whichever_way_it_was_read_a_change_is_noticed(self, store, read, before):
        if before is not None:
            store.set("a", before)
        with store.lock("a"):
            read(store)
            in_threads(lambda value: store.set("a", value), [b"34"])
            with pytest.raises(ConflictError):
                store.set("a", b"56")
        assert store.get("a") == b"34"

    def test_value_deleted_within_a_lock_is_a_conflict(self, store):
        store.set("a", b"1")
        with store.lock("a"):
            store.get("a")
            in_threads(store.delete, ["a"])
            with pytest.raises(ConflictError):
                store.set("a", b"2")
        assert store.get("a") is None

    def test_value_may_be_set_again_and_again_within_a_lock(self, store):
        with store.lock("a"), store.lock("b"):
            assert store.get("a") is None
            for value in (b"1", b"22", b"333"):
                store.set("a", value)
            store.delete("a")
            store.set("a", b"4444")
        assert store.get("a") == b"4444"

    def test_what_is_not_read_within_a_lock_is_written_in_any_case(self, store):
        store.set("a", b"1")
        with store.lock("a"):
            in_threads(lambda value: store.set("a", value), [b"2"])
            store.set("a", b"3")
        assert store.get("a") == b"3"

    def test_updates_of_two_stores_lose_nothing(self, store):
        other = ObjectStore(store._store, prefix=store._prefix)
        other._data = "somebody else"  # in another process: locks do not reach it
        store.set("n", b"0")

        def count(one):
            for _ in range(10):
                one.update("n", lambda old: b"%d" % (int(bytes(old)) + 1))

        in_threads(count, [store, other])
        assert store.get("n") == b"20"

    def test_stamped_value_is_sent_only_if_it_has_changed(self, store):
        assert verbs.get_stamped(store, "a") == (None, None)
        store.set("a", b"1")
        value, stamp = verbs.get_stamped(store, "a")
        assert (bytes(value), stamp) == (b"1", verbs.stamp(store, "a"))
        assert type(stamp) is tuple
        assert verbs.get_stamped(store, "a", stamp) is None
        store.set("a", b"2")
        assert verbs.get_stamped(store, "a", stamp).value == b"2"

    def test_pinned_reader_stays_with_the_version_that_it_met(self, store):
        store.set("a", bytes(range(100)))
        read = verbs.pinned(store, "a")
        assert read([(0, 2), (-2, None)]) == [b"\0\1", b"bc"]
        assert read(None) == [bytes(range(100))]
        store.set("a", b"x" * 100)
        for spans in ([(0, 2)], [(0, 1), (50, 51)], None):
            with pytest.raises(ConflictError):
                read(spans)
        store.delete("a")
        with pytest.raises(ConflictError):
            read([(0, 2)])
        assert verbs.pinned(store, "a")([(0, 2)]) is None

    def test_spans_far_apart_empty_and_from_the_end(self, store):
        value = os.urandom(700_000)
        store.set("a", value)
        spans = [(600_000, 600_010), (0, 5), (3, 3), (-7, None), (5, 9), (699_999, 800_000), (900_000, None), (0, 1)]
        assert verbs.get_spans(store, "a", spans) == [value[slice(*span)] for span in spans]
        assert verbs.get_spans(store, "a", []) == []
        assert verbs.get_spans(store, "a", [(4, 4)]) == [b""]
        assert verbs.get_spans(store, "missing", []) is None
        store.set("a", b"")
        assert verbs.get_spans(store, "a", spans) == [b""] * len(spans)

    def test_large_value_comes_and_goes_whole(self, store):
        value = os.urandom(2**20) * self.mebibytes
        store.set("a", value)
        assert store.get("a") == value
        assert store.get("a", (5, 17 * 2**20)) == value[5 : 17 * 2**20]

    def test_bucket_that_is_missing_is_an_error(self, place):
        missing = ObjectStore.from_url(place.url + "missing", place.options)
        for verb in (lambda: missing.get("a"), lambda: list(missing.list()), lambda: missing.list_dir("")):
            with pytest.raises(StoreError, match=r"no such (bucket|container)"):
                verb()


class TestInMemory(ObjectStoreContract):
    picklable = False

    @pytest.fixture
    def store(self):
        return ObjectStore(stores.MemoryStore(), prefix="a/b")

    test_bucket_that_is_missing_is_an_error = None


def test_names_at_a_place_are_asked_for_with_one_listing_and_only_beside_many_keys_one_by_one(monkeypatch):
    store = ObjectStore(stores.MemoryStore(), prefix="p")
    asked = []
    call = ObjectStore._call

    def counted(store, function, *args, **how):
        asked.append(getattr(function, "__name__", ""))
        return call(store, function, *args, **how)

    monkeypatch.setattr(ObjectStore, "_call", counted)
    store.set("a/.zarray", b"{}")
    for number in range(1000):
        store.set(f"many/{number}", b"")
    store.set("many/zarr.json", b"{}")
    names = [".zarray", "zarr.json"]
    for place, answer, requests in [
        ("new/", False, ["list", "next"]),
        ("a/", True, ["list", "next"]),
        ("many/", True, ["list", "next", "get_range", "get_range"]),
    ]:
        asked.clear()
        assert verbs.has_any(store, place, names) is answer
        assert [name for name in asked if name] == requests


@pytest.mark.parametrize("kind", ["PermissionDeniedError", "NotFoundError", "NotSupportedError", "GenericError"])
def test_names_at_a_place_are_asked_for_one_by_one_if_the_server_refuses_to_list(monkeypatch, kind):
    store = ObjectStore(stores.MemoryStore())
    store.set("a/.zarray", b"{}")
    refusals = []

    def refuse(*_, **__):
        refusals.append(1)
        raise getattr(obstore.exceptions, kind)("no")

    monkeypatch.setattr("obstore.list", refuse)
    for _ in range(2):
        assert verbs.has_any(store, "a/", [".zarray", "zarr.json"])
        assert not verbs.has_any(store, "b/", [".zarray", "zarr.json"])
    assert len(refusals) == 1


def test_arrays_are_created_in_a_bucket_with_more_keys_than_may_be_listed():
    store = ObjectStore(stores.MemoryStore(), max_keys=100)
    for number in range(300):
        store.set(f"k{number}", b"")
    omnizarr.create_array(store, shape=(4,), dtype="i4")[:] = 1
    assert omnizarr.open_array(store)[:].tolist() == [1, 1, 1, 1]


def test_first_array_in_an_object_store_imports_no_event_loop_and_no_metadata_of_packages():
    code = (
        "import sys, obstore.store, omnizarr; from omnizarr.stores import ObjectStore\n"
        "store = ObjectStore(obstore.store.MemoryStore())\n"
        "omnizarr.create_array(store, shape=(4,), dtype='f4'); omnizarr.open_array(store, mode='r')\n"
        "print(*{'asyncio', 'ssl', 'importlib.metadata', 'email'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.split() == []


def test_what_a_listing_shows_to_be_missing_is_set_only_while_it_is_missing():
    store = ObjectStore(bucket := stores.MemoryStore())
    with store.lock("a/zarr.json"):
        assert not verbs.has_any(store, "a/", ["zarr.json", ".zarray"])
        obstore.put(bucket, "a/zarr.json", b"other")
        with pytest.raises(ConflictError):
            store.set("a/zarr.json", b"own")


class OnServer(ObjectStoreContract):
    """The same with a server, which takes a hundred times as long: so fewer rounds."""

    @pytest.mark.parametrize("others", [0, 3])
    def test_has_any_looks_directly_below_the_prefix(self, store, others):
        super().test_has_any_looks_directly_below_the_prefix(store, others)

    def test_equal_stamps_are_of_equal_values(self, store):
        values = {}
        for number in range(12):
            store.set("a/b", b"%d" % (number % 8))
            before, value = verbs.stamp(store, "a/b"), store.get("a/b")
            assert values.setdefault(before, value) == value == b"%d" % (number % 8)

    def test_lock_excludes_other_threads(self, store):
        store.set("n", b"0")

        def count(_):
            for _ in range(4):
                with store.lock("n"):
                    store.set("n", b"%d" % (int(bytes(store.get("n"))) + 1))

        in_threads(count, range(4))
        assert store.get("n") == b"16"

    # Locks are of the process, for every server; the store in memory shows what they do.
    test_lock_holds_while_the_value_comes_and_goes = None
    test_invalid_key_is_refused_by_every_verb = None  # nor does a server hear of such

    def test_behaves_like_a_dictionary(self, store):
        def machine():
            verbs.delete_prefix(store, "")
            return LikeADictionary(store)

        run_state_machine_as_test(machine, settings=settings(max_examples=4, stateful_step_count=15, deadline=None))


@pytest.fixture(scope="module")
def s3(s3_server):
    """Return a bucket for this module."""
    return s3_server.fresh()


class TestOnS3(OnServer):
    @pytest.fixture
    def place(self, s3):
        return s3

    def test_digests_are_those_of_the_bytes(self, store):
        verbs.set_many(store, (("a/b", b"abc"), ("a/c", b"message digest")))
        sums = b"3 900150983cd24fb0d6963f7d28e17f72", b"14 f96b697d7cb7938d525a2f31aaf161d0"  # RFC 1321
        assert sorted(verbs.list_digests(store, "a")) == [("a/b", sums[0]), ("a/c", sums[1])]


@pytest.fixture(scope="module")
def azure(azurite_server):
    """Return a bucket for this module."""
    return azurite_server.fresh()


class TestOnAzure(OnServer):
    @pytest.fixture
    def place(self, azure):
        return azure


@pytest.fixture(scope="module")
def google(gcs_server):
    """Return a bucket for this module."""
    return gcs_server.fresh()


class TestOnGoogle(OnServer):
    @pytest.fixture
    def place(self, google):
        return google

    mebibytes = 18  # the server knows no parts
    test_bucket_that_is_missing_is_an_error = None  # it says the same as of keys


# -- HTTP, and what is sent on the wire


@pytest.fixture
def server():
    with recording() as server:
        yield server


@pytest.fixture
def web(server):
    return ObjectStore.from_url(server.url("/data"), FAST)


def test_values_and_parts_come_by_one_request_each(server, web):
    server.values["/data/a/b"] = b"0123456789"
    for span in (None, (0, 4), (3, None), (-4, None), (2, 99)):
        assert web.get("a/b", span) == b"0123456789"[slice(*span) if span else slice(None)]
        assert len(server.requests()) == 1
    assert web.get("missing") is None
    assert web.size("a/b") == 10
    assert [method for method, _, _ in server.requests()] == ["GET", "HEAD"]


def test_near_parts_are_asked_for_together_and_far_ones_side_by_side(server, web):
    server.values["/data/a"] = value = os.urandom(2**20)
    spans = [(0, 10), (100, 200), (900_000, 900_001), (-8, None)]
    assert verbs.get_spans(web, "a", spans) == [value[slice(*span)] for span in spans]
    ranges = sorted(headers["range"] for _, _, headers in server.requests())
    assert ranges == ["bytes=-8", "bytes=0-199", "bytes=900000-900000"]


def test_each_of_many_parts_is_looked_for_in_one_answer(server, web, monkeypatch):
    cuts, cut = [], object_answers.Answer.cut
    monkeypatch.setattr(object_answers.Answer, "cut", lambda self, span: cuts.append(span) or cut(self, span))
    monkeypatch.setattr("omnizarr.stores.remote.object.grouped", list)
    server.values["/data/a"] = value = bytes(range(200))
    spans = [(start, start + 3) for start in range(180, 0, -4)] + [(-5, None), (190, None)]
    assert verbs.get_spans(web, "a", spans) == [value[slice(*span)] for span in spans]
    assert len(cuts) <= len(spans) + 2


def test_parts_of_two_versions_are_read_again(server, web):
    server.values["/data/a"] = b"1" * 500_000
    changes = iter([b"2" * 500_000, b"3" * 500_000])

    def change(handler):
        if handler.headers["Range"] == "bytes=400000-400009":
            time.sleep(0.1)  # the other part has been sent
            server.values["/data/a"] = next(changes, b"3" * 500_000)

    server.answer = change
    first, second = verbs.get_spans(web, "a", [(0, 10), (400_000, 400_010)])
    assert first == second == b"3" * 10


def test_pinned_reader_sends_the_etag_along(server, web):
    server.values["/data/a"] = b"0123456789"
    read = verbs.pinned(web, "a")
    read([(0, 4)])
    read([(4, 8)])
    (_, _, first), (_, _, second) = server.requests()
    assert "if-match" not in first
    assert second["if-match"] == f'"{hash(b"0123456789")}"'


def test_stamped_value_is_one_request_and_none_is_sent_if_it_is_the_same(server, web):
    server.values["/data/a"] = b"0123456789"
    _, stamp = verbs.get_stamped(web, "a")
    assert verbs.get_stamped(web, "a", stamp) is None
    (_, _, first), (_, _, second) = server.requests()
    assert "if-none-match" not in first
    assert second["if-none-match"] == stamp[0]


def test_weak_etag_is_no_stamp(server, web):
    server.answer = lambda handler: handler.respond(200, b"abc", ETag='W/"1"') or True
    assert verbs.stamp(web, "a") is None
    assert verbs.get_stamped(web, "a") == (b"abc", None)


def test_server_without_ranges_serves_all_the_same(server, web):
    server.knows_ranges = False
    server.values.update({"/data/a": b"0123456789", "/data/empty": b""})
    for span in (None, (0, 4), (3, None), (-4, None), (2, 99), (50, 60), (4, 4)):
        assert web.get("a", span) == b"0123456789"[slice(*span) if span else slice(None)]
    assert verbs.get_spans(web, "a", [(1, 2), (-3, None)]) == [b"1", b"789"]
    out = bytearray(4)
    assert verbs.read_into(web, "a", memoryview(out), 7) == 3
    assert out == b"789\0"
    assert web.get("empty") == b""
    server.requests()
    assert web.get("a") == web.get("a", (0, 10)) == b"0123456789"
    assert len(server.requests()) == 2


def test_server_without_head_is_asked_by_get(server, web):
    server.values["/data/a"] = b"0123456789"
    server.answer = lambda handler: handler.command == "HEAD" and (handler.respond(405) or True)
    assert web.size("a") == 10
    assert not web.exists("b")


def test_http_is_written_by_put_and_lists_nothing(server, web):
    assert web.features.exclusion == "process"
    web.set("ä b%/c#?", b"abc")
    assert server.values == {"/data/%C3%A4%20b%25/c%23%3F": b"abc"}
    assert web.get("ä b%/c#?") == b"abc"
    verbs.set_partial(web, "n", 1, b"x")
    assert verbs.set_if_absent(web, "n", b"y") is False
    web.delete("n")
    verbs.delete_many(web, ["n", "m"])
    assert web.get("n") is None
    for verb in (lambda: list(web.list()), lambda: list(web.list_prefix("a")), lambda: web.list_dir("")):
        with pytest.raises(StoreError, match="consolidate"):
            verb()


def test_secrets_do_not_follow_to_another_host(server):
    with recording() as other:
        other.values["/data/a"] = b"abc"
        server.answer = lambda handler: handler.respond(302, Location=other.url("/data/a")) or True
        options = {**FAST, "headers": {"Authorization": "Bearer secret-token", "Cookie": "secret-cookie", "X-Own": "1"}}
        url = f"http://me:secret-pass%40word@127.0.0.1:{server.server_port}/data?sig=secret-signature"
        plain = ObjectStore.from_url(server.url("/data"), options)
        for store in (plain, ObjectStore.from_url(url, FAST)):
            assert store.get("a") == b"abc"
        (_, _, first), (_, path, second) = server.requests()
        forwarded = other.requests()
    assert first["authorization"] == "Bearer secret-token"
    assert second["authorization"] == "Basic " + base64.b64encode(b"me:secret-pass@word").decode()
    assert path == "/data/a?sig=secret-signature"
    assert first["x-own"] == "1"
    assert "secret" not in str(forwarded)
    assert not {"authorization", "cookie", "x-own", "referer"} & {name for asked in forwarded for name in asked[2]}


def test_redirects_that_do_not_end_are_an_error(server, web):
    server.answer = lambda handler: handler.respond(302, Location=handler.path + "x") or True
    with pytest.raises(StoreError):
        web.get("a")
    assert len(server.requests()) < 30


@pytest.mark.parametrize("limit", [9, 10])
def test_value_is_refused_by_its_size_before_it_is_sent(server, limit):
    store = ObjectStore.from_url(server.url("/data"), {**FAST, "max_value_bytes": limit})
    server.values["/data/a"] = b"0123456789"
    for read in (
        lambda: store.get("a"),
        lambda: verbs.get_stamped(store, "a").value,
        lambda: store.get("a", (0, None)),
    ):
        if limit == 10:
            assert read() == b"0123456789"
        else:
            with pytest.raises(StoreLimitError, match="10 bytes"):
                read()


def test_value_of_absurd_size_is_refused_at_once(server, web):
    def huge(handler):
        handler.send_response(200 if "Range" not in handler.headers else 206)
        handler.send_header("Content-Length", str(2**50))
        if "Range" in handler.headers:
            handler.send_header("Content-Range", f"bytes 0-{2**50 - 1}/{2**50}")
        handler.end_headers()
        handler.close_connection = True
        return True

    server.answer = huge
    begun = time.monotonic()
    with pytest.raises(StoreError):
        web.get("a")
    with pytest.raises(StoreLimitError):
        web.get("a", (0, None))
    assert time.monotonic() - begun < 10


def test_answer_that_breaks_off_is_an_error(server, web):
    def short(handler):
        handler.respond(200, b"01234", Content_Length=10)
        handler.close_connection = True
        return True

    server.answer = short
    with pytest.raises(StoreError):
        web.get("a")


def test_parts_that_were_not_asked_for_are_an_error(server, web):
    server.answer = lambda handler: handler.respond(206, b"xyz", Content_Range="bytes 5-7/10") or True
    for read in (
        lambda: web.get("a", (0, 3)),
        lambda: web.get("a", (0, None)),
        lambda: verbs.get_spans(web, "a", [(0, 3)]),
    ):
        with pytest.raises(StoreError):
            read()


@pytest.mark.parametrize(
    ("status", "error"), [(401, StoreAccessError), (403, StoreAccessError), (400, StoreError), (500, StoreError)]
)
def test_status_becomes_an_error_without_secrets(server, status, error):
    server.answer = lambda handler: handler.respond(status, b"key-of-mine and more") or True
    options = {**FAST, "headers": {"Authorization": "key-of-mine"}}
    store = ObjectStore.from_url(f"http://me:password@127.0.0.1:{server.server_port}/data?sig=signature", options)
    assert repr(store) == f"ObjectStore('http://127.0.0.1:{server.server_port}/data')"
    with pytest.raises(error, match=str(status)) as caught:
        store.get("a")
    assert caught.value.key == "a"
    shown = repr(store) + str(store.origin()) + str(caught.value) + repr(caught.value.__context__)
    for secret in ("password", "signature", "key-of-mine", "Debug"):
        assert secret not in shown
    assert server.requests()[0][1] == "/data/a?sig=signature"


def test_silent_server_is_given_up_in_time(server):
    server.answer = lambda _: time.sleep(3) or True
    store = ObjectStore.from_url(server.url(), {"read_timeout": 0.3, "max_retries": 1})
    with pytest.raises(StoreTimeoutError):
        store.get("a")


def test_dead_server_is_an_error_in_time():
    store = ObjectStore.from_url("http://127.0.0.1:9/data", {"retry_timeout": 0.5})
    begun = time.monotonic()
    with pytest.raises(StoreError):
        store.get("a")
    assert time.monotonic() - begun < 10


def page(keys, token):
    """Return a page of a listing as S3 sends it."""
    contents = "".join(
        f"<Contents><Key>{key}</Key><Size>1</Size><ETag>x</ETag><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
        "</Contents>"
        for key in keys
    )
    return (
        "<ListBucketResult><IsTruncated>true</IsTruncated>"
        f"<NextContinuationToken>{token}</NextContinuationToken>{contents}</ListBucketResult>"
    ).encode()


KEYS = {"access_key_id": "access-of-mine", "secret_access_key": "secret-of-mine", "region": "us-east-1", **FAST}


def test_listing_that_repeats_itself_is_an_error(server):
    store = ObjectStore.from_url("s3://bucket", {**KEYS, "endpoint": server.url()})
    server.answer = lambda handler: handler.respond(200, page(["a", "b"], "t")) or True
    with pytest.raises(StoreLimitError, match="repeats"):
        list(store.list())


def test_listing_that_does_not_end_is_an_error(server):
    store = ObjectStore.from_url("s3://bucket", {**KEYS, "endpoint": server.url(), "max_keys": 5000, "list_timeout": 1})

    def more(handler):
        count = next(numbers)
        handler.respond(200, page([f"{count}/{number}" for number in range(1000)], count))
        return True

    server.answer = more
    with pytest.raises(StoreLimitError, match="5000"):
        list(store.list())
    with pytest.raises(StoreTimeoutError, match="list_timeout"):
        store.list_dir("")


@pytest.mark.parametrize("whose", ["ours", "others"])
def test_write_whose_answer_was_lost_is_known_by_its_mark(server, whose, monkeypatch):
    store = ObjectStore.from_url(
        "s3://bucket", {**KEYS, "endpoint": server.url(), "backoff": {"init_backoff": timedelta(seconds=0.1)}}
    )
    monkeypatch.setattr("omnizarr.stores.remote.object._keep_conditions", {store.origin()[0]})
    marks = []

    def answer(handler):
        if handler.command == "HEAD":
            mark = marks[0] if whose == "ours" else "somebody else"
            handler.respond(200, ETag='"1"', x_amz_meta_omnizarrwrite=mark)
            return True
        marks.append(handler.headers["x-amz-meta-omnizarrwrite"])
        if len(marks) == 1:
            handler.close_connection = True  # it was written, but the answer is lost
        else:
            handler.respond(412)
        return True

    server.put_answer = server.answer = answer
    assert verbs.set_if_absent(store, "a", b"1") is (whose == "ours")
    assert len(marks) == 2
    assert marks[0] == marks[1]


def test_server_that_takes_no_notice_of_conditions_is_found_out(server):
    store = ObjectStore.from_url("s3://bucket", {**KEYS, "endpoint": server.url()})
    with pytest.raises(StoreError, match="no notice"):
        verbs.set_if_absent(store, "a", b"1")
    assert not server.values.get("/bucket/b")
    unsafe = ObjectStore.from_url("s3://bucket", {**KEYS, "endpoint": server.url(), "conditional_put": "disabled"})
    assert unsafe.features.exclusion == "process"
    assert verbs.set_if_absent(unsafe, "b", b"1")
    assert not verbs.set_if_absent(unsafe, "b", b"2")


@pytest.mark.parametrize("style", [False, True])
def test_bucket_is_part_of_the_path_or_of_the_host(server, style):
    options = {**KEYS, "endpoint_url": server.url(host="localhost"), "virtual_hosted_style_request": style}
    if style:
        server.values["/a"] = b"1"
        assert repr(ObjectStore.from_url("s3://bucket/x", options)) == "ObjectStore('s3://bucket/x')"
        store = ObjectStore.from_url("s3://127", {**options, "endpoint": f"http://0.0.1:{server.server_port}"})
        assert store.get("a") == b"1"
    else:
        server.values["/bucket/x/a"] = b"1"
        assert ObjectStore.from_url("s3://bucket/x", options).get("a") == b"1"


def test_anonymous_requests_are_not_signed(server):
    server.values["/bucket/a"] = b"1"
    assert ObjectStore.from_url("s3://bucket", {"anon": True, "endpoint": server.url(), **FAST}).get("a") == b"1"
    assert ObjectStore.from_url("s3://bucket", {**KEYS, "endpoint": server.url()}).get("a") == b"1"
    (_, _, anonymous), (_, _, signed) = server.requests()
    assert "authorization" not in anonymous
    assert "access-of-mine" in signed["authorization"]


def test_environment_and_spellings_of_fsspec_are_understood(server, monkeypatch):
    server.values["/bucket/a"] = b"1"
    fsspec = {"key": "access-of-mine", "secret": "secret-of-mine", "client_kwargs": {"endpoint_url": server.url()}}
    assert ObjectStore.from_url("s3://bucket", fsspec).get("a") == b"1"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "access-of-mine")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-mine")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url())
    assert ObjectStore.from_url("s3a://bucket").get("a") == b"1"
    assert all("access-of-mine" in headers["authorization"] for _, _, headers in server.requests())


def test_profile_is_read_by_boto3(server, tmp_path, monkeypatch):
    pytest.importorskip("boto3")
    server.values["/bucket/a"] = b"1"
    file = tmp_path / "credentials"
    file.write_text("[mine]\naws_access_key_id = access-of-mine\naws_secret_access_key = secret-of-mine\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    options = {**FAST, "endpoint": server.url()}
    assert ObjectStore.from_url("s3://bucket", {**options, "profile": "mine"}).get("a") == b"1"
    monkeypatch.setenv("AWS_PROFILE", "mine")
    assert ObjectStore.from_url("s3://bucket", options).get("a") == b"1"
    assert all("access-of-mine" in headers["authorization"] for _, _, headers in server.requests())
    with pytest.raises(StoreError, match="yours"):
        ObjectStore.from_url("s3://bucket", {**options, "profile": "yours"})


@pytest.mark.parametrize(
    ("url", "options", "found"),
    [
        ("s3://b", {"acces_key_id": "secret-of-mine"}, "access_key_id"),
        ("gs://b", {"service_acount": "secret-of-mine"}, "service_account"),
        ("az://b", {"acount_key": "secret-of-mine"}, "account_key"),
        ("http://b", {"conections": 3}, "concurrency|connect"),
        ("s3://", {}, "bucket"),
        ("https:///a", {}, "host"),
        ("az://b", {}, "Account"),
        ("s3://key:secret-of-mine@b/a", {}, "bucket"),
    ],
)
def test_wrong_url_or_option_is_a_clear_error(url, options, found, monkeypatch):
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(StoreError, match=found) as caught:
        ObjectStore.from_url(url, options)
    assert "secret-of-mine" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "options", "shown"),
    [
        ("s3://bucket/a b/%41", KEYS, "s3://bucket/a b/%41"),
        ("gcs://bucket/a", {"token": "anon"}, "gs://bucket/a"),
        ("abfs://box@account.dfs.core.windows.net/a/", {"anon": True}, "az://box/a"),
        ("az://box", {"connection_string": "AccountName=me;AccountKey=c2VjcmV0"}, "az://box"),
        ("https://user:pw@host:8/a%20b/?q=secret", {}, "https://host:8/a%20b"),
    ],
)
def test_store_shows_its_canonical_url(url, options, shown):
    store = ObjectStore.from_url(url, options)
    assert repr(store) == f"ObjectStore({shown!r})"
    copy = pickle.loads(pickle.dumps(store))
    assert copy == store
    assert hash(copy) == hash(store)
    assert copy.origin() == store.origin()


def test_stores_of_obstore_are_stores():
    memory = stores.MemoryStore()
    store, path = resolve(memory, "a")
    store.set("a", b"1")
    assert (path, bytes(obstore.get(memory, "a").bytes())) == ("", b"1")
    view, _ = resolve(memory, "r")
    assert view.read_only
    assert view.origin() == store.origin()
    assert resolve("s3://bucket/x", "r", KEYS)[0] == ObjectStore.from_url("s3://bucket/x", KEYS, read_only=True)


def test_directory_of_obstore_is_a_directory(tmp_path):
    directory = stores.LocalStore(tmp_path)
    for key in (key for key in VALID_KEYS if key.isprintable()):
        obstore.put(directory, key, b"1")
    store, _ = resolve(directory, "r")
    assert isinstance(store, LocalStore)
    assert sorted(store.list()) == sorted(key for key in VALID_KEYS if key.isprintable())
    with pytest.raises(TypeError, match="LocalStore"):
        ObjectStore(directory)


def use(store, results):
    try:
        results.put(bytes(store.get("a")))
    except StoreError as error:
        results.put(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_child_uses_a_web_server(server, web):
    server.values["/data/a"] = b"1"
    assert web.get("a") == b"1"
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=use, args=(web, results))
    child.start()
    child.join(20)
    assert child.exitcode == 0
    assert results.get() == b"1"
    assert web.get("a") == b"1"


def test_missing_obstore_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "obstore.store", None)
    with pytest.raises(MissingDependencyError, match=r"omnizarr\[cloud\]"):
        ObjectStore.from_url("s3://bucket")


def test_values_are_copied_by_way_of_this_process_where_the_server_cannot(monkeypatch):
    store = ObjectStore(obstore.store.MemoryStore())
    store.set("a", b"12")

    def copy(*_):
        raise obstore.exceptions.NotSupportedError("no copies")

    monkeypatch.setattr(obstore, "copy", copy)
    assert verbs.copy_value(store, "a", "b")
    assert bytes(store.get("b")) == b"12"
    assert not verbs.copy_value(store, "c", "d")


@pytest.mark.parametrize(
    ("size", "tag", "is_known"),
    [
        (3, '"900150983cd24fb0d6963f7d28e17f72"', True),
        (3, '"900150983cd24fb0d6963f7d28e17f72-12"', True),  # of an upload in parts
        (0, '"d41d8cd98f00b204e9800998ecf8427e"', True),
        (3, '"d41d8cd98f00b204e9800998ecf8427e"', False),  # the sum of no bytes
        (3, '"00000000000000000000000000000000-1"', False),
        (3, 'W/"900150983cd24fb0d6963f7d28e17f72"', False),
        (3, '"16f-65ab3c2d1e000"', False),  # of the time and the size
        (3, '"0x8DC1A2B3C4D5E6F"', False),
        (3, '""', False),
        (3, None, False),
    ],
)
def test_tags_that_are_no_sums_of_bytes_are_no_digests(size, tag, is_known):
    found = object_answers.digest_of({"path": "a", "size": size, "e_tag": tag})
    assert (found is not None) == is_known
