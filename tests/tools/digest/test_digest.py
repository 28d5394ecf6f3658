"""`omnizarr.digest` against a second implementation, written from the page "Digests" of the manual alone."""

import hashlib
import importlib
import itertools
import json
import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import omnizarr
from omnizarr.errors import ChunkError, MissingDependencyError, NotRepresentableError
from omnizarr.stores import MemoryStore, WrapperStore
from omnizarr.tools.digest import report as digests
from tests.tools import hierarchies

DTYPES = ["?", "i1", ">u2", "<i4", "i8", "f2", ">f4", "f8", "c8", "c16", "M8[s]", "m8[ms]", "S3", "U2"]
CANONICAL = {"f2": 0x7E00, "f4": 0x7FC00000, "f8": 0x7FF8000000000000}


def sha(data):
    return hashlib.sha256(data).digest()


# The manual in plain Python: slow, element by element.


def element(value, dtype):
    if dtype.names is not None:
        return b"".join(element(value[name], dtype[name]) for name in dtype.names)
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return element(part.type(value.real), part) + element(part.type(value.imag), part)
    if dtype.kind == "f":
        if math.isnan(value):
            return CANONICAL[f"f{dtype.itemsize}"].to_bytes(dtype.itemsize, "little")
        value = abs(value) if value == 0 else value
    if dtype.kind == "T":
        text = str(value).encode()
        return struct.pack("<Q", len(text)) + text
    return np.asarray(value, dtype.newbyteorder("<")).tobytes()


def cut(lengths, most):
    sides = [1] * len(lengths)
    for limit in (512, math.inf):
        for axis, length in reversed(list(enumerate(lengths))):
            while sides[axis] < length and sides[axis] < limit and 2 * math.prod(sides) <= most:
                sides[axis] *= 2
    return sides


def boxes(values, most):
    """Yield the place and the elements of each box of at most so many."""
    sides = cut(values.shape, most)
    counts = [-(-length // side) for length, side in zip(values.shape, sides, strict=True)]
    for at in itertools.product(*map(range, counts)):
        yield at, values[(*(slice(n * side, (n + 1) * side) for n, side in zip(at, sides, strict=True)), ...)]


def grid(found):
    digests = np.empty([1 + max(at) for at in zip(*(at for at, _ in found), strict=True)], object)
    for at, digest in found:
        digests[at] = digest
    return digests


def root(values):
    if not values.size:
        return sha(b"")
    digests = grid([(at, sha(serial(part))) for at, part in boxes(values, 2**14)])
    while digests.size > 1:
        digests = grid([(at, sha(b"".join(part.reshape(-1)))) for at, part in boxes(digests, 2**8)])
    return digests.reshape(-1)[0]


def serial(part):
    if part.dtype == np.uint8:  # bytes are themselves
        return part.tobytes()
    return b"".join(element(value, part.dtype) for value in part.reshape(-1))


def node(**members):
    text = json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha(b"omnizarr1\n" + text.encode()).hex()


def array_node(values, data_type, attributes=None, dimension_names=None):
    return node(
        kind="array",
        attributes=attributes or {},
        shape=list(values.shape),
        data_type=data_type,
        dimension_names=dimension_names,
        values=root(values).hex(),
    )


def name_of(dtype):
    match dtype.kind:
        case "U":
            return f"text[{dtype.itemsize // 4}]"
        case "S":
            return f"bytes[{dtype.itemsize}]"
        case "V":
            return f"raw[{dtype.itemsize}]"
    return dtype.name


def stored(values, **options):
    made = omnizarr.create_array({}, shape=values.shape, dtype=values.dtype, **options)
    made[...] = values
    return made


@settings(deadline=None)
@given(st.data())
def test_digest_is_that_of_the_manual(data):
    dtype = np.dtype(data.draw(st.sampled_from(DTYPES)))
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, max_side=9))
    values = data.draw(hnp.arrays(dtype, shape))
    chunks = tuple(data.draw(st.integers(1, length)) for length in shape)
    options = {"zarr_format": data.draw(st.sampled_from([2, 3])), "fill_value": data.draw(hnp.from_dtype(dtype))}
    found = omnizarr.digest(stored(values, chunks=chunks, **options))
    assert found.digest == f"omnizarr1:sha256:{array_node(values, name_of(dtype))}"


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_large_arrays_in_any_chunks_in_little_memory(data):
    """Enough blocks for several levels, and so little memory that regions are cut."""
    shape = data.draw(st.sampled_from([(2**20 + 3,), (1500, 1100), (130, 90, 101), (1, 3, 40, 70, 50)]))
    values = np.random.default_rng(1).integers(0, 200, shape, "u1")
    part = tuple(slice(data.draw(st.integers(0, n // 2)), data.draw(st.integers(n // 2, n))) for n in shape)
    written = np.full(shape, 9, "u1")
    written[part] = values[part]
    chunks = tuple(data.draw(st.integers(max(1, length // 6), length)) for length in shape)
    array = omnizarr.create_array({}, shape=shape, dtype="u1", chunks=chunks, fill_value=9, compressors=None)
    array[part] = values[part]
    memory = data.draw(st.sampled_from([None, 2**15, 2 * math.prod(chunks) + 2**16]))
    assert omnizarr.digest(array, max_memory=memory).digest.endswith(array_node(written, "uint8"))


def test_hierarchy():
    group = omnizarr.create_group({}, attributes={"b": [1.5, None], "a": "ü"})
    values = np.array([1, 2], "i2")
    group.create_array("x", data=values, dimension_names=["t"], attributes={"units": "K"})
    group.create_group("g")
    x = array_node(values, "int16", {"units": "K"}, ["t"])
    g = node(kind="group", attributes={}, members={})
    top = node(kind="group", attributes={"b": [1.5, None], "a": "ü"}, members={"x": x, "g": g})
    assert str(omnizarr.digest(group)).splitlines() == [
        f"omnizarr1:sha256:{top}  /",
        f"omnizarr1:sha256:{g}  /g",
        f"omnizarr1:sha256:{x}  /x",
    ]


def test_text_of_any_length_and_records():
    texts = np.array(["", "ü€", "x" * 40], "T")
    assert omnizarr.digest(stored(texts)).digest.endswith(array_node(texts, "string"))
    raw = np.array([b"abc", b"\0\1\2"], "V3")
    assert omnizarr.digest(stored(raw)).digest.endswith(array_node(raw, "raw[3]"))
    records = hierarchies.RECORDS
    name = '{"a": int32, "b": float64, "c": bytes[3]}'
    assert omnizarr.digest(stored(records, zarr_format=2)).digest.endswith(array_node(records, name))


def test_all_that_is_equal_has_the_same_digest():
    values = np.array([0.0, np.nan, 1], "f4")
    other = np.array([-0.0, 0, 1], ">f4")
    other[1:2] = hierarchies.nan_with_payload("f4")[:1]
    assert omnizarr.digest(stored(values)) == omnizarr.digest(stored(other, zarr_format=2))


@pytest.mark.parametrize("value", [np.nan, -0.0, 1.5, complex(np.nan, -0.0)], ids=str)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_array_without_dimensions(value, zarr_format):
    values = np.array(value)
    assert omnizarr.digest(stored(values, zarr_format=zarr_format)).digest.endswith(
        array_node(values, values.dtype.name)
    )


@pytest.mark.parametrize(
    "other",
    [
        np.array([1, 2, 3], "i4"),
        np.array([1, 2, 4], "i2"),
        np.array([[1, 2, 3]], "i2"),
        np.array([1, 2, 3], "u2"),
    ],
    ids=["type", "value", "shape", "sign"],
)
def test_what_differs_has_another_digest(other):
    assert omnizarr.digest(stored(np.array([1, 2, 3], "i2"))) != omnizarr.digest(stored(other))


def test_missing_chunks_need_not_be_read_nor_counted():
    sparse = omnizarr.create_array({}, shape=(10**9, 10**9, 10**6), chunks=(10, 10, 10), dtype="u8", fill_value=5)
    empty = omnizarr.digest(sparse)
    sparse[10**8, 5, 7] = 5
    assert omnizarr.digest(sparse) == empty
    sparse[10**8, 5, 7] = 6
    assert omnizarr.digest(sparse) != empty


def test_empty_array():
    values = np.zeros((0, 3), "f8")
    assert omnizarr.digest(stored(values)).digest.endswith(array_node(values, "float64"))


@pytest.mark.parametrize("algorithm", ["blake2b", "blake3"])
def test_other_algorithms(algorithm):
    values = np.arange(10, dtype="u1")
    if algorithm == "blake3":
        blake3 = pytest.importorskip("blake3", reason="the package of that name is optional").blake3
        hashed = lambda data: blake3(data).digest()  # noqa: E731
    else:
        hashed = lambda data: hashlib.blake2b(data, digest_size=32).digest()  # noqa: E731
    found = omnizarr.digest(stored(values), algorithm=algorithm)
    members = {
        "attributes": {},
        "data_type": "uint8",
        "dimension_names": None,
        "kind": "array",
        "shape": [10],
        "values": hashed(values.tobytes()).hex(),
    }
    text = json.dumps(members, separators=(",", ":"))
    assert found.digest == f"omnizarr1:{algorithm}:{hashed(b'omnizarr1' + bytes([10]) + text.encode()).hex()}"


def test_algorithm_that_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "blake3", None)
    with pytest.raises(MissingDependencyError, match=r"omnizarr\[blake3\]"):
        omnizarr.digest(stored(np.arange(3)), algorithm="blake3")
    with pytest.raises(ValueError, match="md5"):
        omnizarr.digest(stored(np.arange(3)), algorithm="md5")


def test_broken_chunk_has_no_digest():
    store = {}
    omnizarr.create_array(store, data=np.arange(100), chunks=10)
    store["c/4"] = b"broken"
    with pytest.raises(ChunkError, match="c/4"):
        omnizarr.digest(store)


def test_object_that_is_no_json_has_no_digest():
    store, pickled = {}, {"object_codec": {"id": "pickle"}, "allow_pickle": True}
    made = omnizarr.create_array(store, shape=1, dtype=object, zarr_format=2, **pickled)
    made[0] = {1, 2}
    with pytest.raises(NotRepresentableError, match="set"):
        omnizarr.digest(store, allow_pickle=True)


class TestFile:
    def test_text_is_read_as_it_was_printed(self, tmp_path):
        group = omnizarr.create_group({})
        for name in ("a", "b c", "ü", "back\\slash"):
            group[name] = [1]
        found = omnizarr.digest(group)
        file = tmp_path / "digests"
        file.write_text(f"# made today\n\n{found}\n", encoding="utf-8")
        assert digests.expected(file) == {each.path: each.digest for each in found}
        assert digests.expected(found) == digests.expected(file)

    @pytest.mark.parametrize("text", ["", "# nothing\n", "abc  /x\n", "omnizarr1:sha256:12  /x\n"])
    def test_other_text_is_refused(self, text):
        with pytest.raises(ValueError, match="omnizarr digest"):
            digests.parse(text)


class TestChecking:
    @pytest.fixture
    def store(self):
        store = {}
        group = omnizarr.create_group(store, attributes={"title": "t"})
        group["a"], group["b/c"], group["b/d"] = np.arange(5), np.arange(6.0), ["x"]
        return store

    def found(self, store, digest):
        report = omnizarr.check(store, digest=digest)
        return [(each.code, each.path) for each in report if each.code.startswith("digest")]

    def test_what_was_not_changed_has_its_digests(self, store, tmp_path):
        file = tmp_path / "digests"
        file.write_text(str(omnizarr.digest(store)))
        assert omnizarr.check(store, digest=file).ok
        omnizarr.convert(store, tmp_path / "other", zarr_format=2)
        assert self.found(tmp_path / "other", file) == []
        assert self.found(store, omnizarr.digest(store).digest) == []

    def test_node_that_was_changed_is_named_and_no_other(self, store):
        before = omnizarr.digest(store)
        omnizarr.open(store, mode="r+")["b/c"][3] = 7
        assert self.found(store, before) == [("digest-mismatch", "b/c")]
        assert self.found(store, before.digest) == [("digest-mismatch", "")]

    def test_attributes_of_a_group(self, store):
        before = omnizarr.digest(store)
        omnizarr.open(store, mode="r+")["b"].attrs["new"] = 1
        assert self.found(store, before) == [("digest-mismatch", "b")]

    def test_nodes_that_came_and_went(self, store):
        before = omnizarr.digest(store)
        group = omnizarr.open(store, mode="r+")
        del group["a"]
        group["b/e"] = [1]
        assert self.found(store, before) == [("digest-missing", "a"), ("digest-unlisted", "b/e")]

    def test_chunk_that_cannot_be_read(self, store):
        before = omnizarr.digest(store)
        store["a/c/0"] = b"broken"
        report = omnizarr.check(store, digest=before)
        (finding,) = [each for each in report if each.code == "digest-mismatch"]
        assert finding.path == "a"
        assert "a/c/0" in finding.message

    def test_part_of_a_hierarchy(self, store):
        assert omnizarr.check(store, path="b", digest=omnizarr.digest(store, path="b")).ok

    def test_several_algorithms_are_refused(self, store):
        mixed = {"": omnizarr.digest(store).digest, "a": omnizarr.digest(store, algorithm="blake2b").digest}
        with pytest.raises(ValueError, match="several algorithms"):
            omnizarr.check(store, digest=mixed)


# Stored bytes


def dandi(files):
    """Return DANDI's checksum by its own specification, directory by directory."""
    members = {"directories": {}, "files": {}}
    for name in sorted({key.partition("/")[0] for key in files}):
        below = {key.partition("/")[2]: data for key, data in files.items() if key.startswith(f"{name}/")}
        if below:
            checksum = dandi(below)
            members["directories"][name] = checksum, int(checksum.rpartition("--")[2])
        else:
            members["files"][name] = hashlib.md5(files[name]).hexdigest(), len(files[name])
    manifest = {
        kind: [{"digest": digest, "name": name, "size": size} for name, (digest, size) in listed.items()]
        for kind, listed in members.items()
    }
    text = json.dumps(manifest, separators=(",", ":"))
    return f"{hashlib.md5(text.encode()).hexdigest()}-{len(files)}--{sum(map(len, files.values()))}"


class TestStoredBytes:
    def test_of_known_files(self, tmp_path):
        """Made by zarr_checksum 0.4.7: ``zarrsum local DIRECTORY``."""
        (tmp_path / "1" / "2").mkdir(parents=True)
        (tmp_path / "1" / "2" / "a").write_bytes(b"alpha")
        (tmp_path / "1" / "ü").write_bytes(b"")
        (tmp_path / "1.b").write_bytes(b"beta")
        (tmp_path / ".zgroup").write_bytes(b"{}")
        assert omnizarr.digest_of_bytes(tmp_path) == "7afc5f680f5db69cefe41c21b7e6aca0-4--11"

    def test_of_a_hierarchy_in_any_store(self, tmp_path):
        store = {}
        hierarchies.make(store, 2)
        files = {key: bytes(value) for key, value in store.items()}
        assert omnizarr.digest_of_bytes(store) == dandi(files)
        omnizarr.copy_store(store, tmp_path / "x.zarr")
        assert omnizarr.digest_of_bytes(tmp_path / "x.zarr") == dandi(files)
        inside = {key.removeprefix("types/"): data for key, data in files.items() if key.startswith("types/")}
        assert omnizarr.digest_of_bytes(tmp_path / "x.zarr", path="types") == dandi(inside)

    def test_of_large_values_in_pieces_or_at_once(self, tmp_path, monkeypatch):
        monkeypatch.setattr(importlib.import_module("omnizarr.tools.digest.digester"), "_PIECE", 4)
        files = {"less": b"123", "one": b"1234", "two": b"12345678", "more": b"123456789", "none": b""}
        for key, value in files.items():
            (tmp_path / key).write_bytes(value)
        assert omnizarr.digest_of_bytes(tmp_path) == dandi(files)
        asked = []

        class Whole(WrapperStore):
            """A store that makes all of a value to return a part."""

            def get(self, key, span=None):
                asked.append((key, span))
                return super().get(key, span)

        assert omnizarr.digest_of_bytes(Whole(MemoryStore(files))) == dandi(files)
        assert sorted(each for each in asked if each[0] in files) == [(key, None) for key in sorted(files)]

    def test_of_a_value_that_is_replaced_while_it_is_read(self, tmp_path, monkeypatch):
        digester = importlib.import_module("omnizarr.tools.digest.digester")
        monkeypatch.setattr(digester, "_PIECE", 4)
        path, plain, left = tmp_path / "a", digester.pieces, [b"abcdefgh"]
        path.write_bytes(b"12345678")

        def replacing(*args):
            for piece in plain(*args):
                yield piece
                if left:
                    path.write_bytes(left.pop())

        monkeypatch.setattr(digester, "pieces", replacing)
        assert omnizarr.digest_of_bytes(tmp_path) == dandi({"a": b"abcdefgh"})
