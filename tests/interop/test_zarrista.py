"""zarrista, and so zarrs, reads what omnizarr writes."""

import numpy as np
import pytest

import omnizarr
from tests.interop import written as w

zarrista = pytest.importorskip("zarrista", reason="zarrista is not installed")
stores = pytest.importorskip("zarrista.store", reason="zarrista is not installed")

DATA = np.random.default_rng(6).integers(0, 1000, (10, 7)).astype("i4")
# The registered codecs and types of which zarrs is the reference.
OF_ZARRS = {
    "packbits_bool": w.Written(DATA % 3 == 0, {"serializer": {"name": "packbits"}}),
    "packbits_first_byte": w.Written(DATA % 3 == 0, {"serializer": w.named("packbits", padding_encoding="first_byte")}),
    "packbits_last_byte": w.Written(DATA % 3 == 0, {"serializer": w.named("packbits", padding_encoding="last_byte")}),
    "packbits_10_bits": w.Written(
        DATA.astype("u2"), {"serializer": w.named("packbits", first_bit=0, last_bit=9), "chunks": (10, 7)}
    ),
    "reshape": w.Written(w.CUBE, {"filters": [w.named("reshape", shape=[[0, 1], -1])]}),
    "shuffle": w.Written(DATA, {"compressors": [w.named("numcodecs.shuffle", elementsize=4), w.GZIP]}),
    "rectilinear_runs": w.Written(DATA, {"chunks": [[2, 2, 2, 4], [3, 4]]}),
    "squeeze": w.Written(w.CUBE, {"filters": [w.named("zarrs.squeeze")], "chunks": (1, *w.CUBE.shape[1:])}),
    "regular_bounded": w.Written(DATA, {"chunks": w.named("zarrs.regular_bounded", chunk_shape=[4, 3])}),
    **{
        f"vlen_{place}_{size}": w.Written(
            np.array(["", "a", "Grüße", "x" * 300], dtype="T"),
            {
                "serializer": w.named(
                    "zarrs.vlen",
                    index_codecs=[w.named("bytes", endian="little"), w.GZIP],
                    data_codecs=["bytes", w.GZIP],
                    index_data_type=size,
                    index_location=place,
                ),
                "chunks": (3,),
            },
        )
        for place in ("start", "end")
        for size in ("uint32", "uint64")
    },
    "vlen_v2": w.Written(np.array(["", "a", "Grüße"], dtype="T"), {"serializer": w.named("zarrs.vlen_v2")}),
    "default_suffix": w.Written(
        DATA, {"chunks": (4, 3), "chunk_key_encoding": w.named("zarrs.default_suffix", suffix=".bin", separator=".")}
    ),
}
V3 = {**w.CORE_V3, **w.STRINGS_V3, **w.TIMES_V3, **w.RECTILINEAR_V3, **OF_ZARRS}
# Its wheels come without these two.
V2 = {name: case for name, case in w.CORE_V2.items() if name not in {"zlib", "bz2"}}


def read(path):
    return zarrista.Array.open(stores.FilesystemStore(path))


def same_values(array, expected):
    """Compare with what zarrista read: fixed sizes byte by byte, strings by value."""
    tensor = array[...]
    assert tuple(tensor.shape) == expected.shape
    if expected.dtype.kind == "T":
        assert tensor.to_numpy().ravel().tolist() == expected.ravel().tolist()
    else:
        assert bytes(tensor.buffer()) == expected.astype(expected.dtype.newbyteorder("=")).tobytes()


@pytest.mark.parametrize("name", V3)
def test_zarrista_reads_zarr_v3(name, tmp_path):
    w.write(tmp_path / "x.zarr", V3[name], 3)
    array = read(tmp_path / "x.zarr")
    same_values(array, V3[name].expected())
    assert array.attrs == V3[name].options.get("attributes", {})
    if "dimension_names" in V3[name].options:
        assert array.dimension_names == V3[name].options["dimension_names"]


@pytest.mark.parametrize("name", V2)
def test_zarrista_reads_zarr_v2(name, tmp_path):
    w.write(tmp_path / "x.zarr", V2[name], 2)
    same_values(read(tmp_path / "x.zarr"), V2[name].expected())


@pytest.mark.parametrize("keepbits", [1, 5, 23])
def test_bitround_rounds_as_zarrista_does(keepbits, tmp_path):
    values = np.random.default_rng(7).normal(size=100).astype("f4")
    options = {"shape": 100, "chunks": 100, "dtype": "f4", "compressors": None, "fill_value": 0}
    ours = omnizarr.create_array(tmp_path / "ours", filters=[w.named("bitround", keepbits=keepbits)], **options)
    ours[...] = values
    # The same array, encoded by zarrista.
    theirs = zarrista.Array.from_metadata(read(tmp_path / "ours").metadata, stores.FilesystemStore(tmp_path / "theirs"))
    theirs.store_metadata()
    theirs[...] = values
    assert bytes(read(tmp_path / "ours")[...].buffer()) == bytes(theirs[...].buffer())


def test_zarrista_reads_a_hierarchy(tmp_path):
    root = omnizarr.create_group(tmp_path, attributes={"title": "Größe"})
    root.create_array("a/x", shape=3, dtype="i4", attributes={"units": "K"})[...] = [1, 2, 3]
    root.create_group("empty")
    group = zarrista.Group.open(stores.FilesystemStore(tmp_path))
    assert group.attrs == {"title": "Größe"}
    assert sorted(group.group_keys()) == ["a", "empty"]
    assert bytes(group["a"]["x"][...].buffer()) == np.array([1, 2, 3], "i4").tobytes()


@pytest.mark.parametrize("name", ["complex_float8_e4m3", "complex_float8_e8m0fnu", "complex_float4_e2m1fn"])
def test_zarrista_reads_small_complex_numbers(name, tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    part = getattr(ml_dtypes, name.removeprefix("complex_"))
    values = np.array([(1, 2), (4, 1), (2, 2)], [("real", part), ("imag", part)])
    array = omnizarr.create_array(tmp_path / "x.zarr", shape=3, chunks=2, dtype=name, fill_value=[1, 1])
    array[:] = values
    assert bytes(read(tmp_path / "x.zarr")[...].buffer()) == values.tobytes()
