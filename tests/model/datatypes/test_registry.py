"""From names to types."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import MetadataError, MissingDependencyError, UnknownDataTypeError
from omnizarr.model import Named
from omnizarr.model.datatypes import bind, parse
from omnizarr.model.datatypes.registry import PAIRS, SMALL, STRUCTS, TYPES

NUMPY = {
    "bool": "?",
    "int8": "i1",
    "int16": "i2",
    "int32": "i4",
    "int64": "i8",
    "uint8": "u1",
    "uint16": "u2",
    "uint32": "u4",
    "uint64": "u8",
    "float16": "f2",
    "float32": "f4",
    "float64": "f8",
    "complex64": "c8",
    "complex128": "c16",
    "complex_float32": "c8",
    "complex_float64": "c16",
}
EXAMPLES = [
    *(Named(name) for name in NUMPY),
    Named("r24"),
    Named("raw_bytes", {"length_bytes": 3}),
    Named("null_terminated_bytes", {"length_bytes": 3}),
    Named("fixed_length_utf32", {"length_bytes": 12}),
    Named("string"),
    Named("bytes"),
    Named("numpy.datetime64", {"unit": "s", "scale_factor": 1}),
    Named("struct", {"fields": [{"name": "a", "data_type": "int16"}]}),
    Named("omnizarr.object", {"codec": "json2"}),
    Named("omnizarr.vlen_array", {"data_type": "int16"}),
]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(("name", "code"), NUMPY.items())
def test_core_types_are_numpys_in_both_byte_orders(name, code, order):
    assert bind(Named(name), order).dtype == np.dtype(order + code)


@pytest.mark.parametrize("named", EXAMPLES)
def test_types_compare_hash_and_pickle(named):
    for order in "<>":
        data_type = bind(named, order)
        again = pickle.loads(pickle.dumps(data_type))
        assert again == data_type == bind(named, order)
        assert hash(again) == hash(data_type)
        assert again.dtype == data_type.dtype
        assert data_type != bind(Named("r8"))


def test_byte_order_distinguishes_types_that_have_one():
    assert bind(Named("int16"), "<") != bind(Named("int16"), ">")
    assert bind(Named("int8"), "<") == bind(Named("int8"), ">")


@pytest.mark.parametrize("named", EXAMPLES)
def test_defaults_are_values_of_the_type(named):
    data_type = bind(named)
    document = data_type.fill_to_json(data_type.default_fill_value)
    again = data_type.fill_from_json(document)
    assert np.array_equal(again, data_type.default_fill_value)


@pytest.mark.parametrize("name", ["int7", "", "Int32", "float128", "r", "rx", "<f4", "datetime64", "r8 ", "r٨"])
def test_unknown_names_are_named_with_what_is_known(name):
    with pytest.raises(UnknownDataTypeError) as caught:
        bind(Named(name))
    assert caught.value.pointer == "/data_type"
    assert caught.value.found == name
    assert "float32" in caught.value.remedy


@pytest.mark.parametrize("name", ["r0", "r7", "r12", "r99999999999", "r9999999999"])
def test_raw_types_are_whole_bytes(name):
    with pytest.raises(MetadataError):
        bind(Named(name))


@pytest.mark.parametrize("name", ["raw_bytes", "null_terminated_bytes", "fixed_length_utf32"])
@pytest.mark.parametrize("length", [None, 0, -4, 2**40, "4", 4.0, True, [4]])
def test_malformed_lengths_are_refused(name, length):
    with pytest.raises(MetadataError) as caught:
        bind(Named(name, {"length_bytes": length}))
    assert caught.value.pointer == "/data_type/configuration/length_bytes"


def test_utf32_comes_in_units_of_four_bytes():
    with pytest.raises(MetadataError):
        bind(Named("fixed_length_utf32", {"length_bytes": 6}))


def test_unknown_parameters_are_refused():
    with pytest.raises(MetadataError) as caught:
        bind(Named("int32", {"endian": "big"}))
    assert caught.value.pointer == "/data_type/configuration/endian"


@pytest.mark.parametrize("name", sorted(SMALL))
def test_a_missing_package_is_named_with_its_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    bind.__globals__["_bind_plain"].cache_clear()
    with pytest.raises(MissingDependencyError) as caught:
        bind(Named(name))
    assert "omnizarr[ml]" in str(caught.value)
    assert caught.value.found


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_complex_numbers_that_numpy_cannot_hold_are_records_of_their_parts(name):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    part = np.dtype(getattr(ml_dtypes, PAIRS[name]))
    found = bind(Named(name))
    assert found.dtype == np.dtype([("real", part), ("imag", part)])
    assert found.fill_to_json(found.fill_from_json([1, 2])) == [1.0, 2.0]
    store = {}
    array = omnizarr.create_array(store, shape=2, dtype=name, fill_value=1 + 2j, compressors=None)
    values = np.array([(1, 2), (4, 1)], found.dtype)
    array[:] = values
    assert store["c/0"] == np.array([1, 2, 4, 1], part).tobytes()
    assert omnizarr.open(store)[:].tolist() == values.tolist()
    for broken in ([1], [1, 2, 3], "x", {"real": 1}, 5):
        with pytest.raises(MetadataError):
            found.fill_from_json(broken)


def test_importing_is_cheap():
    code = "import omnizarr.model.datatypes, sys; print([m for m in ('ml_dtypes', 'numcodecs') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", sorted({*TYPES, *STRUCTS}))
def test_every_name_of_the_table_is_bound_or_says_what_it_lacks(name):
    try:
        assert bind(Named(name)).dtype is not None
    except MetadataError as error:
        assert error.pointer.startswith("/data_type/configuration")  # noqa: PT017  only some need a configuration


@pytest.mark.parametrize(
    ("what", "answer"),
    [
        ("int8", False),
        ("int16", True),
        ("bool", False),
        ("<U3", True),
        ("S3", False),
        ("V4", False),
        ("M8[s]", True),
        ("string", False),
        ([("a", "u1"), ("b", "S2")], False),
        ([("a", "u1"), ("b", "<i2", (2,))], True),
        ([("a", "u1"), ("n", [("b", "<i2")])], True),
    ],
)
def test_byte_order_matters_for_elements_of_several_bytes(what, answer):
    assert parse(what).has_byte_order is answer


def test_byte_order_of_small_types():
    pytest.importorskip("ml_dtypes")
    assert parse("bfloat16").has_byte_order
    assert not parse("int4").has_byte_order
    assert not parse("float8_e5m2").has_byte_order
