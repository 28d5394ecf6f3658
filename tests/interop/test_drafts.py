"""What omnizarr writes of the v3 draft of 2020 is read equal by the programs that implemented it.

By zarr-python 2.18.7 every type and codec that the draft can name; by GDAL 3.6 those that it has. Both look for the
chunk of an array without dimensions under ``c0``, where the text says ``c``: that one is left out
(docs/formats/v3-draft-2020.md).
"""

import numpy as np
import pytest

import omnizarr
from tests.interop import peers

ZARR_2 = """
import io, sys, numpy as np, zarr
group = zarr.open_group(sys.argv[1], mode="r", zarr_version=3)
found = {}
def visit(group, path):
    for name, array in group.arrays():
        found[path + name] = array[...]
        found[path + name + "?fill"] = np.asarray(array.fill_value, array.dtype)
        found[path + name + "?attributes"] = np.array(repr(sorted(array.attrs.asdict().items())))
    for name, below in group.groups():
        visit(below, path + name + "/")
visit(group, "")
out = io.BytesIO()
np.savez(out, **found)
sys.stdout.buffer.write(out.getvalue())
"""
GDAL = """
import io, sys, numpy as np, rasterio
found = {}
for name in sys.argv[2:]:
    with rasterio.open('ZARR:"%s":/%s' % (sys.argv[1], name)) as dataset:
        found[name] = dataset.read(1)
        found[name + "?fill"] = np.asarray(dataset.nodata)
out = io.BytesIO()
np.savez(out, **found)
sys.stdout.buffer.write(out.getvalue())
"""

RNG = np.random.default_rng(2020)
TYPES = ["bool", "i1", "u1"] + [
    order + kind for kind in ("i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8") for order in "<>"
]
COMPRESSORS = {
    "none": None,
    "gzip": {"id": "gzip", "level": 5},
    "zlib": {"id": "zlib", "level": 1},
    "bz2": {"id": "bz2", "level": 1},
    "lz4": {"id": "lz4", "acceleration": 1},
    "lzma": {"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None},
    "zstd": {"id": "zstd", "level": 1},
    "blosc": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
}
FILLS = {"nan": np.nan, "minus_infinity": -np.inf, "tiny": 5e-324, "minus_zero": -0.0}
SHAPES = {"one": (7,), "two": (5, 7), "four": (3, 4, 2, 5)}


def values_of(dtype, shape=(5, 7)):
    if dtype == "bool":
        return RNG.random(shape) > 0.5
    bytes_ = RNG.integers(0, 256, int(np.prod(shape)) * np.dtype(dtype).itemsize, dtype=np.uint8).tobytes()
    values = np.frombuffer(bytes_, dtype).reshape(shape)
    return np.where(np.isfinite(values), values, 1).astype(dtype) if values.dtype.kind == "f" else values


@pytest.fixture(scope="module")
def hierarchy(tmp_path_factory):
    """Return the path of a hierarchy, and what is in it by path: values and fill value."""
    path = tmp_path_factory.mktemp("drafts") / "store"
    expected = {}

    def add(name, values, **options):
        array = omnizarr.create_array(
            path, name=name, shape=values.shape, dtype=values.dtype, zarr_format="3-draft2020", **options
        )
        array[...] = values
        expected[name] = values, array.fill_value

    for dtype in TYPES:
        add(
            f"types/{dtype.replace('<', 'little_').replace('>', 'big_')}", values_of(dtype), chunks=(2, 3), fill_value=1
        )
    for name, compressor in COMPRESSORS.items():
        add(f"compressors/{name}", values_of("<i4"), chunks=(5, 3), fill_value=0, compressors=compressor)
    for name, fill_value in FILLS.items():
        values = np.full((4, 4), fill_value)
        values[0, 0] = 3
        add(f"fills/{name}", values, chunks=(2, 2), fill_value=fill_value)
    for name, shape in SHAPES.items():
        for order in "CF":
            add(f"shapes/{name}_{order}", values_of("<u2", shape), chunks=(2,) * len(shape), order=order, fill_value=9)
    add("separators/dot", values_of("<i2"), chunks=(2, 2), fill_value=0,
        chunk_key_encoding={"name": "omnizarr.draft2020", "separator": "."})  # fmt: skip
    add("empty", np.full((3, 3), 5, "<i4"), chunks=(2, 2), fill_value=5)
    omnizarr.open_array(path, path="empty").attrs.update({"units": "K", "list": [1, 2.5, None, {"x": True}]})
    return str(path), expected


@pytest.fixture(scope="module")
def by_zarr_python(hierarchy):
    return peers.read("zarr2", ZARR_2, hierarchy[0])


def test_zarr_python_finds_every_array(hierarchy, by_zarr_python):
    assert {name for name in by_zarr_python if "?" not in name} == set(hierarchy[1])


def test_zarr_python_reads_equal_bytes(hierarchy, by_zarr_python):
    for name, (values, _) in hierarchy[1].items():
        assert by_zarr_python[name].dtype == values.dtype, name
        assert by_zarr_python[name].tobytes() == values.tobytes(), name


def test_zarr_python_reads_the_fill_value(hierarchy, by_zarr_python):
    for name, (_, fill_value) in hierarchy[1].items():
        found = by_zarr_python[f"{name}?fill"]
        assert found.tobytes() == np.asarray(fill_value, found.dtype).tobytes(), name


def test_zarr_python_reads_attributes(by_zarr_python):
    attributes = {"units": "K", "list": [1, 2.5, None, {"x": True}]}
    assert by_zarr_python["empty?attributes"] == repr(sorted(attributes.items()))


@pytest.mark.slow
def test_gdal_reads_equal_values(hierarchy):
    path, expected = hierarchy
    # What a raster band can be: two dimensions, numbers of the types that GDAL 3.6 has. It has no bz2; this build
    # of it lacks lz4 and blosc too.
    names = [
        name
        for name, (values, _) in expected.items()
        if values.ndim == 2 and values.dtype.kind in "uif" and values.dtype.newbyteorder("=") not in ("i1", "f2")
        if name not in {"compressors/bz2", "compressors/lz4", "compressors/blosc", "separators/dot"}
    ]
    assert len(names) > 25
    found = peers.read("gdal", GDAL, path, *names)
    for name in names:
        values, fill_value = expected[name]
        np.testing.assert_array_equal(found[name], values, err_msg=name)
        np.testing.assert_array_equal(found[f"{name}?fill"].astype(values.dtype), fill_value, err_msg=name)
