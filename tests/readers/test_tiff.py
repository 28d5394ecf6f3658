"""TIFF files, opened in place: tifffile and GDAL say what is in them."""

import io
import itertools
import json
import logging
import pickle
import random
import struct
import zlib

import numpy as np
import pytest

import omnizarr
from omnizarr.cli import main
from omnizarr.codecs import registry
from omnizarr.codecs.contract import BytesSpec
from omnizarr.errors import (
    ChunkError,
    CodecError,
    MetadataError,
    NotRepresentableError,
    OmnizarrError,
    ReadOnlyError,
    StaleError,
    StoreError,
)
from omnizarr.readers import tiff
from omnizarr.stores import MemoryStore
from omnizarr.stores.manifests.file import File
from omnizarr.stores.manifests.manifest import Strided

tifffile = pytest.importorskip("tifffile", reason="tifffile writes the files, and says what is in them")
imagecodecs = pytest.importorskip("imagecodecs", reason="imagecodecs decodes most compressions of TIFF")

logging.getLogger("tifffile").setLevel(logging.CRITICAL)
TYPES = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16", "?"]
STREAMS = [None, "zlib", "lzw", "zstd", "packbits", "lzma"]


def values_of(shape, dtype, seed=0):
    """Return elements that compress a little, as pictures do."""
    steps = np.random.default_rng(seed).integers(-3, 4, shape)
    sums = np.cumsum(steps.reshape(-1)).reshape(shape)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return sums % 3 == 0
    if dtype.kind == "c":
        return (sums + 1j * sums[::-1]).astype(dtype)
    return (sums / 7).astype(dtype) if dtype.kind == "f" else np.abs(sums).astype(dtype)


def arrays_of(path):
    """Return the arrays of a file by path."""
    root = omnizarr.open(path, mode="r")
    if isinstance(root, omnizarr.Array):
        return {"": root}
    return {name: each for name, each in root.members(max_depth=None) if isinstance(each, omnizarr.Array)}


def assert_same(path):
    """Assert that all series and levels that tifffile finds are among the arrays. Return the arrays."""
    arrays = arrays_of(path)
    found = [each[...] for each in arrays.values()]
    with tifffile.TiffFile(path) as file:
        for series in file.series:
            for level in series.levels:
                expected = np.squeeze(level.asarray())
                assert any(is_same(each, expected) for each in found), (series, level)
    return arrays


def is_same(found, expected):
    """Return whether elements are equal; groups of levels have channels first."""
    found = np.squeeze(found)
    moved = [found] if found.ndim < 3 else [found, np.moveaxis(found, -3, -1)]
    expected = expected.astype(expected.dtype.newbyteorder("="))
    return any(
        each.dtype == expected.dtype and np.array_equal(each, expected, equal_nan=each.dtype.kind in "fc")
        for each in moved
    )


# -- values -------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", STREAMS)
@pytest.mark.parametrize("dtype", TYPES)
def test_types_in_streams_have_the_same_elements(dtype, compression, tmp_path):
    count = 0
    for order, tile, predictor in itertools.product("<>", (None, (32, 48)), (False, True)):
        if predictor and (compression is None or np.dtype(dtype).kind in "cb" or dtype in ("u8", "i8")):
            continue
        path = tmp_path / f"{count}.tif"
        form = {"tile": tile} if tile else {"rowsperstrip": 16}
        values = values_of((77, 101), dtype)
        given = {"predictor": True} if predictor else {}
        tifffile.imwrite(path, values, byteorder=order, compression=compression, **form, **given)
        assert_same(path)
        count += 1
    assert count >= 4


@pytest.mark.parametrize("compression", [None, "zlib", "lzw"])
@pytest.mark.parametrize("planar", ["contig", "separate"])
@pytest.mark.parametrize("dtype", ["u1", "u2", "f4"])
def test_samples_have_the_same_elements(dtype, planar, compression, tmp_path):
    shape = (77, 101, 3) if planar == "contig" else (3, 77, 101)
    for number, (tile, big) in enumerate(itertools.product((None, (32, 48)), (False, True))):
        path = tmp_path / f"{number}.tif"
        form = {"tile": tile} if tile else {"rowsperstrip": 16}
        given = {"predictor": True} if compression else {}
        tifffile.imwrite(
            path, values_of(shape, dtype), photometric="rgb", planarconfig=planar, compression=compression,
            bigtiff=big, **form, **given,
        )  # fmt: skip
        (array,) = assert_same(path).values()
        assert array.dimension_names == (("y", "x", "c") if planar == "contig" else ("c", "y", "x"))


PICTURES = [
    *((compression, "u1", samples) for compression in ("jpeg", "jpegxl", "jpeg2000", "png") for samples in (1, 3)),
    *(("webp", "u1", samples) for samples in (3, 4)),
    *((compression, "u2", 1) for compression in ("jpegxl", "jpeg2000", "png", "lerc")),
    ("lerc", "f4", 1),
]


@pytest.mark.parametrize("tile", [None, (32, 48)], ids=["strips", "tiles"])
@pytest.mark.parametrize(("compression", "dtype", "samples"), PICTURES)
def test_compressions_of_pictures_have_the_same_elements(compression, dtype, samples, tile, tmp_path):
    shape = (77, 101) if samples == 1 else (77, 101, samples)
    form = {"tile": tile} if tile else {"rowsperstrip": 16}
    photometric = "minisblack" if samples == 1 else "rgb"
    values = values_of(shape, dtype)
    tifffile.imwrite(tmp_path / "a.tif", values, compression=compression, photometric=photometric, **form)
    assert_same(tmp_path / "a.tif")


@pytest.mark.parametrize("subsampling", [(1, 1), (2, 1), (2, 2)])
def test_jpeg_with_tables_and_fewer_colours_has_the_same_elements(subsampling, tmp_path):
    values = values_of((77, 101, 3), "u1")
    given = {"level": 80, "outcolorspace": "ycbcr"}
    tifffile.imwrite(
        tmp_path / "a.tif", values, compression="jpeg", compressionargs=given, subsampling=subsampling, tile=(32, 48)
    )
    assert_same(tmp_path / "a.tif")


@pytest.mark.parametrize("bits", [1, 2, 4, 6, 10, 12, 14, 24])
def test_packed_elements_are_the_same(bits, tmp_path):
    dtype = "u1" if bits < 8 else "u2" if bits < 16 else "u4"
    values = (values_of((77, 101), "u4") % (1 << bits)).astype(dtype)
    tifffile.imwrite(tmp_path / "a.tif", values, bitspersample=bits)
    (array,) = assert_same(tmp_path / "a.tif").values()
    assert array.dtype == (bool if bits == 1 else dtype)


# -- pages --------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_pages_are_one_array_with_names(compression, tmp_path):
    path = tmp_path / "a.tif"
    given = {"compression": compression}
    for shape, how, names in (
        ((5, 40, 50), {"metadata": {"axes": "ZYX"}}, ("z", "y", "x")),
        ((2, 3, 40, 50), {"metadata": {"axes": "TZYX"}}, ("t", "z", "y", "x")),
        ((5, 40, 50), {"metadata": None}, ("page", "y", "x")),
        ((2, 3, 4, 40, 50), {"imagej": True, "metadata": {"axes": "TZCYX"}}, ("t", "z", "c", "y", "x")),
        ((2, 3, 4, 40, 50), {"ome": True, "metadata": {"axes": "TCZYX"}}, ("t", "c", "z", "y", "x")),
    ):
        tifffile.imwrite(path, values_of(shape, "u2"), photometric="minisblack", **how, **given)
        (array,) = assert_same(path).values()
        assert (array.shape, array.dimension_names) == (shape, names)


def test_pages_without_directories_are_found_behind_the_first(tmp_path):
    path = tmp_path / "a.tif"
    values = values_of((7, 40, 50), "f4")
    tifffile.imwrite(path, values, truncate=True, metadata={"axes": "ZYX"})
    with tifffile.TiffFile(path) as file:
        assert len(file.pages) == 1
    assert np.array_equal(omnizarr.open(path)[...], values)


def test_what_lies_together_is_divided_into_chunks_whatever_the_strips_are(tmp_path):
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, np.zeros((40, 1000, 1000), "u2"), metadata={"axes": "ZYX"}, rowsperstrip=1)
    array = omnizarr.open(path)
    table = array.store.table_of("")
    assert isinstance(table.chunks, Strided)
    assert array.chunks == (2, 1000, 1000)


def test_a_last_strip_that_is_lower_is_a_lower_chunk(tmp_path):
    values = values_of((77, 101), "u2")
    tifffile.imwrite(tmp_path / "a.tif", values, compression="zlib", rowsperstrip=16)
    array = omnizarr.open(tmp_path / "a.tif")
    document = json.loads(bytes(array.store.get("zarr.json")))
    assert document["chunk_grid"]["configuration"]["chunk_shapes"] == [[[16, 4], 13], 101]
    assert np.array_equal(array[60:77, 90:], values[60:77, 90:])


def test_images_of_several_shapes_are_a_group(tmp_path):
    path = tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as file:
        file.write(values_of((5, 40, 50), "u2"), metadata={"axes": "ZYX"})
        file.write(values_of((30, 20, 3), "u1"), photometric="rgb")
        file.write(values_of((4, 30), "f4"), compression="zlib")
    arrays = assert_same(path)
    assert {name: each.shape for name, each in arrays.items()} == {"0": (5, 40, 50), "1": (30, 20, 3), "2": (4, 30)}


def with_levels(path, values, *, is_below, **given):
    with tifffile.TiffWriter(path, ome=str(path).endswith(".ome.tif")) as file:
        file.write(values, tile=(64, 64), compression="zlib", **({"subifds": 2} if is_below else {}), **given)
        given.pop("metadata", None)
        for step in (2, 4):
            less = values[..., ::step, ::step] if values.shape[-1] > 4 else values[..., ::step, ::step, :]
            file.write(less, tile=(64, 64), compression="zlib", subfiletype=1, **given)


@pytest.mark.parametrize(("name", "is_below"), [("a.tif", True), ("a.tif", False), ("a.ome.tif", True)])
def test_levels_are_those_of_an_image_of_ome_zarr(name, is_below, tmp_path, capsys):
    path = tmp_path / name
    values = values_of((256, 320, 3), "u1")
    given = {"metadata": None} if not is_below else {}
    with_levels(path, values, is_below=is_below, photometric="rgb", **given)
    arrays = assert_same(path)
    assert {name: each.shape for name, each in arrays.items()} == {
        "0": (3, 256, 320), "1": (3, 128, 160), "2": (3, 64, 80),
    }  # fmt: skip
    (image,) = omnizarr.open(path).attrs["ome"]["multiscales"]
    assert [axis["name"] for axis in image["axes"]] == ["c", "y", "x"]
    scales = [each["coordinateTransformations"][0]["scale"] for each in image["datasets"]]
    assert [scale[-1] / scales[0][-1] for scale in scales] == [1, 2, 4]
    assert main(["check", str(path)]) == 0, capsys.readouterr().out


def test_ome_says_how_large_pixels_are(tmp_path):
    path = tmp_path / "a.ome.tif"
    sizes = {"PhysicalSizeX": 0.5, "PhysicalSizeXUnit": "µm", "PhysicalSizeY": 0.25, "PhysicalSizeYUnit": "µm"}
    with_levels(path, values_of((4, 256, 320), "u2"), is_below=True, photometric="minisblack",
                metadata={"axes": "CYX", **sizes})  # fmt: skip
    (image,) = omnizarr.open(path).attrs["ome"]["multiscales"]
    assert [axis.get("unit") for axis in image["axes"]] == [None, "micrometer", "micrometer"]
    assert image["datasets"][1]["coordinateTransformations"][0]["scale"] == [1.0, 0.5, 1.0]
    assert_same(path)


def test_planes_in_other_files_are_named_and_missing(tmp_path):
    path = tmp_path / "a.ome.tif"
    tifffile.imwrite(path, values_of((2, 40, 50), "u2"), ome=True, metadata={"axes": "ZYX"})
    with tifffile.TiffFile(path) as file:
        text = file.pages[0].description
    data = """<TiffData IFD="0" FirstZ="0" PlaneCount="1"/><TiffData FirstZ="1" IFD="0" PlaneCount="1">
        <UUID FileName="b.ome.tif">urn:uuid:2</UUID></TiffData>"""
    own = text.replace("<OME ", '<OME UUID="urn:uuid:1" ', 1) if "UUID=" not in text.split("<Image")[0] else text
    start, end = own.index("<TiffData"), own.index("</Pixels>")
    text = own[:start] + data + own[end:]
    tifffile.imwrite(path, values_of((40, 50), "u2"), description=text, metadata=None)
    array = omnizarr.open(path)
    assert array.shape == (2, 40, 50)
    assert np.array_equal(array[0], values_of((40, 50), "u2"))
    assert not array[1].any()
    assert any("1 of its planes are in other files" in note for note in array.store.notes)


# -- georeferences ------------------------------------------------------------------------


@pytest.fixture
def rasterio():
    return pytest.importorskip("rasterio", reason="GDAL writes georeferences")


OPTIONS = [
    {"compress": "NONE"},
    {"compress": "DEFLATE", "predictor": 2},
    {"compress": "LZW", "predictor": 2},
    {"compress": "ZSTD"},
    {"compress": "LERC"},
    {"compress": "DEFLATE", "ENDIANNESS": "BIG"},
    {"compress": "NONE", "nbits": 12},
    {"compress": "DEFLATE", "SPARSE_OK": True, "nodata": 7},
]


TYPES_OF_GDAL = ["uint8", "int16", "uint16", "float32", "float64", "complex64", "complex_int16"]
CASES = [
    pytest.param(dtype, options, id="-".join(map(str, (dtype, *options.values()))))
    for dtype, options in itertools.product(TYPES_OF_GDAL, OPTIONS)
    if not (("nbits" in options and dtype != "uint16") or (options["compress"] == "LERC" and "complex" in dtype))
]


@pytest.mark.parametrize(("dtype", "options"), CASES)
def test_gdal_sees_the_same(dtype, options, tmp_path, rasterio):
    is_sparse = "nodata" in options
    for interleave, tiled in itertools.product(("pixel", "band"), (True, False)):
        path = tmp_path / f"{interleave}-{tiled}.tif"
        memory = {"complex_int16": "complex64"}.get(dtype, dtype)
        values = (
            values_of((3, 150, 130), memory) if "complex" in dtype else values_of((3, 150, 130), "i8") % 200
        ).astype(memory)
        profile = {
            "driver": "GTiff", "height": 150, "width": 130, "count": 3, "dtype": dtype, "crs": "EPSG:32633",
            "transform": rasterio.Affine(10.0, 0, 5e5, 0, -10.0, 6e6), "interleave": interleave, "tiled": tiled,
            "blockxsize": 64, "blockysize": 64 if tiled else 16,
        }  # fmt: skip
        with rasterio.open(path, "w", **profile, **options) as file:
            part = ((0, 64), (0, 64)) if is_sparse else None
            file.write(values[:, :64, :64] if is_sparse else values, window=part)
        with rasterio.open(path) as file:
            expected, transform = file.read(), file.transform.to_gdal()
        array = omnizarr.open(path)
        assert array.dimension_names == ("band", "y", "x")
        assert np.array_equal(array[...], expected)
        assert tuple(array.attrs["geotransform"]) == transform
        assert array.attrs["crs"] == "EPSG:32633"
        if is_sparse:
            assert array.fill_value == 7
            assert array.nchunks_initialized < array.nchunks


def test_a_cog_has_levels_and_a_mask(tmp_path, rasterio):
    path = tmp_path / "a.tif"
    profile = {"driver": "GTiff", "height": 300, "width": 400, "count": 3, "dtype": "uint8", "tiled": True}
    valid = values_of((300, 400), "?")
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        with rasterio.open(path, "w", **profile, blockxsize=64, blockysize=64, crs="EPSG:4326",
                           transform=rasterio.Affine(0.1, 0, 5, 0, -0.1, 50)) as file:  # fmt: skip
            file.write(values_of((3, 300, 400), "u1"))
            file.write_mask(valid)
        with rasterio.open(path, "r+") as file:
            file.build_overviews([2, 4])
    group = omnizarr.open(path)
    assert sorted(group.array_keys()) == ["0", "1", "2", "mask", "mask_1", "mask_2"]
    assert np.array_equal(group["mask"][...], valid)
    for number in range(3):
        with rasterio.open(path, **({"overview_level": number - 1} if number else {})) as file:
            assert np.array_equal(group[str(number)][...], file.read())
    assert group["0"].attrs["_CRS"] == {"url": "http://www.opengis.net/def/crs/EPSG/0/4326"}


# -- doors --------------------------------------------------------------------------------


@pytest.fixture
def cells(tmp_path):
    """A file of several pages in tiles, and its elements."""
    values = values_of((3, 256, 256), "u2")
    given = {"software": "a program", "resolution": (100, 100), "resolutionunit": "CENTIMETER"}
    how = {"tile": (64, 64), "compression": "zlib", "metadata": {"axes": "ZYX"}, "photometric": "minisblack"}
    tifffile.imwrite(tmp_path / "cells.tif", values, **how, **given)
    return tmp_path / "cells.tif", values


def test_tags_are_attributes(cells):
    attributes = dict(omnizarr.open(cells[0]).attrs)
    assert (attributes["Software"], attributes["XResolution"], attributes["ResolutionUnit"]) == ("a program", 100.0, 3)
    assert json.loads(attributes["ImageDescription"])["shape"] == [3, 256, 256]


def test_commands_read_it(cells, capsys):
    path = str(cells[0])
    for command in (["info"], ["tree"], ["ls"], ["stat"], ["check"], ["digest"], ["du"], ["show"]):
        assert main([*command, path]) == 0, command
    assert "zlib" in capsys.readouterr().out


def test_it_is_found_by_its_head(cells):
    path, values = cells
    other = path.rename(path.with_name("cells"))
    assert np.array_equal(omnizarr.open(other)[...], values)


def test_it_is_read_in_any_store(cells):
    path, _ = cells
    store = MemoryStore({"a/cells.tif": path.read_bytes()})
    contents = tiff.read(File.of(store, "a/cells.tif"))
    assert contents is not None
    assert list(contents.documents) == ["zarr.json"]


def test_it_can_only_be_read(cells):
    with pytest.raises(ReadOnlyError, match="can only be read"):
        omnizarr.open(cells[0], mode="a")


def test_it_is_pickled_with_what_it_has_found(cells):
    path, values = cells
    array = omnizarr.open(path)
    assert np.array_equal(pickle.loads(pickle.dumps(array))[1], values[1])


def test_a_file_that_changes_is_an_error(cells):
    path, values = cells
    array = omnizarr.open(path)
    array[0]
    tifffile.imwrite(path, values[:2], tile=(64, 64), photometric="minisblack")
    with pytest.raises(StaleError, match="has changed since it was opened"):
        array[...]


def test_conversion_gives_what_all_read(tmp_path):
    zarr = pytest.importorskip("zarr", minversion="3", reason="zarr-python reads the copy")
    values = values_of((64, 96, 3), "u1")
    tifffile.imwrite(tmp_path / "a.tif", values, tile=(32, 32), compression="lzw", predictor=True, photometric="rgb")
    done = omnizarr.convert(tmp_path / "a.tif", tmp_path / "a.zarr")
    assert done.verified
    assert not done.losses
    assert np.array_equal(zarr.open(tmp_path / "a.zarr", mode="r")[...], values)


def test_conversion_names_what_is_not_shown(tmp_path):
    path = tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as file:
        file.write(values_of((40, 50), "u2"))
        file.write(values_of((30, 50), "u2"))
    raw = bytearray(path.read_bytes())
    with tifffile.TiffFile(path) as file:
        tag = file.pages[1].tags[259]
        raw[tag.valueoffset : tag.valueoffset + 2] = (9999).to_bytes(2, "little")
    path.write_bytes(raw)
    done = omnizarr.convert(path, tmp_path / "a.zarr")
    assert [(loss.what, loss.why) for loss in done.losses] == [
        ("page 1", "not shown: its compression is number 9999, which is not supported")
    ]


def test_references_are_read_by_zarr_python(cells):
    zarr = pytest.importorskip("zarr", minversion="3", reason="zarr-python reads the references")
    pytest.importorskip("fsspec", reason="fsspec reads the references")
    path, values = cells
    omnizarr.references(str(path), str(path.with_name("refs.json")))
    from zarr.storage import FsspecStore

    store = FsspecStore.from_url(
        "reference://", storage_options={"fo": str(path.with_name("refs.json")), "remote_protocol": "file",
                                         "asynchronous": True}, read_only=True,
    )  # fmt: skip
    assert np.array_equal(zarr.open(store, mode="r")[...], values)


def test_xarray_opens_it(cells):
    xarray = pytest.importorskip("xarray", reason="xarray opens it")
    path, values = cells
    with xarray.open_dataset(path, engine="omnizarr") as dataset:
        (variable,) = dataset.data_vars.values()
        assert variable.dims == ("z", "y", "x")
        assert np.array_equal(variable.values, values)


# -- codecs -------------------------------------------------------------------------------


@pytest.mark.parametrize("endian", ["little", "big"])
@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize(
    ("predictor", "name"), [(2, "uint8"), (2, "uint16"), (2, "uint64"), (3, "float16"), (3, "float64")]
)
def test_predictors_undo_themselves(predictor, name, samples, endian):
    values = values_of((7, 11 * samples), name)
    given = {"predictor": predictor, "width": 11, "samples": samples, "data_type": name, "endian": endian}
    data = values.astype(values.dtype.newbyteorder("<" if endian == "little" else ">")).tobytes()
    codec = registry.find("tiff_predictor")(given, BytesSpec(len(data), values.itemsize))
    assert bytes(codec.decode(codec.encode(data))) == data
    assert bytes(codec.encode(data)) != data


def test_tiles_are_only_read():
    codec = registry.find("tiff")({"compression": "lzw", "width": 4}, BytesSpec(16))
    with pytest.raises(CodecError, match="are only read"):
        codec.encode(bytes(16))


# -- files that are broken ----------------------------------------------------------------


def raw(entries, *, data=b"", following=0):
    """Return a classic file with one directory of (tag, type, count, value)."""
    packed = b"".join(struct.pack("<HHII", *each) for each in sorted(entries))
    return struct.pack("<2sHIH", b"II", 42, 8, len(entries)) + packed + struct.pack("<I", following) + data


PLAIN = [
    (256, 3, 1, 8), (257, 3, 1, 8), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, 1, 134), (277, 3, 1, 1),
    (278, 3, 1, 8), (279, 4, 1, 64),
]  # fmt: skip


def replaced(*entries):
    new = {each[0]: each for each in entries}
    return [*(each for each in PLAIN if each[0] not in new), *entries]


def test_a_plain_file_of_this_test_is_read(tmp_path):
    path = tmp_path / "a.tif"
    path.write_bytes(raw(PLAIN, data=bytes(12) + bytes(range(64))))
    assert omnizarr.open(path)[...].tolist() == np.arange(64).reshape(8, 8).tolist()


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (replaced((257, 4, 1, 0)), "an impossible shape"),
        (replaced((256, 4, 1, 2**32 - 1), (257, 4, 1, 2**32 - 1), (277, 4, 1, 2**32 - 1)), "an impossible shape"),
        (replaced((257, 4, 1, 2**31), (278, 4, 1, 1)), "fewer tiles or strips"),
        (replaced((258, 3, 2**31, 8)), "beyond its end"),
        (replaced((259, 3, 1, 9999)), "compression is number 9999"),
        (replaced((258, 3, 1, 128)), "no type of Zarr"),
        (replaced((258, 99, 1, 8)), "unknown type"),
        (replaced((317, 3, 1, 3)), "predictor is for floating-point"),
        (replaced((259, 3, 1, 5), (322, 4, 1, 2**31), (323, 4, 1, 2**31), (324, 4, 1, 134), (325, 4, 1, 64)), "has 46"),
        (replaced((32997, 3, 1, 2)), "several planes in depth"),
        (replaced((262, 3, 1, 6), (277, 3, 1, 3)), "2 by 2 pixels together"),
    ],
)
def test_what_cannot_be_is_said(entries, said, tmp_path):
    path = tmp_path / "a.tif"
    path.write_bytes(raw(entries, data=bytes(100)))
    with pytest.raises(OmnizarrError, match=said) as caught:
        omnizarr.open(path)
    assert "a.tif" in str(caught.value)


def test_pages_in_a_circle_are_an_end_that_is_named(tmp_path):
    path = tmp_path / "a.tif"
    path.write_bytes(raw(PLAIN, data=bytes(100), following=8))
    array = omnizarr.open(path)
    assert array.shape == (8, 8)
    assert any("leads back to itself" in note for note in array.store.notes)


def test_a_file_that_ends_before_its_elements_is_an_error(tmp_path):
    path = tmp_path / "a.tif"
    path.write_bytes(raw(PLAIN, data=bytes(20)))
    with pytest.raises(StoreError, match="ends before its data do"):
        omnizarr.open(path)[...]


def test_a_tile_that_inflates_to_much_more_is_an_error(tmp_path):
    packer = zlib.compressobj(9)
    bomb = b"".join(packer.compress(bytes(1 << 24)) for _ in range(16)) + packer.flush()
    for compression, data in ((8, bomb), (5, imagecodecs.lzw_encode(bytes(1 << 22))), (32773, b"\x81\0" * 10**6)):
        path = tmp_path / f"{compression}.tif"
        path.write_bytes(raw(replaced((259, 3, 1, compression), (279, 4, 1, len(data))), data=bytes(12) + data))
        array = omnizarr.open(path)
        if compression != 5:
            with pytest.raises(ChunkError):
                array[...]
        else:
            assert not array[...].any()  # what is behind the tile is not decoded


def test_a_picture_that_is_much_larger_than_its_tile_is_an_error(tmp_path):
    data = bytearray(imagecodecs.jpeg_encode(np.zeros((8, 8), "u1")))
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = b"\xff\xf0\xff\xf0"
    path = tmp_path / "a.tif"
    path.write_bytes(raw(replaced((259, 3, 1, 7), (279, 4, 1, len(data))), data=bytes(12) + bytes(data)))
    with pytest.raises(ChunkError, match="much larger than its tile"):
        omnizarr.open(path)[...]


def test_a_file_without_pages_is_broken(tmp_path):
    path = tmp_path / "a.tif"
    path.write_bytes(struct.pack("<2sHI", b"II", 42, 0) + bytes(100))
    with pytest.raises(MetadataError, match="the file has no page"):
        omnizarr.open(path)


def test_an_unsupported_file_is_refused_with_what_it_has(tmp_path):
    path = tmp_path / "a.tif"
    path.write_bytes(raw(replaced((259, 3, 1, 6)), data=bytes(100)))
    with pytest.raises(NotRepresentableError, match="compression is number 6") as caught:
        omnizarr.open(path)
    assert "tifffile" in caught.value.remedy


def fuzzed():
    """Yield files of several kinds, as bytes."""
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, values_of((40, 50), "u2"), compression="zlib", predictor=True, rowsperstrip=16)
    yield buffer.getvalue()
    buffer = io.BytesIO()
    tifffile.imwrite(
        buffer,
        values_of((2, 3, 40, 50), "u2"),
        ome=True,
        metadata={"axes": "CZYX"},
        tile=(16, 32),
        photometric="minisblack",
    )
    yield buffer.getvalue()
    buffer = io.BytesIO()
    tifffile.imwrite(
        buffer, values_of((2, 3, 40, 50), "u2"), imagej=True, metadata={"axes": "ZCYX"}, photometric="minisblack"
    )
    yield buffer.getvalue()
    buffer = io.BytesIO()
    with tifffile.TiffWriter(buffer, bigtiff=True) as file:
        file.write(values_of((64, 64, 3), "u1"), subifds=1, photometric="rgb", compression="jpeg", tile=(32, 32))
        file.write(values_of((32, 32, 3), "u1"), subfiletype=1, photometric="rgb", compression="lzw")
    yield buffer.getvalue()


@pytest.mark.parametrize("number", range(4))
def test_no_changed_byte_does_harm(number, tmp_path):
    data = list(fuzzed())[number]
    chance = random.Random(number)
    path = tmp_path / "a.tif"
    said = set()
    for _ in range(150):
        changed = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 8))):
            changed[chance.randrange(len(changed))] = chance.choice((0, 1, 255, chance.randrange(256)))
        path.write_bytes(changed if chance.random() < 0.9 else changed[: chance.randrange(len(changed))])
        try:
            for array in arrays_of(path).values():
                if array.nbytes < 1 << 24:
                    array[...]
                else:
                    array[(0,) * array.ndim]
        except OmnizarrError as error:
            said.add(type(error))
    assert said
