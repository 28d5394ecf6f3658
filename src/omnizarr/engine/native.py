"""The native engine: the same plans, run without the interpreter (``rust/``, if it is built).

It leaves what it does not support to the reference engine: an array with a missing codec, a plan that it cannot
count, a chunk of an unusual form. The reference engine also handles every broken chunk, so that errors are the
same with both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from omnizarr.codecs import chain as chains
from omnizarr.codecs.contract import AnyArray, Buffer
from omnizarr.engine import reference
from omnizarr.engine.cache import has_stamps
from omnizarr.errors import MissingDependencyError, OmnizarrError
from omnizarr.indexing import Plan
from omnizarr.model import thawed
from omnizarr.settings import engines
from omnizarr.stores import Store, conflicts, verbs
from omnizarr.stores.access import Access, Client, Finder, Remote
from omnizarr.stores.base import Request
from omnizarr.stores.local import filelocks
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.local.memory import MemoryStore
from omnizarr.support.lazy import Lazy
from omnizarr.support.memo import Memo

if TYPE_CHECKING:
    from omnizarr.engine.binding import Binding
    from omnizarr.engine.conversion import Conversion
    from omnizarr.stores.manifests import manifest as manifests
    from omnizarr.stores.remote import object_errors
else:
    manifests = Lazy("omnizarr.stores.manifests.manifest")
    object_errors = Lazy("omnizarr.stores.remote.object_errors")

_LOOKED_AT: Final = 2**14
"""Elements that are compared with the fill value at once."""
_NOTHING_THERE: Final[tuple[list[Any], bool, None]] = ([], True, None)
_DOCUMENT: Final = "zarr.json"
"""The key that is locked to change an array (`omnizarr.nodes.location.StorePath.lock`); no chunk has this name."""
_MOST_MASKS: Final = 64
"""With more, the store encodes chunks that skip codecs again."""
_SHARE: Final = 4
"""For more than this part of all chunks, the whole index is read that tells where they are."""
_FEW: Final = 512
"""Of not more chunks, all are found by parts of the index, too, where the engine reads these itself."""
_MOST_SHAPES: Final = 64
"""An array with more chunk shapes is left to the reference engine."""


def module_for(asked: str | None) -> Any:
    """Return the extension module; None if the reference engine must be used.

    `asked` is the engine that was requested when an array was opened.

    Raises MissingDependencyError if the native engine is requested and missing; SettingError.
    """
    wanted = engines.choice(asked)
    if wanted == "reference":
        return None
    native = engines.module()
    if native is None and wanted == "native":
        raise MissingDependencyError(
            "the native engine has not been built",
            remedy="install omnizarr where cargo is, or do without OMNIZARR_ENGINE=native",
        )
    return native


class Bound(NamedTuple):
    """The native engine's object for an array; None if the reference engine must be used."""

    engine: Any
    asks_store: bool = False
    """Whether the engine in use asks the store, in Python, for each chunk."""
    partial: PartialIndex | None = None
    """What it asks where chunks lie, if that reads parts of an index."""


def engine_of(binding: Binding, *, reads_index: bool = False) -> Bound:
    """Return the native engine's object for an array. `reads_index`: the whole of an index is read for it.

    Raises MissingDependencyError if the native engine is requested and missing; SettingError.
    """
    native = module_for(binding.policy.engine)
    if native is None:
        return Bound(None, asks_store=True)
    codecs = _codecs.get(binding.chain, lambda: _codecs_of(native, binding))
    if codecs is None:
        return Bound(None, asks_store=True)
    store, keys, prefix = binding.store, binding.keys, binding.prefix
    affixes = keys.affixes
    if affixes is None:
        return Bound(None, asks_store=True)
    head, separator, tail, scalar = affixes
    names = (prefix + head, separator, tail, prefix + scalar)
    if type(store) is not LocalStore and (there := verbs.elsewhere(store, prefix)) is not None:
        store, names = there
    if not reads_index and (index := _partial(native, binding, store, names)) is not None:
        return Bound(index.engine(codecs, names, binding, store), partial=index)
    where: dict[str, Any]
    if (here := _here(store)) is not None:
        where = here
    elif (located := _blocks(native, binding, store, names) or _located(native, binding, store, names[0])) is not None:
        store, where = located
    elif binding.cache is not None and has_stamps(store):
        return Bound(
            None, asks_store=True
        )  # only the reference engine asks a Python store whether a value is still the same
    else:
        where = {
            "concurrency": store.features.concurrency,
            "most_in_flight": binding.most_in_flight,
            "is_conditional": store.features.exclusion == "condition",
        }
        if (remote := _remote(native, _Limits.of(binding), verbs.access(store))) is not None:
            where["remote"] = remote
        else:
            found = _lookup(native, binding, store, names)
            bounded = _Bounded(store, binding.chain.most_stored)
            return Bound(native.Engine(codecs, names, bounded, **where, **found), asks_store=not found)
    if binding.cache is not None and "concurrency" not in where:
        where["cache"] = binding.cache.shared_with(native), binding.number
    return Bound(native.Engine(codecs, names, store, **where))


def _here(store: Store) -> dict[str, Any] | None:
    """Return where the values of a directory or of memory are; None if it is another store."""
    if type(store) is LocalStore and os.name == "posix":
        home = store.home
        return {"root": store.real_root(), "fsync": store.fsync, "home": home and (home.folder, home.document)}
    if type(store) is MemoryStore and type(store.store_dict) is dict:
        return {"values": store.store_dict}
    return None


def _blocks(
    native: Any, binding: Binding, store: Store, names: tuple[str, str, str, str]
) -> tuple[Store, dict[str, Any]] | None:
    """Return where the blocks of an array of N5 lie; None if they do not, or the store must be asked."""
    head, separator, tail, _ = names
    if (separator, tail) != ("/", "") or not getattr(native, "reads_blocks", False):
        return None
    found = verbs.blocks(store, binding.prefix)
    return None if found is None else (store, {"root": found.root, "blocks": (head, found.folder, found.header)})


def _located(native: Any, binding: Binding, store: Store, head: str) -> tuple[Store, dict[str, Any]] | None:
    """Return what says where chunks lie in files of other formats, and of remote files the store that raises errors.

    Return None if they do not lie in files, or the store must be asked. `head` is what the keys of chunks begin with.
    """
    if not hasattr(native, "Manifest") or (found := verbs.chunks(store, head.rpartition("/")[0])) is None:
        return None
    where: dict[str, Any] = {}
    if isinstance(found.files, Remote):
        remote = None if binding.cache is not None else _remote(native, _Limits.of(binding), found.files.access)
        if remote is None or not hasattr(native, "Versions"):
            return None  # only the reference engine keeps chunks of remote files
        where["remote"] = remote
    manifest, masks = found.manifest, found.manifest.masks()
    skipping = [(mask, _codecs_of(native, binding, mask)) for mask in masks[: _MOST_MASKS + 1]]
    if len(masks) > _MOST_MASKS or any(codecs is None for _, codecs in skipping):
        return None  # the store encodes these chunks again
    if masks and store is not binding.store:
        return None
    files = found.files.files if isinstance(found.files, Remote) else found.files
    sources = _sources.get(files, lambda: _sources_of(native, found.files))
    if isinstance(manifest, manifests.Strided):
        given = manifest.start, manifest.steps, manifest.axis, manifest.units, manifest.per_chunk, manifest.unit
        located = native.Manifest(sources, found.grid, strided=(*given, manifest.stride, manifest.file))
    else:
        columns = manifest.offsets, manifest.lengths, manifest.files, manifest.skipped
        located = native.Manifest(sources, found.grid, columns=columns)
    store = found.files.store if isinstance(found.files, Remote) else store
    return store, {**where, "manifest": located, "skipping": skipping}


def _lookup(native: Any, binding: Binding, store: Store, names: tuple[str, str, str, str]) -> dict[str, Any]:
    """Return what finds chunks in files when they are first needed; nothing if they do not lie in files."""
    if binding.cache is not None or not hasattr(native, "Lookup"):
        return {}
    places = verbs.places(store, names[0].rpartition("/")[0])
    if places is None:
        return {}
    finder = _Finder(native, _Limits.of(binding), places)
    return {"lookup": native.Lookup(finder, names, binding.grid.grid_shape)}


def _partial(native: Any, binding: Binding, store: Store, names: tuple[str, str, str, str]) -> PartialIndex | None:
    """Return what finds chunks by those parts of an index that lead to them; None if there is no index, or no need."""
    if binding.cache is not None or type(store) in {LocalStore, MemoryStore} or not hasattr(native, "Lookup"):
        return None
    places = verbs.places(store, names[0].rpartition("/")[0])
    if places is None or not places.is_index:
        return None
    count = binding.grid.nchunks
    most = count if count <= _FEW and places.near is not None else count // _SHARE
    return PartialIndex(native, _Limits.of(binding), places, most)


class _Finder:
    """What the native engine asks where chunks lie. It holds no binding, which holds it."""

    __slots__ = ("_limits", "_native", "_places")

    def __init__(self, native: Any, limits: _Limits, places: Finder) -> None:
        self._native, self._limits, self._places = native, limits, places

    def find(self, keys: Sequence[str], numbers: bytes) -> tuple[Any, ...] | None:
        """Return where chunks lie; None if the store is to be asked for all chunks of the array.

        Raises what `refused` returns: the engine then does not read the chunks.
        """
        try:
            found = self._places.find(keys, memoryview(numbers).cast("Q"))
        except OmnizarrError as error:  # the reference engine raises it, with the chunk
            raise self.refused() from error
        if found is None:
            if self._places.is_index:
                raise self.refused()
            return None
        way = None
        if found.way is not None:
            store, access = found.way
            remote = _remote(self._native, self._limits, access)
            if remote is None:
                return None
            way = remote, store
        return (*found[:-1], way)

    def refused(self) -> NotImplementedError:
        """Return what tells the engine to leave chunks to others, as it leaves them itself."""
        return NotImplementedError()

    def opened(self, versions: Sequence[Any]) -> None:
        """Tell the store which versions of files were read."""
        self._places.opened(versions)


class PartialIndex(_Finder):
    """What the native engine asks where chunks lie, which reads parts of an index.

    Attributes
    ----------
    most : int
        For plans with more chunks, the whole index is read.
    is_over : bool
        Whether the whole index is better read, and so another object of the engine made.
    """

    __slots__ = ("is_over", "most")

    def __init__(self, native: Any, limits: _Limits, places: Finder, most: int) -> None:
        super().__init__(native, limits, places)
        self.most, self.is_over = most, False

    def engine(self, codecs: Any, names: tuple[str, str, str, str], binding: Binding, store: Store) -> Any:
        """Return the native engine's object that asks this."""
        limits = {"concurrency": store.features.concurrency, "most_in_flight": binding.most_in_flight}
        near = {} if self._places.near is None else {"index": self._places.near}
        lookup = self._native.Lookup(self, names, binding.grid.grid_shape, **near)
        return self._native.Engine(codecs, names, _Bounded(store, binding.chain.most_stored), **limits, lookup=lookup)

    def refused(self) -> NotImplementedError:
        """Return what tells the engine to leave chunks to others: the whole index is read then."""
        self.is_over = True
        return super().refused()


def _sources_of(native: Any, files: tuple[tuple[str, int, int, int, int], ...] | Remote) -> Any:
    if isinstance(files, Remote):
        return native.Versions([(path, key, *version) for path, key, version in files.files])
    return native.Sources(files)


_sources: Final[Memo[Any]] = Memo(16, exact=True)
"""The files of manifests, which several arrays share."""


def converting(binding: Binding, conversion: Conversion) -> Any:
    """Return the native engine's object of an array whose elements are converted; None if it cannot convert them."""
    if conversion.steps is None or not hasattr(binding.native, "converting"):
        return None
    dtype, first = binding.spec.dtype.str, conversion.steps[0][0]
    if first != dtype and (first[0], first[2:]) != (dtype[0], dtype[2:]):  # "_Unsigned" says what the same bytes mean
        return None
    try:
        return binding.native.converting(conversion.steps)
    except NotImplementedError:
        return None


class _Bounded:
    """A store in which values that are too large for chunks raise StoreLimitError, before they are read if possible."""

    __slots__ = ("_most", "_store")

    def __init__(self, store: Store, most: int) -> None:
        self._store = store
        self._most = most

    def get(self, key: str) -> Buffer | None:
        return verbs.get_within(self._store, key, self._most)

    def get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        return verbs.get_many_within(self._store, (key for key, _ in requests), self._most)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


# -- remote stores ---------------------------------------------------------

_UNKNOWN: Final = object()
_clients: Final[dict[Client, Any]] = {}
_MOST_CLIENTS: Final = 64


def fetches() -> bool:
    """Return whether the native engine itself fetches from and writes to object stores and web servers.

    Raises SettingError.
    """
    return engines.fetch() == "native"


_Remote = tuple[Any, str, int, int, tuple[bool, float] | None]


class _Limits(NamedTuple):
    """How large a value may be, and how many bytes may be in flight."""

    most_stored: int
    bytes_in_flight: int

    @classmethod
    def of(cls, binding: Binding) -> _Limits:
        """Return those of an array."""
        return cls(binding.chain.most_stored, binding.policy.bytes_in_flight)


def _remote(native: Any, limits: _Limits, access: Access | None) -> _Remote | None:
    """Return the native client of a store, and its limits and conditions.

    Return None if the store itself must be asked for each value.
    """
    if access is None or not fetches() or not hasattr(native, "Client"):
        return None
    client = _client(native, access)
    if client is None:
        return None
    conditions = (access.are_conditions_doubtful, conflicts.PATIENCE) if access.has_conditions else None
    most = min(access.max_value_bytes, limits.most_stored)
    return client, access.prefix, most, limits.bytes_in_flight, conditions


def _client(native: Any, access: Access) -> Any:
    """Return the client of a store, which arrays share; None if it cannot be created."""
    known = access.client
    client = _clients.get(known, _UNKNOWN)  # one call, because another thread may empty the table
    if client is not _UNKNOWN:
        return client
    try:
        *given, _ = known
        client = native.Client(*given, object_errors.missing_places())
        client.check()
    except (NotImplementedError, OverflowError):  # options that only obstore supports, or no threads
        client = None
    if len(_clients) >= _MOST_CLIENTS:
        _clients.clear()
    _clients[known] = client
    return client


def is_remote(binding: Binding) -> bool:
    """Return whether the native engine fetches and stores the chunks of an array itself."""
    return binding.native is not None and binding.native.fetches


def shard_indexes(limit: int) -> Any:
    """Return what keeps indexes of shards, of at most `limit` bytes, for `read_many`; None if nothing does."""
    kind = getattr(engines.module(), "ShardIndexes", None)
    return None if kind is None else kind(limit)


def shard_index_nbytes(entries: int, key: int) -> int:
    """Return the bytes of an index of a shard: `entries` is its number of chunks, `key` that of bytes of its key."""
    kind = getattr(engines.module(), "ShardIndexes", None)
    return 0 if kind is None else kind.nbytes_of(entries, key)


def read_many(
    jobs: Sequence[tuple[Binding, Plan, AnyArray]], concurrency: int | None = None, indexes: Any = None
) -> None:
    """Like `read`, for several arrays for which `is_remote` is True. A chunk that two of them need is fetched once.

    `indexes` is the result of `shard_indexes`: the index of a shard is fetched once then, or, if most of the shard is
    read, with the shard.
    """
    requests = [(binding.native, plan.pieces, _as_buffer(out)) for binding, plan, out in jobs]
    try:
        kept = {} if indexes is None else {"indexes": indexes}
        batch = engines.module().Batch(requests, concurrency, **kept)
    except (NotImplementedError, OverflowError):
        for binding, plan, out in jobs:
            reference.read(binding, plan, out, concurrency)
        return
    batch.wait()
    rests = [(job, batch.rest(number)) for number, job in enumerate(jobs)]
    for (binding, _, out), rest in rests:
        if rest is None and binding.if_nothing is not None and may_be_gone(binding, out):
            binding.if_nothing()
    left = [(job, rest) for job, rest in rests if rest is not None]
    # Failed ones first: they explain why the others were cancelled.
    for (binding, plan, out), rest in sorted(left, key=lambda item: (item[1][2] is None, not item[1][0])):
        _finish(reference.read, binding, plan, out, concurrency, rest)


def begin(jobs: Sequence[tuple[Binding, Plan, AnyArray]], concurrency: int | None, bell: int, *, is_write: bool) -> Any:
    """Begin the same as `read` or `write` for arrays for which `is_remote` is True.

    Return None if that is not possible. The returned object tells what is done. A byte in the socket `bell` announces
    it. To write, `can_write` must be True, too.
    """
    requests = [
        (binding.native, plan.pieces, _as_buffer(_of_shape(array, plan) if is_write else array))
        for binding, plan, array in jobs
    ]
    try:
        return engines.module().Batch(requests, concurrency, is_one=False, bell=bell, is_write=is_write)
    except (NotImplementedError, OverflowError):
        return None


def is_stoppable(binding: Binding) -> bool:
    """Return whether `read_within` can read the array."""
    return binding.native is not None and not binding.native.fetches and binding.elements is None


def shared_chunks(binding: Binding) -> Any:
    """Return what concurrent selections of an array share; None if sharing would save nothing."""
    return engines.module().ChunkCache(binding.policy.bytes_in_flight) if binding.native.decodes else None


class Limits:
    """The limits of a read that runs beside others.

    Parameters
    ----------
    shared : ChunkCache of the native engine or None
        The result of `shared_chunks` for the first of them.
    """

    __slots__ = ("_stop", "shared")

    def __init__(self, shared: Any = None) -> None:
        self.shared = shared
        self._stop = engines.module().Stop()

    @property
    def stop(self) -> Callable[[], None]:
        """Stop the read soon. The memory is then partly filled."""
        stop: Callable[[], None] = self._stop.set
        return stop

    def read(self, binding: Binding, plan: Plan, out: AnyArray, concurrency: int | None) -> Any:
        """Return the rest of a plan; nothing after it was stopped."""
        rest = binding.native.read(plan.pieces, _as_buffer(out), concurrency, self._stop, self.shared)
        return None if self._stop.is_set() else rest


def read_within(limits: Limits, binding: Binding, plan: Plan, out: AnyArray, concurrency: int | None = None) -> None:
    """Like `read`, until `limits.stop` is called."""
    read(binding, plan, out, concurrency, limits)


def read(
    binding: Binding, plan: Plan, out: AnyArray, concurrency: int | None = None, limits: Limits | None = None
) -> None:
    """Fill `out` like `omnizarr.engine.reference.read`, and raise the same errors."""
    index = binding.index
    if index is not None and (index.is_over or len(plan) > index.most) and not binding.read_index():
        reference.read(binding, plan, out, concurrency)
        return
    try:
        if limits is None:
            rest = binding.native.read(plan.pieces, _as_buffer(out), concurrency)
        else:
            rest = limits.read(binding, plan, out, concurrency)
    except (NotImplementedError, OverflowError):  # more than this engine can count
        if index is not None and index.is_over:
            read(binding, plan, out, concurrency, limits)  # this time with the whole index
        else:
            reference.read(binding, plan, out, concurrency)
        return
    _settle(binding, plan, out, concurrency, rest)


def _settle(binding: Binding, plan: Plan, out: AnyArray, concurrency: int | None, rest: Any) -> None:
    if rest is None:
        if binding.if_nothing is not None and may_be_gone(binding, out):
            binding.if_nothing()
        return
    if rest == _NOTHING_THERE:
        reference.check_home(binding)
    else:
        _finish(reference.read, binding, plan, out, concurrency, rest)


def may_be_gone(binding: Binding, out: AnyArray) -> bool:
    """Return whether no chunk may have been there: the engine says so only of directories."""
    return not isinstance(binding.store, LocalStore) and _is_filled(binding, out)


def can_read_together(binding: Binding) -> bool:
    """Return whether `read_together` can read an array."""
    native = binding.native
    return native is not None and not native.fetches and hasattr(engines.module(), "read_together")


def read_together(jobs: Sequence[tuple[Binding, Plan, AnyArray]], concurrency: int | None = None) -> None:
    """Like `read`, for several arrays for which `can_read_together` is True, in one call."""
    requests = [(binding.native, plan.pieces, _as_buffer(out)) for binding, plan, out in jobs]
    try:
        rests = engines.module().read_together(requests, concurrency)
    except (NotImplementedError, OverflowError):
        for binding, plan, out in jobs:
            read(binding, plan, out, concurrency)
        return
    for (binding, plan, out), rest in zip(jobs, rests, strict=True):
        if rest is not None or binding.if_nothing is not None:
            _settle(binding, plan, out, concurrency, rest)


def place_samples(
    out: AnyArray,
    chunks: Sequence[AnyArray],
    places: tuple[Sequence[int], AnyArray, AnyArray],
    size: Sequence[int],
    axes: Sequence[int],
) -> bool:
    """Copy what samples have of decoded chunks into a batch; return False, and copy nothing, if this engine cannot.

    Parameters
    ----------
    out : numpy.ndarray
        The batch, in C order.
    chunks : sequence of numpy.ndarray
        In C order, with the data type of the batch.
    places : tuple of sequence, numpy.ndarray, numpy.ndarray
        From which use on, and up to which, each chunk has its uses; for each use, the number of the sample, and where
        it begins in the chunk along `axes`, perhaps before it.
    size : sequence of int
        Length of a sample along each dimension of the array.
    axes : sequence of int
    """
    native = engines.module()
    dtype = out.dtype
    if dtype.hasobject or dtype.kind == "T" or not hasattr(native, "place_samples") or engines.is_refused():
        return False
    try:
        native.place_samples(_as_buffer(out), [_as_buffer(chunk) for chunk in chunks], places, size, axes)
    except NotImplementedError:
        return False
    return True


def _is_filled(binding: Binding, out: AnyArray) -> bool:
    """Return whether all elements are the fill value; False for objects and records, and for memory with gaps."""
    values = out if out.flags.c_contiguous else out.T
    if not values.size or not values.flags.c_contiguous or out.dtype.hasobject or out.dtype.names:
        return False
    values, fill = values.reshape(-1), binding.spec.fill_value
    for start in range(0, values.size, _LOOKED_AT):  # most arrays with other values end this soon
        part = values[start : start + _LOOKED_AT]
        if not np.all(part == fill if fill == fill else part != part):  # noqa: PLR0124 - NaN
            return False
    return True


def write(binding: Binding, plan: Plan, value: AnyArray, concurrency: int | None = None) -> None:
    """Store `value` like `omnizarr.engine.reference.write`, and raise the same errors."""
    if not can_write(binding, value):
        reference.write(binding, plan, value, concurrency)
        return
    try:
        seen = () if binding.seen is None else (binding.seen,)
        rest = binding.native.write(plan.pieces, _as_buffer(_of_shape(value, plan)), concurrency, *seen)
    except (NotImplementedError, OverflowError):
        reference.write(binding, plan, value, concurrency)
        return
    if rest is not None:
        _finish(reference.write, binding, plan, value, concurrency, rest)


def can_write(binding: Binding, value: AnyArray) -> bool:
    """Return whether the native engine may store a value now, by the calling thread."""
    # A thread that holds the lock of a chunk may enter it again, which threads of the native engine could not.
    # They never take the lock of a document, which `append` holds.
    return not (
        binding.store.read_only
        or value.dtype != binding.spec.dtype
        or filelocks.is_held(besides=_DOCUMENT)
        or _depends_on_reads(binding)
    )


def _of_shape(value: AnyArray, plan: Plan) -> AnyArray:
    return value if value.shape == plan.buffer_shape else np.broadcast_to(value, plan.buffer_shape)


def _depends_on_reads(binding: Binding) -> bool:
    """Return whether this thread has read chunks under a lock, so that only the store knows on what `set` depends."""
    names = (key.rpartition("/")[2] for key in verbs.remembered(binding.store))
    return any(name != _DOCUMENT and not name.startswith(".z") for name in names)


def _as_buffer(array: AnyArray) -> AnyArray:
    """Return the array in a form whose memory can be accessed, which not all data types and 0-d arrays allow."""
    if not array.ndim:
        array = array.reshape(1)
    dtype = array.dtype
    if dtype.isbuiltin == 1 and dtype.kind in "biufc":  # of NumPy itself, in native byte order
        return array
    return array.view(f"V{dtype.itemsize}")


def _finish(
    run: Callable[..., None],
    binding: Binding,
    plan: Plan,
    array: AnyArray,
    concurrency: int | None,
    rest: tuple[list[tuple[int, ...]], bool, BaseException | None],
) -> None:
    """Let the reference engine do the rest: it supports more, or reports what is wrong."""
    left, is_complete, error = rest
    raise_of(binding, left, error)
    wanted = set(left)
    run(binding, [piece for piece in plan if piece.coords in wanted], array, concurrency)
    if not is_complete:  # it was broken a moment ago, and has been repaired
        run(binding, plan, array, concurrency)


def raise_of(binding: Binding, left: Sequence[tuple[int, ...]], error: BaseException | None) -> None:
    """Raise what stopped the native engine, if it is an error of the store, with all its context."""
    if isinstance(error, OmnizarrError):
        error.add(store=str(binding.store), path=binding.path)
        if left:
            error.add(key=binding.key_of(left[0]), coords=left[0])
    if error is not None:
        raise error


_codecs: Final[Memo[Any]] = Memo(256, exact=True)
"""Codecs bound natively, by their chain."""


def _codecs_of(native: Any, binding: Binding, skipped: int = 0) -> Any:
    """Return the codecs of an array, bound natively; None if one of them is not supported.

    `skipped` is a mask of codecs that are left out, as in `omnizarr.codecs.chain.without`.
    """
    try:
        spec = binding.spec
        item_size = spec.dtype.itemsize
        if spec.nbytes is None or spec.dtype.hasobject or not item_size:
            return None
        shapes, lengths = [spec.shape], None
        if binding.chunks_differ:
            sizes = [sorted(set(axis.sizes), reverse=True) for axis in binding.grid.axes]
            shapes = list(product(*sizes))
            lengths = [[(part.first, part.size) for part in axis.segments] for axis in binding.grid.axes]
            if not 0 < len(shapes) <= _MOST_SHAPES:
                return None
        if skipped:
            codecs = tuple(map(thawed, binding.metadata.codecs))
            rest = chains.bind(chains.without(codecs, skipped, len(binding.chain.filters)), spec)
            described = [(spec.shape, None if binding.chunks_differ else chains.describe_chain(rest))]
        else:
            described = [(shape, chains.describe_chain(binding.chain_of_shape(shape))) for shape in shapes]
        if any(description is None for _, description in described):
            return None
        fill = np.asarray(spec.fill_value, spec.dtype).tobytes()
        policy = spec.policy
        return native.Codecs(item_size, fill, policy.write_empty_chunks, policy.missing == "error", described, lengths)
    except (NotImplementedError, OverflowError):
        return None
