"""Parts of chunks that Blosc has compressed, also in shards: the native engine fetches and decodes only their blocks.

What is right says `numcodecs.blosc.decompress`, of whole chunks; what is wrong, the reference engine.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numcodecs import blosc

import omnizarr
from tests.engine.both import RUNS, bits, needs_native, opened, outcome

pytestmark = needs_native

SHAPE = (300, 257)
NAMES = ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
TYPES = ("<u1", ">i2", "<f4", "<f8", "<c16")
COLUMNS = st.integers(0, SHAPE[1] - 1)
ROWS = st.integers(0, SHAPE[0] - 1)

runs = st.builds(
    lambda start, size, step: slice(start, start + size, step), ROWS, st.integers(1, 40), st.integers(1, 9)
)
selections = st.one_of(
    st.tuples(ROWS, COLUMNS),
    st.tuples(ROWS),
    st.tuples(runs, COLUMNS),
    st.tuples(runs, st.builds(lambda start: slice(start, start + 20), COLUMNS)),
    st.tuples(st.lists(ROWS, min_size=1, max_size=4), COLUMNS),
)


@st.composite
def frames(draw):
    """Return (values, what Blosc makes of them), mostly of several blocks."""
    dtype = np.dtype(draw(st.sampled_from(TYPES)))
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    values = np.frombuffer(rng.bytes(SHAPE[0] * SHAPE[1] * dtype.itemsize), dtype).reshape(SHAPE)
    if draw(st.booleans()):  # what can be compressed
        values = np.sort(values.view(f"u{min(dtype.itemsize, 8)}"), axis=None)[: values.size].view(dtype)[: values.size]
        values = np.resize(values, SHAPE)
    shuffle = draw(st.sampled_from([blosc.NOSHUFFLE, blosc.SHUFFLE, blosc.BITSHUFFLE]))
    block = draw(st.sampled_from([0, 512, 4096, 30_001]))
    clevel = draw(st.sampled_from([0, 1, 5]))
    size = draw(st.sampled_from([dtype.itemsize, 1, 3, 16]))
    data = blosc.compress(values.tobytes(), draw(st.sampled_from(NAMES)).encode(), clevel, shuffle, block, size)
    assert blosc.decompress(data) == values.tobytes()
    return values, data


def stored(folder: Path, values, data):
    """Store an array of one chunk, of which `data` are the bytes."""
    codec = {
        "name": "blosc",
        "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0},
    }
    dtype = values.dtype.newbyteorder("=")
    array = omnizarr.create_array(
        folder,
        shape=SHAPE,
        chunks=SHAPE,
        dtype=dtype,
        serializer={"name": "bytes", "configuration": {"endian": "big" if values.dtype.byteorder == ">" else "little"}},
        compressors=codec,
        overwrite=True,
    )
    array.store.set("c/0/0", data)
    return folder


def stored_in_shard(folder: Path, values, data):
    """Store an array of one shard, which holds `data`, other bytes, and a chunk of the same values in reverse order."""
    array = stored(folder, values, data)
    other = blosc.compress(values[::-1].tobytes(), b"lz4", 5, blosc.SHUFFLE, 4096, values.dtype.itemsize)
    document = json.loads((array / "zarr.json").read_text())
    inner = {
        "chunk_shape": SHAPE,
        "codecs": document["codecs"],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "index_location": "end",
    }
    document["codecs"] = [{"name": "sharding_indexed", "configuration": inner}]
    document["shape"] = document["chunk_grid"]["configuration"]["chunk_shape"] = [2 * SHAPE[0], SHAPE[1]]
    (folder / "zarr.json").write_text(json.dumps(document))
    index = np.array([[5, len(data)], [5 + len(data) + 3, len(other)]], "<u8")
    (folder / "c/0/0").write_bytes(b"first" + data + b"gap" + other + index.tobytes())
    return folder


@settings(max_examples=10 * RUNS, deadline=None)
@given(frame=frames(), selection=selections)
def test_parts_are_parts_of_the_whole(tmp_path_factory, frame, selection):
    values, data = frame
    folder = stored(tmp_path_factory.mktemp("parts"), values, data)
    part = opened(folder, "native", mode="r").oindex[selection]
    expected = values[np.ix_(*axes(selection))].reshape(np.shape(part))
    assert bits(part, values.dtype) == bits(expected)


@settings(max_examples=10 * RUNS, deadline=None)
@given(frame=frames(), selection=selections, shift=st.integers(0, SHAPE[0]), cache=st.sampled_from([0, 10**7]))
def test_parts_of_chunks_in_shards_are_parts_of_the_whole(tmp_path_factory, frame, selection, shift, cache):
    values, data = frame
    folder = stored_in_shard(tmp_path_factory.mktemp("shard"), values, data)
    values = np.concatenate([values, values[::-1]])[shift:]
    rows, *others = selection
    if isinstance(rows, slice):
        moved = slice(rows.start + shift, rows.stop + shift, rows.step)
    else:
        moved = [row + shift for row in rows] if isinstance(rows, list) else rows + shift
    array = omnizarr.open_array(folder, mode="r", config={"engine": "native", "chunk_cache": cache})
    for _ in range(2):
        part = array.oindex[moved, *others]
        columns = np.atleast_1d(np.arange(SHAPE[1])[others[0] if others else slice(None)])
        expected = values[np.ix_(np.atleast_1d(np.arange(len(values))[rows]), columns)]
        assert bits(part, values.dtype) == bits(expected.reshape(np.shape(part)))


def axes(selection):
    """Return the numbers along each dimension."""
    padded = (*selection, slice(None))[:2]
    return [np.atleast_1d(np.arange(size)[part]) for size, part in zip(SHAPE, padded, strict=True)]


@pytest.mark.parametrize("store", [stored, stored_in_shard])
@settings(max_examples=10 * RUNS, deadline=None)
@given(frame=frames(), selection=selections, damage=st.data())
def test_damaged_frames_are_errors_or_read_where_they_are_sound(tmp_path_factory, store, frame, selection, damage):
    values, data = frame
    broken = bytearray(data)
    if damage.draw(st.booleans()):
        # Header and offsets of blocks more often than the rest.
        at = damage.draw(st.one_of(st.integers(0, 60), st.integers(0, len(data) - 1)))
        broken[at] ^= damage.draw(st.integers(1, 255))
    else:
        del broken[damage.draw(st.integers(0, len(data) - 1)) :]
    folder = store(tmp_path_factory.mktemp("damaged"), values, bytes(broken))
    reference, native = (
        outcome(lambda engine=engine: opened(folder, engine, mode="r").oindex[selection])
        for engine in ("reference", "native")
    )
    if native != reference:
        sound = store(tmp_path_factory.mktemp("sound"), values, data)
        assert native == outcome(lambda: opened(sound, "reference", mode="r").oindex[selection])


@pytest.mark.parametrize("store", [stored, stored_in_shard])
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the bytes that a process reads")
def test_an_element_is_read_without_the_rest_of_its_chunk(tmp_path, store):
    values = np.random.default_rng(0).integers(0, 2**62, SHAPE)
    data = blosc.compress(values.tobytes(), b"zstd", 1, blosc.SHUFFLE, 4096, 8)
    array = opened(store(tmp_path, values, data), "native", mode="r")
    array[0, 0]

    def read():
        lines = Path("/proc/self/io").read_text().split()
        return int(lines[lines.index("rchar:") + 1])

    before = read()
    assert array[200, 100] == values[200, 100]
    assert read() - before < len(data) / 8
