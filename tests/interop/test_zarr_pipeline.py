"""zarr-python with the codec pipeline of omnizarr does what it does by itself, and loses nothing where it would."""

import asyncio
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")

from numcodecs import Delta, GZip  # noqa: E402
from zarr.core.codec_pipeline import BatchedCodecPipeline  # noqa: E402

import omnizarr  # noqa: E402
from omnizarr.codecs import chain as chains  # noqa: E402
from omnizarr.interop import zarr_pipeline  # noqa: E402
from omnizarr.interop.zarr_python import Pipeline, accelerate, to_zarr_python  # noqa: E402
from omnizarr.settings import engines  # noqa: E402

# zarr-python warns of every extension that its authors registered themselves.
pytestmark = pytest.mark.filterwarnings(
    "ignore::zarr.errors.UnstableSpecificationWarning", "ignore:.*not part in the Zarr"
)

DTYPES = ["?", "i1", "<u2", ">i4", "<i8", "<f4", ">f8", "<c8", "c16", "S5", "<U3", "<M8[s]", "<m8[ms]"]
RECORD = np.dtype([("x", "<i4"), ("y", ">f8")])
ENDLESS = 60.0  # seconds after which a test that hangs gives up


@pytest.fixture
def only_engines(monkeypatch):
    """Make the pipeline of zarr-python, to which what is not for an engine is left, unusable."""

    async def refuse(*_args, **_options):
        raise AssertionError("left to zarr-python")

    monkeypatch.setattr(BatchedCodecPipeline, "read", refuse)
    monkeypatch.setattr(BatchedCodecPipeline, "write", refuse)


@pytest.fixture
def left(monkeypatch):
    """Return the list of what is left to zarr-python."""
    found = []

    def noting(name):
        verb = getattr(BatchedCodecPipeline, name)

        async def note(self, *args, **options):
            if isinstance(self, Pipeline):
                found.append(name)
            return await verb(self, *args, **options)

        return note

    for name in ("read", "write"):
        monkeypatch.setattr(BatchedCodecPipeline, name, noting(name))
    return found


def fast(store, **options):
    """Create an array that has the pipeline."""
    with accelerate():
        return zarr.create_array(store, **options)


def plain(array):
    """Return the same array with the pipeline of zarr-python."""
    with accelerate(False):
        return zarr.open_array(array.store, path=array.path, zarr_format=array.metadata.zarr_format)


def bits(values):
    values = np.asarray(values)
    return values.tolist() if values.dtype.hasobject or values.dtype.kind == "T" else values.tobytes()


def same(found, expected):
    expected = np.asarray(expected)
    assert np.asarray(found).dtype.kind == expected.dtype.kind
    found = np.asarray(found, expected.dtype)  # a single text is as long as it is
    assert found.shape == expected.shape
    assert bits(np.ascontiguousarray(found)) == bits(np.ascontiguousarray(expected))


# -- against NumPy and zarr-python ----------------------------------------------------


@st.composite
def options(draw):
    """Return what `create_array` takes."""
    ndim = draw(st.integers(0, 3))
    shape = tuple(draw(st.lists(st.integers(1, 12), min_size=ndim, max_size=ndim)))
    chunks = tuple(draw(st.lists(st.integers(1, 5), min_size=ndim, max_size=ndim)))
    zarr_format = draw(st.sampled_from([2, 3]))
    dtype = np.dtype(draw(st.sampled_from([*DTYPES, *([RECORD] if zarr_format == 2 else [])])))
    found = {"shape": shape, "chunks": chunks, "dtype": dtype, "zarr_format": zarr_format}
    if zarr_format == 2:
        found["order"] = draw(st.sampled_from("CF"))
        found["chunk_key_encoding"] = {"name": "v2", "separator": draw(st.sampled_from("./"))}
        found["compressors"] = draw(st.sampled_from([None, "auto"]))
    else:
        if ndim and draw(st.booleans()):
            found["shards"] = tuple(chunk * draw(st.integers(1, 3)) for chunk in chunks)
        found["compressors"] = draw(
            st.sampled_from([None, {"name": "zstd", "configuration": {"level": 1, "checksum": True}}])
        )
        found["chunk_key_encoding"] = {"name": "default", "separator": draw(st.sampled_from("./"))}
    found["config"] = {"write_empty_chunks": draw(st.booleans()), "order": draw(st.sampled_from("CF"))}
    if dtype.kind in "iufc" and draw(st.booleans()):
        found["fill_value"] = dtype.type(7)
    return found


def some_values(rng, shape, dtype):
    """Return values among which equal ones, and those of a missing chunk, are frequent."""
    if dtype.names:
        values = np.zeros(shape, dtype)
        for name in dtype.names:
            values[name] = some_values(rng, shape, dtype[name])
        return values
    return (
        rng.integers(0, 3, shape).astype(dtype)
        if rng.integers(2)
        else rng.integers(0, 100, shape).astype("i4").astype(dtype)
    )


@st.composite
def selections(draw, shape):
    """Return how to select, and what: the name of an accessor ("" for the array itself), and a selection."""
    if not shape:
        return "", draw(st.sampled_from([(), ...]))
    kind = draw(st.sampled_from(["", "", "oindex", "oindex", "vindex", "mask", "blocks"]))
    if kind == "":
        return "", tuple(draw(axis_slices(side)) for side in shape)
    if kind == "oindex":
        return "oindex", tuple(draw(st.one_of(axis_slices(side), axis_lists(side), axis_masks(side))) for side in shape)
    if kind == "vindex":
        count = draw(st.integers(1, 8))
        return "vindex", tuple(
            np.array(draw(st.lists(st.integers(-side, side - 1), min_size=count, max_size=count, unique=False)))
            for side in shape
        )
    if kind == "mask":
        mask = draw(hnp.arrays(bool, shape))
        mask.flat[0] = True
        return "vindex", (mask,)
    return "blocks", (draw(st.integers(0, 0)),)


def axis_slices(side):
    slices = st.builds(
        lambda start, stop, step: slice(min(start, stop), max(start, stop), step),
        st.integers(0, side), st.integers(0, side), st.integers(1, 4),
    )  # fmt: skip
    return st.one_of(st.integers(-side, side - 1), slices, st.just(slice(None)))


def axis_lists(side):
    return st.lists(st.integers(-side, side - 1), min_size=1, max_size=6).map(np.array)


def axis_masks(side):
    return hnp.arrays(bool, side)


def numpys(values, how, selection, chunks):
    """Return the places of a selection in an array of places, which NumPy makes."""
    places = np.arange(values.size).reshape(values.shape)
    if how == "blocks":
        return places[: chunks[0]]
    if how != "oindex":
        return places[selection]
    for axis in reversed(range(values.ndim)):
        item = selection[axis]
        places = places[(slice(None),) * axis + (item,)]
    return places


def accessor(array, how):
    return getattr(array, how) if how else array


@settings(max_examples=50 if settings.default.max_examples == 100 else settings.default.max_examples)
@given(data=st.data(), said=options(), seed=st.integers(0, 2**32 - 1))
def test_reads_and_writes_are_those_of_numpy_and_of_zarr_python(data, said, seed):
    rng = np.random.default_rng(seed)
    array = fast({}, **said)
    other = plain(fast({}, **said))
    values = np.full(
        said["shape"], other[...] if not said["shape"] else other[(0,) * len(said["shape"])], said["dtype"]
    )
    for _ in range(4):
        how, selection = data.draw(selections(said["shape"]))
        chunks = said.get("shards") or said["chunks"]
        places = numpys(values, how, selection, chunks)
        new = some_values(rng, np.shape(places), said["dtype"])
        if np.unique(places).size < np.size(places):  # it is not defined which of several values stays
            new = np.full(np.shape(places), new.flat[0])
        if not np.size(places):
            continue
        values.reshape(-1)[places] = new
        new = new if np.shape(new) else new[()]
        accessor(array, how)[selection] = new
        try:
            accessor(other, how)[selection] = new
        except (ValueError, IndexError):  # zarr-python 3.1.6 cannot write lists beside integers into shards
            other[...] = values
        how, selection = data.draw(selections(said["shape"]))
        expected = values.reshape(-1)[numpys(values, how, selection, chunks)]
        if np.size(expected):
            same(accessor(array, how)[selection], expected)
    same(array[...], values)
    same(plain(array)[...], values)
    same(other[...], values)
    if not said["config"]["write_empty_chunks"]:
        assert sorted(array.store._store_dict) == sorted(other.store._store_dict)


SELECTIONS = {
    "everything": ("", ...),
    "one element": ("", (3, 4)),
    "a box": ("", (slice(2, 9), slice(3, 17))),
    "steps": ("", (slice(1, None, 3), slice(None, 20, 5))),
    "a row": ("", 5),
    "rows": ("oindex", ([1, 5, 17],)),
    "rows in any order, twice": ("oindex", ([17, 1, 1, 5], slice(2, 20))),
    "a mesh": ("oindex", ([1, 5, 17], [3, 2, 29])),
    "a mesh with an integer": ("oindex", ([1, 5, 17], 3)),
    "a mask of rows": ("oindex", (np.arange(20) % 3 == 0, [5, 4])),
    "points": ("vindex", ([1, 5, 17], [3, 2, 29])),
    "a mask": ("vindex", (np.arange(600).reshape(20, 30) % 7 == 0,)),
    "a block": ("blocks", (1, slice(0, 2))),
}


@pytest.mark.parametrize(("how", "selection"), SELECTIONS.values(), ids=SELECTIONS)
@pytest.mark.parametrize("shards", [None, (8, 16)], ids=["chunks", "shards"])
@pytest.mark.usefixtures("only_engines")
def test_each_kind_of_selection_runs_in_an_engine(how, selection, shards, tmp_path):
    values = np.arange(600, dtype="i4").reshape(20, 30)
    array = fast(tmp_path / "x.zarr", shape=(20, 30), chunks=(4, 8), shards=shards, dtype="i4")
    array[...] = values
    found = accessor(array, how)[selection]
    accessor(array, how)[selection] = -found
    expected = values.copy()
    expected.reshape(-1)[np.asarray(found).reshape(-1)] *= -1
    same(array[...], expected)


@pytest.mark.usefixtures("only_engines")
def test_one_value_is_stored_everywhere():
    array = fast({}, shape=(5, 7), chunks=(2, 3), dtype=">i2")
    array[1:4, 2] = 9
    array.vindex[[0, 4], [0, 6]] = 3
    expected = np.zeros((5, 7), ">i2")
    expected[1:4, 2], expected[[0, 4], [0, 6]] = 9, 3
    same(array[...], expected)


@pytest.mark.usefixtures("only_engines")
def test_values_of_another_byte_order_are_stored_as_the_array_has_it():
    array = fast({}, shape=(4,), chunks=(3,), dtype=">i4")
    array[:] = np.arange(4, dtype="<i4")
    same(array[...], np.arange(4, dtype=">i4"))


def test_values_that_do_not_fit_are_left_to_zarr_python(left):
    array = fast({}, shape=(4, 4), chunks=(2, 2), dtype="i4")
    other = plain(fast({}, shape=(4, 4), chunks=(2, 2), dtype="i4"))
    for one in (array, other):
        one[:, 1:3] = np.arange(12).reshape(4, 3)
    assert left == ["write"]
    same(array[...], other[...])


def test_array_that_was_resized_is_read_and_written_at_its_new_end():
    array = fast({}, shape=(5, 4), chunks=(3, 3), dtype="i4")
    array[...] = 1
    array.resize((9, 4))
    array[4:9] = 2
    expected = np.full((9, 4), 2, "i4")
    expected[:4] = 1
    same(array[...], expected)
    array.append(np.full((2, 4), 3, "i4"))
    same(array[-3:], [[2] * 4, [3] * 4, [3] * 4])


@pytest.mark.parametrize("writes", [False, True])
def test_empty_chunks_are_stored_if_the_array_is_reported_to(writes, tmp_path):
    array = fast(tmp_path, shape=(4,), chunks=(2,), dtype="i4", config={"write_empty_chunks": writes}, fill_value=0)
    array[:] = [0, 0, 1, 0]
    assert (tmp_path / "c/0").exists() == writes
    array[2] = 0
    assert (tmp_path / "c/1").exists() == writes


def test_fill_value_that_v2_leaves_open_is_the_default_of_the_data_type():
    values = {}
    array = fast(values, shape=(4,), chunks=(2,), dtype="i4", zarr_format=2, fill_value=None)
    array[:] = [0, 0, 5, 0]
    same(array[...], np.array([0, 0, 5, 0], "i4"))
    assert sorted(values) == [".zarray", ".zattrs", "1"]


# -- stores ---------------------------------------------------------------------------


def local(folder):
    return zarr.storage.LocalStore(folder / "x.zarr")


def memory(_folder):
    return zarr.storage.MemoryStore()


def bucket(_folder):
    return zarr.storage.ObjectStore(pytest.importorskip("obstore.store").MemoryStore())


def filesystem(folder):
    pytest.importorskip("fsspec")
    return zarr.storage.FsspecStore.from_url(f"memory://{folder}/x.zarr")


def ours(_folder):
    return to_zarr_python(omnizarr.storage.MemoryStore())


@pytest.mark.parametrize("make", [local, memory, bucket, filesystem, ours])
@pytest.mark.usefixtures("only_engines")
def test_arrays_in_stores_run_in_engines(make, tmp_path):
    array = fast(make(tmp_path), name="a/b", shape=(20, 30), chunks=(7, 8), dtype="f4")
    values = np.arange(600, dtype="f4").reshape(20, 30)
    array[...] = values
    array[3:5, 2:28] = 1
    values[3:5, 2:28] = 1
    same(array[...], values)
    same(array.vindex[[1, 19], [2, 3]], values[[1, 19], [2, 3]])


def test_array_is_found_where_its_store_was_moved_to(tmp_path):
    array = fast(local(tmp_path), shape=(4,), chunks=(2,), dtype="i4")
    array[:] = np.arange(4)
    asyncio.run(array.store.move(tmp_path / "y.zarr"))
    same(array[:], np.arange(4, dtype="i4"))
    array[1:3] = 7
    assert not (tmp_path / "x.zarr").exists()
    same(array[:], np.array([0, 7, 7, 3], "i4"))


@pytest.mark.usefixtures("only_engines")
def test_archive_is_read_by_engines(tmp_path):
    values = np.arange(12).reshape(3, 4)
    with omnizarr.storage.ZipStore(tmp_path / "x.zip", mode="w") as archive:
        omnizarr.create_array(archive, name="a", data=values, chunks=(2, 2))
    with accelerate(), zarr.storage.ZipStore(tmp_path / "x.zip", mode="r") as store:
        same(zarr.open_array(store, path="a", mode="r")[1:], values[1:])


def test_stores_of_others_are_left_to_zarr_python(left):
    class Mine(zarr.storage.MemoryStore):
        pass

    array = fast(Mine(), shape=(4,), chunks=(2,), dtype="i4")
    array[1:3] = 5
    same(array[...], np.array([0, 5, 5, 0], "i4"))
    assert left == ["write", "read"]


def test_objects_are_left_to_zarr_python(left):
    array = fast({}, shape=(3,), chunks=(2,), dtype=str)
    array[:] = ["a", "", "ccc"]
    assert array[:].tolist() == ["a", "", "ccc"]
    assert left == ["write", "read"]


def test_codecs_of_others_are_left_to_zarr_python(left):
    class Mine(zarr.codecs.GzipCodec):
        pass

    array = fast({}, shape=(4,), chunks=(2,), dtype="i4", compressors=Mine(level=1))
    array[1:3] = 5
    same(array[...], np.array([0, 5, 5, 0], "i4"))
    assert left == ["write", "read"]


def test_buffers_of_others_are_left_to_zarr_python(left):
    class Mine(zarr.core.buffer.cpu.NDBuffer):
        pass

    prototype = zarr.core.buffer.BufferPrototype(buffer=zarr.core.buffer.cpu.Buffer, nd_buffer=Mine)
    array = fast({}, shape=(4,), chunks=(2,), dtype="i4")
    array[...] = np.arange(4)
    same(array.get_basic_selection(slice(1, 3), prototype=prototype), np.array([1, 2], "i4"))
    assert left == ["read"]


# -- writers at the same time ---------------------------------------------------------


def _fill(path, first, step):
    with accelerate():
        array = zarr.open_array(path, mode="r+")
    for at in range(first, array.shape[0], step):
        array[at] = at + 1


@pytest.mark.parametrize("shards", [None, (400,)], ids=["chunks", "shards"])
def test_processes_that_write_parts_of_one_chunk_lose_nothing(shards, tmp_path):
    fast(tmp_path / "x.zarr", shape=(400,), chunks=(200,), shards=shards, dtype="i4")
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_fill, args=(tmp_path / "x.zarr", first, 2)) for first in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(ENDLESS)
        assert writer.exitcode == 0
    same(zarr.open_array(tmp_path / "x.zarr")[:], np.arange(1, 401, dtype="i4"))


@pytest.mark.parametrize("make", [local, memory, bucket, filesystem])
def test_threads_that_write_parts_of_one_chunk_lose_nothing(make, tmp_path):
    array = fast(make(tmp_path), shape=(200,), chunks=(100,), dtype="i4")

    def fill(first):
        for at in range(first, 200, 2):
            array[at] = at + 1

    writers = [threading.Thread(target=fill, args=(first,)) for first in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(ENDLESS)
    same(array[:], np.arange(1, 201, dtype="i4"))


async def _writes_at_once(array):
    one = array._async_array
    await asyncio.gather(*(one.setitem(at, at + 1) for at in range(64)))


def test_coroutines_lose_what_they_write_with_zarr_python_and_keep_it_with_the_pipeline(tmp_path):
    array = fast(tmp_path / "x.zarr", shape=(64,), chunks=(64,), dtype="i4")
    asyncio.run(_writes_at_once(array))
    same(array[:], np.arange(1, 65, dtype="i4"))
    array[:] = 0
    other = plain(array)
    asyncio.run(_writes_at_once(other))
    assert np.count_nonzero(other[:]) < 64


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_child_that_was_forked_reads_and_writes(tmp_path):
    array = fast(tmp_path / "x.zarr", shape=(40, 40), chunks=(8, 8), dtype="i4")
    array[...] = 1
    assert array[3, 5] == 1  # by now, all threads and loops are there
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(array,))
    child.start()
    array[:20, 1:3] = 3
    child.join(ENDLESS)
    assert child.exitcode == 0
    assert (array[20:, 1:3] == 2).all()
    assert (array[:20, 1:3] == 3).all()


def _in_child(array):
    assert (array[20:] == 1).all()
    array[20:, 1:3] = 2


# -- failures -------------------------------------------------------------------------


@pytest.mark.parametrize("part", [..., slice(0, 1), ([0],)], ids=["all", "part", "list"])
def test_broken_chunk_is_an_error(part, tmp_path):
    zstd = {"name": "zstd", "configuration": {"level": 1, "checksum": True}}
    array = fast(tmp_path / "x.zarr", shape=(4, 4), chunks=(4, 4), dtype="i4", compressors=zstd)
    array[...] = np.arange(16).reshape(4, 4)
    chunk = tmp_path / "x.zarr/c/0/0"
    stored = bytearray(chunk.read_bytes())
    stored[-6] ^= 255
    chunk.write_bytes(stored)
    with pytest.raises(omnizarr.errors.ChunkError, match="c/0/0"):
        array.oindex[part]
    with pytest.raises(omnizarr.errors.ChunkError, match="c/0/0"):
        array[1, 1] = 5
    assert chunk.read_bytes() == stored


def test_store_that_is_read_only_says_what_it_says_otherwise(tmp_path):
    fast(tmp_path / "x.zarr", shape=(4,), chunks=(2,), dtype="i4")
    with accelerate():
        array = zarr.open_array(tmp_path / "x.zarr", mode="r")
    with pytest.raises(ValueError, match="read-only"):
        array[1:3] = 5


# -- switching on ---------------------------------------------------------------------


def test_configuration_names_it():
    with zarr.config.set({"codec_pipeline.path": "omnizarr.interop.zarr_python.Pipeline"}):
        array = zarr.create_array({}, shape=(4,), dtype="i4")
    assert type(array._async_array.codec_pipeline) is Pipeline


def test_the_environment_names_it_before_anything_of_omnizarr_is_imported():
    program = """
import zarr
array = zarr.create_array({}, shape=(6,), chunks=(4,), dtype="int16")
array[2:5] = 7
print(array[:].tolist(), type(array.async_array.codec_pipeline).__module__)
"""
    environment = {**os.environ, "ZARR_CODEC_PIPELINE__PATH": "omnizarr.interop.zarr_python.Pipeline"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout.strip(), done.stderr) == ("[0, 0, 7, 7, 7, 0] omnizarr.interop.zarr_python", "")


def test_it_is_switched_on_and_off():
    before = zarr.config.get("codec_pipeline.path")
    with accelerate():
        assert zarr.config.get("codec_pipeline.path") == "omnizarr.interop.zarr_python.Pipeline"
        accelerate(False)
        assert zarr.config.get("codec_pipeline.path") == "zarr.core.codec_pipeline.BatchedCodecPipeline"
    assert zarr.config.get("codec_pipeline.path") == before


def test_array_keeps_its_pipeline_when_it_is_pickled(tmp_path):
    array = fast(tmp_path / "x.zarr", shape=(4,), chunks=(2,), dtype="i4")
    array[:] = np.arange(4)
    again = pickle.loads(pickle.dumps(array))
    assert type(again._async_array.codec_pipeline) is Pipeline
    again[1:3] = 7
    same(array[:], np.array([0, 7, 7, 3], "i4"))


def test_arrays_are_equal_whether_they_have_been_read_or_not(tmp_path):
    array = fast(tmp_path / "x.zarr", shape=(4,), chunks=(2,), dtype="i4")
    with accelerate():
        other = zarr.open_array(tmp_path / "x.zarr", mode="r+")
    array[:]
    assert array == other


def test_batch_of_another_array_is_left_to_zarr_python(left):
    one = fast({}, name="one", shape=(4,), chunks=(2,), dtype="i4")
    two = fast(one.store, name="two", shape=(4,), chunks=(2,), dtype="i4")
    one[:], two[:] = 1, 2
    object.__setattr__(two._async_array, "codec_pipeline", one._async_array.codec_pipeline)
    same(one[:], np.full(4, 1, "i4"))
    same(two[:], np.full(4, 2, "i4"))
    assert left == ["read"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_arrays_that_differ_in_one_thing_alone_are_not_mistreated_as_each_other(zarr_format, left):
    said = {"shape": (4,), "chunks": (2,), "dtype": "f8", "fill_value": 0.0, "compressors": None}
    differences = [
        {}, {"shape": (5,)}, {"chunks": (4,)}, {"dtype": "f4"}, {"dtype": ">f8"}, {"fill_value": -0.0},
        {"fill_value": np.nan}, {"fill_value": 1.0}, {"config": {"write_empty_chunks": True}},
        {"filters": [Delta(dtype="f8")]} if zarr_format == 2 else {"serializer": zarr.codecs.BytesCodec(endian="big")},
        {"compressors": GZip(5) if zarr_format == 2 else zarr.codecs.GzipCodec(level=5)},
        {"compressors": GZip(1) if zarr_format == 2 else zarr.codecs.GzipCodec(level=1)},
    ]  # fmt: skip
    values = np.array([1.5, -2.0, 0.0, 4.0, 5.0])
    for difference in differences * 2:
        options = {**said, **difference, "zarr_format": zarr_format}
        theirs, ours = {}, {}
        with accelerate(enabled=False):
            expected = zarr.create_array(theirs, **options)
        with accelerate():
            found = zarr.create_array(ours, **options)
        written = values[: expected.shape[0]]
        for array in (expected, found):
            array[1:3] = written[1:3]
        np.testing.assert_array_equal(np.signbit(found[:]), np.signbit(expected[:]), err_msg=str(difference))
        np.testing.assert_array_equal(found[:], expected[:], err_msg=str(difference))
        if "compressors" not in difference:
            assert {key: bytes(value.to_bytes()) for key, value in ours.items()} == {
                key: bytes(value.to_bytes()) for key, value in theirs.items()
            }, difference
    assert not left


def test_reads_that_run_at_the_same_time_leave_the_event_loop_to_each_other(monkeypatch, tmp_path):
    threads = set()
    read = omnizarr.engine.read

    def noting(*args):
        threads.add(threading.current_thread().name)
        read(*args)

    monkeypatch.setattr(zarr_pipeline.engine, "read", noting)
    values = np.arange(2 * 2**15).reshape(2, 2**15)  # 256 KiB a chunk
    with accelerate():
        array = zarr.create_array(tmp_path / "a", data=values, chunks=(1, 2**15))

    async def both():
        return await asyncio.gather(array.async_array.getitem(0), array.async_array.getitem(1))

    np.testing.assert_array_equal(array[1], values[1])
    assert len(threads) == 1, threads
    (alone,) = threads
    threads.clear()
    np.testing.assert_array_equal(asyncio.run(both()), values)
    assert alone not in threads
    assert all(name.startswith("omnizarr") for name in threads)


def test_memory_that_is_read_only_is_left_alone():
    buffers = pytest.importorskip("zarr.core.buffer.cpu")
    with accelerate():
        array = zarr.create_array({}, shape=(4,), chunks=(2,), dtype="i4")
    array[...] = 7
    constant = bytes(16)
    with pytest.raises(ValueError, match="read-only"):
        array.get_basic_selection(out=buffers.NDBuffer.from_numpy_array(np.frombuffer(constant, "i4")))
    assert constant == bytes(16)


# -- a cache of decoded chunks ----------------------------------------------------------


@pytest.fixture
def decoded(monkeypatch):
    """Count the chunks that the reference engine decodes."""
    found = []
    decode = chains.Chain.decode

    def counting(self, *args, **options):
        found.append(1)
        return decode(self, *args, **options)

    monkeypatch.setattr(chains.Chain, "decode", counting)
    monkeypatch.setattr(engines, "_FROM_ENVIRONMENT", "reference")
    return found


@pytest.fixture
def volume(tmp_path):
    values = np.arange(32**3, dtype="uint16").reshape(32, 32, 32)
    zarr.create_array(tmp_path / "x.zarr", data=values, chunks=(16, 16, 16))
    for path in (tmp_path / "x.zarr" / "c").rglob("*"):
        os.utime(path, (1e9, 1e9))
    return tmp_path / "x.zarr", values


def settled():
    """Wait until files that were just written have a stamp."""
    time.sleep(0.12)


def test_overlapping_reads_decode_each_chunk_once(volume, decoded):
    path, values = volume
    settled()
    with accelerate(chunk_cache="1MB"):
        array = zarr.open_array(path, mode="r")
    for row in range(32):
        same(array[row], values[row])
    assert len(decoded) == 8
    assert array._async_array.codec_pipeline._array._cache.nbytes == values.nbytes


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_what_is_written_is_read_from_any_array(volume, engine, monkeypatch):
    monkeypatch.setattr(engines, "_FROM_ENVIRONMENT", engine)
    path, values = volume
    if engine == "native" and engines.module() is None:
        pytest.skip("the native engine is not built")
    with accelerate(chunk_cache="1MB"):
        reader, writer = zarr.open_array(path, mode="r"), zarr.open_array(path, mode="r+")
    plain = zarr.open_array(path, mode="r+")
    settled()
    for turn, array in enumerate([writer, plain, writer]):
        reader[:]
        array[3:20, turn] = values[3:20, turn] = turn
        same(reader[:], values)
    (path / "c" / "0" / "0" / "0").unlink()
    values[:16, :16, :16] = 0
    same(reader[:], values)


def test_all_arrays_share_one_limit(volume, tmp_path):
    path, values = volume
    zarr.create_array(tmp_path / "y.zarr", data=values, chunks=(16, 16, 16))
    settled()
    limit = values.nbytes + 5000
    with accelerate(chunk_cache=limit):
        arrays = [zarr.open_array(each, mode="r") for each in (path, tmp_path / "y.zarr")]
    caches = {array._async_array.codec_pipeline._array._cache for array in arrays}
    for array in arrays:
        same(array[:], values)
    (cache,) = caches
    assert 0 < cache.nbytes <= limit


def test_threads_that_read_and_write_with_a_cache_see_whole_chunks(tmp_path):
    with accelerate(chunk_cache="1MB"):
        array = zarr.create_array(tmp_path / "x.zarr", shape=(8, 64), chunks=(1, 64), dtype="int32")
        other = zarr.open_array(tmp_path / "x.zarr", mode="r")
    wrong = []

    def write(row):
        for turn in range(1, 20):
            array[row] = turn

    def read(row):
        last = 0
        for _ in range(40):
            found = np.unique(other[row])
            if len(found) != 1 or found[0] < last:
                wrong.append((row, found))
            last = int(found[0])

    threads = [threading.Thread(target=task, args=(row,)) for row in range(4) for task in (write, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert set(np.unique(other[:4]).tolist()) == {19}


def test_the_cache_goes_where_the_array_goes_and_ends_with_the_block(volume):
    path, values = volume
    cache = omnizarr.ChunkCache(10_000)
    with accelerate(chunk_cache=cache):
        array = zarr.open_array(path, mode="r")
    assert array._async_array.codec_pipeline._array._cache is cache
    again = pickle.loads(pickle.dumps(array))
    assert again._async_array.codec_pipeline._array._cache.limit == 10_000
    same(again[:], values)
    with accelerate():
        assert zarr.open_array(path, mode="r")._async_array.codec_pipeline._array._cache is None


def test_a_limit_that_is_none_is_refused():
    for limit in ("lots", -1):
        with pytest.raises(ValueError, match="chunk_cache"):
            accelerate(chunk_cache=limit)
    assert zarr.config.get("codec_pipeline.path") == "zarr.core.codec_pipeline.BatchedCodecPipeline"
