"""Programs that write hierarchies by conventions of their own, and what the same programs read of them.

`WRITERS` is a table: what is written, in which format of Zarr, and a function that returns what the program reads, in
values that can be compared.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what these import
    xr = pytest.importorskip("xarray")
    anndata = pytest.importorskip("anndata")
    netcdf4 = pytest.importorskip("netCDF4")
    rasterio = pytest.importorskip("rasterio")
    zarr = pytest.importorskip("zarr")
    pytest.importorskip("ome_zarr")
    import pandas as pd
    from ome_zarr import format as ome_formats
    from ome_zarr import writer as ome_writer
    from ome_zarr.io import parse_url
    from ome_zarr.reader import Reader
    from scipy import sparse


class Writer(NamedTuple):
    """One program that writes one format of Zarr.

    `write` is given a path; `read` is given a path, and returns what the program understands. `reads` are the formats
    that it reads.
    """

    program: str
    what: str
    zarr_format: int
    write: Callable[[Any], None]
    read: Callable[[Any], Any]
    reads: frozenset[int] = frozenset({2, 3})


# xarray


def _write_xarray(path, zarr_format):
    time = pd.date_range("2020-01-01", periods=4)
    dataset = xr.Dataset(
        {
            "packed": (("time", "x"), [[-54.5, np.nan, 0], [1, 2, 3], [4, 5, 6], [7, 8, np.nan]], {"units": "K"}),
            "count": (("time",), np.array([0, 1, 2, 0], "i8")),
            "flag": (("x",), np.array([True, False, True])),
            "name": (("x",), np.array(["", "a", "é"], object)),
            "depth": (("x",), np.array([0, np.nan, -9.0], "f4"), {"long_name": "depth", "levels": [1, 2.5]}),
            "number": ((), np.int32(0)),
        },
        coords={
            "time": time,
            "x": [10.0, 20.0, 30.0],
            "lag": ("time", np.array([0, 1, 2, 3], "m8[s]").astype("m8[ns]")),
        },
        attrs={"title": "ocean", "n": 3},
    )
    encoding = {
        "packed": {"dtype": "i2", "_FillValue": np.int16(-32768), "scale_factor": 0.5, "chunks": (2, 3)},
        "depth": {"_FillValue": np.float32(-9999)},
    }
    dataset.to_zarr(path, zarr_format=zarr_format, encoding=encoding)


def _read_xarray(path):
    with xr.open_zarr(path) as found:
        found.load()
    variables = {
        name: (variable.dims, variable.dtype.kind, variable.to_numpy().tolist(), dict(variable.attrs))
        for name, variable in found.variables.items()
    }
    return {"variables": variables, "coordinates": sorted(found.coords), "attributes": dict(found.attrs)}


# AnnData


def _write_anndata(path, zarr_format):
    anndata.settings.zarr_write_format = zarr_format
    obs = pd.DataFrame(
        {"kind": pd.Categorical(["b", "a", "b"]), "n": [1, 2, 3], "seen": pd.array([True, None, False], "boolean")},
        index=["c0", "c1", "c2"],
    )
    var = pd.DataFrame({"gene": ["x", "yy"]}, index=["g0", "g1"])
    data = anndata.AnnData(sparse.csr_matrix([[0, 1.5], [2, 0], [0, 0]], dtype="f4"), obs=obs, var=var)
    data.obsm["pca"] = np.arange(6.0).reshape(3, 2)
    data.layers["raw"] = np.array([[0, 1], [2, 0], [0, 0]])
    data.uns.update({"title": "cells", "n": 3, "names": np.array(["a", "b"], object), "deep": {"x": np.array([0, 1])}})
    data.write_zarr(path)


def _read_anndata(path):
    data = anndata.read_zarr(path)
    return {
        "X": (type(data.X).__name__, data.X.dtype.str, data.X.toarray().tolist()),
        "obs": data.obs.to_dict("list") | {"kinds": data.obs["kind"].cat.categories.tolist()},
        "index": [data.obs_names.tolist(), data.var_names.tolist()],
        "var": data.var.to_dict("list"),
        "obsm": data.obsm["pca"].tolist(),
        "layers": (data.layers["raw"].dtype.str, data.layers["raw"].tolist()),
        "uns": {
            "title": str(data.uns["title"]),
            "n": int(data.uns["n"]),
            "names": list(data.uns["names"]),
            "deep": data.uns["deep"]["x"].tolist(),
        },
    }


# OME-Zarr


def _write_ome(path, zarr_format):
    version = {2: ome_formats.FormatV04(), 3: ome_formats.FormatV05()}[zarr_format]
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    image = np.arange(2 * 16 * 20, dtype="u2").reshape(2, 16, 20)
    ome_writer.write_image(image, group, axes="cyx", fmt=version, scale_factors=(2,))
    labels = np.zeros((16, 20), "u1")
    labels[2:5, 3:9] = 7
    ome_writer.write_labels(labels, group, name="cells", axes="yx", fmt=version, scale_factors=(2,))


def _read_ome(path):
    nodes = list(Reader(parse_url(path, mode="r"))())
    assert nodes
    return [
        {
            "levels": [np.asarray(level).tolist() for level in node.data],
            "axes": node.metadata.get("axes"),
            "scales": node.metadata.get("coordinateTransformations"),
        }
        for node in nodes
    ]


# netCDF-C


def _write_netcdf(path, mode):
    with netcdf4.Dataset(f"file://{path}#mode={mode},file", "w") as dataset:
        dataset.createDimension("time", None)
        dataset.createDimension("x", 3)
        depth = dataset.createVariable("depth", "i2", ("time", "x"), fill_value=-99)
        depth.units = "m"
        depth[:] = np.ma.masked_equal([[1, 2, -99], [4, 5, 6]], -99)
        height = dataset.createVariable("height", "f4", ("x",), fill_value=9.5)
        height[:] = [1, 9.5, 2]
        dataset.createVariable("n", "i4", ("x",))[:] = [0, 1, 2]
        dataset.title = "tides"
        dataset.station = np.int16(5)


def _read_netcdf(path, mode):
    with netcdf4.Dataset(f"file://{path}#mode={mode},file") as dataset:
        dimensions = {name: (len(each), each.isunlimited()) for name, each in dataset.dimensions.items()}
        variables = {
            name: (
                each.dimensions,
                each.dtype.str,
                np.ma.filled(each[...].astype("f8"), np.inf).tolist(),
                {key: each.getncattr(key) for key in each.ncattrs()},
            )
            for name, each in sorted(dataset.variables.items())
        }
        return dimensions, variables, {key: dataset.getncattr(key) for key in dataset.ncattrs() if key[0] != "_"}


# GDAL


def _write_gdal(path, zarr_format):
    options = {"driver": "Zarr", "width": 5, "height": 4, "count": 1, "dtype": "int16", "nodata": -1}
    transform = rasterio.transform.from_origin(10, 50, 0.5, 0.5)
    with rasterio.open(
        path, "w", crs="EPSG:4326", transform=transform, FORMAT=f"ZARR_V{zarr_format}", **options
    ) as raster:
        raster.write(np.arange(-2, 18, dtype="i2").reshape(1, 4, 5))
        raster.update_tags(source="survey")


def _read_gdal(path):
    with rasterio.open(f'ZARR:"{path}":/{path.stem.split("-")[0]}') as raster:
        return {
            "data": raster.read().tolist(),
            "nodata": raster.nodata,
            "dtype": raster.dtypes,
            "crs": raster.crs.to_string(),
            "transform": list(raster.transform),
            "tags": raster.tags().get("source"),
        }


def _in(zarr_format, function):
    return lambda path: function(path, zarr_format)


WRITERS = [
    *(Writer("xarray", "dataset", n, _in(n, _write_xarray), _read_xarray) for n in (2, 3)),
    *(Writer("anndata", "AnnData", n, _in(n, _write_anndata), _read_anndata) for n in (2, 3)),
    *(Writer("ome-zarr-py", "image with labels", n, _in(n, _write_ome), _read_ome) for n in (2, 3)),
    *(
        Writer("netCDF-C", f"mode={mode}", 2, _in(mode, _write_netcdf), _in(mode, _read_netcdf), frozenset({2}))
        for mode in ("nczarr", "zarr")
    ),
    # GDAL before 3.11 does not know the codec `bytes`, which all arrays of v3 have today.
    Writer("GDAL", "raster", 2, _in(2, _write_gdal), _read_gdal, frozenset({2})),
]
