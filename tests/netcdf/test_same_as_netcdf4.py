"""The same program, with netCDF4-python on a file of netCDF-4 and with omnizarr on NCZarr: it gets the same."""

import itertools
from pathlib import Path

import netCDF4
import numpy as np
import pytest

from omnizarr import netcdf

MARKS = np.array([1, 2, -9, 4], "i2")


def base(make):
    """Return a dataset with two dimensions, one of them unlimited."""
    ds = make()
    ds.createDimension("t", None)
    ds.createDimension("x", 4)
    return ds


def reading(attributes, data, selection=..., dtype="i2", fill=None, **settings):
    """Return a program that stores data raw, and reads it as attributes say."""

    def program(make):
        ds = base(make)
        v = ds.createVariable("v", dtype, ("x",), fill_value=fill)
        v.set_auto_maskandscale(False)
        v[:] = data
        v.setncatts(attributes)
        v.set_auto_maskandscale(True)
        for name, value in settings.items():
            getattr(v, name)(value)
        return v[selection]

    return program


def writing(attributes, data, dtype="i2", fill=None):
    """Return a program that stores data as attributes say, and reads it raw."""

    def program(make):
        ds = base(make)
        v = ds.createVariable("v", dtype, ("x",), fill_value=fill)
        v.setncatts(attributes)
        v[:] = data
        v.set_auto_maskandscale(False)
        return v[:]

    return program


def growing(selection, data, dtype="f8", before=None):
    """Return a program that writes past the end."""

    def program(make):
        ds = base(make)
        v = ds.createVariable("v", dtype, ("t", "x"))
        w = ds.createVariable("w", "i4", ("t",))
        if before is not None:
            v[:] = before
        v[selection] = data
        return v.shape, w.shape, len(ds.dimensions["t"]), v[:], w[:]

    return program


def attribute(value):
    """Return a program that sets an attribute, and gets it."""

    def program(make):
        ds = base(make)
        ds.a = value
        v = ds.createVariable("v", "f4", ())
        v.setncattr("a", value)
        return ds.a, v.getncattr("a"), ds.ncattrs(), v.ncattrs()

    return program


def facts(**options):
    """Return a program that makes a variable, and tells what it is."""

    def program(make):
        ds = base(make)
        v = ds.createVariable("v", "f4", ("t", "x"), **options)
        v[0:3] = np.arange(12).reshape(3, 4) / 7
        said = v.endian() if "endian" in options else None, v.chunking() if "chunksizes" in options else None
        return v.filters(), v.quantization(), *said, v[:]

    return program


def names(make):
    ds = base(make)
    g = ds.createGroup("a/b")
    g.createDimension("y", 2)
    v = g.createVariable("v", "i4", ("t", "y"))
    w = ds.createVariable("/a/c/w", "u1", ("x",))
    return (
        (g.path, g.name, g.parent.path, ds.path, ds.name, ds.parent, v.name, v.group().path, w.group().path),
        (list(ds.groups), list(ds.dimensions), list(ds["a"].groups), list(g.variables), ds["a/b/v"].dimensions),
        (v.ndim, v.size, v.shape, v.dimensions, [each.name for each in v.get_dims()], v.get_dims()[0].group().path),
        (ds.dimensions["t"].isunlimited(), ds.dimensions["x"].isunlimited(), len(ds.dimensions["x"]), ds.data_model),
        (ds["/a/b"].path, ds["a"]["b"].path, g["v"].name, ds.isopen()),
    )


def renaming(make):
    ds = base(make)
    ds.createGroup("g").createDimension("y", 2)
    v = ds.createVariable("v", "i4", ("x",))
    w = ds["g"].createVariable("w", "i4", ("x", "y"))
    v[:] = [1, 2, 3, 4]
    w[:] = np.arange(8).reshape(4, 2)
    v.a = 1
    ds.b = 2
    ds.renameDimension("x", "xx")
    ds.renameVariable("v", "vv")
    ds.renameGroup("g", "gg")
    v.renameAttribute("a", "aa")
    ds.renameAttribute("b", "bb")
    ds["gg"].renameDimension("y", "yy")
    return (
        *(list(ds.variables), list(ds.dimensions), list(ds.groups), ds.ncattrs(), v.ncattrs(), v.name, v.dimensions),
        *(w.dimensions, v[:], ds["gg/w"][:]),  # netCDF4-python goes on with the old path
    )


def scalars(make):
    ds = base(make)
    v = ds.createVariable("v", "f8", ())
    empty = v[...]
    v.assignValue(3.5)
    return empty, v[...], v[:], v[0], v.getValue(), v.shape, v.ndim, v.size, v.dimensions, v.chunking()


def strings(make):
    ds = base(make)
    v = ds.createVariable("v", str, ("t", "x"))
    v[0] = np.array(["a", "bb", "", "Zürich"], object)
    v[1, 2] = "one"
    s = ds.createVariable("s", str, ())
    s[...] = "scalar"
    return v[:], v[0, 3], v[1], v.dtype, v.shape, s[...], v[:, 1:3]


def chars(make):
    ds = base(make)
    ds.createDimension("n", 5)
    v = ds.createVariable("v", "S1", ("x", "n"))
    v[:] = netCDF4.stringtochar(np.array(["ab", "c", "", "vwxyz"], "S5"))
    raw = v[:]
    v._Encoding = "ascii"
    v[1] = np.array("hello", "S5")
    return raw, v[:], v[0], v.dtype, v[1:3]


def by_attributes(make):
    ds = base(make)
    for name, axis in (("a", "X"), ("b", "Y"), ("c", None)):
        v = ds.createVariable(name, "i4", ())
        if axis is not None:
            v.axis = axis
    found = (
        ds.get_variables_by_attributes(axis="X"),
        ds.get_variables_by_attributes(axis=lambda a: a in ("X", "Y")),
        ds.get_variables_by_attributes(axis=lambda a: a is None),
        ds.get_variables_by_attributes(nothing="X"),
    )
    return [[v.name for v in each] for each in found]


def switches(make):
    ds = base(make)
    v = ds.createGroup("g").createVariable("v", "i2", ("x",), fill_value=-9)
    v.scale_factor = np.float32(0.5)
    v.set_auto_maskandscale(False)
    v[:] = MARKS
    found = []
    for mask, scale in ((True, False), (False, True), (False, False)):
        ds.set_auto_mask(mask)
        ds.set_auto_scale(scale)
        found.append(v[:])
    ds.set_auto_maskandscale(True)
    ds.set_always_mask(False)
    return [*found, v[:2], v[:], v.mask, v.scale, v.always_mask, v.chartostring]


def deleting(make):
    ds = base(make)
    v = ds.createVariable("v", "i4", ())
    v.a, v.b, ds.c = 1, "x", 2.5
    del v.a
    v.delncattr("b")
    del ds.c
    return v.ncattrs(), ds.ncattrs(), v.__dict__, hasattr(v, "a")


def shared(make):
    ds = base(make)
    ds.createDimension("u", None)
    a = ds.createVariable("a", "i4", ("t", "u"))
    b = ds.createGroup("g").createVariable("b", "i2", ("u",), fill_value=0)
    a[1, 2] = 7
    b[5] = 3
    return a.shape, b.shape, a[:, :3].shape, b[:]  # netCDF-C reads garbage where the inner dimension grew


def paths(make):
    """Paths with dots in them."""
    ds = base(make)
    g = ds.createGroup("./a/./b/../c")
    g.createVariable("./d/v", "i4", ("x",))
    ds.createVariable("./w", "i4", ())
    return (
        g.path,
        list(ds.groups),
        list(g.groups),
        ds["./a/c/d/../d/v"].group().path,
        list(ds.variables),
        ds["./w"].name,
    )


def filling(make):
    """Fill values that are given in other ways than as a number of the type."""
    ds = base(make)
    found = []
    for name, dtype, fill in (("a", "f8", "default"), ("b", "i2", "default"), ("c", "S1", 1.0), ("d", "S1", 7)):
        v = ds.createVariable(name, dtype, ("x",), fill_value=fill)
        found.append((v._FillValue, v.get_fill_value()))
    ds.set_fill_off()
    kept = ds.createVariable("kept", "i4", ("x",), fill_value=3)
    ds.set_fill_on()
    on = ds.createVariable("on", "i4", ("x",))
    return found, kept.get_fill_value(), on.get_fill_value(), on[:]


def scalar_kinds(dtype, value):
    """Return a program that tells of which kind a scalar is, whatever is masked and scaled."""

    def program(make):
        ds = base(make)
        v = ds.createVariable("v", dtype, ())
        if value is not None:
            v[...] = value
        kinds = []
        for mask, scale, always in itertools.product([True, False], repeat=3):
            v.set_auto_mask(mask)
            v.set_auto_scale(scale)
            v.set_always_mask(always)
            kinds += [
                (type(v[each]).__name__, np.shape(v[each]), np.asarray(v[each]).dtype) for each in (..., slice(None))
            ]
        return kinds

    return program


FLOATS = np.array([[0.5, 1e30, -1.25, np.inf], [1, 2, 3, 4]], "f8")
PROGRAMS = {
    "missing_value": reading({"missing_value": np.int16(2)}, MARKS),
    "missing_value of several": reading({"missing_value": np.array([2, 4], "i2")}, MARKS),
    "_FillValue": reading({}, MARKS, fill=-9),
    "default fill": reading({}, np.array([1, -32767, 3, 4], "i2")),
    "bytes have no default fill": reading({}, np.array([1, -127, 3, 4], "i1"), dtype="i1"),
    "valid_min": reading({"valid_min": np.int16(2)}, MARKS),
    "valid_range": reading({"valid_range": np.array([1, 2], "i2")}, MARKS),
    "scale_factor": reading({"scale_factor": np.float32(0.25)}, MARKS, fill=-9),
    "add_offset": reading({"add_offset": 10.0}, MARKS),
    "scale and offset": reading({"scale_factor": 0.1, "add_offset": 273.15}, MARKS, fill=-9),
    "_Unsigned": reading({"_Unsigned": "true", "scale_factor": 2.0}, MARKS),
    "nan fill": reading({}, np.array([1, np.nan, 3, 4]), dtype="f8", fill=np.nan),
    "one masked value": reading({}, MARKS, 2, fill=-9),
    "one value": reading({}, MARKS, 0, fill=-9),
    "not always masked": reading({}, MARKS, slice(2), fill=-9, set_always_mask=False),
    "lists": reading({}, MARKS, [0, 3]),
    "masks": reading({}, MARKS, np.array([True, False, True, True])),
    "steps": reading({}, MARKS, slice(None, None, -2)),
    "pack": writing({"scale_factor": 0.5, "add_offset": 1.0}, [1.0, 2.26, 3.5, -4]),
    "pack masked": writing({"scale_factor": 0.5}, np.ma.masked_equal([1.0, 2, 3, 4], 3), fill=-9),
    "masked without attributes": writing({}, np.ma.masked_equal(MARKS, 2)),
    "masked with missing_value": writing({"missing_value": np.int16(-1)}, np.ma.masked_equal(MARKS, 2)),
    "floats into integers": writing({}, np.array([1.6, -1.6, 2.5, 3.0]), "i4"),
    "grow all": growing(slice(None), FLOATS),
    "grow one": growing(3, FLOATS[0]),
    "grow a slice": growing(slice(1, 4), 7.0),
    "grow a corner": growing((5, 2), 1.5),
    "grow from the end": growing(slice(2, None), FLOATS, before=FLOATS),
    "grow with a step": growing(slice(0, 5, 2), 1.0, before=FLOATS),
    "overwrite": growing((0, slice(1, 3)), [8, 9], before=FLOATS),
    "attribute int": attribute(7),
    "attribute float": attribute(0.5),
    "attribute text": attribute("some text, Zürich"),
    "attribute int16": attribute(np.int16(-3)),
    "attribute float32s": attribute(np.array([0.1, 1e30], "f4")),
    "attribute uint64": attribute(np.uint64(2**64 - 1)),
    "attribute list": attribute([1, 2, 3]),
    "attribute strings": attribute(["a", "bc", ""]),
    "attribute nan": attribute(np.array([np.nan, np.inf, -np.inf])),
    "attribute bytes": attribute(np.array([-1, 2], "i1")),
    "attribute tuple": attribute((1.5, 2.5)),
    "attribute empty text": attribute(""),
    "attribute like JSON": attribute('{"a": [1,2]}'),
    "attribute like a number": attribute("42"),
    "attribute like a float": attribute("1.50"),
    "zlib": facts(zlib=True, complevel=3, chunksizes=(2, 3)),
    "compression": facts(compression="zlib", shuffle=False, fletcher32=True),
    "zstd": facts(compression="zstd", complevel=7),
    "bzip2": facts(compression="bzip2", complevel=2),
    "blosc": facts(compression="blosc_lz4", complevel=4, blosc_shuffle=2),
    "big": facts(endian="big"),
    "little": facts(endian="little"),
    "quantize": facts(zlib=True, significant_digits=3),
    "quantize bits": facts(zlib=True, significant_digits=5, quantize_mode="BitRound"),
    "granular": facts(zlib=True, significant_digits=2, quantize_mode="GranularBitRound"),
    "least significant digit": facts(zlib=True, least_significant_digit=2),
    "scalar of floats": scalar_kinds("f8", 10.0),
    "scalar of integers": scalar_kinds("i4", 3),
    "scalar of nothing": scalar_kinds("i2", None),
    "scalar of bytes": scalar_kinds("u1", 255),
    "scalar of characters": scalar_kinds("S1", "a"),
    "scalar of text": scalar_kinds(str, "ab"),
    "paths": paths,
    "filling": filling,
    "names": names,
    "renaming": renaming,
    "scalars": scalars,
    "strings": strings,
    "chars": chars,
    "by attributes": by_attributes,
    "switches": switches,
    "deleting": deleting,
    "shared": shared,
}


def same(ours, theirs):
    if isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            same(one, other)
        return
    if theirs is np.ma.masked:
        assert ours is np.ma.masked
        return
    if isinstance(theirs, np.ma.MaskedArray):
        assert isinstance(ours, np.ma.MaskedArray)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(np.ma.getmaskarray(ours), np.ma.getmaskarray(theirs))
        np.testing.assert_array_equal(ours.filled(), theirs.filled())
        return
    if isinstance(theirs, np.ndarray | np.generic):
        assert type(ours) is type(theirs) or (np.ndim(ours) == np.ndim(theirs) == 0)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
        return
    assert ours == theirs
    assert type(ours) is type(theirs) or isinstance(theirs, str | dict)


@pytest.mark.filterwarnings("ignore:endian-ness of dtype")  # netCDF4-python means the one that is not given
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("layout", ["D", "v3"])
def test_program_gets_the_same(name, layout, tmp_path):
    program = PROGRAMS[name]
    ours = program(lambda: netcdf.Dataset(tmp_path / "x.zarr", "w", layout=layout))
    theirs = program(lambda: netCDF4.Dataset(tmp_path / "x.nc", "w"))
    same(ours, theirs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_leaves_a_dataset_that_opens_as_it_was(name, tmp_path):
    kept = []

    def make():
        kept.append(netcdf.Dataset(tmp_path / "x.zarr", "w"))
        return kept[0]

    PROGRAMS[name](make)
    with netcdf.Dataset(tmp_path / "x.zarr") as again:
        assert again.header == kept[0].header


def failing(do):
    def program(make):
        ds = base(make)
        v = ds.createVariable("v", "i4", ("t", "x"))
        v[0] = [1, 2, 3, 4]
        do(ds, v)

    return program


ERRORS = {
    "no attribute": (lambda ds, v: ds.nothing, AttributeError),
    "no attribute of a variable": (lambda ds, v: v.nothing, AttributeError),
    "no attribute to delete": (lambda ds, v: v.delncattr("nothing"), (AttributeError, RuntimeError)),
    "no variable": (lambda ds, v: ds["nothing"], (IndexError, KeyError)),
    "no dimension": (lambda ds, v: ds.createVariable("w", "i4", ("nothing",)), (ValueError, KeyError)),
    "no type": (lambda ds, v: ds.createVariable("w", "c16"), (ValueError, TypeError)),
    "variable twice": (lambda ds, v: ds.createVariable("v", "i4"), (RuntimeError, ValueError)),
    "dimension twice": (lambda ds, v: ds.createDimension("x", 3), (RuntimeError, ValueError)),
    "index outside": (lambda ds, v: v[0, 9], IndexError),
    "too many indices": (lambda ds, v: v[0, 0, 0], (IndexError, ValueError)),
    "wrong shape": (lambda ds, v: v.__setitem__(slice(None), np.zeros((2, 3))), (IndexError, ValueError)),
    "write outside": (lambda ds, v: v.__setitem__((0, 7), 1), (IndexError, RuntimeError)),
    "fill value late": (lambda ds, v: v.setncattr("_FillValue", 3), (AttributeError, AttributeError)),
    "bad name": (lambda ds, v: ds.createDimension("a/b", 3), (RuntimeError, ValueError)),
    "value of a vector": (lambda ds, v: v.getValue(), IndexError),
    "text into numbers": (lambda ds, v: v.__setitem__(0, ["a", "b", "c", "d"]), (ValueError, TypeError)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error_is_one_that_callers_catch(name, tmp_path):
    do, kinds = ERRORS[name]
    with pytest.raises(kinds):
        failing(do)(lambda: netcdf.Dataset(tmp_path / "x.zarr", "w"))
    with pytest.raises(kinds):
        failing(do)(lambda: netCDF4.Dataset(tmp_path / "x.nc", "w"))


@pytest.mark.parametrize("library", [netcdf, netCDF4])
def test_group_is_made_by_its_class(library, tmp_path):
    with library.Dataset(tmp_path / "x", "w", keepweakref=True) as ds:
        group = library.Group(ds, "g")
        assert (ds.keepweakref, group.keepweakref, ds._isopen) == (True, True, 1)
        library.Group(group, "below").title = "a"
        assert "g" in ds.groups or library is netCDF4  # which knows it when the dataset is opened again
        assert (group.path, group.parent) == ("/g", ds)
        assert isinstance(group, library.Group)
    assert ds._isopen == 0
    with library.Dataset(tmp_path / "x") as ds:
        assert not ds.keepweakref
        assert ds["g/below"].title == "a"
        with pytest.raises(RuntimeError):
            library.Group(ds, "h")


@pytest.mark.parametrize("library", [netcdf, netCDF4])
def test_bytes_are_values_where_filling_is_off(library, tmp_path):
    with library.Dataset(tmp_path / "x", "w") as ds:
        ds.set_fill_off()
        ds.createDimension("x", 2)
        for name, dtype in (("bytes", "u1"), ("doubles", "f8")):
            ds.createVariable(name, dtype, ("x",))[:] = np.ma.masked_all(2, dtype)
    with library.Dataset(tmp_path / "x") as ds:
        assert not ds["bytes"][:].mask.any()
        assert ds["doubles"][:].mask.all()


def test_filling_is_off_for_variables_that_are_made_then():
    with netcdf.Dataset({}, "w") as ds:
        ds.set_fill_off()
        for name, dtype in (("number", "i4"), ("char", "S1"), ("string", str)):
            ds.createVariable(name, dtype, ())
        assert ds["number"].get_fill_value() is None
        assert ds.createVariable("own", "i4", (), fill_value="default").get_fill_value() == -2147483647
        assert ds["string"][...] == ""


@pytest.mark.parametrize("library", [netcdf, netCDF4])
def test_filters_are_there(library, tmp_path):
    with library.Dataset(tmp_path / "x", "w") as ds:
        for name in ("zstd", "bzip2", "blosc", "szip"):
            assert getattr(ds, f"has_{name}_filter")()
            options = {"compression": "blosc_lz4" if name == "blosc" else name}
            assert ds.createVariable(name, "f4", (), **options).shape == ()


def test_szip_is_missing_without_its_package(monkeypatch):
    from omnizarr.netcdf import dataset

    monkeypatch.setattr(dataset, "find_spec", lambda name: None)
    assert not netcdf.Dataset({}, "w").has_szip_filter()


@pytest.mark.parametrize("library", [netcdf, netCDF4])
def test_cache_of_chunks_is_set_for_datasets_that_are_opened_later(library, tmp_path):
    before = library.get_chunk_cache()
    try:
        assert before == (64 * 2**20, 1000, 0.75)
        library.set_chunk_cache(10_000, preemption=0.5)
        assert library.get_chunk_cache() == (10_000, 1000, 0.5)
        with library.Dataset(tmp_path / "x", "w") as ds:
            ds.createDimension("x", 4)
            v = ds.createVariable("v", "i4", ("x",), chunksizes=(2,), zlib=True)
            assert v.get_var_chunk_cache() == (10_000, 1000, 0.5)
            v.set_var_chunk_cache(20_000, 200, 1.0)
            assert v.get_var_chunk_cache() == (20_000, 200, 1.0)
            v.set_var_chunk_cache(nelems=10)
            assert v.get_var_chunk_cache() == (20_000, 10, 1.0)
    finally:
        library.set_chunk_cache(*before)


@pytest.mark.parametrize("arguments", [(-1,), (1, -1), (1, 1, 2.0), (1, 1, -0.5)], ids=str)
def test_cache_that_is_none_is_refused(arguments):
    before = netcdf.get_chunk_cache()
    with pytest.raises(ValueError, match="expected"):
        netcdf.set_chunk_cache(*arguments)
    assert netcdf.get_chunk_cache() == before


@pytest.mark.parametrize("library", [netcdf, netCDF4])
def test_what_writes_nothing_may_be_done_to_a_dataset_that_is_read(library, tmp_path):
    with library.Dataset(tmp_path / "x", "w") as ds:
        ds.createDimension("x", 4)
        ds.createVariable("v", "i4", ("x",))[:] = [1, 2, 3, 4]
    with library.Dataset(tmp_path / "x") as ds:
        for nothing in (np.zeros(0, int), slice(0), np.zeros(4, bool)):
            ds["v"][nothing] = 5
        with pytest.raises(RuntimeError):
            ds["v"][0] = 5
        with pytest.raises(RuntimeError):
            ds.createDimension("y", 2)
        assert ds["v"][:].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("fill", [1.5, 12, -1, "ab"], ids=str)
def test_fill_value_of_characters_is_one(fill):
    """netCDF4-python takes the first character."""
    with pytest.raises(ValueError, match="no fill value"):
        netcdf.Dataset({}, "w").createVariable("v", "S1", (), fill_value=fill)


def test_missing_dataset_is_a_missing_file_to_both(tmp_path):
    for library in (netcdf, netCDF4):
        with pytest.raises(FileNotFoundError):
            library.Dataset(tmp_path / "nothing.x")
    assert not list(Path(tmp_path).iterdir())
