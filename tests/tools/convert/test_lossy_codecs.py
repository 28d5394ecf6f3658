"""Codecs that do not keep all values: a conversion lists a new one with its bound, and compares what it keeps."""

import re

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import NotRepresentableError

VALUES = np.random.default_rng(8).normal(50, 20, (20, 30))

FILTERS = {
    "bitround": ("float32", {"id": "bitround", "keepbits": 10}, lambda v: np.abs(v) * 2.0**-11),
    "quantize": ("float64", {"id": "quantize", "digits": 3, "dtype": "<f8"}, lambda _: 0.5e-3),
    "fixedscaleoffset": (
        "float64",
        {"id": "fixedscaleoffset", "offset": 50, "scale": 10, "dtype": "<f8", "astype": "<i4"},
        lambda _: 0.05 * (1 + 1e-9),
    ),
    "astype": (
        "float64",
        {"id": "astype", "encode_dtype": "<f4", "decode_dtype": "<f8"},
        lambda v: np.abs(v) * 2.0**-24,
    ),
    "cast_value": (
        "float64",
        {"name": "cast_value", "configuration": {"data_type": "float32"}},
        lambda v: np.abs(v) * 2.0**-24,
    ),
    "scale_offset": (
        "float32",
        {"name": "scale_offset", "configuration": {"offset": 3.3, "scale": 0.7}},
        lambda v: np.abs(v) * 2.0**-20,
    ),
}
"""The type of the values, the codec, and how far decoded values may be from them, by the definitions of the codecs."""
EXACT = {
    "bitround of all bits": ("float32", {"id": "bitround", "keepbits": 23}),
    "delta of integers": ("int32", {"id": "delta", "dtype": "<i4"}),
    "astype wider": ("float32", {"id": "astype", "encode_dtype": "<f8", "decode_dtype": "<f4"}),
    "offset of integers": ("int32", {"id": "fixedscaleoffset", "offset": 3, "scale": 1, "dtype": "<i4"}),
}


def source_of(dtype):
    values = VALUES.astype(dtype)
    source = {}
    omnizarr.create_array(source, data=values, chunks=(7, 8))
    return source, values


def format_of(codec):
    return 3 if "name" in codec else 2


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("name", FILTERS)
def test_a_codec_that_rounds_is_a_listed_loss(name, verify):
    dtype, codec, bound = FILTERS[name]
    source, values = source_of(dtype)
    target = {}
    done = omnizarr.convert(source, target, zarr_format=format_of(codec), filters=[codec], verify=verify)
    assert not done.is_lossless
    assert [name in loss.what for loss in done.losses] == [True]
    found = omnizarr.open_array(target)[...]
    assert (np.abs(found.astype("f8") - values) <= bound(values.astype("f8"))).all()
    with pytest.raises(NotRepresentableError, match=name):
        omnizarr.convert(source, {}, zarr_format=format_of(codec), filters=[codec], strict=True)


@pytest.mark.parametrize("name", ["bitround", "quantize", "fixedscaleoffset"])
def test_the_bound_that_is_told_holds(name):
    dtype, codec, _ = FILTERS[name]
    source, values = source_of(dtype)
    target = {}
    done = omnizarr.convert(source, target, zarr_format=2, filters=[codec])
    kind, text = re.search(r"(relative|absolute) error at most (\S+)", done.losses[0].why).groups()
    most = eval(text.replace("^", "**").rstrip(";"))
    errors = np.abs(omnizarr.open_array(target)[...].astype("f8") - values)
    assert errors.max() > 0
    assert (errors <= most * (np.abs(values) if kind == "relative" else 1) * (1 + 1e-9)).all()


@pytest.mark.parametrize("name", EXACT)
def test_a_codec_that_keeps_everything_is_none(name):
    dtype, codec = EXACT[name]
    source, values = source_of(dtype)
    target = {}
    done = omnizarr.convert(source, target, zarr_format=2, filters=[codec], strict=True)
    assert done.is_lossless
    assert np.array_equal(omnizarr.open_array(target)[...], values)


@pytest.mark.parametrize("name", ["bitround", "quantize", "astype"])
def test_values_that_are_rounded_already_lose_nothing(name):
    dtype, codec, _ = FILTERS[name]
    source, _ = source_of(dtype)
    rounded, target = {}, {}
    omnizarr.convert(source, rounded, zarr_format=2, filters=[codec])
    done = omnizarr.rechunk(rounded, target, chunks=(5, 6))
    assert done.is_lossless
    assert np.array_equal(omnizarr.open_array(target)[...], omnizarr.open_array(rounded)[...])


def test_a_difference_beyond_what_the_codec_rounds_is_found(monkeypatch):
    from omnizarr.tools.convert import moving

    dtype, codec, _ = FILTERS["bitround"]
    source, _ = source_of(dtype)
    kept = moving.Move.kept
    monkeypatch.setattr(moving.Move, "kept", lambda *given: kept(*given) + np.float32(1))
    with pytest.raises(omnizarr.errors.ChunkError, match="verification failed"):
        omnizarr.convert(source, {}, zarr_format=2, filters=[codec])


@pytest.mark.parametrize(
    "configuration", [{"mode": "fixed_accuracy", "tolerance": 0.01}, {"mode": "fixed_precision", "precision": 12}]
)
def test_zfp_says_what_it_keeps(configuration):
    pytest.importorskip("zfpy")
    source, values = source_of("float64")
    target = {}
    serializer = {"name": "zfp", "configuration": configuration}
    done = omnizarr.convert(source, target, serializer=serializer, compressors=None)
    assert not done.is_lossless
    assert done.verified
    if "tolerance" in configuration:
        assert np.abs(omnizarr.open_array(target)[...] - values).max() <= 0.01


def test_within_shards_too():
    source, _ = source_of("float32")
    codec = {"name": "bitround", "configuration": {"keepbits": 5}}
    done = omnizarr.convert(source, {}, chunks=(5, 6), shards=(10, 12), filters=[codec])
    assert ["bitround" in loss.what for loss in done.losses] == [True]
