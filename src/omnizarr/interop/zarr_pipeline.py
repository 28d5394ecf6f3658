"""A codec pipeline for zarr-python: its arrays, moved by the engines of omnizarr.

zarr-python makes one pipeline for each array. This one binds the array to an engine when its first chunk is touched,
and from then on hands whole selections to it. Whatever omnizarr does not do just as zarr-python does is left to
zarr-python's own pipeline, from which this one is derived.
"""

from __future__ import annotations

import asyncio
import os
import pickle
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple, Self, cast
from weakref import WeakValueDictionary

import numpy as np

from omnizarr import engine
from omnizarr.codecs.contract import AnyArray, ChunkPolicy
from omnizarr.engine import Binding
from omnizarr.engine.cache import ChunkCache
from omnizarr.errors import OmnizarrError
from omnizarr.interop.zarr_batches import Keys, planned
from omnizarr.metadata import ArrayMetadata, as_model
from omnizarr.model import UNDEFINED, datatypes, plugins
from omnizarr.stores import LocalStore, MemoryStore, Store, tasks, threads, verbs
from omnizarr.stores.base import Buffer, Span, answers, check_key, cut
from omnizarr.support import amounts

# The first of these reports if zarr-python is missing.
# isort: off
from omnizarr.stores.remote.zarr_python import ZarrPythonStore, native
import zarr
from zarr.abc.store import Store as TheirStore
from zarr.codecs import (
    BloscCodec,
    BytesCodec,
    Crc32cCodec,
    GzipCodec,
    ShardingCodec,
    TransposeCodec,
    ZstdCodec,
)
from zarr.codecs._v2 import V2Codec
from zarr.core.buffer import NDBuffer, cpu
from zarr.core.codec_pipeline import BatchedCodecPipeline, fill_value_or_default
from zarr.registry import register_pipeline
from zarr.storage import MemoryStore as TheirMemoryStore
from zarr.storage import StorePath
# isort: on

_PATH: Final = "codec_pipeline.path"
_MODULE: Final = "omnizarr.interop.zarr_python"
_NAME: Final = f"{_MODULE}.Pipeline"
# Reading this many bytes is faster than passing the work to a thread; opening a file costs as much as `_OPENING`.
_QUICK: Final = 80 * 1024
_OPENING: Final = 16 * 1024
# Bytes that are read without a thread if the event loop has nothing else to do meanwhile.
_QUICK_ALONE: Final = 528 * 1024
# The orders of inner chunks in shards that zarr-python has; releases before 3.2 have the first one only.
_ORDERS: Final[dict[str, Literal["C", "F", "morton"]]] = {
    "morton": "morton", "lexicographic": "C", "colexicographic": "F", "unordered": "C",
}  # fmt: skip
_CACHE: Final = "codec_pipeline.chunk_cache"
_caches: Final[WeakValueDictionary[int, ChunkCache]] = WeakValueDictionary()
_under_way: Final[set[object]] = set()  # what is moved at the moment

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_under_way.clear)


class Pipeline(BatchedCodecPipeline):
    """A codec pipeline of zarr-python that runs whole selections in the engines of omnizarr.

    `accelerate` switches it on, and so does its name in the configuration of zarr-python, for the arrays that are
    opened from then on.

    Notes
    -----
    It serves arrays with a regular grid and elements of fixed size in a `LocalStore`, a `MemoryStore`, an
    `ObjectStore`, an `FsspecStore`, a `ZipStore` that is open for reading, or a store of omnizarr. Their codecs must be
    those that come with zarr-python or numcodecs, and buffers those of the CPU. All else is left to
    `BatchedCodecPipeline`: other arrays, single fields, ``read_missing_chunks=False``, writes to what is read-only.

    Writers that change parts of one chunk are kept apart by the locks of omnizarr's store, and each chunk becomes
    visible whole.

    Examples
    --------
    >>> import zarr
    >>> from omnizarr.interop.zarr_python import Pipeline
    >>> with zarr.config.set({"codec_pipeline.path": "omnizarr.interop.zarr_python.Pipeline"}):
    ...     array = zarr.create_array({}, shape=(6,), chunks=(4,), dtype="int16")
    >>> array[2:5] = 7
    >>> array[:], isinstance(array.async_array.codec_pipeline, Pipeline)
    (array([0, 0, 7, 7, 7, 0], dtype=int16), True)
    """

    # Not a field: two pipelines are equal if their codecs are. zarr-python makes pipelines of codecs alone (those
    # within shards, say) in ways that differ with its release. Such a pipeline has no array, and works as its own.
    _array: _Array | None = None

    @classmethod
    def from_array_metadata_and_store(cls, array_metadata: Any, store: TheirStore) -> Self:
        """Return the pipeline of an array."""
        is_v3 = array_metadata.zarr_format == 3
        codecs = array_metadata.codecs if is_v3 else [V2Codec(array_metadata.filters, array_metadata.compressor)]
        self = cls.from_codecs(codecs)
        object.__setattr__(self, "_array", _Array(array_metadata, store, _cache_of(zarr.config.get(_CACHE, None))))
        return self

    async def read(self, batch_info: Iterable[Any], out: NDBuffer, drop_axes: tuple[int, ...] = ()) -> Any:
        """Fill `out` with what a selection needs of each chunk."""
        batch = list(batch_info)
        is_done = await self._move(engine.read, batch, out, drop_axes)
        return () if is_done else await super().read(batch, out, drop_axes)

    async def write(self, batch_info: Iterable[Any], value: NDBuffer, drop_axes: tuple[int, ...] = ()) -> None:
        """Store `value`, or one element of it everywhere, in the selected part of each chunk."""
        batch = list(batch_info)
        if not await self._move(engine.write, batch, value, drop_axes):
            await super().write(batch, value, drop_axes)

    async def _move(self, run: Callable[..., None], batch: list[Any], buffer: NDBuffer, axes: tuple[int, ...]) -> bool:
        """Run a batch in an engine; return False if it is not for one."""
        if self._array is None or not batch or type(buffer) is not cpu.NDBuffer:
            return False
        bound = self._array.bound(batch[0])
        if bound is None or (run is engine.write and bound.binding.store.read_only):
            return False
        this = object()
        _under_way.add(this)
        try:
            if run is engine.read and bound.is_near and (cost := bound.cost(batch)) <= _QUICK_ALONE:
                await asyncio.sleep(0)  # others on the event loop have their turn, as with any reading
                if cost <= _QUICK or len(_under_way) == 1:
                    return bound.move(run, batch, buffer.as_numpy_array(), axes)
            return await tasks.waited(bound.move, run, batch, buffer.as_numpy_array(), axes)
        finally:
            _under_way.discard(this)


# The name by which configurations, pickles and users know it.
Pipeline.__module__ = _MODULE
register_pipeline(Pipeline)


def accelerate(
    enabled: bool = True,  # noqa: FBT001, FBT002 - one word says it
    *,
    chunk_cache: int | str | ChunkCache = 0,
) -> AbstractContextManager[object]:
    """Have zarr-python use `Pipeline` for the arrays that it opens from now on.

    Parameters
    ----------
    enabled : bool, default True
        False: its own default pipeline again.
    chunk_cache : int, str or ChunkCache, default 0
        Bytes of decoded chunks to keep, as a number or as text (``"500MB"``), for all of these arrays together: reads
        that overlap decode each chunk once. A kept chunk is used only as long as the stored one has not changed.

    Returns
    -------
    context manager
        At the end of a ``with`` block everything is as it was before. Without one, it stays.

    Notes
    -----
    An array keeps the pipeline, and the cache, that it was opened with.

    Nothing is kept of arrays in a ``MemoryStore`` of zarr-python, which may change a value in place, nor of arrays that
    are left to zarr-python's own pipeline.

    Examples
    --------
    >>> import zarr
    >>> from omnizarr.interop.zarr_python import accelerate
    >>> with accelerate(chunk_cache="100MB"):
    ...     array = zarr.create_array({}, shape=(6,), chunks=(4,), dtype="int16")
    >>> array[2:5] = 7
    >>> array[::2]
    array([0, 7, 7], dtype=int16)
    """
    path = _NAME if enabled else zarr.config.defaults[0]["codec_pipeline"]["path"]
    cache = _cache_of(chunk_cache) if enabled else None
    return cast("AbstractContextManager[object]", zarr.config.set({_PATH: path, _CACHE: cache}))


def _cache_of(wanted: int | str | ChunkCache | None) -> ChunkCache | None:
    """Return the cache that a setting means: the same one for all arrays that are opened with the same number."""
    if isinstance(wanted, ChunkCache):
        return wanted
    limit = amounts.limit(wanted, "chunk_cache") if wanted else None
    if not limit:
        return None
    with threads.lock((_cache_of, limit)):
        found = _caches.get(limit)
        if found is None:
            found = _caches[limit] = ChunkCache(limit)
        return found


# -- an array -----------------------------------------------------------------------


class _Bound(NamedTuple):
    """An array of zarr-python, bound to an engine."""

    binding: Binding
    keys: Keys
    is_near: bool
    """Whether reading needs no other machine."""

    def cost(self, batch: list[Any]) -> int:
        """Return how many bytes reading a batch is worth."""
        return len(batch) * ((self.binding.spec.nbytes or 0) + _OPENING)

    def move(self, run: Callable[..., None], batch: list[Any], buffer: AnyArray, drop_axes: tuple[int, ...]) -> bool:
        """Run a batch; return False, having done nothing, if it is not for an engine."""
        found = planned(batch, self.keys, self.binding.spec.shape, drop_axes)
        if found is None or type(buffer) is not np.ndarray:
            return False
        if run is engine.write:
            dtype = self.binding.spec.dtype
            swapped = buffer.dtype != dtype and buffer.dtype.newbyteorder("=") == dtype.newbyteorder("=")
            buffer = buffer.astype(dtype) if swapped else buffer
        elif not buffer.flags.writeable:
            return False  # zarr-python raises its own error
        if not buffer.ndim and run is engine.write:
            buffer = np.broadcast_to(buffer, found.plan.buffer_shape)
        elif buffer.ndim == len(found.plan.buffer_shape) - len(found.dropped):
            buffer = found.view(buffer)
        if buffer.dtype != self.binding.spec.dtype or buffer.shape != found.plan.buffer_shape:
            return False
        run(self.binding, found.plan, buffer)
        return True


class _Array:
    """The facts about its array that a pipeline needs to bind it when a chunk is first used."""

    def __init__(self, metadata: Any, store: TheirStore, cache: ChunkCache | int | None = None) -> None:
        self._metadata = metadata
        self._store = store
        self._cache = _cache_of(cache)
        self._known: dict[tuple[bool, Hashable], _Bound | None] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # In another process, arrays share one cache of the same size.
        return _Array, (self._metadata, self._store, None if self._cache is None else self._cache.limit)

    def bound(self, item: Any) -> _Bound | None:
        """Return the array of an item of a batch, bound; None if it is left to zarr-python."""
        where, spec = item[:2]
        if type(where) is not StorePath or where.store is not self._store:
            return None
        if spec.prototype.buffer is not cpu.Buffer or spec.prototype.nd_buffer is not cpu.NDBuffer:
            return None
        if not getattr(spec.config, "read_missing_chunks", True):
            return None
        question = (bool(spec.config.write_empty_chunks), _place(self._store))
        if question not in self._known:
            self._known[question] = self._bind(where.path, spec)
        return self._known[question]

    def _bind(self, key: str, spec: Any) -> _Bound | None:
        try:
            shared = _shared(self._metadata, spec)
            store = None if shared is None else _store(self._store)
        except (OmnizarrError, MemoryError):  # zarr-python may know it, or says itself what is wrong
            return None
        found = None if shared is None else Keys.of(key, shared.keys, len(shared.metadata.shape))
        if shared is None or store is None or found is None:
            return None
        binding = shared.upon(store, found.prefix, found.prefix.removesuffix("/"), self._cache)
        return _Bound(binding, found, isinstance(store, LocalStore | MemoryStore))


_known: Final[dict[Hashable, Binding | None]] = {}
_MOST_KNOWN: Final = 512
# Codecs whose objects are equal only if they do the same: what others take for equal, as 0.0 and -0.0, may not be.
_COMPARABLE: Final = {BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec}


def _shared(metadata: Any, spec: Any) -> Binding | None:
    """Return what all arrays with these metadata are bound to, wherever they are; None if zarr-python has to serve."""
    question = _question(metadata, spec)
    try:
        return _known[question]
    except KeyError:
        pass
    if metadata.zarr_format == 3:
        are_known = all(map(_is_known, metadata.codecs))
    else:
        codecs = [*(metadata.filters or ()), *([metadata.compressor] if metadata.compressor is not None else [])]
        are_known = all(_package(codec) == "numcodecs" for codec in codecs)
    if not are_known:
        made = None
    else:
        byte_order = spec.dtype.to_native_dtype().byteorder
        document = metadata.to_dict()
        document.pop("attributes", None)
        found = as_model(ArrayMetadata.from_dict(document))
        if byte_order in ("<", ">"):  # v3 leaves it open, and zarr-python keeps what the array was created with
            found = replace(found, byte_order=cast("Literal['<', '>']", byte_order))
        if found.fill_value is not UNDEFINED:
            model = found
        else:
            # zarr-python fills with the default where a document leaves it open, and takes such chunks for empty.
            data_type = datatypes.bind(found.data_type, found.byte_order)
            model = replace(found, fill_value=data_type.fill_to_json(data_type.default_fill_value))
        order = _shard_order(metadata)
        if model.storage_transformers or order is None:
            made = None
        else:
            policy = ChunkPolicy(bool(spec.config.write_empty_chunks), shard_order=order)
            binding = engine.bind(model, MemoryStore(), "", policy)
            made = binding if _is_same(binding, spec) else None
    if question is not None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[question] = made
    return made


def _question(metadata: Any, spec: Any) -> Hashable | None:
    """Return all that `_bound_nowhere` looks at; None if that cannot be compared.

    Objects of zarr-python are compared, not pickled: reading the ``__dict__`` of one makes it slower permanently.
    """
    fill = metadata.fill_value
    fill = fill.tobytes() if isinstance(fill, np.generic) else fill
    shape = (metadata.shape, spec.shape, spec.dtype, type(fill), fill, spec.config.write_empty_chunks)
    if metadata.zarr_format == 2:
        try:
            codecs = pickle.dumps((metadata.filters, metadata.compressor))
        except Exception:  # noqa: BLE001 - objects of others, which may raise anything
            return None
        question: tuple[Any, ...] = (metadata.chunks, metadata.order, metadata.dimension_separator, codecs)
    elif getattr(metadata, "extra_fields", None) or not all(map(_is_comparable, metadata.codecs)):
        return None
    else:
        storage = metadata.storage_transformers
        question = (metadata.chunk_grid, metadata.chunk_key_encoding, metadata.codecs, storage)
    question = (*question, *shape, plugins.generation())
    try:
        hash(question)
    except TypeError:
        return None
    return question


def _is_comparable(codec: Any) -> bool:
    inner = (*codec.codecs, *codec.index_codecs) if type(codec) is ShardingCodec else ()
    return type(codec) in _COMPARABLE and all(map(_is_comparable, inner))


def _is_same(binding: Binding, spec: Any) -> bool:
    """Return whether chunks are to both libraries the same: elements of fixed size, in a regular grid."""
    ours = binding.spec
    if binding.chunks_differ or ours.nbytes is None or ours.dtype.hasobject:
        return False
    if ours.shape != spec.shape or ours.dtype != spec.dtype.to_native_dtype():
        return False
    fills = [np.asarray(fill, ours.dtype).tobytes() for fill in (ours.fill_value, fill_value_or_default(spec))]
    return fills[0] == fills[1]


def _is_known(codec: Any) -> bool:
    inner = (*codec.codecs, *codec.index_codecs) if type(codec) is ShardingCodec else ()
    return _package(codec) in ("zarr", "numcodecs") and all(map(_is_known, inner))


def _shard_order(metadata: Any) -> Literal["C", "F", "morton"] | None:
    """Return in which order zarr-python writes the inner chunks of shards; None if shards differ."""
    orders = [_ORDERS.get(getattr(codec, "subchunk_write_order", "morton")) for codec in _shardings(metadata)]
    if not orders:
        return "C"
    return orders[0] if len(set(orders)) == 1 else None


def _shardings(metadata: Any) -> Iterator[Any]:
    """Yield the codecs for shards of an array, and for shards in its shards."""
    found = [codec for codec in getattr(metadata, "codecs", ()) if type(codec) is ShardingCodec]
    while found:
        codec = found.pop()
        yield codec
        found += [inner for inner in codec.codecs if type(inner) is ShardingCodec]


def _package(value: object) -> str:
    return type(value).__module__.partition(".")[0]


# -- its store ----------------------------------------------------------------------


def _place(store: TheirStore) -> Hashable:
    """Return where the data of a store are now: directories and archives can be moved while they are open."""
    if type(store) is TheirMemoryStore:
        return id(store._store_dict)  # noqa: SLF001
    return getattr(store, "root", None) or getattr(store, "path", None)


def _store(store: TheirStore) -> Store | None:
    """Return omnizarr's own store for the same data; None if there is none."""
    if type(store) is TheirMemoryStore:
        values: Any = store._store_dict  # noqa: SLF001
        return _Buffers(values, read_only=store.read_only)
    found: Any = native(store)
    inner = found
    while isinstance(inner, Store):
        if isinstance(inner, ZarrPythonStore):
            return None
        inner = getattr(inner, "store", None)
    return found if found.read_only or not store.read_only else found.with_read_only()  # type: ignore[no-any-return]


class _Buffers(MemoryStore):
    """A store in the dictionary of a `MemoryStore` of zarr-python, whose values are buffers of its own."""

    _values: Any

    features = MemoryStore.features

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return the value, not a copy of it."""
        check_key(key)
        value = self._values.get(key)
        if value is None:
            return None
        array: AnyArray = np.ascontiguousarray(value.as_numpy_array())
        data = array.data.cast("B").toreadonly()
        return data if span is None else cut(data, span)

    @answers(verbs.stamp)
    def _stamp(self, key: str) -> None:
        """Return None: zarr-python may change a value in place."""
        check_key(key)

    def set(self, key: str, value: Buffer) -> None:
        """Keep a copy of the value."""
        self.check_writable()
        check_key(key)
        self._values[key] = cpu.Buffer.from_bytes(bytes(value))

    @answers(verbs.set_if_absent)
    def _set_if_absent(self, key: str, value: Buffer) -> bool:
        """Set `key` under its lock."""
        return verbs.set_if_absent.default(self, key, value)
