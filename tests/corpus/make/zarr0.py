"""Zarr v0 as zarr-python 0.4.0 writes it: the only release with metadata in JSON (that of 0.3.0 is a pickle).

python3.6 -m venv env; env/bin/pip install 'pip<21.4' 'setuptools<50' wheel
env/bin/pip install numpy==1.14.6 cython==0.28.6 setuptools_scm==1.11.1 fasteners==0.14.1
env/bin/pip install --no-deps --no-build-isolation --no-binary zarr zarr==0.4.0
env/bin/python tests/corpus/make/zarr0.py

All is Blosc (c-blosc 1.8.1, without Zstandard), of order C, in arrays of their own: there are no groups.

What the program cannot read back, or not even write, and what is not here for that:

- arrays without dimensions ("reduce() of empty sequence"); fields that are arrays themselves, fields with titles;
- objects: their addresses in the memory of the writer are compressed, and only that process can read them;
- fill values of complex numbers other than real numbers, of NumPy's own numbers, bytes: no JSON; tuples for
  structures and strings for V are written, but NumPy refuses to fill with them.

float128 works, but is a type of one machine. Errors of decompression are printed and ignored by this program.
"""

import json
import shutil
import warnings

import numpy as np
import zarr
from recorder import Case

warnings.simplefilter("ignore")
BLOSC = " ".join(part for part in zarr.blosc_version() if "$" not in part)
PROGRAM = f"zarr-python {zarr.__version__}, c-blosc {BLOSC}, numpy {np.__version__}"
GRID = np.arange(35).reshape(5, 7)
SQUARE = np.arange(48).reshape(6, 8)  # whole chunks: what is beyond the edge of others is filled with nothing known
PAGE = np.arange(1000).reshape(20, 50) % 97
NONE = np.s_[:0]


def case(name, **options):
    return Case("zarr0", name, PROGRAM, **options)


def filled(shape, dtype, fill_value):
    """Return an array as NumPy fills it: that is what zarr-python 0.4.0 does with missing chunks."""
    array = np.zeros(shape, dtype=dtype)
    if fill_value is not None:
        array.fill(fill_value)
    return array


def record(recording, path, array, expected, attributes=None):
    """Check that an array reads back as `expected`, and record what was read."""
    found = array[...]
    assert found.dtype == expected.dtype, (path, found.dtype, expected.dtype)
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes(), (path, found, expected)  # NaN, NaT and signs of zero count
    read = array.attrs.asdict()
    assert json.dumps(read, sort_keys=True) == json.dumps(attributes or {}, sort_keys=True)
    fill_value = None if array.fill_value is None else filled((), array.dtype, array.fill_value)
    recording.array(path, found, fill_value, read)


def add(recording, path, data, *, only=Ellipsis, attributes=None, **options):
    """Write `data` (only the part `only` of it), read it back by a second array object, record what was read."""
    options = {
        "chunks": tuple(3 + axis for axis in range(data.ndim)),
        "fill_value": 0,
        "synchronized": False,
        **options,
    }
    directory = str(recording.store / path)
    array = zarr.open(directory, mode="w", shape=data.shape, dtype=data.dtype, **options)
    expected = filled(data.shape, data.dtype, options["fill_value"])
    if only is not NONE:
        array[only] = data[only]
        expected[only] = data[only]
    for name, value in (attributes or {}).items():
        array.attrs[name] = value
    record(recording, path, zarr.open(directory, mode="r", synchronized=False), expected, attributes)


STRUCTURE = np.array(
    [(1, 1.5, b"ab"), (2, -2.5, b"c"), (-3, np.inf, b""), (4, np.nan, b"xyz")],
    dtype=[("a", "<i4"), ("b", "<f8"), ("c", "S3")],
)
NESTED = np.array(
    [((1, 2.5), 3), ((-1, -2.5), 4), ((7, 0.5), 255)], dtype=[("p", [("x", "<i2"), ("y", ">f4")]), ("n", "u1")]
)
TIMES = np.array(["2001-02-03", "NaT", "1969-12-31", "2262-04-11"], dtype="M8[s]")
ATTRIBUTES = {
    "title": "Größe \N{GRINNING FACE}",
    "list": [1, 2.5, None, True, "x"],
    "nested": {"a": {"b": []}},
    "big": 2**63,
}
ODD = {"nan": float("nan"), "up": float("inf"), "down": -float("inf"), "list": [float("nan"), 1], "x": {}}

with case("root_array") as c:
    add(c, "", GRID.astype("f8"), attributes={"units": "m", "valid_range": [0, 40]})

with case("numeric") as c:
    for code in "i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split():
        for order in "<>" if int(code[1:]) > 1 else "|":
            kind = np.dtype(order + code)
            low, high = (np.iinfo(kind).min, np.iinfo(kind).max) if kind.kind in "iu" else (-0.0, np.inf)
            name = {"<": "little_", ">": "big_", "|": ""}[order] + code
            add(c, name, np.array([low, high, 1, 2, 3, 4, 0], dtype=kind), chunks=(4,), fill_value=3)
    add(c, "bool", GRID % 3 == 0)

with case("other_types") as c:
    add(c, "bytes", np.array([b"a", b"bc", b"", b"def", b"\xff\x00\x01"], dtype="S3"), fill_value="")
    add(c, "text", np.array(["a", "ü€", "", "\N{SNOWMAN}", "\N{GRINNING FACE}x"], dtype="<U2"), fill_value="")
    add(c, "big_endian_text", np.array(["a", "ü€", "\N{GRINNING FACE}x"], dtype=">U2"), fill_value="")
    add(c, "wide_text", np.array(["x" * 100, "", "\N{GRINNING FACE}" * 99], dtype="<U100"), fill_value="")
    add(c, "void", np.array([b"\0\1\2\3\4", b"abcde", b"\xff" * 5, b"12345"], dtype="V5"))
    add(c, "seconds", TIMES)
    add(c, "big_endian_milliseconds", TIMES.astype(">M8[ms]"))
    add(c, "steps_of_25", TIMES.astype("i8").astype("<M8[25s]"))
    add(c, "duration", TIMES.astype("i8").astype("<m8[us]"))
    add(c, "structured", STRUCTURE, chunks=(2,), fill_value=None)
    add(c, "nested", NESTED, chunks=(3,), fill_value=None)
    add(c, "unicode_names", np.array([(1, 2)] * 3, dtype=[("größe", "u1"), ("b", "<M8[D]")]))

with case("blosc") as c:
    for cname in ("blosclz", "lz4", "lz4hc", "zlib"):
        for shuffle in (0, 1, 2):
            add(c, f"{cname}_shuffle{shuffle}", PAGE.astype("i4"), chunks=(20, 50), cname=cname, shuffle=shuffle)
            chunk = (c.store / f"{cname}_shuffle{shuffle}" / "__zdata__" / "0.0.blosc").read_bytes()
            assert not chunk[2] & 2, "not compressed"
        add(c, f"{cname}_blocks", np.arange(20000) // 1000, chunks=(20000,), cname=cname, clevel=1)
    add(c, "level0", PAGE.astype("u2"), chunks=(20, 50), clevel=0)
    add(c, "level9", PAGE.astype("u2"), chunks=(20, 50), clevel=9)

with case("blosc_snappy") as c:
    for shuffle in (0, 1, 2):
        add(c, f"shuffle{shuffle}", PAGE.astype("i4"), chunks=(20, 50), cname="snappy", shuffle=shuffle)
    add(c, "blocks", np.arange(20000) // 1000, chunks=(20000,), cname="snappy", clevel=1)

with case("fills") as c:
    reals = np.zeros(5)
    for name, code, fill_value in [
        ("nan", "f8", np.nan),
        ("minus_infinity", ">f8", -np.inf),
        ("true", "bool", True),
        ("one", "bool", 1),
        ("complex", "c16", 1.5),
        ("bytes_zero", "S3", 0),  # the default of zarr.open; NumPy fills with "0"
        ("text_zero", "<U2", 0),
        ("void_zero", "V5", 0),
        ("date", "M8[s]", "2001-01-01"),
        ("nat", "M8[s]", "NaT"),
        ("duration", "m8[s]", 5),
    ]:
        data = reals.astype("i8").astype(code) if code[0] in "Mm" else filled(5, code, 0)
        add(c, name, data, fill_value=fill_value, only=np.s_[:1])
    add(c, "structured_zero", STRUCTURE, only=np.s_[:2])
    for code in "i4 S3".split():
        add(c, f"null_{code.lower()}", SQUARE.astype(code), chunks=(3, 4), fill_value=None)

with case("layout") as c:
    add(c, "missing_chunks", GRID.astype("i4"), fill_value=-7, only=np.s_[3:, :4])
    add(c, "all_missing", GRID.astype("f4"), fill_value=2.5, only=NONE)
    add(c, "zero_length", np.empty(0), chunks=(3,), only=NONE)
    add(c, "zero_rows", np.empty((0, 5), dtype="i4"), chunks=(1, 2), only=NONE)
    add(c, "chunk_larger_than_shape", GRID.astype("i2"), chunks=(100, 11))
    add(c, "one_chunk", GRID.astype("i2"), chunks=(5, 7))
    add(c, "rows", GRID.astype("i2"), chunks=2)  # zarr-python completes chunks: [2, 7]
    add(c, "three_dimensions", np.arange(60).reshape(3, 4, 5), chunks=(2, 3, 4))
    add(c, "four_dimensions", np.arange(36, dtype="u1").reshape(2, 3, 2, 3), chunks=(1, 2, 2, 3))
    add(c, "long_1d", np.arange(50, dtype="i2"), chunks=(4,))
    add(c, "lazy", GRID.astype("i2"), lazy=True)

with case("attributes") as c:
    add(c, "none", GRID.astype("i1"))  # no __zattr__ at all
    add(c, "some", GRID.astype("i1"), attributes=ATTRIBUTES)
    add(c, "not_finite", GRID.astype("i1"), attributes=ODD)
    add(c, "locked", GRID.astype("i1"), attributes={"units": "m"}, synchronized=True)  # leaves __zattr__.lock
    assert (c.store / "locked" / "__zattr__.lock").exists()
    add(c, "deleted", GRID.astype("i1"), attributes={"units": "m"})
    array = zarr.open(str(c.store / "deleted"), mode="a", synchronized=False)
    del array.attrs["units"]
    record(c, "deleted", array, GRID.astype("i1"))

with case("tree") as c:  # what is above the arrays are plain directories
    add(c, "temperature", GRID.astype("f4"), fill_value=np.nan, attributes={"units": "K"})
    add(c, "grid/x", np.arange(7.0))
    add(c, "grid/y", np.arange(5.0))
    c.group("", members=["grid", "temperature"])
    c.group("grid", members=["x", "y"])

with case("tree_of_any_names") as c:
    add(c, "a b/ü", GRID.astype(">u2"))
    c.group("", members=["a b"])
    c.group("a b", members=["ü"])

with case("resized") as c:
    directory = str(c.store / "appended")
    array = zarr.open(directory, mode="w", shape=(5, 7), chunks=(4, 6), dtype="i4", fill_value=-1)
    array[...] = GRID
    array.append(GRID)
    array.append(np.full((10, 2), 9), axis=1)
    expected = np.hstack([np.vstack([GRID, GRID]), np.full((10, 2), 9)]).astype("i4")
    record(c, "appended", zarr.open(directory, mode="r", synchronized=False), expected)
    shutil.copytree(directory, str(c.store / "shrunk"))
    array = zarr.open(str(c.store / "shrunk"), mode="a", synchronized=False)
    array.resize(3, 3)
    record(c, "shrunk", array, expected[:3, :3])
    assert (c.store / "shrunk" / "__zdata__" / "2.1.blosc").exists()  # chunks out of bounds stay
    shutil.copytree(str(c.store / "shrunk"), str(c.store / "grown_again"))
    array = zarr.open(str(c.store / "grown_again"), mode="a", synchronized=False)
    array.resize(6, 7)
    record(c, "grown_again", zarr.open(str(c.store / "grown_again"), mode="r", synchronized=False), expected[:6, :7])
