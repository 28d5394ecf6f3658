import asyncio
import gc
import json
import warnings

import numpy as np
import pytest

import omnizarr
from omnizarr import aio
from omnizarr.errors import ArrayNotFoundError, ContainsGroupError, NodeExistsError, NodeNotFoundError, OmnizarrError
from omnizarr.metadata import GroupMetadata
from omnizarr.stores import LocalStore
from tests.aio.stores import KINDS, Counting, objects, run
from tests.traced import own_threads


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    with KINDS[request.param](tmp_path) as store:
        yield store


@pytest.mark.parametrize("zarr_format", [1, 2, 3, "3-draft2019", "3-draft2020"])
def test_arrays_of_every_format_open(store, zarr_format):
    try:
        omnizarr.create_array(store, name="a", data=np.arange(6), chunks=(4,), zarr_format=zarr_format)
    except OmnizarrError as error:
        pytest.skip(f"the store cannot hold it: {error}")
    sync = omnizarr.open_array(store, path="a")

    async def read():
        array = await aio.open(store, path="a")
        return array, await array.getitem(...)

    array, values = run(read())
    assert array.array == sync
    assert values.tolist() == [0, 1, 2, 3, 4, 5]


def test_options_mean_what_they_mean_without_await(store):
    omnizarr.create_array(store, shape=(4,), dtype="i4")

    async def look():
        array = await aio.open_array(store, mode="r", missing="error", config={"order": "F"})
        return array, await aio.AsyncArray.open(store), await aio.open_array(array), await aio.open(array.store_path)

    array, *others = run(look())
    assert (array.config.missing, array.config.order, array.read_only) == ("error", "F", True)
    assert all(other.metadata == array.metadata for other in others)
    with pytest.raises(ValueError, match="mode"):
        run(aio.open(store, mode="x+"))
    with pytest.raises(TypeError):
        run(aio.open_group(store, nonsense=1))


def test_paths_and_urls_open(tmp_path):
    omnizarr.create_array(tmp_path / "a.zarr", name="x", data=[1, 2])
    for place in (tmp_path / "a.zarr", str(tmp_path / "a.zarr"), (tmp_path / "a.zarr").as_uri()):
        group = run(aio.open(place))
        assert isinstance(group.store, LocalStore)
        array = run(aio.open_array(place, path="x"))
        assert run(array.getitem(...)).tolist() == [1, 2]
    assert run(aio.AsyncGroup.open(tmp_path / "a.zarr")).path == ""


@pytest.mark.parametrize("mode", ["a", "w", "w-"])
def test_modes_that_create_create(store, mode):
    array = run(aio.open(store, mode=mode, path="a", shape=(3,), dtype="i2"))
    assert omnizarr.open_array(store, path="a").shape == array.shape == (3,)
    group = run(aio.open_group(store, mode=mode, path="g"))
    assert isinstance(group, aio.AsyncGroup)
    if mode == "w-":
        with pytest.raises(NodeExistsError):
            run(aio.open_group(store, mode=mode, path="g"))
    else:
        assert run(aio.open_group(store, mode=mode, path="g")).path == "g"


@pytest.mark.parametrize(
    ("opener", "path"),
    [
        ("open", "x"),
        ("open_array", "x"),
        ("open_group", "x"),
        ("open_array", "g"),
        ("open_group", "g/a"),
        ("open", "g/a/below"),
        ("open", "broken"),
        ("open", "g/aa"),
        ("open_consolidated", "g"),
    ],
)
def test_what_cannot_be_opened_is_reported_as_without_await(store, opener, path):
    omnizarr.create_array(store, name="g/a", shape=(1,), dtype="i1")
    store.set("broken/zarr.json", b"{")
    with pytest.raises(OmnizarrError) as expected:
        getattr(omnizarr, opener)(store, path=path)
    with pytest.raises(OmnizarrError) as found:
        run(getattr(aio, opener)(store, path=path))
    assert (type(found.value), str(found.value)) == (type(expected.value), str(expected.value))


def test_nothing_at_all_is_no_node(store):
    with pytest.raises(NodeNotFoundError):
        run(aio.open(store))
    with pytest.raises(ArrayNotFoundError):
        run(aio.open_array(store))


def test_group_that_is_only_implied_opens(store):
    omnizarr.create_array({}, name="a/b/c", shape=(1,), dtype="i1")
    document = omnizarr.create_array({}, shape=(1,), dtype="i1").documents()["zarr.json"]
    store.set("a/b/c/zarr.json", json.dumps(document).encode())
    root = run(aio.open_group(store))
    assert run(root.nmembers(None)) == 3


def test_broken_copies_are_warned_of(store):
    omnizarr.create_group(store, zarr_format=2)
    store.set(".zmetadata", b"{")
    root = run(aio.open_group(store))
    with pytest.warns(UserWarning, match="broken"):
        assert run(root.nmembers()) == 0


# -- creating ----------------------------------------------------------------------------


def test_everything_that_creates_creates(tmp_path):
    store = LocalStore(tmp_path)

    async def create():
        first = await aio.create_array(store, name="a", data=np.arange(4), attributes={"k": 1})
        await aio.create(shape=(2,), store=store, path="b", dtype="i1")
        await aio.from_array(store, data=first, name="c")
        await aio.create_group(store, path="g", attributes={"t": 1})
        await aio.group(store, path="g")
        made = [
            path
            async for path, _ in aio.create_hierarchy(
                store=store, nodes={"h": GroupMetadata.from_dict({"zarr_format": 3, "node_type": "group"})}
            )
        ]
        await aio.consolidate_metadata(store)
        values = [
            await aio.array([1, 2]),
            await aio.zeros(2),
            await aio.ones(2),
            await aio.full(2, 5),
            await aio.empty(2),
        ]
        return made, [(await each.getitem(...)).tolist() for each in values[:4]]

    assert run(create()) == (["h"], [[1, 2], [0, 0], [1, 1], [5, 5]])
    root = omnizarr.open_consolidated(store)
    assert list(root) == ["a", "b", "c", "g", "h"]
    assert root["c"][...].tolist() == [0, 1, 2, 3]
    assert root["c"].attrs == {"k": 1}
    with pytest.raises(ContainsGroupError):
        run(aio.create_group(store, path="g"))


# -- requests ------------------------------------------------------------------------------


def test_one_array_opens_in_one_request_and_without_a_thread(monkeypatch):
    store = objects()
    omnizarr.create_array(store, name="a", shape=(4,), dtype="i4")
    counting = Counting(monkeypatch)
    before = own_threads()
    run(aio.open_array(store, path="a"))
    assert counting.log == [("get_range", "some/where/a/zarr.json")]
    assert own_threads() <= before


def test_array_of_v2_opens_in_two_rounds(monkeypatch):
    store = objects(concurrency=8)
    omnizarr.create_array(store, name="a", shape=(4,), dtype="i4", zarr_format=2, attributes={"k": 1})
    counting = Counting(monkeypatch, delay=0.001)
    assert run(aio.open_array(store, path="a")).attrs == {"k": 1}
    assert counting.most == 2
    assert counting.total <= 3


def test_consolidated_hierarchy_opens_in_one_request(monkeypatch):
    store = objects()
    root = omnizarr.create_group(store)
    for number in range(50):
        root.create_array(f"a{number}", shape=(4,), dtype="i4")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        omnizarr.consolidate_metadata(store)
    counting = Counting(monkeypatch)

    async def look():
        root = await aio.open_consolidated(store)
        return [node.shape async for _, node in root.members()]

    assert run(look()) == [(4,)] * 50
    assert counting.total == 1


def test_a_thousand_arrays_open_at_once(monkeypatch):
    store = objects(concurrency=100)
    root = omnizarr.create_group(store)
    for number in range(100):
        root.create_array(f"a{number}", shape=(number + 1,), dtype="i4")
    counting = Counting(monkeypatch, delay=0.001)

    async def look():
        return await asyncio.gather(*(aio.open_array(store, path=f"a{number % 100}") for number in range(1000)))

    arrays = run(look())
    assert [array.shape for array in arrays] == [(number % 100 + 1,) for number in range(1000)]
    assert counting.most == 100
    assert counting.total == 1000


def test_a_thousand_arrays_open_at_once_where_threads_wait(tmp_path):
    omnizarr.create_array(tmp_path, name="a", shape=(7,), dtype="i4")

    async def look():
        return await asyncio.gather(*(aio.open_array(tmp_path, path="a") for _ in range(1000)))

    before = own_threads()
    assert {array.shape for array in run(look())} == {(7,)}
    assert len(own_threads() - before) <= 32


def test_opening_that_is_cancelled_asks_no_more(monkeypatch):
    store = objects()
    counting = Counting(monkeypatch, delay=3600)

    async def look():
        async with asyncio.timeout(0.01):
            await aio.open(store, path="a")

    with pytest.raises(TimeoutError):
        run(look())
    assert counting.in_flight == 0


def test_loops_that_are_closed_are_forgotten(monkeypatch):
    from omnizarr.stores import asynchronous

    store = objects(concurrency=1)
    omnizarr.create_array(store, shape=(1,), dtype="i4")
    for _ in range(5):
        run(aio.open(store))
    gc.collect()
    assert len(asynchronous._gates) <= 1


@pytest.mark.parametrize("server", ["http_server", "s3_server"])
def test_urls_of_servers_open(request, server):
    place = request.getfixturevalue(server).fresh()
    values = np.arange(200).reshape(20, 10)
    target = LocalStore(place.directory) if place.directory else place.url
    options = {} if place.directory else {"storage_options": dict(place.options)}
    omnizarr.create_array(target, name="a", data=values, chunks=(3, 3), **options)

    async def read():
        array = await aio.open_array(place.url, path="a", mode="r", storage_options=dict(place.options))
        return await asyncio.gather(*(array.getitem((slice(n, None), -1)) for n in range(20)))

    for n, found in enumerate(run(read())):
        np.testing.assert_array_equal(found, values[n:, -1])
