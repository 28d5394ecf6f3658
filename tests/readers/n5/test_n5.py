"""N5, read and written: TensorStore, and hierarchies of z5py and zarr-python 2, say what is in it."""

import gzip
import itertools
import json
import pickle
import random
import shutil
import struct
import subprocess
import sys
import threading
import time
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.cli import main
from omnizarr.errors import (
    ChunkError,
    ChunkSizeError,
    NodeNotFoundError,
    NotRepresentableError,
    OmnizarrError,
    ReadOnlyError,
)
from omnizarr.nodes import erasing
from omnizarr.readers.n5 import blocks, documents
from omnizarr.readers.n5 import store as stores_of_n5
from omnizarr.readers.n5.store import N5Store
from omnizarr.stores import LocalStore, MemoryStore, kinds, verbs
from omnizarr.stores.base import answers
from tests.engine.both import needs_native

DATA = Path(__file__).parent / "data"
TYPES = sorted(documents.SIZES)
COMPRESSIONS = [
    {"type": "raw"},
    {"type": "gzip"},
    {"type": "gzip", "level": 3, "useZlib": True},
    {"type": "bzip2", "blockSize": 2},
    {"type": "xz", "preset": 1},
    {"type": "zstd"},
    {"type": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 2, "blocksize": 0},
]
BIG = {"name": "bytes", "configuration": {"endian": "big"}}


def values(dtype, shape=(3, 5, 6)):
    return (np.arange(np.prod(shape)) % 120 + 1).reshape(shape).astype(dtype)


def about(dimensions, block, data_type="uint8", compression=None, **attributes):
    shape = {"dimensions": dimensions, "blockSize": block, "dataType": data_type}
    return json.dumps({**shape, "compression": compression or {"type": "raw"}, **attributes}).encode()


def block(shape, payload, mode=0, number=None):
    head = struct.pack(f">HH{len(shape)}I", mode, len(shape), *shape)
    return head + (b"" if number is None else struct.pack(">I", number)) + payload


def of_tensorstore(path, **metadata):
    ts = pytest.importorskip("tensorstore", reason="TensorStore says what is in N5")
    spec = {"driver": "n5", "kvstore": {"driver": "file", "path": str(path)}}
    return ts.open({**spec, "metadata": metadata} if metadata else spec, create=bool(metadata)).result()


# -- what others wrote


@pytest.mark.parametrize("name", ["z5", "zarr2"])
def test_hierarchies_of_others_hold_their_values(name, tmp_path):
    with zipfile.ZipFile(DATA / f"{name}.n5.zip") as archive:
        archive.extractall(tmp_path / "x.n5")
    for place in (tmp_path / "x.n5", DATA / f"{name}.n5.zip", f"n5://{DATA}/{name}.n5.zip"):
        arrays = {
            path: node
            for path, node in omnizarr.open_group(place, mode="r").members(max_depth=None)
            if isinstance(node, omnizarr.Array)
        }
        assert len(arrays) == {"z5": 22, "zarr2": 24}[name]
        for path, array in arrays.items():
            expected = values(path.split("/")[0])
            assert (array.dtype, array.shape, array.chunks) == (expected.dtype, (3, 5, 6), (2, 3, 4))
            assert np.array_equal(array[...], expected), path
            assert np.array_equal(array[1:, 2:4, 5], expected[1:, 2:4, 5]), path


def test_attributes_of_others_are_shown_without_those_of_the_format():
    assert dict(omnizarr.open(DATA / "zarr2.n5.zip").attrs) == {"title": "a volume"}
    assert dict(omnizarr.open(DATA / "z5.n5.zip")["int16/raw"].attrs) == {"resolution": [4, 4, 40]}


@pytest.mark.parametrize("compression", COMPRESSIONS, ids=lambda each: "-".join(map(str, each.values())))
@pytest.mark.parametrize("dtype", TYPES)
def test_what_tensorstore_writes_is_read(tmp_path, dtype, compression):
    expected = values(dtype)
    made = of_tensorstore(
        tmp_path / "x.n5" / "v", dimensions=[6, 5, 3], blockSize=[4, 3, 2], dataType=dtype, compression=compression
    )
    made[...] = expected.T
    array = omnizarr.open(tmp_path / "x.n5" / "v")
    assert array.dtype == dtype
    assert np.array_equal(array[...], expected)


@pytest.mark.parametrize("compression", COMPRESSIONS, ids=lambda each: "-".join(map(str, each.values())))
@pytest.mark.parametrize("dtype", TYPES)
def test_what_is_written_is_read_by_tensorstore_and_truncated(tmp_path, dtype, compression):
    expected = values(dtype)
    place = tmp_path / "x.n5"
    document, _ = documents.load(json.loads(about([6, 5, 3], [4, 3, 2], dtype, compression)))
    N5Store(LocalStore(place)).set("v/zarr.json", json.dumps(document).encode())
    array = omnizarr.open_array(place, path="v", mode="r+")
    array[...] = expected
    array[1:, 2:4, 5] = expected[1:, 2:4, 5]  # parts of chunks
    assert np.array_equal(of_tensorstore(place / "v").read().result(), expected.T)
    assert np.array_equal(omnizarr.open(place)["v"][...], expected)
    assert json.loads((place / "attributes.json").read_text()) == {"n5": "2.0.0"}
    for at in itertools.product(range(2), range(2), range(2)):
        head = (place / "v").joinpath(*map(str, at)).read_bytes()[:16]
        shape = [min(most, size - most * n) for most, size, n in zip([4, 3, 2], [6, 5, 3], at, strict=True)]
        assert struct.unpack(">HH3I", head) == (0, 3, *shape)


@needs_native
@pytest.mark.parametrize("compression", COMPRESSIONS[:2] + COMPRESSIONS[-2:], ids=lambda each: each["type"])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_blocks_in_a_directory_are_read_without_python(tmp_path, dtype, compression, monkeypatch):
    """Only those at the far edges, which are smaller than a chunk, are made by the store."""
    expected = values(dtype, (6, 10, 13))
    document, _ = documents.load(json.loads(about([13, 10, 6], [4, 3, 2], dtype, compression)))
    N5Store(LocalStore(tmp_path / "x.n5")).set("v/zarr.json", json.dumps(document).encode())
    omnizarr.open_array(tmp_path / "x.n5", path="v", mode="r+")[...] = expected  # TensorStore writes no smaller blocks
    assert np.array_equal(of_tensorstore(tmp_path / "x.n5" / "v").read().result(), expected.T)
    (tmp_path / "x.n5" / "v" / "1" / "1" / "1").unlink()
    expected[2:4, 3:6, 4:8] = 0
    asked, get = [], N5Store._value
    monkeypatch.setattr(N5Store, "_value", lambda self, key, most: asked.append(key) or get(self, key, most))
    policy = {"engine": "native"}
    with omnizarr.config.set(policy):
        array = omnizarr.open(tmp_path / "x.n5" / "v", mode="r")
        asked.clear()
        inside = array[:6, :9, :12]
        parts = array[1:5, 2, 3:9:2], array[::3, 4:8, 11], array[2, 3, 4]
        assert not asked
        np.testing.assert_array_equal(array[...], expected)
    assert {key.rpartition("c/")[2] for key in asked if "c/" in key} == {
        f"{z}/{y}/{x}" for z in range(3) for y in range(4) for x in range(4) if y == 3 or x == 3
    }
    np.testing.assert_array_equal(inside, expected[:6, :9, :12])
    for part, key in zip(
        parts, ((slice(1, 5), 2, slice(3, 9, 2)), (slice(None, None, 3), slice(4, 8), 11), (2, 3, 4)), strict=True
    ):
        np.testing.assert_array_equal(part, expected[key])


@needs_native
def test_a_directory_that_is_written_is_read_through_the_store(tmp_path):
    """Blocks that become another size are no chunks any more, and are errors."""
    omnizarr.convert(omnizarr.create_array({}, data=values("i4"), chunks=(2, 3, 4)), f"n5://{tmp_path}/x.n5/v")
    with omnizarr.config.set({"engine": "native"}):
        reader = omnizarr.open(tmp_path / "x.n5" / "v", mode="r")
        writer = omnizarr.open(tmp_path / "x.n5" / "v", mode="r+")
        np.testing.assert_array_equal(reader[...], values("i4"))
        writer[0, 0, 0] = 77
        assert (reader[0, 0, 0], writer[0, 0, 0]) == (77, 77)
        (tmp_path / "x.n5" / "v" / "0" / "0" / "0").write_bytes(b"broken")
        with pytest.raises(OmnizarrError):
            reader[0, 0, 0]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("ndim", [1, 2, 4])
def test_other_ranks_and_blocks_that_are_larger_than_the_array(tmp_path, dtype, ndim):
    expected = values(dtype, (3, 2, 5, 4)[-ndim:])
    made = of_tensorstore(
        tmp_path / "v", dimensions=list(expected.shape[::-1]), blockSize=[7, 2, 2, 2][:ndim], dataType=dtype,
        compression={"type": "gzip"},
    )  # fmt: skip
    made[...] = expected.T
    assert np.array_equal(omnizarr.open(tmp_path / "v")[...], expected)


# -- doors


@pytest.fixture(scope="module")
def volume(tmp_path_factory):
    """A hierarchy with two groups without attributes, and two arrays."""
    place = tmp_path_factory.mktemp("n5") / "x.n5"
    with zipfile.ZipFile(DATA / "zarr2.n5.zip") as archive:
        archive.extractall(place / "volumes" / "raw")
    (place / "attributes.json").write_text('{"n5": "4.0.0", "by": "someone"}')
    return place


def test_every_path_into_a_hierarchy_opens(volume):
    assert dict(omnizarr.open(volume).attrs) == {"by": "someone"}
    assert list(omnizarr.open(volume)) == ["volumes"]
    assert list(omnizarr.open(volume / "volumes")) == ["raw"]
    for place in (volume / "volumes/raw/int16/gzip", f"n5://{volume}/volumes/raw/int16/gzip"):
        assert np.array_equal(omnizarr.open(place)[...], values("int16"))
    assert np.array_equal(omnizarr.open(volume, path="volumes/raw/int16/gzip")[0], values("int16")[0])
    for path in ("volumes/none", "volumes/raw/int16/gzip/0"):
        with pytest.raises(NodeNotFoundError):
            omnizarr.open(volume, path=path)


def test_directories_of_other_names_are_known_by_their_attributes(volume, tmp_path):
    shutil.copytree(volume, tmp_path / "other")
    assert list(omnizarr.open(tmp_path / "other")) == ["volumes"]
    shutil.copytree(volume / "volumes/raw/int16/gzip", tmp_path / "array")
    assert omnizarr.open(tmp_path / "array").shape == (3, 5, 6)


def test_zarr_of_such_a_name_stays_zarr(tmp_path):
    omnizarr.create_array(LocalStore(tmp_path / "x.n5"), data=[1, 2])
    (tmp_path / "x.n5" / "attributes.json").write_text('{"n5": "4.0.0"}')
    assert type(omnizarr.open(tmp_path / "x.n5").store) is LocalStore
    omnizarr.create_array(tmp_path / "y.n5" / "x.zarr", data=[1, 2])
    assert type(omnizarr.open(tmp_path / "y.n5" / "x.zarr").store) is LocalStore
    omnizarr.create_group(tmp_path / "g.zarr")
    omnizarr.create_array(tmp_path / "g.zarr" / "a.n5", data=[1, 2])
    assert type(omnizarr.open(tmp_path / "g.zarr" / "a.n5").store) is LocalStore


def test_over_http_where_nothing_can_be_listed(volume):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def list_directory(self, _):
            self.send_error(403)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(volume.parent)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        host = f"http://127.0.0.1:{server.server_address[1]}"
        for url in (f"{host}/x.n5", f"n5://{host}/x.n5"):
            assert np.array_equal(omnizarr.open(url, path="volumes/raw/int16/raw")[...], values("int16"))
        assert np.array_equal(omnizarr.open(f"{host}/x.n5/volumes/raw/int16/gzip")[1], values("int16")[1])
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("verb", ["info", "tree", "ls -r", "du", "stat", "check --data", "digest", "dump -h", "show"])
def test_commands(volume, verb, capsys):
    assert main([*verb.split(), str(volume / "volumes/raw/int16")]) == 0
    assert capsys.readouterr().out


def test_copy_in_zarr_is_equal(volume, tmp_path, capsys):
    source, target = str(volume / "volumes"), str(tmp_path / "x.zarr")
    assert main(["convert", source, target]) == 0
    assert main(["diff", source, target]) == 0
    assert np.array_equal(omnizarr.open(target)["raw/float64/xz"][...], values("float64"))
    capsys.readouterr()


def test_opens_in_xarray_with_names_of_dimensions(tmp_path):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    (tmp_path / "x.n5" / "v").mkdir(parents=True)
    (tmp_path / "x.n5" / "v" / "attributes.json").write_bytes(
        about([6, 5], [4, 3], axes=["x", "y"], units=["nm", "nm"])
    )
    found = xr.open_dataset(tmp_path / "x.n5", engine="omnizarr")
    assert dict(found.sizes) == {"y": 5, "x": 6}
    assert found.v.attrs["units"] == ["nm", "nm"]


def test_stores_can_be_pickled_and_listed(volume):
    store = pickle.loads(pickle.dumps(omnizarr.open(volume).store))
    keys = set(store.list())
    assert {"zarr.json", "volumes/zarr.json", "volumes/raw/int16/gzip/c/1/1/1"} <= keys
    assert not [key for key in keys if "attributes" in key]
    for key in sorted(keys):
        assert store.exists(key)
        assert store.size(key) == len(store.get(key))
    assert dict(verbs.list_sizes(store, "volumes/raw/int16/raw")).keys() == set(
        store.list_prefix("volumes/raw/int16/raw")
    )
    assert store.list_dir("volumes/raw/int16/raw").prefixes == ["volumes/raw/int16/raw/c/"]
    assert store.list_dir("volumes/raw/int16/raw/c/1").prefixes == [f"volumes/raw/int16/raw/c/1/{n}/" for n in (0, 1)]


def test_parts_of_blocks_are_parts_of_chunks(volume):
    store = omnizarr.open(volume).store
    for path, at in itertools.product(["raw", "gzip", "xz"], ["0/0/0", "1/1/1"]):
        key = f"volumes/raw/int16/{path}/c/{at}"
        value = bytes(store.get(key))
        for span in ((0, 4), (3, None), (5, 6), (-4, None), (len(value) + 5, None), (0, 10**9)):
            start, stop, _ = slice(*span).indices(len(value))
            assert bytes(store.get(key, span)) == value[start:stop]
            assert [bytes(part) for part in verbs.get_spans(store, key, [span, (1, 2)])] == [
                value[start:stop],
                value[1:2],
            ]
        out = bytearray(3)
        assert verbs.read_into(store, key, memoryview(out), 1) == len(value) - 1
        assert out == value[1:4]
    assert store.get("volumes/raw/int16/raw/c/9/9/9") is store.get("volumes/raw/int16/raw/c/0/0") is None


def test_a_raw_array_is_read_by_ranges(volume):
    asked = []

    class Asked(LocalStore):
        @answers(verbs.get_spans)
        def _get_spans(self, key, spans):
            asked.append((key, list(spans)))
            return NotImplemented

    store = N5Store(Asked(volume / "volumes/raw/int16/raw", read_only=True))
    assert bytes(store.get("c/0/0/0", (2, 4))) == values(">i2")[0, 0, 1:2].tobytes()
    assert asked == [("0/0/0", [(0, 16), (18, 20)])]


# -- writing


def test_changes_of_documents_keep_what_n5_says(tmp_path):
    place = tmp_path / "x.n5" / "v"
    place.mkdir(parents=True)
    given = {"type": "gzip", "level": -1, "useZlib": False}
    (place / "attributes.json").write_bytes(about([6, 5], [4, 3], "uint16", given, axes=["x", "y"], other={"a": [1]}))
    array = omnizarr.open_array(place, mode="r+")
    array.attrs["new"] = 1
    array.resize((9, 6))
    found = json.loads((place / "attributes.json").read_text())
    expected = json.loads(about([6, 9], [4, 3], "uint16", given, axes=["x", "y"], other={"a": [1]}, new=1))
    assert found == expected


def test_values_that_another_program_may_have_added_are_not_cut_off():
    store = MemoryStore({"attributes.json": about([3], [4])})
    shown = N5Store(store)
    shown.set("c/0", b"\1\2\3\0")
    assert bytes(store.get("0")) == block([3], b"\1\2\3")
    shown.set("c/0", b"\1\2\3\4")
    assert bytes(store.get("0")) == block([4], b"\1\2\3\4")
    shown.set("c/1", b"\1\2\3\4")
    assert bytes(store.get("1")) == block([4], b"\1\2\3\4")


def test_negative_zero_is_not_cut_off():
    store = MemoryStore({"attributes.json": about([1], [2], "float32")})
    N5Store(store).set("c/0", np.array([1, -0.0], ">f4").tobytes())
    assert bytes(store.get("0")) == block([2], np.array([1, -0.0], ">f4").tobytes())


@pytest.mark.parametrize(
    ("keywords", "pointer"),
    [
        ({"dtype": "u2"}, "/codecs/0"),
        ({"dtype": "bool"}, "/data_type"),
        ({"dtype": "u1", "fill_value": 1}, "/fill_value"),
        ({"dtype": "u1", "shards": (4, 4)}, "/codecs/0"),
        ({"dtype": "u1", "dimension_names": ["a", "a"]}, "/dimension_names"),
        ({"dtype": "u1", "attributes": {"dimensions": 1}}, "/attributes/dimensions"),
        ({"dtype": "u1", "compressors": {"name": "crc32c"}}, "/codecs/1"),
        ({"dtype": "u1", "shape": (), "chunks": ()}, "/shape"),
    ],
)
def test_what_n5_cannot_express_is_refused(keywords, pointer):
    store = MemoryStore()
    with pytest.raises(NotRepresentableError, match="N5 cannot express") as caught:
        N5Store(store).set("v/zarr.json", _document(**keywords))
    assert caught.value.pointer == pointer
    assert not list(store.list())


def _document(**keywords):
    made = omnizarr.create_array(
        {}, **{"shape": (4, 4), "chunks": (2, 2), "compressors": None, "fill_value": 0, **keywords}
    )
    return made.store.get("zarr.json")


def test_arrays_are_deleted_and_renamed_with_their_blocks(tmp_path):
    place = tmp_path / "x.n5"
    document, _ = documents.load(json.loads(about([6, 5], [4, 3])))
    store = N5Store(LocalStore(place))
    for name in ("a", "b"):
        store.set(f"{name}/zarr.json", json.dumps(document).encode())
        omnizarr.open_array(store, path=name, mode="r+")[...] = 7
    group = omnizarr.open_group(place, mode="r+")
    group.move("a", "c")
    assert group["c"][4, 5] == 7
    del group["b"]
    assert sorted(each.name for each in place.iterdir()) == ["attributes.json", "c"]
    group["c"].resize((2, 2))
    assert sorted(str(each.relative_to(place / "c")) for each in (place / "c").rglob("*") if each.is_file()) == [
        "0/0",
        "attributes.json",
    ]


def test_read_only_is_read_only(volume):
    with pytest.raises(ReadOnlyError):
        omnizarr.open_array(volume / "volumes/raw/int16/raw", mode="r")[0] = 1
    with pytest.raises(NotRepresentableError, match="only nodes"):
        N5Store(MemoryStore()).set("other", b"")


def test_convert_writes_what_n5_can_hold_and_names_the_rest(tmp_path, capsys):
    source, target = tmp_path / "x.zarr", tmp_path / "y.n5"
    group = omnizarr.create_group(source, attributes={"title": "a volume"})
    expected = values("int32", (6, 9, 5))
    group.create_array("plain", data=expected, chunks=(4, 4, 4))
    group.create_array("inner/sharded", data=expected, chunks=(2, 4, 4), shards=(4, 8, 8))
    group.create_array("checked", data=expected, chunks=(4, 4, 4), compressors=[{"name": "crc32c"}])
    blosc = {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 3, "shuffle": "shuffle"}}
    group.create_array("blosc", data=expected, chunks=(4, 4, 4), compressors=blosc)
    sparse = group.create_array("sparse", shape=(9, 9), chunks=(2, 2), dtype="f4", fill_value=float("nan"))
    sparse[2:4, 1] = 5
    group.create_array("flags", data=expected > 3)
    report = omnizarr.convert(source, target)
    assert report.verified
    assert [loss.path for loss in report.losses] == ["flags"]
    assert "bool" in str(report)
    for path in ("plain", "inner/sharded", "checked", "blosc"):
        assert np.array_equal(of_tensorstore(target / path).read().result(), expected.T), path
        assert np.array_equal(omnizarr.open(target)[path][...], expected)
    assert json.loads((target / "blosc" / "attributes.json").read_text())["compression"]["cname"] == "lz4"
    assert np.array_equal(of_tensorstore(target / "sparse").read().result(), sparse[...].T, equal_nan=True)
    assert [each.name for each in target.iterdir() if each.is_file()] == ["attributes.json"]
    assert main(["diff", str(source), str(target)]) == 1
    assert capsys.readouterr().out.startswith("/flags\n  array only in the first\n1 difference")
    omnizarr.convert(target, tmp_path / "z.n5")
    assert np.array_equal(of_tensorstore(tmp_path / "z.n5" / "plain").read().result(), expected.T)
    with pytest.raises(NotRepresentableError):
        omnizarr.convert(source, tmp_path / "strict.n5", strict=True)


@pytest.mark.parametrize("target", ["x.n5", "n5://x", "old"])
@pytest.mark.parametrize("name", ["x.h5", "x.nc", "x.zip/x.h5"])
def test_files_of_hdf5_and_netcdf_become_n5(tmp_path, monkeypatch, name, target):
    h5py, netcdf4, tensorstore = (pytest.importorskip(each) for each in ("h5py", "netCDF4", "tensorstore"))
    monkeypatch.chdir(tmp_path)
    values = {"a": np.arange(12, dtype=">i2").reshape(3, 4), "b": np.float32([[0.5, np.nan]])}
    if name == "x.nc":
        with netcdf4.Dataset(name, "w", format="NETCDF3_CLASSIC") as file:
            for each, data in values.items():
                dims = [file.createDimension(f"{each}{axis}", n).name for axis, n in enumerate(data.shape)]
                file.createVariable(each, data.dtype.str[1:], dims)[:] = data
    else:
        with h5py.File("x.h5", "w") as file:
            for each, data in values.items():
                file.create_dataset(each, data=data, chunks=(1, 2))
            file["text"] = "omnizarr"
        with zipfile.ZipFile("x.zip", "w") as archive:
            archive.write("x.h5")
    if target == "old":  # known by its attributes
        omnizarr.create_group("n5://old")
    report = omnizarr.convert(name, target, overwrite=target == "old")
    assert (report.target_format, report.verified) == ("N5", True)
    assert [node.path for node in report.nodes if node.losses] == ([] if name == "x.nc" else ["text"])
    for each, data in values.items():
        place = tmp_path / target.removeprefix("n5://") / each
        found = tensorstore.open({"driver": "n5", "kvstore": f"file://{place}/"}).result().read().result()
        np.testing.assert_array_equal(found.T, data)


def test_bytes_of_attributes_that_n5_does_not_get_are_told(tmp_path):
    """A conversion to Zarr keeps the bytes: N5 gets what is shown as Zarr."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"] = [1.5]
        file["a"].attrs["units"] = np.bytes_("°C".encode("latin-1"))
        file["a"].attrs["name"] = "°C"
    (told,) = omnizarr.open(tmp_path / "x.h5").store.notes
    assert told == "/a: the attribute 'units' is shown with U+FFFD in place of bytes that are not UTF-8"
    (loss,) = omnizarr.convert(tmp_path / "x.h5", tmp_path / "x.n5").losses
    assert f"{loss.what}: {loss.why}" == told
    assert dict(omnizarr.open(tmp_path / "x.n5/a").attrs) == {"units": "\ufffdC", "name": "°C"}
    with pytest.raises(NotRepresentableError, match="'units' is shown with U"):
        omnizarr.convert(tmp_path / "x.h5", tmp_path / "strict.n5", strict=True)


def test_arrays_are_created_and_replaced(tmp_path):
    place = tmp_path / "x.n5"
    expected = values("int16")
    made = omnizarr.create_group(place).create_array(
        "v", data=expected, chunks=(2, 3, 4), dimension_names=["z", "y", "x"]
    )
    assert np.array_equal(of_tensorstore(place / "v").read().result(), expected.T)
    assert json.loads((place / "v" / "attributes.json").read_text())["axes"] == ["x", "y", "z"]
    omnizarr.create_array(place, name="v", data=made, chunks=(3, 3, 3), overwrite=True)
    assert np.array_equal(of_tensorstore(place / "v").read().result(), expected.T)
    with pytest.raises(NotRepresentableError, match="the codecs"):
        omnizarr.create_array(place, name="w", data=expected, compressors=[{"name": "crc32c"}])
    with pytest.raises(NotRepresentableError, match="Zarr v3 only"):
        omnizarr.create_array(place, name="w", data=expected, zarr_format=2)
    assert list(omnizarr.open(place)) == ["v"]


def test_a_new_place_with_the_scheme():
    omnizarr.create_group("n5://memory://made-n5")["v"] = values("uint8")
    store = omnizarr.open("n5://memory://made-n5").store
    assert isinstance(store, N5Store)
    assert "v/attributes.json" in set(store.store.list_prefix("")) | {
        key.partition("/")[2] for key in store.store.list()
    }


def test_what_conversions_leave_meanwhile_has_the_name_that_they_give_it():
    assert stores_of_n5._JOURNAL == erasing.JOURNAL


# -- compressions that Zarr does not have


def frames(data, step=10):
    """Return what lz4-java's ``LZ4BlockOutputStream`` writes, with one frame that is not compressed."""
    imagecodecs = pytest.importorskip("imagecodecs", reason="imagecodecs makes raw LZ4 blocks")
    made = []
    for number, start in enumerate(range(0, len(data), step)):
        part = data[start : start + step]
        packed = part if number == 0 else imagecodecs.lz4_encode(part, header=False)
        made.append(
            struct.pack("<8sBiiI", b"LZ4Block", 0x10 if number == 0 else 0x20, len(packed), len(part), 0) + packed
        )
    return b"".join([*made, struct.pack("<8sBiiI", b"LZ4Block", 0x10, 0, 0, 0)])


def test_lz4_of_java():
    data = bytes(range(24))
    values_of = {
        "attributes.json": about([6, 3], [4, 3], compression={"type": "lz4", "blockSize": 65536}),
        "0/0": block([4, 3], frames(data[:12], 5)),
        "1/0": block([2, 3], frames(data[12:18], 4)),
    }
    array = omnizarr.open(N5Store(MemoryStore(values_of)))
    left, right = np.arange(12).reshape(3, 4), np.arange(12, 18).reshape(3, 2)
    assert np.array_equal(array[...], np.hstack([left, right]))
    with pytest.raises(NotRepresentableError, match="can only be read"):
        omnizarr.open_array(N5Store(MemoryStore(values_of)), mode="r+")[0, 0] = 5


@pytest.mark.parametrize("cut", [1, 8, 15, 20, 22, 27, 30])
def test_broken_frames_of_lz4(cut):
    about_lz4 = about([12], [12], compression={"type": "lz4"})
    store = MemoryStore({"attributes.json": about_lz4, "0": block([12], frames(bytes(range(12)))[:cut])})
    with pytest.raises(ChunkError):
        omnizarr.open(N5Store(store))[...]


def test_jpeg():
    images = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    import io

    written = io.BytesIO()
    images.fromarray(np.full((6, 4), 77, "u1")).save(written, "jpeg", quality=100)
    data = {"attributes.json": about([4, 3, 2], [4, 3, 2], compression={"type": "jpeg"})}
    array = omnizarr.open(N5Store(MemoryStore({**data, "0/0/0": block([4, 3, 2], written.getvalue())})))
    assert np.all(np.abs(array[...].astype(int) - 77) <= 1)
    with pytest.raises(ChunkError):
        omnizarr.open(N5Store(MemoryStore({**data, "0/0/0": block([4, 2, 2], written.getvalue())})))[...]
    with pytest.raises(ChunkError):
        omnizarr.open(N5Store(MemoryStore({**data, "0/0/0": block([4, 3, 2], written.getvalue()[:40])})))[...]


# -- broken and hostile


@pytest.mark.parametrize(
    ("found", "error", "match"),
    [
        (b"", ChunkSizeError, "too short"),
        (block([4], b"\1\2\3\4")[:7], ChunkSizeError, "too short"),
        (block([4], b"\1\2\3"), ChunkSizeError, "size"),
        (block([4], b"\1\2\3\4\5"), ChunkSizeError, "size"),
        (block([5], b"\1\2\3\4\5"), ChunkSizeError, "larger than the chunk"),
        (block([2**32 - 1], b"\1\2\3\4\5"), ChunkSizeError, "larger than the chunk"),
        (block([3], b"\1\2\3\4"), ChunkSizeError, "size"),
        (block([2, 2], b"\1\2\3\4"), ChunkError, "dimensionality"),
        (block([4], b"\1\2\3\4", mode=2), ChunkError, r"mode 2 \(object\)"),
        (block([4], b"\1\2\3\4", mode=7), ChunkError, "mode 7"),
        (block([4], b"\1\2\3", mode=1, number=3), ChunkError, "3 elements"),
        (block([4], b"", mode=1), ChunkSizeError, "too short"),
    ],
)
def test_broken_blocks(found, error, match):
    array = omnizarr.open(N5Store(MemoryStore({"v/attributes.json": about([8], [4]), "v/0": found})))["v"]
    with pytest.raises(error, match=match) as caught:
        array[...]
    assert "v/" in str(caught.value)


def test_blocks_of_variable_length_with_an_element_for_each_position():
    store = MemoryStore({"attributes.json": about([6], [4]), "0": block([4], b"\1\2\3\4", 1, 4), "1": block([0], b"")})
    assert omnizarr.open(N5Store(store))[...].tolist() == [1, 2, 3, 4, 0, 0]


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b'{"dimensions": null}',
        b'{"dimensions": 3}',
        b'{"dimensions": [-1], "blockSize": [1], "dataType": "uint8"}',
        b'{"dimensions": [1.5], "blockSize": [1], "dataType": "uint8"}',
        b'{"dimensions": [true], "blockSize": [1], "dataType": "uint8"}',
        b'{"dimensions": [3], "blockSize": [0], "dataType": "uint8"}',
        b'{"dimensions": [3], "blockSize": [1, 1], "dataType": "uint8"}',
        b'{"dimensions": [3], "blockSize": "x", "dataType": "uint8"}',
        b'{"dimensions": [3], "blockSize": [1], "dataType": {}}',
        b'{"dimensions": [3], "blockSize": [1], "dataType": "uint8", "compression": {"type": []}}',
        b'{"dimensions": [3], "blockSize": [1], "dataType": "uint8", "compression": {"type": "gzip", "level": {}}}',
        b'{"dimensions": [3], "blockSize": [1], "dataType": "uint8", "compression": {"type": "blosc", "shuffle": 9}}',
        b'{"dimensions": [3], "blockSize": [1], "dataType": "uint8", "compression": 7}',
    ],
)
def test_broken_attributes(given):
    store = N5Store(MemoryStore({"v/attributes.json": given, "attributes.json": b'{"n5": "4.0.0"}', "v/0": b"abc"}))
    with pytest.raises(OmnizarrError) as caught:
        omnizarr.open_array(store, path="v", mode="r")[...]
    assert "v" in str(caught.value)
    list(store.list()) if given[:1] == b"{" and given != b"{" else None


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (about([3], [3], "string"), "n5.string"),
        (about([3], [3], "uint8", {"type": "lzf"}), "n5.lzf"),
    ],
)
def test_what_cannot_be_shown_is_named(given, match, tmp_path, capsys):
    (tmp_path / "x.n5" / "v").mkdir(parents=True)
    (tmp_path / "x.n5" / "v" / "attributes.json").write_bytes(given)
    (tmp_path / "x.n5" / "v" / "0").write_bytes(block([3], b"abc"))
    with pytest.raises(OmnizarrError, match=match):
        omnizarr.open(tmp_path / "x.n5")["v"][...]
    main(["info", str(tmp_path / "x.n5" / "v")])
    assert match in "".join(capsys.readouterr())


def test_a_small_block_does_not_become_a_very_large_chunk():
    given = about([2**31 - 1], [2**31 - 1], "float64", {"type": "gzip"})
    store = MemoryStore({"attributes.json": given, "0": block([1], gzip.compress(bytes(8)))})
    start = time.process_time()
    with pytest.raises(ChunkError):
        omnizarr.open(N5Store(store))[0:1]
    assert time.process_time() - start < 5


def test_a_bomb_in_a_block_is_stopped():
    bomb = gzip.compress(bytes(1 << 26))
    for shape in ([100], [50]):
        store = MemoryStore(
            {"attributes.json": about([100], [100], "uint8", {"type": "gzip"}), "0": block(shape, bomb)}
        )
        with pytest.raises(ChunkError):
            omnizarr.open(N5Store(store))[...]


def test_changed_bytes_give_errors_of_omnizarr():
    rng = random.Random("n5")
    whole = {
        "attributes.json": b'{"n5": "4.0.0"}',
        "v/attributes.json": about([6, 5], [4, 3], "uint16", {"type": "gzip", "level": -1}, axes=["x", "y"]),
        "w/attributes.json": about([5], [4], "uint8", {"type": "lz4"}),
        "v/0/0": block([4, 3], gzip.compress(bytes(24))),
        "v/1/1": block([2, 2], gzip.compress(bytes(8))),
        "w/0": block([4], frames(b"abcd")),
        "w/1": block([1], frames(b"a"), mode=1, number=1),
    }
    refused = 0
    for _ in range(1500):
        key = rng.choice(sorted(whole))
        raw = bytearray(whole[key])
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(raw))
            raw[at : at + 1] = rng.choice([b"\xff", b"\0", b"9", b"", b'"', rng.randbytes(1), b"\xff" * 4])
        store = N5Store(MemoryStore({**whole, key: bytes(raw)}))
        try:
            for _, node in omnizarr.open_group(store, mode="r").members(max_depth=None):
                if isinstance(node, omnizarr.Array) and node.nbytes < 1 << 20:
                    list(store.list())
                    node[...]
        except OmnizarrError:
            refused += 1
    assert refused > 100


def test_kind_is_found_by_path():
    for path, is_known in {
        "a/x.n5": True, "x.n5/": True, "x.N5/a": True, "x.n5a": False, "x.n5/a.zarr": False, "x.n5/a.zarr/b": False,
    }.items():  # fmt: skip
        assert (kinds.of_folder(path) is not None) == is_known, path


def test_the_module_is_not_imported_for_zarr():
    code = (
        "import sys, omnizarr; omnizarr.create_array({}, data=[1]); print('omnizarr.readers.n5.store' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_header_is_that_of_the_format():
    assert blocks.header_size(3) == len(block([1, 2, 3], b""))


# -- pyramids --------------------------------------------------------------------------------------


def pyramid(attributes, *levels, shape=(8, 12, 16)):
    """Return an N5 hierarchy with a group "p" of levels: each has its downsampling factors in the order x, y, z."""
    store = MemoryStore()
    group = omnizarr.create_group(N5Store(store)).create_group("p")
    for number, factors in enumerate(levels):
        lengths = [-(-length // factor) for length, factor in zip(shape, reversed(factors), strict=True)]
        array = group.create_array(f"s{number}", shape=lengths, chunks=(4,) * len(shape), dtype="u2")
        array[...] = number + 1
        if number:
            array.attrs["downsamplingFactors"] = list(factors)
    store.set("p/attributes.json", json.dumps(attributes).encode())
    return N5Store(store), store


PYRAMIDS = {
    "Paintera": {"multiScale": True, "resolution": [4.0, 4.0, 40.0], "offset": [0.0, 0.0, 80.0]},
    "n5-viewer": {
        "scales": [[1, 1, 1], [2, 2, 1], [4, 4, 2]],
        "pixelResolution": {"unit": "nm", "dimensions": [4.0, 4.0, 40.0]},
    },
    "COSEM": {
        "pixelResolution": {"unit": "nm", "dimensions": [4.0, 4.0, 40.0]},
        "scales": [[1, 1, 1], [2, 2, 1], [4, 4, 2]],
        "multiscales": [{"datasets": [{"path": "s0", "transform": {"axes": ["z", "y", "x"]}}]}],
    },
}


@pytest.mark.parametrize("writer", PYRAMIDS)
def test_pyramids_are_images_of_ome_zarr(writer, capsys):
    store, _ = pyramid(PYRAMIDS[writer], (1, 1, 1), (2, 2, 1), (4, 4, 2))
    group = omnizarr.open_group(store, mode="r")["p"]
    (image,) = group.attrs["ome"]["multiscales"]
    assert [each["path"] for each in image["datasets"]] == ["s0", "s1", "s2"]
    scales = [each["coordinateTransformations"][0]["scale"] for each in image["datasets"]]
    assert scales == [[40.0, 4.0, 4.0], [40.0, 8.0, 8.0], [80.0, 16.0, 16.0]]
    moved = image["datasets"][2]["coordinateTransformations"][1]["translation"]
    assert moved == [(80.0 if writer == "Paintera" else 0.0) + 20.0, 6.0, 6.0]
    assert [axis["name"] for axis in image["axes"]] == ["z", "y", "x"]
    assert [axis.get("unit") for axis in image["axes"]] == [None if writer == "Paintera" else "nanometer"] * 3
    assert omnizarr.check(store, path="p").ok


def test_what_the_reader_says_of_a_pyramid_is_not_stored():
    store, below = pyramid(PYRAMIDS["Paintera"], (1, 1, 1), (2, 2, 1))
    group = omnizarr.open_group(store, mode="r+")["p"]
    group.attrs["note"] = "seen"
    stored = json.loads(bytes(below.get("p/attributes.json")))
    assert stored == {**PYRAMIDS["Paintera"], "note": "seen"}
    own = {"version": "0.5", "multiscales": []}
    group.attrs["ome"] = own
    assert json.loads(bytes(below.get("p/attributes.json")))["ome"] == own
    assert omnizarr.open_group(store, mode="r")["p"].attrs["ome"] == own


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"resolution": "fine"},
        {"multiScale": True, "ome": {}},
        {"multiScale": True, "multiscales": [{"version": "0.4", "datasets": []}]},
    ],
)
def test_other_groups_have_the_attributes_that_are_stored(attributes):
    store, _ = pyramid(attributes, (1, 1, 1), (2, 2, 1))
    assert dict(omnizarr.open_group(store, mode="r")["p"].attrs) == attributes


@pytest.mark.parametrize(
    "attributes",
    [
        {"scales": [[1, 1, 1], [2, "2", None]], "resolution": [0, -1, float("inf")]},
        {"scales": [[1]] * 100_000, "pixelResolution": {"dimensions": {}, "unit": ["nm"]}, "offset": [1]},
        {"multiScale": True, "units": [], "resolution": [[1]], "downsamplingFactors": [1, 2, 3]},
    ],
)
def test_attributes_that_make_no_sense_are_passed_over(attributes):
    store, below = pyramid({}, (1, 1, 1), (2, 2, 1))
    below.set("p/attributes.json", json.dumps(attributes).replace("Infinity", "1e999").encode())
    (image,) = omnizarr.open_group(store, mode="r")["p"].attrs["ome"]["multiscales"]
    scales = [each["coordinateTransformations"][0]["scale"] for each in image["datasets"]]
    assert scales == [[1.0, 1.0, 1.0], [1.0, 2.0, 2.0]]
    below.set("p/s1/attributes.json", b"{")
    assert "ome" not in omnizarr.open_group(store, mode="r")["p"].attrs


def test_a_hierarchy_lists_as_much_as_the_store_that_holds_it(tmp_path):
    for store in (LocalStore(tmp_path), MemoryStore()):
        shown = N5Store(store).features
        assert (shown.listing, shown.concurrency) == (store.features.listing, store.features.concurrency)
