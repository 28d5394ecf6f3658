"""What tests of codecs share: specs, and every codec with data it can hold."""

import numpy as np

from omnizarr.codecs import registry
from omnizarr.codecs.contract import ArraySpec, BytesSpec, ChunkPolicy
from omnizarr.model import Named
from omnizarr.model.datatypes import bind, parse
from omnizarr.model.datatypes.optional import dtype_of


def array_spec(array, fill_value=None, *, named=None, allow_pickle=False):
    """Return the spec of arrays like `array`."""
    data_type = bind(named) if named is not None else parse(array.dtype)
    fill = data_type.default_fill_value if fill_value is None else data_type.cast(fill_value)
    return ArraySpec(array.shape, data_type, fill, ChunkPolicy(allow_pickle=allow_pickle))


def bound(name, configuration, like, **options):
    """Return a codec bound to arrays or bytes like `like`."""
    spec = array_spec(like, **options) if isinstance(like, np.ndarray) else BytesSpec(len(like), 4)
    return registry.find(name)(configuration, spec)


NUMBERS = np.arange(-60, 60, dtype="<i4").reshape(10, 12) ** 3
FLOATS = np.linspace(-30, 30, 120).reshape(10, 12)
PLAIN = NUMBERS.tobytes()

# name in documents, configuration
BYTES_TO_BYTES = [
    ("gzip", {"level": 5}),
    ("numcodecs.gzip", {}),
    ("zlib", {}),
    ("numcodecs.zlib", {"level": 9}),
    ("numcodecs.bz2", {"level": 1}),
    ("numcodecs.lzma", {"preset": 1}),
    ("numcodecs.lzma", {"format": 2}),
    ("numcodecs.lzma", {"format": 3, "filters": [{"id": 3, "dist": 4}, {"id": 33, "preset": 1}]}),
    ("numcodecs.lz4", {"acceleration": 3}),
    ("zstd", {"level": 3, "checksum": True}),
    ("numcodecs.zstd", {}),
    ("blosc", {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}),
    ("blosc", {"cname": "zstd", "clevel": 1, "shuffle": "bitshuffle", "typesize": 4, "blocksize": 64}),
    ("numcodecs.blosc", {"cname": "blosclz", "shuffle": -1}),
    ("crc32c", {}),
    ("numcodecs.crc32c", {"location": "start"}),
    ("numcodecs.crc32", {}),
    ("numcodecs.crc32", {"location": "end"}),
    ("numcodecs.adler32", {}),
    ("numcodecs.fletcher32", {}),
    ("numcodecs.jenkins_lookup3", {"initval": 5}),
    ("numcodecs.shuffle", {"elementsize": 4}),
    ("numcodecs.shuffle", {"elementsize": 6}),
    ("numcodecs.base64", {}),
    ("conditional", {"codecs": [{"name": "zstd", "configuration": {"level": 1}}, "crc32c"]}),
    ("omnizarr.bytes_filter", {"id": "delta", "dtype": "<i4", "astype": "<i8"}),
]
TEXT = np.array([["a", "", "löwe"], ["x" * 50, "猫", "b"]], dtype=np.dtypes.StringDType())
OBJECTS = np.array([[1, None, "s"], [[1, 2], {"a": 1.5}, True]], dtype=object)
BYTES = np.array([b"", b"abc", b"\0\xff", b"x"], dtype=object)
RAGGED = np.empty(3, dtype=object)
RAGGED[:] = [np.arange(3, dtype="<i2"), np.empty(0, "<i2"), np.array([-1], "<i2")]

OPTIONAL = np.array([[(True, 1), (False, 0)], [(False, 0), (True, -3)]], dtype_of(np.dtype("<i2")))

INDEXED = {"index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "data_codecs": ["bytes"],
           "index_data_type": "uint32"}  # fmt: skip

# name, configuration, array, named data type
ARRAY_TO_BYTES = [
    ("vlen-utf8", {}, TEXT, Named("string")),
    ("numcodecs.vlen-utf8", {}, TEXT, Named("string")),
    ("vlen-bytes", {}, BYTES, Named("bytes")),
    ("zarrs.vlen_v2", {}, BYTES, Named("bytes")),
    ("zarrs.vlen", INDEXED, TEXT, Named("string")),
    ("zarrs.vlen", {**INDEXED, "index_data_type": "uint64", "index_location": "end"}, BYTES, Named("bytes")),
    ("numcodecs.vlen-array", {"dtype": "<i2"}, RAGGED, Named("omnizarr.vlen_array", {"data_type": "int16"})),
    ("numcodecs.json2", {}, OBJECTS, Named("omnizarr.object")),
    ("numcodecs.json", {}, OBJECTS, Named("omnizarr.object")),
    ("numcodecs.msgpack2", {}, OBJECTS, Named("omnizarr.object")),
    ("numcodecs.msgpack", {}, OBJECTS, Named("omnizarr.object")),
    (
        "optional",
        {"mask_codecs": ["packbits"], "data_codecs": [*INDEXED["index_codecs"], "zlib"]},
        OPTIONAL,
        Named("optional", {"name": "int16"}),
    ),
    ("numcodecs.zfpy", {"mode": 5}, FLOATS, Named("float64")),
    ("zfp", {"mode": "reversible"}, FLOATS, Named("float64")),
    ("numcodecs.pcodec", {}, FLOATS, Named("float64")),
    ("packbits", {}, NUMBERS, Named("int32")),
    ("packbits", {"padding_encoding": "last_byte"}, NUMBERS % 2 == 0, Named("bool")),
    (
        "n5_default",
        {
            "codecs": [
                {"name": "transpose", "configuration": {"order": [1, 0]}},
                {"name": "bytes", "configuration": {"endian": "big"}},
                {"name": "gzip", "configuration": {"level": 1}},
            ]
        },
        NUMBERS,
        Named("int32"),
    ),
]


def label(case):
    """Return the name of a test case."""
    return case if isinstance(case, str) else None
