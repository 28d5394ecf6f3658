"""The draft of Zarr v3 of October 2020 as GDAL 3.4 to 3.7 writes it with FORMAT=ZARR_V3.

apt-get install gdal-bin python3-gdal    # Debian 12: GDAL 3.6.2
/usr/bin/python3 tests/corpus/make/draft2020_gdal.py

GDAL shows some attributes as properties of an array (`_CRS`, its unit), others not at all (`_ARRAY_DIMENSIONS`):
they are expected as they stand in the documents.
"""

import json

import numpy as np
from osgeo import gdal, osr
from recorder import Case

gdal.UseExceptions()
PROGRAM = f"GDAL {gdal.__version__}, numpy {np.__version__}"
DRIVER = gdal.GetDriverByName("Zarr")
GRID = np.arange(35).reshape(5, 7)
RNG = np.random.default_rng(362)
BLOCKS = "BLOCKSIZE=3,4"
TYPES = {
    "u1": gdal.GDT_Byte,
    "u2": gdal.GDT_UInt16,
    "i2": gdal.GDT_Int16,
    "u4": gdal.GDT_UInt32,
    "i4": gdal.GDT_Int32,
    "u8": gdal.GDT_UInt64,
    "i8": gdal.GDT_Int64,
    "f4": gdal.GDT_Float32,
    "f8": gdal.GDT_Float64,
}
WHOLE = ([0, 0], [5, 7])


def case(name, program=PROGRAM):
    recording = Case("draft_gdal", name, program)
    recording.document["script"] = "tests/corpus/make/draft2020_gdal.py"
    return recording


class Hierarchy:
    """What is written to one store; documents come into being when the last reference to it is gone."""

    def __init__(self, path):
        self.dataset = DRIVER.CreateMultiDimensional(str(path), [], ["FORMAT=ZARR_V3"])
        self.root = self.dataset.GetRootGroup()
        self.dimensions = {}
        self.given = {}

    def axes(self, shape):
        for size in shape:
            if size not in self.dimensions:
                self.dimensions[size] = self.root.CreateDimension(f"n{size}", "", "", size)
        return [self.dimensions[size] for size in shape]

    def add(self, path, data, *options, region=None, fill=None, group=None):
        """Write `data` (only the part `region`: start and count along each dimension)."""
        data = np.asarray(data)
        name = path.rpartition("/")[2]
        kind = gdal.ExtendedDataType.Create(TYPES[data.dtype.str[1:]])
        array = (group or self.root).CreateMDArray(name, self.axes(data.shape), kind, list(options))
        if fill is not None:
            array.SetNoDataValueRaw(data.dtype.type(fill).tobytes())
        expected = np.full_like(data, 0 if fill is None else fill)
        if region is None:
            array.Write(np.ascontiguousarray(data).tobytes())
            expected = data
        elif region:
            start, count = region
            part = tuple(slice(first, first + number) for first, number in zip(start, count, strict=True))
            array.Write(np.ascontiguousarray(data[part]).tobytes(), start, count)
            expected[part] = data[part]
        self.given[path] = expected, None if fill is None else data.dtype.type(fill)
        return array


def text_attribute(node, name, value):
    node.CreateAttribute(name, [], gdal.ExtendedDataType.CreateString()).Write(value)


def document(recording, path, kind):
    return json.loads((recording.store / f"meta/root/{path}.{kind}.json".replace("root/.", "root.")).read_text())


def record(recording, given):
    """Read everything back with GDAL and expect it."""
    root = gdal.OpenEx(str(recording.store), gdal.OF_MULTIDIM_RASTER).GetRootGroup()
    for path, (values, fill_value) in given.items():
        array = root.OpenMDArrayFromFullname(f"/{path}")
        assert array is not None, path
        found = np.frombuffer(array.Read(), dtype=values.dtype).reshape(values.shape)
        np.testing.assert_array_equal(found, values)
        raw = array.GetNoDataValueAsRaw()
        assert (raw is None) == (fill_value is None)
        if raw is not None:
            assert bytes(raw) == fill_value.tobytes()
        expect(recording, path, found, fill_value)


def expect(recording, path, values, fill_value):
    recording.array(path, values, fill_value, document(recording, path, "array")["attributes"])


def groups(recording, *paths):
    root = gdal.OpenEx(str(recording.store), gdal.OF_MULTIDIM_RASTER).GetRootGroup()
    for path in paths:
        group = root.OpenGroupFromFullname(f"/{path}") if path else root
        members = [*(group.GetMDArrayNames() or []), *(group.GetGroupNames() or [])]
        recording.group(path, document(recording, path, "group")["attributes"], members)


def numeric(c):
    hierarchy = Hierarchy(c.store)
    for code in TYPES:
        data = np.array([0, 1, 2, 3, 4, 5, 6], dtype=code)
        if code[0] == "f":
            data[:3] = np.nan, -np.inf, -0.0
        else:
            data[:2] = np.iinfo(code).min, np.iinfo(code).max
        hierarchy.add(code, data, "BLOCKSIZE=4")
        hierarchy.add(f"{code}_fill", data, "BLOCKSIZE=4", fill=3, region=([0], [2]))
    return hierarchy.given


def fills(c):
    hierarchy = Hierarchy(c.store)
    for name, code, fill_value in [
        ("nan_f4", "f4", np.nan),
        ("nan_f8", "f8", np.nan),
        ("infinity_f4", "f4", np.inf),
        ("infinity_f8", "f8", np.inf),
        ("minus_infinity_f4", "f4", -np.inf),
        ("minus_infinity_f8", "f8", -np.inf),
        ("negative_zero", "f8", -0.0),
        ("third_f4", "f4", 1 / 3),
        ("third_f8", "f8", 1 / 3),
        ("largest_f4", "f4", np.finfo("f4").max),
        ("smallest_f8", "f8", 5e-324),
        ("i8_lowest", "i8", -(2**63)),
        ("i8_beyond_2_53", "i8", -(2**63) + 1),
        ("u8_highest", "u8", 2**64 - 1),
        ("u8_beyond_2_53", "u8", 2**53 + 1),
        ("u1_highest", "u1", 255),
        ("i2_lowest", "i2", -32768),
    ]:
        hierarchy.add(name, np.zeros(5, dtype=code), "BLOCKSIZE=3", fill=fill_value, region=())
    return hierarchy.given


def float_for_integer(c):
    """Write a fill value that becomes a number with an exponent, because it is beyond those of int64."""
    hierarchy = Hierarchy(c.store)
    hierarchy.add("u8", np.zeros(5, dtype="u8"), "BLOCKSIZE=3", fill=2**63, region=())
    return hierarchy.given


def layout(c):
    hierarchy = Hierarchy(c.store)
    hierarchy.add("blocks", GRID.astype("i4"), BLOCKS)
    hierarchy.add("one_block", GRID.astype("i4"))
    hierarchy.add("missing_chunks", GRID.astype("i4"), BLOCKS, fill=-7, region=([3, 0], [2, 4]))
    hierarchy.add("all_missing", GRID.astype("f4"), BLOCKS, fill=2.5, region=())
    hierarchy.add("nothing_written_no_fill", np.zeros((5, 7), dtype="f4"), BLOCKS, region=())
    hierarchy.add("order_f", GRID.astype("i4"), BLOCKS, "CHUNK_MEMORY_LAYOUT=F")
    cube = np.arange(60, dtype="u2").reshape(3, 4, 5)
    hierarchy.add("order_f_3d", cube, "BLOCKSIZE=2,3,4", "CHUNK_MEMORY_LAYOUT=F")
    hierarchy.add("four_dimensions", np.arange(36, dtype="u1").reshape(2, 3, 2, 3), "BLOCKSIZE=1,2,2,3")
    hierarchy.add("long_1d", np.arange(50, dtype="i2"), "BLOCKSIZE=7")
    return hierarchy.given


def scalars(c):
    hierarchy = Hierarchy(c.store)
    for code in TYPES:
        hierarchy.add(code, np.array(42, dtype=code))
    hierarchy.add("missing", np.array(7, dtype="i4"), fill=7, region=())
    return hierarchy.given


def compressors(c):
    hierarchy = Hierarchy(c.store)
    data = RNG.integers(0, 1000, (5, 7)).astype("i4")
    for name, options in {
        "zlib": ["COMPRESS=ZLIB"],
        "zlib_9": ["COMPRESS=ZLIB", "ZLIB_LEVEL=9"],
        "gzip": ["COMPRESS=GZIP", "GZIP_LEVEL=1"],
        "lzma": ["COMPRESS=LZMA"],
        "lzma_delta": ["COMPRESS=LZMA", "LZMA_PRESET=1", "LZMA_DELTA=4"],
        "zstd": ["COMPRESS=ZSTD"],
        "zstd_1": ["COMPRESS=ZSTD", "ZSTD_LEVEL=1"],
        "lz4": ["COMPRESS=LZ4"],
        "lz4_fast": ["COMPRESS=LZ4", "LZ4_ACCELERATION=10"],
        "order_f": ["COMPRESS=ZLIB", "CHUNK_MEMORY_LAYOUT=F"],
        "blosc_blocksize": ["COMPRESS=BLOSC", "BLOSC_BLOCKSIZE=64"],
    }.items():
        hierarchy.add(name, data, "BLOCKSIZE=5,4", *options)
    for cname in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]:
        for shuffle in ["NONE", "BYTE", "BIT"] if cname == "zstd" else ["BYTE"]:
            options = ["COMPRESS=BLOSC", f"BLOSC_CNAME={cname}", f"BLOSC_SHUFFLE={shuffle}"]
            hierarchy.add(f"blosc_{cname}_{shuffle.lower()}", data, "BLOCKSIZE=5,7", *options)
    return hierarchy.given


def tree(c):
    hierarchy = Hierarchy(c.store)
    root = hierarchy.root
    text_attribute(root, "title", 'Größe a/b "q" \\ \N{GRINNING FACE}')
    double = gdal.ExtendedDataType.Create(gdal.GDT_Float64)
    root.CreateAttribute("numbers", [3], double).Write([1.5, -0.1, 1e300])
    root.CreateAttribute("third", [], double).Write(1 / 3)
    root.CreateAttribute("odd", [3], double).Write([float("nan"), float("inf"), -float("inf")])
    root.CreateAttribute("integer", [], gdal.ExtendedDataType.Create(gdal.GDT_Int32)).Write(7)
    root.CreateAttribute("strings", [2], gdal.ExtendedDataType.CreateString()).Write(["x", "y"])
    inner = root.CreateGroup("a").CreateGroup("b.c").CreateGroup("d_e-f")
    text_attribute(inner, "depth", "three")
    array = hierarchy.add("a/b.c/d_e-f/x", GRID.astype("i2"), BLOCKS, group=inner)
    text_attribute(array, "note", "hi")
    root.CreateGroup("empty")
    array = hierarchy.add("located", GRID.astype("f4"), BLOCKS, fill=-9999)
    system = osr.SpatialReference()
    system.ImportFromEPSG(4326)
    array.SetSpatialRef(system)
    array.SetUnit("m")
    array.SetOffset(1.5)
    array.SetScale(0.1)
    return hierarchy.given


def dimensions(c):
    """Write arrays along dimensions that have coordinates: GDAL names the dimensions of these in the document."""
    hierarchy = Hierarchy(c.store)
    root = hierarchy.root
    for name, size in {"lat": 5, "lon": 7}.items():
        hierarchy.dimensions[size] = root.CreateDimension(name, "", "", size)
        hierarchy.dimensions[size].SetIndexingVariable(hierarchy.add(name, np.linspace(-1, 1, size).astype("f4")))
    hierarchy.add("temperature", GRID.astype("i2"), BLOCKS, "COMPRESS=ZSTD", fill=-1)
    hierarchy.add("mixed", np.arange(14, dtype="u1").reshape(7, 2), "BLOCKSIZE=3,1")
    return hierarchy.given


def raster(c):
    """Write a raster in the classic way: one array for its band, and arrays X and Y."""
    source = gdal.GetDriverByName("MEM").Create("", 7, 5, 1, gdal.GDT_Int16)
    source.SetGeoTransform([440720, 60, 0, 3751320, 0, -60])
    system = osr.SpatialReference()
    system.ImportFromEPSG(26711)
    source.SetSpatialRef(system)
    source.GetRasterBand(1).WriteRaster(0, 0, 7, 5, GRID.astype("i2").tobytes())
    source.GetRasterBand(1).SetNoDataValue(-1)
    options = ["FORMAT=ZARR_V3", "ARRAY_NAME=band", "COMPRESS=GZIP", "BLOCKSIZE=3,4"]
    DRIVER.CreateCopy(str(c.store), source, options=options)
    x, y = 440720 + 60 * (np.arange(7) + 0.5), 3751320 - 60 * (np.arange(5) + 0.5)
    return {"band": (GRID.astype("i2"), np.int16(-1)), "X": (x, None), "Y": (y, None)}


for write, excuse in [(scalars, "it crashes when it reads them"), (float_for_integer, "it reads one less")]:
    with case(write.__name__, f"{PROGRAM}; the values are what it was given, {excuse}") as c:
        for path, given in write(c).items():
            expect(c, path, *given)

for write in [numeric, fills, layout, compressors, tree, dimensions, raster]:
    with case(write.__name__) as c:
        record(c, write(c))
        if write is tree:
            groups(c, "", "a", "a/b.c", "a/b.c/d_e-f", "empty")
