"""Errors of stored chunks: cut off, empty, of other bytes, or not there."""

import numpy as np
import pytest

import omnizarr
from tests.provoked.cases import case, hierarchy

WHERE = ("{at}/x.zarr/temp", "key 'c/0/1' (chunk (0, 1))")
ADVICE = "the stored value is damaged or incomplete: copy it again"


def damaged(name, codec, damage, *says):
    """Put an array with one damaged chunk into the table."""

    def prepare(at):
        for module in () if codec in (None, "gzip", "crc32c") else ("numcodecs",):
            pytest.importorskip(module, reason=f"{module} is not installed")
        root = omnizarr.create_group(at / "x.zarr")
        array = root.create_array(
            "temp", shape=(4, 6), chunks=(2, 3), dtype="i2", compressors=[codec] if codec else None
        )
        array[:] = np.arange(24).reshape(4, 6)
        file = at / "x.zarr/temp/c/0/1"
        file.write_bytes(damage(file.read_bytes()))
        return lambda: omnizarr.open_array(at / "x.zarr/temp")[:], ["get", at / "x.zarr/temp"]

    prepare.__name__ = name
    case(ValueError, *WHERE, f"codec '{codec or 'bytes'}'", *says, remedy=ADVICE, coords=(0, 1), key="c/0/1")(prepare)


def shorter(value):
    return value[:-3]


def nothing(_):
    return b""


def garbage(_):
    return b"garbage" * 5


damaged("truncated_zstd", "zstd", shorter, "cut off", "found ", "expected at least")
damaged("empty_zstd", "zstd", nothing, "no Zstandard frame", "found 0 bytes")
damaged("garbage_zstd", "zstd", garbage, "no Zstandard frame", "expected 28b52ffd")
damaged("truncated_gzip", "gzip", shorter, "cut off", "found ")
damaged("empty_gzip", "gzip", nothing, "cut off", "found 0 bytes")
damaged("garbage_gzip", "gzip", garbage, "the compressed bytes are broken")
damaged("truncated_blosc", "blosc", shorter, "cut off", "found ", "expected ")
damaged("empty_blosc", "blosc", nothing, "too short for Blosc", "found 0 bytes")
damaged("garbage_blosc", "blosc", garbage, "not the format of Blosc 1")
damaged("truncated_plain", None, shorter, "wrong size", "found 9 bytes, expected 12 bytes")
damaged("empty_plain", None, nothing, "wrong size", "found 0 bytes, expected 12 bytes")
damaged("too_long_plain", None, lambda value: value + b"x", "wrong size", "found 13 bytes, expected 12 bytes")
damaged(
    "wrong_checksum",
    "crc32c",
    lambda value: bytes([value[0] ^ 1]) + value[1:],
    "checksum differs",
    "found 0x",
    "expected 0x",
)
damaged("too_short_for_a_checksum", "crc32c", lambda value: value[:2], "too short for a checksum", "found 2 bytes")


def shard(name, damage, *says):
    """Put an array with a damaged shard into the table."""

    def prepare(at):
        array = omnizarr.create_array(at / "x.zarr", shape=(8,), shards=(8,), chunks=(2,), dtype="i4")
        array[:] = 1
        file = at / "x.zarr/c/0"
        file.write_bytes(damage(file.read_bytes()))
        return lambda: omnizarr.open_array(at / "x.zarr")[:], ["get", at / "x.zarr"]

    prepare.__name__ = name
    case(ValueError, "{at}/x.zarr", "key 'c/0' (chunk (0,))", *says, remedy=ADVICE, coords=(0,))(prepare)


shard(
    "broken_index_of_a_shard",
    lambda value: value[:-8] + bytes([value[-8] ^ 1]) + value[-7:],
    "index of the shard",
    "checksum",
)
shard("truncated_shard", lambda value: value[:5], "shorter than its index", "found 5 bytes, expected at least 68 bytes")


@case(
    KeyError,
    "{at}/x.zarr/ocean/temp",
    "key 'c/0/1' (chunk (0, 1))",
    "the chunk is not stored",
    remedy="missing='fill'",
    coords=(0, 1),
)
def missing_chunk(at):
    hierarchy(at)
    (at / "x.zarr/ocean/temp/c/0/1").unlink()
    return lambda: omnizarr.open_array(at / "x.zarr/ocean/temp", missing="error")[:]
