"""The estimated cost of a conversion, against the actual one."""

import numpy as np
import pytest

import omnizarr
from omnizarr.stores import MemoryStore, MetricsStore


def source(**options):
    """Return maps of numbers that are compressed to about half, a quarter of them missing."""
    given = {"shape": (32, 120, 160), "chunks": (1, 120, 160), "dtype": "float32", "fill_value": 0, **options}
    array = omnizarr.create_array({}, **given)
    array[:24] = np.random.default_rng(0).integers(0, 500, (24, 120, 160)) / 4
    return array


@pytest.mark.parametrize(
    "wishes",
    [
        {"zarr_format": 2, "compressors": "keep"},
        {"chunks": (32, 30, 40)},
        {"chunks": (8, 30, 40), "shards": (32, 120, 80)},
        {"chunks": (5, 50, 7)},
        {"compressors": {"id": "gzip", "level": 1}},
        {"shards": "auto"},
        {"chunks": (32, 8, 8), "max_memory": 300_000},
    ],
    ids=str,
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_objects_and_bytes_are_about_those_that_are_written(wishes, order):
    array = source(order=order, zarr_format=2)
    said = omnizarr.convert(array, estimate=True, **wishes)
    target = {}
    done = omnizarr.convert(array, target, **wishes)
    estimate = said.nodes[0].estimate
    assert said.dry_run
    assert estimate.objects >= done.nodes[0].chunks >= 0.7 * estimate.objects
    assert estimate.nbytes == pytest.approx(done.nbytes, rel=0.2)
    low, high = estimate.seconds
    assert 0 < low <= high
    assert said.estimate == estimate
    assert said.to_json()["estimate"]["objects"] == estimate.objects
    assert "estimate: about " in str(said)


def test_nothing_is_written_and_little_is_read():
    store = MetricsStore(source().store)
    target = MemoryStore()
    omnizarr.convert(store, target, estimate=True, chunks=(32, 30, 40))
    verbs = store.report().verbs
    assert not list(target.list())
    assert not {"set", "delete"} & set(verbs)
    reads = sum(figures.requests for verb, figures in verbs.items() if verb.startswith(("get", "read")))
    assert reads < 7 * 32 + 20


def test_sample_decodes_no_more_than_a_bound(monkeypatch):
    from omnizarr.tools.convert import estimating

    monkeypatch.setattr(estimating, "_MOST_READ", 4 * 120 * 160 * 4)
    store = MetricsStore(source().store)
    omnizarr.convert(store, estimate=True, chunks=(32, 30, 40))
    verbs = store.report().verbs
    reads = sum(figures.requests for verb, figures in verbs.items() if verb.startswith(("get", "read")))
    assert reads <= 6 * 4 + 20


def test_group_adds_up_its_arrays():
    root = omnizarr.create_group({})
    root.create_array("a", data=np.arange(1000), chunks=(100,))
    root.create_array("g/b", data=np.arange(500.0), chunks=(100,))
    root.create_array("empty", shape=(10,), chunks=(2,), dtype="int8", fill_value=0)
    said = omnizarr.convert(root, estimate=True, chunks=(50,))
    by_path = {node.path: node.estimate for node in said.nodes}
    assert by_path[""] is None
    assert (by_path["a"].objects, by_path["g/b"].objects, by_path["empty"].objects) == (20, 10, 0)
    assert said.estimate.objects == 30
    assert by_path["empty"].seconds == (0.0, 0.0)


def test_time_of_an_array_that_cannot_be_decoded_is_unknown():
    values = {}
    omnizarr.create_array(values, data=np.arange(100), chunks=(10,), zarr_format=2)
    values[".zarray"] = bytes(values[".zarray"]).replace(b'"int64"', b'"int64"').replace(b'"id": "', b'"id": "un')
    said = omnizarr.convert(values, estimate=True, zarr_format=2, compressors="keep")
    stored = sum(len(value) for key, value in values.items() if key.isdigit())
    assert said.estimate.seconds is None
    assert (said.estimate.objects, said.estimate.nbytes) == (10, stored)
    assert "time unknown" in str(said)


def test_broken_chunks_are_ignored():
    array = source()
    key = "c/0/0/0"
    array.store.set(key, array.store.get(key)[:10])
    assert omnizarr.convert(array, estimate=True, chunks=(4, 60, 80)).estimate.seconds is not None


def test_estimate_means_nothing_in_place():
    with pytest.raises(ValueError, match="nothing to estimate"):
        omnizarr.convert(source(zarr_format=2), in_place=True, estimate=True)
