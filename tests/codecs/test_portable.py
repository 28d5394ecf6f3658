"""What replaces codecs that few programs read: the same, whether an array comes from netCDF or from Zarr."""

import numpy as np
import pytest

import omnizarr
from omnizarr.codecs import portable, registry
from omnizarr.codecs.record import ALL
from omnizarr.formats.filters import load_codec
from omnizarr.model import Named
from omnizarr.netcdf import filters, types

SHUFFLE = Named("numcodecs.shuffle", {"elementsize": 4})
GZIP = Named("gzip", {"level": 5})
CHAINS = {
    "bz2": [Named("numcodecs.bz2", {"level": 1})],
    "bz2, shuffled": [SHUFFLE, Named("numcodecs.bz2", {"level": 9})],
    "lzma": [Named("numcodecs.lzma", {"preset": 1})],
    "lzma, shuffled": [SHUFFLE, Named("numcodecs.lzma", {"preset": 1})],
    "lz4": [Named("numcodecs.lz4", {"acceleration": 1})],
    "zlib": [Named("numcodecs.zlib", {"level": 4})],
    "zlib of zarrs": [Named("zlib", {"level": 4})],
    "zlib, shuffled": [SHUFFLE, Named("numcodecs.zlib", {"level": 4})],
    "zlib that compresses nothing": [Named("numcodecs.zlib", {"level": 0})],
    "zlib that compresses nothing, shuffled": [SHUFFLE, Named("numcodecs.zlib", {"level": 0})],
    "zlib of the usual level": [Named("numcodecs.zlib", {"level": -1})],
    "zstd of the usual level, shuffled": [SHUFFLE, Named("zstd", {"level": 0, "checksum": False})],
    "szip": [Named("numcodecs.szip", {"mask": 141, "pixels-per-block": 8, "pixels-per-scanline": 64})],
    "szip, shuffled": [SHUFFLE, Named("numcodecs.szip", {"mask": 141, "pixels-per-block": 8})],
    "shuffle alone": [SHUFFLE],
    "shuffle of single bytes": [Named("numcodecs.shuffle", {"elementsize": 1}), GZIP],
    "shuffle before a checksum": [SHUFFLE, Named("numcodecs.fletcher32")],
    "checksums": [Named(f"numcodecs.{name}") for name in ("adler32", "crc32", "fletcher32", "jenkins_lookup3")],
    "base64": [Named("numcodecs.base64")],
    "known to all": [GZIP, Named("crc32c")],
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_all_programs_read_what_replaces_a_codec(chain):
    for _, new in portable.replaced(chain, 4):
        assert all(registry.record(codec.name).names[codec.name].readers == ALL for codec in new)


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_netcdf_and_zarr_have_one_answer(chain):
    if any("szip" in codec.name for codec in chain):
        pytest.importorskip("imagecodecs", reason="szip needs imagecodecs")
        chain = [
            Named(codec.name, {**codec.configuration, "pixels-per-scanline": 64, "bits-per-pixel": 32})
            if "szip" in codec.name
            else codec
            for codec in chain
        ]
    values = np.arange(64, dtype="i4") * 3
    source = omnizarr.create_array(
        {}, data=values, zarr_format=2, filters=None, compressors=[numcodecs_of(codec) for codec in chain]
    )
    target = {}
    assert omnizarr.convert(source, target, zarr_format=3).verified
    found = omnizarr.open_array(target)
    assert found[:].tolist() == values.tolist()
    from_zarr = [codec for codec in found.metadata.codecs if codec.name != "bytes"]
    assert from_zarr == list(filters.widely_read(source.metadata.codecs[1:], types.INT, 3))


def numcodecs_of(codec):
    return {"id": registry.bare(codec.name), **codec.configuration}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bz2", [("zstd", 9)]),
        ("bz2, shuffled", [("blosc", 5)]),
        ("lzma, shuffled", [("blosc", 5)]),
        ("zlib", [("gzip", 4)]),
        ("zlib, shuffled", [("blosc", 4)]),
        ("zlib that compresses nothing", []),
        ("zlib that compresses nothing, shuffled", []),
        ("zlib of the usual level", [("gzip", 6)]),
        ("zstd of the usual level, shuffled", [("blosc", 3)]),
        ("shuffle of single bytes", [("gzip", 5)]),
    ],
)
def test_replacement_is_about_as_strong(name, expected):
    found = [codec for _, new in portable.replaced(CHAINS[name], 4) for codec in new]
    levels = [codec.configuration.get("level", codec.configuration.get("clevel")) for codec in found]
    assert list(zip([codec.name for codec in found], levels, strict=True)) == expected


def test_chunk_that_is_too_large_for_blosc_gets_other_compressors():
    chain = [SHUFFLE, load_codec("lz4", {}, 4)]
    assert [codec.name for _, new in portable.replaced(chain, 4, 2**31) for codec in new] == ["zstd"]
