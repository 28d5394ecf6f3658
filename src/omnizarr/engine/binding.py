"""Everything that reading and writing the chunks of one array needs, looked up once when the array is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Final, NamedTuple

from omnizarr.codecs import chain as chains
from omnizarr.codecs import compiled
from omnizarr.codecs.chain import Chain
from omnizarr.codecs.contract import ArraySpec, ChunkPolicy
from omnizarr.engine import budget, native, transformers
from omnizarr.engine.cache import ChunkCache
from omnizarr.engine.conversion import Conversion
from omnizarr.errors import MetadataError, OmnizarrError
from omnizarr.model import UNDEFINED, ArrayMetadata, datatypes, grids, keys, plugins, thawed
from omnizarr.model.grids import Grid
from omnizarr.model.key_forms import KeyEncoding
from omnizarr.stores import verbs
from omnizarr.stores.base import Elements, Store
from omnizarr.support.memo import ById, Memo

_MOST_DIMENSIONS: Final = 64


@dataclass(slots=True, eq=False)  # not frozen, because a frozen object with many fields takes longer to create
class Binding:
    """An array's metadata, bound so that it can be used. It does not change.

    Attributes
    ----------
    store : Store
        The store of chunks: the array's store, or its storage transformers around it.
    prefix : str
        The prefix of each chunk key: "" or ending in "/".
    path : str
        Path of the array, for messages.
    grid : Grid
    keys : KeyEncoding
    chain : Chain
        Codecs for chunks of the grid's nominal shape; `chain_for` returns those for one chunk.
    chunks_differ : bool
        Whether chunks have different shapes.
    metadata : ArrayMetadata
    policy : ChunkPolicy
    chunk_cache : int or ChunkCache
        Bytes of decoded chunks to cache, or a cache that is shared with other arrays.
    base : Store
        The array's store; None: it is `store`, because there are no storage transformers.
    cache : ChunkCache
        The cache of decoded chunks; None without a cache.
    number : int
        Number of the array in that cache.
    native : object
        The native engine's object for the array; None with the reference engine.
    asks_store : bool
        Whether the engine in use asks the store, in Python, for each chunk.
    index : PartialIndex
        What finds chunks by parts of an index; None: the engine in use knows where they are, or asks the store.
    elements : Elements
        What reads elements without chunks, if the store makes these of other arrays.
    if_nothing : callable
        What to call if no chunk of a read is stored.
    conversion : Conversion
        What is done to elements that are read; None: nothing.
    seen : tuple of int
        How many chunks along each dimension others may ask for, as the array is becoming longer; None: all. A writer
        that is killed may leave parts of other chunks.
    """

    store: Store
    prefix: str
    path: str
    grid: Grid
    keys: KeyEncoding
    chain: Chain
    chunks_differ: bool
    metadata: ArrayMetadata
    policy: ChunkPolicy
    chunk_cache: int | ChunkCache = 0
    base: Store | None = None
    cache: ChunkCache | None = field(init=False, repr=False, default=None)
    number: int = field(init=False, repr=False, default=0)
    native: Any = field(init=False, repr=False)
    asks_store: bool = field(init=False, repr=False)
    index: native.PartialIndex | None = field(init=False, repr=False, default=None)
    elements: Elements | None = field(init=False, repr=False, default=None)
    if_nothing: Callable[[], None] | None = field(init=False, repr=False, default=None)
    conversion: Conversion | None = field(init=False, repr=False, default=None)
    seen: tuple[int, ...] | None = field(init=False, repr=False, default=None)
    _plain: Binding | None = field(init=False, repr=False, default=None)
    _chains: dict[tuple[int, ...], Chain] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.chunk_cache:
            self.cache = self.chunk_cache if isinstance(self.chunk_cache, ChunkCache) else ChunkCache(self.chunk_cache)
            self.number = self.cache.number_of(self.store, self.prefix, self.chain)
        self._chains = {}
        self.native, self.asks_store, self.index = native.engine_of(self)
        if self.cache is None and self.policy.missing == "fill":  # without chunks, none is kept, and none is missing
            self.elements = verbs.elements(self.store, self.prefix)

    @property
    def name(self) -> str:
        """The engine in use: "native" or "reference"."""
        return "reference" if self.native is None else "native"

    @property
    def plain(self) -> Binding:
        """The binding without a conversion."""
        return self if self._plain is None else self._plain

    @property
    def spec(self) -> ArraySpec:
        """Data type and fill value of the elements, and the nominal shape of a chunk."""
        return self.chain.spec

    @property
    def most_in_flight(self) -> int:
        """Number of chunks that may be in flight at once, by their size."""
        return budget.chunks_in_flight(self.policy.bytes_in_flight, self.spec.nbytes)

    def key_of(self, coords: tuple[int, ...]) -> str:
        """Return the store key of a chunk."""
        return self.prefix + self.keys.encode(coords)

    def chain_for(self, coords: tuple[int, ...]) -> Chain:
        """Return the codecs for one chunk: others than `chain` only if chunks differ in shape."""
        return self.chain_of_shape(self.grid.shape_of(coords)) if self.chunks_differ else self.chain

    def chain_of_shape(self, shape: tuple[int, ...]) -> Chain:
        """Return the codecs for chunks of one of the grid's shapes."""
        if shape == self.chain.spec.shape:
            return self.chain
        chain = self._chains.get(shape)
        if chain is None:
            chain = chains.bind(self.metadata.codecs, replace(self.chain.spec, shape=shape))
            self._chains[shape] = chain
        return chain

    def upon(self, store: Store, prefix: str, path: str, cache: ChunkCache | None = None) -> Binding:
        """Return the binding for an array in another place with the same chunk metadata, without transformers.

        `cache`: for its decoded chunks, if it is another one.
        """
        return Binding(
            store, prefix, path, self.grid, self.keys, self.chain, self.chunks_differ, self.metadata, self.policy,
            self.chunk_cache if cache is None else cache,
        )  # fmt: skip

    def converting(self, conversion: Conversion) -> Binding | None:
        """Return the binding whose elements are converted, piece by piece, as they are read. It is not for writing.

        Return None if the engine of the array cannot convert them.
        """
        engine = None
        if self.elements is not None:  # the store converts nothing
            return None
        if self.native is not None and (engine := native.converting(self, conversion)) is None:
            return None
        return self._with(conversion=conversion, native=engine, _plain=self.plain)

    def read_index(self) -> bool:
        """Read the whole index that tells where chunks lie; return whether the native engine can read them then."""
        plain = self.plain
        engine, plain.asks_store, _ = native.engine_of(plain, reads_index=True)
        if engine is not None:
            plain.native, plain.index = engine, None
        if engine is not None and self is not plain and self.conversion is not None:
            engine = native.converting(plain, self.conversion)
            self.native, self.index = engine, None
        return engine is not None

    def beyond(self, seen: tuple[int, ...]) -> Binding:
        """Return the binding for chunks of which others ask for the first `seen` along each dimension only.

        The caller holds the lock of the array, and stores its shape later.
        """
        return self._with(seen=seen)

    def _with(self, **changes: Any) -> Binding:
        found = object.__new__(Binding)
        for name in Binding.__slots__:
            setattr(found, name, changes[name] if name in changes else getattr(self, name))
        return found

    def filling(self) -> Binding:
        """Return the binding that reads missing chunks as the fill value, if this one raises an error for them."""
        if self.policy.missing == "fill":
            return self
        policy = replace(self.policy, missing="fill")
        return bind(self.metadata, self.base or self.store, self.prefix, policy, self.path, self.chunk_cache)

    def __reduce__(self) -> tuple[Any, ...]:
        return bind, (self.metadata, self.base or self.store, self.prefix, self.policy, self.path, self.chunk_cache)


def bind(
    metadata: ArrayMetadata,
    store: Store,
    prefix: str,
    policy: ChunkPolicy,
    path: str = "",
    chunk_cache: int | ChunkCache = 0,
) -> Binding:
    """Return what reading and writing the array's chunks needs.

    Raises
    ------
    UnknownExtensionError
        If the array uses an unknown data type, grid, key encoding, codec or storage transformer.
    MetadataError, CodecError
        If one of them is known but not valid here.
    """
    parts, seen = _supported(metadata, store, prefix, policy, path)
    return Binding(
        store=seen,
        prefix=prefix,
        path=path,
        grid=parts.grid,
        keys=parts.keys,
        chain=parts.chain,
        chunks_differ=parts.grid.chunk_shape is None,
        metadata=metadata,
        policy=parts.chain.spec.policy,
        chunk_cache=chunk_cache,
        base=None if seen is store else store,
    )


def most_stored(metadata: ArrayMetadata, policy: ChunkPolicy) -> int:
    """Return how many bytes a stored chunk may have. Raises what `bind` raises for metadata."""
    return _parts(metadata, policy).chain.most_stored


def check(metadata: ArrayMetadata, store: Store, prefix: str, policy: ChunkPolicy, path: str = "") -> None:
    """Raise the errors of `bind`, and of codecs that are not installed. It costs less than `bind`."""
    native.module_for(policy.engine)
    parts, _ = _supported(metadata, store, prefix, policy, path)
    try:
        compiled.refuse_missing(_names(parts.chain))
    except OmnizarrError as error:
        raise error.add(store=str(store), path=path)


def _names(chain: Chain) -> Iterator[str]:
    """Yield the names of the codecs of a chain, and of those within them."""
    for name, codec in (*chain.filters, chain.serializer, *chain.compressors):
        yield name
        for inner in (getattr(codec, name, None) for name in ("inner", "index", "mask")):
            if isinstance(inner, Chain):
                yield from _names(inner)


def _supported(
    metadata: ArrayMetadata, store: Store, prefix: str, policy: ChunkPolicy, path: str
) -> tuple[_Parts, Store]:
    """Return what does not depend on the place of an array, and the store that its chunks go through."""
    try:
        if len(metadata.shape) > _MOST_DIMENSIONS:
            raise MetadataError(
                "too many dimensions to read or write",
                pointer="/shape",
                found=f"{len(metadata.shape)} dimensions",
                expected=f"at most {_MOST_DIMENSIONS}, as many as NumPy has",
            )
        parts = _parts(metadata, policy)
        asked = metadata.storage_transformers
        return parts, (transformers.apply(asked, store, prefix) if asked else store)
    except OmnizarrError as error:
        raise error.add(store=str(store), path=path)


class _Parts(NamedTuple):
    """The parts of a binding that all arrays with the same chunk metadata share."""

    grid: Grid
    keys: KeyEncoding
    chain: Chain


def _parts(metadata: ArrayMetadata, policy: ChunkPolicy) -> _Parts:
    # Documents with the same bytes have the same metadata object.
    generation = plugins.generation()
    last = _known_objects.get(metadata)
    if last is not None and last[1] == generation and (last[0] is policy or last[0] == policy):
        return last[2]
    parts = _parts_of_equal(metadata, policy)
    if _is_immutable(parts):
        _known_objects.put(metadata, (policy, generation, parts))
    return parts


def _parts_of_equal(metadata: ArrayMetadata, policy: ChunkPolicy) -> _Parts:
    # An array that becomes longer keeps the objects of its other members.
    members = _but_shape(metadata)
    place = tuple(map(id, members))
    wanted = policy, plugins.generation()
    last = _known_members.known(place)
    if last is not None and last[1] == wanted:
        if last[2].grid.shape == metadata.shape:
            return last[2]
        grid = grids.bind(metadata.chunk_grid, metadata.shape)
        if grid.chunk_shape == last[2].grid.chunk_shape:
            return _Parts(grid, last[2].keys, last[2].chain)
    parts = _made(metadata, policy)
    if parts.grid.chunk_shape is not None and _is_immutable(parts):
        _known_members.put(place, (members, wanted, parts))
    return parts


def _made(metadata: ArrayMetadata, policy: ChunkPolicy) -> _Parts:
    # Copies, because remembered values must not change with the user's objects.
    grid = grids.bind(thawed(metadata.chunk_grid), metadata.shape)
    shape = grid.chunk_shape
    if shape is None:  # the chains of all its shapes belong to this grid
        chain = _made_chain(metadata, tuple(max(axis.sizes, default=0) for axis in grid.axes), policy)
    else:
        question = (shape, _question_of_chain(metadata, policy))
        chain = _known_chains.get(question, lambda: _made_chain(metadata, shape, policy), keep=_is_immutable)
    encoding = keys.bind(metadata.chunk_key_encoding)
    encoding.check(len(metadata.shape))
    return _Parts(grid, encoding, chain)


def _made_chain(metadata: ArrayMetadata, shape: tuple[int, ...], policy: ChunkPolicy) -> Chain:
    data_type = datatypes.bind(thawed(metadata.data_type), metadata.byte_order)
    if metadata.fill_value is UNDEFINED:
        # Other readers may return anything for a missing chunk of this array, so none may be missing.
        fill_value = data_type.default_fill_value
        policy = replace(policy, write_empty_chunks=True)
    else:
        fill_value = data_type.fill_from_json(thawed(metadata.fill_value))
    return chains.bind(tuple(map(thawed, metadata.codecs)), ArraySpec(shape, data_type, fill_value, policy))


def _question_of_chain(metadata: ArrayMetadata, policy: ChunkPolicy) -> object:
    """Return all inputs of `_made_chain` except the shape, and the generation of plug-ins."""
    return (
        (_said(metadata.data_type), metadata.byte_order, metadata.fill_value),
        [_said(codec) for codec in metadata.codecs],
        (_wanted(policy), plugins.generation()),
    )


def _is_immutable(made: _Parts | Chain) -> bool:
    chain = made.chain if isinstance(made, _Parts) else made
    return not chain.spec.dtype.hasobject  # a fill value that is an object could change


_wanted = attrgetter(*ChunkPolicy.__slots__)
_said = attrgetter("name", "configuration", "must_understand")
_but_shape = attrgetter("chunk_grid", "chunk_key_encoding", "data_type", "byte_order", "fill_value", "codecs")
_known_objects: Final[ById[ArrayMetadata, tuple[ChunkPolicy, int, _Parts]]] = ById()
"""What was made of this very object: documents of equal bytes have one."""
_known_members: Final[Memo[tuple[object, object, _Parts]]] = Memo(exact=True)
"""By the ids of the members on which chunks depend, which are kept here: arrays of one kind often differ in shape."""
_known_chains: Final[Memo[Chain]] = Memo()
"""By the values of all that a chain depends on."""
