"""Filters of Zarr v2 whose data type is not that of the array: stored and read as numcodecs does, with both engines."""

import json
import random

import numcodecs
import numpy as np
import pytest

import omnizarr
from omnizarr.errors import OmnizarrError
from tests.engine.both import ENGINES, RUNS, needs_native

NUMBERS = ["|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8", ">i2", ">i4", ">f4", ">f8"]
TYPES = [*NUMBERS, "|b1", "<M8[s]", "|S3", "|S8", "<c8"]
FLOATS = [name for name in NUMBERS if name[1] == "f"]


def a_filter(rng):
    kind = rng.choice(["delta", "fixedscaleoffset", "quantize", "astype", "packbits"])
    seen, made = rng.choice(NUMBERS), rng.choice(NUMBERS)
    if kind == "delta":
        return {"id": kind, "dtype": seen, "astype": rng.choice([seen, made])}
    if kind == "fixedscaleoffset":
        offset, scale = rng.choice([0, -0.0, 1, -3, 0.5]), rng.choice([1, 10, 0.5, -2])
        return {"id": kind, "dtype": seen, "astype": made, "offset": offset, "scale": scale}
    if kind == "quantize":
        return {"id": kind, "dtype": rng.choice(FLOATS), "astype": rng.choice(FLOATS), "digits": rng.choice([0, 1, 3])}
    return {"id": kind, "encode_dtype": made, "decode_dtype": seen} if kind == "astype" else {"id": kind}


def some_values(rng, name, shape):
    dtype, count = np.dtype(name), int(np.prod(shape))
    if dtype.kind == "b":
        return np.array([rng.random() < 0.5 for _ in range(count)]).reshape(shape)
    if dtype.kind in "iuf" and rng.random() < 0.5:
        return np.array([rng.randrange(100) for _ in range(count)]).astype(dtype).reshape(shape)
    return np.frombuffer(rng.randbytes(count * dtype.itemsize), dtype).reshape(shape)


def outcome(function):
    try:
        with np.errstate(all="ignore"):
            return function()
    except (OmnizarrError, ValueError, TypeError, KeyError, OverflowError):
        return None


def encoded(values, filters):
    for each in filters:
        values = numcodecs.get_codec(each).encode(values)
    return numcodecs.compat.ensure_bytes(values)


def decoded(stored, filters):
    for each in reversed(filters):
        stored = numcodecs.get_codec(each).decode(stored)
    return numcodecs.compat.ensure_bytes(stored)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize(
    "engine", [pytest.param(each, marks=needs_native if each == "native" else ()) for each in ENGINES]
)
@pytest.mark.parametrize("seed", range(RUNS))
def test_agree_with_numcodecs_or_are_refused(engine, seed):
    rng = random.Random(seed)
    agreed = 0
    for _ in range(60):
        name, shape = rng.choice(TYPES), rng.choice([(8,), (5,), (4, 4), (3, 5), (2, 2, 4), (1,), (24,)])
        filters = [a_filter(rng) for _ in range(rng.choice([1, 1, 2]))]
        values = some_values(rng, name, shape)
        document = {
            "zarr_format": 2,
            "shape": list(shape),
            "chunks": list(shape),
            "dtype": name,
            "filters": filters,
            "compressor": None,
            "fill_value": None,
            "order": "C",
        }
        store, key = {".zarray": json.dumps(document).encode()}, ".".join("0" * len(shape))
        config = {"engine": engine, "write_empty_chunks": True}
        array = omnizarr.open_array(store, mode="r+", config=config)
        outcome(lambda array=array, values=values: array.__setitem__(..., values))
        if key not in store:  # refused: bytes that are no whole number of elements, and packed numbers
            continue
        theirs = outcome(lambda values=values, filters=filters: encoded(values, filters))
        if theirs is not None:
            assert bytes(store[key]) == theirs, document
        # numcodecs cannot encode arrays of some dimensions, but decodes what we stored of them
        expected = outcome(lambda: decoded(store[key], filters))  # noqa: B023 - called at once
        if expected is not None and len(expected) == values.nbytes:  # a sum of rounded floats can be no count of bits
            found = outcome(lambda array=array: array[...])
            assert found is not None, document
            assert found.tobytes() == expected, document
            agreed += 1
    assert agreed > 10
