"""netCDF files that other programs write: netCDF4-python, h5netcdf, SciPy and xarray; one question each.

`WRITERS` has a function for each file, by name. Files are small, and made when a test asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

NUMBERS: Final = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")
CLASSIC_NUMBERS: Final = ("i1", "i2", "i4", "f4", "f8")
FORMATS: Final = ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA", "NETCDF4_CLASSIC")

Writer = Callable[[Path], None]
Variable = tuple[str, Any, Sequence[str], Any, Mapping[str, Any], Mapping[str, Any]]
"""Name, type, dimensions, values, options of ``createVariable``, attributes."""

WRITERS: dict[str, Writer] = {}


def texts(*items: str) -> np.ndarray:
    return np.array([*items, None], object)[:-1]


def letters(*items: bytes) -> np.ndarray:
    """Return texts of equal length as characters along one more dimension."""
    return np.array(items, f"S{len(items[0])}").view("S1").reshape(len(items), -1)


def variable(
    name: str,
    dtype: Any,
    dims: str | Sequence[str],
    values: Any,
    options: Mapping[str, Any] | None = None,
    /,
    **attrs: Any,
) -> Variable:
    return name, dtype, dims.split() if isinstance(dims, str) else dims, values, options or {}, attrs


# -- netCDF4-python ---------------------------------------------------------------------------------


def netcdf4(
    path: Path,
    dims: Mapping[str, int | None],
    /,
    *variables: Variable,
    groups: Callable[[Any], None] | None = None,
    format: str = "NETCDF4",  # noqa: A002
    **attrs: Any,
) -> None:
    import netCDF4

    with netCDF4.Dataset(path, "w", format=format) as dataset:
        for name, size in dims.items():
            dataset.createDimension(name, size)
        for each in variables:
            define(dataset, *each)
        dataset.setncatts(attrs)
        if groups is not None:
            groups(dataset)


def define(
    group: Any,
    name: str,
    dtype: Any,
    dims: Sequence[str],
    values: Any,
    options: Mapping[str, Any],
    attrs: Mapping[str, Any],
) -> None:
    made = group.createVariable(name, dtype, tuple(dims), **options)
    made.set_auto_maskandscale(False)
    made.set_auto_chartostring(False)
    if values is not None:
        made[...] = values
    for key, value in attrs.items():
        made.setncattr(key, value)


def by_netcdf4(name: str, *args: Any, **kwargs: Any) -> None:
    WRITERS[f"netCDF4 {name}"] = partial(_called, netcdf4, args, kwargs)


def _called(function: Callable[..., None], args: tuple, kwargs: dict, path: Path) -> None:
    function(path, *args, **kwargs)


X: Final = {"x": 4}
FILLS: Final = {"f4": -9.0, "f8": -9.0}

for code in NUMBERS:
    fill = FILLS.get(code, 2)
    by_netcdf4(f"{code}", X, variable("v", code, "x", [0, 1, 2, 3]))
    by_netcdf4(f"{code} with fill value", X, variable("v", code, "x", [1, fill, 0, 3], {"fill_value": fill}))
for code in ("i4", "f8"):
    by_netcdf4(f"{code} with default fill values", X, variable("v", code, "x", None))
by_netcdf4("f4 masked by NaN", X, variable("v", "f4", "x", [1, np.nan, 0, 3], {"fill_value": np.nan}))
by_netcdf4("f8 with NaN and infinity", X, variable("v", "f8", "x", [np.nan, np.inf, -np.inf, -0.0]))
by_netcdf4("f8 masked by infinity", X, variable("v", "f8", "x", [1, np.inf, 0, 3], {"fill_value": np.inf}))
by_netcdf4("i4 without fill", X, variable("v", "i4", "x", [1, 2, 3, 4], {"fill_value": False}))
by_netcdf4("f4 never written", X, variable("v", "f4", "x", None, {"fill_value": -9.0}))
by_netcdf4("i4 all fill", X, variable("v", "i4", "x", [7, 7, 7, 7], {"fill_value": 7}))
by_netcdf4("f4 missing_value", X, variable("v", "f4", "x", [1, -999.9, 3, 4], missing_value=np.float32(-999.9)))
by_netcdf4(
    "f4 missing_value and fill value",
    X,
    variable("v", "f4", "x", [1, 1e20, 3, 4], {"fill_value": 1e20}, missing_value=np.float32(1e20)),
)
by_netcdf4("i2 two missing_values", X, variable("v", "i2", "x", [1, -8, -9, 4], missing_value=np.array([-8, -9], "i2")))
by_netcdf4("f4 missing_value NaN", X, variable("v", "f4", "x", [1, np.nan, 3, 4], missing_value=np.float32(np.nan)))
by_netcdf4(
    "packed i2",
    X,
    variable("v", "i2", "x", [1, -32768, 0, 4], {"fill_value": -32768}, scale_factor=0.01, add_offset=273.15),
)
by_netcdf4(
    "packed i2 by float",
    X,
    variable(
        *("v", "i2", "x", [1, -32768, 0, 4], {"fill_value": -32768}),
        scale_factor=np.float32(0.1),
        add_offset=np.float32(1.5),
    ),
)
by_netcdf4("packed u1 without fill", X, variable("v", "u1", "x", [0, 1, 254, 255], scale_factor=0.5))
by_netcdf4(
    "packed i4", X, variable("v", "i4", "x", [0, 1, 254, 255], {"fill_value": 255}, scale_factor=0.5, add_offset=1)
)
by_netcdf4("unsigned i1", X, variable("v", "i1", "x", [0, 1, -2, -1], {"fill_value": -1}, _Unsigned="true"))
by_netcdf4(
    "unsigned i1 packed",
    X,
    variable("v", "i1", "x", [0, 1, -2, -1], {"fill_value": -1}, _Unsigned="true", scale_factor=0.5),
)
by_netcdf4("signed u1", X, variable("v", "u1", "x", [0, 1, 254, 255], {"fill_value": 255}, _Unsigned="false"))
by_netcdf4("valid_range", X, variable("v", "f4", "x", [0, 1, 2, 3], valid_range=np.array([0.1, 0.7], "f4")))
by_netcdf4("big-endian", X, variable("v", ">i4", "x", [1, 2, 3, 4], {"endian": "big", "fill_value": 3}))
by_netcdf4("big-endian floats", X, variable("v", ">f8", "x", [1, 2, 3, 4], {"endian": "big"}))
by_netcdf4("scalar i4", {}, variable("v", "i4", "", 5))
by_netcdf4("scalar f8 masked", {}, variable("v", "f8", "", -9.0, {"fill_value": -9.0}))
by_netcdf4("scalar string", {}, variable("v", str, "", "text"))
by_netcdf4("scalar char", {}, variable("v", "S1", "", b"c"))
by_netcdf4("scalar never written", {}, variable("crs", "i4", "", None, grid_mapping_name="latitude_longitude"))
by_netcdf4("char", {"x": 2, "n": 3}, variable("v", "S1", "x n", letters(b"abc", b"d\0\0")))
by_netcdf4("char of one dimension", X, variable("v", "S1", "x", np.array(list("abcd"), "S1")))
by_netcdf4(
    "char with _Encoding",
    {"x": 2, "n": 4},
    variable("v", "S1", "x n", letters(b"ab\xc3\xa9", b"d\0\0\0"), _Encoding="utf-8"),
)
by_netcdf4(
    "char with fill value",
    {"x": 2, "n": 3},
    variable("v", "S1", "x n", letters(b"abc", b"dxx"), {"fill_value": b"x"}),
)
by_netcdf4("char of bytes", {"x": 2, "n": 2}, variable("v", "S1", "x n", letters(b"\xff\xfe", b"a\x80")))
by_netcdf4("char never written", {"x": 2, "n": 2}, variable("v", "S1", "x n", None))
by_netcdf4("string", {"x": 3}, variable("v", str, "x", texts("a", "", "Größe")))
by_netcdf4(
    "string of two dimensions", {"x": 2, "y": 2}, variable("v", str, "x y", texts("a", "b", "", "d").reshape(2, 2))
)
by_netcdf4("long strings", {"x": 2}, variable("v", str, "x", texts("ü" * 150, "b")))
by_netcdf4(
    "strings called shorter", {"x": 2}, variable("v", str, "x", texts("abcdef", "b"), _nczarr_maxstrlen=np.int32(3))
)
by_netcdf4("string never written", {"x": 2}, variable("v", str, "x", None))
by_netcdf4("string with fill value", {"x": 3}, variable("v", str, "x", texts("a", "none", "c"), {"fill_value": "none"}))
by_netcdf4("unlimited", {"t": None, "x": 2}, variable("v", "f4", "t x", np.arange(6).reshape(3, 2)))
by_netcdf4(
    "unlimited with records missing",
    {"t": None, "x": 2},
    variable("t", "f8", "t", [0, 1, 2], units="days since 2000-01-01"),
    variable("v", "i2", "t x", None, {"fill_value": -1}),
)
by_netcdf4("unlimited and empty", {"t": None, "x": 2}, variable("v", "f4", "t x", None))
by_netcdf4("two unlimited", {"t": None, "u": None}, variable("v", "i4", "t u", np.arange(6).reshape(3, 2)))
by_netcdf4(
    "coordinates",
    {"time": 3, "lat": 2, "lon": 2},
    variable("time", "f8", "time", [0, 12, 24], units="hours since 2000-01-01", calendar="standard"),
    variable("lat", "f4", "lat", [-45, 45], units="degrees_north"),
    variable("lon", "f4", "lon", [0, 180], units="degrees_east"),
    variable(
        *("t2m", "f4", "time lat lon", np.arange(12).reshape(3, 2, 2), {"fill_value": 1e20, "zlib": True}),
        units="K",
        coordinates="area",
        cell_methods="time: mean",
    ),
    variable("area", "f8", "lat lon", np.ones((2, 2))),
    Conventions="CF-1.8",
    title="coordinates",
)
by_netcdf4("time in integers", {"t": 2}, variable("t", "i4", "t", [0, 1], units="days since 1900-01-01"))
by_netcdf4(
    "time of 360 days", {"t": 2}, variable("t", "f8", "t", [0, 59], units="days since 2000-02-28", calendar="360_day")
)
by_netcdf4(
    "time with missing values",
    {"t": 3},
    variable("t", "i8", "t", [0, -1, 2], {"fill_value": -1}, units="days since 2000-01-01"),
)
by_netcdf4("durations", {"x": 2}, variable("v", "i8", "x", [0, 5], units="days", dtype="timedelta64[ns]"))
by_netcdf4(
    "bounds",
    {"t": 2, "nv": 2},
    variable("t", "f8", "t", [0, 1], units="days since 2000-01-01", bounds="t_bnds"),
    variable("t_bnds", "f8", "t nv", [[0, 1], [1, 2]]),
)
by_netcdf4(
    "grid mapping",
    {"y": 2, "x": 2},
    variable("v", "f4", "y x", np.zeros((2, 2)), grid_mapping="crs"),
    variable("crs", "S1", "", None, grid_mapping_name="mercator", standard_parallel=0.0),
)
by_netcdf4(
    "flags",
    X,
    variable("v", "i1", "x", [1, 2, 4, 0], flag_values=np.array([1, 2, 4], "i1"), flag_meanings="a b c"),
)
by_netcdf4(
    "attributes",
    X,
    variable(
        *("v", "i4", "x", [1, 2, 3, 4]),
        **{f"one_{code}": np.array(7, code) for code in NUMBERS},
        **{f"many_{code}": np.array([1, 2], code) for code in NUMBERS},
    ),
    title="text",
    number=5,
    half=0.5,
    words=["a", "b"],
)
by_netcdf4(
    "fractions as attributes",
    X,
    variable("v", "i4", "x", 0, a=np.float32(0.1), b=np.array([0.1, 0.7], "f4"), c=0.1),
)
by_netcdf4(
    "odd texts as attributes",
    X,
    variable("v", "i4", "x", 0, number="42", truth="true", json='{"a": [1, 2]}', list="[1, 2]", quoted='"q"'),
)
by_netcdf4("empty attributes", X, variable("v", "i4", "x", 0, none=np.zeros(0, "i4"), text=""), blank="")
by_netcdf4(
    "attributes that are not numbers", X, variable("v", "f4", "x", 0, a=np.nan, b=np.array([np.inf, -np.inf, 1.0]))
)
by_netcdf4("attributes of unusual names", X, variable("v", "i4", "x", 0, **{"a b": 1, "é": "ü", "_private": 2}))
by_netcdf4(
    "attributes called as codes", X, variable("v", "i4", "x", 0, fill_value=3, dtype="int8", shape=4, chunks="a")
)
by_netcdf4("no variables", {"x": 1}, title="nothing")
for name, options in {
    "zlib": {"zlib": True},
    "zlib without shuffle": {"zlib": True, "shuffle": False},
    "zlib of level 9": {"compression": "zlib", "complevel": 9},
    "zstd": {"compression": "zstd", "complevel": 3},
    "bzip2": {"compression": "bzip2", "complevel": 4},
    "szip": {"compression": "szip"},
    "blosc": {"compression": "blosc_lz4"},
    "blosc by bits": {"compression": "blosc_zstd", "blosc_shuffle": 2},
    "checksums": {"fletcher32": True},
    "checksums and zlib": {"fletcher32": True, "zlib": True},
    "chunks": {"chunksizes": (7,)},
    "one chunk": {"contiguous": True},
    "digits": {"compression": "zlib", "significant_digits": 3},
}.items():
    by_netcdf4(name, {"x": 1000}, variable("v", "f4", "x", np.arange(1000) % 100 / 8, options))
by_netcdf4(
    "zlib with fill value",
    {"x": 100},
    variable("v", "i2", "x", np.arange(100), {"zlib": True, "fill_value": 50, "chunksizes": (30,)}),
)


def _groups(dataset: Any) -> None:
    model = dataset.createGroup("model")
    model.title = "inner"
    model.createDimension("y", 2)
    define(model, *variable("v", "i4", "x y", np.arange(8).reshape(4, 2), {"fill_value": 3}, units="m"))
    define(model, *variable("y", "f4", "y", [0.5, 1.5]))
    deep = model.createGroup("deep")
    define(deep, *variable("w", "f4", "y", [1, 2]))
    define(deep, *variable("s", str, "y", texts("a", "b")))
    define(deep, *variable("scalar", "i2", "", 3))
    define(deep, *variable("letters", "S1", "y", np.array([b"a", b"b"])))


def _empty_groups(dataset: Any) -> None:
    dataset.createGroup("a/b/c").note = "empty"


def _same_names(dataset: Any) -> None:
    inner = dataset.createGroup("g")
    inner.createDimension("x", 2)
    define(inner, *variable("v", "i4", "x", [1, 2]))


by_netcdf4("groups", X, variable("x", "i4", "x", [1, 2, 3, 4]), groups=_groups, title="outer")
by_netcdf4("empty groups", {}, groups=_empty_groups)
by_netcdf4("dimensions of one name", X, variable("v", "i4", "x", [1, 2, 3, 4]), groups=_same_names)
by_netcdf4("dimension without variable", {"x": 3, "unused": 5}, variable("v", "i4", "x", [1, 2, 3]))
by_netcdf4("two axes of one dimension", {"x": 2}, variable("v", "i4", ("x", "x"), [[1, 2], [3, 4]]))
by_netcdf4("dimension of length 1", {"x": 1}, variable("v", "i4", "x", [5]))
by_netcdf4(
    "unusual names",
    {"a b": 2, "größe": 2},
    variable("v.1", "i4", ("a b",), [1, 2]),
    variable("T-2", "i4", ("größe",), [3, 4]),
)
by_netcdf4("variable called as a dimension", {"x": 2, "y": 2}, variable("x", "i4", "y", [1, 2]))
for form in FORMATS:
    every = [variable(f"v_{code}", code, "x", [0, 1, 2, 3], {"fill_value": 2}) for code in CLASSIC_NUMBERS]
    plain = [variable(f"p_{code}", code, "t x", np.arange(8).reshape(2, 4)) for code in CLASSIC_NUMBERS]
    char = variable("c", "S1", "x", np.array(list("abcd"), "S1"))
    by_netcdf4(f"{form}", {"t": None, "x": 4}, *every, *plain, char, format=form, title="classic")
    scalars = variable("v", "i4", "", 3), variable("f", "f8", "", -9.0, {"fill_value": -9.0})
    by_netcdf4(f"{form} scalar", {}, *scalars, format=form)


# -- h5netcdf, SciPy ---------------------------------------------------------------------------------


def by(writer: str, name: str) -> Callable[[Writer], Writer]:
    def register(function: Writer) -> Writer:
        WRITERS[f"{writer} {name}"] = function
        return function

    return register


@by("h5netcdf", "numbers")
def _h5netcdf(path: Path) -> None:
    import h5netcdf

    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"x": 4}
        for code in NUMBERS:
            made = file.create_variable(f"v_{code}", ("x",), code, fillvalue=np.array(2, code)[()])
            made[...] = np.array([0, 1, 2, 3], code)
        file.attrs["title"] = "h5netcdf"
        file.attrs["words"] = ["a", "b"]


@by("h5netcdf", "strings")
def _h5netcdf_strings(path: Path) -> None:
    import h5netcdf
    import h5py

    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"x": 2}
        made = file.create_variable("s", ("x",), h5py.string_dtype())
        made[...] = texts("a", "Größe")
        made.attrs["units"] = "1"
        file.create_variable("c", ("x",), "S1")[...] = np.array([b"a", b"b"])


@by("h5netcdf", "groups")
def _h5netcdf_groups(path: Path) -> None:
    import h5netcdf

    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"x": 3}
        group = file.create_group("g")
        group.create_variable("v", ("x",), "f4", data=np.arange(3, dtype="f4"), compression="gzip", chunks=(2,))
        group.attrs["number"] = np.float32(0.1)


@by("h5netcdf", "unlimited")
def _h5netcdf_unlimited(path: Path) -> None:
    import h5netcdf

    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"t": None}
        file.resize_dimension("t", 3)
        file.create_variable("v", ("t",), "i4")[...] = np.arange(3)


def scipy_file(path: Path, version: int) -> None:
    from scipy.io import netcdf_file

    with netcdf_file(path, "w", version=version) as file:
        file.createDimension("t", None)
        file.createDimension("x", 3)
        for code in CLASSIC_NUMBERS:
            file.createVariable(f"v_{code}", code, ("x",))[:] = np.arange(3)
        made = file.createVariable("r", "f4", ("t", "x"))
        made[:] = np.arange(6, dtype="f4").reshape(2, 3)
        made.units = "m"
        made._FillValue = np.float32(4)
        file.createVariable("c", "c", ("x",))[:] = np.array(list("abc"), "S1")
        file.title = "scipy"


for version in (1, 2):
    WRITERS[f"scipy version {version}"] = partial(scipy_file, version=version)


# -- xarray --------------------------------------------------------------------------------------------


def by_xarray(name: str, engines: str = "netcdf4 h5netcdf") -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def register(function: Callable[[], Any]) -> Callable[[], Any]:
        for engine in engines.split():
            WRITERS[f"xarray {engine} {name}"] = partial(_by_xarray, function, engine)
        return function

    return register


def _by_xarray(function: Callable[[], Any], engine: str, path: Path) -> None:
    options = {} if engine == "scipy" else {"format": "NETCDF4"}
    function().to_netcdf(path, engine=engine, **options)


def _of(**variables: Any) -> Any:
    import xarray as xr

    return xr.Dataset(variables, attrs={"title": "xarray"})


@by_xarray("floats", "netcdf4 h5netcdf scipy")
def _floats() -> Any:
    return _of(a=("x", np.array([1, np.nan, 3], "f4"), {"units": "m"}), b=("x", np.array([1, np.nan, 3])), c=((), 2.5))


@by_xarray("bool", "netcdf4 h5netcdf scipy")
def _bool() -> Any:
    return _of(flag=("x", np.array([True, False])), scalar=((), True))


@by_xarray("texts", "netcdf4 h5netcdf scipy")
def _texts() -> Any:
    return _of(a=("x", np.array(["a", "Größe"])), b=("x", texts("b", "")), c=("x", np.array([b"ab", b"c"], "S2")))


@by_xarray("times", "netcdf4 h5netcdf scipy")
def _times() -> Any:
    times = np.array(["2000-01-01", "NaT", "2000-01-03T12"], "M8[ns]")
    data = _of(v=("t", times), d=("t", np.array([1, 2, 3], "m8[D]").astype("m8[ns]")))
    return data.assign_coords(t=np.array(["2000-01-01", "2000-01-02", "2000-01-03"], "M8[ns]"))


@by_xarray("packed")
def _packed() -> Any:
    data = _of(v=("x", np.array([0.5, np.nan, 1.5])))
    data["v"].encoding = {"dtype": "i2", "_FillValue": -99, "scale_factor": 0.5, "add_offset": 0.5, "zlib": True}
    return data


@by_xarray("integers with fill value")
def _integers() -> Any:
    data = _of(v=("x", np.array([1, 2, 3])))
    data["v"].encoding = {"_FillValue": 2, "dtype": "i4"}
    return data


@by_xarray("unlimited")
def _unlimited() -> Any:
    data = _of(v=(("t", "x"), np.arange(6.0).reshape(3, 2))).assign_coords(x=[1, 2])
    data.encoding["unlimited_dims"] = {"t"}
    return data


@by_xarray("coordinates", "netcdf4 h5netcdf scipy")
def _coordinates() -> Any:
    data = _of(v=(("x", "y"), np.zeros((2, 2), "f4")))
    return data.assign_coords(x=[1.5, 2.5], y=("y", ["a", "b"]), z=(("x", "y"), np.ones((2, 2))), s=5)


@by_xarray("attributes", "netcdf4 h5netcdf")
def _attributes() -> Any:
    attrs = {"flag": np.int8(1), "list": [1, 2], "half": 0.5, "words": ["a", "b"], "text": "é", "tiny": np.float32(0.1)}
    return _of(v=("x", np.zeros(2), attrs)).assign_attrs(attrs)


@by_xarray("groups")
def _tree() -> Any:
    import xarray as xr

    inner = _of(v=("x", np.array([1, np.nan], "f4")), s=("x", np.array(["a", "b"])))
    return xr.DataTree.from_dict({"/": _of(a=("x", [1, 2])), "/g": inner, "/g/h": _of(n=((), 3))})
