"""Chunks of HDF5 datasets that are found by a part of their index."""

import h5py
import numpy as np
import pytest

import omnizarr
from omnizarr.data.sources import Part
from omnizarr.errors import MetadataError
from omnizarr.readers.hdf5 import btrees, chunks
from omnizarr.settings import engines
from tests.stores.recording import FAST, recording

SHAPE, CHUNK = (60, 30, 40), (2, 5, 5)
VALUES = np.arange(np.prod(SHAPE), dtype="i4").reshape(SHAPE)


def made(path, values=VALUES, **options):
    with h5py.File(path, "w", libver="earliest") as file:
        dataset = file.create_dataset("a", values.shape, "i4", chunks=CHUNK, fillvalue=-1, **options)
        dataset[...] = values
    return path


@pytest.fixture
def nodes(monkeypatch):
    """Count nodes of B-trees that are read, and calls that read the whole index."""
    counts = {"nodes": 0, "whole": 0}
    read, whole = btrees.chunk_nodes, chunks.read

    def counted(source, addresses, rank, level):
        counts["nodes"] += len(addresses)
        return read(source, addresses, rank, level)

    def counted_whole(dataset):
        counts["whole"] += 1
        return whole(dataset)

    monkeypatch.setattr(btrees, "chunk_nodes", counted)
    monkeypatch.setattr(chunks, "read", counted_whole)
    return counts


def is_native():
    return engines.choice(None) != "reference" and engines.module() is not None


def test_a_plane_takes_the_nodes_that_lead_to_it(tmp_path, nodes):
    array = omnizarr.open(made(tmp_path / "a.h5"), mode="r")["a"]
    assert np.array_equal(array[17], VALUES[17])
    if is_native():
        assert (nodes["whole"], nodes["nodes"] <= 6) == (0, True)


def test_everything_is_read_by_the_whole_index(tmp_path, nodes):
    array = omnizarr.open(made(tmp_path / "a.h5"), mode="r")["a"]
    assert np.array_equal(array[17], VALUES[17])
    assert np.array_equal(array[...], VALUES)
    assert np.array_equal(array[3:9, 4], VALUES[3:9, 4])
    assert nodes["whole"] == 1


def test_many_small_selections_lead_to_the_whole_index(tmp_path, nodes):
    array = omnizarr.open(made(tmp_path / "a.h5"), mode="r")["a"]
    for t in range(0, 60, 2):
        assert np.array_equal(array[t, 3:9, 8:30], VALUES[t, 3:9, 8:30])
    assert nodes["whole"] == 1


def test_conversions_and_orders_are_the_same(tmp_path):
    array = omnizarr.open(made(tmp_path / "a.h5"), mode="r")["a"]
    out = np.empty((30, 40), "f8")
    array.get_basic_selection(5, out=out)
    assert np.array_equal(out, VALUES[5])
    assert np.array_equal(array.vindex[[3, 50, 3], [2, 2, 29], [9, 0, 39]], VALUES[[3, 50, 3], [2, 2, 29], [9, 0, 39]])
    assert np.array_equal(array[...], VALUES)


def test_chunks_that_are_not_stored_are_the_fill_value(tmp_path, nodes):
    path = tmp_path / "a.h5"
    expected = np.full(SHAPE, -1, "i4")
    with h5py.File(path, "w", libver="earliest") as file:
        dataset = file.create_dataset("a", SHAPE, "i4", chunks=CHUNK, fillvalue=-1)
        for t, y, x in np.random.default_rng(3).permutation(np.argwhere(np.ones((30, 6, 8))))[:700].tolist():
            part = np.s_[2 * t : 2 * t + 2, 5 * y : 5 * y + 5, 5 * x : 5 * x + 5]
            dataset[part] = expected[part] = VALUES[part]
    array = omnizarr.open(path, mode="r")["a"]
    assert np.array_equal(array[31], expected[31])
    assert nodes["whole"] == (0 if is_native() else 1)
    assert np.array_equal(array[...], expected)


def test_chunks_that_skip_filters_are_decoded(tmp_path, nodes):
    path = made(tmp_path / "a.h5", compression="gzip", shuffle=True)
    other = np.full(CHUNK, 9, "i4")
    with h5py.File(path, "r+") as file:
        file["a"].id.write_direct_chunk((16, 0, 0), other.tobytes(), filter_mask=3)
    expected = VALUES.copy()
    expected[16:18, :5, :5] = other
    array = omnizarr.open(path, mode="r")["a"]
    assert np.array_equal(array[17], expected[17])
    assert np.array_equal(array[...], expected)
    assert nodes["whole"] == 1


def test_chunks_beyond_the_shape_are_left_out(tmp_path):
    path = made(tmp_path / "a.h5", maxshape=(None, None, None))
    with h5py.File(path, "r+") as file:
        file["a"].resize((58, 26, 39))
        expected = file["a"][...]
    array = omnizarr.open(path, mode="r")["a"]
    assert np.array_equal(array[17], expected[17])
    assert np.array_equal(array[...], expected)


def test_a_broken_node_is_an_error_for_those_who_need_it(tmp_path):
    path = made(tmp_path / "a.h5")
    data = path.read_bytes()
    leaves = [at for at in range(len(data)) if data.startswith(b"TREE\x01\x00", at)]
    assert len(leaves) > 10
    path.write_bytes(data[: leaves[-1]] + b"X" + data[leaves[-1] + 1 :])
    array = omnizarr.open(path, mode="r")["a"]
    errors = 0
    for t in range(0, 60, 2):
        try:
            assert np.array_equal(array[t], VALUES[t])
        except MetadataError:
            errors += 1
    assert errors > 0
    with pytest.raises(MetadataError, match="B-tree"):
        array[...]


@pytest.fixture
def far(tmp_path):
    """A file of two datasets behind a web server, and the server."""
    pytest.importorskip("obstore.store", reason="the extra cloud is not installed")
    path = made(tmp_path / "a.h5")
    with h5py.File(path, "r+") as file:
        file.create_dataset("b", data=-VALUES, chunks=CHUNK)
    with recording() as server:
        server.values["/d/a.h5"] = path.read_bytes()
        yield omnizarr.open(server.url("/d/a.h5"), mode="r", storage_options=FAST), server


def test_several_selections_of_a_far_array_are_fetched_together(far, nodes):
    group, server = far
    starts = range(0, 60, 7)
    server.requests()
    found = omnizarr.read_many([(group["a"], np.s_[t : t + 3]) for t in starts])
    for t, values in zip(starts, found, strict=True):
        assert np.array_equal(values, VALUES[t : t + 3])
    assert nodes["whole"] == 1
    if is_native():
        assert len(server.requests()) <= 30  # one or two for each selection; there are 1,152 chunks


def test_one_selection_of_each_of_several_far_arrays_takes_the_nodes_that_lead_to_it(far, nodes):
    group, server = far
    server.requests()
    first, second = omnizarr.read_many([(group["a"], 17), (group["b"], np.s_[40:42])])
    assert np.array_equal(first, VALUES[17])
    assert np.array_equal(second, -VALUES[40:42])
    if is_native():
        assert nodes["whole"] == 0
        assert len(server.requests()) <= 20


def test_a_loader_reads_the_whole_index_and_fetches_as_from_other_files(far, nodes):
    group, _ = far
    loader = omnizarr.data.Loader({"x": group["a"], "i": np.arange(60)}, batch=7, shuffle="full")
    for batch in loader:
        assert np.array_equal(batch["x"], VALUES[batch["i"]])
    assert nodes["whole"] == 1
    assert Part(group["a"]).is_remote == is_native()
