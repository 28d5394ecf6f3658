"""Records that wait to be stored: seen at once by their own dataset, by all others when they are stored, whole."""

import json
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnizarr
from omnizarr import errors
from omnizarr.netcdf import Dataset, records
from omnizarr.nodes import resizing, unsaved
from omnizarr.stores import LocalStore, MemoryStore, SQLiteStore
from tests.concurrency.interruptions import Interrupter
from tests.fakes import FaultyStore, WatchedStore
from tests.repeats import runs

RUNS = runs(30)
HAVE_UNLIMITED = ["D", "xarray", "v3", "E"]


def made(store, layout="D", **options):
    dataset = Dataset(store, "w", layout=layout, **options)
    dataset.createDimension("time", None)
    dataset.createDimension("x", 3)
    dataset.createVariable("v", "i4", ("time", "x"), chunksizes=(2, 2), fill_value=-1)
    dataset.createVariable("t", "f8", ("time",))
    return dataset


def with_two(dataset):
    """Add a variable that has two unlimited dimensions."""
    dataset.createDimension("n", None)
    dataset.createVariable("w", "i2", ("time", "n"), chunksizes=(3, 2), fill_value=-1)
    return dataset


def contents(store):
    return {key: bytes(store.get(key)) for key in store.list()}


def append(dataset, records):
    for number in records:
        dataset["v"][number] = number
        dataset["t"][number] = number


def seen(store):
    """What others find: values of `t`, and whether those of `v` are the same."""
    with Dataset(store) as dataset:
        times = dataset["t"][:].filled(-1).tolist()
        assert dataset.dimensions["time"].size == len(times) == len(dataset["v"])
        np.testing.assert_array_equal(dataset["v"][:].filled(-1), np.repeat(np.array(times)[:, None], 3, 1))
        return times


# -- when it is stored -----------------------------------------------------------------


@pytest.mark.parametrize("layout", HAVE_UNLIMITED)
def test_nothing_is_stored_before_sync_and_all_is_seen_at_once_by_the_dataset(layout):
    store = MemoryStore()
    dataset = made(store, layout)
    before = contents(store)
    append(dataset, range(5))
    variable = dataset["v"]
    assert (len(dataset.dimensions["time"]), variable.shape, len(variable), dataset["t"].size) == (5, (5, 3), 5, 5)
    assert contents(store) == before
    dataset.sync()
    assert seen(store) == [0, 1, 2, 3, 4]
    append(dataset, range(5, 7))
    dataset.close()
    assert seen(store) == list(range(7))


@pytest.mark.parametrize(
    "look",
    [
        lambda dataset: dataset["v"][:].tolist(),
        lambda dataset: dataset["v"][2].tolist(),
        lambda dataset: dataset["v"][-1, ::2].tolist(),
        lambda dataset: dataset["v"][[0, 2]].tolist(),
        lambda dataset: dataset["v"].array[:].tolist(),
        lambda dataset: np.asarray(dataset["v"]).tolist(),
        lambda dataset: dataset["w"][:].tolist(),
        lambda dataset: dataset.tocdl(data=True),
        lambda dataset: dataset.as_source().read("/v", (slice(0, 3), slice(0, 3))).tolist(),
        lambda dataset: pickle.loads(pickle.dumps(dataset))["v"][:].tolist(),
        lambda dataset: dataset.dimensions["time"].size,
    ],
)
def test_whatever_reads_the_dataset_finds_what_waits(look, tmp_path):
    found = []
    for buffered in (True, False):
        with made(str(tmp_path / f"{buffered}.zarr"), buffered=buffered) as dataset:
            dataset.createVariable("w", "i4", ("time",), fill_value=-1)
            append(dataset, range(3))
            found.append(str(look(dataset)).replace("True", "False"))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "change",
    [
        lambda dataset: dataset.createVariable("w", "i4", ("time",)),
        lambda dataset: dataset.createDimension("y", 2),
        lambda dataset: dataset.createGroup("g"),
        lambda dataset: dataset.renameVariable("v", "w"),
        lambda dataset: dataset.renameDimension("time", "step"),
        lambda dataset: dataset["v"].setncattr("units", "K"),
        lambda dataset: dataset.setncattr("title", "records"),
    ],
)
def test_definitions_find_what_waits_stored(change):
    store = MemoryStore()
    with made(store) as dataset:
        append(dataset, range(3))
        change(dataset)
        append_to = "w" if "v" not in dataset.variables else "v"
        dataset[append_to][3] = 3
        dataset["t"][3] = 3
    with Dataset(store) as dataset:
        name = "w" if "v" not in dataset.variables else "v"
        assert dataset["t"][:].tolist() == [0, 1, 2, 3]
        assert dataset[name][:].tolist() == [[number] * 3 for number in range(4)]


def test_strings_that_wait_keep_their_width():
    store = MemoryStore()
    with made(store) as dataset:
        names = dataset.createVariable("name", str, ("time",))
        names[0] = "first"
        with pytest.raises(errors.NotRepresentableError, match="stored already"):
            names._nczarr_maxstrlen = np.int32(3)
    with Dataset(store) as dataset:
        assert dataset["name"][:].tolist() == ["first"]


def test_a_dataset_that_is_opened_in_the_same_process_sees_all():
    store = MemoryStore()
    dataset = made(store)
    append(dataset, range(4))
    assert seen(store) == [0, 1, 2, 3]
    del dataset
    assert not unsaved.waiting()


@pytest.mark.parametrize(("name", "value"), [("LONGEST", -1.0), ("MOST", 0), ("_COST", 2**40)])
def test_the_next_write_stores_what_waits_long_or_is_much(name, value, monkeypatch):
    store = MemoryStore()
    dataset = made(store)
    monkeypatch.setattr(records, name, value)
    append(dataset, range(3))
    dataset["v"][3] = 3
    waiting = 0 if name == "MOST" else 1
    array = omnizarr.open_array(store, path="t", mode="r")
    assert array.shape == (4 - waiting,)
    assert array[:3].tolist() == [0, 1, 2]
    dataset.close()


@pytest.mark.parametrize("place", ["memory", "directory"])
@pytest.mark.parametrize("start", [0, 3, 4])
@pytest.mark.parametrize("pieces", [[(0, 3)], [(0, 2), (2, 5)], [(0, 1), (2, 3)], [(2, 5)], []])
def test_what_lies_beyond_is_never_seen_where_a_variable_has_fewer_records_than_others(place, start, pieces, tmp_path):
    store = MemoryStore() if place == "memory" else LocalStore(tmp_path / "x.zarr")
    dataset = made(store)
    dataset["v"][:start] = dataset["t"][:start] = 1
    dataset.close()
    documents = {name: bytes(store.get(f"{name}/.zarray")) for name in "vt"}
    for name, document in documents.items():  # a writer that was killed, or another program, left chunks
        array = omnizarr.open_array(store, path=name)
        longer = resizing.with_shape(array.metadata, (20, *array.shape[1:]))
        omnizarr.Array(array.store_path, longer, array.config)[start:] = 9
        store.set(f"{name}/.zarray", document)
    with Dataset(store, "r+") as dataset:
        dataset["t"][start : start + 7] = 2
        for begin, end in pieces:
            dataset["v"][start + begin : start + end] = 2
    expected = np.full(start + 7, -1)
    expected[:start] = 1
    for begin, end in pieces:
        expected[start + begin : start + end] = 2
    assert omnizarr.open_array(store, path="v")[...].tolist() == [[each] * 3 for each in expected]
    assert omnizarr.open_array(store, path="t")[...].tolist() == [1] * start + [2] * 7


@pytest.mark.parametrize("last", [100, 98])
def test_nothing_is_looked_for_where_records_are_written(last):
    asked = []
    store = WatchedStore(MemoryStore(), lambda verb, key: asked.append((verb, key)))
    dataset = made(store)
    dataset["v"][:last] = 1
    dataset["t"][:100] = 1
    asked.clear()
    dataset.sync()
    assert len([key for verb, key in asked if verb != "set" and re.fullmatch(r"v/[0-9]+.0", key)]) <= 2
    assert omnizarr.open_array(store, path="v")[...].tolist() == [[1] * 3] * last + [[-1] * 3] * (100 - last)


def test_records_are_stored_when_all_variables_have_them_if_they_are_many(monkeypatch):
    monkeypatch.setattr(records, "MOST_AT_ONCE", 5_000)
    store = MemoryStore()
    dataset = made(store)
    lengths = set()
    for number in range(1000):
        append(dataset, [number])
        lengths.add((len(omnizarr.open_array(store, path="v")), len(omnizarr.open_array(store, path="t"))))
    assert len(lengths) > 3
    assert all(first == second for first, second in lengths)


def test_memory_of_records_that_were_stored_is_used_again_and_none_stays_after_sync(monkeypatch):
    monkeypatch.setattr(records, "MOST_AT_ONCE", 6_000)
    made_room = []
    monkeypatch.setattr(records, "_room", lambda *given, make=records._room: made_room.append(1) or make(*given))
    store = MemoryStore()
    dataset = made(store)
    for number in range(0, 3000, 3):
        dataset["v"][number : number + 3] = np.arange(number, number + 3)[:, None]
        dataset["t"][number : number + 3] = np.arange(number, number + 3)
        if number == 1500:  # what was read before does not change with the memory
            read = dataset["v"][number - 2 : number + 3]
    assert len(made_room) < 20
    dataset.sync()
    assert dataset._session.records._rooms == {}
    assert read[:, 0].tolist() == [1498, 1499, 1500, 1501, 1502]
    assert seen(store) == list(range(3000))


@pytest.mark.parametrize("options", [{"buffered": False}, {"mode": "as"}, {"mode": "r+s"}])
def test_unbuffered_each_write_is_stored_when_it_returns(options):
    store = MemoryStore()
    made(store).close()
    dataset = Dataset(store, options.pop("mode", "a"), **options)
    for number in range(3):
        dataset["t"][number] = number
        assert omnizarr.open_array(store, path="t", mode="r")[:].tolist() == list(range(number + 1))
        assert omnizarr.open_array(store, path="v", mode="r").shape == (number + 1, 3)


PROGRAM = """
import os, signal, sys
from omnizarr.netcdf import Dataset

dataset = Dataset(sys.argv[1], "a")
def append(first, last):
    for number in range(first, last):
        dataset["v"][number] = number
        dataset["t"][number] = number
append(0, 3)
dataset.sync()
append(3, 50)
"""


def run(path, how, engine="native"):
    command = [sys.executable, "-c", PROGRAM + how, str(path)]
    environment = {**os.environ, "OMNIZARR_ENGINE": engine}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize(
    ("how", "code"),
    [("", 0), ("sys.exit(3)", 3), ("raise KeyboardInterrupt", -signal.SIGINT), ("del dataset", 0), ("1 / 0", 1)],
)
@pytest.mark.sampled(3)
def test_a_program_that_ends_stores_what_waits(tmp_path, how, code, engine):
    made(tmp_path / "x.zarr").close()
    assert run(tmp_path / "x.zarr", how, engine).returncode == code
    assert seen(tmp_path / "x.zarr") == list(range(50))


def test_a_program_that_is_killed_leaves_what_was_stored_last_and_no_chunk_beyond(tmp_path):
    made(tmp_path / "x.zarr").close()
    assert run(tmp_path / "x.zarr", "os.kill(os.getpid(), signal.SIGKILL)").returncode == -signal.SIGKILL
    assert seen(tmp_path / "x.zarr") == [0, 1, 2]
    assert not omnizarr.check(tmp_path / "x.zarr").findings


FORK = """
child = os.fork()
if not child:
    assert dataset["t"][:].tolist() == list(range(50)), "the child"
    dataset["v"][50] = dataset["t"][50] = 50
    dataset.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
dataset["v"][51] = dataset["t"][51] = 51
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_and_its_parent_lose_nothing_and_store_nothing_twice(tmp_path):
    made(tmp_path / "x.zarr").close()
    done = run(tmp_path / "x.zarr", FORK)
    assert done.returncode == 0, done.stderr
    assert seen(tmp_path / "x.zarr") == list(range(52))


IN_A_DATABASE = """
import os, sys, threading
from omnizarr.netcdf import Dataset
from omnizarr.stores import SQLiteStore

dataset = Dataset(SQLiteStore(sys.argv[1]), "a")
def append(name, numbers):
    for number in numbers:
        dataset[name][number] = number
other = threading.Thread(target=append, args=("t", range(400)))
other.start()
for round in range(8):
    append("v", range(50 * round, 50 * round + 50))
    child = os.fork()
    if not child:
        assert dataset["v"][50 * round, 0] == 50 * round
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
other.join()
dataset.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_process_forks_while_threads_write_to_a_database(tmp_path):
    store = SQLiteStore(tmp_path / "x.db")
    made(store).close()
    store.close()
    command = [sys.executable, "-c", IN_A_DATABASE, str(tmp_path / "x.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert seen(SQLiteStore(tmp_path / "x.db")) == list(range(400))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_leaves_to_its_parent_what_could_not_be_stored():
    store = FaultyStore(MemoryStore())
    dataset = made(store)
    append(dataset, range(3))
    store.fail("set", 1)
    child = os.fork()
    if not child:  # no pytest in the child
        os._exit(int(bool(unsaved.waiting()) or len(dataset.dimensions["time"]) != 0))
    assert os.waitpid(child, 0)[1] == 0
    assert len(dataset.dimensions["time"]) == 3
    dataset.close()
    assert seen(store) == [0, 1, 2]


def test_to_write_records_does_not_take_the_time_to_import_masked_arrays(tmp_path):
    program = PROGRAM + "dataset.close()\nassert 'numpy.ma' not in sys.modules"
    made(tmp_path / "x.zarr").close()
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "x.zarr")], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


# -- what fails --------------------------------------------------------------------------


def test_what_sync_cannot_store_waits_on():
    store = FaultyStore(MemoryStore())
    dataset = made(store)
    append(dataset, range(3))
    before = contents(store)
    for _ in range(2):
        store.fail("set", 2)
        with pytest.raises(errors.StoreError, match="injected"):
            dataset.sync()
        assert contents(store) == before
    assert dataset["t"][:].tolist() == [0, 1, 2]
    dataset.close()
    assert seen(store) == [0, 1, 2]


def test_what_close_cannot_store_is_lost_and_it_says_so():
    store = FaultyStore(MemoryStore())
    dataset = made(store)
    append(dataset, range(3))
    before = contents(store)
    store.fail("set", 2)
    with pytest.raises(errors.StoreError, match="injected") as raised:
        dataset.close()
    assert "beyond the end of /time since the last sync is lost" in raised.value.__notes__[0]
    assert not dataset.isopen()
    dataset.close()
    assert contents(store) == before
    assert seen(store) == []


def test_a_write_that_fails_as_others_cannot_be_stored_is_not_done(monkeypatch):
    store = FaultyStore(MemoryStore())
    dataset = made(store)
    append(dataset, range(3))
    monkeypatch.setattr(records, "LONGEST", -1.0)
    store.fail("set", 1)
    with pytest.raises(errors.StoreError, match="injected"):
        dataset["t"][3] = 3
    assert dataset["t"].shape == (3,)
    dataset.close()
    assert seen(store) == [0, 1, 2]


def test_values_that_do_not_fit_are_refused_by_the_write_itself():
    dataset = made(MemoryStore())
    with pytest.raises(errors.ValueTypeError):
        dataset["v"][0] = "text"
    with pytest.raises(errors.ShapeError):
        dataset["v"][0] = [1, 2, 3, 4]
    assert dataset["v"].shape == (0, 3)
    assert not unsaved.waiting()


def test_values_are_those_of_the_write_whatever_becomes_of_them_later():
    dataset = made(MemoryStore())
    row = np.array([1, 2, 3], "i4")
    dataset["v"][0] = row
    row[:] = 9
    assert dataset["v"][0].tolist() == [1, 2, 3]


def test_interrupted_writes_leave_each_record_old_or_new():
    interrupter = Interrupter()
    try:
        for number in range(RUNS):
            store = MemoryStore()
            dataset = made(store)
            append(dataset, range(2))

            def write(dataset=dataset):
                append(dataset, range(2, 5))
                dataset.sync()
                append(dataset, range(5, 7))

            if not number:
                interrupter(write, 0)
                total = interrupter.seen
                continue
            interrupter(write, 1 + number * total // RUNS)
            dataset.close()
            with Dataset(store) as found:
                times = found["t"][:].filled(-1).tolist()
                values = found["v"][:].filled(-1)[:, 0].tolist()
            assert times[:2] == values[:2] == [0, 1]
            for each in (times, values):
                assert all(value in (-1, place) for place, value in enumerate(each))
                assert -1 not in each[: len([value for value in each if value != -1])]
    finally:
        interrupter.close()


# -- others ----------------------------------------------------------------------------


def test_records_of_another_dataset_that_grew_meanwhile_stay():
    store = MemoryStore()
    made(store).close()
    ours, theirs = Dataset(store, "a"), Dataset(store, "a", buffered=False)
    append(ours, [0, 1, 4])
    append(theirs, [2, 3, 6])
    assert len(ours.dimensions["time"]) == 5
    ours.sync()
    assert len(ours.dimensions["time"]) == 7
    assert seen(store) == [0, 1, 2, 3, 4, -1, 6]
    append(ours, [7])
    append(theirs, [5])
    theirs.close()
    ours.close()
    assert seen(store) == list(range(8))


WRITER = """
import sys
from omnizarr.netcdf import Dataset
path, first, step, count, buffered = sys.argv[1], *map(int, sys.argv[2:])
with Dataset(path, "a", buffered=buffered) as dataset:
    print(flush=True)
    sys.stdin.readline()
    for number in range(first, count, step):
        dataset["v"][number] = number
        dataset["t"][number] = number
        if number % 7 == 0:
            dataset.sync()
"""


@pytest.mark.parametrize("layout", ["D", "v3"])
@pytest.mark.parametrize("modes", [(1, 1), (1, 0)], ids=["buffered", "mixed"])
def test_processes_that_write_every_other_record_lose_none(tmp_path, layout, modes):
    path = tmp_path / "x.zarr"
    made(path, layout).close()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(first), "2", "40", str(mode)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for first, mode in enumerate(modes)
    ]
    for each in processes:
        each.stdout.readline()
    for each in processes:
        each.stdin.write(b"\n")
        each.stdin.flush()
    for each in processes:
        each.communicate()
        assert not each.returncode
    assert seen(path) == list(range(40))


def test_records_of_two_unlimited_dimensions_keep_their_places():
    store = MemoryStore()
    with with_two(made(store)) as dataset:
        dataset["w"][0, 0:3] = 1
        dataset["w"][1, 3:6] = 2
        dataset["w"][2, 0:6] = 3
        dataset["w"][3, 0:6] = 4
    with Dataset(store) as dataset:
        expected = [[1, 1, 1, -1, -1, -1], [-1, -1, -1, 2, 2, 2], [3] * 6, [4] * 6]
        assert dataset["w"][:].filled(-1).tolist() == expected


# -- the same as without waiting --------------------------------------------------------

INDEX = st.integers(0, 9)
ROWS = st.one_of(
    INDEX,
    st.tuples(INDEX, INDEX).map(lambda ends: slice(min(ends), max(ends) + 1)),
    st.tuples(INDEX, INDEX).map(lambda ends: slice(min(ends), max(ends) + 1, 2)),
    st.tuples(INDEX, INDEX).map(lambda ends: slice(max(ends), None if 0 in ends else min(ends) - 1, -2)),
    st.lists(INDEX, min_size=1, max_size=3, unique=True),
)
COLUMNS = st.sampled_from([slice(None), 0, 2, slice(1, 3), [0, 2]])
STEPS = st.one_of(
    st.tuples(st.just("two"), ROWS, ROWS),
    st.tuples(st.just("write"), ROWS, COLUMNS),
    st.tuples(st.just("time"), ROWS, st.none()),
    st.tuples(st.just("read"), ROWS, COLUMNS),
    st.tuples(st.sampled_from(["sync", "all", "attribute"]), st.none(), st.none()),
)


def told(result):
    """What tells values that were read from others."""
    data = np.ma.getdata(result)
    return type(result), data.dtype.str, data.shape, np.ma.getmaskarray(result).tolist(), repr(data.tolist())


def outcome(dataset, step, number):
    kind, rows, columns = step
    try:
        if kind == "write":
            dataset["v"][rows, columns] = number
        elif kind == "two":
            dataset["w"][rows, columns] = number
        elif kind == "time":
            dataset["t"][rows] = number
        elif kind == "read":
            return [told(each) for each in (dataset["v"][rows, columns], dataset["t"][rows], dataset["w"][rows])]
        elif kind == "sync":
            dataset.sync()
        elif kind == "attribute":
            dataset["v"].number = number
        else:
            return [each[:].tolist() for each in dataset.variables.values()]
    except (IndexError, ValueError) as error:
        return type(error)
    return [each.shape for each in dataset.variables.values()]


@settings(max_examples=200, deadline=None)
@given(steps=st.lists(STEPS, max_size=12), layout=st.sampled_from(HAVE_UNLIMITED))
def test_all_is_as_if_each_write_had_been_stored_alone(steps, layout):
    stores = MemoryStore(), MemoryStore()
    datasets = [with_two(made(store, layout, buffered=store is stores[0])) for store in stores]
    for number, step in enumerate(steps):
        first, second = [outcome(each, step, number) for each in datasets]
        assert first == second
    for each in datasets:
        each.close()
    with Dataset(stores[0]) as ours, Dataset(stores[1]) as theirs:
        for name in "vtw":
            assert ours[name][:].tolist() == theirs[name][:].tolist()
    for name in "vtw":
        ours, theirs = [omnizarr.open_array(store, path=name, mode="r")[...] for store in stores]
        np.testing.assert_array_equal(ours, theirs)


# -- what is read before it is stored ---------------------------------------------------

KINDS = {
    **{each: (each, {}, {}) for each in ("i1", "u1", "i2", "u4", "i8", "f4", "f8")},
    "big-endian": (">i2", {}, {}),
    "compressed": ("f4", {"zlib": True}, {}),
    "packed": ("i2", {"fill_value": -1}, {"scale_factor": 0.5, "add_offset": 1.0}),
    "rounded": ("f4", {"significant_digits": 2}, {}),
    "filled": ("f4", {"fill_value": np.nan}, {}),
    "char": ("S1", {}, {}),
    "encoded": ("S1", {}, {"_Encoding": "utf-8"}),
    "string": (str, {}, {}),
}
ELEMENTS = [
    *(
        0,
        -1,
        3,
        slice(None),
        slice(1, 5),
        slice(1, 6, 2),
        slice(4, None, -1),
        slice(5, 0, -2),
        slice(5, 1, -1),
        [0, 4],
        [True, False] * 3,
    ),
    *(..., (2, 1), (slice(2, 4), [0, 2]), (-1, slice(None, None, -1)), ([1, 3], slice(0, 2)), (slice(3, 3),), []),
]


def filled(kind, layout, store, **options):
    """A dataset with two records that are stored, and four that wait, in one piece and in two."""
    datatype, creation, attributes = KINDS[kind]
    dataset = Dataset(store, "w", layout=layout, **options)
    dataset.createDimension("time", None)
    dataset.createDimension("x", 3)
    rng = np.random.default_rng(1)
    for name in ("one", "two"):
        variable = dataset.createVariable(name, datatype, ("time", "x"), **creation)
        variable.setncatts(attributes)
    for variable in dataset.variables.values():
        if datatype is str:
            data = np.array([[f"{row}é{column}" * column for column in range(3)] for row in range(6)], object)
        elif datatype == "S1":
            data = rng.choice(np.array([b"a", b"z", b""], "S1"), (6, 3))
            data = data.view("S3")[:, 0] if "_Encoding" in attributes else data
        else:
            data = np.ma.masked_equal(rng.integers(0, 9, (6, 3)), 4)
        variable[0:2] = data[0:2]
        if variable.name == "one":
            dataset.sync()
            for row in range(2, 6):
                variable[row] = data[row]
        else:
            variable[2:5] = data[0:3]
            variable[4:6] = data[4:6]
    return dataset


@pytest.mark.parametrize("layout", ["D", "v3"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled(3)
def test_what_is_read_before_it_is_stored_is_what_is_read_afterwards(kind, layout):
    for name, is_one_piece in (("one", True), ("two", False)):
        for element in ELEMENTS:
            dataset = filled(kind, layout, {})
            early = told(dataset[name][element])
            waits = dataset._session.records.waits
            dataset.sync()
            assert early == told(dataset[name][element])
            if is_one_piece and element in (-1, 3):
                assert waits


def test_a_codec_that_rounds_does_so_before_its_values_are_read():
    store = MemoryStore()
    with made(store):
        pass
    document = json.loads(bytes(store.get("t/.zarray")))
    rounding = {"id": "fixedscaleoffset", "scale": 2, "offset": 0, "dtype": "<f8", "astype": "<i4"}
    store.set("t/.zarray", json.dumps({**document, "filters": [rounding]}).encode())
    with Dataset(store, "a") as dataset:
        dataset["t"][0] = 1.2
        assert float(dataset["t"][0]) == 1.0


def test_reading_records_stores_nothing():
    store = MemoryStore()
    dataset = made(store)
    dataset.createVariable("fixed", "f4", ("x",))[:] = 1
    before = contents(store)
    for number in range(20):
        append(dataset, [number])
        assert dataset["v"][number].tolist() == [number] * 3
        assert dataset["t"][:].tolist() == list(range(number + 1))
        assert dataset["fixed"][:].tolist() == [1] * 3
    assert contents(store) == before
    dataset["fixed"][0] = 2
    dataset.sync()
    append(dataset, [20])
    before = contents(store)
    assert dataset["t"][:].tolist() == list(range(21))  # what is stored, and what waits
    assert dataset["v"][18:21, 0].tolist() == [18, 19, 20]
    assert contents(store) == before
    dataset.close()
    assert seen(store) == list(range(21))


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_threads_read_the_records_that_they_have_written_whatever_others_store(buffered, seed):
    store, steps, failures = {}, 64, []
    ds = Dataset(store, "w", buffered=buffered)
    ds.createDimension("t", None)
    ds.createDimension("x", 3)
    planes = ds.createVariable("planes", "i4", ("t", "x"), chunksizes=(4, 2))
    series = ds.createVariable("series", "i4", ("t",))

    def write(number):
        choices = random.Random(seed * 100 + number)
        try:
            for step in range(number, steps, 8):
                if choices.random() < 0.3:
                    planes[step] = 0
                planes[step], series[step] = [step, step + 1, step + 2], step
                if choices.random() < 0.2:
                    ds.sync()
                if choices.random() < 0.6:
                    assert (planes[step].tolist(), int(series[step])) == ([step, step + 1, step + 2], step)
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures
    ds.close()
    again = Dataset(store)
    assert again["planes"][:].tolist() == [[step, step + 1, step + 2] for step in range(steps)]
    assert again["series"][:].tolist() == list(range(steps))
