"""`omnizarr.nodes.equivalence`."""

import pytest

from omnizarr.formats import V2, V3
from omnizarr.nodes.equivalence import have_same_bytes


def v2(dtype="<i4", compressor=None, filters=None, order="C", chunks=(2, 3)):
    document = {"zarr_format": 2, "shape": [4, 6], "chunks": list(chunks), "dtype": dtype, "order": order}
    return V2.load({".zarray": {**document, "compressor": compressor, "filters": filters, "fill_value": None}})


def v3(*codecs, data_type="int32", fill_value=0):
    document = {"zarr_format": 3, "node_type": "array", "shape": [4, 6], "data_type": data_type}
    grid = {"name": "regular", "configuration": {"chunk_shape": [2, 3]}}
    document |= {"chunk_grid": grid, "chunk_key_encoding": "default", "fill_value": fill_value}
    return V3.load({"zarr.json": {**document, "codecs": [codec(item) for item in codecs]}})


def codec(item):
    if isinstance(item, str):
        return item
    name, configuration = item
    return {"name": name, "configuration": configuration}


LITTLE, BIG = ("bytes", {"endian": "little"}), ("bytes", {"endian": "big"})
DELTA = {"id": "delta", "dtype": "<i4"}
BLOSC = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
BLOSC_V3 = {"cname": "zstd", "clevel": 9, "shuffle": "bitshuffle", "typesize": 4, "blocksize": 0}
SHARDS = {"chunk_shape": [1, 3], "codecs": [codec(LITTLE)], "index_codecs": [codec(LITTLE), "crc32c"]}


class TestSame:
    @pytest.mark.parametrize(
        ("left", "right"),
        [
            (v2(), v3(LITTLE)),
            (v2(">i4"), v3(BIG)),
            (v2(order="F"), v3(("transpose", {"order": [1, 0]}), LITTLE)),
            (v2(order="F"), v3(*[("transpose", {"order": [1, 0]})] * 3, LITTLE)),
            (v2(), v3(("transpose", {"order": [0, 1]}), LITTLE)),
            (v2(compressor={"id": "gzip", "level": 1}), v3(LITTLE, ("gzip", {"level": 9}))),
            (v2(compressor={"id": "zlib", "level": 1}), v3(LITTLE, ("numcodecs.zlib", {"level": 9}))),
            (v2(compressor=BLOSC), v3(LITTLE, ("blosc", BLOSC_V3))),
            (v2(compressor={"id": "lzma", "preset": 1}), v3(LITTLE, ("numcodecs.lzma", {"preset": 9}))),
            (v2(filters=[{"id": "shuffle", "elementsize": 4}]), v3(LITTLE, "numcodecs.shuffle")),
            (v2(filters=[{"id": "crc32c", "location": "end"}]), v3(LITTLE, "crc32c")),
            (v2(filters=[DELTA]), v3(("numcodecs.delta", {"dtype": "<i4", "astype": "<i4"}), LITTLE)),
            (v2(">i4", filters=[{"id": "delta", "dtype": ">i4"}]),
             v3(("numcodecs.delta", {"dtype": "<i4", "astype": ">i4"}), BIG)),
            (v2("|V4"), v3("bytes", data_type="r32", fill_value=[0, 0, 0, 0])),
            (v3(("sharding_indexed", SHARDS)), v3(("sharding_indexed", {**SHARDS, "index_location": "end"}))),
        ],
        ids=range(15),
    )  # fmt: skip
    def test_chunks_of_one_are_chunks_of_the_other(self, left, right):
        assert have_same_bytes(left, right)
        assert have_same_bytes(right, left)


class TestOther:
    @pytest.mark.parametrize(
        ("left", "right"),
        [
            (v2(), v3(BIG)),
            (v2("<u4"), v3(LITTLE)),
            (v2(chunks=(3, 2)), v3(LITTLE)),
            (v2(order="F"), v3(LITTLE)),
            (v2(), v3(LITTLE, "crc32c")),
            (v2(compressor={"id": "zlib"}), v3(LITTLE, ("gzip", {"level": 1}))),
            (v2(compressor={"id": "lzma", "format": 2}), v3(LITTLE, "numcodecs.lzma")),
            (v2(filters=[{"id": "shuffle", "elementsize": 2}]), v3(LITTLE, "numcodecs.shuffle")),
            (v2(filters=[{"id": "crc32c", "location": "start"}]), v3(LITTLE, "crc32c")),
            (v2(filters=[DELTA]), v3(LITTLE)),
            (v2(filters=[DELTA]), v3(("numcodecs.delta", {"dtype": "<i4", "astype": "<i2"}), LITTLE)),
            (v2(">i4", filters=[{"id": "delta", "dtype": ">i4"}]), v3(("numcodecs.delta", {"dtype": ">i4"}), BIG)),
            (v2(filters=[{"id": "crc32"}, {"id": "adler32"}]), v3(LITTLE, "numcodecs.adler32", "numcodecs.crc32")),
            (v3(("sharding_indexed", SHARDS)), v3(("sharding_indexed", {**SHARDS, "index_location": "start"}))),
            (v3(("sharding_indexed", SHARDS)), v3(("sharding_indexed", SHARDS), fill_value=1)),
            (v3(("sharding_indexed", SHARDS)), v3(LITTLE)),
        ],
        ids=range(16),
    )
    def test_chunks_of_one_are_no_chunks_of_the_other(self, left, right):
        assert not have_same_bytes(left, right)
        assert not have_same_bytes(right, left)

    def test_codecs_that_are_unknown_must_be_the_same_in_every_word(self):
        assert have_same_bytes(v3(LITTLE, ("szip", {"mask": 1})), v3(LITTLE, ("szip", {"mask": 1})))
        assert not have_same_bytes(v3(LITTLE, ("szip", {"mask": 1})), v3(LITTLE, ("szip", {"mask": 2})))
