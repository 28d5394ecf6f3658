"""The codec and data type ``optional``: arrays of zarrs, masked arrays in and out, and what is refused."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.model import Named
from omnizarr.model.datatypes import bind, parse

CORPUS = Path(__file__).parents[1] / "corpus" / "zarrs_optional"
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
PACKED = {"name": "packbits"}
NONE, SOME_NONE = None, [None]


def codec(*data_codecs, mask_codecs=(PACKED,)):
    return {
        "name": "optional",
        "configuration": {"mask_codecs": list(mask_codecs), "data_codecs": list(data_codecs)},
    }


def document(shape, chunks, data_type, fill, *codecs):
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": list(codecs),
    }


UINT8 = {"name": "optional", "configuration": {"name": "uint8", "configuration": {}}}
NESTED = {"name": "optional", "configuration": UINT8}
# array_optional.zarr and array_optional_nested.zarr of zarrs (zarrs/tests/data/v3), the examples of the proposal
OF_ZARRS = {
    "plain": (
        document([4, 4], [2, 2], UINT8, None, codec(LITTLE)),
        {"c/0/0": "0100000000000000020000000000000009 0005", "c/0/1": "010000000000000003000000000000000b 020307",
         "c/1/0": "0100000000000000030000000000000007 08090c"},
        [[0, None, 2, 3], [None, 5, None, 7], [8, 9, None, None], [12, None, None, None]],
    ),
    "nested": (
        document([4, 4], [2, 2], NESTED, [None], codec(codec(LITTLE))),
        {"c/0/0": "01000000000000001200000000000000 0a 0100000000000000 0100000000000000 02 05",
         "c/0/1": "01000000000000001400000000000000 0b 0100000000000000 0300000000000000 07 020307",
         "c/1/1": "0100000000000000000000000000000000"},
        [[NONE, SOME_NONE, [2], [3]], [NONE, [5], NONE, [7]], *[[SOME_NONE, SOME_NONE, NONE, NONE]] * 2],
    ),
}  # fmt: skip


def plain(array):
    """Return the elements in the form of fill values, but one list less at the outside."""

    def of(element):
        if element is np.ma.masked:
            return None
        if isinstance(element, np.void) and element.dtype.names == ("valid", "value"):
            return [of(element["value"])] if element["valid"] else [None]
        return element.item() if hasattr(element, "item") else element

    return [[of(array[row, column]) for column in range(array.shape[1])] for row in range(array.shape[0])]


@pytest.mark.parametrize("name", OF_ZARRS)
def test_examples_of_zarrs_are_read(name):
    described, chunks, expected = OF_ZARRS[name]
    values = {"zarr.json": json.dumps(described).encode(), **{key: bytes.fromhex(text) for key, text in chunks.items()}}
    array = omnizarr.open_array(values)
    assert plain(array) == expected
    assert array.metadata.fill_value == described["fill_value"]
    assert array.engine == "reference"


@pytest.mark.parametrize("name", OF_ZARRS)
def test_the_bytes_are_those_of_zarrs(name):
    described, chunks, _ = OF_ZARRS[name]
    values = {"zarr.json": json.dumps(described).encode(), **{key: bytes.fromhex(text) for key, text in chunks.items()}}
    copied = {"zarr.json": values["zarr.json"]}
    omnizarr.open_array(copied, mode="r+")[...] = omnizarr.open_array(values)[...]
    assert copied == values


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Return the directory of what the program zarrs_optional.rs wrote."""
    place = tmp_path_factory.mktemp("zarrs")
    with zipfile.ZipFile(CORPUS / "store.zip") as archive:
        archive.extractall(place)
    return place


@pytest.mark.parametrize("name", ["numbers", "filled", "text", "nested"])
def test_arrays_of_zarrs_are_read_as_zarrs_reads_them(name, stored):
    """zarrs 0.23 calls type and codec ``zarrs.optional``. JSON has null for NaN."""
    expected = json.loads((CORPUS / "values.json").read_text(encoding="utf-8"))[name]
    found = np.asarray(omnizarr.open_array(stored / name)).ravel().tolist()
    assert [in_json(each) for each in found] == expected


def in_json(element):
    valid, value = element
    if not valid:
        return None
    if isinstance(value, tuple):
        return [in_json(value)]
    return [None if value != value else value]  # noqa: PLR0124 - NaN


VALUES = {
    "optional[int32]": [1, None, -3, 0, None, 6, 7],
    "optional[float64]": [1.5, None, float("inf"), 0.0, None, 6, 7],
    "optional[bool]": [True, None, False, False, None, True, True],
    "optional[string]": ["a", None, "", "löwe", None, "x" * 300, "y"],
    "optional[bytes]": [b"a", None, b"", b"\0", None, b"x" * 300, b"y"],
    "optional[U4]": ["a", None, "", "löwe", None, "xxxx", "y"],
    "optional[datetime64[s]]": [np.datetime64(n, "s") if n else None for n in (1, 0, 3, 4, 0, 6, 7)],
    "optional[complex64]": [1j, None, 0j, 2 + 1j, None, 3j, 4j],
}


def masked(values, dtype):
    missing = [value is None for value in values]
    filled = [values[0] if value is None else value for value in values]
    return np.ma.MaskedArray(np.array(filled, dtype), missing)


def same(found, expected):
    assert np.ma.getmaskarray(found).tolist() == np.ma.getmaskarray(expected).tolist()
    assert found.compressed().tolist() == expected.compressed().tolist()


@pytest.mark.parametrize("shards", [None, (4,)])
@pytest.mark.parametrize("spelled", VALUES)
def test_masked_arrays_go_in_and_come_out(spelled, shards):
    values = VALUES[spelled]
    array = omnizarr.create_array({}, shape=(7,), chunks=(2,), shards=shards, dtype=spelled)
    inner = array.dtype["value"]
    array[:] = masked(values, inner)
    same(array[...], masked(values, inner))
    for selection in (slice(1, 6, 2), slice(None, None, -1), [4, 0, 0], np.array([True, False] * 3 + [True])):
        same(array[selection], masked(values, inner)[selection])
        same(array.lazy[selection][...], masked(values, inner)[selection])
    same(array.lazy[::-1].reshape(7, 1)[:, 0], masked(values, inner)[::-1])
    assert array[1] is np.ma.masked
    assert array[0] == values[0]
    array[2:4] = [None, values[0]]
    array[-1] = np.ma.masked
    array.append(values[:2])
    expected = [*values[:2], None, values[0], *values[4:6], None, *values[:2]]
    same(array[...], masked(expected, inner))
    array.resize(1)
    array.resize(3)
    same(array[...], masked([values[0], None, None], inner))


def test_plain_arrays_are_all_there_and_none_is_missing():
    array = omnizarr.create_array({}, shape=(2, 3), dtype="optional[int16]")
    assert array[...].mask.all()
    array[...] = np.arange(6).reshape(2, 3)
    assert not array[...].mask.any()
    array[0] = None
    array[:, 2] = [9, None]
    assert array[...].tolist() == [[None, None, 9], [3, 4, None]]
    assert array.tolist() == [[None, None, 9], [3, 4, None]]
    assert array.item(1, 0) == 3
    assert array.item(1, 2) is None
    assert int(array.lazy[1:, 0][0]) == 3


def test_nullable_arrays_of_pandas_are_stored():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    array = omnizarr.create_array({}, shape=(3,), dtype="optional[int64]")
    array[...] = pandas.array([2**62 + 1, None, 3], dtype="Int64")
    assert array.tolist() == [2**62 + 1, None, 3]


def test_numpy_gets_records_so_that_no_mask_is_lost():
    array = omnizarr.create_array({}, shape=(3,), dtype="optional[int16]")
    array[:2] = [5, 6]
    records = np.asarray(array)
    assert records.tolist() == [(True, 5), (True, 6), (False, 0)]
    assert array["value"].tolist() == [5, 6, 0]
    other = omnizarr.create_array({}, data=array)
    assert (other.metadata.data_type, other.tolist()) == (array.metadata.data_type, [5, 6, None])
    other[...] = records[::-1]
    assert other.tolist() == [None, 6, 5]
    assert array.get_basic_selection((slice(1, 3),), out=np.empty(2, array.dtype)).tolist() == [(True, 6), (False, 0)]
    with pytest.raises(errors.ValueTypeError, match="out has another kind"):
        array.get_basic_selection(out=np.empty(3, "i2"))
    with pytest.raises(errors.SelectionError, match="change together"):
        array["valid"] = True


def test_what_lies_behind_a_mask_is_not_stored():
    values = {}
    array = omnizarr.create_array(values, shape=(2,), dtype="optional[int8]", compressors=None, fill_value=4)
    array[...] = np.ma.MaskedArray([77, 5], [True, False])
    assert values["c/0"] == bytes.fromhex("0100000000000000010000000000000002 05")
    array[...] = np.ma.MaskedArray([4, 4], [False, False])
    assert "c/0" not in values


@pytest.mark.parametrize(
    ("data_type", "passed", "document"),
    [
        ("optional[float32]", None, None),
        ("optional[float32]", np.ma.masked, None),
        ("optional[float32]", float("nan"), ["NaN"]),
        ("optional[float32]", [2.5], [2.5]),
        ("optional[string]", "x", ["x"]),
        ("optional[complex64]", [[1, 2]], [[1.0, 2.0]]),
        ("optional[optional[int8]]", None, None),
        ("optional[optional[int8]]", [None], [None]),
        ("optional[optional[int8]]", 3, [[3]]),
        ("optional[optional[int8]]", [[3]], [[3]]),
    ],
)
def test_fill_values_have_the_form_of_the_text(data_type, passed, document):
    array = omnizarr.create_array({}, shape=(1,), dtype=data_type, fill_value=passed)
    assert array.metadata.fill_value == document
    again = omnizarr.create_array({}, shape=(1,), dtype=data_type, fill_value=array.fill_value)
    assert again.metadata.fill_value == document


@pytest.mark.parametrize("fill", [0, "x", [1, 2], [], [300], ["x"], {"valid": True}])
def test_other_fill_values_are_refused(fill):
    data_type = bind(Named("optional", {"name": "uint8"}))
    with pytest.raises(errors.MetadataError) as error:
        data_type.fill_from_json(fill)
    assert error.value.pointer.startswith("/fill_value")


def test_types_within_each_other_keep_what_is_missing_where():
    array = omnizarr.create_array({}, shape=(4,), dtype="optional[optional[int16]]")
    array[...] = np.ma.MaskedArray([1, 2, 3, 4], [0, 1, 0, 0])
    array[2] = np.array((True, (False, 9)), array.dtype)
    found = array[...]
    assert np.ma.getmaskarray(found)["valid"].tolist() == [False, True, False, False]
    assert found.data.tolist() == [(True, 1), (False, 0), (False, 0), (True, 4)]


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ({}, "not a data type"),
        ({"name": "no such type"}, "unknown data type"),
        ({"name": "int8", "more": 1}, "no such parameter"),
        ({"name": "omnizarr.object"}, "objects cannot be optional"),
        ({"name": "raw_bytes", "configuration": {"length_bytes": 0}}, "not a length"),
    ],
)
def test_types_that_no_text_allows_are_refused(configuration, message):
    with pytest.raises(errors.OmnizarrError, match=message) as error:
        bind(Named("optional", configuration))
    assert error.value.pointer.startswith("/data_type/configuration")


def test_deep_types_are_refused():
    named = Named("int8")
    for _ in range(40):
        named = Named("optional", {"name": named.name, "configuration": dict(named.configuration)})
    with pytest.raises(errors.MetadataError, match="nested too deeply"):
        bind(named)


@pytest.mark.parametrize("cut", [3, 15, 16, 18])
def test_cut_chunks_are_refused(cut):
    described, chunks, _ = OF_ZARRS["plain"]
    chunk = bytes.fromhex(chunks["c/0/0"])[:cut]
    array = omnizarr.open_array({"zarr.json": json.dumps(described).encode(), "c/0/0": chunk})
    with pytest.raises(errors.ChunkSizeError):
        array[0, 0]


@pytest.mark.parametrize(
    "codecs", [[LITTLE], [PACKED], [codec()], [codec(LITTLE, mask_codecs=())], [codec(codec(LITTLE))]]
)
def test_codecs_that_do_not_fit_are_refused(codecs):
    described = document([4], [2], UINT8, None, *codecs)
    array = omnizarr.open_array({"zarr.json": json.dumps(described).encode()})
    with pytest.raises(errors.CodecError):
        array[...]
    report = omnizarr.check({"zarr.json": json.dumps(described).encode()})
    assert not report.ok


def test_the_short_name_and_the_dtype_mean_the_type():
    found = parse("optional[float32]")
    assert found.named == Named("optional", {"name": "float32", "configuration": {}})
    assert parse(found.dtype) == found
    inner = {"name": "int4", "configuration": {}}
    assert parse("optional[optional[int4]]").named.configuration["configuration"] == inner
    assert parse([("valid", "?"), ("value", "f4")]).named.name == "struct"
