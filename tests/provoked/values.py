"""Errors of values: selections, assignments, attributes and arguments that an array cannot have."""

import numpy as np

import omnizarr
from tests.provoked.cases import case, hierarchy

PLACE = ("{at}/x.zarr", "/ocean/temp")
OUTSIDE = "index out of bounds for dimension"


def selecting(name, kind, *says, select, typed=None, words=None, remedy=None):
    """Put a selection into the table, and what `omnizarr get` says of the typed one."""

    def prepare(at):
        array = hierarchy(at)["ocean/temp"]
        return lambda: select(array), None if words is None else ["get", at / "x.zarr/ocean/temp", words]

    prepare.__name__ = name
    case(kind, *PLACE, *says, remedy=remedy, typed=typed, path="ocean/temp")(prepare)


def assigning(name, kind, *says, remedy=None, assign):
    """Put a change of an array into the table."""

    def prepare(at):
        array = hierarchy(at)["ocean/temp"]
        return lambda: assign(array)

    prepare.__name__ = name
    case(kind, *PLACE, *says, remedy=remedy, path="ocean/temp")(prepare)


def setting(selection, value):
    """Return what assigns a value."""
    return lambda array: array.__setitem__(selection, value)


def creating(name, kind, *says, remedy=None, words=None, typed=None, **options):
    """Put the creation of an array into the table."""

    def prepare(at):
        command = None if words is None else ["create", at / "n.zarr", *words.split()]
        return lambda: omnizarr.create_array(at / "n.zarr", **options), command

    prepare.__name__ = name
    case(kind, "{at}/n.zarr", *says, remedy=remedy, typed=typed)(prepare)


RANGE = (f"{OUTSIDE} 0 with length 4", "found 9", "expected -4 to 3")
selecting("index_too_large", IndexError, *RANGE, select=lambda a: a[9], words="9", typed=RANGE)
SMALL = (f"{OUTSIDE} 1 with length 6", "found -8", "expected -6 to 5")
selecting("index_too_small", IndexError, *SMALL, select=lambda a: a[0, -8], words="0,-8", typed=SMALL)
selecting("list_index_too_large", IndexError, *RANGE, select=lambda a: a[[0, 9]], words="[0,9]", typed=RANGE)
selecting("orthogonal_index_too_large", IndexError, *RANGE, select=lambda a: a.oindex[[9]])
selecting("point_outside", IndexError, f"{OUTSIDE} 1 with length 6", "found 9", select=lambda a: a.vindex[[0], [9]])
selecting(
    "block_outside",
    IndexError,
    f"{OUTSIDE} 0 with length 2",
    "found 5",
    "expected -2 to 1",
    select=lambda a: a.blocks[5],
)
selecting(
    "too_many_indices",
    IndexError,
    "too many indices",
    "found 3, expected at most 2",
    select=lambda a: a[0, 0, 0],
    words="0,0,0",
    typed=("found 3, expected at most 2",),
)
selecting(
    "step_zero",
    IndexError,
    "step cannot be zero",
    "slice(None, None, 0)",
    select=lambda a: a[::0],
    words="::0",
    typed=("step of a slice cannot be 0", "found ::0"),
)
selecting(
    "two_ellipses",
    IndexError,
    "only one Ellipsis",
    "found 2",
    select=lambda a: a[..., ...],
    words="...,...",
    typed=("'...' once",),
)
selecting(
    "text_as_index",
    IndexError,
    "found temp",
    "expected an integer, slice, Ellipsis or None",
    select=lambda a: a["temp"],
    remedy="oindex",
    words="temp",
    typed=("not a selection", "found temp", "two pairs of quotes"),
)
selecting(
    "float_as_index",
    IndexError,
    "found 1.5",
    "expected an integer",
    select=lambda a: a[1.5],
    remedy="oindex",
    words="1.5",
    typed=("not a selection", "found 1.5", "for example"),
)
selecting(
    "mask_of_another_shape",
    IndexError,
    "no mask for this array",
    "shape (3, 6)",
    "shape (4, 6)",
    select=lambda a: a[np.ones((3, 6), bool)],
)
selecting(
    "points_that_do_not_broadcast",
    IndexError,
    "do not broadcast",
    "(2,), (3,)",
    remedy=".oindex",
    select=lambda a: a.vindex[[0, 1], [0, 1, 2]],
)
selecting(
    "points_of_text",
    IndexError,
    "integer or boolean type",
    "expected integers or booleans",
    select=lambda a: a.vindex[:, "x"],
)
selecting(
    "result_of_another_shape",
    ValueError,
    "out has another shape",
    "found (3, 3), expected (4, 6)",
    select=lambda a: a.get_basic_selection(..., out=np.zeros((3, 3), "i2")),
)

FIT = "the value does not fit the selection"
assigning(
    "value_of_another_shape", ValueError, FIT, "(3, 6)", "broadcasts to (4, 6)", assign=setting(..., np.zeros((3, 6)))
)
assigning("row_of_another_length", ValueError, FIT, "(2,)", "broadcasts to (6,)", assign=setting(0, [1, 2]))
assigning("points_of_another_number", ValueError, FIT, assign=lambda a: a.vindex.__setitem__(([0], [0]), [1, 2]))
assigning("text_into_integers", TypeError, "cannot be converted", "found str", "int16", assign=setting(0, "hello"))
assigning("too_large_for_the_type", ValueError, "100000", "out of bounds for int16", assign=setting(0, 100000))
assigning("nan_into_integers", ValueError, "NaN", "int16", assign=setting(0, np.nan))
assigning("object_into_integers", TypeError, "found object", "int16", assign=setting(0, object()))
assigning("complex_into_integers", TypeError, "found complex", "int16", assign=setting(0, 1j))
assigning("assignment_outside", IndexError, *RANGE, assign=setting(9, 1))
assigning("another_number_of_dimensions", ValueError, "found (4,), expected 2 lengths", assign=lambda a: a.resize((4,)))
assigning("negative_length", ValueError, "not a shape", "(-4, 3)", "from 0", assign=lambda a: a.resize((-4, 3)))
assigning(
    "block_that_does_not_fit",
    ValueError,
    "found shape (2, 5), expected shape (any, 6)",
    assign=lambda a: a.append(np.zeros((2, 5))),
)
assigning(
    "axis_that_is_missing",
    ValueError,
    "no such dimension",
    "found 5, expected 0 to 1",
    assign=lambda a: a.append(np.zeros((2, 6)), axis=5),
)
assigning(
    "attribute_that_is_no_json",
    TypeError,
    "/attributes/x",
    "type complex has no form in JSON",
    remedy="convert it",
    assign=lambda a: a.attrs.update(x=1j),
)
assigning(
    "attribute_that_is_a_set",
    TypeError,
    "/attributes/x",
    "type set has no form in JSON",
    "found {1}",
    remedy="convert it",
    assign=lambda a: a.attrs.update(x={1}),
)
assigning(
    "attribute_with_a_number_as_name",
    TypeError,
    "/attributes/x",
    "found 1, expected a string",
    assign=lambda a: a.attrs.update(x={1: 2}),
)

S = "--shape 3 --dtype i4"
creating(
    "misspelt_data_type",
    TypeError,
    "/data_type",
    "found 'flaot32'",
    remedy="did you mean 'float32'",
    shape=3,
    dtype="flaot32",
    words="--shape 3 --dtype flaot32",
)
creating(
    "misspelt_codec",
    ValueError,
    "codec 'zsdt'",
    "unknown codec",
    remedy="did you mean 'zstd'",
    shape=3,
    dtype="i4",
    compressors=["zsdt"],
)
creating(
    "chunks_of_other_dimensions",
    ValueError,
    "/chunk_grid",
    "found 2 lengths (3, 3)",
    "expected 1",
    shape=3,
    dtype="i4",
    chunks=(3, 3),
    words=f"{S} --chunks 3,3",
)
creating(
    "chunk_of_length_zero",
    ValueError,
    "/chunk_grid",
    "found 0",
    "above 0",
    shape=3,
    dtype="i4",
    chunks=0,
    words=f"{S} --chunks 0",
)
creating(
    "chunks_that_do_not_divide_shards",
    ValueError,
    "sharding_indexed",
    "found (3,)",
    "divisors of the shard's shape (10,)",
    remedy="choose chunks that divide the shard, or name the serializer yourself (few programs read it)",
    shape=10,
    dtype="i4",
    chunks=3,
    shards=10,
    words="--shape 10 --dtype i4 --chunks 3 --shards 10",
)
creating(
    "fill_value_of_text",
    ValueError,
    "/fill_value",
    "found hello",
    "an integer from -2147483648",
    shape=3,
    dtype="i4",
    fill_value="hello",
    words=f"{S} --fill-value hello",
)
creating(
    "fill_value_too_large",
    ValueError,
    "/fill_value",
    "found 300",
    "from 0 to 255",
    shape=3,
    dtype="u1",
    fill_value=300,
    words="--shape 3 --dtype u1 --fill-value 300",
)
creating(
    "negative_shape", ValueError, "/shape", "found -3", "from 0", shape=-3, dtype="i4", words="--shape -3 --dtype i4"
)
creating(
    "shape_of_floats",
    TypeError,
    "/shape",
    "found 3.5",
    shape=3.5,
    dtype="i4",
    words="--shape 3.5 --dtype i4",
    typed=("--shape", "3.5", "100,100"),
)
creating("no_shape", ValueError, "/shape", "no shape is given", remedy="pass shape or data", dtype="i4")
creating("no_data_type", ValueError, "/data_type", "no data type is given", remedy="pass dtype or data", shape=3)
creating(
    "level_out_of_range",
    ValueError,
    "codec 'gzip'",
    "found 99",
    "from 0 to 9",
    shape=3,
    dtype="i4",
    compressors=[{"name": "gzip", "configuration": {"level": 99}}],
)
creating(
    "names_of_other_dimensions",
    ValueError,
    "/dimension_names",
    "('a', 'b')",
    "expected 1",
    shape=3,
    dtype="i4",
    dimension_names=["a", "b"],
)
creating(
    "attribute_of_a_new_array",
    TypeError,
    "/attributes/a",
    "no form in JSON",
    remedy="convert it",
    shape=3,
    dtype="i4",
    attributes={"a": 1j},
)
creating(
    "separator_of_keys",
    ValueError,
    "separator",
    "found '!'",
    "'/' or '.'",
    shape=3,
    dtype="i4",
    dimension_separator="!",
)
creating(
    "shards_in_v2",
    ValueError,
    "Zarr v2 has no shards",
    "found shards=4",
    remedy="leave out shards",
    shape=4,
    dtype="i4",
    zarr_format=2,
    chunks=2,
    shards=4,
)
creating("python_objects", TypeError, "/data_type", "found object", remedy="dtype='string'", shape=4, dtype=object)
creating(
    "shape_of_other_data",
    ValueError,
    "data has another shape",
    "found shape (3,), expected shape 4",
    shape=4,
    data=np.zeros(3),
)


@case(TypeError, "unexpected keyword argument 'chunk'", "did you mean 'chunks'?")
def misspelt_keyword(at):
    return lambda: omnizarr.create_array(at / "n.zarr", shape=3, dtype="i4", chunk=3)


@case(ValueError, "order is not valid", "found 'Z'", "'C' or 'F'")
def unknown_order(at):
    return lambda: omnizarr.create_array(at / "n.zarr", shape=3, dtype="i4", order="Z")


@case(ValueError, "a path cannot contain '.' or '..'", "c")
def name_with_dots(at):
    return lambda: omnizarr.create_array(at / "n.zarr", name="b/../c", shape=3, dtype="i4")


@case(TypeError, "not a pair of an array and a selection", "/ocean/temp", "write (array, ...)")
def arrays_without_selections(at):
    array = hierarchy(at)["ocean/temp"]
    return lambda: omnizarr.read_many([array, array])


@case(IndexError, *PLACE, *RANGE)
def one_of_many_selections(at):
    array = hierarchy(at)["ocean/temp"]
    return lambda: omnizarr.read_many([(array, 0), (array, 9)])


@case(ValueError, "max_memory='lots'", "as in 500MB", typed=("--max-memory", "'lots'", "as in 500MB"))
def memory_without_sense(at):
    hierarchy(at)
    return lambda: omnizarr.digest(at / "x.zarr", max_memory="lots"), ["digest", at / "x.zarr", "--max-memory", "lots"]


@case(KeyError, "there is no setting 'fetsch'", "did you mean 'fetch'?")
def misspelt_setting(at):
    return lambda: omnizarr.config.set({"fetsch": 1})


@case(ValueError, "the setting concurrency is not valid", "found -3", "from 1")
def setting_out_of_range(at):
    return lambda: omnizarr.config.set({"concurrency": -3})
