"""Small programs that mean the same with ``import zarr`` and with ``import omnizarr as zarr``.

A program takes the module and returns what a user sees. Where the two differ on purpose, the row says which words of
`docs/differences.md` tell so, and then they have to differ.
"""

import json
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import omnizarr

zarr = pytest.importorskip("zarr", reason="programs are run with zarr-python beside omnizarr")

VERSION = tuple(map(int, zarr.__version__.split(".")[:2]))
DIFFERENCES = (Path(__file__).parents[2] / "docs" / "differences.md").read_text(encoding="utf-8")
VALUES = np.arange(70).reshape(7, 10)
RECORDS = np.array([(1, 2.5), (3, 4.5)], dtype=[("x", "<i4"), ("y", "<f8")])


class Program(NamedTuple):
    name: str
    run: Callable[[Any], Any]
    differs: str | None = None
    """Words of docs/differences.md; None: the same. With "before 3.4" they may do the same since then."""


# Members that may as well not be there.
SILENT = [
    ("storage_transformers", []),
    ("configuration", {}),
    *[(f"{path}.zattrs", {}) for path in ("", "a/", "g/", "g/b/", "g/h/")],
    ("consolidated_metadata", {"kind": "inline", "metadata": {}, "must_understand": False}),
]


# -- what is compared -----------------------------------------------------------------


def plain(value: Any) -> Any:
    """Return what a user sees of a value, so that both libraries' kinds of it can be compared."""
    if isinstance(value, np.ndarray | np.generic):
        return ("values", str(value.dtype), value.shape, np.asarray(value).astype(object).tolist())
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if callable(getattr(value, "to_dict", None)):
        return plain(value.to_dict())
    return value


def outcome(program: Program, module: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(program.run(module))
        except Exception as error:  # noqa: BLE001 - errors are compared as well
            return error


def builtin_bases(error: BaseException) -> set[type]:
    """Return the built-in classes that a user may catch an error as."""
    return {kind for kind in type(error).__mro__ if kind.__module__ == "builtins"}


def are_same(theirs: Any, ours: Any) -> bool:
    """Whether both are the same; an error of ours may be of more built-in classes than theirs, not of fewer."""
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        return isinstance(theirs, Exception) and isinstance(ours, Exception) and is_caught_as(ours, theirs)
    return repr(theirs) == repr(ours)  # NaN is NaN there, and 1 is not True


def is_caught_as(ours: Exception, theirs: Exception) -> bool:
    return builtin_bases(theirs) <= builtin_bases(ours)


def documents(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the documents in a store, parsed."""
    found = {}
    for key in sorted(values):
        if key.rpartition("/")[2] in {"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"}:
            data = values[key]
            document = json.loads(data.to_bytes() if hasattr(data, "to_bytes") else bytes(data))
            if document != {}:  # an empty .zattrs says nothing
                found[key] = document
    return in_order(found)


def in_order(document: Any) -> Any:
    """Return a document with its members in one order, without those that say nothing."""
    if isinstance(document, dict):
        return {key: in_order(document[key]) for key in sorted(document) if (key, document[key]) not in SILENT}
    return [in_order(item) for item in document] if isinstance(document, list) else document


# -- creating ------------------------------------------------------------------------


def created(differs: str | None = None, /, **options: Any) -> Program:
    """Return the program that creates an array and looks at what is stored, and the properties of the array."""

    def run(z: Any) -> Any:
        values: dict[str, Any] = {}
        given = {
            key: value(z) if callable(value) and not isinstance(value, type) else value
            for key, value in options.items()
        }
        array = z.create_array(values, **given)
        return documents(values), described(array)

    shown = ", ".join(f"{key}={value!r}" for key, value in options.items())
    return Program(f"create_array({shown})", run, differs)


def described(array: Any) -> list[Any]:
    """Return the properties of an array."""
    names = ["shape", "chunks", "shards", "ndim", "order", "cdata_shape", "nchunks", "name", "path", "read_only"]
    found = [getattr(array, name) for name in names]
    # Sizes of 0-d arrays are floats in old versions of zarr-python.
    return [*found, str(array.dtype), int(array.size), int(array.nbytes), array.fill_value, dict(array.attrs)]


CREATION = [
    created(shape=(100, 100), dtype="f4"),
    created(shape=100, dtype="int16"),
    created(shape=(), dtype="i8"),
    created(shape=(0, 5), dtype="u1"),
    created(shape=[4, 5], dtype=np.float64),
    created(shape=(4, 5), dtype=float),
    created(shape=(4, 5), dtype=bool, zarr_format=2),
    created(shape=(10000, 10000), dtype="f8"),
    created(shape=(3, 10**6, 7), dtype="u2"),
    created(shape=(2**40,), dtype="f4"),
    created(shape=(1, 1, 1, 10**9), dtype="i1"),
    created(shape=(10000, 10000), dtype="f8", zarr_format=2),
    created(shape=(7, 10), dtype="f4", chunks=(3, 4)),
    created("`create_array(chunks=4)` of several dimensions, before 3.4", shape=(7, 10), dtype="f4", chunks=4),
    created(shape=(7, 10), dtype="f4", chunks=(20, 20)),
    created(shape=(8, 8), dtype="f4", chunks=(2, 2), shards=(4, 8)),
    created(shape=(100, 100), dtype="f4", chunks=(5, 5), shards="auto"),
    created(shape=(1000, 1000), dtype="f8", shards="auto"),
    created(shape=(8, 8), dtype="f4", chunks=(3, 3), shards=(4, 8)),
    created(shape=(8,), dtype="f4", chunks=(2,), shards=(4,), zarr_format=2),
    created(shape=3, dtype="f4", compressors=None),
    created(shape=3, dtype="f4", compressors=None, zarr_format=2),
    created(shape=3, dtype="f4", compressors=[]),
    created(shape=3, dtype="f4", compressors=lambda z: z.codecs.GzipCodec(level=1)),
    created(shape=3, dtype="f4", compressors=lambda z: [z.codecs.GzipCodec(), z.codecs.Crc32cCodec()]),
    created(shape=3, dtype="f4", compressors=lambda z: z.codecs.BloscCodec()),
    created(shape=3, dtype="u1", compressors=lambda z: z.codecs.BloscCodec(cname="lz4", clevel=3)),
    created(
        shape=3,
        dtype="f8",
        compressors=lambda z: z.codecs.BloscCodec(
            cname=z.codecs.BloscCname.zlib, shuffle=z.codecs.BloscShuffle.noshuffle
        ),
    ),
    created(shape=3, dtype="f4", compressors={"name": "zstd", "configuration": {"level": 3, "checksum": True}}),
    created(shape=3, dtype="f4", compressors=lambda z: z.codecs.ZstdCodec(level=3, checksum=True)),
    created("stored in order F", shape=(3, 4), dtype="f4", filters=lambda z: z.codecs.TransposeCodec(order=(1, 0))),
    created(shape=(2, 3, 4), dtype="f4", filters=lambda z: [z.codecs.TransposeCodec(order=(2, 0, 1))]),
    created(shape=3, dtype="f4", serializer=lambda z: z.codecs.BytesCodec(endian="big")),
    created(shape=3, dtype="f4", serializer=lambda z: z.codecs.BytesCodec(endian=z.codecs.Endian.big)),
    created(shape=3, dtype="u1", serializer=lambda z: z.codecs.BytesCodec(endian=None)),
    created(shape=4, dtype="f4", fill_value=1.5),
    created(shape=4, dtype="f4", fill_value=float("nan")),
    created(shape=4, dtype="f8", fill_value=-np.inf),
    created(shape=4, dtype="i4", fill_value=-1),
    created(shape=4, dtype="i4", fill_value=None),
    created(shape=4, dtype="i4", fill_value=None, zarr_format=2),
    created(shape=4, dtype="c8", fill_value=1 + 2j),
    created(shape=4, dtype="c16", fill_value=complex(np.nan, np.inf)),
    created(shape=4, dtype="f4", fill_value=float("nan"), zarr_format=2),
    created(shape=4, dtype=bool, fill_value=True),
    created(shape=4, dtype="string"),
    created(shape=4, dtype=str, fill_value="x"),
    created(shape=4, dtype="<U3"),
    created(shape=4, dtype="S3", zarr_format=2),
    created(shape=4, dtype="S3", fill_value=b"ab"),
    created(shape=4, dtype="M8[s]"),
    created(shape=4, dtype="M8[10us]", fill_value=np.datetime64(70, "us")),
    created("byte order in memory", shape=4, dtype=">i4"),
    created(shape=4, dtype=">i4", zarr_format=2),
    created("without effect, with a warning | memory layout", shape=(2, 3), dtype="f4", order="F"),
    created(shape=(2, 3), dtype="f4", order="F", zarr_format=2),
    created(shape=(2, 3), dtype="f4", config={"order": "F"}),
    created(shape=(2, 3), dtype="f4", dimension_names=("y", None)),
    created(shape=(2, 3), dtype="f4", dimension_names=["y", "x"]),
    created(shape=(2, 3), dtype="f4", attributes={"units": "K", "n": [1, 2.5, None, True]}),
    created(shape=(2, 3), dtype="f4", attributes={"units": "K"}, zarr_format=2),
    created(shape=(2, 3), dtype="f4", chunk_key_encoding={"name": "v2", "separator": "."}),
    created(shape=(2, 3), dtype="f4", chunk_key_encoding={"name": "default", "separator": "."}),
    created(shape=(2, 3), dtype="f4", chunk_key_encoding={"name": "v2", "separator": "/"}, zarr_format=2),
    created(shape=(2, 3), dtype="f4", name="a/b"),
    created(shape=(2, 3), dtype="f4", name="/a/b", zarr_format=2),
    created(data=VALUES),
    created(data=VALUES.astype("f4"), chunks=(3, 4), zarr_format=2),
    created(data=RECORDS, zarr_format=2),
    # refused by both
    created(shape=(2, 3), dtype="f4", dimension_names=["y"]),
    created(shape=(2, 3), dtype="f4", dimension_names=["y", "x"], zarr_format=2),
    created(shape=(2, 3), dtype="f4", chunks=(1, 2, 3)),
    created(shape=(2, 3), dtype="nothing"),
    created("a fill value of another kind", shape=(2, 3), dtype="f4", fill_value="x"),
    created(dtype="f4"),
    created(shape=(2, -3), dtype="f4"),
    created(shape=(2, 3), dtype="f4", serializer=lambda z: z.codecs.BytesCodec(), zarr_format=2),
    created(data=VALUES, shape=(2, 2)),
]


def through(function: str, *args: Any, **options: Any) -> Program:
    """Return the program that calls a function which creates an array."""

    def run(z: Any) -> Any:
        values: dict[str, Any] = {}
        array = getattr(z, function)(*args, store=values, **options)
        return documents(values), described(array), array[...]

    shown = ", ".join([*map(repr, args), *(f"{key}={value!r}" for key, value in options.items())])
    return Program(f"{function}({shown})", run)


FUNCTIONS = [
    through("zeros", (4, 5)),
    through("zeros", 4, dtype="i2", chunks=2),
    through("ones", (4, 5), dtype="f4"),
    through("ones", (4, 5), chunks=(2, 2), zarr_format=2),
    through("full", (4, 5), fill_value=7, dtype="u1"),
    through("full", (4, 5), 2.5),
    through("empty", (4, 5), dtype="i4"),
    through("create", (4, 5), dtype="i4", chunks=(2, 2)),
    through("create", shape=(4, 5)),
    through("create", (4, 5), chunks=False),
    through("create", (4, 5), chunk_shape=(2, 5)),
    through("create", (4, 5), compressor=None, zarr_format=2),
    through("create", (4, 5), dimension_separator="/", zarr_format=2),
    through("create", (4, 5), fill_value=3, attributes={"a": 1}),
    through("create", (4, 5), cache_attrs=True, cache_metadata=False, chunk_store={}, meta_array=VALUES),
    through("array", VALUES),
    through("array", [1, 2, 3]),
    through("array", VALUES, chunks=(3, 4), dtype="f4"),
    through("zeros_like", VALUES),
    through("ones_like", VALUES.astype("f4")),
    through("full_like", VALUES, fill_value=3),
    through("empty_like", VALUES),
]


# -- selections ------------------------------------------------------------------------


def counted(z: Any, **options: Any) -> Any:
    return z.create_array({}, data=VALUES, chunks=(3, 4), **options)


def selected(selection: Any, how: str = "", differs: str | None = None) -> Program:
    def run(z: Any) -> Any:
        array = counted(z)
        return np.asarray((getattr(array, how) if how else array)[selection])

    return Program(f"array{'.' if how else ''}{how}[{selection!r}]", run, differs)


def assigned(selection: Any, value: Any, how: str = "", differs: str | None = None) -> Program:
    def run(z: Any) -> Any:
        array = counted(z)
        (getattr(array, how) if how else array)[selection] = value
        return array[...]

    name = f"array{'.' if how else ''}{how}[{selection!r}] = {value!r}"
    return Program(name, run, differs)


MASK = VALUES % 3 == 0
ROWS = MASK[:, 0]
CUBE = np.arange(24).reshape(2, 3, 4)


def reopened_records(z: Any) -> Any:
    values: dict[str, Any] = {}
    z.create_array(values, shape=2, dtype=[("a", [("b", "<i4")])], zarr_format=2)
    return z.open_array(values)[...].tolist()


SELECTIONS = [
    selected(Ellipsis),
    selected(2),
    selected(-1),
    selected(np.int64(3)),
    selected((2, 3)),
    selected((slice(None), 3)),
    selected((slice(1, 6, 2), slice(-3, None))),
    selected((slice(5, 2), 0)),
    selected((slice(3, 100), slice(-100, 4))),
    selected((..., 0)),
    selected((2, ...)),
    selected(()),
    selected(slice(None, None, -1), differs="negative steps"),
    selected((None, 0), differs="newaxis"),
    selected([0, 2, 5]),
    selected(([0, 2], [1, 3])),
    selected(MASK),
    selected([1, 1, -1]),
    selected([[0, 2], [1, 3]], differs="of several dimensions, beside slices"),
    selected(([0, 2], [1, 3], None), differs="of several dimensions, beside slices"),
    selected((MASK, None), differs="of several dimensions, beside slices"),
    Program("array[0, :, [1, 2]]", lambda z: z.create_array({}, data=CUBE, chunks=(1, 2, 3))[0, :, [1, 2]]),
    Program("array[[1], 0, :]", lambda z: z.create_array({}, data=CUBE, chunks=(1, 2, 3))[[1], 0, :]),
    Program(
        "array[[0, 1], :, [1, 2]]",
        lambda z: z.create_array({}, data=CUBE, chunks=(1, 2, 3))[[0, 1], :, [1, 2]],
        "several lists or arrays",
    ),
    Program(
        "array[mask of two dimensions]",
        lambda z: z.create_array({}, data=CUBE, chunks=(1, 2, 3))[CUBE[..., 0] > 9],
        "of several dimensions, beside slices",
    ),
    selected(ROWS, differs="with a mask of the first dimension"),
    selected(([0, 2], slice(None))),
    selected((slice(0, 5), [1, 3])),
    selected(([0, 2], [1, 3]), "oindex"),
    selected((ROWS, slice(2, 5)), "oindex"),
    selected(([5, 0], 3), "oindex"),
    selected((slice(1, 7, 3), [0, -1]), "oindex"),
    selected(([0, 2], [1, 3]), "vindex"),
    selected(([[0, 2], [4, 5]], [[1, 3], [0, 9]]), "vindex"),
    selected(([0, 2], 3), "vindex"),
    selected(MASK, "vindex"),
    selected((1, 2), "blocks"),
    selected(1, "blocks"),
    selected((slice(0, 2), -1), "blocks"),
    selected((slice(None), 1), "blocks"),
    # refused by both
    selected(7),
    selected((0, 10)),
    selected((0, 0, 0)),
    selected("x"),
    selected(1.5),
    selected((..., ...)),
    selected([7]),
    selected(([0], [1, 2, 3, 4], [0]), "vindex"),
    selected(([0, 1], [10, 0]), "vindex"),
    selected(MASK[:3], "vindex"),
    selected((5, 5), "blocks"),
    selected((slice(None), [0], [1]), "oindex"),
    selected(MASK[0], "oindex"),
    assigned(Ellipsis, 1),
    assigned((slice(1, 3), 2), [7, 8]),
    assigned((slice(1, 3), slice(None)), np.arange(10), differs="that must be broadcast"),
    assigned(3, VALUES[0]),
    assigned([0, 2], 5),
    assigned(MASK, -1),
    assigned(([0, 2], [1, 3]), [7, 8]),
    assigned(([0, 2], [1, 3]), [[7, 8], [9, 10]], "oindex"),
    assigned((ROWS, 0), 4, "oindex"),
    assigned(([0, 2], [1, 3]), [7, 8], "vindex"),
    assigned(MASK, np.arange(MASK.sum()), "vindex"),
    assigned((0, 1), 9, "blocks"),
    assigned(0, 2.75),
    assigned((slice(0, 2), 0), [1, 2, 3], differs="with too many elements"),
    assigned(9, 0),
    Program("get_basic_selection", lambda z: counted(z).get_basic_selection((slice(2), 1))),
    Program("get_orthogonal_selection", lambda z: counted(z).get_orthogonal_selection(([1, 3], [0, 5]))),
    Program("get_coordinate_selection", lambda z: counted(z).get_coordinate_selection(([1, 3], [0, 5]))),
    Program("get_mask_selection", lambda z: counted(z).get_mask_selection(MASK)),
    Program("get_block_selection", lambda z: counted(z).get_block_selection((1, 1))),
    Program("numpy.asarray(array)", lambda z: np.asarray(counted(z))),
    Program("numpy.asarray(array, dtype)", lambda z: np.asarray(counted(z), dtype="f4")),
    Program("0-d array", lambda z: np.asarray(z.create_array({}, data=np.float32(3))[()])),
    Program("records[field]", lambda z: z.create_array({}, data=RECORDS, zarr_format=2)["x"], '`records["x"]` of v2'),
    Program("records[...]", lambda z: z.create_array({}, data=RECORDS, zarr_format=2)[...]),
    Program(
        "strings",
        lambda z: [str(item) for item in z.create_array({}, data=np.array(["a", "", "äß"], dtype="<U2"))[...]],
    ),
    Program("records within records", reopened_records, "records within records, before 3.4"),
    Program(
        "dimension_names of the metadata",
        lambda z: [hasattr(counted(z, zarr_format=each).metadata, "dimension_names") for each in (2, 3)],
    ),
    Program("dimension_names", lambda z: counted(z).dimension_names, "`Array.dimension_names`"),
    Program("array[1, 1] is a scalar", lambda z: isinstance(counted(z)[1, 1], np.generic), "a NumPy scalar"),
    Program("len(array)", lambda z: len(counted(z)), "length of the first dimension"),
    Program("bool(array)", lambda z: bool(counted(z)), "`bool` is always true"),
    Program("int(array)", lambda z: int(z.create_array({}, data=np.int8(3))), "as NumPy: the one element"),
]


# -- changing ----------------------------------------------------------------------------


def changing(
    name: str, change: Callable[[Any], Any], differs: str | None = None, v2: str | None = None
) -> list[Program]:
    """Return the programs that change an array of either format and look at it; `v2`: words on that of v2 alone."""

    def program(zarr_format: int) -> Program:
        def run(z: Any) -> Any:
            values: dict[str, Any] = {}
            array = z.create_array(
                values,
                shape=(7, 10),
                dtype="i8",
                chunks=(3, 4),
                attributes={"a": 1},
                fill_value=-1,
                zarr_format=zarr_format,
            )
            array[...] = VALUES
            result = change(array)
            return (
                result if result is not array else None,
                documents(values),
                array.shape,
                array[...],
                dict(array.attrs),
            )

        return Program(f"{name}, format {zarr_format}", run, differs or (v2 if zarr_format == 2 else None))

    return [program(2), program(3)]


def grow_again(array: Any) -> None:
    array.resize((4, 5))
    array.resize((6, 8))


CHANGES = [
    *changing("resize to more", lambda array: array.resize((9, 12))),
    *changing("resize to fewer", lambda array: array.resize((2, 3))),
    *changing("resize to chunks", lambda array: array.resize((3, 4))),
    *changing("resize to nothing", lambda array: array.resize((0, 10))),
    *changing("shrink and grow", grow_again, "old values in the remaining chunks come back"),
    *changing(
        "resize to another number of dimensions",
        lambda array: array.resize((4,)),
        "`resize` to another number of dimensions, before 3.4",
    ),
    *changing("append", lambda array: array.append(VALUES[:2])),
    *changing("append along axis 1", lambda array: array.append(np.ones((7, 3), int), axis=1)),
    *changing("append what does not fit", lambda array: array.append(np.ones((7, 3), int))),
    *changing("attrs[key] = value", lambda array: array.attrs.__setitem__("b", {"c": [1, None]})),
    *changing("del attrs[key]", lambda array: array.attrs.__delitem__("a")),
    *changing("attrs.update", lambda array: array.attrs.update({"a": 2, "b": 3})),
    *changing("attrs.put", lambda array: array.attrs.put({"b": 3})),
    *changing("attrs.asdict", lambda array: array.attrs.asdict()),
    *changing("attrs missing", lambda array: array.attrs["nothing"]),
    *changing("attrs like a mapping", lambda array: [len(array.attrs), list(array.attrs), "a" in array.attrs]),
    *changing("update_attributes", lambda array: dict(array.update_attributes({"b": 2}).attrs)),
    *changing("attribute that is not JSON", lambda array: array.attrs.__setitem__("b", object())),
    *changing("nchunks", lambda array: [array.nchunks, array.nchunks_initialized, array.cdata_shape]),
    *changing("write fill values", lambda array: [array.__setitem__(..., -1), array.nchunks_initialized]),
    *changing(
        "with_config",
        lambda array: array.with_config({"order": "F", "write_empty_chunks": True}).config.write_empty_chunks,
    ),
    *changing("compressors", lambda array: array.compressors, v2="objects of numcodecs"),
    *changing(
        "metadata", lambda array: [array.metadata.zarr_format, array.metadata.shape, dict(array.metadata.attributes)]
    ),
]


# -- groups --------------------------------------------------------------------------------


def grouped(
    name: str, act: Callable[[Any, Any], Any], differs: str | None = None, v2: str | None = None
) -> list[Program]:
    """Return the programs that do something with a group of either format; `v2`: words on that of v2 alone."""

    def program(zarr_format: int) -> Program:
        def run(z: Any) -> Any:
            values: dict[str, Any] = {}
            root = z.create_group(values, zarr_format=zarr_format, attributes={"title": "ocean"})
            root.create_array("a", shape=(4, 4), dtype="f4", chunks=(2, 2), compressors=None)
            below = root.create_group("g")
            below.create_array("b", shape=3, dtype="i2", attributes={"x": 1}, compressors=None)
            below.create_group("h")
            return act(root, z), documents(values)

        return Program(f"{name}, format {zarr_format}", run, differs or (v2 if zarr_format == 2 else None))

    return [program(2), program(3)]


def names(members: Any) -> list[tuple[str, str]]:
    return sorted((path, type(node).__name__) for path, node in members)


GROUPS = [
    *grouped("name, path, attrs", lambda g, z: [g.name, g.path, g.basename, dict(g.attrs), g.read_only]),
    *grouped("of a member", lambda g, z: [g["g"].name, g["g/b"].name, g["g/b"].path, g["g/b"].basename]),
    *grouped("members()", lambda g, z: names(g.members())),
    *grouped("members(max_depth=None)", lambda g, z: names(g.members(max_depth=None))),
    *grouped("members(max_depth=1)", lambda g, z: names(g.members(max_depth=1))),
    *grouped("nmembers", lambda g, z: [g.nmembers(), g.nmembers(max_depth=None)]),
    *grouped("keys", lambda g, z: [sorted(g.keys()), sorted(g), len(g)]),
    *grouped("arrays", lambda g, z: [names(g.arrays()), sorted(g.array_keys()), len(list(g.array_values()))]),
    *grouped("groups", lambda g, z: [names(g.groups()), sorted(g.group_keys()), len(list(g.group_values()))]),
    *grouped("contains", lambda g, z: ["a" in g, "g/b" in g, "x" in g, "g/x/y" in g]),
    *grouped("missing member", lambda g, z: g["x"]),
    *grouped("missing member of a member", lambda g, z: g["g/x"]),
    *grouped("get", lambda g, z: [g.get("x"), g.get("x", 5), g.get("a").shape]),
    *grouped("tree", lambda g, z: str(g.tree()), "`str(group.tree())`"),
    *grouped("tree without ends", lambda g, z: str(g.tree()).strip()),
    *grouped("tree of one level", lambda g, z: str(g.tree(level=0)).strip()),
    *grouped("tree of two levels", lambda g, z: str(g.tree(level=1)).strip()),
    *grouped(
        "create_array",
        lambda g, z: described(g.create_array("c/d", shape=(2, 2), dtype="u1")),
        v2="default compressor of v2 arrays that a group creates",
    ),
    *grouped(
        "create_array with data",
        lambda g, z: g.create_array("c", data=VALUES)[...],
        v2="default compressor of v2 arrays that a group creates",
    ),
    *grouped("create_array where one is", lambda g, z: g.create_array("a", shape=2, dtype="u1")),
    *grouped(
        "create_array over one",
        lambda g, z: described(g.create_array("a", shape=2, dtype="u1", overwrite=True)),
        v2="default compressor of v2 arrays that a group creates",
    ),
    *grouped("create_array where a group is", lambda g, z: g.create_array("g", shape=2, dtype="u1")),
    *grouped("create_group", lambda g, z: dict(g.create_group("k/l", attributes={"m": 1}).attrs)),
    *grouped("create_group where one is", lambda g, z: g.create_group("g")),
    *grouped("create_group where an array is", lambda g, z: g.create_group("a")),
    *grouped("create_group over one", lambda g, z: names(g.create_group("g", overwrite=True).members())),
    *grouped("require_group", lambda g, z: [g.require_group("g").name, g.require_group("n").name]),
    *grouped(
        "require_group where an array is", lambda g, z: g.require_group("a"), "`require_group` at the path of an array"
    ),
    *grouped("require_groups", lambda g, z: [node.name for node in g.require_groups("g", "n")]),
    *grouped("require_array", lambda g, z: g.require_array("a", shape=(4, 4), dtype="f4").name),
    *grouped(
        "require_array, missing",
        lambda g, z: described(g.require_array("n", shape=(4, 4), dtype="f4")),
        v2="default compressor of v2 arrays that a group creates",
    ),
    *grouped("require_array of another shape", lambda g, z: g.require_array("a", shape=(4, 5), dtype="f4")),
    *grouped("require_array of another type", lambda g, z: g.require_array("a", shape=(4, 4), dtype="i2")),
    *grouped("delete", lambda g, z: [g.__delitem__("g"), sorted(g)]),
    *grouped("delete missing data", lambda g, z: g.__delitem__("x"), "of a missing member | does nothing"),
    *grouped("set", lambda g, z: [g.__setitem__("n", VALUES), g["n"][...]]),
    *grouped(
        "zeros",
        lambda g, z: g.zeros(name="n", shape=(2, 2))[...],
        v2="functions of a v2 group: `zeros`, ..., before 3.4",
    ),
    *grouped(
        "ones",
        lambda g, z: g.ones(name="n", shape=(2, 2), dtype="i4")[...],
        v2="functions of a v2 group: `zeros`, ..., before 3.4",
    ),
    *grouped(
        "full",
        lambda g, z: g.full(name="n", shape=(2, 2), fill_value=4)[...],
        v2="functions of a v2 group: `zeros`, ..., before 3.4",
    ),
    *grouped(
        "empty",
        lambda g, z: g.empty(name="n", shape=(2, 2)).shape,
        v2="functions of a v2 group: `zeros`, ..., before 3.4",
    ),
    *grouped(
        "zeros_like",
        lambda g, z: described(g.zeros_like(name="n", data=VALUES)),
        v2="functions of a v2 group: `zeros`, ..., before 3.4",
    ),
    *grouped("attrs", lambda g, z: [g.attrs.update({"b": 2}), dict(g.attrs)]),
    *grouped("attrs.put", lambda g, z: [g.attrs.put({"b": 2}), dict(g.attrs)]),
    *grouped("update_attributes", lambda g, z: dict(g.update_attributes({"b": 2}).attrs)),
    *grouped("metadata.to_dict of a group", lambda g, z: g.metadata.to_dict()["attributes"]),
    *grouped("move", lambda g, z: g.move("a", "g/n"), "work; also `Group.copy`"),
    *grouped("bool of an empty group", lambda g, z: bool(g["g/h"]), "`bool(group)` of an empty one"),
    *grouped("consolidate_metadata", lambda g, z: names(z.consolidate_metadata(g.store).members(max_depth=None))),
    *grouped("open with path", lambda g, z: [z.open(g.store, path="g/b").shape, z.open_group(g.store, path="g").name]),
    *grouped(
        "open_array of a group", lambda g, z: z.open_array(g.store, path="g", mode="r"), v2="`open_array` of a v2 group"
    ),
    *grouped(
        "open_group of an array",
        lambda g, z: z.open_group(g.store, path="a", mode="r"),
        v2="`open_group` of a v2 array",
    ),
    *grouped("open_array, mode r", lambda g, z: z.open_array(g.store, path="a", mode="r").__setitem__(0, 1)),
    *grouped("open_group, mode r", lambda g, z: z.open_group(g.store, mode="r").create_group("x")),
    *grouped("open_group, mode w", lambda g, z: names(z.open_group(g.store, mode="w").members())),
    *grouped("open_group, mode w-", lambda g, z: z.open_group(g.store, mode="w-")),
    *grouped("open_group, mode r, of nothing", lambda g, z: z.open_group(g.store, path="x", mode="r")),
    *grouped("open_array of nothing", lambda g, z: z.open_array(g.store, path="x", mode="r")),
    *grouped("open of nothing, mode r", lambda g, z: z.open(g.store, path="x", mode="r")),
    *grouped("open of nothing", lambda g, z: z.open_group(g.store, path="x").name, "of a missing node"),
    *grouped("open_consolidated of what is not", lambda g, z: z.open_consolidated(g.store)),
    *grouped("load", lambda g, z: z.load(g.store, path="g/b")),
    *grouped(
        "save_array",
        lambda g, z: [z.save_array(g.store, VALUES, path="n"), z.load(g.store, path="n")],
        v2="format of a new node in a v2 group",
    ),
    *grouped("open_like", lambda g, z: described(z.open_like(g["a"], g.store, path="n", mode="w"))),
    *grouped(
        "from_array",
        lambda g, z: described(z.from_array(g.store, data=g["g/b"], name="n")),
        differs="`from_array`, before 3.4",
    ),
    *grouped("zarr_format of members", lambda g, z: [node.metadata.zarr_format for _, node in g.members()]),
]

PROGRAMS = [*CREATION, *FUNCTIONS, *SELECTIONS, *CHANGES, *GROUPS]


def shown(program: Program) -> str:
    """Return a name that is short, and the same in every process."""
    name = re.sub(r"<function .*? at \w+>", "...", program.name)
    name = re.sub(r"array\(\[.*?\]\)", "array(...)", name, flags=re.DOTALL)
    return re.sub(r"\s+", " ", name)[:100]


@pytest.mark.parametrize("program", PROGRAMS, ids=[f"{at}: {shown(program)}" for at, program in enumerate(PROGRAMS)])
def test_program_does_the_same(program):
    theirs, ours = outcome(program, zarr), outcome(program, omnizarr)
    if program.differs is None:
        assert are_same(theirs, ours), f"zarr-python: {theirs!r}\nomnizarr: {ours!r}"
    else:
        assert program.differs in DIFFERENCES
        is_mended = "before 3.4" in program.differs and VERSION >= (3, 2)
        assert is_mended or not are_same(theirs, ours), "the manual says that they differ"
