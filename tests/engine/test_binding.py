"""`omnizarr.engine.binding`: what moving chunks needs is remembered among arrays that say the same of them."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import omnizarr
from omnizarr import engine
from omnizarr.codecs import registry
from omnizarr.codecs.contract import ChunkPolicy
from omnizarr.errors import MetadataError, UnknownCodecError
from omnizarr.formats.v3 import V3
from omnizarr.model import UNDEFINED, Named
from omnizarr.stores import MemoryStore

DOCUMENT = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4],
    "data_type": "float32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": {"name": "default"},
    "fill_value": 0.0,
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
}


def metadata(**changes):
    return V3.load({"zarr.json": json.loads(json.dumps({**DOCUMENT, **changes}))})


def bind(found, policy=None):
    return engine.bind(found, MemoryStore(), "", policy or ChunkPolicy())


@pytest.fixture
def registering(monkeypatch):
    monkeypatch.setattr(registry, "_found", dict(registry._found))
    return partial(registry.register, kind="bytes to bytes")


def test_arrays_that_differ_in_attributes_share_a_chain():
    assert bind(metadata()).chain is bind(metadata(attributes={"units": "K"})).chain


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"fill_value": 0.0}, {"fill_value": -0.0}),
        ({"fill_value": "NaN"}, {"fill_value": "0x7fc00001"}),
        ({"data_type": "int32", "fill_value": 1}, {"data_type": "int32", "fill_value": 1.0}),
        ({"shape": [4]}, {"shape": [3]}),
        ({"chunk_key_encoding": {"name": "default"}}, {"chunk_key_encoding": {"name": "v2"}}),
        ({}, {"codecs": [{"name": "bytes", "configuration": {"endian": "big"}}]}),
    ],
    ids=["sign of zero", "bits of NaN", "number type", "shape", "keys", "byte order"],
)
def test_what_differs_is_distinguished(one, other):
    first, second = bind(metadata(**one)), bind(metadata(**other))

    def meaning(binding):
        spec = binding.spec
        fill = np.asarray(spec.fill_value, spec.dtype).tobytes()
        return fill, binding.grid.shape, binding.key_of((1,)), bytes(binding.chain.encode(np.arange(2, dtype="f4")))

    expected = meaning(engine.binding.Binding(**fresh(one))), meaning(engine.binding.Binding(**fresh(other)))
    assert (meaning(first), meaning(second)) == expected


def fresh(changes):
    """Return the fields of a binding that was not remembered."""
    found = metadata(**changes)
    parts = engine.binding._made(found, ChunkPolicy())
    return {
        "store": MemoryStore(),
        "prefix": "",
        "path": "",
        **parts._asdict(),
        "chunks_differ": False,
        "metadata": found,
        "policy": ChunkPolicy(),
    }


def test_true_is_not_mistreated_as_one():
    order = {"name": "transpose", "configuration": {"order": [1, 0]}}
    square = {"shape": [2, 2], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}}}
    bind(metadata(**square, codecs=[order, *DOCUMENT["codecs"]]))
    order["configuration"]["order"] = [True, False]
    with pytest.raises(MetadataError):
        bind(metadata(**square, codecs=[order, *DOCUMENT["codecs"]]))


def test_policies_are_distinguished():
    assert bind(metadata()).policy.missing == "fill"
    assert bind(metadata(), ChunkPolicy(missing="error")).chain.spec.policy.missing == "error"
    undefined = replace(metadata(), fill_value=UNDEFINED)
    assert (bind(undefined).policy.write_empty_chunks, bind(metadata()).policy.write_empty_chunks) == (True, False)


def test_codec_registered_after_it_was_missing_is_found(registering):
    codecs = [*DOCUMENT["codecs"], {"name": "example.late"}]
    store = {"zarr.json": json.dumps({**DOCUMENT, "codecs": codecs}).encode()}
    array = omnizarr.open_array(store)
    with pytest.raises(UnknownCodecError):
        array[...]
    registering("example.late", lambda _, decoded: registry.find("gzip").bind({"level": 1}, decoded))
    array[...] = [1, 2, 3, 4]
    np.testing.assert_array_equal(omnizarr.open_array(store)[...], np.array([1, 2, 3, 4], "f4"))
    assert store["c/0"][:2] == b"\x1f\x8b"


def test_codec_registered_over_another_is_taken_by_the_next_opening(registering):
    codecs = [*DOCUMENT["codecs"], {"name": "gzip", "configuration": {"level": 1}}]
    store = {"zarr.json": json.dumps({**DOCUMENT, "codecs": codecs}).encode()}
    omnizarr.open_array(store)[...] = 1
    assert store["c/0"][:2] == b"\x1f\x8b"
    registering("gzip", lambda _, decoded: registry.find("zstd").bind({"level": 0}, decoded))
    omnizarr.open_array(store)[...] = 2
    assert store["c/0"][:4] == b"\x28\xb5\x2f\xfd"


def test_what_a_user_holds_changes_nothing_that_is_remembered():
    runs = [[1, 2], 2]
    grid = Named("rectilinear", {"kind": "inline", "chunk_shapes": [runs]})
    first = bind(replace(metadata(), chunk_grid=grid))
    runs[1] = 3
    assert bind(replace(metadata(), chunk_grid=Named("rectilinear", {"kind": "inline", "chunk_shapes": [[[1, 2], 2]]})))
    assert first.grid.named.configuration["chunk_shapes"] == [[[1, 2], 2]]


def test_grids_with_the_same_largest_chunk_are_distinguished():
    root, values = omnizarr.create_group({}), np.arange(8, dtype="i4")
    for name, lengths in (("a", [4, 1, 3]), ("b", [1, 4, 3]), ("c", [3, 4, 1])):
        root.create_array(name, data=values, chunks=[lengths])
    for name in "abc":
        np.testing.assert_array_equal(root[name][...], values)
        np.testing.assert_array_equal(root[name][2:7], values[2:7])


def test_objects_that_fill_are_not_shared():
    document = {"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "|O", "compressor": None, "order": "C"}
    store = {".zarray": json.dumps({**document, "fill_value": {"a": []}, "filters": [{"id": "json2"}]}).encode()}
    omnizarr.open_array(store)[0]["a"].append(1)
    omnizarr.open_array(store).fill_value["a"].append(1)
    assert omnizarr.open_array(store)[0] == omnizarr.open_array(store).fill_value == {"a": []}


@pytest.mark.parametrize("value", [np.arange(3), lambda: None], ids=["array", "function"])
def test_configurations_that_are_no_json_are_bound(registering, value):
    registering("example.odd", lambda _, decoded: registry.find("gzip").bind({"level": 1}, decoded))
    found = replace(metadata(), codecs=(Named("bytes", {"endian": "little"}), Named("example.odd", {"x": value})))
    assert bytes(bind(found).chain.encode(np.zeros(2, "f4"))[:2]) == b"\x1f\x8b"
