"""Chunks in files of other formats behind servers, which the native engine fetches itself: near ones together."""

from __future__ import annotations

import asyncio
import pickle
from functools import partial

import numpy as np
import pytest

import omnizarr
from omnizarr import aio, engine
from omnizarr.errors import ChunkNotFoundError, StaleError, StoreError
from omnizarr.stores import MetricsStore, ObjectStore
from omnizarr.stores.manifests.file import File
from omnizarr.stores.manifests.manifest import NOT_STORED, Manifest, strided
from omnizarr.stores.manifests.store import ManifestStore
from tests.engine.remote import GZIP, VALUES, ZSTD, failure, needs_remote, respond
from tests.stores.recording import FAST, recording

pytest.importorskip("obstore.store", reason="the extra cloud is not installed")

pytestmark = needs_remote

GROUP = {"zarr.json": b'{"zarr_format": 3, "node_type": "group"}'}
LAYOUTS = {
    "raw": {"compressors": None},
    "zstd": {"compressors": ZSTD},
    "two compressors": {"compressors": [GZIP, {"name": "crc32c"}]},
    "transposed": {"compressors": ZSTD, "filters": [{"name": "transpose", "configuration": {"order": [1, 0]}}]},
    "large and raw": {"compressors": None, "chunks": (100, 90), "dtype": "f8"},
    "big-endian": {"compressors": None, "dtype": ">i8"},
    "shards": {"compressors": ZSTD, "shards": (32, 32)},
    "v2": {"zarr_format": 2},
}
SELECTIONS = {
    "all": ...,
    "window": (slice(5, 40), slice(20, 70)),
    "one": (17, 33),
    "steps": (slice(None, None, 7), slice(80, 3, -5)),
    "column": (slice(None), 4),
    "points": ([3, 99, 3, 50], [0, 89, 1, 50]),
    "nothing": (slice(5, 5), slice(None)),
}


def select(values, name):
    chosen = SELECTIONS[name]
    return values.vindex[chosen] if name == "points" and isinstance(values, omnizarr.Array) else values[chosen]


@pytest.fixture
def server():
    with recording() as server:
        yield server


def put(server, values=VALUES, *, gap=7, order=None, missing=(), files=("x.bin",), **how):
    """Serve the chunks of an array in files, perhaps in a shuffled order; return documents and manifest."""
    source = omnizarr.create_array({}, shape=values.shape, fill_value=7, **{"chunks": (16, 16), "dtype": "i4", **how})
    source[...] = values
    binding = source._bind().binding
    grid = binding.grid.grid_shape
    count = int(np.prod(grid))
    offsets, lengths, numbers = np.zeros(count, "u8"), np.full(count, NOT_STORED, "u8"), np.zeros(count, "u4")
    contents = [bytearray(b"header") for _ in files]
    for number in range(count) if order is None else np.random.default_rng(order).permutation(count).tolist():
        value = source.store.get(binding.key_of(tuple(map(int, np.unravel_index(number, grid)))))
        if number in missing:
            continue
        content = contents[number % len(files)]
        numbers[number], offsets[number], lengths[number] = number % len(files), len(content), len(value)
        content += bytes(value) + b"\xff" * gap
    server.values.update({f"/data/{name}": bytes(content) for name, content in zip(files, contents, strict=True)})
    names = [key for key in source.store.list() if key in {".zarray", ".zattrs", "zarr.json"}]
    return {key: bytes(source.store.get(key)) for key in names}, Manifest(offsets, lengths, numbers)


def store_of(server, documents, manifest, files=("x.bin",), options=FAST):
    below = ObjectStore.from_url(server.url("/data"), options, read_only=True)
    store = ManifestStore(documents, {"": manifest}, [File.of(below, name) for name in files])
    for file in store.files:
        file.read([(0, 4)])  # as a reader does, which finds the index there
    return store


def by(fetch, store, **config):
    """Open the array of a store whose chunks are fetched natively, or by way of Python."""
    with omnizarr.config.set({"fetch": fetch}):
        array = omnizarr.open_array(store, mode="r", config=config)
        assert engine.is_remote(array._bind().binding) == (fetch == "native")
        return array


def opened(server, fetch="native", **how):
    return by(fetch, store_of(server, *put(server, **how), files=how.get("files", ("x.bin",))))


@pytest.mark.parametrize("order", [None, 3])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_selection_of_every_layout_is_the_same(server, layout, order):
    array = opened(server, order=order, **LAYOUTS[layout])
    for name in SELECTIONS:
        np.testing.assert_array_equal(select(array, name), select(VALUES, name))
    assert array[...].dtype == array.dtype


def test_chunks_that_are_not_stored_read_as_the_fill_value(server):
    how = put(server, missing=(0, 8))
    expected = VALUES.copy()
    expected[:16, :16] = expected[16:32, 32:48] = 7
    array = by("native", store_of(server, *how))
    np.testing.assert_array_equal(array[...], expected)
    assert array[0, 0] == 7
    for fetch in ("native", "python"):
        strict = by(fetch, store_of(server, *how), read_missing_chunks=False)
        assert failure(lambda strict=strict: strict[0, 0])[0] is ChunkNotFoundError


def test_chunks_may_be_in_several_files(server):
    names = ("x.bin", "y.bin", "z.bin")
    np.testing.assert_array_equal(opened(server, files=names, order=1)[...], VALUES)


def test_records_in_turns_are_read_like_any_array(server, monkeypatch):
    record = np.dtype([("time", ">f8"), ("grid", ">f4", (5, 6)), ("flag", "u1", (3,))])
    values, random = np.zeros(23, record), np.random.default_rng(1)
    values["time"], values["grid"] = np.arange(23), random.random((23, 5, 6))
    values["flag"] = random.integers(0, 200, (23, 3))
    server.values["/data/x.bin"] = b"1234567" + values.tobytes()
    monkeypatch.setattr("omnizarr.stores.manifests.manifest._MOST_BYTES", 500)
    for name in record.names:
        dtype, at = record.fields[name]
        chunks, manifest = strided(values[name].shape, dtype.base.itemsize, 7 + at, record.itemsize)
        target = omnizarr.create_array({}, shape=values[name].shape, chunks=chunks, dtype=dtype.base, compressors=None)
        array = by("native", store_of(server, {"zarr.json": target.store.get("zarr.json")}, manifest))
        server.requests()
        for chosen in (..., slice(3, 20, 4), 22):
            np.testing.assert_array_equal(array[chosen], values[name][chosen])
        assert len(server.requests()) == 3


def test_chunks_skip_codecs(server):
    filters = [{"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}}]
    documents, manifest = put(server, filters=filters, compressors=[ZSTD, {"name": "crc32c"}], order=2)
    raw, plain = put(server, filters=filters, compressors=None), bytearray()
    content, masks = server.values["/data/x.bin"], np.zeros(len(manifest), "u4")
    documents, manifest = put(server, filters=filters, compressors=[ZSTD, {"name": "crc32c"}], order=2)
    plain += server.values["/data/x.bin"]
    offsets, lengths = manifest.offsets.copy(), manifest.lengths.copy()
    for number in range(0, len(manifest), 3):
        start, size = int(raw[1].offsets[number]), int(raw[1].lengths[number])
        offsets[number], lengths[number], masks[number] = len(plain), size, 0b110
        plain += content[start : start + size]
    server.values["/data/x.bin"] = bytes(plain)
    array = by("native", store_of(server, documents, Manifest(offsets, lengths, None, masks)))
    np.testing.assert_array_equal(array[...], VALUES)
    np.testing.assert_array_equal(array[5:40, 20:70], VALUES[5:40, 20:70])


# -- requests -------------------------------------------------------------------------------


def asked(server):
    """Return the ranges that were requested since the last time, sorted."""
    ranges = [headers["range"].removeprefix("bytes=").split("-") for _, _, headers in server.requests()]
    return sorted((int(first), int(last) + 1) for first, last in ranges)


NOISE = np.random.default_rng(0).integers(0, 2**32, 2048 * 4096, "u4")  # 32 MiB that cannot be compressed


def test_neighbouring_small_chunks_take_few_requests(server):
    array = opened(server, values=NOISE, chunks=(4096,), dtype="u4", compressors=None, gap=0)
    server.requests()
    assert np.array_equal(array[...], NOISE)
    assert len(asked(server)) == 16
    assert np.array_equal(array[1000 : 4096 * 100], NOISE[1000 : 4096 * 100])
    assert len(asked(server)) == 1


def test_chunks_in_another_order_take_as_few_requests(server):
    values = NOISE[: 512 * 4096]
    array = opened(server, values=values, chunks=(4096,), dtype="u4", compressors=None, order=1)
    server.requests()
    assert np.array_equal(array[...], values)
    assert len(asked(server)) == 5  # 8 MiB, and what lies between


def test_chunks_are_fetched_together_within_the_bytes_in_flight(server):
    values = NOISE[: 256 * 4096]
    how = put(server, values=values, chunks=(4096,), dtype="u4", compressors=None, gap=0)
    array = by("native", store_of(server, *how), bytes_in_flight=2**19)
    server.requests()
    assert np.array_equal(array[...], values)
    assert {stop - start for start, stop in asked(server)} == {2**17}


def test_a_part_of_a_raw_chunk_is_fetched_alone(server):
    values = NOISE[: 2**20].reshape(1024, 1024)
    array = opened(server, values=values, chunks=(1024, 1024), dtype="u4", compressors=None)
    server.requests()
    assert np.array_equal(array[100:108], values[100:108])
    assert asked(server) == [(6 + 100 * 4096, 6 + 108 * 4096)]
    assert array[1000, 1000] == values[1000, 1000]
    assert asked(server) == [(6 + 4 * (1000 * 1024 + 1000), 6 + 4 * (1000 * 1024 + 1001))]


def test_chunks_far_apart_are_fetched_alone(server):
    values = NOISE[: 16 * 2**16].reshape(4, 4, 2**16)
    array = opened(server, values=values, chunks=(1, 1, 2**16), dtype="u4", compressors=None)
    server.requests()
    assert np.array_equal(array[:, 2], values[:, 2])
    assert [stop - start for start, stop in asked(server)] == [2**18] * 4


def test_a_copy_asks_once_which_version_there_is(server):
    array = opened(server)
    again = pickle.loads(pickle.dumps(array))
    server.requests()
    np.testing.assert_array_equal(again[...], VALUES)
    assert len(server.requests()) <= 4
    np.testing.assert_array_equal(again[...], VALUES)
    assert len(server.requests()) == 1


def test_several_arrays_of_a_file_are_read_at_once(server):
    documents, manifest = put(server)
    other, second = dict(documents), Manifest(manifest.offsets[::-1], manifest.lengths[::-1])
    store = ManifestStore(
        {**GROUP, **{f"{name}/zarr.json": each["zarr.json"] for name, each in (("a", documents), ("b", other))}},
        {"a": manifest, "b": second},
        store_of(server, documents, manifest).files,
    )
    with omnizarr.config.set({"fetch": "native"}):
        one, two = omnizarr.open_array(store, path="a"), omnizarr.open_array(store, path="b")
        expected = two[...]
        assert not np.array_equal(expected, VALUES)
        server.requests()
        got = omnizarr.read_many([(one, ...), (two, ...), (one, (17, 33)), (two, (slice(3), 5))])
        for values, wanted in zip(got, [VALUES, expected, VALUES[17, 33], expected[:3, 5]], strict=True):
            np.testing.assert_array_equal(values, wanted)
        assert len(server.requests()) == 4

        async def main():
            tasks = [aio.AsyncArray(array).getitem(...) for array in (one, two)]
            return await asyncio.gather(*tasks)

        for values, wanted in zip(asyncio.run(main()), (VALUES, expected), strict=True):
            np.testing.assert_array_equal(values, wanted)


# -- files that change ------------------------------------------------------------------------


def changed(server):
    content = bytearray(server.values["/data/x.bin"])
    content[6:] = bytes(len(content) - 6)
    server.values["/data/x.bin"] = bytes(content)


def longer(server):
    server.values["/data/x.bin"] += b"more"


def gone(server):
    del server.values["/data/x.bin"]


@pytest.mark.parametrize("fetch", ["native", "python"])
@pytest.mark.parametrize("change", [changed, longer, gone])
@pytest.mark.parametrize("compressors", [None, ZSTD])
def test_a_file_that_changed_is_an_error(server, fetch, change, compressors):
    array = opened(server, fetch, compressors=compressors)
    np.testing.assert_array_equal(array[...], VALUES)
    change(server)
    for chosen in (..., (17, 33)):
        with pytest.raises(StoreError if change is gone else StaleError, match=r"does not exist|has changed since"):
            array[chosen]


@pytest.mark.parametrize("tag", [None, 'W/"1"'])
def test_a_server_without_tags_tells_sizes_and_dates(server, tag):
    server.tag = lambda _: tag
    array = opened(server, compressors=None)
    server.requests()
    np.testing.assert_array_equal(array[...], VALUES)
    assert len(server.requests()) == 1
    longer(server)
    with pytest.raises(StaleError):
        array[...]


def test_a_file_that_changes_while_it_is_read_is_never_mixed(server):
    values = NOISE[: 2048 * 1024]
    array = opened(server, values=values, chunks=(4096,), dtype="u4", compressors=None, gap=0)
    server.requests()
    server.answer = lambda _: (changed(server) if len(server.asked) == 3 else None) and False
    with pytest.raises(StaleError):
        array[...]


# -- servers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["large and raw", "zstd"])
def test_a_server_that_ignores_ranges_serves_all_the_same(server, layout):
    array = opened(server, **LAYOUTS[layout])
    server.knows_ranges = False
    for name in SELECTIONS:
        np.testing.assert_array_equal(select(array, name), select(VALUES, name))


def cut(handler):
    handler.respond(206, b"01234", Content_Length=100, Content_Range="bytes 0-99/100", ETag='"1"')
    handler.close_connection = True
    return True


ANSWERS = {
    "401": respond(401),
    "403": respond(403, b"no"),
    "416": respond(416),
    "500": respond(500),
    "another range": respond(206, b"01234", Content_Range="bytes 5-9/100", ETag='"1"'),
    "cut": cut,
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_every_failure_is_the_same_error(server, answer):
    how = put(server)
    errors = []
    for fetch in ("native", "python"):
        server.answer = None
        array = by(fetch, store_of(server, *how))
        server.answer = ANSWERS[answer]
        errors.append(failure(lambda array=array: array[50, 50]))
        errors.append(failure(lambda array=array: omnizarr.read_many([(array, (50, 50)), (array, (50, 51))])))
        errors.append(failure(lambda array=array: asyncio.run(aio.AsyncArray(array).getitem((50, 50)))))
    assert [error[0] for error in errors] == [errors[0][0]] * 6
    assert errors[0][1].split(":")[0] == errors[3][1].split(":")[0]


LIES = {
    "behind the file": lambda manifest: (manifest.offsets + 10**9, manifest.lengths),
    "too long": lambda manifest: (manifest.offsets, manifest.lengths + 2**60),
    "too short": lambda manifest: (manifest.offsets, manifest.lengths - 1),
    "empty": lambda manifest: (manifest.offsets, manifest.lengths * 0),
    "elsewhere": lambda manifest: (manifest.offsets + 1, manifest.lengths),
}


@pytest.mark.parametrize("compressors", [None, [ZSTD, {"name": "crc32c"}]])
@pytest.mark.parametrize("lie", LIES)
def test_a_manifest_that_lies_is_the_same_error(server, lie, compressors):
    if (lie, compressors) == ("elsewhere", None):
        pytest.skip("other bytes of raw chunks are as good as any")
    documents, manifest = put(server, compressors=compressors)
    lying = Manifest(*LIES[lie](manifest))
    natively = by("native", store_of(server, documents, lying))
    otherwise = omnizarr.open_array(store_of(server, documents, lying), config={"engine": "reference"})
    errors = [
        [failure(partial(array.__getitem__, chosen)) for chosen in ((50, 50), ...)] for array in (natively, otherwise)
    ]
    assert errors[0][0] == errors[1][0]
    assert errors[0][1][0] == errors[1][1][0]


def test_what_the_native_engine_does_not_do_goes_by_way_of_python(server):
    how = put(server)
    store = store_of(server, *how)
    cached = omnizarr.open_array(store, config={"chunk_cache": 2**20})
    metrics = MetricsStore(ObjectStore.from_url(server.url("/data"), FAST, read_only=True))
    watched = omnizarr.open_array(ManifestStore(how[0], {"": how[1]}, [File.of(metrics, "x.bin")]))
    for array in (cached, watched):
        assert not engine.is_remote(array._bind().binding)
        np.testing.assert_array_equal(array[...], VALUES)
    assert metrics.report().total.requests > 0


@pytest.mark.parametrize("cloud", ["s3_server", "azurite_server", "gcs_server", "http_server"])
def test_every_cloud_is_read(request, cloud, tmp_path):
    h5py = pytest.importorskip("h5py", reason="it writes the file")
    place = request.getfixturevalue(cloud).fresh()
    with h5py.File(tmp_path / "x.h5", "w") as theirs:
        theirs.create_dataset("zlib", data=VALUES, chunks=(16, 16), compression="gzip", shuffle=True)
        theirs["whole"] = VALUES
    content = (tmp_path / "x.h5").read_bytes()
    if place.directory is not None:
        (place.directory / "x.h5").write_bytes(content)
    else:
        ObjectStore.from_url(place.url, place.options).set("x.h5", content)
    root = omnizarr.open(f"{place.url}/x.h5", mode="r", storage_options=place.options)
    for name in ("zlib", "whole"):
        assert engine.is_remote(root[name]._bind().binding)
        for selection in SELECTIONS:
            np.testing.assert_array_equal(select(root[name], selection), select(VALUES, selection))
