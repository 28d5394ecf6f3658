"""Zarr v1 as zarr-python 1.0.0 and 1.1.0 write it, and 1.0.0b4, which writes `"compression": null`.

python3.6 -m venv env; env/bin/pip install 'pip<21.4' 'setuptools<50' wheel
env/bin/pip install numpy==1.14.6 cython==0.28.6 setuptools_scm==1.11.1 fasteners==0.14.1 zict==0.1.0
env/bin/pip install --no-deps --no-build-isolation --no-binary zarr zarr==1.1.0
env/bin/python tests/corpus/make/zarr1.py

One environment for each of 1.1.0, 1.0.0 and 1.0.0b4. A case whose name ends in a version is what that release writes
differently; all others are by 1.1.0, and 1.0.0 writes the same bytes, but for those of Blosc: 1.0.0 has c-blosc 1.9.0
and takes blosclz by default, 1.1.0 has a 1.10.0.dev with Zstandard 0.7.4 and takes lz4. Blosc works with threads, so
that the blocks of a chunk are in another order in every run.

What the program cannot read back, or not even write, and what is not here for that:

- arrays of length zero in some dimension can be made, but not read ("index out of bounds"); so can arrays without
  dimensions, which can be read as long as they have no chunk: writing one fails, as its key would be the empty string;
- datetime64 and timedelta64 with Blosc ("cannot include dtype 'M' in a buffer"), Unicode names of fields with Blosc;
- fields that are arrays themselves, and fields with titles: `meta` is written, never to be read again;
- objects: zlib and others fail to read them, Blosc "reads" the addresses of objects in the memory of the writer;
- fill values of complex numbers other than real numbers, of NumPy's own numbers (float64 is Python's), and bytes:
  no JSON; tuples for structures and strings for V are written, but NumPy refuses to fill with them;
- LZMA without headers (format 3) needs filters, and formats 2 and 3 have no check.

float128 works, but is a type of one machine.
"""

import contextlib
import json
import lzma
import shutil
import warnings

import numpy as np
import zarr
from recorder import Case

warnings.simplefilter("ignore")
BLOSC = " ".join(part for part in zarr.blosc.version() if "$" not in part)
PROGRAM = f"zarr-python {zarr.__version__}, c-blosc {BLOSC}, numpy {np.__version__}"
GRID = np.arange(35).reshape(5, 7)
SQUARE = np.arange(48).reshape(6, 8)  # whole chunks: what is beyond the edge of others is filled with nothing known
PAGE = np.arange(1000).reshape(20, 50) % 97
NONE = np.s_[:0]


def case(name, **options):
    return Case("zarr1", name, PROGRAM, **options)


def filled(shape, dtype, fill_value):
    """Return an array as NumPy fills it: that is what zarr-python 1.x does with missing chunks."""
    array = np.zeros(shape, dtype=dtype)
    if fill_value is not None:
        array.fill(fill_value)
    return array


def record(recording, path, array, expected, attributes=None):
    """Check that an array reads back as `expected`, and record what was read."""
    found = np.asarray(array[...])
    assert found.dtype == expected.dtype, (path, found.dtype, expected.dtype)
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes(), (path, found, expected)  # NaN, NaT and signs of zero count
    read = array.attrs.asdict()
    assert json.dumps(read, sort_keys=True) == json.dumps(attributes or {}, sort_keys=True)
    fill_value = None if array.fill_value is None else filled((), array.dtype, array.fill_value)
    recording.array(path, found, fill_value, read)


def chunks_of(shape):
    return tuple(min(length, 2 + axis) if len(shape) > 2 else 3 + axis for axis, length in enumerate(shape))


def add(recording, path, data, *, only=Ellipsis, attributes=None, **options):
    """Write `data` (only the part `only` of it), read it back by a second array object, record what was read."""
    data = np.asarray(data)
    options = {"chunks": chunks_of(data.shape), "compression": "none", "fill_value": 0, **options}
    directory = str(recording.store / path)
    array = zarr.open(directory, mode="w", shape=data.shape, dtype=data.dtype, **options)
    expected = filled(data.shape, data.dtype, options["fill_value"])
    if only is not NONE:
        array[only] = data[only]
        expected[only] = data[only]
    if attributes:
        array.attrs.update(attributes)
    record(recording, path, zarr.open(directory, mode="r"), expected, attributes)


def blosc(cname, clevel=5, shuffle=1):
    return {"compression": "blosc", "compression_opts": {"cname": cname, "clevel": clevel, "shuffle": shuffle}}


def blosc_case(recording, names):
    """Write Blosc chunks that are really compressed, of one block and of many."""
    for cname in names:
        for shuffle in (0, 1, 2):
            add(recording, f"{cname}_shuffle{shuffle}", PAGE.astype("i4"), chunks=(20, 50), **blosc(cname, 5, shuffle))
            chunk = (recording.store / f"{cname}_shuffle{shuffle}" / "0.0").read_bytes()
            assert not chunk[2] & 2, "not compressed"
        add(recording, f"{cname}_blocks", np.arange(20000) // 1000, chunks=(20000,), **blosc(cname, 1))
        if zarr.__version__ == "1.1.0":
            add(recording, f"{cname}_level0", PAGE.astype("u2"), chunks=(20, 50), **blosc(cname, 0))
            add(recording, f"{cname}_level9", PAGE.astype("u2"), chunks=(20, 50), **blosc(cname, 9))
            add(recording, f"{cname}_bits", PAGE.astype(">u2"), chunks=(20, 50), **blosc(cname, 5, 2))


def edit(recording, path, **members):
    """Change `meta` by hand."""
    file = recording.store / path / "meta"
    document = json.loads(file.read_text())
    document.update(members)
    file.write_text(json.dumps(document, indent=4, sort_keys=True))


STRUCTURE = np.array(
    [(1, 1.5, b"ab"), (2, -2.5, b"c"), (-3, np.inf, b""), (4, np.nan, b"xyz")],
    dtype=[("a", "<i4"), ("b", "<f8"), ("c", "S3")],
)
NESTED = np.array(
    [((1, 2.5), 3), ((-1, -2.5), 4), ((7, 0.5), 255)], dtype=[("p", [("x", "<i2"), ("y", ">f4")]), ("n", "u1")]
)
DEEP = np.array(
    [(((1, True), 2), 3)] * 4, dtype=[("p", [("q", [("r", "<u2"), ("s", "?")]), ("t", ">i8")]), ("u", "i1")]
)
BYTES = np.array([b"a", b"bc", b"", b"def", b"\xff\x00\x01"], dtype="S3")
TEXT = np.array(["a", "ü€", "", "\N{SNOWMAN}", "\N{GRINNING FACE}x"], dtype="<U2")
VOID = np.array([b"\0\1\2\3\4", b"abcde", b"\xff" * 5, b"12345"], dtype="V5")
TIMES = np.array(["2001-02-03", "NaT", "1969-12-31", "2262-04-11"], dtype="M8[s]")
ATTRIBUTES = {
    "title": "Größe \N{GRINNING FACE}",
    "list": [1, 2.5, None, True, "x"],
    "nested": {"a": {"b": []}},
    "big": 2**63,
    "empty": "",
}
ODD = {"nan": float("nan"), "up": float("inf"), "down": -float("inf"), "list": [float("nan"), 1], "x": {}}
COMPRESSIONS = {
    "none": {"compression": "none"},
    "zlib": {"compression": "zlib"},
    "bz2": {"compression": "bz2"},
    "lzma": {"compression": "lzma"},
    "blosc": {"compression": "blosc"},
}


def every_release(version):
    """Write what differs from release to release."""
    with case(f"root_array_{version}") as c:
        attributes = {"units": "m", "valid_range": [0, 40]}
        add(c, "", GRID.astype("f8"), compression="default", attributes=attributes)
    with case(f"blosc_{version}") as c:
        blosc_case(c, ["blosclz", "lz4", "lz4hc", "zlib"])
    with case(f"blosc_snappy_{version}") as c:
        blosc_case(c, ["snappy"])


def types_and_compressors():
    """Write what all releases write in the same way, and Zstandard."""
    with case("blosc_zstd_1_1") as c:  # Zstandard 0.7 frames
        blosc_case(c, ["zstd"])

    with case("numeric") as c:
        for code in "i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split():
            for order in "<>" if int(code[1:]) > 1 else "|":
                kind = np.dtype(order + code)
                low, high = (np.iinfo(kind).min, np.iinfo(kind).max) if kind.kind in "iu" else (-0.0, np.inf)
                name = {"<": "little_", ">": "big_", "|": ""}[order] + code
                data = np.array([low, high, 1, 2, 3, 4, 0], dtype=kind)
                add(c, name, data, chunks=(4,), compression="zlib" if order == ">" else "blosc", fill_value=3)
        add(c, "bool_blosc", GRID % 3 == 0, compression="blosc")
        add(c, "bool_zlib", GRID % 3 == 0, compression="zlib", fill_value=True)

    with case("fixed") as c:
        wide = np.array(["x" * 100, "", "\N{GRINNING FACE}" * 99], dtype="<U100")
        for name in ("zlib", "blosc"):
            options = COMPRESSIONS[name]
            add(c, f"bytes_{name}", BYTES, fill_value="", **options)
            add(c, f"text_{name}", TEXT, fill_value="", **options)
            add(c, f"big_endian_text_{name}", TEXT.astype(">U2"), fill_value="", **options)
            add(c, f"void_{name}", VOID, **options)
            add(c, f"wide_{name}", wide, fill_value="", chunks=(3,), **options)  # elements of more than 255 bytes

    with case("datetime") as c:
        for name in ("zlib", "bz2", "lzma"):
            add(c, f"seconds_{name}", TIMES, **COMPRESSIONS[name])
        for code in "<M8[D] >M8[ms] <M8[Y] <M8[25s] <m8[us] >m8[h]".split():
            name = code.translate(str.maketrans({"<": "little_", ">": "big_", "[": "_", "]": ""}))
            add(c, name, TIMES.astype("M8[s]").astype("i8").astype(code), compression="zlib")
        for name, fill_value in {"number": 1, "nat": "NaT", "date": "2001-01-01"}.items():
            add(c, f"fill_{name}", TIMES, fill_value=fill_value, compression="zlib", only=NONE)
        add(c, "fill_duration", TIMES.astype("i8").astype("m8[s]"), fill_value=5, only=NONE)

    with case("structured") as c:
        for name in ("zlib", "blosc"):
            add(c, f"flat_{name}", STRUCTURE, chunks=(2,), fill_value=None, **COMPRESSIONS[name])
            add(c, f"nested_{name}", NESTED, chunks=(3,), fill_value=None, **COMPRESSIONS[name])
            add(c, f"deep_{name}", DEEP, chunks=(2,), fill_value=None, **COMPRESSIONS[name])
        add(c, "fill_zero", STRUCTURE, chunks=(3,), only=np.s_[:2])  # the default; a string is filled with "0"
        add(c, "fill_zero_numbers", NESTED, chunks=(2,), only=np.s_[:1], compression="blosc")
        padded = np.dtype({"names": ["a", "b"], "formats": ["u1", "<i4"]}, align=True)  # its padding becomes a field
        array = zarr.open(
            str(c.store / "padded"), mode="w", shape=4, chunks=2, dtype=padded, fill_value=None, compression="zlib"
        )
        data = np.array([(1, b"xyz", 2), (3, b"", 4), (5, b"abc", -6), (7, b"\0\0c", 8)], dtype=array.dtype)
        array[...] = data
        record(c, "padded", array, data)
        add(c, "unicode_names", np.array([(1, 2)] * 3, dtype=[("größe", "u1"), ("b", "<M8[D]")]), compression="zlib")

    with case("compressors") as c:
        page = PAGE.astype("i4")
        lzma2, delta = {"id": lzma.FILTER_LZMA2, "preset": 1}, {"id": lzma.FILTER_DELTA, "dist": 4}
        lzma1 = {"id": lzma.FILTER_LZMA1, "preset": 2}
        for name, compression, options in [
            ("none", "none", None),
            ("zlib_default", "zlib", None),
            ("zlib_0", "zlib", 0),
            ("zlib_9", "zlib", 9),
            ("gzip_alias", "gzip", 3),  # written down as zlib
            ("bz2_default", "bz2", None),
            ("bz2_9", "bz2", 9),
            ("lzma_default", "lzma", None),
            ("lzma_xz_crc32", "lzma", {"check": lzma.CHECK_CRC32, "preset": 0}),
            ("lzma_xz_crc64", "lzma", {"check": lzma.CHECK_CRC64, "preset": 9}),
            ("lzma_xz_sha256", "lzma", {"check": lzma.CHECK_SHA256}),
            ("lzma_xz_delta", "lzma", {"filters": [delta, lzma2]}),
            ("lzma_xz_x86", "lzma", {"filters": [{"id": lzma.FILTER_X86}, lzma2]}),
            ("lzma_alone", "lzma", {"format": lzma.FORMAT_ALONE}),
            ("lzma_alone_filters", "lzma", {"format": lzma.FORMAT_ALONE, "filters": [lzma1]}),
            ("lzma_raw", "lzma", {"format": lzma.FORMAT_RAW, "filters": [lzma2]}),
            ("lzma_raw_delta", "lzma", {"format": lzma.FORMAT_RAW, "filters": [delta, lzma2]}),
            ("lzma_raw_lzma1", "lzma", {"format": lzma.FORMAT_RAW, "filters": [delta, lzma1]}),
        ]:
            add(c, name, page, chunks=(20, 50), compression=compression, compression_opts=options)

    with case("edited") as c:  # names that the program reads, but never writes
        for path, wrote, name in [("gzip", "zlib", "gzip"), ("null", "none", None)]:
            add(c, path, GRID.astype("i4"), compression=wrote)
            edit(c, path, compression=name)
            record(c, path, zarr.open(str(c.store / path), mode="r"), GRID.astype("i4"))
        add(c, "more_members", GRID.astype("i4"), compression="zlib")
        edit(c, "more_members", comment="must not change anything")
        record(c, "more_members", zarr.open(str(c.store / "more_members"), mode="r"), GRID.astype("i4"))


def layouts_and_fills():
    """Write what all releases write in the same way, too."""
    with case("order") as c:
        cube = np.arange(60, dtype=">u2").reshape(3, 4, 5)
        for name, options in COMPRESSIONS.items():
            add(c, f"f_{name}", SQUARE.astype("f4"), order="F", chunks=(3, 8), **options)
            add(c, f"f_cube_{name}", cube, order="F", chunks=(2, 3, 4), **options)
            add(c, f"f_partly_{name}", GRID.astype("i4"), order="F", only=np.s_[2:, :4], fill_value=-1, **options)
        add(
            c,
            "f_structured_blosc",
            np.resize(NESTED, (4, 3)),
            order="F",
            chunks=(2, 3),
            fill_value=None,
            **blosc("zlib"),
        )
        add(
            c,
            "f_structured_zlib",
            np.resize(NESTED, (4, 3)),
            order="F",
            chunks=(2, 3),
            fill_value=None,
            compression="zlib",
        )

    with case("fills") as c:
        reals = np.zeros(5)
        for name, code, fill_value in [
            ("nan", "f8", np.nan),
            ("infinity", "f4", np.inf),
            ("minus_infinity", ">f8", -np.inf),
            ("negative_zero", "f8", -0.0),
            ("tenth_f2", "f2", 0.1),
            ("tenth_f4", "f4", 0.1),
            ("tenth_f8", "f8", 0.1),
            ("subnormal", "f8", 1e-320),
            ("whole_number_f8", "f8", 7),
            ("nan_string", "f8", "NaN"),
            ("float_i4", "i4", 0.0),
            ("lowest_i8", "i8", -(2**63)),
            ("highest_u8", "u8", 2**64 - 1),
            ("true", "bool", True),
            ("one", "bool", 1),
            ("zero", "bool", 0),
            ("complex", "c16", 1.5),
            ("complex_nan", "c8", np.nan),
            ("bytes_zero", "S3", 0),  # the default of zarr.open; NumPy fills with "0"
            ("bytes_text", "S3", "ab"),
            ("bytes_too_long", "S3", "abcdef"),
            ("text_zero", "<U2", 0),
            ("text", "<U2", "ü"),
            ("void_zero", "V5", 0),
        ]:
            data = VOID if code == "V5" else reals.astype(code)
            add(c, name, data, chunks=(3,), fill_value=fill_value, only=np.s_[:1], compression="zlib")
        for code in "i4 f8 bool c8 S3 <U2".split():
            name = code.replace("<", "").lower()
            add(c, f"null_{name}", SQUARE.astype(code), chunks=(3, 4), fill_value=None, compression="zlib")

    with case("layout") as c:
        add(c, "missing_chunks", GRID.astype("i4"), fill_value=-7, only=np.s_[3:, :4])
        add(c, "all_missing", GRID.astype("f4"), fill_value=2.5, only=NONE)
        add(c, "edges", GRID.astype("i2"), chunks=(2, 3), compression="blosc")
        add(c, "chunk_larger_than_shape", GRID.astype("i2"), chunks=(100, 11), compression="zlib")
        add(c, "one_chunk", GRID.astype("i2"), chunks=(5, 7))
        add(c, "rows", GRID.astype("i2"), chunks=2)  # zarr-python completes chunks: [2, 7]
        add(c, "three_dimensions", np.arange(60).reshape(3, 4, 5), compression="blosc")
        add(c, "four_dimensions", np.arange(36, dtype="u1").reshape(2, 3, 2, 3), chunks=(1, 2, 2, 3))
        add(c, "long_1d", np.arange(50, dtype="i2"), chunks=(4,))
        add(c, "scalar_missing", np.array(5, dtype="i4"), chunks=(), fill_value=5, only=NONE)

    with case("attributes") as c:
        add(c, "none", GRID.astype("i1"))
        add(c, "some", GRID.astype("i1"), attributes=ATTRIBUTES)
        add(c, "not_finite", GRID.astype("i1"), attributes=ODD)

    with case("tree") as c:  # zarr-python 1.x has no groups: what is above the arrays are plain directories
        add(c, "temperature", GRID.astype("f4"), compression="blosc", fill_value=np.nan, attributes={"units": "K"})
        add(c, "grid/x", np.arange(7.0), compression="zlib")
        add(c, "grid/y", np.arange(5.0), compression="zlib")
        c.group("", members=["grid", "temperature"])
        c.group("grid", members=["x", "y"])

    with case("tree_of_any_names") as c:
        add(c, "a b/ü", GRID.astype(">u2"), compression="bz2")
        c.group("", members=["a b"])
        c.group("a b", members=["ü"])

    with case("resized") as c:
        for path, options in {
            "zlib": {"compression": "zlib"},
            "blosc_f": {"compression": "blosc", "order": "F"},
        }.items():
            directory = str(c.store / path)
            array = zarr.open(directory, mode="w", shape=(5, 7), chunks=(4, 6), dtype="i4", fill_value=-1, **options)
            array[...] = GRID
            array.append(GRID)
            array.append(np.full((10, 2), 9), axis=1)
            expected = np.hstack([np.vstack([GRID, GRID]), np.full((10, 2), 9)]).astype("i4")
            record(c, path, zarr.open(directory, mode="r"), expected)
        shutil.copytree(str(c.store / "zlib"), str(c.store / "shrunk"))
        array = zarr.open(str(c.store / "shrunk"), mode="a")
        array.resize(3, 3)
        record(c, "shrunk", array, expected[:3, :3])
        shutil.copytree(str(c.store / "shrunk"), str(c.store / "grown_again"))
        array = zarr.open(str(c.store / "grown_again"), mode="a")
        array.resize(6, 7)
        old = filled((6, 7), "i4", -1)
        old[:4, :6] = expected[:4, :6]  # the chunk that was kept still holds all it held
        record(c, "grown_again", array, old)
        array = zarr.open(str(c.store / "from_nothing"), mode="w", shape=0, chunks=4, dtype="f4", compression="none")
        array.append(np.arange(6.0))
        record(c, "from_nothing", array, np.arange(6, dtype="f4"))

    with case("synchronizer") as c:  # the manual of the time keeps the locks in the directory of the array itself
        directory = str(c.store / "x")
        locks = zarr.ProcessSynchronizer(directory)
        array = zarr.open(
            directory, mode="w", shape=(5, 7), chunks=(3, 4), dtype="i4", synchronizer=locks, compression="zlib"
        )
        array[...] = GRID
        array.attrs["units"] = "m"
        assert (c.store / "x" / "0.0.lock").exists()
        record(c, "x", zarr.open(directory, mode="r"), GRID.astype("i4"), {"units": "m"})

    with case("interrupted") as c:  # a write that failed leaves its temporary file
        add(c, "x", GRID.astype("i4"), compression="zlib")
        store = zarr.DirectoryStore(str(c.store / "x"))
        with contextlib.suppress(TypeError):
            store["1.1"] = "no bytes"
        left = [name for name in store if name.endswith(".partial")]
        assert len(left) == 1
        (c.store / "x" / left[0]).replace(c.store / "x" / "1.1.abcdefgh.partial")  # the same name in every run
        record(c, "x", zarr.open(str(c.store / "x"), mode="r"), GRID.astype("i4"))

    with case("zip", store="store.zip") as c:  # the manual of the time: zict.Zip
        import zict

        store = zict.Zip(str(c.store), mode="w")
        array = zarr.create((5, 7), chunks=(3, 4), dtype="i4", fill_value=0, compression="zlib", store=store)
        array[...] = GRID
        array[0, 0] = 7
        array.attrs["units"] = "m"  # a zip archive keeps the old entries: these names are there twice
        store.close()
        expected = GRID.astype("i4")
        expected[0, 0] = 7
        record(c, "", zarr.Array(zict.Zip(str(c.store), mode="r"), readonly=True), expected, {"units": "m"})


if zarr.__version__ == "1.0.0b4":
    with case("null_compression_1_0b4") as c:
        for order in "CF":
            add(c, order.lower(), GRID.astype("i4"), compression=None, order=order)
else:
    every_release("_".join(zarr.__version__.split(".")[:2]))
    if zarr.__version__ == "1.1.0":
        types_and_compressors()
        layouts_and_fills()
