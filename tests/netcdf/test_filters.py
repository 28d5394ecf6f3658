"""Filters: what netCDF-C's programs print and write, and what netCDF4-python says of the same."""

import base64
import ctypes
import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import netCDF4
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnizarr
from omnizarr.codecs import registry
from omnizarr.codecs.contract import BytesSpec
from omnizarr.errors import CodecError, MetadataError, SettingError, UnknownCodecError
from omnizarr.formats.filters import Step, dump_codec, load_chain, read_step
from omnizarr.formats.reader import Reader
from omnizarr.model import Named, strict
from omnizarr.netcdf import Attribute, filters, types
from omnizarr.netcdf.header import DimensionHeader
from tests.netcdf.netcdf_c import library

CASES = json.loads(Path(__file__).with_name("data").joinpath("filters.json").read_text())["cases"]
NAMES = [f"{case['version']}-{case['name']}" for case in CASES]
FILES = itertools.count()
NOTHING = {
    **dict.fromkeys(("zlib", "szip", "zstd", "bzip2", "blosc", "shuffle", "fletcher32"), False),
    "complevel": 0,
}


def attributes(**values):
    return {
        name: Attribute(types.INT, np.array([value], "i4")) if isinstance(value, int) else Attribute.of(value)
        for name, value in values.items()
    }


def listed(*codecs):
    return attributes(_Codecs=json.dumps(codecs))


def names(codecs):
    return [codec.name.removeprefix("numcodecs.") for codec in codecs]


def of_document(document):
    """Return the codecs of bytes that reading a document of netCDF-C gives."""
    reader = Reader(strict)
    members = [*(document["filters"] or []), *([document["compressor"]] if document["compressor"] else [])]
    steps = [read_step(reader, member, "") for member in members]
    return load_chain(reader, steps, "C", 2, np.dtype(document["dtype"]))[1:]


# What ncgen makes of attributes, and ncdump of what it made


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_attributes_become_the_codecs_that_ncgen_writes(case):
    # headers hold special attributes in the order of ncdump, whatever that of the text was
    order = list(case["shown"])
    given = dict(sorted(case["given"].items(), key=lambda item: order.index(item[0]) if item[0] in order else 0))
    assert filters.chain(attributes(**given), types.INT) == of_document(case["document"])


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_codecs_are_shown_as_ncdump_does(case):
    shown = filters.special(of_document(case["document"]), 4)
    expected = dict(case["shown"])
    if case["version"] != "4.10.2-development":  # which wrote numbers as strings
        found = json.loads(expected["_Codecs"], parse_int=str)
        numbers = [{key: int(value) if value.isdigit() else value for key, value in each.items()} for each in found]
        expected["_Codecs"] = f"[{','.join(map(json.dumps, numbers))}]"
    assert list(shown) == list(expected)
    assert shown == attributes(**expected)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_what_ncdump_shows_becomes_the_same_codecs_again(case):
    assert filters.chain(attributes(**case["shown"]), types.INT) == of_document(case["document"])


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_chunks_of_ncgen_hold_the_right_numbers(case, tmp_path):
    tmp_path.joinpath(".zarray").write_text(json.dumps(case["document"]))
    for key, chunk in case["chunks"].items():
        tmp_path.joinpath(key).write_bytes(base64.b64decode(chunk))
    found = omnizarr.open(tmp_path, mode="r")[...]
    np.testing.assert_array_equal(found, np.arange(512).reshape(8, 64) // 16)


# What netCDF4-python writes and reads

PEER = """
import sys, netCDF4, numpy as np, json
operation, folder, cases = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
found = {}
for name, (code, options) in cases.items():
    url = f"file://{folder}/{name}#mode=nczarr,file"
    if operation == "write":
        with netCDF4.Dataset(url, "w") as dataset:
            dataset.createDimension("y", 30)
            dataset.createDimension("x", 100)
            variable = dataset.createVariable("v", str if code == "str" else code, ("y", "x"),
                                              chunksizes=(16, 64), **options)
            values = np.arange(3000).reshape(30, 100) // 64 % 100
            if code == "str":
                values = values.astype("U2").astype(object)
            elif code == "S1":
                values = (values + 20).astype("u1").view("S1")
            variable[...] = values
            found[name] = variable.filters()
    else:
        with netCDF4.Dataset(url) as dataset:
            dataset.set_auto_mask(False)
            variable = dataset["v"]
            variable.set_auto_chartostring(False)
            values = variable[...]
            found[name] = values.view("u1").tolist() if code == "S1" else values.tolist()
print(json.dumps(found))
"""
BLOSCS = ("blosc_lz", "blosc_lz4", "blosc_lz4hc", "blosc_zlib", "blosc_zstd")
FILTERED = {
    "zlib": {"compression": "zlib"},
    "zlib_alone": {"zlib": True, "shuffle": False, "complevel": 9},
    "zlib_checked": {"compression": "zlib", "fletcher32": True},
    "checked": {"fletcher32": True},
    "zstd": {"compression": "zstd"},
    "zstd_negative_checked": {"compression": "zstd", "complevel": -5, "fletcher32": True},
    "bzip2": {"compression": "bzip2", "complevel": 9},
    "szip": {"compression": "szip"},
    "szip_ec_checked": {"compression": "szip", "szip_coding": "ec", "szip_pixels_per_block": 16, "fletcher32": True},
    **{
        f"{name}_{shuffle}": {"compression": name, "blosc_shuffle": shuffle} for name in BLOSCS for shuffle in (0, 1, 2)
    },
}
WRITTEN = {
    **{f"i4_{name}": ("i4", options) for name, options in FILTERED.items()},
    **{f"{code}_{name}": (code, FILTERED[name])
       for code in ("u1", "i2", "f4", "f8", "i8") for name in ("zlib_checked", "blosc_lz4_2", "szip")},
    **{f"{code}_{name}_big": (code, {**FILTERED[name], "endian": "big"})
       for code in ("i2", "f4", "f8") for name in ("zlib_checked", "blosc_zstd_1", "szip", "szip_ec_checked")},
    **{f"{code}_{name}": (code, FILTERED[name])
       for code in ("S1", "str") for name in ("zlib_checked", "zstd", "blosc_lz4_1")},
}  # fmt: skip


def ask(operation, folder, cases):
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PEER, operation, str(folder), json.dumps(cases)],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return json.loads(answer.stdout)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("netcdf4")
    return folder, ask("write", folder, WRITTEN)


@pytest.fixture(scope="module")
def rewritten(written, tmp_path_factory):
    """Return what netCDF4-python reads where this library wrote other values over its own."""
    folder, _ = written
    copies = tmp_path_factory.mktemp("omnizarr")
    for name, (code, _) in WRITTEN.items():
        shutil.copytree(folder / name, copies / name)
        array = omnizarr.open(copies / name / "v", mode="r+")
        array[...] = values_of(code, -1)
    return ask("read", copies, WRITTEN)


def values_of(code, step=1):
    values = (np.arange(3000).reshape(30, 100) // 64 % 100)[::step]
    if code == "str":
        return values.astype("S2")
    return (values + 20).astype("u1").view("S1") if code == "S1" else values.astype(code)


@pytest.mark.parametrize("name", WRITTEN)
def test_chunks_of_netcdf4_python_hold_the_right_numbers(written, name):
    folder, _ = written
    np.testing.assert_array_equal(omnizarr.open(folder / name / "v", mode="r")[...], values_of(WRITTEN[name][0]))


@pytest.mark.parametrize("name", WRITTEN)
def test_chunks_of_ours_are_read_by_netcdf4_python(rewritten, name):
    code = WRITTEN[name][0]
    expected = values_of(code, -1)
    if code == "str":
        expected = expected.astype("U2")
    elif code == "S1":
        expected = expected.view("u1")
    assert rewritten[name] == expected.tolist()


@pytest.mark.parametrize("name", WRITTEN)
def test_filters_are_what_netcdf4_python_says(written, name):
    folder, said = written
    array = omnizarr.open(folder / name / "v", mode="r")
    assert filters.filters_dict(filters.special(array.metadata.codecs, array.dtype.itemsize)) == said[name]


@pytest.mark.parametrize("name", WRITTEN)
def test_options_become_the_codecs_that_netcdf4_python_writes(written, name):
    folder, _ = written
    code, options = WRITTEN[name]
    nc_type = types.parse(str if code == "str" else code)
    special = filters.of_options(nc_type, [DimensionHeader("y", 30), DimensionHeader("x", 100)], **options)
    stored = omnizarr.open(folder / name / "v", mode="r").metadata.codecs
    found = filters.chain(special, nc_type)
    assert names(found) == [each for each in names(stored) if each != "bytes"]
    for ours, theirs in zip(found, stored[1:], strict=True):
        fitted = {key: theirs.configuration.get(key) for key in ours.configuration if key != "typesize"}
        assert fitted == {key: value for key, value in ours.configuration.items() if key != "typesize"}


# Options

GOOD = [
    *FILTERED.values(),
    {},
    {"shuffle": True},
    {"compression": False},
    {"compression": "zlib", "complevel": 0},
    {"compression": "nonsense", "complevel": 0},
    {"compression": "zlib", "complevel": None},
    {"compression": "zstd", "zlib": True},
    {"compression": "zstd", "complevel": 22},
    {"compression": "zstd", "complevel": -131072},
    {"fletcher32": "yes"},
    {"chunksizes": (0, 1)},
    {"contiguous": True},
    {"endian": "big"},
    {"fill_value": False},
    {"significant_digits": 3},
    {"significant_digits": np.int64(3), "quantize_mode": "GranularBitRound", "compression": "zlib"},
    {"significant_digits": 12, "quantize_mode": "BitRound"},
]
BAD = [
    {"compression": "nonsense"},
    {"compression": "blosc_snappy"},
    {"compression": "zlib", "complevel": 10},
    {"compression": "zlib", "complevel": -1},
    {"compression": "zlib", "complevel": "4"},
    {"compression": "bzip2", "complevel": 10},
    {"compression": "zstd", "complevel": 23},
    {"compression": "blosc_lz4", "blosc_shuffle": 3},
    {"compression": "szip", "szip_coding": "nonsense"},
    {"compression": "szip", "szip_pixels_per_block": 5},
    {"compression": "szip", "szip_pixels_per_block": 34},
    {"endian": "nonsense"},
    {"endian": None},
    {"chunksizes": (1,)},
    {"chunksizes": (1, 101)},
    {"chunksizes": (-1, 1)},
    {"chunksizes": (1, 1), "contiguous": True},
    {"significant_digits": 0},
    {"significant_digits": 7},
    {"significant_digits": "3"},
    {"significant_digits": 24, "quantize_mode": "BitRound"},
    {"significant_digits": 3, "quantize_mode": "nonsense"},
]


def label(options):
    return "-".join(f"{key}={value}" for key, value in options.items()) or "none"


def by_netcdf4(options, dimensions=("y", "x")):
    """Return filters and quantization of a variable with these options, in a file of HDF5 that is only in memory."""
    code = {"big": ">f4", "little": "<f4"}.get(options.get("endian"), "f4")  # else netCDF4-python warns
    with netCDF4.Dataset(f"options{next(FILES)}.nc", "w", diskless=True) as dataset:
        dataset.createDimension("y", 30)
        dataset.createDimension("x", 100)
        dataset.createDimension("t", None)
        variable = dataset.createVariable("v", code, dimensions, **options)
        return variable.filters(), variable.quantization()


def by_us(options, dimensions=(("y", 30, False), ("x", 100, False))):
    special = filters.of_options(types.FLOAT, [DimensionHeader(*each) for each in dimensions], **options)
    filters.chain(special, types.FLOAT)
    return filters.filters_dict(special), filters.quantization(special)


@pytest.mark.parametrize("options", GOOD, ids=label)
def test_options_mean_what_they_mean_to_netcdf4_python(options):
    assert by_us(options) == by_netcdf4(options)


@pytest.mark.parametrize("options", GOOD, ids=label)
def test_options_of_a_scalar_mean_what_they_mean_to_netcdf4_python(options):
    assert by_us(options, ()) == by_netcdf4(options, ())


@pytest.mark.parametrize("options", BAD, ids=label)
def test_options_that_netcdf4_python_refuses_are_refused(options):
    with pytest.raises((ValueError, RuntimeError, TypeError, OverflowError)):
        by_netcdf4(options)
    with pytest.raises(SettingError):
        by_us(options)


@pytest.mark.parametrize(
    "options", [{"contiguous": True}, {"compression": "szip", "szip_pixels_per_block": 8}], ids=label
)
def test_options_that_an_empty_unlimited_dimension_forbids_are_refused(options):
    with pytest.raises((ValueError, RuntimeError)):
        by_netcdf4(options, ("t",))
    with pytest.raises(SettingError):
        by_us(options, [("t", 0, True)])


def test_chunk_may_be_longer_than_an_unlimited_dimension():
    special = filters.of_options(types.FLOAT, [DimensionHeader("t", 0, unlimited=True)], chunksizes=[512])
    assert special["_ChunkSizes"] == Attribute(types.INT, np.array([512], "i4"))


def test_chunk_beyond_32_bits_is_an_int64():
    special = filters.of_options(types.BYTE, [DimensionHeader("x", 2**33)], chunksizes=[2**32])
    assert special["_ChunkSizes"] == Attribute(types.INT64, np.array([2**32], "i8"))


def test_storage_byte_order_and_fill_are_attributes_as_ncdump_prints_them():
    special = filters.of_options(
        types.FLOAT, [DimensionHeader("x", 4)], contiguous=True, endian="big", fill_value=False, significant_digits=2
    )
    assert special == attributes(
        _Storage="contiguous",
        _Endianness="big",
        _NoFill="true",
        _QuantizeBitGroomNumberOfSignificantDigits=2,
    )


@pytest.mark.parametrize("nc_type", [types.INT, types.CHAR, types.STRING], ids=str)
def test_only_floats_are_quantized(nc_type):
    with pytest.raises(SettingError, match="only floats"):
        filters.of_options(nc_type, significant_digits=3)


@pytest.mark.parametrize("value", ["three", 0, -1])
def test_attribute_that_says_no_digits_is_no_quantization(value):
    assert filters.quantization(attributes(_QuantizeBitRoundNumberOfSignificantBits=value)) is None


# The text of _Filter

NUMBER = st.builds(
    lambda number, suffix: f"{number}{suffix}",
    st.integers(-(2**31), 2**32 - 1),
    st.sampled_from(["", "u", "b", "B", "ub", "s", "S", "us", "l", "L", "ul"]),
) | st.builds(
    lambda number, suffix: f"{number!r}{suffix}",
    st.floats(-1e30, 1e30),
    st.sampled_from(["f", "F", "d", "D"]),
)


def by_netcdf_c(text):
    nc = library()
    number, count, found = ctypes.c_uint(), ctypes.c_size_t(), ctypes.POINTER(ctypes.c_uint)()
    code = nc.ncaux_h5filterspec_parse(text.encode(), ctypes.byref(number), ctypes.byref(count), ctypes.byref(found))
    return None if code else (number.value, tuple(found[: count.value]))


@given(number=st.integers(0, 2**32 - 1), parameters=st.lists(NUMBER, max_size=6))
def test_filter_is_parsed_as_netcdf_c_does(number, parameters):
    text = ",".join(map(str, (number, *parameters)))
    assert filters.parse(text) == (by_netcdf_c(text),)


@pytest.mark.parametrize("text", ["307, 9", " 307,9", "307,\t9", "40000,1.5f,+2", "40000,18446744073709551615ul"])
def test_blanks_and_signs_are_those_that_netcdf_c_takes(text):
    assert filters.parse(text) == (by_netcdf_c(text),)


@pytest.mark.parametrize("text", ["zlib", "307,x", ",9", "307,9g", "-"])
def test_text_that_netcdf_c_refuses_is_refused(text):
    assert by_netcdf_c(text) is None
    with pytest.raises(CodecError):
        filters.parse(text)


@pytest.mark.parametrize(
    "text", ["4294967296", "307,4294967296", "307,-2147483649", "307,1.5", "307,1e3", "1,99999999999999999999l",
             "307,1e39f", "-307", "307,\u0663", "|307,1", "307,1||32015,1",
             "307,", "307,,9"],  # here netCDF-C takes a number from memory that it has not set: sometimes it refuses
)  # fmt: skip
def test_text_of_which_netcdf_c_would_make_another_number_is_refused(text):
    with pytest.raises(CodecError, match="_Filter"):
        filters.parse(text)


def test_filters_are_separated_by_bars():
    assert filters.parse("307,9|32015,3|2") == (
        filters.Filter(307, (9,)),
        filters.Filter(32015, (3,)),
        filters.Filter(2),
    )


@pytest.mark.parametrize("text", ["[1]307,9", "[ 0 ]307,9", "307,9|"])
def test_format_and_last_bar_are_ignored(text):
    assert filters.parse(text) == (filters.Filter(307, (9,)),)


def test_no_filters_are_none():
    assert filters.parse("") == ()
    assert filters.chain(attributes(_Filter=""), types.INT) == ()


# Chains


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"_DeflateLevel": 1, "_Shuffle": "true"}, ["shuffle", "zlib"]),
        ({"_Fletcher32": "true", "_DeflateLevel": 1, "_Shuffle": "true"}, ["fletcher32", "shuffle", "zlib"]),
        ({"_Shuffle": "true", "_DeflateLevel": 1, "_Fletcher32": "true"}, ["shuffle", "zlib", "fletcher32"]),
        ({"_Shuffle": "true"}, ["shuffle"]),
        ({"_Shuffle": "false", "_Fletcher32": "false"}, []),
        ({"_Shuffle": 1, "_Fletcher32": 0}, ["shuffle"]),
        ({"_DeflateLevel": 0}, ["zlib"]),
        ({"_Filter": "32015,1|2|307,1"}, ["zstd", "shuffle", "bz2"]),
        ({"_Storage": "chunked", "_ChunkSizes": 4}, []),
    ],
)
def test_filters_stand_in_the_order_of_the_attributes(given, expected):
    assert names(filters.chain(attributes(**given), types.INT)) == expected


def test_filter_given_twice_has_the_later_parameters_in_the_earlier_place():
    found = filters.chain(attributes(_Filter="1,3|307,2|1,9"), types.INT)
    assert found == (Named("numcodecs.zlib", {"level": 9}), Named("numcodecs.bz2", {"level": 2}))


def test_parameters_that_hdf5_fills_in_are_ignored():
    found = filters.chain(attributes(_Filter="2,4|4,169,8,32,64|32001,2,2,4,4096,5,1,0"), types.INT)
    assert names(found) == ["shuffle", "szip", "blosc"]
    assert found[1].configuration == {"mask": 169, "pixels-per-block": 8}


@pytest.mark.parametrize(
    ("nc_type", "size"), [(types.BYTE, 1), (types.CHAR, 1), (types.SHORT, 2), (types.DOUBLE, 8), (types.STRING, 8)]
)
def test_shuffled_elements_have_the_size_that_netcdf_c_takes(nc_type, size):
    assert filters.chain(attributes(_Shuffle="true"), nc_type)[0].configuration == {"elementsize": size}


@pytest.mark.parametrize("text", ["32013,1", "4711", "5,2,0", "40000,1,2"])
def test_filter_without_a_codec_is_named(text):
    with pytest.raises(UnknownCodecError, match=text.split(",")[0]):
        filters.chain(attributes(_Filter=text), types.INT)


@pytest.mark.parametrize(
    "text", ["1", "307", "32015", "4,32", "32001,0,0,0,0,5,1", "1,10", "307,0", "32015,23", "32001,0,0,0,0,5,3,1",
             "32001,0,0,0,0,5,1,6", "32001,0,0,0,0,10,1,1", "4,32,7", "4,32,34"],
)  # fmt: skip
def test_parameters_that_are_too_few_or_out_of_range_are_refused(text):
    with pytest.raises(CodecError):
        filters.chain(attributes(_Filter=text), types.INT)


@pytest.mark.parametrize(
    "given",
    [
        {"_DeflateLevel": 10},
        {"_DeflateLevel": -1},
        {"_DeflateLevel": "much"},
        {"_Shuffle": "perhaps"},
        {"_Shuffle": 2},
        {"_Fletcher32": ""},
        {"_Filter": 307},
        {"_Codecs": 1},
        {"_Codecs": "zlib"},
        {"_Codecs": '["zlib"]'},
        {"_Codecs": '[{"level": 1}]'},
        {"_Codecs": '[{"name": "gzip", "configuration": 1}]'},
        {"_Codecs": "[" * 100_000},
    ],
)
def test_attributes_that_mean_nothing_are_refused(given):
    with pytest.raises(CodecError):
        filters.chain(attributes(**given), types.INT)


# _Codecs


def test_list_of_codecs_says_all_by_itself():
    given = {**attributes(_Shuffle="true", _Filter="307,9"), **listed({"id": "zlib", "level": 3})}
    assert filters.chain(given, types.INT) == (Named("numcodecs.zlib", {"level": 3}),)


def test_codecs_without_a_number_in_hdf5_are_listed_alone():
    codecs = (Named("bytes", {"endian": "little"}), Named("numcodecs.lz4", {"acceleration": 1}))
    shown = filters.special(codecs, 4)
    assert shown == attributes(_Codecs='[{"id": "lz4", "acceleration": 1}]')
    assert filters.chain(shown, types.INT) == codecs[1:]


def test_codecs_that_only_v3_has_are_listed_as_it_writes_them():
    codecs = (Named("conditional", {"codecs": [{"name": "gzip", "configuration": {"level": 1}}]}),)
    shown = filters.special(codecs, 4)
    assert json.loads(shown["_Codecs"].value) == [
        {
            "name": "conditional",
            "configuration": {"codecs": [{"name": "gzip", "configuration": {"level": 1}}]},
        }
    ]
    assert filters.chain(shown, types.INT) == codecs


def test_codecs_of_arrays_are_listed_but_are_no_filters():
    shown = filters.special(
        [Named("numcodecs.delta", {"dtype": "<i4"}), Named("bytes"), Named("gzip", {"level": 1})], 4
    )
    assert shown["_Codecs"].value == '[{"id": "delta", "dtype": "<i4"},{"id": "gzip", "level": 1}]'
    assert filters.chain(shown, types.INT) == (Named("gzip", {"level": 1}),)


def test_codec_that_is_unknown_is_kept():
    found = filters.chain(listed({"id": "acme", "strength": 3}), types.INT)
    assert found == (Named("numcodecs.acme", {"strength": 3}),)


@pytest.mark.parametrize(
    "codecs", [[], [Named("bytes")], [Named("transpose", {"order": [1, 0]}), Named("bytes")]], ids=len
)
def test_without_filters_nothing_is_shown(codecs):
    assert filters.special(codecs, 4) == {}


def test_shuffle_of_other_elements_is_shown_with_their_size():
    shown = filters.special([Named("numcodecs.shuffle", {"elementsize": 2})], 4)
    assert shown["_Codecs"].value == '[{"id": "shuffle", "elementsize": 2}]'


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"_DeflateLevel": 5}, {"zlib": True, "complevel": 5}),
        ({"_Filter": "40000,1"}, {}),
        ({"_Filter": "4,141,16"}, {"szip": {"coding": "ec", "pixels_per_block": 16}}),
        ({"_Codecs": '[{"id": "zlib", "level": "3"}]'}, {"zlib": True, "complevel": 3}),
        ({"_Codecs": '[{"id": "lz4"}]'}, {}),
    ],
)
def test_filters_of_attributes(given, expected):
    assert filters.filters_dict(attributes(**given)) == NOTHING | expected


def test_every_number_of_hdf5_has_its_codec():
    assert filters.BY_NUMBER == {
        1: "zlib",
        2: "shuffle",
        3: "fletcher32",
        4: "szip",
        307: "bz2",
        32001: "blosc",
        32015: "zstd",
    }


# Documents of netCDF-C that are read as documents of Zarr v2


def test_shuffle_behind_another_filter_still_sees_elements():
    steps = [Step("fletcher32", {}, ""), Step("shuffle", {"elementsize": 0}, "")]
    assert load_chain(Reader(strict), steps, "C", 1, np.dtype("<f8"))[-1].configuration == {"elementsize": 8}


def test_level_that_is_an_unsigned_number_stays_one_for_netcdf_c_to_read():
    found = load_chain(Reader(strict), [Step("zstd", {"level": 4294967293}, "/compressor")], "C", 1, np.dtype("<f8"))
    assert found[-1] == Named("numcodecs.zstd", {"level": 4294967293})
    assert dump_codec(found[-1]) == {"id": "zstd", "level": 4294967293}
    spec = BytesSpec(800, 8)
    ours, negative = (registry.find(name)({"level": level}, spec)
                      for name, level in (("numcodecs.zstd", 4294967293), ("zstd", -3)))  # fmt: skip
    assert ours.encode(bytes(800)) == negative.encode(bytes(800))


def test_negative_level_is_written_as_netcdf_c_does():
    special = filters.of_options(types.INT, [DimensionHeader("x", 4)], compression="zstd", complevel=-3)
    assert filters.chain(special, types.INT) == (Named("numcodecs.zstd", {"level": 4294967293}),)


@pytest.mark.parametrize("level", [2**31, 2**32 - 131073, 2**32])
def test_level_that_is_no_number_of_zstd_is_refused(level):
    with pytest.raises(MetadataError, match="level"):
        registry.find("numcodecs.zstd")({"level": level}, BytesSpec(800, 8))
