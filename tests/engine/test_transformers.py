"""`omnizarr.engine.transformers`: what stands between an array and its store."""

import json
import pickle
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import omnizarr
from omnizarr.engine import transformers
from omnizarr.engine.transformers import StorageTransformer, apply, parse, register
from omnizarr.errors import (
    MissingDependencyError,
    NotRepresentableError,
    UnknownStorageTransformerError,
)
from omnizarr.model import Named, plugins
from omnizarr.stores import CacheStore, LocalStore, MemoryStore
from omnizarr.tools.describe import describe
from tests.fakes import FaultyStore
from tests.stores.contract import StoreContract


class Xor(StorageTransformer):
    """Changes each byte."""

    def __init__(self, store, prefix, mask=0x55):
        super().__init__(store, prefix)
        self.mask = mask

    def encode(self, value):
        return (np.frombuffer(value, "u1") ^ self.mask).tobytes()

    decode = encode


class Buckets(StorageTransformer):
    """Puts keys into buckets: ``c/0/1`` becomes ``b7/c/0/1``."""

    def stored_key(self, key):
        return f"b{sum(key.encode()) % 8}/{key}"

    def key_of(self, stored_key):
        bucket, _, key = stored_key.partition("/")
        return key if bucket[:1] == "b" and key else None


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(transformers.PLUGINS, "_registered", {})
    register("test.xor", lambda configuration, store, prefix: Xor(store, prefix, configuration.get("mask", 0x55)))
    register("test.buckets", lambda _, store, prefix: Buckets(store, prefix))


class TestXor(StoreContract):
    @pytest.fixture
    def store(self):
        return Xor(MemoryStore(), "")


class TestBucketsOnFiles(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return Buckets(LocalStore(tmp_path), "")

    def test_lock_leaves_nothing_behind(self, store):
        with store.lock("a/b/c"):
            pass
        assert list(store.list()) == []


class TestStackBelowAPrefix(StoreContract):
    @pytest.fixture
    def store(self):
        return Xor(Buckets(MemoryStore(), "a/"), "a/")


BOTH = [{"name": "test.xor", "configuration": {"mask": 3}}, "test.buckets"]


@pytest.fixture(params=["memory", "files"])
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else LocalStore(tmp_path)


def test_document_lists_them_in_order():
    values = {}
    omnizarr.create_array(values, shape=4, dtype="u1", storage_transformers=BOTH)
    listed = json.loads(values["zarr.json"])["storage_transformers"]
    assert listed[0] == {"name": "test.xor", "configuration": {"mask": 3}}
    assert listed[1] == {"name": "test.buckets"}


def test_what_is_stored_is_what_they_make_of_it():
    values = {}
    array = omnizarr.create_array(
        values, name="a", shape=4, chunks=2, dtype="u1", compressors=None, storage_transformers=BOTH
    )
    array[...] = [0, 1, 2, 3]
    chunks = {key: bytes(value) for key, value in values.items() if "/c/" in key}
    assert chunks == {
        f"a/b{sum(b'c/0') % 8}/c/0": bytes([0 ^ 3, 1 ^ 3]),
        f"a/b{sum(b'c/1') % 8}/c/1": bytes([2 ^ 3, 3 ^ 3]),
    }


@pytest.mark.parametrize("shards", [None, (6, 4)], ids=["chunks", "shards"])
@pytest.mark.parametrize("listed", [BOTH, BOTH[::-1]], ids=["xor first", "buckets first"])
def test_array_reads_writes_grows_and_shrinks(store, shards, listed):
    data = np.arange(54, dtype="i2").reshape(9, 6)
    how = {"data": data, "chunks": (3, 2), "shards": shards, "fill_value": -1}
    omnizarr.create_array(store, name="a", **how, storage_transformers=listed)
    array, plain = omnizarr.open_array(store, path="a"), omnizarr.create_array({}, **how)
    assert (array[...] == data).all()
    assert (array[2:5, ::2] == data[2:5, ::2]).all()
    data = np.concatenate([data, data])
    for each in (array, plain):
        each[4, 1:4] = 0
        each.append(data[9:])
    data[4, 1:4] = 0
    assert (omnizarr.open_array(store, path="a")[...] == data).all()
    assert array.nchunks_initialized == plain.nchunks_initialized
    for each in (array, plain):
        each.resize((4, 6))
    assert array.nchunks_initialized == plain.nchunks_initialized
    array.resize((9, 6))
    assert (array[...] == np.concatenate([data[:4], np.full((5, 6), -1)])).all()
    array[...] = -1
    assert array.nchunks_initialized == 0
    assert [key for key in store.list() if not key.endswith("zarr.json")] == []


def test_array_is_copied(store):
    data = np.arange(12)
    root = omnizarr.create_group(store)
    source = root.create_array("a", data=data, chunks=5, storage_transformers=BOTH)
    omnizarr.copy(source, root, "b")
    assert (root["b"][...] == data).all()
    assert root["b"].metadata.storage_transformers == source.metadata.storage_transformers
    plain = omnizarr.create_group({}, zarr_format=2)
    omnizarr.copy(source, plain, "c")
    assert (plain["c"][...] == data).all()
    like = omnizarr.empty_like(source, store=store, path="d")
    assert like.metadata.storage_transformers == source.metadata.storage_transformers


def test_array_is_described_and_checked(store):
    array = omnizarr.create_array(store, data=np.arange(12), chunks=5, storage_transformers=BOTH)
    facts = describe(array)
    assert (facts.stored, facts.expected, facts.problem) == (3, 3, None)
    report = omnizarr.check(store, data=True)
    assert {finding.code for finding in report.findings} <= {"unregistered-extension"}
    key = next(key for key in store.list() if "/c/" in key)
    store.set(key, b"no chunk")
    assert [finding.severity for finding in omnizarr.check(store, data=True).findings].count("error") == 1


def test_converting_says_that_they_are_in_the_way():
    values = {}
    omnizarr.create_array(values, data=np.arange(12), chunks=5, storage_transformers=["test.xor"])
    target = {}
    report = omnizarr.convert(values, target, zarr_format=2)
    assert "test.xor" in str(report)
    assert "left out" in str(report)
    assert target == {}


def test_binding_is_pickled_with_the_store_that_is_below():
    array = omnizarr.create_array({}, data=np.arange(12), chunks=5, storage_transformers=BOTH)
    array[0]
    copy = pickle.loads(pickle.dumps(array))
    copy[3:5] = 0
    assert copy[...].tolist() == [0, 1, 2, 0, 0, *range(5, 12)]


def test_chunks_decoded_once_are_used_again():
    values = MemoryStore()
    omnizarr.create_array(values, data=np.arange(12), chunks=5, storage_transformers=["test.xor"])
    below = FaultyStore(values)
    array = omnizarr.open_array(below, config={"chunk_cache": 10_000})
    array[...]
    below.reset()
    assert (array[...] == np.arange(12)).all()
    assert below.bytes_read == 0
    values.set("c/0", values.get("c/1"))
    assert array[:5].tolist() == [5, 6, 7, 8, 9]


@pytest.mark.parametrize("document", [{"name": "unknown"}, "unknown"], ids=["object", "name"])
def test_unknown_transformer_is_refused_when_chunks_are_touched(document):
    values = {}
    omnizarr.create_array(values, shape=4, dtype="u1")
    said = json.loads(values["zarr.json"])
    values["zarr.json"] = json.dumps({**said, "storage_transformers": [{"name": "test.xor"}, document]}).encode()
    array = omnizarr.open_array(values)
    with pytest.raises(UnknownStorageTransformerError) as caught:
        array[...]
    assert (caught.value.pointer, caught.value.found) == ("/storage_transformers/1", "unknown")


def test_unknown_transformer_that_need_not_be_understood_is_ignored():
    store = MemoryStore()
    named = [Named("unknown", {}, must_understand=False)]
    assert apply(named, store, "") is store
    assert type(apply([*named, Named("test.xor")], store, "")) is Xor


def test_unknown_transformer_is_not_created():
    with pytest.raises(UnknownStorageTransformerError):
        omnizarr.create_array({}, shape=4, dtype="u1", storage_transformers=["unknown"])


def test_format_without_them_refuses_them():
    with pytest.raises(NotRepresentableError):
        omnizarr.create_array({}, shape=4, dtype="u1", zarr_format=2, storage_transformers=["test.xor"])


@pytest.mark.parametrize("given", [3, {}, {"name": 3}, None], ids=["number", "empty", "name", "None"])
def test_what_is_no_transformer_is_refused(given):
    with pytest.raises(TypeError, match="storage transformer"):
        parse([given])


def test_entry_points_offer_transformers(monkeypatch):
    points = {
        "offered": EntryPoint("offered", f"{__name__}:Buckets", transformers.PLUGINS.group),
        "broken": EntryPoint("broken", "no_such_module:bind", transformers.PLUGINS.group),
    }
    monkeypatch.setattr(plugins, "entry_points", lambda group: points if group == transformers.PLUGINS.group else {})
    assert transformers.find("offered") is Buckets
    assert transformers.find("other") is None
    with pytest.raises(MissingDependencyError, match="no_such_module"):
        transformers.find("broken")


@pytest.mark.parametrize("open_", [omnizarr.open, omnizarr.open_array], ids=["open", "open_array"])
def test_transformer_given_at_run_time_is_not_in_the_document(open_):
    register("test.cache", lambda configuration, store, _: CacheStore(store, **configuration))
    store = MemoryStore()
    omnizarr.create_array(store, data=np.arange(12), chunks=5)
    below = FaultyStore(store)
    array = open_(
        below, storage_transformers=[{"name": "test.cache", "configuration": {"max_age_seconds": "infinity"}}]
    )
    assert array[...].sum() == 66
    below.reset()
    assert array[...].sum() == 66
    assert below.requests == {}
    array[3] = 0
    assert array[...].sum() == 63
    assert omnizarr.open_array(store)[...].sum() == 63
    assert "storage_transformers" not in json.loads(bytes(store.get("zarr.json")))
