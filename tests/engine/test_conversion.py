"""Elements that are converted as they are read: both engines give what NumPy makes of the elements that are stored."""

import tracemalloc
import warnings

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import omnizarr
from omnizarr.engine import conversion, native, reference
from omnizarr.nodes.packing import Marks, Packing
from tests.engine.both import ENGINES, RUNS, bits, needs_native, served_by

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
NUMBERS = [*INTEGERS, "f4", "f8"]
EDGES = [-(2**63), -(2**53) - 1, -129, -128, -1, 0, 1, 127, 255, 256, 2**24 + 1, 2**31, 2**53 + 1, 2**63 - 1, 2**64 - 1]
FLOATS = [0.0, -0.0, 1.5, -1e30, 1e-40, np.inf, -np.inf, np.nan]
FACTORS = st.none() | st.sampled_from([1, 0.1, -2.5, 1e-3, 1e30]) | st.floats(-1e6, 1e6)


def _elements(dtype):
    if dtype.kind == "f":
        return st.sampled_from(FLOATS) | st.floats(-1e6, 1e6)
    bounds = np.iinfo(dtype)
    inside = [edge for edge in EDGES if bounds.min <= edge <= bounds.max]
    return st.sampled_from(inside) | st.integers(-5, 5).filter(lambda number: number >= bounds.min)


@st.composite
def _stored(draw):
    """Numbers, and an array that holds them."""
    dtype = np.dtype(draw(st.sampled_from(NUMBERS))).newbyteorder(draw(st.sampled_from("<>")))
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    values = draw(hnp.arrays(dtype, shape, elements=_elements(dtype).map(dtype.newbyteorder("=").type)))
    chunks = tuple(draw(st.integers(1, n + 1)) for n in shape)
    layout = draw(st.sampled_from(["raw", "compressed", "sharded", "F"]))
    options = {"raw": {"compressors": None}, "F": {"zarr_format": 2, "order": "F"}}.get(layout, {})
    if layout == "sharded":
        options = {"shards": tuple(2 * n for n in chunks)}
    if dtype.byteorder == ">" and layout != "sharded":
        options = {"zarr_format": 2} | options
    fill = draw(_elements(dtype).map(dtype.newbyteorder("=").type))
    array = omnizarr.create_array({}, shape=shape, dtype=dtype, chunks=chunks, fill_value=fill, **options)
    filled = tuple(slice(0, draw(st.integers(0, n))) for n in shape)  # other chunks are missing
    array[filled] = values[filled]
    return array


@st.composite
def _selection(draw, shape):
    return draw(
        hnp.basic_indices(shape, allow_newaxis=False)
        | st.tuples(*(st.lists(st.integers(0, n - 1), min_size=1, max_size=4) for n in shape[:1]))
    )


def _expected(packing, values, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return packing.floats(values, dtype)


@given(st.data())
@settings(max_examples=20 * RUNS)
def test_unpacked_numbers_are_those_of_the_one_decoder(data):
    array = data.draw(_stored())
    stored = array.dtype.newbyteorder("=")
    marks = st.lists(_elements(stored) | st.sampled_from([1.5, 3.0, 10**20, -1]), max_size=3).map(tuple)
    bound = st.none() | _elements(stored).map(stored.type)
    known = Packing(
        dtype=array.dtype,
        marks=data.draw(st.none() | st.builds(Marks, marks, st.none(), bound, bound, st.none())),
        scale_factor=data.draw(FACTORS),
        add_offset=data.draw(FACTORS),
    )
    selection = data.draw(_selection(array.shape))
    dtype = np.dtype(data.draw(st.sampled_from(["f4", "f8"])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = _expected(known, np.asarray(array[...])[selection], dtype)
        for engine in ENGINES:
            prepared = served_by(engine, array)._prepare(
                omnizarr.indexing.plan, selection, None, None, known.conversion(dtype)
            )
            found = array._read(prepared)
            assert bits(found, dtype) == bits(expected, dtype), engine


def _into_range(array, dtype):
    """Replace floats that are no integers of a type: what they become is not defined, and NumPy's own loops differ."""
    values = array[...]
    if values.dtype.kind == "f" and dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        with np.errstate(invalid="ignore"):
            values[~((values > float(bounds.min) - 1) & (values < float(bounds.max)))] = 3
        array[...] = values


@given(st.data())
@settings(max_examples=20 * RUNS)
def test_elements_are_cast_as_by_numpy(data):
    array = data.draw(_stored())
    dtype = np.dtype(data.draw(st.sampled_from([*NUMBERS, ">i2", ">f8", "f2", "c8"])))
    _into_range(array, dtype)
    selection = data.draw(_selection(array.shape))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.asarray(array[...])[selection].astype(dtype)
        for engine in ENGINES:
            view = served_by(engine, array).lazy[selection].astype(dtype)
            assert bits(view.read(), dtype) == bits(expected, dtype), engine
            out = np.empty(expected.shape, dtype, "F")
            assert bits(view.read(out=out), dtype) == bits(expected, dtype), engine


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("to", ["f4", "f8"])
@pytest.mark.parametrize("compressor", ["auto", None])
@needs_native
def test_native_engine_unpacks_whole_chunks_of_any_order(dtype, to, compressor, monkeypatch):
    monkeypatch.setattr(reference, "_read_piece", None)  # nothing is left to it
    values = np.random.default_rng(0).integers(0, 120, (90, 70)).astype(dtype)
    attributes = {"scale_factor": 0.1, "add_offset": -3, "_FillValue": 7, "missing_value": [9, 11], "valid_max": 100}
    for order in "CF":
        layout = {"zarr_format": 2, "order": order, "compressors": compressor}
        created = omnizarr.create_array({}, data=values, chunks=(40, 50), attributes=attributes, **layout)
        array = served_by("native", created)
        expected = Packing.of_array(array._metadata).floats(values, np.dtype(to))
        for view, wanted in ((array.lazy.unpack(dtype=to), expected), (array.lazy.T.unpack(dtype=to), expected.T)):
            assert bits(view.read()) == bits(wanted)
            out = np.empty(wanted.shape[::-1], to).T
            assert bits(view.read(out=out)) == bits(wanted)
        assert np.isnan(expected).any()


@needs_native
def test_other_bytes_are_never_taken_for_numbers_of_a_type():
    array = omnizarr.create_array({}, data=np.arange(3, dtype=">i2"), zarr_format=2)
    binding = served_by("native", array)._bind().binding
    for dtype in ("<i2", ">i4", ">f2"):
        assert native.converting(binding, conversion.cast(np.dtype(dtype), np.dtype("f8"))) is None
    assert native.converting(binding, conversion.cast(np.dtype(">i2"), np.dtype("f8"))) is not None


@pytest.mark.parametrize("engine", ENGINES)
def test_numbers_that_numpy_warns_about_give_the_warning(engine):
    array = served_by(engine, omnizarr.create_array({}, data=np.array([1.0, 1e300, np.nan]), chunks=(2,)))
    with pytest.warns(RuntimeWarning, match="overflow"):
        found = array.lazy.astype("f4").read()
    np.testing.assert_array_equal(found, np.array([1, np.inf, np.nan], "f4"))


WAYS = {
    "a selection": lambda array, out: array.get_basic_selection(out=out),
    "several": lambda array, out: omnizarr.read_many(
        [(array, slice(0, 4)), (array, slice(4, None))], out=[out[:4], out[4:]]
    ),
    "a lazy array": lambda array, out: array.lazy[...].read(out=out),
    "cast": lambda array, out: array.lazy.astype(out.dtype).read(out=out),
    "unpacked": lambda array, out: array.lazy.unpack(2, 1, dtype=out.dtype).read(out=out),
    "joined": lambda array, out: omnizarr.concat([array.lazy[:4], array.lazy[4:].unpack(2, 1)]).read(out=out),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["i2", "f4", "f8"])
@pytest.mark.parametrize("strides", ["C", "F", "backwards"])
def test_no_copy_of_the_result_is_made(engine, way, dtype, strides, tmp_path):
    if dtype == "i2" and way in ("unpacked", "joined"):
        pytest.skip("unpacked numbers are floats")
    rows, columns = 8, 2**19
    values = np.arange(columns, dtype="i2") % 1000
    array = served_by(
        engine,
        omnizarr.create_array(
            tmp_path / "a", shape=(rows, columns), dtype="i2", chunks=(1, 2**16), compressors=None, fill_value=0
        ),
    )
    array[...] = values
    memory = np.zeros((rows, columns), dtype, "F" if strides == "F" else "C")
    out = memory[::-1, ::-1] if strides == "backwards" else memory
    WAYS[way](array, out)  # what is imported and kept at first
    tracemalloc.start()
    try:
        WAYS[way](array, out)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A chunk has 128 KiB, and each thread may hold a few; the result has 8 MiB or more.
    assert most < 4 * 2**20, f"{most} bytes"
    expected = values * 2.0 + 1 if way == "unpacked" else values
    np.testing.assert_array_equal(out[0], expected)
    np.testing.assert_array_equal(out[7], values * 2.0 + 1 if way == "joined" else expected)
