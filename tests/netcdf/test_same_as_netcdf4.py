"""The same program, with netCDF4-python on a file of netCDF-4 and with omnizarr on NCZarr: it gets the same."""

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
    "fill value late": (lambda ds, v: v.setncattr("_FillValue", 3), (AttributeError, ValueError)),
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


def test_missing_dataset_is_a_missing_file_to_both(tmp_path):
    for library in (netcdf, netCDF4):
        with pytest.raises(FileNotFoundError):
            library.Dataset(tmp_path / "nothing.x")
    assert not list(Path(tmp_path).iterdir())
