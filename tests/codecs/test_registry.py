import subprocess
import sys
from importlib.metadata import EntryPoint

import numcodecs
import numpy as np
import pytest
from numcodecs.abc import Codec
from numcodecs.registry import register_codec

from omnizarr.codecs import chain, registry
from omnizarr.codecs.contract import ArraySpec, BytesSpec
from omnizarr.errors import CodecError, MissingDependencyError, UnknownCodecError
from omnizarr.model import Named, datatypes, plugins
from omnizarr.netcdf import filters
from tests.codecs.cases import (
    ARRAY_TO_BYTES,
    BYTES_TO_BYTES,
    FLOATS,
    NUMBERS,
    OBJECTS,
    PLAIN,
    array_spec,
    bound,
)


@pytest.fixture
def clean(monkeypatch):
    monkeypatch.setattr(registry, "_found", {})


@pytest.fixture
def offered(monkeypatch, clean):
    """Entry points that a test makes up, by group and name."""
    points = {}

    def entry_points(group):
        return {name: point for (of, name), point in points.items() if of == group}

    monkeypatch.setattr(plugins, "entry_points", entry_points)
    return points


RECORDS = list(registry.records())


@pytest.mark.parametrize("name", sorted({name for record in RECORDS for name in record.names}))
def test_every_name_of_a_record_is_found(name):
    entry = registry.find(name)
    assert callable(entry.bind)
    assert entry.name == name
    assert entry.kind == registry.record(name).kind


def test_every_line_of_the_registry_leads_to_a_record():
    assert {registry.bare(name) for record in RECORDS for name in record.names} == set(registry.MODULES)


def test_every_filter_of_hdf5_has_the_number_in_its_record():
    assert {record.hdf5.number: record.id for record in RECORDS if record.hdf5} == filters.BY_NUMBER


@pytest.mark.parametrize("name", [name for each in RECORDS for name in each.names if each.decodes_with is not None])
def test_bytes_decode_without_the_configuration_that_encoded_them(name):
    record = registry.record(name)
    data = {"vlen-utf8": np.array(["a", "bc"], object), "vlen-bytes": np.array([b"a", b"bc"], object)}.get(
        record.id, np.arange(64, dtype="i4") if record.kind == "array to bytes" else bytes(range(64))
    )
    data_type = {"vlen-utf8": "string", "vlen-bytes": "bytes"}.get(record.id, "int32")
    spec = (
        ArraySpec(data.shape, datatypes.parse(data_type), data[0])
        if record.kind == "array to bytes"
        else BytesSpec(len(data), 4)
    )
    configuration = OTHER_CONFIGURATIONS.get(record.id, {})
    encoded = registry.find(name)(configuration, spec).encode(data)
    decoded = registry.find(name)(record.decodes_with, spec).decode(encoded)
    assert list(decoded) == list(data)


OTHER_CONFIGURATIONS = {
    "blosc": {"cname": "zlib", "clevel": 9, "shuffle": "bitshuffle", "typesize": 4, "blocksize": 32},
    "bz2": {"level": 9},
    "gzip": {"level": 9},
    "lz4": {"acceleration": 9},
    "pcodec": {"level": 12, "equal_pages_up_to": 8},
    "zfpy": {"mode": 5},
    "zlib": {"level": 9},
    "zstd": {"level": 19, "checksum": True},
}


@pytest.mark.parametrize("name", [name for each in RECORDS for name in each.names if each.defaults])
def test_defaults_of_a_record_are_what_missing_parameters_mean(name):
    record = registry.record(name)
    given = {key: value for key, value in record.defaults.items() if key in record.parameters}
    if record.kind != "bytes to bytes" or not given:
        pytest.skip("its own tests look at the index of shards, and crc32c of v3 has no parameters")
    spec = BytesSpec(64)
    encoded = [registry.find(name)(each, spec).encode(bytes(range(64))) for each in (given, {})]
    assert bytes(encoded[0]) == bytes(encoded[1])


def test_every_codec_of_numcodecs_is_found():
    ours = {"n5_wrapper", "zarr2"}
    for codec_id in set(numcodecs.registry.codec_registry) - ours:
        assert registry.find(f"numcodecs.{codec_id}")


def test_importing_the_registry_imports_no_codec_and_no_numcodecs():
    code = (
        "import sys; import omnizarr.codecs.registry; "
        "print([m for m in ('numcodecs', 'omnizarr.codecs.gzip', 'zarr', 'zfpy') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_unknown_name_is_answered_with_similar_ones():
    with pytest.raises(UnknownCodecError) as caught:
        registry.find("zsdt")
    assert "did you mean 'zstd'" in caught.value.remedy
    assert "omnizarr.codecs" in caught.value.remedy
    assert "blosc" in caught.value.expected


@pytest.mark.parametrize("name", ["", "numcodecs.", "numcodecs.nothing", "a" * 10_000, "zarr.codecs"])
def test_names_of_nothing_are_unknown(name):
    with pytest.raises(UnknownCodecError):
        registry.find(name)


def test_registered_codec_comes_first(clean):
    registry.register("gzip", lambda configuration, decoded: (configuration, decoded))
    assert registry.find("gzip")({"a": 1}, 2) == ({"a": 1}, 2)


def test_codec_of_a_package_is_found_by_its_entry_point(offered):
    offered["omnizarr.codecs", "theirs"] = EntryPoint("theirs", "omnizarr.codecs.gzip:bind", "omnizarr.codecs")
    codec = registry.find("theirs")({"level": 1}, BytesSpec(3))
    assert codec.decode(codec.encode(b"abc")) == b"abc"
    assert "theirs" in registry.known_names()


def test_codec_class_of_zarr_python_is_found_by_its_entry_point(offered):
    offered["zarr.codecs", "theirs"] = EntryPoint("theirs", "zarr.codecs:GzipCodec", "zarr.codecs")
    assert registry.find("theirs").kind == "bytes to bytes"


def test_entry_point_that_is_no_codec_is_refused(offered):
    offered["zarr.codecs", "theirs"] = EntryPoint("theirs", "math:pi", "zarr.codecs")
    with pytest.raises(CodecError):
        registry.find("theirs")


def test_missing_package_is_named_with_its_extra(offered, monkeypatch):
    monkeypatch.setitem(sys.modules, "zfpy", None)
    with pytest.raises(MissingDependencyError) as caught:
        registry.find("numcodecs.zfpy")
    assert caught.value.remedy == 'pip install "omnizarr[zfp]"'
    assert caught.value.codec == "numcodecs.zfpy"


def test_codec_registered_with_numcodecs_is_found(clean, monkeypatch):
    class Reversed(Codec):
        codec_id = "test_reversed"

        def encode(self, buf):
            return bytes(buf)[::-1]

        decode = encode

    monkeypatch.setattr(numcodecs.registry, "codec_registry", dict(numcodecs.registry.codec_registry))
    register_codec(Reversed)
    codec = registry.find("numcodecs.test_reversed")({}, BytesSpec(3))
    assert bytes(codec.encode(b"abc")) == b"cba"
    assert bytes(codec.decode(b"cba")) == b"abc"


BOOLEANS = FLOATS > 0
OCTETS = np.arange(120, dtype="u1").reshape(10, 12)
SAMPLES = {
    **{name: (configuration, PLAIN, None) for name, configuration in BYTES_TO_BYTES},
    **{name: (configuration, array, named) for name, configuration, array, named in ARRAY_TO_BYTES},
    "bytes": ({"endian": "big"}, NUMBERS, None),
    "bitround": ({"keepbits": 3}, FLOATS, None),
    "cast_value": ({"data_type": "float32"}, FLOATS, None),
    "numcodecs.astype": ({"encode_dtype": "<f4", "decode_dtype": "<f8"}, FLOATS, None),
    "numcodecs.categorize": ({"labels": ["a"], "dtype": "<U1", "astype": "u1"}, np.array(["a"]), None),
    "numcodecs.delta": ({"dtype": "<i4"}, NUMBERS, None),
    "numcodecs.fixedscaleoffset": ({"offset": 0, "scale": 10, "dtype": "<f8", "astype": "<i2"}, FLOATS, None),
    "numcodecs.packbits": ({}, BOOLEANS, None),
    "numcodecs.pickle": ({}, OBJECTS, Named("omnizarr.object")),
    "numcodecs.quantize": ({"digits": 2, "dtype": "<f8"}, FLOATS, None),
    "numcodecs.szip": ({"mask": 141, "pixels-per-block": 16, "bits-per-pixel": 32, "pixels-per-scanline": 120}, PLAIN,
                       None),
    "reshape": ({"shape": [-1]}, NUMBERS, None),
    "scale_offset": ({"offset": 1}, FLOATS, None),
    "sharding_indexed": ({"chunk_shape": [5, 6], "codecs": ["bytes"], "index_codecs": ["bytes"]}, FLOATS, None),
    "fits": ({"elements": "shifted", "size": 2}, PLAIN, None),
    "jpeg": ({}, OCTETS, None),
    "jpegxl": ({"lossless": True, "distance": 0}, OCTETS, None),
    "lzw": ({}, PLAIN, None),
    "fits_tile": ({"compression": "gzip", "data_type": "int16"}, PLAIN, None),
    "grib": ({}, PLAIN, None),
    "tiff": ({"compression": "lzw", "width": 12}, PLAIN, None),
    "tiff_predictor": ({"predictor": 2, "width": 12, "data_type": "uint32"}, PLAIN, None),
    "singleton_dim": ({"operations": [{"insert": 0}]}, NUMBERS, None),
    "zarrs.squeeze": ({}, NUMBERS, None),
    "transpose": ({"order": [1, 0]}, NUMBERS, None),
}  # fmt: skip


@pytest.mark.parametrize("record", RECORDS, ids=[f"{record.kind}: {record.id}" for record in RECORDS])
def test_record_says_whether_the_native_engine_has_the_codec(record):
    name = next(name for name in (*record.names, record.id) if name in SAMPLES)
    configuration, like, named = SAMPLES[name]
    try:
        options = {} if isinstance(like, bytes) else {"named": named, "allow_pickle": True}
        codec = bound(name, configuration, like, **options)
    except MissingDependencyError:
        assert not record.native  # what the native engine has needs no package
        return
    spec = array_spec(like, named=named) if isinstance(like, np.ndarray) else BytesSpec(len(like), 4)
    assert (chain.describe(codec, spec) is not None) == record.native
