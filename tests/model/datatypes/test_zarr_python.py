"""Agreement with what zarr-python writes.

The table was recorded with zarr 3.4.2 (Python 3.12): for each row

    store = {}
    zarr.create_array(store, shape=(2,), dtype=dtype, fill_value=fill, zarr_format=3, compressors=None)
    document = json.loads(store["zarr.json"].to_bytes())

Columns: dtype and fill as passed, "data_type" and "fill_value" of the document.
"""

import numpy as np
import pytest

from omnizarr.model.datatypes import parse
from omnizarr.model.datatypes.structs import named_from_json, named_to_json

BYTES4 = {"name": "null_terminated_bytes", "configuration": {"length_bytes": 4}}
UTF32 = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}}
NESTED = [("a", ">i4"), ("b", "S3"), ("n", [("x", "u1"), ("y", "M8[s]")])]


def time(unit, scale, name="numpy.datetime64"):
    return {"name": name, "configuration": {"unit": unit, "scale_factor": scale}}


def struct(*fields):
    return {"name": "struct", "configuration": {"fields": [{"name": n, "data_type": t} for n, t in fields]}}


RECORDED = [
    ("bool", True, "bool", True),
    ("int8", -3, "int8", -3),
    ("uint64", 2**64 - 1, "uint64", 18446744073709551615),
    ("int64", -(2**63), "int64", -9223372036854775808),
    ("float16", np.float16(1.1), "float16", 1.099609375),
    ("float32", np.float32(1.1), "float32", 1.100000023841858),
    ("float64", 1.1, "float64", 1.1),
    ("float64", np.nan, "float64", "NaN"),
    ("float64", np.inf, "float64", "Infinity"),
    ("float64", -0.0, "float64", -0.0),
    ("complex64", 1.5 - 2j, "complex64", [1.5, -2.0]),
    ("complex128", complex(np.nan, -np.inf), "complex128", ["NaN", "-Infinity"]),
    ("|V3", np.void(b"\1\2\3"), {"name": "raw_bytes", "configuration": {"length_bytes": 3}}, "AQID"),
    ("|S4", b"ab", BYTES4, "YWI="),
    ("|S4", b"\xff\0z", BYTES4, "/wB6"),
    ("<U3", "añ", UTF32, "a\u00f1"),
    (">U3", "z", UTF32, "z"),
    ("datetime64[ns]", np.datetime64("NaT", "ns"), time("ns", 1), -9223372036854775808),
    ("M8[10us]", np.datetime64(7, "10us"), time("us", 10), 7),
    ("M8[ns]", np.datetime64(-(2**62), "ns"), time("ns", 1), -4611686018427387904),
    ("m8[D]", np.timedelta64(-5, "D"), time("D", 1, "numpy.timedelta64"), -5),
    ("M8", np.array(-(2**63)).view("M8")[()], time("generic", 1), -9223372036854775808),
    ([("a", "<i4"), ("b", "<f4")], (1, np.nan), struct(("a", "int32"), ("b", "float32")), {"a": 1, "b": "NaN"}),
    ("string", "hé", "string", "h\u00e9"),
    (np.dtypes.StringDType(), "hé", "string", "h\u00e9"),
    ("variable_length_bytes", b"ab\xff", "variable_length_bytes", "YWL/"),
]


@pytest.mark.parametrize(("dtype", "fill", "data_type", "fill_value"), RECORDED)
def test_documents_agree(dtype, fill, data_type, fill_value):
    ours = parse(dtype)
    assert named_to_json(ours.named) == data_type
    document = ours.fill_to_json(ours.cast(fill))
    assert repr(document) == repr(fill_value)  # tells -0.0 from 0.0, and 1 from 1.0 and True


@pytest.mark.parametrize(("dtype", "fill", "data_type", "fill_value"), RECORDED)
def test_documents_are_read(dtype, fill, data_type, fill_value):
    ours = parse(dtype if dtype == "string" else named_from_json(data_type))
    assert ours.fill_to_json(ours.fill_from_json(fill_value)) == fill_value


def test_a_nested_record_of_both_byte_orders_agrees_but_for_the_byte_order():
    # zarr-python has no place for the byte order of a field and writes everything in the order of the codec.
    ours = parse(NESTED)
    inner = struct(("x", "uint8"), ("y", time("s", 1)))
    fields = struct(("a", "int32"), ("b", {**BYTES4, "configuration": {"length_bytes": 3}}), ("n", inner))
    document = named_to_json(ours.named)
    assert document["configuration"]["fields"][0].pop("byte_order") == ">"
    assert document == fields
    assert ours.fill_to_json(ours.cast((1, b"ab", (3, 5)))) == {"a": 1, "b": "YWI=", "n": {"x": 3, "y": 5}}
