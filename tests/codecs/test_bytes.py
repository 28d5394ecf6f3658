import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr import indexing
from omnizarr.codecs import bytes as bytes_codec
from omnizarr.codecs import chain
from omnizarr.codecs.contract import ArraySpec, ReadsPart
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError, MetadataError
from omnizarr.model import Named, datatypes, grids

LITTLE, BIG = {"endian": "little"}, {"endian": "big"}


def spec_of(shape, dtype, byte_order="<"):
    data_type = datatypes.parse(dtype).with_byte_order(byte_order)
    return ArraySpec(tuple(shape), data_type, data_type.default_fill_value)


def bound(configuration, shape, dtype, byte_order="<"):
    return bytes_codec.bind(configuration, spec_of(shape, dtype, byte_order))


class Source:
    """Bytes that remember which spans were asked for."""

    def __init__(self, data):
        self.data, self.calls = data, []

    def __call__(self, spans):
        self.calls.append(spans)
        if self.data is None:
            return None
        return [self.data] if spans is None else [self.data[slice(*span)] for span in spans]


# The type, values in any order, and the same as NumPy writes them in an explicit order.
VALUES = {
    "int8": np.array([1, -2, 127], "i1"),
    "int16": np.array([1, -2, 300], "i2"),
    "uint32": np.array([1, 2, 2**31], "u4"),
    "int64": np.array([1, -2, 2**62], "i8"),
    "float16": np.array([1, -2, np.nan], "f2"),
    "float32": np.array([1, -0.0, np.inf], "f4"),
    "float64": np.array([1, -0.0, 1e300], "f8"),
    "complex64": np.array([1 - 2j, 3j, 4], "c8"),
    "complex128": np.array([1 - 2j, 3j, 4], "c16"),
    "S5": np.array([b"a", b"bcd", b"\xff\0x"], "S5"),
    "U3": np.array(["a", "\u00e9\U0001f600", "xyz"], "U3"),
    "V3": np.array([b"abc", b"\0\1\2", b"zzz"], "V3"),
    "datetime64[ns]": np.array(["2000-01-01", "NaT", "1969-12-31"], "M8[ns]"),
    "timedelta64[s]": np.array([1, 2, -3], "m8[s]"),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize(("configuration", "order"), [(LITTLE, "<"), (BIG, ">"), ({}, "<")])
@pytest.mark.parametrize("in_memory", ["<", ">"])
def test_every_type_is_stored_in_the_stated_order(name, configuration, order, in_memory):
    values = VALUES[name]
    codec = bound(configuration, values.shape, values.dtype, in_memory)
    stored = values.astype(values.dtype.newbyteorder(order)).tobytes()
    array = values.astype(values.dtype.newbyteorder(in_memory))
    assert bytes(codec.encode(array)) == stored
    decoded = codec.decode(stored)
    assert decoded.dtype == array.dtype
    assert decoded.tobytes() == array.tobytes()


def test_bfloat16_is_swapped():
    values = np.array([1.0, -3.5], ml_dtypes.bfloat16)
    codec = bound(BIG, (2,), "bfloat16")
    # 1.0 is 0x3f80 and -3.5 is 0xc060.
    assert bytes(codec.encode(values)) == bytes.fromhex("3f80 c060")
    decoded = codec.decode(bytes.fromhex("3f80 c060"))
    assert decoded.dtype == values.dtype
    np.testing.assert_array_equal(decoded, values)


def test_halves_of_small_complex_numbers_are_swapped_by_themselves():
    if not hasattr(ml_dtypes, "complex32"):
        pytest.skip("ml_dtypes before 0.6 has no complex32")
    codec = bound(BIG, (1,), "complex_float16")
    # 1.0 is 0x3c00 and 2.0 is 0x4000.
    decoded = codec.decode(bytes.fromhex("3c00 4000"))
    assert complex(decoded[0]) == 1 + 2j
    assert bytes(codec.encode(decoded)) == bytes.fromhex("3c00 4000")


@pytest.mark.parametrize(("name", "bits"), [("float4_e2m1fn", 4), ("float6_e2m3fn", 6), ("float6_e3m2fn", 6)])
def test_unused_high_bits_mean_nothing(name, bits):
    octets = np.arange(256, dtype="u1")
    decoded = bound({}, (256,), name).decode(octets.tobytes())
    np.testing.assert_array_equal(decoded.view("u1"), octets & (2**bits - 1))


def test_record_fields_follow_the_stated_order():
    dtype = np.dtype([("a", "<u2"), ("b", [("c", "<f4"), ("d", "u1")]), ("e", "<U1")])
    values = np.array([(1, (2.0, 3), "x"), (4, (5.0, 6), "y")], dtype)
    codec = bound(BIG, (2,), dtype)
    big = values.astype([("a", ">u2"), ("b", [("c", ">f4"), ("d", "u1")]), ("e", ">U1")]).tobytes()
    assert bytes(codec.encode(values)) == big
    np.testing.assert_array_equal(codec.decode(big), values)
    assert codec.decode(big).dtype == dtype


def test_record_field_with_an_order_of_its_own_keeps_it():
    dtype = np.dtype([("a", "<u2"), ("b", ">u2"), ("c", ">f8", (2, 2))])
    values = np.array([(1, 2, [[3, 4], [5, 6]])], dtype)
    codec = bound(LITTLE, (1,), dtype)
    assert bytes(codec.encode(values)) == values.tobytes()
    np.testing.assert_array_equal(codec.decode(values.tobytes()), values)


def test_records_with_sub_arrays_are_swapped():
    dtype = np.dtype([("a", "<u2", (2,)), ("b", "u1", (3,))])
    values = np.array([([1, 2], [3, 4, 5])], dtype)
    codec = bound(BIG, (1,), dtype)
    assert bytes(codec.encode(values)) == bytes.fromhex("0001 0002 03 04 05")
    np.testing.assert_array_equal(codec.decode(bytes.fromhex("0001 0002 03 04 05")), values)


@pytest.mark.parametrize("dtype", ["M8", "m8", "M8[25us]", "m8[Y]"])
@pytest.mark.parametrize("in_memory", ["<", ">"])
def test_times_are_swapped_with_a_unit_and_without(dtype, in_memory):
    numbers = np.array([1, -2, 2**40], f"{in_memory}i8")
    values = numbers.view(np.dtype(dtype).newbyteorder(in_memory))
    codec = bound(BIG, (3,), dtype, in_memory)
    stored = struct.pack(">3q", 1, -2, 2**40)
    assert bytes(codec.encode(values)) == stored
    decoded = codec.decode(stored)
    assert decoded.dtype == values.dtype
    assert decoded.tobytes() == numbers.tobytes()


def test_times_without_a_unit_are_swapped_in_records():
    dtype = np.dtype([("at", "<M8"), ("long", "<m8", (2,))])
    values = np.frombuffer(struct.pack("<3q", 1, 2, -3), dtype)
    codec = bound(BIG, (1,), dtype)
    stored = struct.pack(">3q", 1, 2, -3)
    assert bytes(codec.encode(values)) == stored
    assert codec.decode(stored).tobytes() == values.tobytes()


def test_padding_of_aligned_records_is_not_stored():
    dtype = np.dtype([("a", "u1"), ("b", "<u4")], align=True)
    values = np.array([(1, 2)], dtype)
    assert bytes(bound(LITTLE, (1,), dtype).encode(values)) == bytes.fromhex("01 02000000")


def test_bytes_other_than_0_are_true():
    decoded = bound({}, (4,), "bool").decode(b"\0\1\2\xff")
    np.testing.assert_array_equal(decoded.view("u1"), [0, 1, 1, 1])


def test_truth_values_in_records_are_0_or_1():
    dtype = np.dtype([("a", "u1"), ("b", "?"), ("c", [("d", "?", (2,))])])
    decoded = bound({}, (1,), dtype).decode(b"\7\2\3\0")
    assert decoded.tobytes() == b"\7\1\1\0"


def test_bytes_of_truth_values_reach_no_one_through_a_chain():
    spec = spec_of((4,), "bool")
    bools = chain.bind((Named("bytes"),), spec)
    out = np.empty(4, np.bool_)
    bools.decode_into(b"\0\1\2\xff", out)
    assert out.tobytes() == b"\0\1\1\1"


@pytest.mark.parametrize(("configuration", "data"), [(LITTLE, b"\0\0\x11\0"), (BIG, b"\0\x11\0\0")])
@pytest.mark.parametrize("in_memory", ["<", ">"])
def test_text_beyond_unicode_is_an_error(configuration, data, in_memory):
    with pytest.raises(ChunkError) as caught:
        bound(configuration, (1,), "U1", in_memory).decode(data)
    assert caught.value.found == "0x110000"


@pytest.mark.parametrize("size", [0, 1, 11, 13, 24])
def test_wrong_size_is_an_error(size):
    with pytest.raises(ChunkSizeError) as caught:
        bound(LITTLE, (3,), "int32").decode(bytes(size))
    assert (caught.value.found, caught.value.expected) == (f"{size} bytes", "12 bytes")


def test_impossible_shape_allocates_nothing():
    with pytest.raises(ChunkSizeError):
        bound(LITTLE, (2**63, 2**63), "int32").decode(b"1234")


def test_decode_is_a_view():
    data = bytearray(12)
    assert np.shares_memory(bound(LITTLE, (3,), "<i4").decode(data), np.frombuffer(data, "u1"))


def test_encode_is_a_view():
    array = np.arange(6, dtype="<f8").reshape(2, 3)
    assert np.shares_memory(np.frombuffer(bound(LITTLE, (2, 3), "<f8").encode(array), "u1"), array)


def test_encode_puts_elements_in_c_order():
    array = np.asfortranarray(np.arange(6, dtype="u1").reshape(2, 3))
    assert bytes(bound({}, (2, 3), "uint8").encode(array)) == bytes(range(6))


def test_encode_refuses_another_shape():
    with pytest.raises(CodecError) as caught:
        bound({}, (2, 3), "uint8").encode(np.zeros((3, 2), "u1"))
    assert (caught.value.found, caught.value.expected) == ((3, 2), (2, 3))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_scalars_and_nothing(shape):
    array = np.full(shape, 7, ">i2")
    codec = bound(BIG, shape, "int16")
    assert bytes(codec.encode(array.astype("<i2"))) == array.tobytes()
    assert codec.decode(array.tobytes()).shape == shape


def test_size_and_item_size_are_reported():
    encoded = bound(LITTLE, (3, 5), "float64").encoded
    assert (encoded.nbytes, encoded.item_size) == (120, 8)


@pytest.mark.parametrize("name", ["string", "bytes"])
def test_types_of_variable_size_are_refused(name):
    with pytest.raises(CodecError) as caught:
        bound(LITTLE, (3,), name)
    assert "vlen-utf8" in caught.value.remedy
    assert "vlen-bytes" in caught.value.remedy


@pytest.mark.parametrize("endian", ["Little", "<", "native", 1, True, ["little"], {}])
def test_unknown_byte_order_is_refused(endian):
    with pytest.raises(MetadataError) as caught:
        bound({"endian": endian}, (3,), "int32")
    assert caught.value.pointer == "/configuration/endian"


def test_unknown_field_is_refused():
    with pytest.raises(MetadataError) as caught:
        bound({"endian": "little", "order": "C"}, (3,), "int32")
    assert caught.value.pointer == "/configuration/order"


def test_null_says_as_much_as_nothing():
    assert bound({"endian": None}, (1,), "int16").decode(b"\1\0")[0] == 1


def test_parts_can_be_read():
    assert isinstance(bound(LITTLE, (3,), "int32"), ReadsPart)


ROW = 100_000


def big(configuration=None):
    array = np.arange(20 * ROW, dtype="<i4").reshape(20, ROW)
    codec = bound(configuration or LITTLE, array.shape, "int32")
    return array, codec, Source(bytes(codec.encode(array)))


def read(codec, source, array, selection):
    out = np.zeros_like(array[selection])
    assert chain.drive(codec.reading(selection, out), source)
    np.testing.assert_array_equal(out, array[selection])
    return source.calls


@pytest.mark.parametrize("configuration", [LITTLE, BIG])
def test_rows_are_fetched_alone(configuration):
    array, codec, source = big(configuration)
    calls = read(codec, source, array, (slice(3, 5, 1), slice(0, ROW, 1)))
    assert calls == [[(3 * ROW * 4, 5 * ROW * 4)]]


def test_distant_rows_are_fetched_in_one_call():
    array, codec, source = big()
    calls = read(codec, source, array, (slice(0, 20, 9), slice(10, 20, 1)))
    assert calls == [[(row * ROW * 4 + 40, row * ROW * 4 + 80) for row in (0, 9, 18)]]


def test_near_runs_are_fetched_as_one():
    array = np.arange(4 * 200 * 100, dtype="<i4").reshape(4, 200, 100)
    codec = bound(LITTLE, array.shape, "int32")
    source = Source(array.tobytes())
    calls = read(codec, source, array, (slice(1, 2, 1), slice(0, 200, 1), slice(7, 8, 1)))
    assert calls == [[(80_000 + 28, 160_000 - 92 * 4)]]


def test_points_are_fetched_alone():
    array, codec, source = big()
    calls = read(codec, source, array, (np.array([19, 0, 19]), np.array([5, 7, 5])))
    assert calls == [[(28, 32), (19 * ROW * 4 + 20, 19 * ROW * 4 + 24)]]


def test_open_mesh_is_fetched_in_parts():
    array, codec, source = big()
    calls = read(codec, source, array, np.ix_([12, 2], [3, 1]))
    assert calls == [[(row * ROW * 4 + 4, row * ROW * 4 + 16) for row in (2, 12)]]


def test_most_of_a_chunk_is_fetched_as_a_whole():
    array, codec, source = big()
    assert read(codec, source, array, (slice(0, 15, 1), slice(0, ROW, 1))) == [None]


def test_small_chunk_is_fetched_as_a_whole():
    array = np.arange(100, dtype="<i4")
    source = Source(array.tobytes())
    assert read(bound(LITTLE, (100,), "int32"), source, array, (slice(3, 4, 1),)) == [None]


@pytest.mark.parametrize("selection", [(slice(0, 1, 1), slice(0, 2, 1)), (slice(0, 20, 1), slice(0, ROW, 1))])
def test_nothing_stored_leaves_the_buffer_alone(selection):
    array, codec, _ = big()
    out = np.full_like(array[selection], 42)
    assert not chain.drive(codec.reading(selection, out), Source(None))
    assert (out == 42).all()


@pytest.mark.parametrize("selection", [(slice(19, 20, 1), slice(0, ROW, 1)), (slice(0, 20, 1), slice(0, ROW, 1))])
def test_truncated_chunk_is_an_error(selection):
    array, codec, source = big()
    source.data = source.data[:-1]
    with pytest.raises(ChunkSizeError) as caught:
        chain.drive(codec.reading(selection, np.empty_like(array[selection])), source)
    assert (caught.value.found, caught.value.expected) == ("7999999 bytes", "8000000 bytes")


@given(st.data())
def test_reading_a_part_equals_decoding_all(data):
    shape = data.draw(st.sampled_from([(3, 4, 9000), (4, 25_000), (300, 400), (100_000,), (7, 3, 40)]))
    dtype = data.draw(st.sampled_from(["<i4", ">f8", "u1", "?"]))
    array = (np.arange(np.prod(shape)) % 251 % (2 if dtype == "?" else 251)).astype(dtype).reshape(shape)
    codec = bound(data.draw(st.sampled_from([LITTLE, BIG])), shape, dtype)
    grid = grids.bind(grids.regular(shape), shape)
    plan = indexing.plan(draw_selection(data, shape), grid)
    source = Source(bytes(codec.encode(array)))
    for piece in plan:
        read(codec, source, codec.decode(source.data), piece.chunk_selection)
        np.testing.assert_array_equal(codec.decode(source.data), array)


def draw_selection(data, shape):
    if data.draw(st.booleans()):
        size = data.draw(st.integers(1, 4))
        places = [st.lists(st.integers(0, length - 1), min_size=size, max_size=size) for length in shape]
        return tuple(np.array(data.draw(place)) for place in places)
    parts = []
    for length in shape:
        start = data.draw(st.integers(0, length - 1))
        stop = data.draw(st.integers(start + 1, length))
        parts.append(slice(start, stop, data.draw(st.sampled_from([1, 1, 2, 4000]))))
    return tuple(parts)
