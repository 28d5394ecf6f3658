"""`omnizarr.tools.convert`: what was in the source is in the target, or the account says why not."""

import contextlib
import gzip
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import tensorstore
import zarr
from hypothesis import given
from hypothesis import strategies as st
from zarr.core.buffer import default_buffer_prototype

import omnizarr
from omnizarr import errors
from omnizarr.formats.documents import parse
from omnizarr.interop.zarr_python import to_zarr_python
from omnizarr.stores import LocalStore, MemoryStore, WrapperStore
from omnizarr.tools.convert import journal
from tests.fakes import FaultyStore, UnlistableStore
from tests.repeats import runs
from tests.tools.hierarchies import FORMATS, GRID, make

KILLS = runs(10)
EXHAUSTIVE = "RUNS" in os.environ
"""Every case in every format; else each in Zarr v3 and one other format in turn."""
CORPUS = Path(__file__).parents[2] / "corpus"
BROKEN_ON_PURPOSE = {"interrupted"}


pairs = pytest.mark.parametrize(("old", "new"), list(itertools.permutations(FORMATS, 2)))
formats = pytest.mark.parametrize("zarr_format", FORMATS)


def contents(store):
    return {key: bytes(store.get(key)) for key in store.list()}


def bits(values):
    """Return what tells values apart: bits, but not the byte order that they have in memory."""
    values = np.asarray(values)
    if values.dtype.hasobject or values.dtype.kind == "T":
        return values.tolist()
    if values.dtype.names is not None:
        return [bits(values[name]) for name in values.dtype.names]
    native = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("=")))
    return native.tobytes() if native.dtype.itemsize else native.shape


def kind(dtype):
    return dtype.newbyteorder("=") if dtype.kind != "T" else dtype


def pointers(report, path):
    return " ".join(loss.pointer for loss in report.losses if loss.path == path)


def opened(store, zarr_format):
    """Return all arrays of a hierarchy by path."""
    root = omnizarr.open(store, mode="r", zarr_format=zarr_format)
    return {path: node for path, node in root.members(None) if isinstance(node, omnizarr.Array)}


@pytest.fixture(scope="module")
def hierarchies():
    """Return one hierarchy per format, with the values that were written."""
    made = {}
    for zarr_format in FORMATS:
        store = MemoryStore()
        made[zarr_format] = store, make(store, zarr_format)
    return made


# -- every ordered pair ------------------------------------------------------------------


@pairs
@pytest.mark.sampled(4)
def test_there_and_back_all_is_equal_or_accounted_for(hierarchies, old, new):
    source, written = hierarchies[old]
    before = contents(source)
    there, back = MemoryStore(), MemoryStore()
    first = omnizarr.convert(source, there, zarr_format=new)
    assert contents(source) == before
    assert first.verified
    second = omnizarr.convert(there, back, zarr_format=old)
    assert second.verified
    arrays, found, again = opened(source, old), opened(there, new), opened(back, old)
    assert set(arrays) == set(written)
    nodes = {node.path: node for node in first.nodes}
    for path, values in written.items():
        lost = pointers(first, path)
        assert nodes[path].how in ("copied", "recompressed", "encoded") or lost, path
        if nodes[path].how == "left out":
            assert path not in found
            continue
        remarks = told(nodes[path])
        if not lost:
            assert bits(found[path][...]) == bits(values), path
            assert kind(found[path].dtype) == kind(arrays[path].dtype) or "data type" in remarks, path
            assert found[path].shape == values.shape, path
        # The value of missing chunks is kept; what xarray treats as a mask may become null.
        if "fill_value" not in lost and "type" not in lost and "fill_value becomes null" not in remarks:
            is_needless = "undefined fill value" in remarks
            assert is_needless or bits(found[path].fill_value) == bits(arrays[path].fill_value), path
        if not lost and not pointers(second, path):
            remarks += "".join(told(node) for node in second.nodes if node.path == path)
            assert_equal(again[path], arrays[path], values, remarks)


def told(node):
    """Return all that the account says of what is carried in other words of a node."""
    return " ".join([*node.remarks, *(remark for remarks in node.conventions.values() for remark in remarks)])


def assert_equal(found, expected, values, remarks):
    """Compare an array that came back with the one that it was, and with what was written into that."""
    assert found.shape == expected.shape
    assert bits(found[...]) == bits(values)
    assert kind(found.dtype) == kind(expected.dtype) or "data type" in remarks
    assert bits(found.fill_value) == bits(expected.fill_value) or "undefined fill value" in remarks
    assert found.dimension_names == expected.dimension_names or "_ARRAY_DIMENSIONS" in remarks
    assert dict(found.attrs) == dict(expected.attrs) or "_ARRAY_DIMENSIONS" in remarks
    assert found.chunks == expected.chunks or "chunks" in remarks


@pairs
def test_groups_keep_their_attributes_or_the_account_names_them(old, new):
    source, target = MemoryStore(), MemoryStore()
    if old != 1:
        for path in ("", "g", "g/h"):
            attributes = {"title": f"of {path}", "n": 1.5, "deep": [{"a": None}]}
            omnizarr.create_group(source, path=path, zarr_format=old, attributes=attributes)
    omnizarr.create_array(source, name="g/h/x", data=[1, 2], zarr_format=old)
    report = omnizarr.convert(source, target, zarr_format=new)
    for path in ("", "g", "g/h"):
        before, after = (omnizarr.open_group(store, path=path, mode="r") for store in (source, target))
        missing = set(before.attrs) - set(after.attrs)
        assert dict(after.attrs) == {name: value for name, value in before.attrs.items() if name not in missing}
        assert {loss.pointer.rpartition("/")[2] for loss in report.losses if loss.path == path} == missing


@formats
def test_same_format_carries_all(hierarchies, zarr_format):
    source, written = hierarchies[zarr_format]
    target = MemoryStore()
    report = omnizarr.convert(source, target, zarr_format=zarr_format)
    assert report.is_lossless
    assert report.chunks("encoded") == 0
    for path, array in opened(target, zarr_format).items():
        assert bits(array[...]) == bits(written[path])


def test_dimension_names_become_the_convention_and_come_back(hierarchies):
    there, back = MemoryStore(), MemoryStore()
    omnizarr.convert(hierarchies[3][0], there, zarr_format=2, path="names")
    assert omnizarr.open(there)["dimensions"].attrs["_ARRAY_DIMENSIONS"] == ["time", "x"]
    omnizarr.convert(there, back, zarr_format=3)
    array = omnizarr.open(back)["dimensions"]
    assert array.dimension_names == ("time", "x")
    assert dict(array.attrs) == {"units": "K"}


def test_stored_chunks_are_copied_where_their_bytes_mean_the_same():
    source, target = MemoryStore(), MemoryStore()
    omnizarr.create_array(source, data=GRID.astype(">i4"), chunks=(4, 3), zarr_format=2, compressors={"id": "gzip"})
    report = omnizarr.convert(source, target)
    assert (report.nodes[0].how, report.nodes[0].chunks) == ("copied", 9)
    assert target.get("c/2/1") == source.get("2.1")


def test_chunks_are_compressed_again_where_a_format_lacks_the_codec():
    source, target = MemoryStore(), MemoryStore()
    omnizarr.create_array(source, data=GRID, chunks=(4, 3), zarr_format=3, compressors={"id": "zstd", "level": 1})
    report = omnizarr.convert(source, target, zarr_format=1)
    assert (report.nodes[0].how, report.nodes[0].chunks) == ("recompressed", 9)
    np.testing.assert_array_equal(omnizarr.open(target)[...], GRID)


def test_zlib_becomes_gzip_of_the_same_deflate_stream_in_v3():
    source, target = MemoryStore(), MemoryStore()
    omnizarr.create_array(source, data=GRID, chunks=(4, 3), zarr_format=2, compressors={"id": "zlib", "level": 9})
    report = omnizarr.convert(source, target)
    assert (report.nodes[0].how, report.nodes[0].chunks, report.verified) == ("recompressed", 9, True)
    assert json.loads(target.get("zarr.json"))["codecs"][-1] == {"name": "gzip", "configuration": {"level": 9}}
    for at in itertools.product(range(3), range(3)):
        old, new = (bytes(store.get(sep.join(map(str, key)))) for store, sep, key in
                    ((source, ".", at), (target, "/", ("c", *at))))  # fmt: skip
        assert gzip.decompress(new) == zlib.decompress(old)
        assert new[10:-8] == old[2:-4]


def test_filters_stay_and_nothing_is_rounded_once_more_where_chunks_are_compressed_again():
    source, target = MemoryStore(), MemoryStore()
    rounding = {"id": "fixedscaleoffset", "scale": 10, "offset": 0, "dtype": "<f8", "astype": "<i2"}
    values = np.linspace(0, 50, 70).reshape(10, 7)
    array = omnizarr.create_array(
        source, data=values, chunks=(4, 3), zarr_format=2, filters=[rounding], compressors={"id": "zlib"}
    )
    report = omnizarr.convert(source, target)
    assert (report.nodes[0].how, report.verified) == ("recompressed", True)
    assert [codec["name"] for codec in json.loads(target.get("zarr.json"))["codecs"]] == [
        "numcodecs.fixedscaleoffset",
        "bytes",
        "gzip",
    ]
    np.testing.assert_array_equal(omnizarr.open(target)[...], array[...])


@pytest.mark.parametrize("compressor", ["zlib", "bz2", "lzma", "lz4"])
def test_compressors_are_kept_if_they_shall_be(compressor):
    source, target = MemoryStore(), MemoryStore()
    omnizarr.create_array(source, data=GRID, chunks=(4, 3), zarr_format=2, compressors={"id": compressor})
    report = omnizarr.convert(source, target, compressors="keep")
    assert (report.nodes[0].how, report.verified) == ("copied", True)
    assert target.get("c/2/1") == source.get("2.1")
    known = f"codec 'numcodecs.{compressor}' is known to zarr-python; TensorStore and zarrs do not read it"
    assert known in report.nodes[0].remarks


# -- other programs read the result --------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3 specification")
@pytest.mark.parametrize("old", FORMATS)
@pytest.mark.parametrize("new", [2, 3])
@pytest.mark.sampled(3)
def test_zarr_python_reads_the_result(hierarchies, tmp_path, old, new):
    source, written = hierarchies[old]
    omnizarr.convert(source, tmp_path / "new", zarr_format=new)
    root = zarr.open_group(tmp_path / "new", mode="r", zarr_format=new)
    strange = {"types/raw", "fills/undefined", "grids/rectilinear", "types/variable_bytes", "fills/payload"}
    strange |= {"types/records"} if old == new == 3 else set()  # which stay what they were called
    for path in written:
        # what zarr-python 3.1 has no name for, or reads in its own way
        if path in strange or "shuffle" in path:
            continue
        found = root[path][...]
        assert bits(np.asarray(found)) == bits(written[path]) or found.dtype.kind in "OT", path
        if found.dtype.kind in "OT":
            assert np.asarray(found).tolist() == written[path].tolist(), path


@pytest.mark.parametrize("old", FORMATS)
@pytest.mark.parametrize(("new", "driver"), [(2, "zarr"), (3, "zarr3")])
@pytest.mark.sampled(3)
def test_tensorstore_reads_the_result(hierarchies, tmp_path, old, new, driver):
    source, written = hierarchies[old]
    omnizarr.convert(source, tmp_path / "new", zarr_format=new)
    numbers = [path for path in written if path.startswith(("types/little", "types/big", "codecs/blosc", "orders/"))]
    assert numbers
    for path in numbers:
        spec = {"driver": driver, "kvstore": {"driver": "file", "path": str(tmp_path / "new" / path)}}
        found = tensorstore.open(spec).result().read().result()
        assert bits(found) == bits(written[path]), path


# -- what other programs wrote ---------------------------------------------------------------


def unpacked(case, where):
    expected = json.loads((case / "expected.json").read_text(encoding="utf-8"))
    if expected["store"] == "zip":
        return case / "store.zip"
    with zipfile.ZipFile(case / "store.zip") as archive:
        archive.extractall(where)
    return where


CORPUS_CASES = sorted(path.parent for path in CORPUS.glob("*/*/expected.json"))
OTHERS = [zarr_format for zarr_format in FORMATS if zarr_format != 3]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("number", "case"),
    [pytest.param(*item, id=item[1].relative_to(CORPUS).as_posix()) for item in enumerate(CORPUS_CASES)],
)
def test_real_data_is_equal_or_accounted_for(number, case, tmp_path):
    source = unpacked(case, tmp_path / "old")
    before = arrays_of(source)
    for zarr_format in FORMATS if EXHAUSTIVE else (3, OTHERS[number % len(OTHERS)]):
        target = MemoryStore()
        report = omnizarr.convert(source, target, zarr_format=zarr_format, allow_pickle=True)
        assert report.verified
        assert {node.path for node in report.nodes} >= set(before)
        kept = [node for node in report.nodes if node.node_type == "array" and node.how != "left out"]
        assert all(node.losses for node in report.nodes if node.node_type == "array" and node not in kept)
        after = arrays_of(target) if kept else {}
        assert set(after) == {node.path for node in kept}
        for node in kept:
            if not {"/dtype", "/data_type", "/shape"} & {loss.pointer for loss in node.losses}:
                is_text = any(loss.kept == "their JSON text" for loss in node.losses)
                expected = before[node.path][...]
                assert same_objects(after[node.path][...], as_text(expected) if is_text else expected)


def as_text(values):
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values.flat]
    return np.array(texts, object).reshape(values.shape)


def arrays_of(store):
    root = omnizarr.open(store, mode="r", allow_pickle=True)
    if isinstance(root, omnizarr.Array):
        return {"": root}
    return {path: node for path, node in root.members(None) if isinstance(node, omnizarr.Array)}


def same_objects(found, expected):
    if expected.dtype != object:
        return bits(found) == bits(expected) or (
            kind(found.dtype) != kind(expected.dtype) and np.all(found == expected)
        )
    pairs = zip(np.asarray(found).flat, np.asarray(expected).flat, strict=True)
    return all(
        np.array_equal(one, other) if isinstance(other, np.ndarray) else repr(one) == repr(other)
        for one, other in pairs
    )


# -- where something cannot be carried --------------------------------------------------------


def test_missing_chunks_are_written_where_the_fill_value_cannot_be_carried():
    source, target = MemoryStore(), MemoryStore()
    fill = np.array([0x7FC00ABC], "u4").view("f4")[0]
    array = omnizarr.create_array(source, shape=(7,), chunks=(2,), dtype="float32", fill_value=fill)
    array[2:4] = 1
    report = omnizarr.convert(source, target, zarr_format=2)
    assert [loss.pointer for loss in report.losses] == ["/fill_value"]
    found = omnizarr.open(target)
    assert bits(found[...]) == bits(np.array([fill, fill, 1, 1, fill, fill, fill], "f4"))
    assert found.nchunks_initialized == 4


@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize("dtype", ["i4", "f8", "S3", "U2", "?", "c8"])
def test_undefined_fill_value_is_no_loss_as_readers_read_zeros(dtype, lists):
    store = MemoryStore() if lists else UnlistableStore(MemoryStore())
    values = np.ones(7, "i4").astype(dtype)
    array = omnizarr.create_array(store, data=values, chunks=3, fill_value=None, zarr_format=2)
    report = omnizarr.convert(array, MemoryStore(), strict=True)
    assert report.verified
    assert [remark for remark in report.nodes[0].remarks if "undefined fill value (null)" in remark]
    store.delete("1")
    target = MemoryStore()
    assert omnizarr.convert(array, target, strict=True).verified
    if not lists:
        return
    read = [zarr.open_array(to_zarr_python(each), mode="r")[...] for each in (store, target)]
    assert bits(read[0]) == bits(read[1])


@pytest.mark.parametrize("dtype", ["M8[s]", "m8[s]"])
def test_undefined_fill_value_of_times_is_a_loss_only_if_chunks_are_missing(dtype):
    store = MemoryStore()
    array = omnizarr.create_array(store, data=np.ones(7, "i8").astype(dtype), chunks=3, fill_value=None, zarr_format=2)
    assert omnizarr.convert(array, MemoryStore(), strict=True).verified
    store.delete("1")  # which zarr-python reads as NaT, omnizarr as 0
    assert [loss.pointer for loss in omnizarr.convert(array, dry_run=True).losses] == ["/fill_value"]


def test_undefined_fill_value_of_an_array_without_elements_is_no_loss():
    array = omnizarr.create_array({}, shape=(0, 5), dtype="i4", fill_value=None, zarr_format=2)
    assert omnizarr.convert(array, {}, strict=True).is_lossless


@pytest.mark.parametrize("lists", [True, False])
def test_other_bits_of_nan_are_a_loss_only_if_chunks_are_missing(lists):
    fill = np.array([0x7FC00ABC], "u4").view("f4")[0]
    store = MemoryStore() if lists else UnlistableStore(MemoryStore())
    array = omnizarr.create_array(store, data=np.ones(7, "f4"), chunks=3, fill_value=fill)
    assert omnizarr.convert(array, MemoryStore(), zarr_format=2, strict=True).verified
    store.delete("c/1")
    target = MemoryStore()
    report = omnizarr.convert(array, target, zarr_format=2)
    assert [loss.pointer for loss in report.losses] == ["/fill_value"]
    assert bits(omnizarr.open(target)[...]) == bits(np.array([1, 1, 1, fill, fill, fill, 1], "f4"))


@pytest.mark.parametrize(
    "document",
    [
        {"filters": []},
        {"filters": None, "compressor": None},
        {"order": "F"},
        {"dimension_separator": "/"},
        {"compressor": {"id": "zstd", "level": 0}},
        {"compressor": {"id": "gzip", "level": 9}},
        {"fill_value": "NaN", "dtype": "<f4"},
        {"fill_value": -0.0, "dtype": "<f4"},
        {"dtype": ">i4"},
    ],
    ids=str,
)
@pytest.mark.parametrize("new", [None, 3])
def test_what_v3_says_in_other_words_is_no_loss(document, new):
    source = MemoryStore()
    plain = {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "<i4", "compressor": None, "filters": None}
    source.set(".zarray", json.dumps({**plain, "fill_value": 0, "order": "C", **document}).encode())
    assert omnizarr.convert(source, MemoryStore(), zarr_format=new, strict=True).is_lossless


@pytest.mark.parametrize(
    "options",
    [
        {"dimension_names": [None, None]},
        {"compressors": [{"name": "zstd", "configuration": {"level": 0, "checksum": False}}]},
        {"compressors": None},
        {"chunk_key_encoding": {"name": "v2", "separator": "."}},
        {"shards": (4, 4)},
    ],
    ids=str,
)
@pytest.mark.parametrize("new", [2, 3])
def test_what_v2_says_in_other_words_is_no_loss(options, new):
    array = omnizarr.create_array({}, data=np.ones((4, 4)), chunks=(2, 2), **options)
    assert omnizarr.convert(array, MemoryStore(), zarr_format=new, strict=True).is_lossless


def test_groups_without_arrays_are_lost_where_there_are_no_groups():
    source = MemoryStore()
    root = omnizarr.create_group(source)
    root.create_array("g/x", data=GRID)
    root.create_group("g/empty/within")
    report = omnizarr.convert(source, {}, zarr_format=1)
    assert [(loss.path, loss.what) for loss in report.losses] == [
        ("g/empty", "the group"),
        ("g/empty/within", "the group"),
    ]
    assert not any("directory of its name" in remark for node in report.nodes[2:4] for remark in node.remarks)
    assert omnizarr.convert(omnizarr.create_group({}), zarr_format=1, dry_run=True).losses
    with pytest.raises(errors.NotRepresentableError, match="/g/empty: the group"):
        omnizarr.convert(source, {}, zarr_format=1, strict=True)


def test_strict_raises_before_anything_is_written():
    source, target = MemoryStore(), MemoryStore()
    omnizarr.create_group(source, attributes={"title": "t"}).create_array("x", data=GRID)
    with pytest.raises(errors.NotRepresentableError, match=r"something would be lost: /: attribute 'title'"):
        omnizarr.convert(source, target, zarr_format=1, strict=True)
    assert contents(target) == {}


def test_broken_node_is_left_out_with_the_reason():
    source, target = MemoryStore(), MemoryStore()
    omnizarr.create_group(source)["good"] = GRID
    source.set("bad/zarr.json", b'{"zarr_format": 3, "node_type": "array"}')
    report = omnizarr.convert(source, target)
    assert [(node.path, node.how) for node in report.nodes] == [
        ("", "documents"),
        ("bad", "left out"),
        ("good", "copied"),
    ]
    assert "cannot be read" in report.losses[0].why
    assert list(opened(target, 3)) == ["good"]


def test_chunks_of_an_unknown_codec_are_copied_and_compared_as_bytes():
    source, target = MemoryStore(), MemoryStore()
    omnizarr.create_array(source, data=GRID, chunks=(4, 3), zarr_format=3)
    document = json.loads(bytes(source.get("zarr.json")))
    document["codecs"].append({"name": "enigma"})
    source.set("zarr.json", json.dumps(document).encode())
    report = omnizarr.convert(source, target)
    assert (report.nodes[0].how, report.nodes[0].verified) == ("copied", "bytes")
    assert "enigma" in report.nodes[0].remarks[-1]
    assert target.get("c/1/1") == source.get("c/1/1")


# -- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shards", [None, (10, 6)])
@pytest.mark.parametrize("chunks", [(5, 3), (1, 1), 2, (10, 7)])
def test_chunks_and_shards_are_those_asked_for(chunks, shards):
    if shards is not None and chunks not in ((5, 3), (1, 1), 2):
        shards = chunks
    source, target = MemoryStore(), MemoryStore()
    omnizarr.create_array(source, data=GRID, chunks=(4, 3), zarr_format=2)
    omnizarr.convert(source, target, chunks=chunks, shards=shards)
    found = omnizarr.open(target)
    assert found.chunks == ((chunks, chunks) if isinstance(chunks, int) else chunks)
    assert found.shards == shards
    np.testing.assert_array_equal(found[...], GRID)


def test_lengths_of_chunks_are_for_arrays_of_as_many_dimensions():
    source, target = MemoryStore(), MemoryStore()
    root = omnizarr.create_group(source)
    root.create_array("grid", data=GRID, chunks=(4, 3))
    root.create_array("line", data=GRID[0], chunks=(3,))
    omnizarr.convert(source, target, chunks=(5, 5))
    found = omnizarr.open(target)
    assert (found["grid"].chunks, found["line"].chunks) == ((5, 5), (3,))


def test_lengths_that_do_not_fit_an_array_alone_are_refused():
    with pytest.raises(errors.MetadataError, match="chunks do not fit the shape"):
        omnizarr.convert(omnizarr.create_array({}, data=GRID), {}, chunks=(5, 5, 5))


def test_codecs_are_those_asked_for():
    source, target = MemoryStore(), MemoryStore()
    omnizarr.create_array(source, data=GRID, chunks=(4, 3), zarr_format=2)
    omnizarr.convert(source, target, compressors=omnizarr.codecs.GzipCodec(level=7))
    found = omnizarr.open(target)
    assert found.compressors == (omnizarr.codecs.GzipCodec(level=7),)
    np.testing.assert_array_equal(found[...], GRID)


def test_codecs_that_are_asked_for_are_those_of_the_stored_chunks_too():
    source, target = MemoryStore(), MemoryStore()
    omnizarr.create_array(source, data=GRID, chunks=(10, 7), compressors={"id": "zlib", "level": 0}, zarr_format=2)
    report = omnizarr.convert(source, target, zarr_format=2, compressors={"id": "zlib", "level": 9})
    assert report.nodes[0].how == "encoded"
    assert len(target.get("0.0")) < len(source.get("0.0")) / 2
    again = omnizarr.convert(target, {}, zarr_format=2, compressors={"id": "zlib", "level": 9})
    assert again.nodes[0].how == "copied"


def test_option_that_the_format_has_not_is_refused_before_anything_is_written():
    target = MemoryStore()
    with pytest.raises(errors.NotRepresentableError):
        omnizarr.convert(omnizarr.create_array({}, data=GRID, chunks=(5, 7)), target, zarr_format=2, shards=(10, 7))
    assert contents(target) == {}


def test_shards_that_chunks_do_not_divide_are_refused_before_anything_is_written():
    source, target = MemoryStore(), MemoryStore()
    omnizarr.create_group(source, zarr_format=2).create_array("x", data=GRID, chunks=(4, 3))
    with pytest.raises(errors.OmnizarrError, match="do not divide"):
        omnizarr.convert(source, target, shards=3)
    assert contents(target) == {}


def test_dry_run_writes_nothing_and_says_what_would_be_lost(hierarchies):
    target = MemoryStore()
    report = omnizarr.convert(hierarchies[3][0], target, zarr_format=1, dry_run=True)
    assert contents(target) == {}
    done = omnizarr.convert(hierarchies[3][0], target, zarr_format=1)
    assert report.losses == done.losses
    assert omnizarr.convert(hierarchies[3][0], dry_run=True, zarr_format=1).losses == done.losses


def test_consolidated_metadata_is_made_again():
    source = MemoryStore()
    omnizarr.create_group(source, zarr_format=2).create_array("g/x", data=GRID)
    omnizarr.consolidate_metadata(source)
    target = MemoryStore()
    omnizarr.convert(source, target, zarr_format=3)
    found = json.loads(bytes(target.get("zarr.json")))["consolidated_metadata"]["metadata"]
    assert set(found) == {"g", "g/x"}
    np.testing.assert_array_equal(zarr.open_consolidated(as_zarr_store(target))["g/x"][...], GRID)


def as_zarr_store(store):
    buffer = default_buffer_prototype().buffer
    return zarr.storage.MemoryStore({key: buffer.from_bytes(value) for key, value in contents(store).items()})


def test_format_without_consolidated_metadata_says_so():
    source = MemoryStore()
    omnizarr.create_group(source, zarr_format=2).create_array("x", data=GRID)
    omnizarr.consolidate_metadata(source)
    report = omnizarr.convert(source, {}, zarr_format="3-draft2019")
    assert any("consolidated" in remark for remark in report.nodes[0].remarks)


@pytest.mark.parametrize("zarr_format", [2, 3, "3-draft2020"])
def test_node_that_only_consolidated_metadata_speaks_of_is_carried_and_said_so(zarr_format):
    source, target = MemoryStore(), MemoryStore()
    root = omnizarr.create_group(source, zarr_format=zarr_format)
    root.create_array("g/x", data=GRID, chunks=(4, 3))
    root.create_array("y", data=GRID)
    omnizarr.consolidate_metadata(source)
    for key in [key for key in source.list() if key.endswith(("g/x/.zarray", "g/x/zarr.json", "root/g/x.array.json"))]:
        source.delete(key)
    report = omnizarr.convert(source, target, zarr_format=2)
    np.testing.assert_array_equal(omnizarr.open(target)["g/x"][...], GRID)
    assert [node.path for node in report.nodes if any("consolidated" in remark for remark in node.remarks)] == ["g/x"]


@pytest.mark.parametrize("dtype", ["<f4", "|S4"])
def test_spellings_that_are_only_tolerated_are_written_to_the_letter(dtype):
    # as zarr 1 wrote them
    document = {"zarr_format": 1, "shape": [4], "chunks": [2], "dtype": dtype, "order": "C"}
    document |= {"compression": "none", "compression_opts": None, "fill_value": np.nan if dtype == "<f4" else 0}
    source = MemoryStore({"meta": json.dumps(document).encode(), "attrs": b"{}", "0": bytes(8)})
    target = MemoryStore()
    report = omnizarr.convert(source, target, zarr_format=1)
    assert (report.nodes[0].how, report.losses) == ("copied", ())
    assert bits(omnizarr.open(target)[...]) == bits(omnizarr.open(source)[...])
    assert json.loads(bytes(target.get("meta")))["fill_value"] in ("NaN", "0")


def test_store_that_cannot_be_listed_is_converted_from_its_consolidated_metadata():
    source, target = MemoryStore(), MemoryStore()
    omnizarr.create_group(source, zarr_format=2).create_array("g/x", data=GRID, chunks=(4, 3))
    omnizarr.consolidate_metadata(source)
    assert omnizarr.convert(UnlistableStore(source, admits=False), target).verified
    np.testing.assert_array_equal(omnizarr.open(target)["g/x"][...], GRID)


def test_progress_adds_up_to_its_total():
    calls = []

    class Bar:
        def __init__(self, **options):
            calls.append(options)
            self.done = 0
            self.is_closed = False
            bars.append(self)

        def update(self, nbytes):
            self.done += nbytes

        def close(self):
            self.is_closed = True

    bars = []
    omnizarr.convert(make_simple(2), {}, progress=Bar)
    assert calls[0].items() >= {"unit": "B", "desc": "converting"}.items()
    assert (bars[0].done, bars[0].is_closed) == (calls[0]["total"], True)


def make_simple(zarr_format, store=None):
    store = MemoryStore() if store is None else store
    root = omnizarr.create_group(store, zarr_format=zarr_format, attributes={"title": "t"})
    root.create_array("a", data=GRID, chunks=(4, 3), attributes={"units": "K"})
    root.create_array("g/b", data=GRID * 0.5, chunks=(3, 3), fill_value=np.nan)
    return store


# -- places ----------------------------------------------------------------------------------------


@formats
def test_array_alone(zarr_format):
    source, target = MemoryStore(), MemoryStore()
    omnizarr.create_array(source, name="a/b", data=GRID, chunks=(4, 3), zarr_format=2, attributes={"units": "K"})
    omnizarr.convert(source, target, path="a/b", zarr_format=zarr_format)
    found = omnizarr.open(target)
    np.testing.assert_array_equal(found[...], GRID)
    assert dict(found.attrs) == {"units": "K"}


def test_nodes_and_paths_within_hierarchies(tmp_path):
    source = omnizarr.open(make_simple(2))
    omnizarr.create_group(tmp_path / "new.zarr")
    report = omnizarr.convert(source["g"], tmp_path / "new.zarr" / "deep" / "er", zarr_format=3)
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "new.zarr" / "deep/er")["b"][...], GRID * 0.5)
    assert report.target == str(tmp_path / "new.zarr" / "deep" / "er")


@pytest.mark.parametrize("zarr_format", [2, 3, "3-draft2020"])
def test_zip_to_zip(tmp_path, zarr_format):
    with omnizarr.storage.ZipStore(tmp_path / "old.zip", mode="w") as store:
        make_simple(2, store)
    omnizarr.convert(tmp_path / "old.zip", tmp_path / "new.zip", zarr_format=zarr_format)
    found = omnizarr.open(tmp_path / "new.zip", mode="r")
    np.testing.assert_array_equal(found["g/b"][...], GRID * 0.5)
    assert journal.KEY not in zipfile.ZipFile(tmp_path / "new.zip").namelist()


def test_target_within_the_source_is_refused():
    store = make_simple(2)
    with pytest.raises(errors.NodeNameError):
        omnizarr.convert(store, store)
    with pytest.raises(errors.NodeNameError):
        omnizarr.convert(omnizarr.open(store), omnizarr.open(store)["g"])
    with pytest.raises(errors.NodeNameError):
        omnizarr.convert(omnizarr.open(store)["g"], omnizarr.open(store), overwrite=True)


def test_target_below_an_array_is_refused_before_anything_is_written():
    target = MemoryStore()
    omnizarr.create_array(target, name="x", data=GRID)
    before = contents(target)
    with pytest.raises(errors.ContainsArrayError, match="nodes cannot lie below it"):
        omnizarr.convert(make_simple(2), omnizarr.storage.StorePath(target, "x/y"), zarr_format=3)
    assert contents(target) == before


def test_target_that_is_there_is_refused():
    target = make_simple(3)
    before = contents(target)
    with pytest.raises(errors.ContainsGroupError, match="overwrite=True"):
        omnizarr.convert(make_simple(2), target)
    assert contents(target) == before


@formats
@pytest.mark.parametrize("there", FORMATS)
def test_overwrite_replaces_whatever_is_there(there, zarr_format):
    target, clean = MemoryStore(), MemoryStore()
    omnizarr.create_array(target, name="g/old", shape=(100,), chunks=(1,), dtype="i1", zarr_format=there)[...] = 1
    omnizarr.convert(make_simple(2), target, zarr_format=zarr_format, overwrite=True)
    omnizarr.convert(make_simple(2), clean, zarr_format=zarr_format)
    assert contents(target) == contents(clean)


def test_overwrite_leaves_what_is_not_of_the_hierarchy():
    target = MemoryStore({"notes.txt": b"mine", "a/notes.txt": b"mine too"})
    omnizarr.convert(make_simple(2), target, overwrite=True)
    assert (target.get("notes.txt"), target.get("a/notes.txt")) == (b"mine", b"mine too")


def test_chunks_without_a_document_in_the_target_are_refused():
    target = MemoryStore({"a/c/0/0": b"of whom?"})
    with pytest.raises(errors.NodeExistsError, match="but no array"):
        omnizarr.convert(make_simple(2), target)
    assert contents(target) == {"a/c/0/0": b"of whom?"}
    assert omnizarr.convert(make_simple(2), target, overwrite=True).verified


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"in_place": True, "resume": True},
        {"target": {}, "in_place": True},
        {"target": {}, "overwrite": True, "resume": True},
        {"in_place": True, "chunks": 3},
        {"target": {}, "zarr_format": 7},
    ],
)
def test_keywords_that_are_not_valid_are_refused(options):
    with pytest.raises(ValueError):
        omnizarr.convert(make_simple(2), **options)


# -- huge and sparse -----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"chunks": (2**10, 3)}, {"chunks": (2**9, 2), "shards": (2**10, 6)}])
def test_sparse_array_with_more_elements_than_can_be_counted(options):
    source, target = MemoryStore(), MemoryStore()
    array = omnizarr.create_array(
        source, shape=(2**63 - 1, 2**40), chunks=(2**10, 4), dtype="u1", zarr_format=2, fill_value=3
    )
    array[2**62 : 2**62 + 5, 2**39 - 1 : 2**39 + 4] = 9
    began = time.monotonic()
    report = omnizarr.convert(source, target, **options)
    assert time.monotonic() - began < 10
    assert report.verified
    found = omnizarr.open(target)
    assert (found[2**62 - 1 : 2**62 + 6, 2**39 - 2 : 2**39 + 5] == 9).sum() == 25
    assert found[0, 0] == 3


def test_sparse_array_that_would_have_to_be_filled_is_refused():
    fill = np.array([0x7FC00ABC], "u4").view("f4")[0]
    source = omnizarr.create_array({}, shape=(2**62,), chunks=(4,), dtype="float32", fill_value=fill)
    with pytest.raises(errors.NotRepresentableError, match="too many"):
        omnizarr.convert(source, {}, zarr_format=2)


# -- interruptions -------------------------------------------------------------------------------------

CONVERTER = """
import sys, omnizarr
from omnizarr.stores import LocalStore
from tests.fakes import FaultyStore
source, target, options = sys.argv[1], FaultyStore(LocalStore(sys.argv[2]), delay=0.005), eval(sys.argv[3])
omnizarr.convert(source, {}, **options)  # whatever is imported, is
print("ready", flush=True)
omnizarr.convert(source, target, resume=True, **options)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
@pytest.mark.parametrize("options", [{"zarr_format": 3}, {"zarr_format": 1}], ids=["copied", "encoded"])
@pytest.mark.slow
def test_killed_conversion_shows_no_array_that_is_not_whole_and_is_resumed(tmp_path, options):
    rng = random.Random(7)
    values = np.arange(24 * 24).reshape(24, 24)
    root = omnizarr.create_group(tmp_path / "old", zarr_format=2)
    for name in "abc":
        root.create_array(f"g/{name}", data=values, chunks=(4, 4), compressors={"id": "zstd", "level": 1})
    before = contents(LocalStore(tmp_path / "old"))
    target = tmp_path / "new"
    unfinished = 0
    for _ in range(KILLS // 2):
        command = [sys.executable, "-c", CONVERTER, str(tmp_path / "old"), str(target), repr(options)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0, 0.5))
        child.send_signal(signal.SIGKILL)
        child.wait(10)
        child.stdout.close()
        child.stderr.close()
        unfinished += (target / journal.KEY).exists()
        with contextlib.suppress(errors.NodeNotFoundError):  # nothing is complete yet
            for found in arrays_of(target).values():
                np.testing.assert_array_equal(found[...], values)
    assert unfinished
    assert omnizarr.convert(tmp_path / "old", target, resume=True, **options).verified
    assert not (target / journal.KEY).exists()
    assert contents(LocalStore(tmp_path / "old")) == before
    clean = MemoryStore()
    omnizarr.convert(tmp_path / "old", clean, **options)
    assert contents(LocalStore(target)) == contents(clean)


@pytest.mark.parametrize("verb", ["get", "set", "read_into", "list_dir", "exists", "lock"])
@pytest.mark.parametrize("options", [{}, {"chunks": (5, 5)}], ids=["copied", "encoded"])
@pytest.mark.sampled(3)
def test_failing_store_leaves_what_can_be_resumed(verb, options):
    source, clean = make_simple(2), MemoryStore()
    omnizarr.convert(source, clean, **options)
    for nth in itertools.count(1):
        inner = MemoryStore()
        target = FaultyStore(inner)
        target.fail(verb, nth)
        try:
            omnizarr.convert(source, target, concurrency=1, **options)
        except errors.StoreError:
            pass
        else:
            break
        for path, array in opened(inner, 3).items() if inner.exists("zarr.json") else ():
            np.testing.assert_array_equal(array[...], GRID if path == "a" else GRID * 0.5)
        omnizarr.convert(source, inner, resume=True, **options)
        assert contents(inner) == contents(clean)
    assert contents(inner) == contents(clean)


def test_failing_source_leaves_what_can_be_resumed():
    source, clean = make_simple(2), MemoryStore()
    omnizarr.convert(source, clean)
    for nth in range(1, 40, 3):
        target, faulty = MemoryStore(), FaultyStore(source)
        faulty.fail("get", nth)
        with pytest.raises(errors.StoreError):
            omnizarr.convert(faulty, target)
        omnizarr.convert(source, target, resume=True)
        assert contents(target) == contents(clean)


def test_torn_chunk_is_found_by_verification_and_the_array_does_not_appear():
    inner = MemoryStore()
    target = FaultyStore(inner)
    target.tear(4, keep=3)
    with pytest.raises(errors.OmnizarrError):
        omnizarr.convert(make_simple(2), target, concurrency=1)
    assert "a/zarr.json" not in contents(inner)


def interrupting(store):
    """Return a store in which Ctrl-C comes when the fifth value is written."""
    faulty = FaultyStore(store)
    faulty.fail("set", 5, KeyboardInterrupt())
    return faulty


def test_interrupted_conversion_is_resumed():
    target, clean = MemoryStore(), MemoryStore()
    with pytest.raises(KeyboardInterrupt):
        omnizarr.convert(make_simple(2), interrupting(target))
    assert journal.KEY in contents(target)
    report = omnizarr.convert(make_simple(2), target, resume=True)
    assert 0 < report.chunks() < omnizarr.convert(make_simple(2), clean).chunks()
    assert contents(target) == contents(clean)


def test_of_conversions_that_begin_at_once_one_is_done(tmp_path):
    source = omnizarr.create_array({}, data=np.arange(60), chunks=(10,))
    for turn in range(5):
        target, barrier, done = tmp_path / str(turn), threading.Barrier(4), []

        def begin(length, target=target, barrier=barrier, done=done):
            barrier.wait()
            with contextlib.suppress(errors.NodeExistsError):
                omnizarr.convert(source, target, chunks=(length,))
                done.append(length)

        threads = [threading.Thread(target=begin, args=(length,)) for length in (2, 3, 4, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(done) == 1
        assert omnizarr.open(target).chunks == (done[0],)


def test_unfinished_conversion_is_not_begun_again_unasked():
    target = MemoryStore()
    with pytest.raises(KeyboardInterrupt):
        omnizarr.convert(make_simple(2), interrupting(target))
    with pytest.raises(errors.NodeExistsError, match=r"resume=True.*overwrite=True"):
        omnizarr.convert(make_simple(2), target)
    assert omnizarr.convert(make_simple(2), target, overwrite=True).verified


def test_source_that_is_an_unfinished_conversion_is_a_loss():
    source = MemoryStore()
    with pytest.raises(KeyboardInterrupt):
        omnizarr.convert(make_simple(2), interrupting(source))
    report = omnizarr.convert(source, {})
    assert "not finished" in report.losses[0].why


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"zarr_format": 2}, "other format"),
        ({"chunks": (2, 2)}, "other options"),
        ({"source": 3}, "other documents of the source"),
    ],
)
def test_another_conversion_is_not_resumed(change, named):
    target = MemoryStore()
    with pytest.raises(KeyboardInterrupt):
        omnizarr.convert(make_simple(2), interrupting(target))
    before = contents(target)
    with pytest.raises(errors.NodeExistsError, match=named):
        omnizarr.convert(make_simple(change.pop("source", 2)), target, resume=True, **change)
    assert contents(target) == before


@pytest.mark.parametrize("value", [b"", b"{}", b'{"omnizarr_conversion": {"version": 99}}', b"[1]"])
def test_journal_that_is_none_is_refused(value):
    target = MemoryStore({journal.KEY: value})
    with pytest.raises(errors.NodeExistsError, match="cannot be resumed"):
        omnizarr.convert(make_simple(2), target, resume=True)
    assert omnizarr.convert(make_simple(2), target, overwrite=True).verified
    assert journal.KEY not in contents(target)


def test_resuming_what_is_complete_changes_nothing():
    target = MemoryStore()
    omnizarr.convert(make_simple(2), target)
    before = contents(target)
    report = omnizarr.convert(make_simple(2), target, resume=True)
    assert contents(target) == before
    assert {node.how for node in report.nodes if node.node_type == "array"} == {"done before"}
    assert report.verified


@pytest.mark.parametrize("inside", ["", "new", "group/new"])
def test_a_target_in_the_source_is_refused_with_the_remedy(tmp_path, inside):
    omnizarr.create_group(tmp_path / "x.zarr", zarr_format=2).create_group("group")
    with pytest.raises(errors.NodeNameError, match="in the source") as raised:
        omnizarr.convert(tmp_path / "x.zarr", tmp_path / "x.zarr" / inside)
    assert "x.zarr" in raised.value.found
    assert raised.value.remedy == "choose a target elsewhere, or convert with in_place=True"


def test_resuming_over_something_else_is_refused():
    target = MemoryStore()
    omnizarr.create_array(target, data=GRID)
    with pytest.raises(errors.ContainsArrayError):
        omnizarr.convert(make_simple(2), target, resume=True)


# -- verification ------------------------------------------------------------------------------------------


class Corrupting(WrapperStore):
    """Writes chunk 1/1 of each array wrongly."""

    def set(self, key, value):
        super().set(key, bytes(len(value)) if key.endswith("c/1/1") else value)


@pytest.mark.parametrize("options", [{}, {"chunks": (5, 3)}], ids=["copied", "encoded"])
def test_verification_names_path_region_and_values(options):
    source, target = MemoryStore(), MemoryStore()
    omnizarr.create_group(source).create_array("a", data=GRID, chunks=(4, 3), compressors=None)
    with pytest.raises(errors.ChunkError) as caught:
        omnizarr.convert(source, Corrupting(target), **options)
    text = str(caught.value)
    first = (4, 3) if not options else (5, 3)
    assert f"first at {first}" in text
    assert repr(np.int64(GRID[first])) in text
    assert caught.value.path == "a"
    assert "a/zarr.json" not in contents(target)


def test_without_verification_nothing_is_read_again():
    target = MemoryStore()
    report = omnizarr.convert(make_simple(2), Corrupting(target), verify=False)
    assert not report.verified


# -- in place -------------------------------------------------------------------------------------------------


def make_v2(**options):
    store = MemoryStore()
    root = omnizarr.create_group(store, zarr_format=2, attributes={"title": "t"})
    root.create_array("a", data=GRID, chunks=(4, 3), attributes={"_ARRAY_DIMENSIONS": ["y", "x"]}, **options)
    root.create_array("g/b", data=GRID.astype(">f4"), chunks=(3, 3), order="F", dimension_separator="/")
    return store


@pytest.mark.parametrize("consolidated", [False, True])
def test_in_place_is_reversed_exactly(consolidated):
    store = make_v2()
    if consolidated:
        omnizarr.consolidate_metadata(store)
    before = contents(store)
    report = omnizarr.convert(store, in_place=True)
    assert report.is_lossless
    assert {key: value for key, value in contents(store).items() if key in before} == before
    assert {key for key in contents(store) if key not in before} == {
        "zarr.json",
        "a/zarr.json",
        "g/zarr.json",
        "g/b/zarr.json",
    }
    root = omnizarr.open(store)
    assert (root.zarr_format, root["a"].dimension_names) == (3, ("y", "x"))
    np.testing.assert_array_equal(root["a"][...], GRID)
    np.testing.assert_array_equal(root["g/b"][...], GRID)
    assert ("consolidated_metadata" in json.loads(bytes(store.get("zarr.json")))) == consolidated
    report = omnizarr.convert(store, in_place=True, zarr_format=2)
    assert len(report.removed) == 4
    assert contents(store) == before


def test_in_place_result_is_read_by_zarr_python(tmp_path):
    store = LocalStore(tmp_path)
    for key, value in contents(make_v2()).items():
        store.set(key, value)
    omnizarr.convert(tmp_path, in_place=True)
    for zarr_format in (2, 3):
        root = zarr.open_group(tmp_path, mode="r", zarr_format=zarr_format)
        np.testing.assert_array_equal(root["a"][...], GRID)
        np.testing.assert_array_equal(root["g/b"][...], GRID)


def test_in_place_twice_changes_nothing():
    store = make_v2()
    omnizarr.convert(store, in_place=True)
    before = contents(store)
    omnizarr.convert(store, in_place=True)
    assert contents(store) == before


@pytest.mark.parametrize("remove_old", [False, True])
def test_in_place_interrupted_at_any_time_is_done_again(remove_old):
    whole = make_v2()
    omnizarr.convert(whole, in_place=True, remove_old=remove_old)
    for verb, nth in itertools.product(("set", "delete"), (1, 2, 3, 4)):
        store = make_v2()
        faulty = FaultyStore(store)
        faulty.fail(verb, nth)
        try:
            omnizarr.convert(faulty, in_place=True, remove_old=remove_old)
        except errors.StoreError:
            np.testing.assert_array_equal(omnizarr.open(store)["g/b"][...], GRID)
            omnizarr.convert(store, in_place=True, remove_old=remove_old)
        assert contents(store) == contents(whole)


def test_in_place_with_remove_old_and_back():
    store = make_v2()
    before = contents(store)
    report = omnizarr.convert(store, in_place=True, remove_old=True)
    assert sorted(report.removed) == sorted(key for key in before if "/.z" in f"/{key}")
    with pytest.raises(errors.NotRepresentableError, match="remove_old=True"):
        omnizarr.convert(store, in_place=True, zarr_format=2)
    omnizarr.convert(store, in_place=True, zarr_format=2, remove_old=True)
    assert set(contents(store)) == set(before)
    root = omnizarr.open(store)
    assert root.zarr_format == 2
    np.testing.assert_array_equal(root["g/b"][...], GRID)


def test_in_place_from_v1_to_v2_to_v3_and_back():
    store = MemoryStore()
    omnizarr.create_array(store, name="d/x", data=GRID, chunks=(4, 3), zarr_format=1, attributes={"units": "K"})
    before = contents(store)
    for zarr_format in (2, 3):
        omnizarr.convert(store, in_place=True, zarr_format=zarr_format)
        found = omnizarr.open(store)
        assert found.zarr_format == zarr_format
        np.testing.assert_array_equal(found["d/x"][...], GRID)
    for zarr_format in (2, 1):
        omnizarr.convert(store, in_place=True, zarr_format=zarr_format)
        assert omnizarr.open(store)["d/x"].zarr_format == zarr_format
    assert contents(store) == before


def test_in_place_dry_run_writes_nothing():
    store = make_v2()
    before = contents(store)
    report = omnizarr.convert(store, in_place=True, remove_old=True, dry_run=True)
    assert contents(store) == before
    assert report.removed


@pytest.mark.parametrize(
    ("make_store", "zarr_format", "reason"),
    [
        (lambda: make_simple(3), 2, "/a"),
        (lambda: make_v2(compressors={"id": "gzip"}), 1, "/a"),
        (make_v2, "3-draft2020", "keeps chunks elsewhere"),
        (make_v2, 2, "already"),
    ],
    ids=["keys", "codec", "keyspace", "same"],
)
def test_in_place_is_refused_where_chunks_cannot_stay(make_store, zarr_format, reason):
    store = make_store()
    before = contents(store)
    with pytest.raises(errors.NotRepresentableError, match=reason):
        omnizarr.convert(store, in_place=True, zarr_format=zarr_format)
    assert contents(store) == before


def test_in_place_does_not_undo_what_was_written_since():
    store = make_v2()
    omnizarr.convert(store, in_place=True)
    omnizarr.open(store)["a"].attrs["new"] = 1
    before = contents(store)
    with pytest.raises(errors.NodeExistsError, match="say something else"):
        omnizarr.convert(store, in_place=True, zarr_format=2)
    assert contents(store) == before
    omnizarr.convert(store, in_place=True, zarr_format=2, overwrite=True, remove_old=True)
    assert omnizarr.open(store)["a"].attrs["new"] == 1


# -- the account ------------------------------------------------------------------------------------------------


def test_account_is_json_and_text(hierarchies):
    report = omnizarr.convert(hierarchies[3][0], {}, zarr_format=1)
    document = json.loads(json.dumps(report.to_json()))
    assert document["lossless"] is False
    assert document["verified"] is True
    assert len(document["nodes"]) == len(report.nodes)
    text = str(report)
    assert f"{len(report.losses)} things could not be carried" in text
    assert all(loss.what in text for loss in report.losses)


# -- any array ----------------------------------------------------------------------------------------------------

SHAPES = st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple)


@given(data=st.data(), shape=SHAPES, old=st.sampled_from(FORMATS), new=st.sampled_from(FORMATS))
def test_any_array_is_carried_to_any_layout(data, shape, old, new):
    lengths = st.tuples(*[st.integers(1, 10) for _ in shape])
    chunks, asked = data.draw(lengths), data.draw(st.none() | lengths)
    dtype = data.draw(st.sampled_from(["<i2", ">i4", "<f8", "|b1", "|u1"]))
    part = tuple(slice(*sorted((data.draw(st.integers(0, n)), data.draw(st.integers(0, n))))) for n in shape)
    values = np.ones(shape, dtype)
    values[part] = (np.arange(values.size).reshape(shape) % 100).astype(dtype)[part]
    source, target = MemoryStore(), MemoryStore()
    array = omnizarr.create_array(source, shape=shape, chunks=chunks, dtype=dtype, fill_value=1, zarr_format=old)
    array[part] = values[part]
    report = omnizarr.convert(source, target, zarr_format=new, chunks=asked)
    assert report.is_lossless
    found = omnizarr.open(target)
    np.testing.assert_array_equal(found[...], values)
    asked = asked and tuple(min(wanted, n or wanted) for wanted, n in zip(asked, shape, strict=True))
    assert found.chunks == (asked or tuple(max(n, 1) for n in array.chunks))


@pytest.mark.parametrize("shards", ["auto", True, {"shape": "auto", "index_location": "start"}])
def test_automatic_shards_are_those_that_are_advised(shards):
    source = omnizarr.create_array({}, data=np.arange(90_000.0).reshape(300, 300), chunks=(10, 30), zarr_format=2)
    target = {}
    omnizarr.convert(source, target, shards=shards)
    made = omnizarr.open_array(target)
    assert made.chunks == (10, 30)
    assert made.shards == (300, 300)  # all of it has less than the 64 MiB that shards have
    assert len(target) == 2
    if isinstance(shards, dict):
        assert made.metadata.codecs[0].configuration["index_location"] == "start"
    np.testing.assert_array_equal(made[...], source[...])


def test_automatic_shards_of_a_large_array_have_about_64_mib():
    source = omnizarr.create_array({}, shape=(10**6, 10**4), chunks=(1000, 100), dtype="float64", fill_value=0)
    target = {}
    omnizarr.convert(source, target, shards="auto")
    made = omnizarr.open_array(target)
    assert all(shard % size == 0 for shard, size in zip(made.shards, made.chunks, strict=True))
    assert 32 * 2**20 < np.prod(made.shards) * 8 <= 64 * 2**20


def test_automatic_shards_leave_arrays_of_one_chunk_without():
    source = omnizarr.create_group({})
    source["scalar"] = 3.5
    source["one"] = np.arange(5)
    source.create_array("texts", data=np.array(["a", "b", "c"], np.dtypes.StringDType()), chunks=(1,))
    target = {}
    report = omnizarr.convert(source, target, shards="auto")
    made = omnizarr.open_group(target)
    assert [made[name].shards for name in ("scalar", "one", "texts")] == [None, None, (3,)]
    assert not any("laid out" in remark for node in report.nodes for remark in node.remarks if node.path != "texts")


def test_automatic_chunks_with_automatic_shards_are_those_that_are_advised():
    source = omnizarr.create_array({}, shape=(2000, 400, 500), chunks=(1, 400, 500), dtype="int16", fill_value=0)
    target = {}
    omnizarr.convert(source, target, chunks="auto", shards="auto")
    made = omnizarr.open_array(target)
    advice = omnizarr.advise(shape=source.shape, dtype="int16")
    assert (made.chunks, made.shards) == (advice.chunks, advice.shards)


def test_resuming_automatic_shards_finds_the_same_ones(tmp_path):
    source = omnizarr.create_array({}, data=np.arange(90_000.0).reshape(300, 300), chunks=(10, 30))
    omnizarr.convert(source, tmp_path / "x.zarr", shards="auto")
    again = omnizarr.convert(source, tmp_path / "x.zarr", shards="auto", resume=True)
    assert again.nodes[0].how == "done before"


def test_complete_target_is_compared_again_only_if_something_may_have_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "_COARSE", 0.0)
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    omnizarr.create_group(source, zarr_format=2).create_array("g/x", data=np.arange(6), chunks=(2,))
    time.sleep(0.05)
    omnizarr.convert(source, target, zarr_format=3)

    def resumed():
        done = omnizarr.convert(source, target, zarr_format=3, resume=True)
        (array,) = [node for node in done.nodes if node.path == "g/x"]
        assert array.how == "done before"
        return array.verified, any("neither it nor its source has changed" in remark for remark in array.remarks)

    assert resumed() == ("", True)
    before = (source / "g/x/0").read_bytes()
    (source / "g/x/0").write_bytes(before)  # the same, but later
    assert resumed() == ("values", False)
    chunk = target / "g/x/c/1"
    value = chunk.read_bytes()
    chunk.unlink()
    with pytest.raises(errors.ChunkError):
        omnizarr.convert(source, target, zarr_format=3, resume=True)
    chunk.write_bytes(value)
    assert resumed() == ("values", False)


@pytest.mark.parametrize("change", ["chunk of the target", "missing chunk of the target", "new chunk of the source"])
def test_change_after_a_conversion_is_found_when_it_is_resumed(tmp_path, monkeypatch, change):
    monkeypatch.setattr(journal, "_COARSE", 0.0)
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    root = omnizarr.create_group(source, zarr_format=2)
    root.create_array("x", shape=(6,), dtype="i4", chunks=(2,), compressors=None)[:4] = 5
    time.sleep(0.05)
    omnizarr.convert(source, target, zarr_format=3)
    time.sleep(0.3)
    if change == "chunk of the target":
        omnizarr.open_array(target, path="x", mode="r+")[0] = 7
    elif change == "missing chunk of the target":
        (target / "x/c/0").unlink()
    else:
        root["x"][5] = 7
    with pytest.raises(errors.ChunkError):
        omnizarr.convert(source, target, zarr_format=3, resume=True)


def test_digests_are_of_what_documents_mean():
    texts = [
        b'{"a": 1e2, "b": [1, {"c": "x"}]}',
        b'{\n "a" : 100.0,\n "b":[ 1,{"c":"\\u0078"} ] }',
        b'{"a": 100, "b": [1]}',
    ]
    found = [journal.digest([("p", {"zarr.json": parse(text)})]) for text in texts]
    assert found[0] == found[1] != found[2]
    assert journal.digest([("q", {"zarr.json": parse(texts[0])})]) != found[0]
    assert not any(map(journal.is_old_digest, found))
    assert journal.is_old_digest(_SOURCE_BEFORE)
    assert journal.digest([("p", {"x": {"a": np.float32(0.5), "b": (1, 2)}})]) == journal.digest(
        [("p", {"x": {"a": 0.5, "b": [1, 2]}})]
    )
    with pytest.raises(errors.MetadataError, match="a number that cannot be written"):
        journal.digest([("p", {"x": {"a": 10**5000}})])


_SOURCE_BEFORE = "667f7296312292c391d5ece4a3de689fbe6969afb8911be6cfcb9fa119ecb867"
_V2_BEFORE = "e1348528842b83f8a2b71c30b3cce424e159fdf5e5ea3fead39ed93f17e32607"


@pytest.mark.parametrize("has_copies", [False, True])
@pytest.mark.parametrize(("zarr_format", "digest"), [(2, _V2_BEFORE), (3, _SOURCE_BEFORE)])
def test_a_conversion_that_an_older_version_began_is_resumed(has_copies, zarr_format, digest):
    array = {
        "shape": [4],
        "data_type": "int16",
        "node_type": "array",
        "zarr_format": 3,
        "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "gzip", "configuration": {"level": 1}},
        ],
        "attributes": {},
        "dimension_names": ["x"],
    }
    group = {"zarr_format": 3, "node_type": "group", "attributes": {"title": "ocean"}}
    arrays = {f"{name}/zarr.json": json.dumps(array | {"attributes": {"units": name}}).encode() for name in "ab"}
    source = {"zarr.json": json.dumps(group).encode(), **arrays}
    if has_copies:
        omnizarr.consolidate_metadata(source)
    begun = journal.Journal(
        source="",
        source_format="v3",
        target_format=f"v{zarr_format}",
        options={},
        source_digest=_SOURCE_BEFORE,
        target_digest=digest,
        verify=True,
    )
    target = {journal.KEY: begun.document()}
    assert len(omnizarr.convert(source, target, zarr_format=zarr_format, resume=True).nodes) == 3
    assert journal.KEY not in target
