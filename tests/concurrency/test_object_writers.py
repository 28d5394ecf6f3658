"""Writers in many processes lose nothing in an object store, which has no locks but conditional puts."""

import os
import time
from itertools import chain

import numpy as np
import pytest
import zarr

import omnizarr
from tests.concurrency import crews, scenarios
from tests.repeats import runs

pytestmark = pytest.mark.slow

# With `RUNS=50` as many, by 4 processes of 8 threads; a few by fewer everywhere else.
FULL = "RUNS" in os.environ
RUNS = runs(1)
PROCESSES, THREADS = (4, 8) if FULL else (2, 4)
BLOCKS = 50 if FULL else 5  # of each process

LAYOUTS = {
    "plain": {"zarr_format": 3, "compressors": None},
    "compressed": {"zarr_format": 3},
    "v2": {"zarr_format": 2},
    "shards": {"zarr_format": 3, "shards": scenarios.SHARDS},
}


@pytest.fixture(scope="module")
def crew():
    with crews.Crew(PROCESSES) as crew:
        yield crew


@pytest.fixture
def place(s3_server):
    return s3_server.fresh()


@pytest.fixture(params=["azurite_server", "gcs_server"])
def other_cloud(request):
    return request.getfixturevalue(request.param).fresh()


def open_to_write(url, options):
    return omnizarr.open_array(url, mode="r+", storage_options=options)


def where(place, name):
    return f"{place.url}/{name}.zarr", dict(place.options)


def create(place, name, **how):
    url, options = where(place, name)
    return omnizarr.create_array(url, storage_options=options, **how)


def lose_nothing(crew, place, layout, runs):
    for run in range(runs):
        array = create(
            place, run, shape=scenarios.SHAPE, chunks=scenarios.CHUNKS, dtype="int32", fill_value=0, **LAYOUTS[layout]
        )
        shares = [(open_to_write, where(place, run), run, number, crew.size, THREADS) for number in range(crew.size)]
        crew(crews.write_disjoint_regions, shares)
        np.testing.assert_array_equal(array[...], scenarios.values())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_processes_of_many_threads_lose_nothing_in_shared_chunks(crew, place, layout):
    lose_nothing(crew, place, layout, RUNS)


def test_writers_lose_nothing_in_other_clouds(crew, other_cloud):
    lose_nothing(crew, other_cloud, "compressed", 1)


def test_the_scenario_can_fail_on_this_server(place):
    """zarr-python 3 puts without conditions and loses elements, so that a run without loss means something."""
    from obstore.store import S3Store
    from zarr.storage import ObjectStore

    options = {name: value for name, value in place.options.items() if name != "allow_http"}
    lost, run, deadline = 0, 0, time.monotonic() + 60
    while not lost and time.monotonic() < deadline:
        bucket = S3Store(place.name, prefix=str(run), config=options, client_options={"allow_http": True})
        array = zarr.create_array(
            ObjectStore(bucket), shape=scenarios.SHAPE, chunks=scenarios.CHUNKS, dtype="int32", fill_value=0
        )
        scenarios.in_threads([array] * 8, seed=run)
        lost += int((array[...] != scenarios.values()).sum())
        run += 1
    assert lost


def append_blocks(url, options, process, blocks):
    array = open_to_write(url, options)
    landed = []
    for step in range(blocks):
        value = 1 + process * blocks + step
        landed.append((array.append(np.full((step % 3 + 1, 4), value, "i4")).region, value))
    return landed


def lose_no_block(crew, place, **how):
    created = create(place, "a", shape=(0, 4), chunks=(7, 3), dtype="i4", fill_value=-1, **how)
    landed = list(chain(*crew(append_blocks, [(*where(place, "a"), number, BLOCKS) for number in range(crew.size)])))
    created.refresh()
    values = created[...]
    assert len(landed) == crew.size * BLOCKS
    assert values.shape == (crew.size * sum(step % 3 + 1 for step in range(BLOCKS)), 4)
    for region, value in landed:
        assert (values[region] == value).all()
        assert (values == value).sum() == values[region].size


@pytest.mark.parametrize("how", [{}, {"shards": (14, 6)}, {"zarr_format": 2}], ids=["v3", "shards", "v2"])
def test_appended_blocks_are_all_there_once_and_where_their_writers_are_reported(crew, place, how):
    lose_no_block(crew, place, **how)


def test_blocks_appended_in_other_clouds_are_all_there_once(crew, other_cloud):
    lose_no_block(crew, other_cloud)


def set_attributes(url, options, process, count):
    array = open_to_write(url, options)
    for step in range(count):
        array.attrs[f"{process}.{step}"] = step
    array.attrs.update({f"{process}.x": 1, f"{process}.y": 2})


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes_changed_by_many_processes_all_survive(crew, place, zarr_format):
    create(place, "a", shape=(2,), dtype="i4", zarr_format=zarr_format)
    crew(set_attributes, [(*where(place, "a"), number, 5) for number in range(crew.size)])
    url, options = where(place, "a")
    expected = {f"{process}.{step}": step for process in range(crew.size) for step in range(5)}
    expected |= {f"{process}.{name}": value for process in range(crew.size) for name, value in [("x", 1), ("y", 2)]}
    assert dict(omnizarr.open_array(url, mode="r", storage_options=options).attrs) == expected


def create_one(url, options, process, threads, zarr_format):
    def try_it(number):
        try:
            shape = (1 + process * threads + number,)
            omnizarr.create_array(url, storage_options=options, shape=shape, dtype="i4", zarr_format=zarr_format)
        except omnizarr.errors.ContainsArrayError:
            return None
        return shape

    return crews.in_threads(threads, try_it)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_of_several_creators_in_several_processes_exactly_one_wins(crew, place, zarr_format):
    for attempt in range(3):
        url, options = where(place, attempt)
        results = crew(create_one, [(url, options, number, THREADS, zarr_format) for number in range(crew.size)])
        winners = [shape for shape in chain(*results) if shape is not None]
        assert len(winners) == 1
        assert omnizarr.open_array(url, mode="r", storage_options=options).shape == winners[0]


def write_and_describe(url, options, process, rounds):
    array = open_to_write(url, options)
    for step in range(rounds):
        array.attrs[f"{process}.{step}"] = 0
        array[process::8] = process + 1


def test_writers_of_chunks_and_of_attributes_do_not_disturb_each_other(crew, place):
    array = create(place, "a", shape=(64,), chunks=(16,), dtype="i4")
    crew(write_and_describe, [(*where(place, "a"), number, 4) for number in range(crew.size)])
    array.refresh()
    assert len(array.attrs) == 4 * crew.size
    for process in range(crew.size):
        assert (array[process::8] == process + 1).all()
