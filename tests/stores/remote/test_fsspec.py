"""fsspec's filesystems as stores: in memory, local, S3 (s3fs), and the index pages of a web server."""

import functools
import http.server
import itertools
import multiprocessing
import pickle
import threading
import traceback
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import InvalidKeyError, MissingDependencyError, ReadOnlyError, StoreAccessError, StoreError
from omnizarr.stores import LocalStore, ZipStore, verbs
from tests.stores.contract import StoreContract

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")

from fsspec.implementations.dirfs import DirFileSystem  # noqa: E402
from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402

from omnizarr.stores import FsspecStore  # noqa: E402

_numbers = itertools.count()

# Names that mean something in URLs, or in the patterns of fsspec, and the neighbours that the patterns would match.
ODD_KEYS = ["a b", "a%20b", "a%2Fb", "a#b", "a?b=c", "a+b", "a*b", "axb", "[a]", "a", "{a,b}", "~", "ä/β", "a&b;c=d"]
SPANS = [(0, 4), (2, 5), (2, None), (3, 3), (0, 99), (8, 99), (10, None), (50, 60), (-3, None), (-99, None)]


class TestMemory(StoreContract):
    @pytest.fixture
    def store(self):
        store = FsspecStore(fsspec.filesystem("memory"), f"test-{next(_numbers)}")
        yield store
        verbs.delete_prefix(store, "")


class TestLocal(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return FsspecStore(fsspec.filesystem("file"), str(tmp_path / "data.zarr"))


class TestS3(StoreContract):
    # Thousands of requests, each of which takes milliseconds; the locks are those of the others.
    test_behaves_like_a_dictionary = None
    test_equal_stamps_are_of_equal_values = None
    test_lock_excludes_other_threads = None
    test_lock_holds_while_the_value_comes_and_goes = None

    @pytest.fixture
    def store(self, s3):
        url, options = s3
        return FsspecStore.from_url(f"{url}/a b/{next(_numbers)}", options)


@pytest.fixture(scope="module")
def s3(s3_server):
    """Return the URL of a bucket, and what s3fs needs for it."""
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    place = s3_server.fresh()
    return place.url, {
        "key": place.options["access_key_id"],
        "secret": place.options["secret_access_key"],
        "client_kwargs": {"endpoint_url": place.endpoint, "region_name": place.options["region"]},
        "config_kwargs": {"s3": {"addressing_style": "path"}},
    }


@pytest.fixture(params=["memory", "local", "s3"])
def store(request, tmp_path):
    if request.param == "memory":
        return FsspecStore(MemoryFileSystem(global_store=False, skip_instance_cache=True), "a")
    if request.param == "local":
        return FsspecStore(fsspec.filesystem("file"), str(tmp_path / "x"))
    url, options = request.getfixturevalue("s3")
    return FsspecStore.from_url(f"{url}/{next(_numbers)}", options)


# -- keys and listings


def test_names_that_mean_something_elsewhere_are_names_here(store):
    keys = [key for key in ODD_KEYS if key != "a" or "memory" in repr(store)]
    verbs.set_many(store, ((f"x/{key}", key.encode()) for key in keys))
    assert {key: store.get(f"x/{key}") for key in keys} == {key: key.encode() for key in keys}
    assert sorted(store.list()) == sorted(f"x/{key}" for key in keys)
    for number, key in enumerate(keys, 1):
        store.delete(f"x/{key}")
        assert sorted(store.list()) == sorted(f"x/{key}" for key in keys[number:])


def test_prefix_that_is_a_pattern_is_a_prefix(store):
    verbs.set_many(store, ((key, b"") for key in ("a*/b", "a1/b", "[a]/b", "a/b")))
    assert store.list_dir("a*/") == (["a*/b"], [])
    verbs.delete_prefix(store, "a*/")
    verbs.delete_prefix(store, "[a]/")
    assert sorted(store.list()) == ["a/b", "a1/b"]


def test_listing_shows_what_others_have_written_since(store):
    twin = pickle.loads(pickle.dumps(store)) if store.fs.async_impl else store
    assert store.list_dir("a") == ([], [])
    assert store.size("a/b") is None
    store.fs.pipe_file(store.fs._strip_protocol(store.path) + "-other", b"")
    twin.set("a/b", b"1")
    assert store.list_dir("a") == (["a/b"], [])
    assert list(store.list()) == ["a/b"]
    twin.set("a/b", b"123")
    assert store.size("a/b") == 3
    twin.delete("a/b")
    assert store.list_dir("") == ([], [])
    assert not store.exists("a/b")


def test_root_of_a_filesystem_is_a_store():
    fs = MemoryFileSystem(global_store=False, skip_instance_cache=True)
    store = FsspecStore(fs)
    store.set("a/b", b"1")
    assert fs.cat_file("/a/b") == b"1"
    assert list(store.list()) == ["a/b"]
    assert store.list_dir("") == ([], ["a/"])
    assert repr(store) == "FsspecStore('memory://')"


def test_directory_that_links_in_circles_is_listed_once(tmp_path):
    store = FsspecStore(fsspec.filesystem("file"), str(tmp_path))
    store.set("a/b", b"1")
    (tmp_path / "a" / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert list(store.list()) == ["a/b"]


def test_directory_that_cannot_be_listed_is_an_error(monkeypatch):
    fs = MemoryFileSystem(global_store=False, skip_instance_cache=True)
    store = FsspecStore(fs, "a")
    store.set("b/c", b"1")

    def fail(*_, **__):
        raise OSError("the disk is on fire")

    monkeypatch.setattr(fs, "ls", fail)
    monkeypatch.setattr(fs, "find", fail)
    for listing in (lambda: list(store.list()), lambda: store.list_dir("b")):
        with pytest.raises(StoreError, match="the disk is on fire") as caught:
            listing()
        assert caught.value.store == repr(store)


# -- writing


def test_local_value_is_never_seen_in_part(tmp_path, monkeypatch):
    store = FsspecStore(fsspec.filesystem("file"), str(tmp_path))
    store.set("a/b", b"old")
    seen = []
    pipe_file = store.fs.pipe_file

    def watched(path, value, **options):
        pipe_file(path, value, **options)
        seen.append((store.get("a/b"), list(store.list())))

    monkeypatch.setattr(store.fs, "pipe_file", watched)
    store.set("a/b", b"new")
    assert seen == [(b"old", ["a/b"])]
    assert store.get("a/b") == b"new"


def test_failed_local_write_leaves_nothing_behind(tmp_path, monkeypatch):
    store = FsspecStore(fsspec.filesystem("file"), str(tmp_path))
    store.set("a/b", b"old")

    def half(path, value, **_):
        Path(path).write_bytes(value[:1])
        raise OSError("the disk is full")

    monkeypatch.setattr(store.fs, "pipe_file", half)
    with pytest.raises(StoreError, match="the disk is full"):
        store.set("a/b", b"new")
    assert store.get("a/b") == b"old"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


def test_of_two_that_set_a_missing_key_of_s3_the_second_is_refused_by_the_service(s3, monkeypatch):
    url, options = s3
    store = FsspecStore.from_url(f"{url}/{next(_numbers)}", options)
    store.set("a", b"1")
    answers = iter([False])  # as if the other had come after the look
    exists = FsspecStore.exists
    monkeypatch.setattr(FsspecStore, "exists", lambda self, key: next(answers, exists(self, key)))
    assert verbs.set_if_absent(store, "a", b"2") is False
    assert store.get("a") == b"1"


def test_stores_on_one_directory_share_their_locks(tmp_path):
    one, other = (FsspecStore(fsspec.filesystem("file"), str(path)) for path in (tmp_path, tmp_path / "a"))
    entered = threading.Event()

    def enter():
        with other.lock("b"):
            entered.set()

    thread = threading.Thread(target=enter, daemon=True)
    with one.lock("a/b"):
        thread.start()
        assert not entered.wait(0.05)
    thread.join(10)
    assert entered.is_set()
    assert one.features.exclusion == "process"


@pytest.mark.parametrize("url", ["simplecache::memory://a", "filecache::memory://a", "zip://a::memory://x.zip"])
def test_what_is_only_for_reading_is_not_written(url):
    with fsspec.open("memory://x.zip", "wb") as file:
        file.write(b"PK\5\6" + bytes(18))  # an archive without members
    assert FsspecStore.from_url(url).read_only
    for write in (lambda: FsspecStore.from_url(url, read_only=False), lambda: omnizarr.open_group(url, mode="a")):
        with pytest.raises(ReadOnlyError):
            write()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # blockcache leaves its files open
@pytest.mark.parametrize("kind", ["simplecache", "filecache", "blockcache", "zip"])
def test_cache_and_archive_are_read(tmp_path, kind):
    values = {"zarr.json": b"{}", "a/b": b"0123456789", "a/c": b""}
    if kind == "zip":
        with ZipStore(tmp_path / "x.zip", mode="w") as archive:
            verbs.set_many(archive, ((f"x/{key}", value) for key, value in values.items()))
        url, options = f"zip://x::{(tmp_path / 'x.zip').as_uri()}", {}
    else:
        verbs.set_many(LocalStore(tmp_path / "x"), values.items())
        url, options = f"{kind}::{(tmp_path / 'x').as_uri()}", {kind: {"cache_storage": str(tmp_path / "cache")}}
    first = FsspecStore.from_url(url, options)
    for store in (first, pickle.loads(pickle.dumps(first))):
        assert {key: store.get(key) for key in store.list()} == values
        assert store.list_dir("a") == (["a/b", "a/c"], [])
        assert store.size("a/b") == 10
        for span in SPANS:
            assert store.get("a/b", span) == b"0123456789"[slice(*span)]
        for key in ("a", "x", "a/b/c"):
            assert store.get(key) is None
            assert store.get(key, (-1, None)) is None
            assert not store.exists(key)


def test_references_into_other_files_are_read(tmp_path):
    (tmp_path / "data").write_bytes(b"0123456789")
    url = (tmp_path / "data").as_uri()
    fs = fsspec.filesystem("reference", fo={"zarr.json": "{}", "a/b": [url, 2, 4], "c": [url]}, remote_protocol="file")
    store = FsspecStore(fs)
    assert sorted(store.list()) == ["a/b", "c", "zarr.json"]
    assert dict(verbs.get_many(store, [("a/b", None), ("c", (-2, None)), ("d", None)])) == {
        0: b"2345",
        1: b"89",
        2: None,
    }
    assert store.get("a/b", (1, 3)) == b"34"


# -- many at once


def test_many_values_of_s3_are_asked_for_at_once(s3):
    url, options = s3
    store = FsspecStore.from_url(f"{url}/{next(_numbers)}", options)
    assert store.features.concurrency == 64
    verbs.set_many(store, ((f"c/{i}", b"%d" % i) for i in range(20)))
    most, now = 0, 0
    files = store._files
    read = files.read

    async def counted(path, span):
        nonlocal most, now
        now += 1
        most = max(most, now)
        try:
            return await read(path, span)
        finally:
            now -= 1

    files.read = counted
    requests = [(f"c/{i}", (0, 1) if i % 2 else None) for i in range(21)]
    answers = dict(verbs.get_many(store, iter(requests)))
    assert answers == {i: (b"%d" % i)[: 1 if i % 2 else None] for i in range(20)} | {20: None}
    assert most > 5
    assert now == 0


def test_get_many_may_be_left(s3):
    url, options = s3
    store = FsspecStore.from_url(f"{url}/{next(_numbers)}", options)
    store.set("a", b"1")
    answers = verbs.get_many(store, (("a", None) for _ in itertools.count()))
    assert next(answers)[1] == b"1"
    answers.close()
    assert store.get("a") == b"1"


def test_invalid_key_among_many_is_refused(s3):
    url, options = s3
    store = FsspecStore.from_url(f"{url}/{next(_numbers)}", options)
    with pytest.raises(InvalidKeyError):
        list(verbs.get_many(store, [("a", None), ("../b", None)]))


def test_filesystem_that_is_not_known_to_bear_threads_is_called_by_one_at_a_time():
    inside, most = 0, 0

    class Foreign(fsspec.AbstractFileSystem):
        protocol = "foreign"
        cachable = False

        def cat_file(self, path, start=None, end=None, **_):
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            threading.Event().wait(0.002)
            inside -= 1
            return b"1"

    store = FsspecStore(Foreign(), "a")
    threads = [threading.Thread(target=lambda: [store.get("b") for _ in range(5)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (store.features.concurrency, most) == (1, 1)
    assert len(dict(verbs.get_many(FsspecStore(Foreign(), "a", concurrency=4), [("b", None)] * 20))) == 20
    assert 1 < most <= 8


def test_concurrency_of_nothing_is_refused():
    with pytest.raises(ValueError, match="concurrency"):
        FsspecStore(fsspec.filesystem("memory"), concurrency=0)


def test_array_is_read_and_written_through_s3fs(s3):
    url, options = s3
    at = f"fsspec+{url}/{next(_numbers)}/data.zarr"
    array = omnizarr.create_array(at, shape=(20, 30), chunks=(6, 7), dtype="i4", storage_options=options)
    expected = np.arange(600, dtype="i4").reshape(20, 30)
    array[:] = expected
    array[3:5, 2:20] = expected[3:5, 2:20] = -1
    np.testing.assert_array_equal(omnizarr.open_array(at, mode="r", storage_options=options)[:], expected)


# -- how filesystems come


def test_filesystem_made_for_coroutines_is_made_again_without(s3):
    url, options = s3
    fs = fsspec.filesystem("s3", asynchronous=True, **options)
    store = FsspecStore(fs, f"{url.removeprefix('s3://')}/{next(_numbers)}")
    store.set("a", b"1")
    assert store.get("a") == b"1"
    assert store.fs is fs


def test_directory_of_a_filesystem_is_the_filesystem_and_the_path():
    fs = MemoryFileSystem(global_store=False, skip_instance_cache=True)
    store = FsspecStore(DirFileSystem(path="/a", fs=fs), "b")
    store.set("c", b"1")
    assert fs.cat_file("/a/b/c") == b"1"
    assert store == FsspecStore(fs, "a/b")
    assert store.origin() == FsspecStore(fs, "/a/b/").origin()


def test_local_directory_has_the_origin_of_a_local_store(tmp_path):
    assert FsspecStore(fsspec.filesystem("file"), str(tmp_path)).origin() == LocalStore(tmp_path).origin()


def test_mapper_and_upath_mean_their_directory(tmp_path):
    upath = pytest.importorskip("upath", reason="universal_pathlib is not installed")
    fs = fsspec.filesystem("memory")
    assert FsspecStore.from_mapper(fs.get_mapper("/a/b")) == FsspecStore(fs, "a/b")
    assert FsspecStore.from_upath(upath.UPath("memory://a/b")) == FsspecStore(fs, "a/b")
    assert FsspecStore.from_upath(upath.UPath("memory://a/b"), read_only=True).read_only


@pytest.mark.parametrize("fs", [None, "memory", {}])
def test_what_is_no_filesystem_is_refused(fs):
    with pytest.raises(TypeError, match="not a filesystem"):
        FsspecStore(fs)


def test_package_that_fsspec_misses_is_named(monkeypatch):
    def miss(*_, **__):
        raise ImportError("Install paramiko to use SFTP")

    monkeypatch.setattr("fsspec.core.url_to_fs", miss)
    with pytest.raises(MissingDependencyError, match="paramiko"):
        FsspecStore.from_url("sftp://me:hidden@host/a")


def _in_child(store, answers):
    answers.put((store.get("a"), dict(verbs.get_many(store, [("a", None), ("b", None)]))))


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes are not forked here")
def test_store_serves_a_forked_process(s3):
    url, options = s3
    store = FsspecStore.from_url(f"{url}/{next(_numbers)}", options)
    store.set("a", b"1")
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_in_child, args=(store, answers))
    child.start()
    try:
        assert answers.get(timeout=60) == (b"1", {0: b"1", 1: None})
    finally:
        child.kill()
        child.join()


# -- errors and secrets


@pytest.mark.slow
def test_missing_bucket_is_an_error_and_not_a_missing_key(s3):
    _, options = s3
    store = FsspecStore.from_url("s3://there-is-no-such-bucket/a", options)
    with pytest.raises(StoreError, match="bucket") as caught:
        store.get("b")
    assert caught.value.key == "b"
    with pytest.raises(StoreError):
        list(store.list())


def test_wrong_credentials_are_an_access_error_that_does_not_show_them(s3):
    url, options = s3
    store = FsspecStore.from_url(f"{url}/a", {**options, "secret": "hidden-secret"})
    requests = [
        lambda: store.get("b"),
        lambda: store.set("b", b""),
        lambda: list(store.list()),
        lambda: store.delete("b"),
    ]
    for verb in requests:
        with pytest.raises(StoreAccessError) as caught:
            verb()
        assert "hidden-secret" not in "".join(traceback.format_exception(caught.value))
        assert caught.value.remedy


def test_secrets_are_in_no_representation(s3):
    url, options = s3
    store = FsspecStore.from_url(f"{url}/a", {**options, "secret": "hidden-secret"})
    for text in (repr(store), str(store.origin()), str(store.with_read_only())):
        assert "hidden-secret" not in text
        assert options["key"] not in text
    assert repr(store) == f"FsspecStore('{url}/a')"


def test_secrets_in_the_messages_of_a_filesystem_are_left_out():
    class Talkative(fsspec.AbstractFileSystem):
        protocol = "talkative"
        cachable = False

        def cat_file(self, path, **_):
            secret = self.storage_options["connection"]["password"]
            raise OSError(5, f"cannot read {path} as {secret} from https://me:{secret}@host/a?sig=abcdef")

    store = FsspecStore(Talkative(connection={"password": "hidden-secret"}), "a")
    with pytest.raises(StoreError, match="cannot read") as caught:
        store.get("b")
    shown = "".join(traceback.format_exception(caught.value))
    assert "hidden-secret" not in shown
    assert "abcdef" not in shown
    assert caught.value.errno == 5


def test_error_without_secrets_has_the_one_that_led_to_it(monkeypatch):
    fs = MemoryFileSystem(global_store=False, skip_instance_cache=True)
    error = OSError("plain")
    monkeypatch.setattr(fs, "cat_file", lambda *_, **__: (_ for _ in ()).throw(error))
    with pytest.raises(StoreError) as caught:
        FsspecStore(fs, "a").get("b")
    assert caught.value.__cause__ is error


# -- web servers


class _Pages(http.server.SimpleHTTPRequestHandler):
    """Index pages; parts of files are sent as a whole."""

    def do_GET(self):
        if "broken" in self.path:
            self.send_error(503)
        elif "closed" in self.path:
            self.send_error(403)
        else:
            self.server.asked.append(self.path)
            super().do_GET()

    def do_HEAD(self):
        if "broken" in self.path:
            self.send_error(503)
        else:
            super().do_HEAD()

    def log_message(self, *_):
        pass


@pytest.fixture
def pages(tmp_path):
    """Return a directory, and the address where its index pages are."""
    handler = functools.partial(_Pages, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.asked = []
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield tmp_path, f"http://127.0.0.1:{server.server_port}", server
        server.shutdown()
        thread.join()


@pytest.fixture
def web(pages):
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    directory, url, _ = pages
    local = LocalStore(directory / "data.zarr")
    verbs.set_many(local, ((f"x/{key}", key.encode()) for key in ODD_KEYS if key != "a"))
    local.set("zarr.json", b"0123456789")
    local.set("empty", b"")
    local.set("c/0/0", b"1")
    return local, FsspecStore.from_url(f"{url}/data.zarr")


def test_index_pages_are_listed(web):
    local, store = web
    assert sorted(store.list()) == sorted(local.list())
    assert sorted(store.list_prefix("x/")) == sorted(local.list_prefix("x/"))
    for prefix in ("", "c/", "x", "missing/"):
        assert store.list_dir(prefix) == local.list_dir(prefix)


def test_files_of_a_web_server_are_read(web):
    local, store = web
    for key in local.list():
        assert store.get(key) == local.get(key)
        assert store.size(key) == local.size(key)
    assert {n: v and bytes(v) for n, v in verbs.get_many(store, [("c/0/0", None), ("missing", None)])} == {
        0: b"1",
        1: None,
    }
    for key in ("c", "c/0", "missing", "zarr.json/a"):
        assert store.get(key) is None
        assert store.size(key) is None


@pytest.mark.parametrize("span", SPANS)
def test_part_of_a_file_is_right_though_the_server_knows_no_parts(web, span):
    _, store = web
    assert store.get("zarr.json", span) == b"0123456789"[slice(*span)]
    assert verbs.get_spans(store, "zarr.json", [span, (1, 2)]) == [b"0123456789"[slice(*span)], b"1"]
    assert store.get("empty", span) == b""
    assert store.get("missing", span) is None


@pytest.mark.parametrize("span", SPANS)
def test_part_of_a_file_is_right_where_the_server_knows_parts(http_server, span):
    place = http_server.fresh()
    verbs.set_many(LocalStore(place.directory), [("a b", b"0123456789"), ("empty", b"")])
    store = FsspecStore.from_url(place.url)
    assert store.get("a b", span) == b"0123456789"[slice(*span)]
    assert store.get("empty", span) == b""
    assert store.get("missing", span) is None


def test_web_server_is_not_written(web):
    _, store = web
    assert store.read_only
    with pytest.raises(ReadOnlyError):
        store.with_read_only(read_only=False)


def test_broken_web_server_is_an_error_and_not_a_missing_file(pages):
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    _, url, _ = pages
    store = FsspecStore.from_url(f"{url}/broken")
    for verb in (lambda: store.get("a"), lambda: store.size("a"), lambda: list(store.list())):
        with pytest.raises(StoreError, match="503"):
            verb()
    with pytest.raises(StoreAccessError):
        FsspecStore.from_url(f"{url}/closed").get("a")


def test_query_of_a_url_goes_with_each_request_and_is_not_shown(pages):
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    directory, url, server = pages
    LocalStore(directory / "a").set("b c", b"1")
    secret = f"hidden-{len(url)}"  # in no line of a traceback
    store = FsspecStore.from_url(f"{url}/a?signature={secret}")
    assert store.get("b c") == b"1"
    assert server.asked == [f"/a/b%20c?signature={secret}"]
    with pytest.raises(StoreError) as caught:
        FsspecStore.from_url(f"{url}/broken?signature={secret}").get("a")
    shown = "".join(traceback.format_exception(caught.value)) + repr(store) + str(store.origin())
    assert secret not in shown


def test_hierarchy_behind_index_pages_is_walked(pages):
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    directory, url, _ = pages
    root = omnizarr.create_group(directory / "data.zarr")
    root.create_array("a/b", shape=(4,), dtype="i2")[:] = [1, 2, 3, 4]
    found = omnizarr.open_group(f"fsspec+{url}/data.zarr", mode="r", use_consolidated=False)
    assert sorted(name for name, _ in found.members(max_depth=None)) == ["a", "a/b"]
    np.testing.assert_array_equal(found["a/b"][:], [1, 2, 3, 4])
