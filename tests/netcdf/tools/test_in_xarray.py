"""netCDF files that other programs wrote, as Zarr: xarray, zarr-python and netCDF-C see what they see in the file."""

import warnings

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

import omnizarr
from omnizarr import netcdf
from omnizarr.netcdf.files import writing
from tests.netcdf.foreign import WRITERS, texts

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::UserWarning"),  # of zarr-python: data types that are not part of the core
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::xarray.SerializationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

FORMATS = [2, 3]
TARGETS = {"": "{}", "pure": "file://{}#mode=zarr", "for netCDF-C": "file://{}#mode=nczarr"}
OTHERWISE = {
    # Attributes of Zarr have no types: what is packed by single precision is unpacked to double.
    "netCDF4 packed i2 by float": {2, 3},
    # In Zarr v2 strings are bytes until they are decoded, and characters along the same dimension become one text.
    "h5netcdf strings": {2},
    # The attribute _nczarr_maxstrlen, which xarray hides in Zarr v2.
    "netCDF4 strings called shorter": {2},
}
"""Where xarray sees something else than in the file, and why."""
PURE = [
    *["netCDF4 f4 with fill value", "netCDF4 i8", "netCDF4 packed i2", "netCDF4 signed u1", "netCDF4 big-endian"],
    *["netCDF4 char", "netCDF4 char with fill value", "netCDF4 string", "netCDF4 string with fill value"],
    *["netCDF4 scalar i4", "netCDF4 scalar string", "netCDF4 unlimited", "netCDF4 coordinates", "netCDF4 groups"],
    *["netCDF4 attributes", "netCDF4 empty attributes", "netCDF4 odd texts as attributes", "netCDF4 zlib"],
    *["xarray netcdf4 floats", "xarray netcdf4 bool", "xarray netcdf4 texts", "xarray netcdf4 times"],
]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return the path of a file that a writer made, and what xarray sees in it."""
    folder = tmp_path_factory.mktemp("foreign")
    made = {}

    def write(name):
        if name not in made:
            path = folder / f"{len(made)}.nc"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                WRITERS[name](path)
                made[name] = path, groups(path, "netcdf4")
        return made[name]

    return write


@pytest.fixture(scope="module")
def converted(written, tmp_path_factory):
    """Return the path of a file as Zarr, and the account."""
    folder = tmp_path_factory.mktemp("zarr")
    made = {}

    def convert(name, zarr_format, target=""):
        key = name, zarr_format, target
        if key not in made:
            path = folder / f"{len(made)}.zarr"
            made[key] = path, omnizarr.convert(written(name)[0], TARGETS[target].format(path), zarr_format=zarr_format)
        return made[key]

    return convert


def groups(path, engine):
    """Return all groups of a dataset as xarray shows them, in memory."""
    options = {"consolidated": False} if engine == "zarr" else {}
    opened = xr.open_groups(path, engine=engine, **options)
    loaded = {name.rstrip("/"): each.load() for name, each in opened.items()}
    for each in opened.values():
        each.close()
    return loaded


def differences(one, other):
    """Return where two hierarchies differ for xarray: in values, data types, names of dimensions, attributes."""
    if one.keys() != other.keys():
        return [f"groups {sorted(one)}, {sorted(other)}"]
    found = []
    for name, dataset in one.items():
        if not dataset.identical(other[name]):
            found.append(f"{name}: {dataset}\n{other[name]}")
            continue
        for each in dataset.variables:
            types = kind(dataset[each]), kind(other[name][each])
            if types[0] != types[1]:
                found.append(f"{name}/{each}: {types}")
    return found


def kind(variable):
    """Return a data type without its byte order; text is text, whether of a fixed length or not."""
    dtype = variable.dtype
    return "text" if dtype.kind in "OUT" else dtype.newbyteorder("=")


def seen(path):
    """Return all that netCDF4-python sees, but for how it is stored."""
    with netCDF4.Dataset(path) as dataset:
        dataset.set_auto_maskandscale(False)
        dataset.set_auto_chartostring(False)
        return seen_group(dataset)


def seen_group(group):
    return {
        "dimensions": {name: (len(each), each.isunlimited()) for name, each in group.dimensions.items()},
        "attributes": {name: repr(group.getncattr(name)) for name in group.ncattrs()},
        "variables": {name: seen_variable(each) for name, each in group.variables.items()},
        "groups": {name: seen_group(each) for name, each in group.groups.items()},
    }


def seen_variable(variable):
    attributes = {name: repr(variable.getncattr(name)) for name in variable.ncattrs()}
    return str(variable.dtype), variable.dimensions, attributes, repr(np.asarray(variable[...]).tolist())


# From a file to Zarr


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("name", WRITERS)
def test_xarray_sees_what_it_sees_in_the_file(written, converted, name, zarr_format):
    path, _ = converted(name, zarr_format)
    found = differences(written(name)[1], groups(path, "zarr"))
    assert bool(found) == (zarr_format in OTHERWISE.get(name, ())), "\n".join(found)


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("name", PURE)
def test_xarray_sees_what_it_sees_in_the_file_without_nczarr(written, converted, name, zarr_format):
    path, _ = converted(name, zarr_format, "pure")
    assert differences(written(name)[1], groups(path, "zarr")) == []


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("name", WRITERS)
def test_zarr_python_reads_every_array(written, converted, name, zarr_format):
    _, expected = written(name)
    root = zarr.open_group(converted(name, zarr_format)[0], mode="r", zarr_format=zarr_format)
    arrays = {f"/{where}": each for where, each in root.members(max_depth=None) if isinstance(each, zarr.Array)}
    assert arrays.keys() == {f"{group}/{each}" for group, found in expected.items() for each in found.variables}
    for each in arrays.values():
        assert np.shape(each[...]) == each.shape


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("name", WRITERS)
def test_file_comes_back_as_it_was(written, converted, tmp_path, name, zarr_format):
    path, there = converted(name, zarr_format)
    back = omnizarr.convert(path, tmp_path / "back.nc")
    before, after = seen(written(name)[0]), seen(tmp_path / "back.nc")
    if name == "netCDF4 strings called shorter" and zarr_format == 2:
        (loss,) = there.losses
        assert (loss.pointer, loss.kept) == ("/attributes/_nczarr_maxstrlen", "int [6]")
        before["variables"]["v"][2]["_nczarr_maxstrlen"] = repr(np.int32(6))
    else:
        assert there.losses == ()
    assert back.losses == ()
    assert after == before


@pytest.mark.parametrize("name", WRITERS)
def test_netcdf_c_reads_what_is_written_for_it(written, converted, name):
    path, done = converted(name, 2, "for netCDF-C")
    expected, found = seen(written(name)[0]), seen(f"file://{path}#mode=nczarr,file")
    for loss in done.losses:  # a width of strings that is too small, blanks in JSON
        assert loss.path == "v"
        for each in (expected, found):
            del each["variables"]["v"][2][loss.pointer.removeprefix("/attributes/")]
    assert found == expected


@pytest.mark.parametrize("name", WRITERS)
def test_netcdf_c_reads_numbers_and_strings_of_what_xarray_reads_too(written, converted, name):
    expected, found = dict(flat(seen(written(name)[0]))), seen_or_none(converted(name, 2)[0])
    other = {where for where, (dtype, dimensions, *_) in expected.items() if dtype == "|S1" or not dimensions}
    if found is None:  # netCDF4-python decodes strings, and some are bytes of characters
        assert other
        return
    theirs = dict(flat(found))
    for where, (dtype, dimensions, attributes, values) in expected.items():
        if where not in other:
            kept = {each: value for each, value in theirs[where][2].items() if each in attributes}
            assert theirs[where][2].keys() - attributes.keys() <= {"_Encoding"}
            for each in (kept, attributes):
                each.pop("_nczarr_maxstrlen", None)
            assert (*theirs[where][:2], kept, theirs[where][3]) == (dtype, dimensions, attributes, values)


def seen_or_none(path):
    try:
        return seen(f"file://{path}#mode=nczarr,file")
    except UnicodeDecodeError:
        return None


def flat(group, path=""):
    found = [(f"{path}/{name}", each) for name, each in group["variables"].items()]
    for name, each in group["groups"].items():
        found += flat(each, f"{path}/{name}")
    return found


# Reports


@pytest.mark.parametrize(
    ("name", "zarr_format", "target", "told"),
    [
        ("netCDF4 scalar i4", 2, "", "netCDF-C leaves out scalars of Zarr"),
        ("netCDF4 scalar i4", 2, "for netCDF-C", "see a scalar of NCZarr as a vector"),
        ("netCDF4 char", 2, "", "netCDF-C sees strings of one byte"),
        ("netCDF4 char", 2, "for netCDF-C", "cannot open char"),
        ("netCDF4 string", 2, "", "zarr-python sees bytes"),
        ("netCDF4 string", 2, "for netCDF-C", "xarray sees strings of NCZarr as bytes"),
        ("netCDF4 char with fill value", 3, "", "xarray does not mask single characters"),
        ("netCDF4 packed i2 by float", 3, "", "scale_factor and add_offset become double: for xarray"),
        ("netCDF4 zlib", 3, "", "shuffle and zlib become blosc"),
        ("netCDF4 zlib without shuffle", 3, "", "zlib become gzip"),
        ("netCDF4 checksums", 3, "", "fletcher32 become crc32c"),
        ("netCDF4 szip", 2, "", "szip become zlib"),
        ("netCDF4 empty attributes", 2, "for netCDF-C", "NULs at the end of text are left out: text"),
    ],
)
def test_what_a_reader_sees_otherwise_is_reported(written, tmp_path, name, zarr_format, target, told):
    path, _ = written(name)
    done = omnizarr.convert(path, TARGETS[target].format(tmp_path / "new.zarr"), zarr_format=zarr_format, dry_run=True)
    assert told in str(done)
    assert done.losses == ()


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("name", ["netCDF4 f4 with fill value", "netCDF4 unlimited", "netCDF4 attributes"])
def test_nothing_is_reported_what_all_see_equally(converted, name, zarr_format):
    _, done = converted(name, zarr_format)
    assert [node.remarks for node in done.nodes if node.remarks] == []


# What stopped conversions


@pytest.mark.parametrize("options", [{}, {"chunksizes": (300,)}, {"zlib": True}, {"compression": "zstd"}], ids=str)
@pytest.mark.parametrize("target", ["new.zarr", "new.nc"])
@pytest.mark.parametrize("code", ["i4", "f8", "S1"])
def test_variables_without_fill_that_were_never_written_are_zeros(tmp_path, options, target, code):
    with netCDF4.Dataset(tmp_path / "old.nc", "w") as dataset:
        dataset.createDimension("x", 1000)
        dataset.createDimension("t", None)
        dataset.createVariable("v", code, ("x",), fill_value=False, **options)
        part = dataset.createVariable("part", code, ("t",), fill_value=False, chunksizes=(10,))
        part[25:27] = np.array([1, 2]).astype(code)
    done = omnizarr.convert(tmp_path / "old.nc", tmp_path / target)
    assert done.verified
    opened = netCDF4.Dataset if target == "new.nc" else netcdf.Dataset
    with opened(tmp_path / target) as dataset:
        dataset.set_auto_maskandscale(False)
        assert np.asarray(dataset["v"][...]).tobytes() == bytes(1000 * np.dtype(code).itemsize)
        assert np.asarray(dataset["part"][:20]).tobytes() == bytes(20 * np.dtype(code).itemsize)
        assert np.asarray(dataset["part"][25:27]).tolist() == np.array([1, 2]).astype(code).tolist()


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_strings_that_are_no_utf8_are_reported_in_v3(tmp_path, zarr_format):
    with netCDF4.Dataset(tmp_path / "old.nc", "w") as dataset:
        dataset.createDimension("x", 2)
        dataset.createVariable("v", str, ("x",))[:] = texts("a", "b")
    with h5py.File(tmp_path / "old.nc", "r+") as file:
        file["v"][0] = b"\xff\xfe"
    assert omnizarr.open_array(tmp_path / "old.nc/v", mode="r")[...].tolist() == ["\ufffd" * 2, "b"]
    done = omnizarr.convert(tmp_path / "old.nc", tmp_path / "new.zarr", zarr_format=zarr_format)
    assert done.verified
    assert [each.what for each in done.losses] == [[], ["bytes of strings that are not UTF-8"]][zarr_format == 3]
    array = zarr.open_array(tmp_path / "new.zarr/v", mode="r")
    assert array[...].tolist() == [[b"\xff\xfe", b"b"], ["\ufffd" * 2, "b"]][zarr_format == 3]


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_attributes_that_are_no_utf8_keep_their_bytes_with_a_remark(tmp_path, zarr_format):
    """A degree sign in Latin-1. TensorStore and zarrs do not parse the document."""
    units = np.bytes_("°C".encode("latin-1"))
    with h5py.File(tmp_path / "old.h5", "w") as file:
        file["x"] = [1.5]
        file["x"].attrs["units"] = units
    with netCDF4.Dataset(tmp_path / "old.h5") as dataset:
        assert dataset["x"].units == omnizarr.open_array(tmp_path / "old.h5/x", mode="r").attrs["units"] == "\ufffdC"
    done = omnizarr.convert(tmp_path / "old.h5", tmp_path / "new.zarr", zarr_format=zarr_format)
    (remark,) = next(node for node in done.nodes if node.path == "x").remarks
    assert remark.startswith("texts that are not UTF-8")
    assert remark.endswith(": units")
    assert [each.code for each in omnizarr.check(tmp_path / "new.zarr")] == ["half-surrogate"]
    omnizarr.convert(tmp_path / "new.zarr", tmp_path / "back.h5")
    with h5py.File(tmp_path / "back.h5") as file:
        assert file["x"].attrs["units"] == units
    tensorstore = pytest.importorskip("tensorstore")
    if zarr_format == 3:
        with pytest.raises(ValueError, match="Invalid JSON"):
            tensorstore.open({"driver": "zarr3", "kvstore": f"file://{tmp_path}/new.zarr/x/"}).result()


# From Zarr to a file


def dataset_of_xarray():
    data = xr.Dataset(
        {
            "i": ("x", [1, 2, 3]),
            "f": ("x", np.array([1, np.nan, 3], "f4"), {"units": "m"}),
            "b": ("x", [True, False, True]),
            "text": ("x", np.array(["a", "Größe", ""], object)),
            "packed": ("x", [0.5, np.nan, 1.5]),
            "masked": ("x", [1.0, np.nan, 3.0]),
            "default": ("x", np.array([1, np.nan, 3], "f4")),
            "t": ("x", np.array(["2000-01-01", "NaT", "2000-01-03"], "M8[ns]")),
            "d": ("x", np.array([1, 2, 3], "m8[s]").astype("m8[ns]")),
            "s": ((), 5),
        },
        coords={"x": [1.5, 2.5, 3.5]},
        attrs={"title": "xarray", "number": 1.5},
    )
    data["packed"].encoding = {"dtype": "i2", "_FillValue": -99, "scale_factor": 0.5}
    data["masked"].encoding = {"dtype": "i4", "_FillValue": 2}
    data["default"].encoding = {"_FillValue": np.float32(netCDF4.default_fillvals["f4"])}
    return data


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_xarray_sees_in_the_file_what_it_wrote_to_zarr(tmp_path, zarr_format):
    dataset_of_xarray().to_zarr(tmp_path / "old.zarr", zarr_format=zarr_format, consolidated=False)
    done = omnizarr.convert(tmp_path / "old.zarr", tmp_path / "new.nc")
    assert done.losses == ()
    assert differences(groups(tmp_path / "old.zarr", "zarr"), groups(tmp_path / "new.nc", "netcdf4")) == []


@pytest.mark.parametrize(
    ("fill", "name"), [(np.float32(np.nan), "f"), (np.int16(-99), "packed"), (np.int32(2), "masked")]
)
def test_netcdf_sees_the_mask_that_xarray_wrote_in_v3(tmp_path, fill, name):
    dataset_of_xarray()[[name]].to_zarr(tmp_path / "old.zarr", zarr_format=3, consolidated=False)
    with netcdf.Dataset(tmp_path / "old.zarr") as dataset:
        found = dataset[name]._FillValue
        assert (found.dtype, repr(found)) == (fill.dtype, repr(fill))
        assert dataset[name][...].mask.tolist() == [False, True, False]


@pytest.mark.parametrize("compressor", ["blosc", "zstd", "gzip"])
@pytest.mark.parametrize("zarr_format", FORMATS)
def test_every_usual_compressor_of_zarr_becomes_a_file(tmp_path, compressor, zarr_format):
    made = omnizarr.create_group(tmp_path / "old.zarr", zarr_format=zarr_format)
    random = np.random.default_rng(1)
    for name, data in {
        "tiny": np.array([3, 141, 59], "u1"),
        "random": random.integers(0, 256, 3000, "u1"),
        "regular": np.arange(3000, dtype="i4"),
        "text": np.array(["a", "b"], "T"),
        "large": random.integers(0, 2**63, 2**18, "i8"),
    }.items():
        made.create_array(name, data=data, compressors=compressor)
    done = omnizarr.convert(tmp_path / "old.zarr", tmp_path / "new.nc")
    assert done.losses == ()
    assert done.verified
    told = {node.path for node in done.nodes if any("blosc cannot make smaller" in each for each in node.remarks)}
    assert told == ({"tiny", "random", "text", "large"} if compressor == "blosc" else set())
    with netCDF4.Dataset(tmp_path / "new.nc") as dataset:
        assert dataset["regular"].filters()["zlib" if compressor == "gzip" else compressor]
        np.testing.assert_array_equal(dataset["large"][:], made["large"][:])


def test_filters_that_netcdf_c_lacks_are_left_out(tmp_path, monkeypatch):
    lacking = {"zstd", "bzip2"}
    monkeypatch.setattr(writing, "_has_filter", lambda _, compression: compression not in lacking)
    made = omnizarr.create_group(tmp_path / "old.zarr", zarr_format=2)
    made.create_array("a", data=np.arange(100), compressors={"id": "zstd", "level": 3})
    made.create_array("b", data=np.arange(100), compressors={"id": "bz2", "level": 3})
    made.create_array("c", data=np.arange(100), compressors={"id": "zlib", "level": 3})
    done = omnizarr.convert(tmp_path / "old.zarr", tmp_path / "new.nc")
    assert (done.verified, done.losses) == (True, ())
    told = {
        node.path: node.remarks for node in done.nodes if any("without this filter" in each for each in node.remarks)
    }
    assert told.keys() == {"a", "b"}
    with netCDF4.Dataset(tmp_path / "new.nc") as dataset:
        assert [dataset[name].filters()[kind] for name, kind in zip("abc", ["zstd", "bzip2", "zlib"], strict=True)] == [
            False,
            False,
            True,
        ]
