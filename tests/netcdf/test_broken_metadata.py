"""What datasets, groups and variables say of documents that somebody broke: values, or errors that name the place."""

import json

import numpy as np
import pytest

import omnizarr
from omnizarr import errors, netcdf
from omnizarr.stores import MemoryStore
from tests import damaged
from tests.damaged import BYTES, CRC, sharded, text, v2, v3

NO_SHAPES = ("ab", None, ["a", 2], [0, 2], [-1, 2], [2], [2.5, 2], {"a": 1}, [10**30, 2], [True, 2])
NO_CODECS = ("x", 5, [], {}, {"id": 5}, {"id": "zlib", "level": "x"}, {"id": "blosc", "cname": 5}, 10**40)
NO_FILTERS = ([5], [{"id": "shuffle", "elementsize": "x"}], [{"id": "zlib", "level": []}], [{"id": "fixedscaleoffset"}])
NO_VALUES = ("x", 5, None, [], {}, ["a"], {"types": {"units": 5}}, {"dimrefs": [5]}, {"dims": {"y": "x"}}, 1e300)
OF_ARRAYS = (
    *("_nczarr_array", "_NCZARR_ARRAY", "_nczarr_attr", "_ARRAY_DIMENSIONS", "_FillValue", "scale_factor", "_Unsigned"),
    *("valid_range", "_Encoding", "least_significant_digit", "_QuantizeBitGroomNumberOfSignificantDigits"),
)
OF_GROUPS = ("_nczarr_group", "_NCZARR_GROUP", "_nczarr_superblock", "_NCZARR_SUPERBLOCK", "_NCProperties")
GRIDS = (
    {"name": "hexagonal"},
    {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[1, "a"], [4]]}},
    {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[], []]}},
)
OF_ZARR = ("chunks", "shards", "read_chunk_sizes", "write_chunk_sizes", "cdata_shape", "nchunks_initialized")
NOT_CALLED = {"dtype", "datatype", "nctype", "parent", "array"}
"""Properties whose values can be called."""
CHANGING = ("create", "del", "fromcdl", "rename", "set", "sync", "use_", "assign", "write_raw", "close", "relength")


def _with_inner(shape):
    files = sharded(b"")
    document = json.loads(files["a/zarr.json"])
    document["codecs"][0]["configuration"]["chunk_shape"] = shape
    return {**files, "a/zarr.json": text(document)}


def _transposed(order):
    files = sharded(b"")
    document = json.loads(files["a/zarr.json"])
    document["codecs"].insert(0, {"name": "transpose", "configuration": {"order": order}})
    return {**files, "a/zarr.json": text(document)}


def _with_attribute(of, name, value):
    where = "a/.zattrs" if of == "array" else ".zattrs"
    return {**v2(), "a/.zattrs": text({"_ARRAY_DIMENSIONS": ["y", "x"]}), where: text({name: value})}


CASES = {
    "damaged": [each.files for each in damaged._METADATA + damaged._EXTENSIONS + damaged._WRITERS],
    "shards": [
        *map(_with_inner, NO_SHAPES),
        *map(_transposed, ([5, 1], "x", [0], None)),
        v3(codecs=[{"name": "sharding_indexed"}]),
        sharded(b"", inner=[]),
        sharded(b"", index_codecs=["x", CRC]),
    ],
    "codecs": [
        *(v3(chunk_grid=grid) for grid in GRIDS),
        *(v3(codecs=[BYTES, {"name": "gzip", "configuration": {"level": each}}]) for each in ("x", None, [])),
        *(v2(compressor=each) for each in NO_CODECS),
        *(v2(filters=each) for each in NO_FILTERS),
    ],
    "attributes": [
        *(_with_attribute("array", name, value) for name in OF_ARRAYS for value in NO_VALUES),
        *(_with_attribute("group", name, value) for name in OF_GROUPS for value in NO_VALUES),
    ],
}


def looks(node):
    """Return functions that look at each property of a node, and call each method that needs no argument."""

    def look(name):
        found = getattr(node, name)
        return found() if callable(found) and name not in NOT_CALLED else found

    names = [each for each in dir(type(node)) if not each.startswith(("_", *CHANGING))]
    needy = {"getncattr", "getncattr_type", "get_variables_by_attributes", "read_raw", "getValue"}
    yield from ((name, lambda name=name: look(name)) for name in names if name not in needy)
    yield "repr", lambda: repr(node)
    yield "ncattrs", lambda: [(node.getncattr(name), node.getncattr_type(name)) for name in node.ncattrs()]
    if isinstance(node, netcdf.Group):
        yield "get_variables_by_attributes", lambda: node.get_variables_by_attributes(units="K")
    else:
        yield "[...]", lambda: node[...]
        if node.dtype is not str:
            yield "[...] =", lambda: node.__setitem__(..., 1)
        yield "set_var_chunk_cache", lambda: node.set_var_chunk_cache(2**20)
        yield "array properties", lambda: [getattr(node.array, each) for each in OF_ZARR]


def refusals(files):
    """Yield the name of each look that fails, and its error."""
    store = MemoryStore()
    for key, content in files.items():
        if content is not None:
            store.set(key, content)
    try:
        dataset = netcdf.Dataset(store, "r+")
    except errors.OmnizarrError as error:
        yield "Dataset", error.add(path="")
        return
    if any(key in files for key in ("a/zarr.json", "a/.zarray")) and "a" not in dataset.variables:
        assert any(dataset.all_notes().values()), files
    for node in (dataset, *dataset.variables.values()):
        for name, look in looks(node):
            try:
                look()
            except errors.OmnizarrError as error:
                yield name, error


@pytest.mark.parametrize("which", CASES)
@pytest.mark.filterwarnings("ignore")
def test_each_property_has_a_value_or_an_error_that_names_the_place(which):
    found = [(name, files, error) for files in CASES[which] for name, error in refusals(files)]
    assert len(found) > 1
    for name, files, error in found:
        assert None not in (error.store, error.path), (name, files, str(error))
        what = error.found, error.expected, error.pointer, error.codec
        assert any(each is not None for each in what), (name, files, str(error))


@pytest.mark.parametrize("shape", NO_SHAPES[2:], ids=str)
def test_the_shape_of_inner_chunks_is_refused_as_reading_refuses_it(shape):
    store = MemoryStore()
    for key, content in _with_inner(shape).items():
        store.set(key, content)
    array = omnizarr.open_array(store, path="a")
    with netcdf.Dataset(store) as dataset:
        for look in (dataset["a"].chunking, lambda: array.chunks, lambda: array.nchunks, lambda: array[...]):
            with pytest.raises((errors.MetadataError, errors.CodecError), match="inner chunk") as caught:
                look()
            assert caught.value.pointer == "/codecs/0/configuration/chunk_shape"
            assert (caught.value.path, caught.value.key) == ("a", "a/zarr.json")


def test_a_digit_that_is_none_is_refused_before_values_are_rounded():
    store = MemoryStore()
    for key, content in {**v2(dtype="<f4"), "a/.zattrs": text({"least_significant_digit": ["a"]})}.items():
        store.set(key, content)
    with netcdf.Dataset(store, "r+") as dataset, pytest.raises(errors.SettingError, match="least_significant_digit"):
        dataset["a"][...] = np.ones((4, 4))
