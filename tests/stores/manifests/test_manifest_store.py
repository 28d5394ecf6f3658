"""Files of other formats as stores: what their chunks hold, told by the arrays that were put into them."""

import asyncio
import itertools
import json
import os
import pickle
import time
import warnings

import numpy as np
import pytest

import omnizarr
from omnizarr import aio
from omnizarr.errors import InvalidKeyError, ReadOnlyError, StaleError, StoreError, StoreLimitError
from omnizarr.stores import LocalStore, MemoryStore, MetricsStore, PrefixStore, verbs
from omnizarr.stores.manifests import file as files
from omnizarr.stores.manifests.file import File
from omnizarr.stores.manifests.manifest import NOT_STORED, Manifest, strided
from omnizarr.stores.manifests.store import ManifestStore

VALUES = np.random.default_rng(0).integers(0, 50, (7, 10)).astype("i4")
ENGINES = ["reference", "native"]


def packed(path, values=VALUES, *, gap=7, chunks=(3, 4), missing=(), name="a", order=None, **keywords):
    """Write the chunks of an array into one file, in a shuffled order, and return documents and manifest."""
    source = omnizarr.create_array({}, shape=values.shape, chunks=chunks, dtype=values.dtype, **keywords)
    source[...] = values
    grid = source.cdata_shape
    numbers = list(range(int(np.prod(grid))))
    offsets, lengths = np.zeros(len(numbers), np.uint64), np.full(len(numbers), NOT_STORED, np.uint64)
    with path.open("ab") as file:
        file.write(b"header")
        for number in numbers if order is None else np.random.default_rng(order).permutation(numbers).tolist():
            coords = np.unravel_index(number, grid) if grid else ()
            if number in missing:
                continue
            value = source.store.get("/".join(map(str, ("c", *coords))))
            offsets[number], lengths[number] = file.tell(), len(value)
            file.write(bytes(value) + b"\xff" * gap)
    return {f"{name}/zarr.json": bytes(source.store.get("zarr.json"))}, Manifest(offsets, lengths), source


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.bin"


def opened(path, engine=None, **keywords):
    documents, manifest, _ = packed(path, **keywords)
    store = ManifestStore(documents, {"a": manifest}, [path])
    return store, omnizarr.open_array(store, path="a", config={"engine": engine} if engine else None)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("compressors", [None, "auto"])
@pytest.mark.parametrize("order", [None, 3])
def test_an_array_has_the_elements_that_were_put_into_the_file(path, engine, compressors, order):
    _, array = opened(path, engine, compressors=compressors, order=order)
    for selection in [..., (slice(2, 6), slice(1, 9, 3)), (3, slice(None)), (6, 9), (slice(None, None, -1), [1, 7, 1])]:
        assert np.array_equal(array[selection], VALUES[selection])


@pytest.mark.parametrize("engine", ENGINES)
def test_chunks_that_are_not_stored_read_as_the_fill_value(path, engine):
    _, array = opened(path, engine, missing=(0, 8), fill_value=-1)
    expected = VALUES.copy()
    expected[:3, :4] = expected[6:, 8:] = -1
    assert np.array_equal(array[...], expected)


def test_the_store_has_the_keys_and_values_of_the_array(path):
    documents, manifest, source = packed(path, missing=(4,), order=1)
    store = ManifestStore(documents, {"a": manifest}, [path])
    expected = {f"a/{key}": bytes(source.store.get(key)) for key in source.store.list() if key != "c/1/1"}
    assert {key: bytes(store.get(key)) for key in store.list()} == expected
    assert dict(verbs.list_sizes(store, "")) == {key: len(value) for key, value in expected.items()}
    assert store.features.listing == "complete"
    keys = [*expected, "a/c/1/1", "a/c/9/9", "a/c/0", "b", "a/c/00/0"]
    found = dict(verbs.get_many(store, [(key, None) for key in keys]))
    assert [found[at] and bytes(found[at]) for at in range(len(keys))] == [expected.get(key) for key in keys]
    for key in keys:
        value = expected.get(key)
        assert store.exists(key) == (value is not None)
        assert store.size(key) == (None if value is None else len(value))
        if value is not None:
            for span in [(2, 5), (-3, None), (4, None), (10**6, None)]:
                start, stop = slice(*span).indices(len(value))[:2]
                assert bytes(store.get(key, span)) == value[start:stop]
            assert [*map(bytes, verbs.get_spans(store, key, [(1, 3), (-2, None)]))] == [value[1:3], value[-2:]]
            out = bytearray(8)
            assert verbs.read_into(store, key, memoryview(out), 3) == max(0, len(value) - 3)
            assert bytes(out).startswith(value[3:11])
            with pytest.raises(StoreLimitError):
                verbs.get_within(store, key, len(value) - 1)
    assert store.list_dir("") == ([], ["a/"])
    assert store.list_dir("a/") == (["a/zarr.json"], ["a/c/"])
    assert store.list_dir("a/c/") == ([], ["a/c/0/", "a/c/1/", "a/c/2/"])
    assert store.list_dir("a/c/1/").keys == ["a/c/1/0", "a/c/1/2"]
    assert sorted(store.list_prefix("a/c/2/")) == ["a/c/2/0", "a/c/2/1", "a/c/2/2"]


def test_it_is_read_only(path):
    store, array = opened(path)
    for change in (
        lambda: store.set("a/c/0/0", b""),
        lambda: store.delete("a/c/0/0"),
        lambda: store.with_read_only(False),
    ):
        with pytest.raises(ReadOnlyError, match="other formats can only be read"):
            change()
    with pytest.raises(ReadOnlyError):
        array[0] = 1
    with pytest.raises(InvalidKeyError):
        store.get("a/../b")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_copy_in_another_process_reads_the_same(path, engine):
    _, array = opened(path, engine)
    again = pickle.loads(pickle.dumps(array))
    assert np.array_equal(again[...], VALUES)


def test_an_index_is_read_when_it_is_first_needed(path):
    documents, manifest, _ = packed(path)
    documents["zarr.json"] = b'{"zarr_format": 3, "node_type": "group"}'
    asked = []
    store = ManifestStore(documents, {"a": lambda: asked.append(1) or manifest}, [path])
    array = omnizarr.open_group(store)["a"]
    assert array.shape == VALUES.shape
    assert not asked
    assert np.array_equal(array[...], VALUES)
    assert np.array_equal(array[...], VALUES)
    assert asked == [1]


def test_chunks_that_the_reader_made_are_documents(path):
    documents, manifest, source = packed(path)
    documents["b/zarr.json"] = documents["a/zarr.json"]
    documents |= {f"b/{key}": bytes(source.store.get(key)) for key in source.store.list() if key.startswith("c/")}
    root = omnizarr.open_group(ManifestStore(documents, {"a": manifest}, [path]))
    assert np.array_equal(root["b"][...], root["a"][...])


# -- files ---------------------------------------------------------------------------


def touched(path):
    """Change the time of the last change, as any change in place does."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10_000_000))


def other_bytes(path):
    data = bytearray(path.read_bytes())
    data[100:120] = b"\1" * 20
    path.write_bytes(data)
    touched(path)


def replaced(path):
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes() + b"more")
    other.replace(path)


def replaced_by_one_like_it(path):
    """Put another file in its place, of the same size and with the same time of its last change."""
    status, other = path.stat(), path.with_suffix(".new")
    other.write_bytes(path.read_bytes()[:-1] + b"\1")
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)


def rewritten_without_a_trace(path):
    """Change bytes in place, after the tick of the clock, and set the time back, as tools that keep times do."""
    status = path.stat()
    time.sleep(max(0, 0.05 - (time.time() - status.st_ctime)))
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("age", [0, 0.2])
def test_a_file_that_was_replaced_at_once_is_seen(path, age, engine):
    for number in range(5):
        array = opened(path, engine, compressors=None)[1]
        time.sleep(age)
        assert array[0, 0] == VALUES[0, 0]
        replaced_by_one_like_it(path)
        with pytest.raises(StaleError, match="has changed since it was opened"):
            array[number, 0]
        path.unlink()


def test_a_file_with_another_number_is_the_same_if_a_new_one_would_have_other_times(path, monkeypatch):
    """Some file systems give a file another number from time to time, and so do other machines."""
    store, array = opened(path, "reference", compressors=None)
    (file,) = store._files
    times = file.marker[:2]
    assert file.marker[2] == path.stat().st_ino
    file.marker = (*times, file.marker[2] + 1)
    with pytest.raises(StaleError, match="number"):
        array[...]
    monkeypatch.setattr(files.time, "time_ns", lambda: max(times) + 10**9)
    assert File.at(path).marker == (*times, 0)
    file.marker = File.at(path).marker
    assert np.array_equal(array[...], VALUES)


@pytest.mark.parametrize("change", [touched, other_bytes, replaced, replaced_by_one_like_it, rewritten_without_a_trace])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("compressors", [None, "auto"])
def test_a_file_that_changed_is_an_error(path, engine, change, compressors):
    _, array = opened(path, engine, compressors=compressors)
    assert np.array_equal(array[...], VALUES)
    change(path)
    for selection in [..., (0, 0), (slice(1, 5), 3)]:
        with pytest.raises(StaleError, match=r"a\.bin has changed since it was opened.*open it again"):
            array[selection]
    with pytest.raises(StaleError):
        pickle.loads(pickle.dumps(array))[...]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_that_is_gone_is_an_error_and_no_fill_value(path, engine):
    _, array = opened(path, engine)
    path.unlink()
    with pytest.raises(StoreError, match=r"a\.bin does not exist"):
        array[...]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("compressors", [None, "auto"])
def test_a_file_that_ends_before_its_chunks_is_an_error_and_no_fill_value(path, engine, compressors):
    documents, manifest, _ = packed(path, compressors=compressors)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(manifest.offsets[4]) + 3])
    array = omnizarr.open_array(ManifestStore(documents, {"a": manifest}, [path]), path="a", config={"engine": engine})
    assert np.array_equal(array[:3], VALUES[:3])
    with pytest.raises(StoreError, match=r"a\.bin ends before its data do.*at least"):
        array[...]


def test_a_value_in_a_store_that_changed_is_an_error(path):
    documents, manifest, _ = packed(path)
    values = {"folder/a.bin": path.read_bytes()}
    array = omnizarr.open_array(
        ManifestStore(documents, {"a": manifest}, [File.of(MemoryStore(values), "folder/a.bin")]), path="a"
    )
    assert np.array_equal(array[...], VALUES)
    values["folder/a.bin"] = bytes(bytearray(values["folder/a.bin"]))
    with pytest.raises(StaleError, match=r"folder/a\.bin has changed"):
        array[...]


def test_a_missing_file_cannot_be_opened(tmp_path):
    with pytest.raises(StoreError, match=r"none\.bin does not exist"):
        File.at(tmp_path / "none.bin")
    with pytest.raises(StoreError, match=r"none\.bin does not exist"):
        File.of(MemoryStore({}), "none.bin")


def test_chunks_may_be_in_several_files(tmp_path):
    documents, manifest, _ = packed(tmp_path / "a.bin")
    data = (tmp_path / "a.bin").read_bytes()
    (tmp_path / "b.bin").write_bytes(b"..." + data)
    files = np.arange(9, dtype=np.uint32) % 2
    moved = Manifest(manifest.offsets + 3 * files, manifest.lengths, files)
    store = ManifestStore(documents, {"a": moved}, [tmp_path / "a.bin", tmp_path / "b.bin"])
    for engine in ENGINES:
        assert np.array_equal(omnizarr.open_array(store, path="a", config={"engine": engine})[...], VALUES)
    touched(tmp_path / "b.bin")
    with pytest.raises(StaleError, match=r"b\.bin"):
        omnizarr.open_array(store, path="a")[...]
    with pytest.raises(StoreError, match="names an unknown file"):
        omnizarr.open_array(ManifestStore(documents, {"a": moved}, [tmp_path / "a.bin"]), path="a")[...]


def test_a_loader_may_add_files(tmp_path):
    documents, manifest, _ = packed(tmp_path / "a.bin")
    files = []

    def load():
        files.append(File.at(tmp_path / "a.bin"))
        return manifest

    assert np.array_equal(omnizarr.open_array(ManifestStore(documents, {"a": load}, files), path="a")[...], VALUES)


def test_a_manifest_of_another_array_is_an_error(path):
    documents, manifest, _ = packed(path)
    other = Manifest(manifest.offsets[:-1], manifest.lengths[:-1])
    with pytest.raises(StoreError, match=r"a manifest does not fit its array: found 8 chunks, expected 9"):
        omnizarr.open_array(ManifestStore(documents, {"a": other}, [path]), path="a")[...]
    with pytest.raises(StoreError, match="no document of an array"):
        ManifestStore({}, {"a": manifest}, [path]).get("a/c/0/0")


def test_neighbours_are_fetched_together(path):
    documents, manifest, source = packed(path, compressors=None)
    metrics = MetricsStore(LocalStore(path.parent))
    store = ManifestStore(documents, {"a": manifest}, [File.of(metrics, "a.bin")])
    before = metrics.report().total.requests
    keys = [f"c/{row}/{column}" for row, column in itertools.product(range(3), range(3))]
    found = dict(verbs.get_many(store, [(f"a/{key}", None) for key in keys]))
    assert [bytes(found[at]) for at in range(9)] == [bytes(source.store.get(key)) for key in keys]
    spans = metrics.report().verbs["get_spans"]
    assert spans.requests == 1
    assert metrics.report().total.requests - before <= 2  # the second asks for the stamp


# -- codecs that chunks skip ------------------------------------------------------------

CODECS = [{"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}}]
COMPRESSORS = [
    {"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}},
    {"name": "zstd", "configuration": {"level": 3}},
    {"name": "crc32c"},
]


def skipping(path, masks):
    """Return documents and manifest of an array whose chunks skip codecs, each other ones."""
    documents, _, source = packed(path, filters=CODECS, compressors=COMPRESSORS)
    document = json.loads(documents["a/zarr.json"])
    document["shape"], document["chunk_grid"]["configuration"]["chunk_shape"] = [3, 4], [3, 4]
    offsets, lengths, used = [], [], []
    with path.open("ab") as file:
        for number, mask in enumerate(masks):
            codecs = [dict(each) for each in document["codecs"]]
            serializer = codecs.pop(1)
            kept = [codec for bit, codec in enumerate(codecs) if not mask >> bit & 1]
            at = 1 if kept and kept[0]["name"] == "numcodecs.delta" else 0
            plain = {**document, "codecs": [*kept[:at], serializer, *kept[at:]], "attributes": {}}
            one = omnizarr.open_array(MemoryStore({"zarr.json": json.dumps(plain).encode()}), mode="r+")
            rows, columns = divmod(number, 3)
            block = np.zeros((3, 4), "i4")
            part = VALUES[3 * rows : 3 * rows + 3, 4 * columns : 4 * columns + 4]
            block[: part.shape[0], : part.shape[1]] = part
            one[...] = block
            value = bytes(one.store.get("c/0/0"))
            offsets.append(file.tell())
            lengths.append(len(value))
            used.append(mask)
            file.write(value)
    return documents, Manifest(offsets, lengths, None, used), source


@pytest.mark.parametrize("engine", ENGINES)
def test_chunks_skip_codecs_one_by_one(path, engine):
    documents, manifest, source = skipping(path, [0, 1, 2, 4, 8, 15, 5, 10, 0])
    store = ManifestStore(documents, {"a": manifest}, [path])
    array = omnizarr.open_array(store, path="a", config={"engine": engine})
    assert np.array_equal(array[...], VALUES)
    assert np.array_equal(array[2:5, 3:9], VALUES[2:5, 3:9])
    for key in source.store.list():
        if key.startswith("c/"):
            assert bytes(store.get(f"a/{key}")) == bytes(source.store.get(key))
            assert store.size(f"a/{key}") == source.store.size(key)
            assert bytes(store.get(f"a/{key}", (3, 7))) == bytes(source.store.get(key))[3:7]


def test_other_libraries_read_chunks_that_skip_codecs(path):
    zarr = pytest.importorskip("zarr", reason="zarr-python is the other library")
    documents, manifest, _ = skipping(path, [4] * 9)
    store = ManifestStore(documents, {"a": manifest}, [path])
    for key in store.list():
        target = path.parent / "copy" / key
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(store.get(key))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Numcodecs codecs are not in the Zarr version 3")
        array = zarr.open_array(path.parent / "copy" / "a", mode="r")
    assert np.array_equal(array[...], VALUES)


# -- data that is not divided into chunks ------------------------------------------------


def test_records_in_turns_are_read_like_any_array(path, monkeypatch):
    record = np.dtype([("time", ">f8"), ("grid", ">f4", (5, 6)), ("flag", "u1", (3,))])
    values = np.zeros(23, record)
    random = np.random.default_rng(1)
    values["time"] = np.arange(23)
    values["grid"] = random.random((23, 5, 6))
    values["flag"] = random.integers(0, 200, (23, 3))
    path.write_bytes(b"1234567" + values.tobytes())
    monkeypatch.setattr("omnizarr.stores.manifests.manifest._MOST_BYTES", 500)
    documents, manifests = {"zarr.json": b'{"zarr_format": 3, "node_type": "group"}'}, {}
    for name in record.names:
        dtype, at = record.fields[name]
        chunks, manifests[name] = strided(values[name].shape, dtype.base.itemsize, 7 + at, record.itemsize)
        target = omnizarr.create_array({}, shape=values[name].shape, chunks=chunks, dtype=dtype.base, compressors=None)
        documents[f"{name}/zarr.json"] = target.store.get("zarr.json")
    store = ManifestStore(documents, manifests, [path])
    assert manifests["time"].find(0).parts > 1
    for engine, name in itertools.product(ENGINES, record.names):
        array = omnizarr.open_array(store, path=name, config={"engine": engine})
        assert np.array_equal(array[...], values[name]), (engine, name)
        assert np.array_equal(array[3:20:4], values[name][3:20:4]), (engine, name)
        assert np.array_equal(array[22], values[name][22]), (engine, name)
    copy = {key: bytes(store.get(key)) for key in store.list()}
    for name in record.names:
        assert np.array_equal(omnizarr.open_array(copy, path=name)[...], values[name])
    assert dict(verbs.list_sizes(store, "")) == {key: len(value) for key, value in copy.items()}


# -- other doors --------------------------------------------------------------------------


def test_it_is_read_through_other_stores_and_in_event_loops(path):
    store, _ = opened(path)
    assert np.array_equal(omnizarr.open_array(PrefixStore(store, "a"))[...], VALUES)
    assert np.array_equal(omnizarr.open_array(MetricsStore(store), path="a")[...], VALUES)

    async def read():
        array = await aio.open_array(store, path="a")
        return await array.getitem(...)

    assert np.array_equal(asyncio.run(read()), VALUES)
    target = {}
    omnizarr.convert(store, target)
    assert np.array_equal(omnizarr.open_array(target, path="a")[...], VALUES)
