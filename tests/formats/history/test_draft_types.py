"""Data types and fill values of the drafts: what documents say, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.errors import MetadataError, NotRepresentableError
from omnizarr.formats.filters import Step
from omnizarr.formats.history.draft_types import (
    Elements,
    describe_type,
    read_core_type,
    read_elements,
    read_fill_value,
    write_core_type,
    write_data_type,
    write_fill_value,
)
from omnizarr.formats.reader import Reader
from omnizarr.model import UNDEFINED, Named, datatypes, strict

IDENTIFIERS = ["bool", "i1", "u1", *(f"{order}{kind}{size}" for order in "<>" for kind in "iuf" for size in (2, 4, 8))]
COMPLEX = "https://zarr-specs.readthedocs.io/en/core-protocol-v3.0-dev/protocol/extensions/complex-dtypes/v1.0.html"


def elements(value, steps=(), **options):
    reader = Reader(strict)
    found = read_elements(reader, value, steps, spec="x", **options)
    return found, [(note.pointer, note.message) for note in reader.notes]


def extension(kind, **members):
    return {"extension": "https://example.org/types", "type": kind, **members}


def fill(value, identifier):
    reader = Reader(strict)
    found = read_fill_value(reader, value, read_elements(Reader(strict), identifier, spec="x"), spec="x")
    return found, [note.message for note in reader.notes]


@pytest.mark.parametrize("identifier", IDENTIFIERS)
def test_identifiers_are_those_of_numpy(identifier):
    found, notes = elements(identifier)
    assert found.stored == np.dtype(identifier)
    assert notes == []
    assert write_core_type(found.data_type, found.byte_order) == identifier


@pytest.mark.parametrize("identifier", ["<i1", "<f1", ">b1", "<f16", "i2", "<i16", "<r8", "r", "R8", "bool8", ""])
def test_other_strings_are_no_identifiers(identifier):
    assert read_core_type(identifier) is None


@pytest.mark.parametrize(
    ("text", "name"), [("|i1", "int8"), ("|u1", "uint8"), ("<u1", "uint8"), ("|b1", "bool"), ("int32", "int32")]
)
def test_other_spellings_of_the_same_leave_a_note(text, name):
    found, notes = elements(text)
    assert found.data_type == Named(name)
    assert [pointer for pointer, _ in notes] == ["/data_type"]


def test_complex_types_belong_to_the_draft_of_2019():
    found, notes = elements(">c16", has_complex=True)
    assert found.stored == np.dtype(">c16")
    assert notes == []
    assert elements(">c16")[1] == [("/data_type", "'>c16', a type of the draft of 2019")]
    assert write_core_type(Named("complex128"), ">", has_complex=True) == ">c16"
    assert write_core_type(Named("complex128"), ">") is None


def test_names_of_later_drafts_are_little_endian():
    found, notes = elements("float32", has_names=True)
    assert found.stored == np.dtype("<f4")
    assert notes == []


@pytest.mark.parametrize(
    "kind",
    [
        "<c8",
        ">c16",
        "|S5",
        "<U4",
        ">U2",
        "<M8[ns]",
        ">m8[D]",
        [["a", "<i4"], ["b", ">f8", [2]]],
        [["x", [["y", "|S2"]]]],
    ],
    ids=str,
)
def test_extension_types_are_reported_by_their_type(kind):
    found, _ = elements(extension(kind))
    as_numpy = kind if isinstance(kind, str) else _descr(kind)
    assert found.stored == np.dtype(as_numpy)
    assert not found.is_core


def _descr(fields):
    return [
        (name, kind if isinstance(kind, str) else _descr(kind), *(tuple(shape) for shape in rest))
        for name, kind, *rest in fields
    ]


def test_the_descr_of_raw_bytes_is_no_record():
    found, _ = elements(extension([["", "|V3"]]))
    assert found.stored == np.dtype("V3")


def test_times_of_other_units_than_the_extension_lists_leave_a_note():
    assert elements(extension("<M8[ns]"))[1] == []
    assert [pointer for pointer, _ in elements(extension("<M8[25s]"))[1]] == ["/data_type/type"]


def test_objects_are_what_their_codec_says():
    found, _ = elements(extension("|O"), [Step("vlen-utf8", {}, "/attributes/filters/0")])
    assert found.data_type == Named("string")
    assert found.stored == np.dtype(object)
    unknown, notes = elements(extension("|O"))
    assert unknown.data_type == Named("omnizarr.object", {"object_codec": None})
    assert notes[0][0] == "/attributes/filters"


def test_an_unknown_extension_is_read_as_its_fallback():
    found, notes = elements(extension("decimal", fallback=">i8"))
    assert (found.data_type, found.byte_order, found.is_fallback) == (Named("int64"), ">", True)
    assert notes == [
        ("/data_type/extension", "'https://example.org/types' is not known here, read as its fallback '>i8'")
    ]


def test_of_a_list_of_fallbacks_the_first_that_is_known_counts():
    found, _ = elements(extension({"any": "thing"}, fallback=["decimal", "r16", "<i2"]))
    assert found.data_type == Named("r16")


def test_a_type_that_needs_no_extension_does_not_tell_what_the_extension_means():
    found, _ = elements(extension("<i4", fallback="r32"))
    assert found.data_type == Named("r32")


def test_an_unknown_extension_without_a_fallback_keeps_its_uri():
    document = extension(["any", {"thing": 1}])
    found, notes = elements(document)
    assert found.data_type == Named("https://example.org/types", {"type": ["any", {"thing": 1}]})
    assert found.bound is None
    assert notes[-1][1].endswith("chunks cannot be read")
    assert write_data_type(found.data_type, "<") == document


@pytest.mark.parametrize(
    ("value", "identifier", "meaning"),
    [
        (True, "bool", True),
        (-5, "<i2", -5),
        (2**64 - 1, "<u8", 2**64 - 1),
        (1, "<f4", 1.0),
        ("NaN", "<f4", "NaN"),
        ("+Infinity", ">f8", "Infinity"),
        ("-Infinity", "<f2", "-Infinity"),
        ("0x7fc00001", "<f4", "0x7fc00001"),
        ("0x3fc00000", "<f4", 1.5),
        ("0x3fc00000", ">f4", 1.5),
        ("0b0011111000000000", "<f2", 1.5),
        ("0xfffe", "<i2", -2),
        ("0xFFFE", ">u2", 65534),
        ("0b11111110", "i1", -2),
        ("0x0102", "r16", [1, 2]),
        ("0b0000000100000010", "r16", [1, 2]),
        (None, "<i4", UNDEFINED),
    ],
    ids=str,
)
def test_every_form_of_the_text_is_read_without_a_note(value, identifier, meaning):
    assert fill(value, identifier) == (meaning, [])


@pytest.mark.parametrize(
    ("value", "identifier", "meaning"),
    [
        ("Infinity", "<f4", "Infinity"),
        (float("nan"), "<f4", "NaN"),
        (0, "bool", False),
        (2.0, "<i4", 2),
        ("18446744073709551615", "<u8", 2**64 - 1),
        ("-3", "<i4", -3),
        ([1, 2], "r16", [1, 2]),
    ],
    ids=str,
)
def test_other_forms_that_leave_no_doubt_leave_a_note(value, identifier, meaning):
    found, notes = fill(value, identifier)
    assert found == meaning
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("value", "identifier"),
    [
        ("0x01", "bool"),
        (2, "bool"),
        ("true", "bool"),
        (True, "<i4"),
        (1.5, "<i4"),
        (2**31, "<i4"),
        ("256", "u1"),
        ("0x1", "<f4"),
        ("0x0000000g", "<f4"),
        ("0b0", "i1"),
        ("0x_00", "u1"),
        ("nan", "<f4"),
        ([0.0, 0.0], "<f4"),
        ({}, "<i4"),
        ("0x01", "r16"),
    ],
    ids=str,
)
def test_what_is_no_value_of_the_type_is_an_error(value, identifier):
    with pytest.raises(MetadataError) as caught:
        fill(value, identifier)
    assert caught.value.pointer.startswith("/fill_value")


@pytest.mark.parametrize(
    ("kind", "value", "meaning"),
    [
        ("<c8", [1.0, "NaN"], [1.0, "NaN"]),
        ("|S3", "YWI=", "YWI="),
        ("<U3", "ab", "ab"),
        ("<M8[s]", 7, 7),
        ([["a", "<i2"]], "AQA=", {"a": 1}),
    ],
    ids=str,
)
def test_fill_values_of_extension_types_are_those_of_zarr_python(kind, value, meaning):
    found, _ = elements(extension(kind))
    read = read_fill_value(Reader(strict), value, found, spec="x")
    bound = found.bound
    assert bound.fill_to_json(bound.fill_from_json(read)) == bound.fill_to_json(bound.fill_from_json(meaning))
    assert write_fill_value(read, bound) == value


def test_a_fill_value_that_only_the_unknown_extension_understands_is_undefined():
    found, _ = elements(extension("decimal", fallback="<i8"))
    reader = Reader(strict)
    assert read_fill_value(reader, "2.50", found, spec="x") is UNDEFINED
    assert reader.notes[0].pointer == "/fill_value"


def test_the_fill_value_of_an_unknown_type_is_kept():
    assert read_fill_value(Reader(strict), {"a": 1}, Elements(Named("x"), "<", None), spec="x") == {"a": 1}


@given(st.sampled_from(IDENTIFIERS[3:]), st.data())
def test_hexadecimal_digits_are_the_value_most_significant_first(identifier, data):
    dtype = np.dtype(identifier)
    digits = data.draw(st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize)).hex()
    bound = datatypes.bind(*read_core_type(identifier))
    meaning, notes = fill(f"0x{digits}", identifier)
    assert notes == []
    big = np.asarray(bound.fill_from_json(meaning)).astype(dtype).tobytes()
    assert (big if identifier[0] == ">" else big[::-1]).hex() == digits


@given(st.sampled_from(IDENTIFIERS), st.data())
def test_every_value_of_every_type_is_written_and_read_back(identifier, data):
    bound = datatypes.bind(*read_core_type(identifier))
    raw = data.draw(st.binary(min_size=bound.dtype.itemsize, max_size=bound.dtype.itemsize))
    if identifier == "bool":
        raw = bytes([raw[0] & 1])
    value = bound.fill_to_json(np.frombuffer(raw, bound.dtype)[0])
    assert fill(write_fill_value(value, bound), identifier) == (value, [])


def test_types_without_words_are_refused():
    for named in (Named("string"), Named("bfloat16"), Named("struct", {"fields": []}), Named("foo", {"type": 1})):
        with pytest.raises(NotRepresentableError, match="no such data type"):
            write_data_type(named, "<")


def test_types_are_described_as_numpy_calls_them():
    assert describe_type(Named("complex64"), ">") == ">c8"
    assert describe_type(Named("unheard-of"), "<") == "unheard-of"
