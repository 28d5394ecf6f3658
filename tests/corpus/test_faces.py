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
        assert found.tolist() == np.array(labels["labels"], found.dtype).tolist(), (path, k)
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
