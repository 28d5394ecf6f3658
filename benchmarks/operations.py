"""Operations whose cost is measured as a function of how many items they have: `OPERATIONS`, a table.

To add one, write for each library that has it a function of a `Place` and a number of items, which prepares what the
operation needs and returns what does it. Prefix its name with that of the library, and enter it in the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

import omnizarr
from omnizarr import netcdf
from omnizarr.stores import LocalStore, verbs
from omnizarr.stores.base import answers
from omnizarr.stores.wrap.wrappers import WrapperStore

Run: TypeAlias = Callable[[], object]
Prepare: TypeAlias = "Callable[[Place, int], Run]"

ITEM: Final = 64
"""Elements of a chunk."""


class CountingStore(WrapperStore):
    """A store of omnizarr that counts requests."""

    def __init__(self, store: Any, requests: Counter[str]) -> None:
        super().__init__(store)
        self.requests = requests

    def get(self, key: str, span: Any = None) -> Any:
        self.requests["read"] += 1
        return super().get(key, span)

    @answers(verbs.get_many)
    def _get_many(self, requests: Iterable[Any]) -> Any:
        def counted() -> Iterable[Any]:
            for request in requests:
                self.requests["read"] += 1
                yield request

        return verbs.get_many(self.store, counted())

    @answers(verbs.get_spans)
    def _get_spans(self, key: str, spans: Any) -> Any:
        self.requests["read"] += 1
        return verbs.get_spans(self.store, key, spans)

    @answers(verbs.read_into)
    def _read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        self.requests["read"] += 1
        return verbs.read_into(self.store, key, out, start)

    def set(self, key: str, value: Any) -> None:
        self.requests["write"] += 1
        super().set(key, value)

    @answers(verbs.set_if_absent)
    def _set_if_absent(self, key: str, value: Any) -> bool:
        self.requests["write"] += 1
        return verbs.set_if_absent(self.store, key, value)

    def delete(self, key: str) -> None:
        self.requests["delete"] += 1
        super().delete(key)

    def list_dir(self, prefix: str) -> Any:
        self.requests["list"] += 1
        return super().list_dir(prefix)

    def list_prefix(self, prefix: str) -> Any:
        self.requests["list"] += 1
        return super().list_prefix(prefix)


def counting_zarr_store(path: Path, requests: Counter[str]) -> Any:
    """Return a store of zarr-python that counts requests."""
    from zarr.storage import LocalStore as Local
    from zarr.storage import WrapperStore as Wrapper

    class Counting(Wrapper):  # type: ignore[type-arg]
        async def get(self, *args: Any, **kwargs: Any) -> Any:
            requests["read"] += 1
            return await super().get(*args, **kwargs)

        async def set(self, *args: Any, **kwargs: Any) -> None:
            requests["write"] += 1
            await super().set(*args, **kwargs)

        async def set_if_not_exists(self, *args: Any, **kwargs: Any) -> None:
            requests["write"] += 1
            await super().set_if_not_exists(*args, **kwargs)

        async def delete(self, *args: Any, **kwargs: Any) -> None:
            requests["delete"] += 1
            await super().delete(*args, **kwargs)

        async def delete_dir(self, *args: Any, **kwargs: Any) -> None:
            requests["delete"] += 1
            await super().delete_dir(*args, **kwargs)

        def list_dir(self, prefix: str) -> Any:
            requests["list"] += 1
            return super().list_dir(prefix)

        def list_prefix(self, prefix: str) -> Any:
            requests["list"] += 1
            return super().list_prefix(prefix)

    return Counting(Local(path))


@dataclass
class Place:
    """An empty directory, as each library reaches it."""

    path: Path
    counts: bool = False
    """Count requests: slower, as libraries cannot do then what they do with directories only."""
    requests: Counter[str] = field(default_factory=Counter)

    @property
    def omnizarr(self) -> Any:
        """A store of omnizarr."""
        store = LocalStore(self.path)
        return CountingStore(store, self.requests) if self.counts else store

    @property
    def zarr(self) -> Any:
        """A store of zarr-python."""
        if self.counts:
            return counting_zarr_store(self.path, self.requests)
        from zarr.storage import LocalStore as Local

        return Local(self.path)

    def tensorstore(self, name: str = "", **metadata: Any) -> dict[str, Any]:
        """Return the spec of an array of TensorStore; one that is created if there is metadata."""
        spec: dict[str, Any] = {
            "driver": "zarr3",
            "kvstore": {"driver": "file", "path": str(self.path / name), "file_io_sync": False},
        }
        return {**spec, "metadata": metadata, "create": True} if metadata else {**spec, "open": True}


def _ts() -> Any:
    import tensorstore

    return tensorstore


def _zarr() -> Any:
    import zarr

    return zarr


def layout(shape: Sequence[int], chunks: Sequence[int], inner: Sequence[int] | None = None) -> dict[str, Any]:
    """Return metadata of an array of 16-bit integers, without compressors, as in TensorStore."""
    codecs: list[dict[str, Any]] = [{"name": "bytes", "configuration": {"endian": "little"}}]
    if inner is not None:
        index = [*codecs, {"name": "crc32c"}]
        configuration = {"chunk_shape": list(inner), "codecs": codecs, "index_codecs": index}
        codecs = [{"name": "sharding_indexed", "configuration": configuration}]
    grid = {"name": "regular", "configuration": {"chunk_shape": list(chunks)}}
    return {"shape": list(shape), "chunk_grid": grid, "data_type": "int16", "codecs": codecs, "fill_value": 0}


def values(count: int) -> Any:
    """Return so many elements, none of them 0."""
    return np.arange(count, dtype="i2") | 1


def _in_omnizarr(place: Place, shape: Sequence[int], chunks: Sequence[int], **options: Any) -> Any:
    return omnizarr.create_array(
        place.omnizarr, shape=tuple(shape), chunks=tuple(chunks), dtype="i2", compressors=None, **options
    )


def _in_zarr(place: Place, shape: Sequence[int], chunks: Sequence[int], **options: Any) -> Any:
    return _zarr().create_array(
        place.zarr, shape=tuple(shape), chunks=tuple(chunks), dtype="i2", compressors=None, fill_value=0, **options
    )


def _in_tensorstore(place: Place, *sizes: Sequence[int]) -> Any:
    return _ts().open(place.tensorstore(**layout(*sizes))).result()


def _filled(place: Place, *sizes: Sequence[int]) -> None:
    """Write an array, by way of no library that is measured here with this process."""
    shape, chunks, *inner = sizes
    options: dict[str, Any] = {"shards": chunks, "chunks": inner[0]} if inner else {"chunks": chunks}
    array = omnizarr.create_array(LocalStore(place.path), shape=shape, dtype="i2", compressors=None, **options)
    array[...] = values(int(np.prod(shape))).reshape(shape)


# -- chunks ----------------------------------------------------------------------------


def omnizarr_write(place: Place, items: int) -> Run:
    array, data = _in_omnizarr(place, (items * ITEM,), (ITEM,)), values(items * ITEM)
    return lambda: array.__setitem__(..., data)


def zarr_write(place: Place, items: int) -> Run:
    array, data = _in_zarr(place, (items * ITEM,), (ITEM,)), values(items * ITEM)
    return lambda: array.__setitem__(..., data)


def tensorstore_write(place: Place, items: int) -> Run:
    array, data = _in_tensorstore(place, (items * ITEM,), (ITEM,)), values(items * ITEM)
    return lambda: array.write(data).result()


def omnizarr_read(place: Place, items: int) -> Run:
    _filled(place, (items * ITEM,), (ITEM,))
    array = omnizarr.open_array(place.omnizarr, mode="r")
    return lambda: array[...]


def zarr_read(place: Place, items: int) -> Run:
    _filled(place, (items * ITEM,), (ITEM,))
    array = _zarr().open_array(place.zarr, mode="r")
    return lambda: array[...]


def tensorstore_read(place: Place, items: int) -> Run:
    _filled(place, (items * ITEM,), (ITEM,))
    array = _ts().open(place.tensorstore()).result()
    return lambda: array.read().result()


def omnizarr_points(place: Place, items: int) -> Run:
    _filled(place, (1000, 1000), (100, 100))
    array = omnizarr.open_array(place.omnizarr, mode="r")
    rows, columns = np.random.default_rng(0).integers(0, 1000, (2, items))
    return lambda: array.vindex[rows, columns]


def zarr_points(place: Place, items: int) -> Run:
    _filled(place, (1000, 1000), (100, 100))
    array = _zarr().open_array(place.zarr, mode="r")
    rows, columns = np.random.default_rng(0).integers(0, 1000, (2, items))
    return lambda: array.vindex[rows, columns]


def tensorstore_points(place: Place, items: int) -> Run:
    _filled(place, (1000, 1000), (100, 100))
    array = _ts().open(place.tensorstore()).result()
    rows, columns = np.random.default_rng(0).integers(0, 1000, (2, items))
    return lambda: array[rows, columns].read().result()


def omnizarr_stat_chunks(place: Place, items: int) -> Run:
    _filled(place, (items * ITEM,), (ITEM,))
    store = place.omnizarr
    return lambda: omnizarr.stat(store)


def omnizarr_digest_chunks(place: Place, items: int) -> Run:
    _filled(place, (items * ITEM,), (ITEM,))
    store = place.omnizarr
    return lambda: omnizarr.digest(store)


def omnizarr_diff_chunks(place: Place, items: int) -> Run:
    one, other = (Place(place.path / name, place.counts, place.requests) for name in ("one", "other"))
    _filled(one, (items * ITEM,), (ITEM,))
    _filled(other, (items * ITEM,), (2 * ITEM,))
    return lambda: omnizarr.diff(one.omnizarr, other.omnizarr)


def omnizarr_du_chunks(place: Place, items: int) -> Run:
    _filled(place, (items * ITEM,), (ITEM,))
    store = place.omnizarr
    return lambda: omnizarr.du(store)


# -- shards ----------------------------------------------------------------------------


def omnizarr_write_shard(place: Place, items: int) -> Run:
    array, data = _in_omnizarr(place, (items * ITEM,), (ITEM,), shards=(items * ITEM,)), values(items * ITEM)
    return lambda: array.__setitem__(..., data)


def zarr_write_shard(place: Place, items: int) -> Run:
    array, data = _in_zarr(place, (items * ITEM,), (ITEM,), shards=(items * ITEM,)), values(items * ITEM)
    return lambda: array.__setitem__(..., data)


def tensorstore_write_shard(place: Place, items: int) -> Run:
    array, data = _in_tensorstore(place, (items * ITEM,), (items * ITEM,), (ITEM,)), values(items * ITEM)
    return lambda: array.write(data).result()


def omnizarr_read_shard(place: Place, items: int) -> Run:
    _filled(place, (items * ITEM,), (items * ITEM,), (ITEM,))
    array = omnizarr.open_array(place.omnizarr, mode="r")
    return lambda: array[...]


def zarr_read_shard(place: Place, items: int) -> Run:
    _filled(place, (items * ITEM,), (items * ITEM,), (ITEM,))
    array = _zarr().open_array(place.zarr, mode="r")
    return lambda: array[...]


def tensorstore_read_shard(place: Place, items: int) -> Run:
    _filled(place, (items * ITEM,), (items * ITEM,), (ITEM,))
    array = _ts().open(place.tensorstore()).result()
    return lambda: array.read().result()


# -- nodes -----------------------------------------------------------------------------


def _nodes(place: Place, items: int, *, consolidated: bool = False) -> None:
    group = omnizarr.create_group(LocalStore(place.path))
    for number in range(items):
        group.create_array(f"a{number}", shape=(4,), chunks=(4,), dtype="i2")
    if consolidated:
        omnizarr.consolidate_metadata(LocalStore(place.path))


def omnizarr_create(place: Place, items: int) -> Run:
    group = omnizarr.create_group(place.omnizarr)

    def run() -> None:
        for number in range(items):
            group.create_array(f"a{number}", shape=(4,), chunks=(4,), dtype="i2")

    return run


def zarr_create(place: Place, items: int) -> Run:
    group = _zarr().create_group(place.zarr)

    def run() -> None:
        for number in range(items):
            group.create_array(f"a{number}", shape=(4,), chunks=(4,), dtype="i2")

    return run


def tensorstore_create(place: Place, items: int) -> Run:
    tensorstore = _ts()
    metadata = layout((4,), (4,))

    def run() -> None:
        for number in range(items):
            tensorstore.open(place.tensorstore(f"a{number}", **metadata)).result()

    return run


def omnizarr_create_own(place: Place, items: int) -> Run:
    group = omnizarr.create_group(place.omnizarr)

    def run() -> None:
        for number in range(items):
            group.create_array(f"a{number}", shape=(4,), chunks=(4,), dtype="i2", attributes=_own(number))

    return run


def zarr_create_own(place: Place, items: int) -> Run:
    group = _zarr().create_group(place.zarr)

    def run() -> None:
        for number in range(items):
            group.create_array(f"a{number}", shape=(4,), chunks=(4,), dtype="i2", attributes=_own(number))

    return run


def tensorstore_create_own(place: Place, items: int) -> Run:
    tensorstore = _ts()
    metadata = layout((4,), (4,))

    def run() -> None:
        for number in range(items):
            spec = place.tensorstore(f"a{number}", **metadata, attributes=_own(number))
            tensorstore.open(spec).result()

    return run


def _at(place: Place, number: int, library: str) -> Any:
    """Return the path of an array, or a store there that counts its requests."""
    path = place.path / f"a{number}"
    return getattr(Place(path, place.counts, place.requests), library) if place.counts else str(path)


def omnizarr_create_places(place: Place, items: int) -> Run:
    def run() -> None:
        for number in range(items):
            omnizarr.create_array(_at(place, number, "omnizarr"), shape=(4,), chunks=(4,), dtype="i2")

    return run


def zarr_create_places(place: Place, items: int) -> Run:
    zarr = _zarr()

    def run() -> None:
        for number in range(items):
            zarr.create_array(_at(place, number, "zarr"), shape=(4,), chunks=(4,), dtype="i2")

    return run


tensorstore_create_places = tensorstore_create


def omnizarr_delete(place: Place, items: int) -> Run:
    _nodes(place, items)
    group = omnizarr.open_group(place.omnizarr, mode="r+")

    def run() -> None:
        for number in range(items):
            del group[f"a{number}"]

    return run


def zarr_delete(place: Place, items: int) -> Run:
    _nodes(place, items)
    group = _zarr().open_group(place.zarr, mode="r+")

    def run() -> None:
        for number in range(items):
            del group[f"a{number}"]

    return run


def _removed(place: Place, names: list[str]) -> Run:
    tensorstore = _ts()

    def run() -> None:
        for name in names:
            kvstore = place.tensorstore(name)["kvstore"]
            kvstore["path"] = kvstore["path"].rstrip("/") + "/"  # else that of each name that begins so
            tensorstore.KvStore.open(kvstore).result().delete_range(tensorstore.KvStore.KeyRange()).result()

    return run


def tensorstore_delete(place: Place, items: int) -> Run:
    _nodes(place, items)
    return _removed(place, [f"a{number}" for number in range(items)])


def omnizarr_delete_chunks(place: Place, items: int) -> Run:
    _filled(place, (items * ITEM,), (ITEM,))
    return lambda: omnizarr.delete_node(place.omnizarr)


def zarr_delete_chunks(place: Place, items: int) -> Run:
    _filled(place, (items * ITEM,), (ITEM,))
    zarr = _zarr()
    return lambda: zarr.core.sync.sync(place.zarr.delete_dir(""))


def tensorstore_delete_chunks(place: Place, items: int) -> Run:
    _filled(place, (items * ITEM,), (ITEM,))
    return _removed(place, [""])


def omnizarr_open(place: Place, items: int) -> Run:
    _nodes(place, items)
    group = omnizarr.open_group(place.omnizarr, mode="r")
    return lambda: [group[f"a{number}"].shape for number in range(items)]


def zarr_open(place: Place, items: int) -> Run:
    _nodes(place, items)
    group = _zarr().open_group(place.zarr, mode="r")
    return lambda: [group[f"a{number}"].shape for number in range(items)]


def tensorstore_open(place: Place, items: int) -> Run:
    _nodes(place, items)
    tensorstore = _ts()
    return lambda: [tensorstore.open(place.tensorstore(f"a{number}")).result().shape for number in range(items)]


def omnizarr_list(place: Place, items: int) -> Run:
    _nodes(place, items)
    group = omnizarr.open_group(place.omnizarr, mode="r")
    return lambda: [array.shape for _, array in group.members()]


def zarr_list(place: Place, items: int) -> Run:
    _nodes(place, items)
    group = _zarr().open_group(place.zarr, mode="r")
    return lambda: [array.shape for _, array in group.members()]


def omnizarr_consolidate(place: Place, items: int) -> Run:
    _nodes(place, items)
    store = place.omnizarr
    return lambda: omnizarr.consolidate_metadata(store)


def zarr_consolidate(place: Place, items: int) -> Run:
    _nodes(place, items)
    store, zarr = place.zarr, _zarr()
    return lambda: zarr.consolidate_metadata(store)


def omnizarr_consolidated(place: Place, items: int) -> Run:
    _nodes(place, items, consolidated=True)
    store = place.omnizarr

    def run() -> object:
        group = omnizarr.open_group(store, mode="r", use_consolidated=True)
        return [group[f"a{number}"].shape for number in range(items)]

    return run


def zarr_consolidated(place: Place, items: int) -> Run:
    _nodes(place, items, consolidated=True)
    store, zarr = place.zarr, _zarr()

    def run() -> object:
        group = zarr.open_group(store, mode="r", use_consolidated=True)
        return [group[f"a{number}"].shape for number in range(items)]

    return run


def omnizarr_consolidated_own(place: Place, items: int) -> Run:
    _own_nodes(place, items)
    omnizarr.consolidate_metadata(LocalStore(place.path))
    store = place.omnizarr

    def run() -> object:
        group = omnizarr.open_group(store, mode="r", use_consolidated=True)
        return [group[f"g{number // 100}/a{number}"].shape for number in range(items)]

    return run


def zarr_consolidated_own(place: Place, items: int) -> Run:
    _own_nodes(place, items)
    omnizarr.consolidate_metadata(LocalStore(place.path))
    store, zarr = place.zarr, _zarr()

    def run() -> object:
        group = zarr.open_group(store, mode="r", use_consolidated=True)
        return [group[f"g{number // 100}/a{number}"].shape for number in range(items)]

    return run


def _own(number: int) -> dict[str, Any]:
    """Return the attributes of an array that no other one has."""
    return {"number": number, "title": f"array {number}", "units": "m"}


def _own_nodes(place: Place, items: int) -> None:
    """Write arrays with attributes of their own, in groups of a hundred."""
    group = omnizarr.create_group(LocalStore(place.path))
    for number in range(items):
        name = f"g{number // 100}/a{number}"
        group.create_array(name, shape=(4,), chunks=(4,), dtype="i2", attributes=_own(number))


def omnizarr_members(place: Place, items: int) -> Run:
    _own_nodes(place, items)
    group = omnizarr.open_group(place.omnizarr, mode="r")
    return lambda: group.members(max_depth=None)


def zarr_members(place: Place, items: int) -> Run:
    _own_nodes(place, items)
    group = _zarr().open_group(place.zarr, mode="r")
    return lambda: group.members(max_depth=None)


def omnizarr_check(place: Place, items: int) -> Run:
    _own_nodes(place, items)
    store = place.omnizarr
    return lambda: omnizarr.check(store)


def omnizarr_digest(place: Place, items: int) -> Run:
    _own_nodes(place, items)
    store = place.omnizarr
    return lambda: omnizarr.digest(store)


def omnizarr_diff(place: Place, items: int) -> Run:
    _own_nodes(place, items)
    store = place.omnizarr
    return lambda: omnizarr.diff(store, store)


def omnizarr_du(place: Place, items: int) -> Run:
    _own_nodes(place, items)
    store = place.omnizarr
    return lambda: omnizarr.du(store)


def omnizarr_ls(place: Place, items: int) -> Run:
    _own_nodes(place, items)
    store = place.omnizarr
    return lambda: omnizarr.ls(store, recursive=True)


def omnizarr_add_consolidated(place: Place, items: int) -> Run:
    _nodes(place, items, consolidated=True)
    group = omnizarr.open_group(place.omnizarr, mode="r+")
    return lambda: group.create_array("added", shape=(4,), dtype="i2")


def omnizarr_delete_consolidated(place: Place, items: int) -> Run:
    _nodes(place, items, consolidated=True)
    group = omnizarr.open_group(place.omnizarr, mode="r+")
    return lambda: group.__delitem__("a1")


def zarr_delete_consolidated(place: Place, items: int) -> Run:
    _nodes(place, items, consolidated=True)
    group = _zarr().open_group(place.zarr, mode="r+")
    return lambda: group.__delitem__("a1")


def omnizarr_stat(place: Place, items: int) -> Run:
    _own_nodes(place, items)
    store = place.omnizarr
    return lambda: omnizarr.stat(store)


def omnizarr_resume(place: Place, items: int) -> Run:
    _own_nodes(Place(place.path / "old"), items)
    source, target = (Place(place.path / name, place.counts, place.requests) for name in ("old", "new"))
    options: dict[str, Any] = {"zarr_format": 2, "progress": None}
    omnizarr.convert(source.omnizarr, LocalStore(target.path), **options)
    return lambda: omnizarr.convert(source.omnizarr, target.omnizarr, resume=True, **options)


def _chain(place: Place, items: int) -> None:
    omnizarr.create_group(LocalStore(place.path), path="/".join("g" * items))


def omnizarr_depth(place: Place, items: int) -> Run:
    _chain(place, items)
    group = omnizarr.open_group(place.omnizarr, mode="r")
    return lambda: sum(1 for _ in group.members(max_depth=None))


def zarr_depth(place: Place, items: int) -> Run:
    _chain(place, items)
    group = _zarr().open_group(place.zarr, mode="r")
    return lambda: sum(1 for _ in group.members(max_depth=None))


def omnizarr_deepest(place: Place, items: int) -> Run:
    _chain(place, items)
    omnizarr.consolidate_metadata(LocalStore(place.path))
    store, path = place.omnizarr, "/".join("g" * items)
    return lambda: omnizarr.open_group(store, mode="r", use_consolidated=True)[path]


def zarr_deepest(place: Place, items: int) -> Run:
    _chain(place, items)
    omnizarr.consolidate_metadata(LocalStore(place.path))
    store, path, zarr = place.zarr, "/".join("g" * items), _zarr()
    return lambda: zarr.open_group(store, mode="r", use_consolidated=True)[path]


# -- attributes ------------------------------------------------------------------------


def omnizarr_attributes(place: Place, items: int) -> Run:
    group = omnizarr.create_group(place.omnizarr)
    told = {f"name{number}": number for number in range(items)}
    return lambda: group.attrs.update(told)


def zarr_attributes(place: Place, items: int) -> Run:
    group = _zarr().create_group(place.zarr)
    told = {f"name{number}": number for number in range(items)}
    return lambda: group.attrs.update(told)


def omnizarr_attribute(place: Place, items: int) -> Run:
    omnizarr.create_group(LocalStore(place.path), attributes={f"name{number}": number for number in range(items)})
    group = omnizarr.open_group(place.omnizarr, mode="r+")
    return lambda: group.attrs.__setitem__("name7", 8)


def zarr_attribute(place: Place, items: int) -> Run:
    omnizarr.create_group(LocalStore(place.path), attributes={f"name{number}": number for number in range(items)})
    group = _zarr().open_group(place.zarr, mode="r+")
    return lambda: group.attrs.__setitem__("name7", 8)


def omnizarr_read_attributes(place: Place, items: int) -> Run:
    omnizarr.create_group(LocalStore(place.path), attributes={f"name{number}": number for number in range(items)})
    store = place.omnizarr
    return lambda: dict(omnizarr.open_group(store, mode="r").attrs)


def zarr_read_attributes(place: Place, items: int) -> Run:
    omnizarr.create_group(LocalStore(place.path), attributes={f"name{number}": number for number in range(items)})
    store, zarr = place.zarr, _zarr()
    return lambda: dict(zarr.open_group(store, mode="r").attrs)


# -- growing and shrinking -----------------------------------------------------------------


def omnizarr_append(place: Place, items: int) -> Run:
    array, row = _in_omnizarr(place, (0, ITEM), (16, ITEM)), values(ITEM)[None]

    def run() -> None:
        for _ in range(items):
            array.append(row)

    return run


def zarr_append(place: Place, items: int) -> Run:
    array, row = _in_zarr(place, (0, ITEM), (16, ITEM)), values(ITEM)[None]

    def run() -> None:
        for _ in range(items):
            array.append(row)

    return run


def tensorstore_append(place: Place, items: int) -> Run:
    array, row = _in_tensorstore(place, (0, ITEM), (16, ITEM)), values(ITEM)[None]

    def run() -> None:
        grown = array
        for number in range(items):
            grown = grown.resize(exclusive_max=[number + 1, ITEM]).result()
            grown[number : number + 1].write(row).result()

    return run


def omnizarr_writer(place: Place, items: int) -> Run:
    array, row = _in_omnizarr(place, (0, ITEM), (16, ITEM)), values(ITEM)[None]

    def run() -> None:
        with array.writer() as writer:
            for _ in range(items):
                writer.append(row)

    return run


def omnizarr_records(place: Place, items: int) -> Run:
    dataset, row = netcdf.Dataset(place.omnizarr, "w"), values(ITEM)
    dataset.createDimension("time", None)
    dataset.createDimension("x", ITEM)
    variable = dataset.createVariable("v", "i2", ("time", "x"), chunksizes=(16, ITEM))

    def run() -> None:
        for number in range(items):
            variable[number] = row
        dataset.close()

    return run


def omnizarr_append_edges(place: Place, items: int) -> Run:
    edges = [1 + number * 7 % 4 for number in range(items)]
    array = omnizarr.create_array(place.omnizarr, shape=(sum(edges),), chunks=(edges,), dtype="i2", compressors=None)
    return lambda: array.append(values(3))


def omnizarr_shrink(place: Place, items: int) -> Run:
    _filled(place, (items * ITEM,), (ITEM,))
    array = omnizarr.open_array(place.omnizarr, mode="r+")
    return lambda: array.resize((items // 2 * ITEM,))


def zarr_shrink(place: Place, items: int) -> Run:
    _filled(place, (items * ITEM,), (ITEM,))
    array = _zarr().open_array(place.zarr, mode="r+")
    return lambda: array.resize((items // 2 * ITEM,))


def tensorstore_shrink(place: Place, items: int) -> Run:
    _filled(place, (items * ITEM,), (ITEM,))
    array = _ts().open(place.tensorstore()).result()
    return lambda: array.resize(exclusive_max=[items // 2 * ITEM]).result()


RECHUNK_MEMORY: Final = 2_000_000


def omnizarr_rechunk(place: Place, items: int) -> Run:
    shape = (items, 128, 128)
    array = omnizarr.create_array(LocalStore(place.path / "old"), shape=shape, chunks=(1, 128, 128), dtype="i2")
    for plane in range(items):
        array[plane] = values(128 * 128).reshape(128, 128) + plane
    source = Place(place.path / "old", place.counts, place.requests).omnizarr
    target = Place(place.path / "new", place.counts, place.requests).omnizarr
    chunks = (min(items, 4096), 8, 8)
    return lambda: omnizarr.rechunk(source, target, chunks=chunks, max_memory=RECHUNK_MEMORY)


@dataclass(frozen=True)
class Operation:
    """What is measured.

    Attributes
    ----------
    name, title, items : str
        `items` says what is counted.
    by : mapping of str to function
        Library to what prepares it.
    largest : int
        Maximum number of items.
    why : str
        Why it grows faster than its items, if it may.
    """

    name: str
    title: str
    items: str
    by: Mapping[str, Prepare]
    largest: int = 10**6
    why: str = ""


LIBRARIES: Final = {"omnizarr": "omnizarr", "zarr": "zarr-python", "tensorstore": "TensorStore"}


def _of(name: str, title: str, items: str, **options: Any) -> Operation:
    """Return the operation that the functions with a name do, in all libraries that have it."""
    found = {library: globals().get(f"{library}_{name.replace('-', '_')}") for library in LIBRARIES}
    return Operation(name, title, items, {library: each for library, each in found.items() if each}, **options)


OPERATIONS: Final = (
    _of("write", "write chunks", "chunks"),
    _of("read", "read chunks", "chunks"),
    _of("points", "read single elements", "elements"),
    _of("stat-chunks", "statistics of an array", "chunks"),
    _of("digest-chunks", "digest an array", "chunks"),
    _of("diff-chunks", "compare two arrays, other chunks", "chunks"),
    _of("du-chunks", "measure what an array takes", "chunks"),
    _of("write-shard", "write one shard", "inner chunks"),
    _of("read-shard", "read one shard", "inner chunks"),
    _of("create", "create arrays", "arrays"),
    _of("create-own", "create arrays with own attributes", "arrays"),
    _of("create-places", "create arrays by path", "arrays"),
    _of("delete", "delete empty arrays", "arrays"),
    _of("delete-chunks", "delete an array with its chunks", "chunks"),
    _of("open", "open arrays", "arrays"),
    _of("list", "list arrays with shapes", "arrays"),
    _of("members", "hold arrays with own attributes", "arrays"),
    _of("check", "check a hierarchy", "arrays"),
    _of("digest", "digest a hierarchy", "arrays"),
    _of("diff", "compare two hierarchies", "arrays"),
    _of("stat", "statistics of a hierarchy", "arrays"),
    _of("resume", "resume a conversion that is complete", "arrays"),
    _of("consolidate", "consolidate metadata", "arrays"),
    _of("consolidated", "open from consolidated metadata", "arrays"),
    _of("consolidated-own", "open from consolidated metadata, own attributes", "arrays"),
    _of("du", "measure what nodes take", "arrays"),
    _of("ls", "list arrays with their types", "arrays"),
    _of("add-consolidated", "add one to many, consolidated", "arrays"),
    _of("delete-consolidated", "delete one of many, consolidated", "arrays"),
    _of("depth", "walk a chain of groups", "depth", largest=1000, why="keys grow with depth"),
    _of("deepest", "open the deepest group, consolidated", "depth", largest=1000, why="keys grow with depth"),
    _of("attributes", "set attributes at once", "attributes"),
    _of("attribute", "set one of many attributes", "attributes"),
    _of("read-attributes", "open a group, attributes as a dict", "attributes"),
    _of("append", "append rows one by one", "appends"),
    _of("writer", "append rows through a writer", "appends"),
    _of("records", "write records of netCDF one by one", "records"),
    _of("append-edges", "append once to chunks of different lengths", "chunks", largest=10**5),
    _of("shrink", "shrink to half", "chunks"),
    _of("rechunk", "rechunk in 2 MB of memory", "source chunks", largest=10**5),
)
