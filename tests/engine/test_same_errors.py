"""Whatever is wrong with a chunk, both engines raise the same, in reading and in writing, and leave the same behind."""

from __future__ import annotations

import errno
import os
import shutil
import struct
from pathlib import Path
from typing import NamedTuple

import google_crc32c
import numpy as np
import pytest

import omnizarr
from omnizarr.errors import OmnizarrError, StoreError
from omnizarr.stores import MemoryStore
from tests import damaged
from tests.engine.both import ENGINES, RUNS, bits, needs_native, needs_posix, opened, outcome
from tests.engine.layouts import named
from tests.fakes import FaultyStore
from tests.traced import own_threads

pytestmark = needs_native

BYTES = named("bytes", endian="little")
BIG = named("bytes", endian="big")
ZSTD = named("zstd", level=1, checksum=True)
CRC = named("crc32c")
SHAPE, CHUNKS = (8, 6), (4, 6)
VALUES = (np.arange(48).reshape(SHAPE) % 11).astype("i4")


def blosc(cname, shuffle, typesize=4):
    return named("blosc", cname=cname, clevel=5, shuffle=shuffle, typesize=typesize, blocksize=0)


def sharding(*codecs, index=(BYTES, CRC), location="end", inner=(2, 3)):
    return named(
        "sharding_indexed", chunk_shape=list(inner), codecs=list(codecs), index_codecs=list(index),
        index_location=location,
    )  # fmt: skip


CHAINS = {
    "raw": [BYTES],
    "big-endian": [BIG],
    "transposed": [named("transpose", order=[1, 0]), BYTES],
    "gzip": [BYTES, named("gzip", level=1)],
    "zlib": [BYTES, named("zlib", level=1)],
    "zstd": [BYTES, named("zstd", level=1, checksum=False)],
    "zstd with checksum": [BYTES, ZSTD],
    **{
        f"blosc {cname} {shuffle}": [BYTES, blosc(cname, shuffle)]
        for cname, shuffle in (
            ("lz4", "shuffle"),
            ("zstd", "bitshuffle"),
            ("zlib", "noshuffle"),
            ("blosclz", "shuffle"),
        )
    },
    "lz4": [BYTES, named("numcodecs.lz4", acceleration=1)],
    "crc32c": [BYTES, CRC],
    "crc32c at the start": [BYTES, named("numcodecs.crc32c", location="start")],
    "crc32": [BYTES, named("numcodecs.crc32", location="end")],
    "adler32": [BYTES, named("numcodecs.adler32")],
    "fletcher32": [BYTES, named("numcodecs.fletcher32")],
    "zstd, crc32c": [BYTES, ZSTD, CRC],
    "crc32c, gzip": [BYTES, CRC, named("gzip", level=1)],
    "shuffle, zstd": [BYTES, named("numcodecs.shuffle", elementsize=4), ZSTD],
    "packbits": [named("packbits", padding_encoding="first_byte", first_bit=0, last_bit=4)],
    "delta, gzip": [named("numcodecs.delta", dtype="<i4", astype="<i2"), BYTES, named("gzip", level=1)],
    "astype, zstd": [named("numcodecs.astype", encode_dtype="<i8", decode_dtype="<i4"), BYTES, ZSTD],
    "shard": [sharding(BYTES)],
    "shard, index first, no checksum": [sharding(BYTES, index=[BYTES], location="start")],
    "shard of zstd": [sharding(BYTES, ZSTD)],
    "shard of crc32c, big-endian index": [sharding(BYTES, CRC, index=[BIG, CRC], location="start")],
    "shard of shards": [sharding(sharding(BYTES, ZSTD, inner=(1, 3)), inner=(2, 6))],
    "compressed shard": [sharding(BYTES), ZSTD],
}


def flipped(data, place, bits=0xFF):
    changed = bytearray(data)
    changed[place] ^= bits
    return bytes(changed)


def damages(data):
    """Yield what may have become of a chunk."""
    yield from (
        data[:size] for size in {0, 1, 3, 4, 8, 16, len(data) // 2, len(data) - 5, len(data) - 4, len(data) - 1}
    )
    yield from (data + b"\0", data + data, b"\0" * len(data), b"\xff" * len(data), data[::-1], data[1:])
    places = sorted({*range(min(24, len(data))), *range(max(0, len(data) - 44), len(data)), len(data) // 2})
    for place in places if RUNS > 10 else places[::5]:
        yield from (flipped(data, place), flipped(data, place, 1), flipped(data, place, 0x80))


def create(store, codecs, values=VALUES):
    serializer = next(n for n, codec in enumerate(codecs) if codec["name"] in {"bytes", "packbits", "sharding_indexed"})
    array = omnizarr.create_array(
        store, shape=values.shape, dtype=values.dtype, chunks=CHUNKS, fill_value=5, filters=codecs[:serializer],
        serializer=codecs[serializer], compressors=codecs[serializer + 1 :],
    )  # fmt: skip
    array[...] = values


TASKS = {
    "read": lambda array: array[...],
    "read a part": lambda array: array[1, 2:4],
    "read rows": lambda array: array.oindex[[0, 3, 5], :],
    "read points": lambda array: array.vindex[[2, 3], [5, 0]],
    "write a part": lambda array: array.set_basic_selection((2, slice(1, 3)), 9),
    "write parts": lambda array: array.set_basic_selection((slice(1, 7), 2), 9),
}


REST = VALUES.copy()
REST[4:7, 2] = 9


def left_behind(store, values, result):
    """Return what a task has left of the chunk that it was about; of the other it may have written its part or not.

    Engines take chunks in any order, and compress the same elements to other bytes.
    """
    rest = outcome(lambda: opened(store, "reference", mode="r")[4:])
    assert rest in {outcome(lambda: VALUES[4:]), outcome(lambda: REST[4:])}
    if result is not None and isinstance(result[0], type):  # an error: nothing happened
        assert store.get("c/0/0") == values.get("c/0/0")
    return sorted(store.list()), outcome(lambda: opened(store, "reference", mode="r")[:4])


def differences(values, *, missing="fill"):
    """Return what the engines do differently with a store in memory."""
    store = MemoryStore(dict(values))
    arrays = [opened(store, engine, missing=missing) for engine in ENGINES]
    found = []
    for name, task in TASKS.items():
        results = []
        for array in arrays:
            result = outcome(lambda array=array, task=task: task(array))
            results.append((result, left_behind(store, values, result)))
            store.store_dict.clear()
            store.store_dict.update(values)
        if results[0] != results[1]:
            found.append((name, *results))
    return found


@pytest.mark.parametrize("codecs", CHAINS.values(), ids=CHAINS)
def test_a_damaged_chunk_is_the_same_error_with_both(codecs):
    values = {}
    create(values, codecs)
    whole = values["c/0/0"]
    for data in damages(whole):
        assert not differences({**values, "c/0/0": data}), data


@pytest.mark.parametrize("codecs", CHAINS.values(), ids=CHAINS)
def test_a_missing_chunk_is_the_same_error_with_both(codecs):
    values = {}
    create(values, codecs)
    del values["c/0/0"]
    assert not differences(values, missing="error")
    assert not differences(values)


@pytest.mark.parametrize("size", [0, 1, 65_536, 100_000, 122_880, 245_759, 245_760, 245_761, 300_000])
@pytest.mark.parametrize("endian", ["little", "big"])
@pytest.mark.parametrize("kind", ["memory", "local"])
def test_a_large_chunk_of_another_size_is_the_same_with_both(kind, endian, size, tmp_path):
    # Of those, what is needed is read alone. One that is longer is noticed only if all is needed.
    store = {} if kind == "memory" else tmp_path
    array = omnizarr.create_array(
        store,
        shape=(240, 512),
        chunks=(120, 512),
        dtype="i4",
        serializer=named("bytes", endian=endian),
        compressors=None,
    )
    array[...] = np.arange(240 * 512).reshape(240, 512)
    whole = bytes(array.store.get("c/0/0")) * 2
    array.store.set("c/0/0", whole[:size])
    first, second = (opened(store, engine) for engine in ENGINES)
    for selection in (..., 0, slice(60, 61), slice(0, 119), slice(110, 130), (slice(None), 3), (0, 0), (119, 511)):
        assert outcome(lambda at=selection: second[at]) == outcome(lambda at=selection: first[at]), selection


ABSENT = 2**64 - 1
# Four chunks of 24 bytes and an index that says: offset and size of each.
INDEXES = {
    "overlapping": [(0, 24), (12, 24), (24, 24), (36, 24)],
    "all the same": [(0, 24)] * 4,
    "beyond the end": [(0, 24), (24, 24), (1000, 24), (72, 24)],
    "just beyond the end": [(0, 24), (24, 24), (48, 24), (73, 24)],
    "within the index": [(0, 24), (24, 24), (48, 24), (90, 24)],
    "too large": [(0, 24), (24, 24), (48, 24), (72, 2**40)],
    "offset and size overflow": [(0, 24), (24, 24), (48, 24), (2**64 - 10, 24)],
    "largest offset": [(2**63, 24), (24, 24), (48, 24), (2**63 - 1, 2**63 - 1)],
    "offset without size": [(0, 24), (24, ABSENT), (48, 24), (72, 24)],
    "size without offset": [(0, 24), (ABSENT, 24), (48, 24), (72, 24)],
    "size of zero": [(0, 24), (24, 0), (48, 24), (72, 24)],
    "wrong sizes": [(0, 23), (24, 25), (48, 24), (72, 24)],
    "one missing": [(0, 24), (ABSENT, ABSENT), (48, 24), (72, 24)],
    "all missing": [(ABSENT, ABSENT)] * 4,
    "another order": [(72, 24), (48, 24), (24, 24), (0, 24)],
}


@pytest.mark.parametrize("missing", ["fill", "error"])
@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("entries", INDEXES.values(), ids=INDEXES)
def test_a_strange_index_of_a_shard_is_the_same_with_both(entries, location, missing):
    values = {}
    create(values, [sharding(BYTES, location=location)])
    shift = 68 if location == "start" else 0
    index = b"".join(struct.pack("<QQ", offset if offset == ABSENT else (offset + shift) % 2**64, size)
                     for offset, size in entries)  # fmt: skip
    index += struct.pack("<I", google_crc32c.value(index))
    chunks = values["c/0/0"][68:] if location == "start" else values["c/0/0"][:-68]
    assert len(chunks) == 96
    shard = index + chunks if location == "start" else chunks + index
    assert not differences({**values, "c/0/0": shard}, missing=missing)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", damaged.STORES, ids=lambda case: case.name)
def test_damaged_hierarchies_are_the_same_with_both(case, tmp_path):
    folder = damaged.build(case, tmp_path)

    def read(engine):
        with omnizarr.config.set({"engine": engine}):
            return omnizarr.open_array(folder, path=case.expected[0][1] or None, mode="r")[...]

    assert outcome(lambda: read("native")) == outcome(lambda: read("reference"))


# -- the file system ---------------------------------------------------------------


class Place(NamedTuple):
    """Where a chunk is, and a path outside of its store."""

    root: Path
    chunk: Path
    other: Path

    @property
    def lock(self) -> Path:
        return self.chunk.parent / ".omnizarr-0.lock"


def replaced(make):
    """Return a change: the chunk file gives way to what `make` puts in its place."""

    def change(place):
        place.chunk.unlink()
        make(place)

    return change


def linked(source, target):
    """Return a change: what exists is moved to another place, and a link leads to it."""

    def change(place):
        shutil.move(source(place), target(place))
        source(place).symlink_to(target(place))

    return change


def file_for_folder(place):
    shutil.rmtree(place.chunk.parent)
    place.chunk.parent.write_bytes(b"x")


CHANGES = {
    "a directory": replaced(lambda at: at.chunk.mkdir()),
    "a directory that is not empty": replaced(lambda at: (at.chunk / "x").mkdir(parents=True)),
    "a pipe": replaced(lambda at: os.mkfifo(at.chunk)),
    "a link to nowhere": replaced(lambda at: at.chunk.symlink_to(at.root / "nowhere")),
    "a link to itself": replaced(lambda at: at.chunk.symlink_to(at.chunk)),
    "a link to a directory": replaced(lambda at: at.chunk.symlink_to(at.root)),
    "a link to a device": replaced(lambda at: at.chunk.symlink_to("/dev/zero")),
    "a link out of the root": linked(lambda at: at.chunk, lambda at: at.other),
    "a link inside the root": linked(lambda at: at.chunk, lambda at: at.root / "elsewhere"),
    "a folder linked out of the root": linked(lambda at: at.chunk.parent, lambda at: at.other),
    "a folder linked inside the root": linked(lambda at: at.chunk.parent, lambda at: at.root / "elsewhere"),
    "a folder that is a file": file_for_folder,
    "no folder": lambda at: shutil.rmtree(at.chunk.parent),
    "not to be read": lambda at: at.chunk.chmod(0),
    "an empty file": lambda at: at.chunk.write_bytes(b""),
    "a longer file": lambda at: at.chunk.write_bytes(at.chunk.read_bytes() + b"\0"),
    "a lock that is a directory": lambda at: at.lock.mkdir(),
    "a lock that is a link": lambda at: at.lock.symlink_to(at.other),
    "an unused lock file": lambda at: at.lock.touch(),
}


def tree(root):
    """Return what is below a directory, except the chunk that any engine may have written in part, or not."""
    return {
        str(path.relative_to(root)): str(path.readlink()) if path.is_symlink() else path.is_file() and path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.relative_to(root).parts[:2] != ("c", "1")
    }


@needs_posix
@pytest.mark.parametrize(
    "codecs", [CHAINS["raw"], CHAINS["zstd"], CHAINS["shard of zstd"]], ids=["raw", "zstd", "shard"]
)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_stands_in_place_of_a_file_is_the_same_with_both(change, codecs, tmp_path):
    root, other = tmp_path / "a.zarr", tmp_path / "other"
    whole = lambda array: array.set_basic_selection((slice(0, 4), slice(None)), 9)  # noqa: E731
    for name, task in {**TASKS, "write a whole chunk": whole}.items():
        results = []
        for engine in ENGINES:
            create(root, codecs)
            change(Place(root, root / "c/0/0", other))
            array = opened(root, engine)
            result = outcome(lambda array=array, task=task: task(array))
            rest = bits(opened(root, "reference", mode="r")[4:])
            assert rest in {bits(VALUES[4:]), bits(REST[4:])}
            results.append((result, sorted(tree(root)), outcome(lambda: opened(root, "reference", mode="r")[:4])))
            for place in (root, other):
                shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
        assert results[0] == results[1], name


@needs_posix
def test_a_full_disk_is_the_same_error_with_both(tmp_path):
    # A limit on the size of files stands in for it: the system says so with an error of its own.
    import resource
    import signal

    create(tmp_path, CHAINS["raw"])
    before = tree(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, limits[1]))
    try:
        found = [
            outcome(lambda engine=engine: opened(tmp_path, engine).set_basic_selection(0, 9)) for engine in ENGINES
        ]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert found[0] == found[1]
    assert issubclass(found[0][0], StoreError)
    assert os.strerror(errno.EFBIG) in found[0][1]
    assert tree(tmp_path) == before


# -- stores that fail --------------------------------------------------------------


REQUESTS = {
    "get": lambda array: array[...],
    "set": lambda array: array.set_basic_selection(slice(0, 4), 9),
    "lock": lambda array: array.set_basic_selection(1, 9),
    "delete": lambda array: array.set_basic_selection(slice(0, 4), 5),
}


@pytest.mark.parametrize("verb", REQUESTS)
@pytest.mark.parametrize("error", [None, RuntimeError("of its own"), KeyError("x"), OSError(5, "worn out")], ids=repr)
def test_the_error_of_a_store_is_passed_on(verb, error):
    values = {}
    create(values, CHAINS["zstd"])
    found = []
    for engine in ENGINES:
        store = FaultyStore(MemoryStore(dict(values)))
        array = opened(store, engine)
        store.fail(verb, 1, error)
        with pytest.raises((OmnizarrError, RuntimeError, KeyError, OSError)) as raised:
            REQUESTS[verb](array)
        said = str(raised.value).replace(repr(store), "")
        found.append((type(raised.value), said, getattr(raised.value, "key", None)))
        assert array.store is store
        assert opened(store, "reference")[4:].tolist() == VALUES[4:].tolist()
    assert found[0][:1] + found[0][2:] == found[1][:1] + found[1][2:]


def test_of_several_threads_that_fail_one_is_heard(tmp_path):
    values = np.arange(64 * 65536, dtype="i4")
    array = omnizarr.create_array(tmp_path, data=values, chunks=(65536,))
    for number in range(0, 64, 3):
        Path(tmp_path, f"c/{number}").write_bytes(b"broken")
    before = own_threads()
    for _ in range(5):
        with pytest.raises(omnizarr.errors.ChunkError) as raised:
            opened(tmp_path, "native")[...]
        assert raised.value.coords[0] % 3 == 0
        assert raised.value.key == f"c/{raised.value.coords[0]}"
    assert own_threads() <= before
    assert array[65536:131072].tolist() == values[65536:131072].tolist()
