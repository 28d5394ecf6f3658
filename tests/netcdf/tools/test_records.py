"""Records that a killed writer of netCDF has left are adopted if that is asked for, and if they are complete."""

import json

import numpy as np
import pytest

import omnizarr
from omnizarr.netcdf import Dataset
from omnizarr.nodes import resizing
from omnizarr.stores import MemoryStore
from tests.mortal import attempts

LAYOUTS = ["D", "xarray", "v3", "E"]


def made(store, layout="D", records=3):
    with Dataset(store, "w", layout=layout) as dataset:
        dataset.createDimension("time", None)
        dataset.createDimension("x", 4)
        dataset.createVariable("v", "i4", ("time", "x"), chunksizes=(2, 2), fill_value=-1)[:records] = np.ones(
            (records, 4)
        )
        dataset.createVariable("t", "f8", ("time",), chunksizes=(4,))[:records] = np.arange(records)
        dataset.createVariable("unused", "i2", ("time",))
    return store


def leave(store, name, records, value):
    """Store records beyond the end, as a killed writer does."""
    array = omnizarr.open_array(store, path=name, mode="r+")
    longer = resizing.with_shape(array.metadata, (records.stop, *array.shape[1:]))
    omnizarr.Array(array.store_path, longer, array.config)[records] = value


def contents(store):
    return {key: bytes(store.get(key)) for key in store.list()}


def found(store):
    with Dataset(store) as dataset:
        return {name: each[:].filled(-1).tolist() for name, each in dataset.variables.items()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_complete_records_are_adopted_and_can_be_given_back(layout, tmp_path):
    store = made(MemoryStore(), layout)
    before = contents(store)
    leave(store, "v", slice(3, 9), 7)
    leave(store, "t", slice(3, 7), np.arange(3, 7))
    left = contents(store)
    account = omnizarr.repair(store, adopt=True)
    assert account.dry_run
    assert contents(store) == left
    account = omnizarr.repair(store, adopt=True, dry_run=False, backup=tmp_path / "backup")
    assert {action.code for action in account.actions} == {"chunk-beyond-grid"}
    assert "/time from 3 to 7" in account.actions[0].what
    values = found(store)
    assert values["v"] == [[1] * 4] * 3 + [[7] * 4] * 4
    assert values["t"] == [0, 1, 2, 3, 4, 5, 6]
    assert len(values["unused"]) == 7
    assert omnizarr.open_array(store, path="v", mode="r").shape == (7, 4)
    # Of the two records beyond, the second one's chunks are outside still.
    assert {finding.code for finding in omnizarr.check(store).findings} <= {"chunk-beyond-grid", "missing-chunks"}
    omnizarr.undo_repair(account, store, dry_run=False)
    assert contents(store) == left
    documents = [key for key in before if json_of(before[key])]
    assert all(before[key] == contents(store)[key] for key in documents)


def json_of(value):
    try:
        return isinstance(json.loads(value), dict)
    except ValueError:
        return False


@pytest.mark.parametrize("records", [0, 2, 3])
@pytest.mark.parametrize("stop", [4, 5, 7])
def test_records_are_adopted_wherever_the_edges_are(records, stop):
    store = made(MemoryStore(), records=records)
    leave(store, "v", slice(records, stop), 7)
    omnizarr.repair(store, adopt=True, dry_run=False, backup=False)
    assert found(store)["v"] == [[1] * 4] * records + [[7] * 4] * (stop - records)


@pytest.mark.parametrize(("key", "length"), [("v/2.1", 4), ("v/3.0", 6), ("t/1", 4)])
@pytest.mark.parametrize("zlib", [False, True])
def test_a_chunk_of_which_a_killed_writer_left_a_part_ends_the_records(tmp_path, key, length, zlib):
    path = tmp_path / "x.zarr"
    with Dataset(path, "w", layout="D") as dataset:
        dataset.createDimension("time", None)
        dataset.createDimension("x", 4)
        dataset.createVariable("v", "i4", ("time", "x"), chunksizes=(2, 2), zlib=zlib)[:3] = 1
        dataset.createVariable("t", "f8", ("time",), chunksizes=(4,), zlib=zlib)[:3] = 1
    leave(str(path), "v", slice(3, 9), 7)
    leave(str(path), "t", slice(3, 9), 7)
    chunk = path / key
    chunk.write_bytes(chunk.read_bytes()[:-5])
    omnizarr.repair(path, adopt=True, dry_run=False, backup=False)
    values = found(str(path))
    assert (len(values["v"]), len(values["t"])) == (length, length)
    assert values["v"][3:] == [[7] * 4] * (length - 3)


@pytest.mark.parametrize("codes", [None, ["chunk-beyond-grid"]])
def test_nothing_is_adopted_unless_it_is_asked_for(codes):
    store = made(MemoryStore())
    leave(store, "v", slice(3, 9), 7)
    before = found(store)
    omnizarr.repair(store, codes=codes, dry_run=False, backup=False)
    assert found(store) == before


def lack(store):
    """Take away a chunk of the third row: it lacks in a record, and all that follow may belong to another writer."""
    store.delete("v/2.0")


def empty(store):
    """Store only the fill value."""
    leave(store, "v", slice(4, 9), -1)


@pytest.mark.parametrize(("worsen", "length"), [(None, 9), (lack, 4), (empty, 4)])
def test_what_is_not_complete_is_left(worsen, length):
    store = made(MemoryStore(), records=4)
    leave(store, "v", slice(4, 9), 7)
    if worsen is not None:
        worsen(store)
    omnizarr.repair(store, adopt=True, dry_run=False, backup=False)
    assert len(found(store)["v"]) == length


def test_what_is_no_netcdf_is_left_alone():
    values = {}
    omnizarr.create_array(values, shape=(3,), dtype="u1")
    assert omnizarr.repair(values, adopt=True, dry_run=False, backup=False).ok
    store = made(MemoryStore(), layout="pure")
    assert omnizarr.repair(store, adopt=True, dry_run=False, backup=False).ok


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_a_writer_that_is_killed_at_any_step_leaves_can_be_adopted(layout):
    def write(store):
        with Dataset(store, "a") as dataset:
            dataset["v"][3:8] = 7
            dataset["t"][3:8] = np.arange(3, 8)

    lengths = set()
    for store in attempts(lambda: made(MemoryStore(), layout), write, fails=False):
        omnizarr.repair(store, adopt=True, dry_run=False, backup=False)
        values = found(store)
        length = len(values["v"])
        lengths.add(length)
        # What one variable has, another one that has nothing there shows as fill values.
        assert values["v"][:length] == ([[1] * 4] * 3 + [[7] * 4] * 5)[:length]
        assert all(time in (-1, place) for place, time in enumerate(values["t"]))
    assert {3, 8} <= lengths


def test_what_netcdf_c_wrote_before_its_lengths_is_adopted_and_netcdf_c_reads_it(tmp_path):
    netcdf4 = pytest.importorskip("netCDF4", reason="netCDF-C is not installed")
    path = tmp_path / "x.zarr"
    with netcdf4.Dataset(f"file://{path}#mode=nczarr,file", "w") as dataset:
        dataset.createDimension("time", None)
        dataset.createDimension("x", 64)
        dataset.createVariable("v", "i4", ("time", "x"))[:] = np.arange(20)[:, None] + np.zeros(64)
    for document, length in ((path / ".zattrs", '"size": 20'), (path / "v" / ".zarray", "[20,")):
        text = document.read_text()
        assert length in text
        document.write_text(text.replace(length, length.replace("20", "0")))
    with Dataset(path) as dataset:
        assert dataset["v"].shape == (0, 64)
    omnizarr.repair(path, adopt=True, dry_run=False, backup=False)
    with netcdf4.Dataset(f"file://{path}#mode=nczarr,file") as dataset:
        assert (dataset["v"][:] == np.arange(20)[:, None]).all()
        assert dataset["v"].shape == (20, 64)
