"""All that shows an array agrees on what other programs wrote: on its values, and on the axes of its picture.

The expected values are those of `test_corpus.py`, decoded here by NumPy as CF says.
"""

import itertools
from math import prod

import numpy as np
import pytest

import omnizarr
from omnizarr import netcdf
from omnizarr.errors import OmnizarrError
from omnizarr.nodes import showing
from omnizarr.pictures.contents import Chart, Image, Style
from tests.corpus.test_corpus import ARRAYS, CORPUS, document_of, expected_array, open_node, unpacked  # noqa: F401

netCDF4 = pytest.importorskip("netCDF4", reason="no netCDF4-python")  # noqa: N816 - its name
facts = pytest.importorskip("omnizarr.web.facts", reason="no Starlette")
tiles = pytest.importorskip("omnizarr.web.tiles", reason="no Starlette")

CASES = [
    pytest.param(case, list(nodes), id=case.relative_to(CORPUS).as_posix())
    for case, nodes in itertools.groupby((node.values for node in ARRAYS), key=lambda values: values[0])
]
SIZE = (2**16, 2**16)
"""More than all arrays of the corpus have: each element is drawn."""
NUMBERS = "biufcmM"
DEFAULTS = netCDF4.default_fillvals


def numbers(values):
    """Return values as floats, as pictures have them: NaN where there is none."""
    values = np.asarray(values)
    if values.dtype.kind in "mM":
        return np.where(np.isnat(values), np.nan, values.astype("i8").astype("f8"))
    return np.abs(values.astype("c16")) if values.dtype.kind == "c" else values.astype("f8")


def decoded(stored, array):
    """Return what stored values mean by the attributes that are in the corpus, as CF says."""
    attributes, found = array.attrs, numbers(stored)
    hidden = np.zeros(stored.shape, np.bool_)
    if stored.dtype.kind in "iuf":
        low, high = attributes.get("valid_range", (-np.inf, np.inf))
        hidden |= (found < low) | (found > high)
        found = found * attributes.get("scale_factor", 1) + attributes.get("add_offset", 0)
        is_marked = not array.metadata.dialect.startswith("v3") and array.dimension_names is not None
        if is_marked and array.fill_value is not None:
            hidden |= stored == array.fill_value
    return np.where(hidden, np.nan, found)


def same(found, expected, face):
    assert np.shape(found) == np.shape(expected), face
    np.testing.assert_allclose(np.asarray(found, "f8"), expected, rtol=1e-6, err_msg=str(face))


def of_page(dataset, path):
    """Return the plane that the page draws at first, from tiles decoded as `viewer/test/dtypes.test.ts` says."""
    array, said = dataset.array(path), dataset.info(path)["array"]
    drawn = tuple(said["view"])
    board = tiles.TileArray(array, tiles.Steps((1,) * array.ndim, drawn))
    plane = np.empty([board.shape[k] for k in drawn], array.dtype.newbyteorder("<"))
    sides = zip(board.shape, board.tile_shape, strict=True)
    counts = [-(-size // side) if k in drawn else 1 for k, (size, side) in enumerate(sides)]
    for coords in itertools.product(*map(range, counts)):
        tile = np.frombuffer(board.tile(coords).data, plane.dtype).reshape(board.tile_shape)
        tile = np.moveaxis(tile, drawn, range(len(drawn)))
        tile = tile[(slice(None),) * len(drawn) + (0,) * (array.ndim - len(drawn))]
        box = [slice(coords[k] * board.tile_shape[k], (coords[k] + 1) * board.tile_shape[k]) for k in drawn]
        target = plane[tuple(box)]
        target[...] = tile[tuple(map(slice, target.shape))]
    meant = plane.view(said["kind"] + plane.dtype.str[2:]) if said["kind"] else plane
    found = numbers(meant)
    low, high = (np.inf * sign if said[name] is None else said[name] for name, sign in (("low", -1), ("high", 1)))
    hidden = np.isin(found, np.array(said["missing"], "f8")) | (found < low) | (found > high)
    return np.where(hidden, np.nan, found * said["scale"] + said["offset"])


def is_upside_down(dimension, labels, step):
    """Return whether the page draws the first row at the bottom: `isUpsideDown` of the page."""
    values = labels["labels"]
    if not all(isinstance(value, int | float) for value in values) or len(values) < 2:
        return False
    if not labels["units"] and values == list(range(0, dimension["size"], step)):
        return False
    return dimension["direction"] is not None and (values[-1] > values[0]) == (dimension["direction"] == "up")


def check_axes(dataset, path, axes):
    """Check that the axes of `show` are those of the page, rows first, and return whether rows are upside down."""
    said = dataset.info(path)["array"]
    assert len(axes) == len(said["view"]), path
    turned = False
    for place, (axis, k) in enumerate(zip(axes, said["view"], strict=True)):
        dimension = said["dimensions"][k]
        step = -(-dimension["size"] // 4096)
        labels = dataset.labels(path, k, step=step)
        is_rows = place == 0 and len(axes) == 2
        turned = turned or (is_rows and is_upside_down(dimension, labels, step))
        found = axis.coordinates[:: -1 if is_rows and turned else 1][::step]
        assert axis.name == (dimension["name"] or ""), (path, k)
        assert axis.unit == (labels["units"] or ""), (path, k)
        if isinstance(labels["labels"][0], str):  # times, each in the form of its face
            assert labels["labels"][0][:4] == str(found[0])[:4], (path, k)
        else:
            np.testing.assert_allclose(
                found, np.array(labels["labels"], found.dtype), rtol=1e-12, err_msg=f"{path} {k}"
            )
    return turned


def by_netcdf(place, path):
    """Return what omnizarr.netcdf reads; None if its data model has no such array."""
    try:
        with netcdf.Dataset(place) as dataset:
            return np.ma.filled(dataset[path][...].astype("f8"), np.nan)
    except (OmnizarrError, OSError, IndexError, KeyError, TypeError, NotImplementedError, ValueError):
        return None


@pytest.mark.parametrize(("case", "nodes"), CASES)
def test_all_faces_show_the_same(case, nodes, unpacked):  # noqa: F811
    place = unpacked(case)
    for _, path, expected in nodes:
        array = open_node(case, place, path, "array", **expected.get("open", {}))
        if array.dtype.kind not in NUMBERS or array.dtype.itemsize > 16:
            continue
        stored, _ = expected_array(case, path, expected)
        meant = decoded(stored, array)
        same(numbers(array.lazy.unpack()[...]), meant, (path, "lazy"))
        is_alone = document_of(case).get("open") != "root" or not path
        dataset = facts.Dataset(array if is_alone else omnizarr.open_group(place, mode="r"), "x")
        at = "" if is_alone else path
        if array.ndim and prod(array.shape):
            # As numbers, not as colours.
            content = showing.picture_of(array, (), Style(), SIZE, rgb=False).page.content
            chosen = showing.chosen_in(array, (), rgb=False)
            plane = meant[tuple(k if isinstance(k, int) else slice(None) for k in chosen.axes)]
            plane = plane.T if chosen.shown[0] > chosen.shown[-1] else plane
            assert list(chosen.shown) == dataset.info(at)["array"]["view"], path
            axes = (content.height, content.width) if isinstance(content, Image) else (content.along,)
            turned = check_axes(dataset, at, axes)
            assert isinstance(content, Image | Chart)
            seen = content.legend.numbers if isinstance(content, Image) else content.numbers
            same(seen.values, plane[:: -1 if turned else 1], (path, "show"))
            if dataset.info(at)["array"]["show"] != "table":
                same(of_page(dataset, at), plane, (path, "page"))
                along = (plane[0] if plane.ndim == 2 else plane)[: facts.MOST_BINS]
                places = [k if isinstance(k, int) else 0 for k in chosen.axes]
                line = dataset.line(at, chosen.shown[-1], places, stop=len(along))
                assert line["low"] == line["high"], path
                same(np.array(line["low"], "f8"), np.where(np.isfinite(along), along, np.nan), (path, "line"))
        if array.dtype.kind in "biuf" and array.size <= facts.MOST_VALUES:
            texts = dataset.values(at, [[0, size] for size in array.shape])["values"]
            words = {"missing": "nan", "True": "1", "False": "0"}
            table = np.array([float(words.get(text, text)) for text in np.ravel(np.array(texts, object))])
            if array.dtype.kind == "f" and "scale_factor" not in array.attrs:
                table = table.astype(array.dtype)  # the shortest text that is this one among its own kind
            same(table.reshape(array.shape), meant, (path, "table"))
        other = by_netcdf(place, path)
        if other is not None and array.dtype.kind in "iuf":
            unwritten = stored == DEFAULTS.get(stored.dtype.str[1:]) if "_FillValue" not in array.attrs else False
            same(other, np.where(unwritten, np.nan, meant), (path, "netcdf"))


NORTH, EAST = {"units": "degrees_north"}, {"units": "degrees_east"}
DAYS = {"units": "days since 2026-01-30"}
COORDINATES = {
    "lat and lon": ("lat lon", {"lat": (NORTH, 1), "lon": (EAST, 1)}),
    "falling lat": ("lat lon", {"lat": (NORTH, -1), "lon": (EAST, 1)}),
    "columns first": ("lon lat time", {"lat": (NORTH, 1), "time": (DAYS, 1)}),
    "other names": ("a b", {"a": ({"axis": "X"}, 1), "b": ({"standard_name": "latitude", **NORTH}, 1)}),
    "depth": ("depth lon", {"depth": ({"positive": "down", "units": "m"}, 1), "lon": (EAST, 1)}),
    "height": ("level lon", {"level": ({"positive": "up", "units": "m"}, 1), "lon": (EAST, 1)}),
    "pressure": ("plev lat", {"plev": ({"units": "hPa"}, -1), "lat": (NORTH, 1)}),
    "times down": ("time lon", {"time": (DAYS, 1), "lon": (EAST, -1)}),
    "another calendar": ("time lon", {"time": ({**DAYS, "calendar": "360_day"}, 1)}),
    "packed": (
        "y x",
        {"y": ({"scale_factor": 0.5, "add_offset": 3, "units": "m"}, 1), "x": ({"_Unsigned": "true"}, 1)},
    ),
    "missing": ("y x", {"y": ({"missing_value": 0, "units": "m"}, 1)}),
    "without coordinates": ("time y x", {}),
    "without units": ("time lat lon", {"lat": ({}, 1)}),
    "one name": ("- x", {"x": (EAST, 1)}),
    "no names": ("- - -", {}),
    "width and height": ("height width", {"height": (NORTH, 1)}),
}


@pytest.mark.parametrize("above", [False, True], ids=["beside", "above"])
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(("names", "coordinates"), COORDINATES.values(), ids=COORDINATES)
def test_axes_are_the_same_in_all_faces(names, coordinates, zarr_format, above):
    root = omnizarr.create_group({}, zarr_format=zarr_format)

    def create(path, values, dims, attributes):
        dims = [None if name == "-" else name for name in dims]
        if zarr_format == 3:
            return root.create_array(path, data=values, dimension_names=dims, attributes=attributes)
        named = {"_ARRAY_DIMENSIONS": dims} if None not in dims else {}
        return root.create_array(path, data=values, attributes={**named, **attributes}, fill_value=None)

    dims = names.split()
    shape = [4, 5, 3][: len(dims)]
    values = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    array = create("deep/er/v", values, dims, {})
    for name, (attributes, sign) in coordinates.items():
        size = shape[dims.index(name)]
        create(f"{'deep' if above else 'deep/er'}/{name}", np.arange(size, dtype="i2")[::sign] * 3, [name], attributes)
    check_faces(facts.Dataset(root, "x"), array, values)


def check_faces(dataset, array, values):
    """Check that `show` draws what the page draws at first, the same side up."""
    chosen = showing.chosen_in(array, ())
    said = dataset.info(array.path)["array"]
    assert (list(chosen.shown), chosen.channels) == (said["view"], said["colours"])
    content = showing.picture_of(array, (), Style(), SIZE, rgb=None).page.content
    turned = check_axes(dataset, array.path, (content.height, content.width))
    plane = values[tuple(k if isinstance(k, int) else slice(None) for k in chosen.axes)]
    if chosen.channels is None:
        plane = plane.T if chosen.shown[0] > chosen.shown[1] else plane
        same(content.legend.numbers.values, plane[:: -1 if turned else 1], "show")
        same(of_page(dataset, array.path), plane, "page")
    return said


PICTURES = {
    "interleaved": ((20, 30, 3), None, 2),
    "with opacity": ((20, 30, 4), None, 2),
    "small": ((5, 6, 3), None, None),
    "planar": ((3, 20, 30), ["c", "y", "x"], 0),
    "planar of four": ((4, 20, 30), ["c", "y", "x"], None),
    "opacity by name": ((4, 20, 30), ["rgba", "y", "x"], 0),
    "bands": ((5, 20, 30), ["band", "y", "x"], None),
    "named otherwise": ((20, 30, 3), ["y", "x", "z"], None),
    "many": ((2, 20, 30, 3), ["time", "y", "x", "channel"], 3),
    "of space": ((20, 30, 3), ["y", "z", "x"], None),
}


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2"])
@pytest.mark.parametrize(("shape", "names", "colours"), PICTURES.values(), ids=PICTURES)
def test_all_faces_see_the_same_colours(shape, names, colours, dtype):
    root = omnizarr.create_group({})
    values = (np.arange(np.prod(shape)) % 100).astype(dtype).reshape(shape)
    array = root.create_array("v", data=values, dimension_names=names)
    said = check_faces(facts.Dataset(root, "x"), array, values)
    assert said["colours"] == (colours if dtype == "u1" else None)


IMAGES = {
    "0.1": ({"version": "0.1"}, 5),
    "0.3": ({"version": "0.3", "axes": ["z", "y", "x"]}, 3),
    "0.4": ({"version": "0.4", "axes": "czyx"}, 4),
    "without a scale": ({"version": "0.4", "axes": "zyx", "scale": None}, 3),
    "columns first": ({"version": "0.4", "axes": "xy"}, 2),
    "two scales": (
        {"version": "0.4", "axes": "yx", "coordinateTransformations": [{"type": "scale", "scale": [3, 3]}]},
        2,
    ),
    "axes that do not fit": ({"version": "0.4", "axes": "yx"}, 3),
}


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "with coordinates beside"])
@pytest.mark.parametrize(("image", "ndim"), IMAGES.values(), ids=IMAGES)
def test_axes_of_images_are_the_same_in_all_faces(image, ndim, beside):
    image, names = dict(image), image.get("axes", "tczyx")
    if isinstance(image.get("axes"), str):
        types = {"t": "time", "c": "channel"}
        image["axes"] = [
            {"name": name, "type": types.get(name, "space"), "unit": "micrometer"} for name in names
        ]  # channels have a unit in some files
    scale = [{"type": "scale", "scale": [0.5 * k + 1 for k in range(ndim)]}]
    moved = [*scale, {"type": "translation", "translation": [7.0] * ndim}]
    is_scaled = image.pop("scale", True)
    datasets = [{"path": "0", **({"coordinateTransformations": moved} if is_scaled else {})}]
    root = omnizarr.create_group({}, zarr_format=2)
    group = root.create_group("image", attributes={"multiscales": [{**image, "datasets": datasets}]})
    values = np.arange(np.prod(range(2, 2 + ndim)), dtype="f4").reshape(range(2, 2 + ndim))
    array = group.create_array("0", data=values)
    for name, size in zip(names, values.shape, strict=False) if beside else ():
        group.create_array(name, data=np.arange(size) * 2.5, attributes={"units": "s"})
    check_faces(facts.Dataset(root, "x"), array, values)
