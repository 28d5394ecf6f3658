"""Fill values that only their bits tell from others: both engines store and read the same, behind all codecs."""

import json
import random

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import OmnizarrError
from tests.engine.both import RUNS, needs_native

pytestmark = [needs_native, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

FILLS = {
    "float16": [0.0, -0.0, "NaN", "-Infinity", 1.5, "0x7e01", "0xfe00"],
    "float32": [0.0, -0.0, "NaN", "-Infinity", 1.5, "0x7fc00001", "0xffc00000", "0x7f800001"],
    "float64": [0.0, -0.0, "NaN", "-Infinity", 1.5, "0x7ff8000000000001", "0xfff8000000000000"],
    "complex64": [[0.0, -0.0], [-0.0, "NaN"], [1.5, 0.0]],
}
STORED = {"float16": "<f2", "float32": "<f4", "float64": "<f8", "complex64": "<c8"}
CRC = {"name": "crc32c"}


def a_filter(rng, name):
    own = STORED[name]
    made = rng.choice([own, "<f4", "<f8", "<i4"])
    scaled = {"offset": rng.choice([0, -0.0, 1, -2]), "scale": rng.choice([1, -1, 4, 0.5])}
    other = rng.choice(["float16", "float32", "float64"])
    return rng.choice(
        [
            {"name": "numcodecs.fixedscaleoffset", "configuration": {"dtype": own, "astype": made, **scaled}},
            {"name": "numcodecs.delta", "configuration": {"dtype": own, "astype": made}},
            {"name": "numcodecs.quantize", "configuration": {"dtype": own, "astype": "<f8", "digits": 2}},
            {"name": "numcodecs.astype", "configuration": {"encode_dtype": made, "decode_dtype": own}},
            {"name": "bitround", "configuration": {"keepbits": rng.choice([1, 5])}},
            {"name": "cast_value", "configuration": {"data_type": other}},
            {"name": "scale_offset", "configuration": {**scaled, "offset": rng.choice([0, 1])}},
            {"name": "transpose", "configuration": {"order": [1, 0]}},
        ]
    )


def a_chain(rng, name, inner):
    before, within = ([a_filter(rng, name)] if rng.random() < chance else [] for chance in (0.5, 0.4))
    serializer = {"name": "bytes", "configuration": {"endian": rng.choice(["little", "big"])}}
    if rng.random() < 0.3:
        return [*before, serializer]
    configuration = {
        "chunk_shape": inner,
        "codecs": [*([] if before else within), serializer],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, CRC],
    }
    shard = {"name": "sharding_indexed", "configuration": configuration}
    return [*before, shard, *([CRC] if rng.random() < 0.4 else [])]


def history(engine, document, changes, *, write_empty_chunks):
    """Return what is read and stored after each change; the last one is None if it raised an error."""
    store, steps = {"zarr.json": json.dumps(document).encode()}, []
    config = {"engine": engine, "write_empty_chunks": write_empty_chunks}
    try:
        with np.errstate(all="ignore"):
            array = omnizarr.open_array(store, mode="r+", config=config)
            steps.append((array[...].tobytes(), None))
            for selection, values in changes:
                array[selection] = values
                stored = sorted((key, bytes(value)) for key, value in store.items())
                steps.append((array[...].tobytes(), array[1::2, ::3].tobytes(), stored))
    except OmnizarrError:
        steps.append(None)
    return steps


@pytest.mark.parametrize("seed", range(RUNS))
def test_engines_store_and_read_the_same(seed):
    rng = random.Random(seed)
    complete = 0
    for _ in range(60):
        name = rng.choice(list(FILLS))
        inner = rng.choice([[2, 2], [1, 3], [2, 1]])
        shape, chunks = (rng.choice([4, 5]), rng.choice([4, 6])), [length * rng.choice([1, 2]) for length in inner]
        document = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(shape),
            "data_type": name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
            "chunk_key_encoding": {"name": "default"},
            "fill_value": rng.choice(FILLS[name]),
            "codecs": a_chain(rng, name, inner),
        }
        try:
            fill = omnizarr.open_array({"zarr.json": json.dumps(document).encode()}).fill_value
        except OmnizarrError:
            continue
        some = np.array([fill, fill, fill, 0.0, -0.0, np.nan, 1.5], STORED[name])[: rng.choice([1, 5, 7])]
        changes = []
        for _ in range(2):
            selection = tuple(slice(rng.randrange(length - 1), None) for length in shape)
            values = np.empty(
                tuple(length - each.start for length, each in zip(shape, selection, strict=True)), some.dtype
            )
            for at in np.ndindex(values.shape):
                values[at] = rng.choice(some)
            changes.append((selection, values))
        write_empty_chunks = rng.random() < 0.5
        expected = history("reference", document, changes, write_empty_chunks=write_empty_chunks)
        found = history("native", document, changes, write_empty_chunks=write_empty_chunks)
        assert found == expected, (document, write_empty_chunks)
        complete += expected[-1] is not None
    assert complete > 25


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_what_is_not_written_of_a_compressed_shard_stays_missing(engine):
    """A lossy codec would give it another value: -0.0 becomes (-0.0 + 2) * 4 / 4 - 2, which is 0.0."""
    scaled = {"offset": -2, "scale": 4, "dtype": "<f4", "astype": "<i2"}
    array = omnizarr.create_array(
        {},
        shape=(8,),
        chunks=(2,),
        shards=(8,),
        dtype="f4",
        fill_value=-0.0,
        filters=[{"name": "numcodecs.fixedscaleoffset", "configuration": scaled}],
        config={"engine": engine, "write_empty_chunks": True},
    )
    document = json.loads(array.store.get("zarr.json"))
    document["codecs"].append(CRC)
    array.store.set("zarr.json", json.dumps(document).encode())
    array = omnizarr.open_array(array.store, mode="r+", config={"engine": engine, "write_empty_chunks": True})
    array[:2] = 1
    assert array[...].tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
    assert np.signbit(array[2:]).all()
