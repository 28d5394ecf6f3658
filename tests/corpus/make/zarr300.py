"""Zarr v3 as zarr-python 3.0.0 with numcodecs 0.14 wrote it: each codec of numcodecs has its ``id`` in the configuration.

python3.11 -m venv env
env/bin/pip install zarr==3.0.0 numcodecs==0.14.1 numpy==1.26.4 crc32c==2.9.post0 pcodec==0.2.0 zfpy==1.0.1
env/bin/python tests/corpus/make/zarr300.py
"""

import json
import warnings

import numcodecs
import numcodecs.zarr3 as nc
import numpy as np
import zarr
from recorder import Case
from zarr.codecs import BytesCodec, ShardingCodec

warnings.simplefilter("ignore")
PROGRAM = f"zarr-python {zarr.__version__}, numcodecs {numcodecs.__version__}, numpy {np.__version__}"
GRID = np.arange(35).reshape(5, 7)
DATA = np.random.default_rng(300).integers(0, 1000, (5, 7)).astype("i4")


def add(recording, path, data, *, lossy=False, expect=None, **options):
    """Write `data`, read it back, record what was read."""
    options = {"chunks": (3, 4)[: data.ndim], "compressors": None, "fill_value": 0, "dtype": data.dtype, **options}
    array = zarr.create_array(store=str(recording.store), name=path, shape=data.shape, **options)
    array[...] = data
    array = zarr.open_array(store=str(recording.store), path=path, mode="r")
    found = np.asarray(array[...])
    if not lossy:
        np.testing.assert_array_equal(found, data)
    document = (recording.store / path / "zarr.json").read_text()
    assert '"id": "' in document, path
    recording.array(path, found, array.fill_value)
    return json.loads(document)


with Case("zarr300", "numcodecs", PROGRAM) as c:
    for name, codec in {
        "blosc": nc.Blosc(cname="lz4", shuffle=1),
        "lz4": nc.LZ4(acceleration=2),
        "zstd": nc.Zstd(level=3),
        "zlib": nc.Zlib(level=5),
        "gzip": nc.GZip(level=5),
        "bz2": nc.BZ2(level=5),
        "lzma": nc.LZMA(preset=1),
        "crc32": nc.CRC32(),
        "crc32c": nc.CRC32C(),
        "adler32": nc.Adler32(),
        "fletcher32": nc.Fletcher32(),
        "jenkins_lookup3": nc.JenkinsLookup3(initval=3),
    }.items():
        add(c, name, DATA, compressors=[codec])
    for name in ("i2", "i4", "f8", "c16"):
        # whatever is asked for, the size is that of the elements
        document = add(
            c, f"shuffle_{name}", DATA.astype(name), compressors=[nc.Shuffle(elementsize=2), nc.Zlib(level=1)]
        )
        assert document["codecs"][1]["configuration"]["elementsize"] == np.dtype(name).itemsize
    add(c, "delta", DATA, filters=[nc.Delta(dtype="<i4")])
    add(c, "bitround", (GRID / 7).astype("f4"), filters=[nc.BitRound(keepbits=5)], lossy=True)
    scaled = nc.FixedScaleOffset(offset=1000, scale=10, dtype="<f8", astype="<u2")
    add(c, "fixedscaleoffset", 1000 + GRID / 10, filters=[scaled], fill_value=1000, lossy=True)
    add(c, "quantize", GRID / 7, filters=[nc.Quantize(digits=2)], lossy=True)
    add(c, "packbits", np.arange(20) % 3 == 0, filters=[nc.PackBits()], chunks=(7,), fill_value=False)
    add(c, "astype", DATA, filters=[nc.AsType(encode_dtype="<f8")])
    add(c, "pcodec", DATA, serializer=nc.PCodec(level=4))
    add(c, "zfpy", np.sin(GRID), serializer=nc.ZFPY(mode=4, tolerance=1e-3), lossy=True)
    codec = ShardingCodec(chunk_shape=(3, 2), codecs=[nc.Delta(dtype="<i4"), BytesCodec(), nc.Zlib(level=1)])
    add(c, "sharded", DATA, chunks=(3, 4), serializer=codec)
