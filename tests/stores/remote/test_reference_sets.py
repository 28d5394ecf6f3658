"""Sets of references in Parquet that are made by hand; those that kerchunk writes are in `test_references`."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import MissingDependencyError, StoreError
from omnizarr.stores import MemoryStore, ReferenceStore
from omnizarr.stores.remote import reference_sets
from omnizarr.stores.remote.reference_sets import Partitions, Target
from tests.fakes import FaultyStore


def document(shape, chunks, **changes):
    return {
        "zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": "|u1", "fill_value": 9, "order": "C",
        "filters": None, "compressor": None, **changes,
    }  # fmt: skip


def metadata(record_size=4, **arrays):
    documents = {".zgroup": {"zarr_format": 2}, **{f"{path}/.zarray": value for path, value in arrays.items()}}
    return json.dumps({"metadata": documents, "record_size": record_size}).encode()


def parquet(**columns):
    """Return the bytes of a file in Parquet."""
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    written = arrow.BufferOutputStream()
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), written)
    return written.getvalue().to_pybytes()


def refs(*rows):
    """Return the bytes of a file of references: (path, offset, size), or the value itself, or None."""
    full = [row if isinstance(row, tuple) else (None, 0, 0) for row in rows]
    raws = [row if isinstance(row, bytes) else None for row in rows]
    paths, offsets, sizes = (list(column) for column in zip(*full, strict=True))
    return parquet(path=paths, offset=offsets, size=sizes, raw=raws)


def opened(values):
    store = MemoryStore(values)
    return Partitions(store, "", values[".zmetadata"])


def test_chunks_are_numbered_in_c_order_over_the_files():
    rows = [("f", number * 10 + 1, 10) for number in range(12)]
    values = {".zmetadata": metadata(5, **{"g/a": document([5, 8], [2, 2])})}
    values |= {f"g/a/refs.{number}.parq": refs(*rows[number * 5 : number * 5 + 5]) for number in range(3)}
    found = opened(values)
    expected = {f"g/a/{i}.{j}": Target("f", (4 * i + j) * 10 + 1, 10) for i in range(3) for j in range(4)}
    assert {key: found.find(key) for key in found.keys("g/a/") if ".z" not in key} == expected
    for key in ("g/a/3.0", "g/a/0.4", "g/a/0", "g/a/0.0.0", "g/a/00.0", "g/a/x.0", "g/a/zarr.json", "g/b/0.0", "g/a"):
        assert found.find(key) is None
    assert found.below("").prefixes == ["g/"]
    assert found.below("g/").prefixes == ["g/a/"]
    assert found.below("g/a/").keys == sorted(["g/a/.zarray", *expected])


@pytest.mark.parametrize(("shape", "chunks", "key"), [([], [], "a/0"), ([3], [3], "a/0"), ([3, 2], [3, 2], "a/0.0")])
def test_a_value_a_whole_file_and_what_is_not_stored(shape, chunks, key):
    for row, expected in ((b"abc", b"abc"), (("f", 0, 0), Target("f")), (None, None)):
        values = {".zmetadata": metadata(1, a=document(shape, chunks)), "a/refs.0.parq": refs(row)}
        assert opened(values).find(key) == expected


def test_keys_may_be_separated_by_slashes():
    values = {
        ".zmetadata": metadata(2, a=document([2, 1], [1, 1], dimension_separator="/")),
        "a/refs.0.parq": refs(b"x", b"y"),
    }
    found = opened(values)
    assert found.find("a/1/0") == b"y"
    assert sorted(found.keys("")) == [".zgroup", "a/.zarray", "a/0/0", "a/1/0"]
    assert found.below("a/").prefixes == ["a/0/", "a/1/"]


@pytest.mark.parametrize("columns", [("path", "offset", "size"), ("raw",)])
def test_columns_may_be_missing(columns):
    given = {"path": ["f"], "offset": [3], "size": [4], "raw": [b"v"]}
    values = {
        ".zmetadata": metadata(1, a=document([1], [1])),
        "a/refs.0.parq": parquet(**{name: given[name] for name in columns}),
    }
    assert opened(values).find("a/0") == (b"v" if columns == ("raw",) else Target("f", 3, 4))


def test_a_file_that_is_missing_says_that_no_chunk_is_stored(tmp_path):
    (tmp_path / ".zmetadata").write_bytes(metadata(2, a=document([6], [1])))
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "refs.1.parq").write_bytes(refs(b"\1", b"\2"))
    assert omnizarr.open(tmp_path, storage_options={"references": "trusted"})["a"][:].tolist() == [9, 9, 1, 2, 9, 9]


def test_a_file_with_fewer_references_than_it_should_have_is_an_error():
    values = {".zmetadata": metadata(4, a=document([4], [1])), "a/refs.0.parq": refs(b"x")}
    found = opened(values)
    assert found.find("a/0") == b"x"
    with pytest.raises(StoreError, match="fewer") as caught:
        found.find("a/1")
    assert caught.value.key == "a/refs.0.parq"


def test_a_file_that_is_no_parquet_is_an_error():
    values = {".zmetadata": metadata(4, a=document([4], [1])), "a/refs.0.parq": b"nonsense"}
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    with pytest.raises(StoreError, match="Parquet") as caught:
        opened(values).find("a/1")
    assert caught.value.key == "a/refs.0.parq"


def test_without_a_package_for_parquet_the_error_says_which(monkeypatch, tmp_path):
    for name in ("pyarrow", "pyarrow.parquet", "fastparquet"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / ".zmetadata").write_bytes(metadata(4, a=document([4], [1])))
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "refs.0.parq").write_bytes(b"PAR1")
    array = omnizarr.open(tmp_path, storage_options={"references": "trusted"})["a"]
    assert array.shape == (4,)
    with pytest.raises(MissingDependencyError, match=r"omnizarr\[parquet\]") as caught:
        array[:]
    assert caught.value.key.endswith("a/refs.0.parq")


@pytest.mark.parametrize(
    "broken",
    [
        b'{"record_size": 3}',
        b'{"record_size": 3, "metadata": []}',
        b'{"record_size": "x", "metadata": {}}',
        b'{"record_size": 3, "metadata": {"a/.zarray": {"shape": [3], "chunks": [0]}}}',
        b'{"record_size": 3, "metadata": {"a/.zarray": {"shape": [3], "chunks": [1, 1]}}}',
        b'{"record_size": 3, "metadata": {"a/.zarray": 3}}',
        b'{"record_size"',
    ],
)
def test_metadata_that_is_not_valid_is_an_error(broken, tmp_path):
    (tmp_path / ".zmetadata").write_bytes(broken)
    with pytest.raises(StoreError, match="metadata of a set") as caught:
        ReferenceStore(tmp_path)
    assert caught.value.key.endswith(".zmetadata")


@pytest.mark.parametrize("key", [".zarray", "a/zarr.json", "zarr.json"])
def test_arrays_whose_chunks_nobody_could_find_are_refused(key):
    value = json.dumps({"record_size": 3, "metadata": {key: {"shape": [3], "chunks": [1]}}}).encode()
    with pytest.raises(StoreError, match="known of arrays of Zarr v2"):
        opened({".zmetadata": value})


def test_a_bounded_number_of_files_is_kept(monkeypatch):
    rows = [("f", number, 1) for number in range(1000)]
    values = {f"a/refs.{number}.parq": refs(*rows[number * 10 : number * 10 + 10]) for number in range(100)}
    store = FaultyStore(MemoryStore(values))
    found = Partitions(store, "", metadata(10, a=document([1000], [1])))
    monkeypatch.setattr(reference_sets, "_MOST_BYTES", 5 * 64 * 10)
    assert [found.find(f"a/{number}") for number in range(1000)] == [Target(*row) for row in rows]
    assert (store.requests["get"], len(found._kept)) == (100, 5)
    assert all(found.find(f"a/{number}") for number in np.arange(960, 1000))
    assert store.requests["get"] == 100
