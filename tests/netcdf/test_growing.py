"""Unlimited dimensions: growing shows no more than was written, whatever is beyond the end, and whatever failed."""

import numpy as np
import pytest
from obstore.store import MemoryStore as ObstoreMemory

import omnizarr
from omnizarr import errors
from omnizarr.model import ArrayMetadata
from omnizarr.netcdf import Dataset
from omnizarr.nodes import hierarchy, resizing
from omnizarr.stores import MemoryStore, ObjectStore
from tests.engine.both import ENGINES, needs_native
from tests.fakes import FaultyStore
from tests.mortal import attempts

LAYOUTS = ["D", "xarray", "v3", "E"]


@pytest.fixture(params=[pytest.param(name, marks=needs_native) if name == "native" else name for name in ENGINES])
def engine(request):
    with omnizarr.config.set({"engine": request.param}):
        yield request.param


def made(store, layout="v3", records=3):
    """A dataset of two variables with so many records, and of each more beyond the end, as a killed writer left."""
    with Dataset(store, "w", layout=layout) as dataset:
        dataset.createDimension("time", None)
        dataset.createDimension("x", 4)
        for name in "ab":
            variable = dataset.createVariable(name, "i4", ("time", "x"), chunksizes=(2, 2), fill_value=-1)
            variable[:records] = np.full((records, 4), 1)
    for name in "ab":
        array = omnizarr.open_array(store, path=name, mode="r+")
        longer = resizing.with_shape(array.metadata, (30, 4))
        omnizarr.Array(array.store_path, longer, array.config)[records:] = 999
    return store


def values(store):
    with Dataset(store) as dataset:
        return {name: dataset[name][:].filled(-1) for name in "ab"}


def arrays(store):
    return {name: omnizarr.open_array(store, path=name, mode="r")[...] for name in "ab"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", [MemoryStore, lambda: ObjectStore(ObstoreMemory())], ids=["lock", "condition"])
@pytest.mark.parametrize(
    "selection", [np.s_[3], np.s_[3:5], np.s_[4, 1:3], np.s_[9, 0], np.s_[3:8:2], np.s_[[8, 3]], np.s_[2:6]], ids=str
)
@pytest.mark.parametrize("buffered", [True, False])
def test_growing_shows_what_was_written_and_else_the_fill_value(engine, layout, kind, selection, buffered):
    store = made(kind(), layout)
    expected = np.full((30, 4), -1)
    expected[:3] = 1
    expected[selection] = 7
    with Dataset(store, "a", buffered=buffered) as dataset:
        dataset["a"][selection] = 7
        length = len(dataset.dimensions["time"])
        assert (dataset["a"][:].filled(-1) == expected[:length]).all()
    blank = np.full((length, 4), -1)
    blank[:3] = 1
    for found in (values(store), arrays(store)):
        np.testing.assert_array_equal(found["a"], expected[:length])
        np.testing.assert_array_equal(found["b"], blank)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fails", [False, True], ids=["killed", "failed"])
@pytest.mark.parametrize("selection", [np.s_[3:6], np.s_[5, 1]], ids=str)
@pytest.mark.parametrize("buffered", [True, False])
def test_what_stops_at_any_step_leaves_the_old_state_or_the_new(layout, fails, selection, buffered):
    def write(store):
        with Dataset(store, "a", buffered=buffered) as dataset:
            dataset["a"][selection] = 7

    old = np.full((3, 4), 1)
    new = np.full((6, 4), -1)
    new[:3] = 1
    blank = new.copy()
    new[selection] = 7
    for store in attempts(lambda: made(MemoryStore(), layout), write, fails=fails):
        states = values(store), arrays(store)
        for found in states:
            assert any(np.array_equal(found["a"], each) for each in (old, new))
            assert any(np.array_equal(found["b"], each) for each in (old, blank))
        # What is seen later is the whole of it, or nothing.
        with Dataset(store, "a") as dataset:
            dataset["b"][6] = 8
        later = values(store)["a"]
        assert any(np.array_equal(later[:6], each) for each in (blank, new))
        assert (later[6:] == -1).all()


def test_records_that_another_program_has_stored_beyond_the_shape_of_an_array_stay():
    """The record of the group says how long a dimension is, where the document of an array says less."""
    store = MemoryStore()
    with Dataset(store, "w", layout="v3") as dataset:
        dataset.createDimension("time", None)
        dataset.createVariable("a", "i4", ("time",), chunksizes=(2,), fill_value=-1)[:6] = 1
    array = omnizarr.open_array(store, path="a", mode="r+")
    document = bytes(store.get("a/zarr.json"))
    store.set("a/zarr.json", document.replace(b'"shape": [\n    6', b'"shape": [\n    3').replace(b"[6]", b"[3]"))
    array.refresh()
    assert array.shape == (3,)
    with Dataset(store, "a") as dataset:
        dataset["a"][8] = 2
    with Dataset(store) as dataset:
        assert dataset["a"][:].filled(-1).tolist() == [1] * 6 + [-1, -1, 2]


@pytest.mark.parametrize("buffered", [True, False])
def test_a_failed_growth_leaves_neither_longer_arrays_nor_chunks(buffered):
    store = FaultyStore(made(MemoryStore()))
    for name in "ab":
        array = omnizarr.open_array(store, path=name, mode="r+")
        for records in (30, 3):
            resizing.resize(array.store_path, (records, 4), array.config.policy)
    before = {key: bytes(store.get(key)) for key in store.list()}
    dataset = Dataset(store, "a", buffered=buffered)
    store.fail("set", 4)  # chunk, chunk, document of a; then that of b
    with pytest.raises(errors.StoreError), dataset:
        dataset["a"][4] = 7
    assert {key: bytes(store.get(key)) for key in store.list()} == before


# -- by the interface of Zarr


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("place", ["group", "path"])
def test_the_interface_of_zarr_changes_no_length_that_nczarr_has_too(layout, place, tmp_path):
    """netCDF-C opens no dataset with an array that is longer than its dimension."""
    path = tmp_path / "x.zarr"
    made(str(path), layout)
    array = omnizarr.open(path, mode="r+")["a"] if place == "group" else omnizarr.open(path / "a", mode="r+")
    block = np.ones((1, 4), "i4")
    for change in (
        lambda: array.append(block),
        lambda: array.resize(5, 4),
        lambda: array.resize(2, axis=0),
        lambda: array.writer().append(block),
    ):
        with pytest.raises(errors.NotRepresentableError, match="variable of NCZarr"):
            change()
    with Dataset(path) as dataset:
        assert dataset["a"][:].tolist() == [[1] * 4] * 3


@pytest.mark.parametrize("layout", ["D", "v3"])
def test_records_beyond_the_end_of_a_dimension_are_not_left_out_without_a_word(layout, tmp_path):
    """Another program, or a killed one, made an array longer, and not its dimension."""
    path = tmp_path / "x.zarr"
    made(str(path), layout)
    where = omnizarr.open_array(str(path), path="a", mode="r+").store_path
    hierarchy.update(where, ArrayMetadata, lambda metadata: resizing.with_shape(metadata, (5, 4)))
    left_out = "the last 2 of 5 along '/time', which has length 3"
    with Dataset(path) as dataset:
        assert len(dataset["a"]) == 3
    (loss,) = omnizarr.convert(path, tmp_path / "x.nc").losses
    assert (loss.path, loss.what, loss.why) == ("a", "records", left_out)
    assert left_out in str(omnizarr.check(path))
