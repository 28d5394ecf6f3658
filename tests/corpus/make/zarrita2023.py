"""Zarr v3 as zarrita of 2023 writes it, in the months when the last names changed.

for version in 0.1.0a6 0.1.0a18 0.2.0; do
    python3.10 -m venv env$version; env$version/bin/pip install zarrita==$version 'numpy<2' 'numcodecs<0.12'
    env$version/bin/python tests/corpus/make/zarrita2023.py
done

No array is both transposed and big-endian: zarrita cannot read those that it wrote.
"""

from importlib.metadata import version

import numcodecs
import numpy as np
import zarrita
from recorder import Case
from zarrita import codecs

PROGRAM = f"zarrita {version('zarrita')}, numcodecs {numcodecs.__version__}, numpy {np.__version__}"
GRID = np.arange(35).reshape(5, 7)
WHOLE = slice(None)
HAS_ZSTD = hasattr(codecs, "zstd_codec")


def endian(order):
    """Return the codec from arrays to bytes, `endian` or, in 0.2, `bytes`."""
    return getattr(codecs, "bytes_codec", getattr(codecs, "endian_codec", None))(order)


def blosc(typesize, **options):
    """Return Blosc, which in the first versions knew no size of elements."""
    return codecs.blosc_codec(typesize, **options) if HAS_ZSTD else codecs.blosc_codec(**options)


def add(recording, path, data, chunk_shape=(5, 4), only=WHOLE, expect=None, **options):
    """Write `data` (only the part `only`), read it back, record what was read."""
    store = zarrita.LocalStore(recording.store) / path if path else zarrita.LocalStore(recording.store)
    dtype = data.dtype.newbyteorder("=").name
    array = zarrita.Array.create(store, shape=data.shape, dtype=dtype, chunk_shape=chunk_shape, **options)
    array[only] = data[only]
    array = zarrita.Array.open(store)
    found = np.asarray(array[(slice(None),) * data.ndim])
    if only is WHOLE:
        np.testing.assert_array_equal(found, data)
    # Zarr v3 has no byte order in memory
    found = found.astype(found.dtype.newbyteorder("="))
    fill_value = np.asarray(array.metadata.fill_value).astype(found.dtype)
    recording.array(path, found, fill_value, array.metadata.attributes, **(expect or {}))


def write(c):
    zarrita.Group.create(zarrita.LocalStore(c.store), attributes={"title": "zarrita", "list": [1, None]})
    zarrita.Group.create(zarrita.LocalStore(c.store) / "g", attributes={})
    names = ["float32", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float64"]
    for name in names[:1] if HAS_ZSTD else names:
        add(c, f"types/{name}", GRID.astype(name), (5, 7), codecs=[endian("little")])
    if not HAS_ZSTD:
        add(c, "no_codecs", GRID.astype("i4"), codecs=[])
        add(c, "sharded_alone", GRID, (4, 4), codecs=[codecs.sharding_codec((2, 2))])
    add(c, "default_codecs", GRID.astype("i4"))
    add(c, "big_endian", GRID.astype("i4"), codecs=[endian("big")])
    add(c, "missing_chunks", GRID.astype("i4"), (3, 4), fill_value=-7, only=np.s_[3:, :4])
    add(c, "nan_fill", GRID.astype("f8"), (3, 4), fill_value=float("nan"), only=np.s_[3:, :4])
    add(c, "transpose_f", GRID.astype("u2"), codecs=[codecs.transpose_codec("F"), endian("little")])
    add(c, "transpose_c", GRID.astype("u2"), codecs=[codecs.transpose_codec("C"), endian("little")])
    cube = np.arange(60, dtype="i2").reshape(3, 4, 5)
    add(c, "transpose_f_cube", cube, (2, 3, 4), codecs=[codecs.transpose_codec("F"), endian("little")])
    add(c, "gzip", GRID, codecs=[endian("little"), codecs.gzip_codec(1)])
    add(c, "blosc", GRID, codecs=[endian("little"), blosc(8, cname="lz4", shuffle="shuffle")])
    if HAS_ZSTD:
        add(c, "zstd", GRID, codecs=[endian("little"), codecs.zstd_codec(1, checksum=True)])
        add(c, "crc32c", GRID, codecs=[endian("little"), codecs.crc32c_codec()])
    inner = [endian("little"), codecs.gzip_codec(1)]
    add(c, "sharded", GRID, (4, 4), codecs=[codecs.sharding_codec((2, 2), inner)])
    add(
        c,
        "sharded_missing",
        GRID,
        (4, 4),
        codecs=[codecs.sharding_codec((2, 2), inner)],
        fill_value=-1,
        only=np.s_[3:, 3:5],
    )
    inner = [codecs.transpose_codec("F"), endian("little"), blosc(8)]
    add(c, "sharded_transposed", GRID, (4, 4), codecs=[codecs.sharding_codec((2, 4), inner)])
    named = {"dimension_names": ["y", "x"], "attributes": {"units": "m"}}
    add(c, "g/named", GRID.astype("f4"), expect={"dimension_names": ["y", "x"]}, **named)
    add(c, "g/keys_v2", GRID.astype("u1"), codecs=[endian("little")], chunk_key_encoding=("v2", "."))
    add(c, "g/keys_dots", GRID.astype("u1"), codecs=[endian("little")], chunk_key_encoding=("default", "."))
    c.group("", {"title": "zarrita", "list": [1, None]})
    c.group("g", {}, ["keys_dots", "keys_v2", "named"])


def write_alone(c):
    """Write arrays that name no codec that turns them into bytes, which in June 2023 meant little-endian ones."""
    add(c, "gzip", GRID, codecs=[codecs.gzip_codec(1)])
    add(c, "transpose", GRID.astype("i4"), codecs=[codecs.transpose_codec("F"), codecs.gzip_codec(1)])


for suffix, write_case in {"": write, "_without_endian": write_alone}.items():
    if not (suffix and HAS_ZSTD):
        with Case("zarrita2023", version("zarrita") + suffix, PROGRAM) as c:
            c.document["script"] = "tests/corpus/make/zarrita2023.py"
            write_case(c)
