"""The copier: stored values go from keys to other keys, unchanged. Whatever copies byte for byte uses it.

`Layout` says which keys a node and those below have, and where these go. `Copier` copies them, side by side, with a
bounded number of bytes in memory. Chunks are copied first, then documents: the deepest first, and for each node the
document that makes it a node last. So no incomplete node is ever visible.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import chain, count, groupby, islice, zip_longest
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, TypeVar

from omnizarr.engine import budget
from omnizarr.errors import ConflictError, Remedy, StaleError, StoreError, StoreLimitError
from omnizarr.model import ArrayMetadata
from omnizarr.nodes import detection, holdings
from omnizarr.nodes.digests import Listed, Names, equal_names
from omnizarr.nodes.location import StorePath, dialects_at
from omnizarr.stores import LocalStore, Store, pool, verbs
from omnizarr.stores.base import NOT_LISTED, Buffer, answers_itself
from omnizarr.stores.manifests.file import File
from omnizarr.support.lazy import Lazy
from omnizarr.support.locks import RLock

if TYPE_CHECKING:
    import tempfile
else:
    tempfile = Lazy("tempfile")

T = TypeVar("T")
Pair: TypeAlias = tuple[str, str]
"""The key of a value in the source, and in the target."""
Lane: TypeAlias = Callable[[], AbstractContextManager[object]]
"""Returns what is entered while a copy is read."""

_PIECE: Final = 4 * 2**20
"""Bytes of a file that are read at once; a larger one is read in such pieces."""
_COMPARED: Final = 16 * 2**20
"""Bytes of a copy that are read at once to be compared."""
_RECEIVED: Final = 4 * 2**20
"""Bytes of a value that are in memory twice when it is received: a larger one comes in pieces."""
_COMPARED_PIECE: Final = 2**20
"""Bytes that are compared at once."""
_ATTEMPTS: Final = 3
"""How often a value is read that is replaced while it is read in pieces."""


class Done(NamedTuple):
    """What was done with a value.

    Attributes
    ----------
    nbytes : int
        Its size; 0 if it does not exist, or if nothing asked for its size.
    is_written : bool
    """

    nbytes: int
    is_written: bool


_NOTHING: Final = Done(0, is_written=False)


@dataclass
class Sizes:
    """What is known of the sizes of values before they are read.

    Attributes
    ----------
    largest : int
        Bytes of the largest value that may come next; 0 if nothing is known.
    """

    largest: int = 0


@dataclass(frozen=True)
class Copier:
    """From one store to another, or within one. This can be pickled, if the stores can.

    Attributes
    ----------
    source, target : Store
    keeps : {"none", "equal", "all"}
        Which values stay, of those that the target has already. "equal": those that are equal to what is copied.
    verify : bool
        Whether to read each copy again, and compare it.
    in_pieces : bool
        Whether values are files of any size. Large ones are then read in pieces, and copied one after the other.
    most : int, optional
        Bytes that a value may have. StoreLimitError is raised for a larger one.
    by_server : bool
        Whether a store may copy within itself: not of a document, which is written on a condition under its lock.
    sized : bool
        Whether the caller wants to know the size of what a store copies within itself.
    sizes : Sizes
        What a listing shows while it is read, or what is expected. Otherwise, the first values show how large they are.
    """

    source: Store
    target: Store
    keeps: Literal["none", "equal", "all"] = "none"
    verify: bool = False
    in_pieces: bool = False
    most: int | None = None
    by_server: bool = True
    sized: bool = True
    sizes: Sizes = field(default_factory=Sizes, compare=False)

    @property
    def at_once(self) -> int:
        """How many values are copied side by side in one process."""
        return max(pool.default_concurrency(), self.source.features.concurrency, self.target.features.concurrency)

    def run(self, pairs: Iterable[Pair], on_copied: Callable[[], object] | None = None) -> None:
        """Copy the values of keys with threads of this process. `on_copied` is called for each value, in any thread."""
        copy = self.copier()

        def each(pair: Pair) -> None:
            copy(*pair)
            if on_copied is not None:
                on_copied()

        workers = max(self.source.features.concurrency, self.target.features.concurrency)
        pool.run(each, pairs, min(workers, len(pairs)) if isinstance(pairs, list) else workers, 1)

    def copier(self) -> Callable[[str, str], Done]:
        """Return a function that copies the value of a key to another key. Several threads may call it at a time.

        As many values are copied side by side as fit into the bytes in flight. A store that reads parts refuses those
        that are larger than their share, before it reads them; they wait for each other. Of other stores, one value
        shows first how large they are, and then each round takes twice as many as the last. Of half of the values at
        most, the copies are read at a time, to be compared.
        """
        is_within = self.source is self.target and self.by_server and self.keeps == "none" and not self.verify
        copy = self._copy_within if is_within else self._copy_through
        most = self.at_once
        if is_within or most == 1:
            return lambda key, copied: copy(key, copied, self.most, nullcontext)
        room = _Room(self, most, budget.total())

        def copy_in_turn(key: str, copied: str) -> Done:
            room.look(key)
            while True:
                found = room.lanes()
                limit = room.limit_of(found)
                with room.lane(found):
                    if found < most and room.lanes() > found:
                        continue  # meanwhile others have shown that there is more room
                    try:
                        done = copy(key, copied, limit, room.comparing)
                    except StoreLimitError:
                        if limit == self.most:
                            raise
                        room.is_unknown = True
                        continue
                    room.finish(done, found)
                    return done

        return copy_in_turn

    @property
    def compares(self) -> bool:
        """Whether copies are read."""
        return self.verify or self.keeps == "equal"

    def _copy_within(self, key: str, copied: str, _: int | None, __: Lane) -> Done:
        """Let the store copy the value."""
        size = self.source.size(key) if self.sized else 0
        if size is None or not verbs.copy_value(self.source, key, copied):
            return _NOTHING
        return Done(size, is_written=True)

    def _copy_through(self, key: str, copied: str, most: int | None, lane: Lane) -> Done:
        """Read the value, and write it. Raises StoreLimitError if it has more than `most` bytes.

        The copy is read to be compared when `lane` lets that begin.
        """
        if self.keeps == "all" and self.target.exists(copied):
            return _NOTHING
        if not self.in_pieces:
            value = self.source.get(key) if most is None else verbs.get_within(self.source, key, most)
            return self._put(copied, value, lane)
        value = self.source.get(key, (0, _PIECE))
        if value is None or len(value) < _PIECE:
            return self._put(copied, value, lane)
        with _mapped(self.source, key) as view:
            return self._put(copied, view, lane)

    def _put(self, key: str, value: Buffer | None, lane: Lane) -> Done:
        if value is None:  # never written, or removed meanwhile
            return _NOTHING
        if self.keeps == "equal" and self._holds(key, value, lane):
            return Done(len(value), is_written=False)
        self.target.set(key, value)
        if self.verify and not self._holds(key, value, lane):
            raise StoreError(
                "the copy differs from what was copied",
                store=str(self.target),
                key=key,
                remedy=Remedy(
                    "let nothing change the source, look after the store, and continue with {resume}", resume=True
                ),
            )
        return Done(len(value), is_written=True)

    def _holds(self, key: str, value: Buffer, lane: Lane) -> bool:
        """Return whether the target has this value."""
        with lane():
            return self._has(key, value)

    def _has(self, key: str, value: Buffer) -> bool:
        piece = _PIECE if self.in_pieces else _COMPARED
        if not self.in_pieces and (len(value) <= piece or not reads_parts(self.target, key)):
            is_large = len(value) > _RECEIVED and reads_parts(self.target, key)
            return equals(self.target.get(key, (0, len(value) + 1) if is_large else None), value)
        if len(value) < piece:
            return equals(self.target.get(key, (0, piece)), value)
        view, start = memoryview(value), 0
        for found in pieces(self.target, key, piece):
            if not equals(found, view[start : start + piece]):
                return False
            start += len(found)
        return start == len(view)


class _Room:
    """How many values are copied side by side, so that they fit into the bytes in flight.

    Attributes
    ----------
    is_unknown : bool
        Whether a value is too large for its share, by how much is not known yet.
    """

    def __init__(self, copier: Copier, most: int, in_flight: int) -> None:
        self.is_unknown = False
        self._copier, self._most, self._in_flight = copier, most, in_flight
        self._finished = self._largest = 0
        self._turns, self._lanes = count(), [RLock() for _ in range(most)]
        self._comparisons, self._compared = count(), [RLock() for _ in range(most // 2 if copier.compares else 0)]
        self._is_near = isinstance(copier.source, LocalStore)
        self._shares: dict[int, int] = {}
        self._refuses: bool | None = None

    def look(self, key: str) -> None:
        """Find out, with the first key, whether the source refuses large values, or sends them in pieces."""
        if self._refuses is None:
            self._refuses = not self._copier.in_pieces and reads_parts(self._copier.source, key)

    def lanes(self) -> int:
        """Return for how many values there is room now."""
        if self.is_unknown:
            return 1
        listed = self._copier.sizes.largest
        opened = self._most if self._refuses or listed else 2 * self._finished
        return max(1, min(opened, self._most, self._in_flight // self._taken(max(self._largest, listed, 1))))

    def lane(self, lanes: int) -> AbstractContextManager[object]:
        """Return what excludes others, so that no more than a number of values are copied side by side."""
        return self._lanes[next(self._turns) % lanes] if lanes < self._most else nullcontext()

    def comparing(self) -> AbstractContextManager[object]:
        """Return what excludes others, so that no more than half of the copies are read side by side."""
        lanes = self.lanes()
        if not self._compared or lanes == self._most:
            return nullcontext()
        return self._compared[next(self._comparisons) % max(1, lanes // 2)]

    def limit_of(self, lanes: int) -> int | None:
        """Return the number of bytes that a value may have beside others, with this number of lanes; None: any."""
        most = self._copier.most
        if not self._refuses or lanes == 1:
            return most
        share = self._shares.get(lanes)
        if share is None:
            share = self._shares[lanes] = self._share(self._in_flight // lanes)
        return share if most is None or most > share else most

    def finish(self, done: Done, lanes: int) -> None:
        """Note a value that is copied."""
        self._finished, self._largest = self._finished + 1, max(self._largest, done.nbytes)
        if lanes == 1:
            self.is_unknown = False

    def _taken(self, size: int) -> int:
        """Return about how many bytes of memory a value of this size takes."""
        received = 0 if self._is_near else min(size, _RECEIVED) if self._refuses else size
        return size + received + (min(size, _COMPARED) // 2 if self._copier.compares else 0)

    def _share(self, taken: int) -> int:
        """Return how large a value may be that takes so many bytes."""
        low, high = 0, taken + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._taken(middle) <= taken else (low, middle)
        return max(low, 1)


def reads_parts(store: Store, key: str) -> bool:
    """Return whether a store certainly reads a part of a value without reading, or making, all of it."""
    return isinstance(store, LocalStore) or verbs.pinned(store, key) is not None


def pieces(store: Store, key: str, length: int) -> Iterator[Buffer]:
    """Yield a value in pieces of one version; nothing if it is missing. Only the last one is shorter than `length`.

    Raises ConflictError if the value is replaced or removed meanwhile; in a store without stamps, only if it is
    removed.
    """
    file, start, stamp = File(store, key), 0, None
    try:
        while (found := file.pieces([(start, start + length)])) is not None:
            (piece,) = found
            if not start and len(piece) == length and not reads_parts(store, key):
                stamp, found = verbs.stamp(store, key), file.pieces([(0, length)])
                piece = piece if found is None else found[0]
            yield piece
            start += len(piece)
            if len(piece) < length:
                break
    except StaleError as error:
        raise ConflictError("the value was replaced while it was read", store=str(store), key=key) from error
    if found is None and start:
        raise ConflictError("the value was removed while it was read", store=str(store), key=key)
    if stamp is not None and verbs.stamp(store, key) != stamp:
        raise ConflictError("the value was replaced while it was read", store=str(store), key=key)


def steadily(read: Callable[[], T]) -> T:
    """Return what a function returns that reads a value in pieces; begin again if it is replaced meanwhile.

    Raises ConflictError if that goes on.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return read()
        except ConflictError:
            continue
    return read()


def equals(found: Buffer | None, value: Buffer) -> bool:
    """Return whether there is a value, which has the same bytes as another one."""
    if found is None or len(found) != len(value):
        return False
    one, other = memoryview(found), memoryview(value)
    starts = range(0, len(one), _COMPARED_PIECE)  # views compare slowly, and bytes of all would take memory
    return all(bytes(one[at : at + _COMPARED_PIECE]) == bytes(other[at : at + _COMPARED_PIECE]) for at in starts)


def same_value(one: Store, key: str, other: Store, other_key: str) -> bool:
    """Return whether two stores hold equal bytes at two keys, read in pieces; missing values are equal, too.

    Raises ConflictError if one of them is replaced again and again while it is read.
    """

    def compare() -> bool:
        both = zip_longest(pieces(one, key, _PIECE), pieces(other, other_key, _PIECE))
        return all(left is not None and right is not None and equals(left, right) for left, right in both)

    return steadily(compare)


@contextmanager
def _mapped(store: Store, key: str) -> Iterator[Buffer]:
    """Give a temporary copy of a large value, of which only a part is in memory at a time."""
    with tempfile.TemporaryFile() as file:

        def fill() -> int:
            file.seek(0)
            file.truncate()
            return sum(file.write(piece) for piece in pieces(store, key, _PIECE))

        if not steadily(fill):
            raise StoreError("a file was removed while it was copied", store=str(store), key=key)
        file.flush()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
            yield view


class Layout:
    """Which keys there are of a node and of those below, and where they go.

    Parameters
    ----------
    source, target : StorePath
    besides : str
        Name of a document at both places that is not copied.
    unlisted : callable, optional
        Returns the keys of documents and chunks in a source that cannot be listed. By default, an array is asked for
        all of its chunks, and a group raises the error of the store.

    Attributes
    ----------
    sizes : Sizes
        Of the values that `chunks` has yielded, if the source lists sizes.
    """

    def __init__(
        self,
        source: StorePath,
        target: StorePath,
        *,
        besides: str = "",
        unlisted: Callable[[StorePath], Iterator[str]] | None = None,
    ) -> None:
        self.source, self.target = source, target
        self.sizes = Sizes()
        self._besides, self._unlisted = besides, unlisted
        formats = dialects_at(source)
        self._old, self._new = formats[0].keyspace, dialects_at(target)[0].keyspace
        self._is_document = document_test(source)
        self._makers = tuple(name for dialect in formats for name in (dialect.array_document, dialect.group_document))
        self._documents: list[Pair] = []
        self._seen = 0
        self._there: set[int] | None = None
        """Hashes of the keys of the source, if that is listed again."""
        self._equal: Names | None = None
        """Keys of the target whose values need not be read."""

    def later(self) -> Layout | None:
        """Return what there is now, when all is copied, if keys have come or gone since `chunks` listed them.

        None if they are the same, or if the store does not tell. Documents that were copied before this may mention the
        chunks that came.
        """
        if self.source.store.features.listing != "complete":
            return None
        try:
            seen = sum(hash(key) for prefix in self._prefixes() for key in self._keys(prefix))
        except NOT_LISTED:
            return None
        if seen == self._seen:
            return None
        found = Layout(self.source, self.target, besides=self._besides, unlisted=self._unlisted)
        found._there = set()
        return found

    def chunks(self) -> Iterator[Pair]:
        """Yield all keys but those of documents, which are remembered; in any order."""
        seen: set[str] = set()
        for prefix, other in self._prefixes().items():
            for key in self._keys(prefix):
                self._seen += hash(key)
                if self._there is not None:
                    self._there.add(hash(key))
                if self._besides and key == f"{self.source.prefix}{self._besides}":
                    continue
                pair = key, other + key[len(prefix) :]
                if not self._is_document(key):
                    yield pair
                elif key not in seen:
                    seen.add(key)
                    self._documents.append(pair)
        there = self._new.documents(self.target.path)
        for name, key in self._old.documents(self.source.path).items():
            if name in there and key not in seen and self.source.store.exists(key):
                self._documents.append((key, there[name]))
                if self._there is not None:
                    self._there.add(hash(key))

    def documents(self) -> Iterator[list[Pair]]:
        """Yield the keys of documents, when `chunks` has ended. Those of a list may be written in any order."""
        yield from in_turns(self._documents, self._makers)
        own, new = self.source.home, self.target.home
        if self.has_entry and own is not None and new is not None:
            yield [(own.entry_key, new.entry_key)]

    def keep_up(self, copy: Callable[[Iterable[Pair], Literal["all", "equal"]], object]) -> bool | None:
        """Copy what came since `chunks` listed the keys, and remove what went, when all else is copied.

        `copy` is called with keys, and with which values of them may stay. Returns whether there was something; None if
        keys still come and go.
        """
        layout: Layout = self
        for number in range(_ATTEMPTS):
            later = layout.later()
            if later is None:
                return number > 0
            layout = later
            copy(layout.new_chunks(), "all")
            for level in layout.documents():
                copy(level, "equal")
            for key in layout.others():
                layout.target.store.delete(key)
        return None

    def new_chunks(self) -> Iterator[Pair]:
        """Yield what `chunks` does, without the keys that a list of the target has: to ask for each takes longer."""
        store = self.target.store
        prefixes = self._prefixes().values() if store.features.listing == "complete" else ()
        there = {hash(key) for prefix in prefixes for key in store.list_prefix(prefix)}
        return (pair for pair in self.chunks() if hash(pair[1]) not in there)

    @property
    def has_entry(self) -> bool:
        """Whether the root of a draft's hierarchy is copied to where another one begins: with its entry point."""
        own, new = self.source.home, self.target.home
        if own is None or new is None:
            return False
        return self.source.path == own.root and self.target.path == new.root

    def others(self) -> Iterator[str]:
        """Yield the keys of the target that the source does not have, or no longer, when `chunks` has ended."""
        expected = {new: old for old, new in self._documents}
        is_there = self._is_there()
        for prefix, other in self._prefixes().items():
            for key in list(self.target.store.list_prefix(other)):
                old = expected.get(key, prefix + key[len(other) :])
                is_besides = self._besides and key == f"{self.target.prefix}{self._besides}"
                if not is_besides and not is_there(old):
                    yield key

    def _is_there(self) -> Callable[[str], bool]:
        """Return a function that says whether the source has a key: it is listed if to ask for each takes longer."""
        store, there, prefixes = self.source.store, self._there, tuple(self._prefixes())
        if there is not None:
            return lambda key: hash(key) in there
        if store.features.listing != "complete" or store.features.concurrency <= 1:
            return store.exists
        listed = Names(hash(key) for prefix in prefixes for key in store.list_prefix(prefix))
        return lambda key: key in listed or (not key.startswith(prefixes) and store.exists(key))

    def unlike(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield pairs without those whose values are certainly equal, by the digests that both stores list."""
        if self._equal is None:
            places = self._prefixes()

            def new_name(key: str) -> str | None:
                return next((new + key[len(old) :] for old, new in places.items() if key.startswith(old)), None)

            ours = Listed(self.source.store, tuple(places), new_name)
            self._equal = equal_names(ours, Listed(self.target.store, tuple(places.values()), str))
        known = self._equal
        yield from (pair for pair in pairs if pair[1] not in known) if len(known) else pairs

    def _prefixes(self) -> dict[str, str]:
        """Return prefixes of the source, none within another, with their new names."""
        pairs = {
            self._old.directory(self.source.path): self._new.directory(self.target.path),
            self._old.chunk_prefix(self.source.path): self._new.chunk_prefix(self.target.path),
        }
        return {
            old: new for old, new in pairs.items() if not any(old != other and old.startswith(other) for other in pairs)
        }

    def _keys(self, prefix: str) -> Iterator[str]:
        try:
            keys = self._listed(prefix)
            if holdings.is_asked(self.source.store):
                keys = (key for key in holdings.keys(self.source) if key.startswith(prefix))
            first = list(islice(keys, 1))
        except NOT_LISTED:
            asked = self._asked()
            if asked is None:
                raise
            return (key for key in asked if key.startswith(prefix))
        return chain(first, keys)

    def _listed(self, prefix: str) -> Iterator[str]:
        store = self.source.store
        if type(store).handle is not Store.handle or not answers_itself(store, verbs.list_sizes):
            yield from store.list_prefix(prefix)
            return
        for key, size in verbs.list_sizes(store, prefix):
            self.sizes.largest = max(self.sizes.largest, size)
            yield key

    def _asked(self) -> Iterator[str] | None:
        if self._unlisted is not None:
            return self._unlisted(self.source)
        found = detection.open_node(self.source)
        return holdings.possible(found.where, found.metadata) if isinstance(found.metadata, ArrayMetadata) else None


def in_turns(documents: Iterable[Pair], makers: tuple[str, ...]) -> Iterator[list[Pair]]:
    """Yield documents in the order in which they are written, as lists of those whose order does not matter.

    The deepest come first, and of each node the one that makes it a node (such a key ends like one of the `makers`)
    comes last.
    """

    def turn(pair: Pair) -> tuple[int, bool]:
        return -pair[0].count("/"), pair[0].endswith(makers)

    for _, level in groupby(sorted(documents, key=turn), turn):
        yield list(level)


def document_test(where: StorePath) -> Callable[[str], bool]:
    """Return a function that distinguishes documents from chunks by their keys."""
    home = where.home
    if home is not None:
        meta = home.directory(home.root)[:-1]
        return lambda key: key.startswith(meta)
    names = {name for dialect in dialects_at(where) for name in dialect.keyspace.documents("")}
    return lambda key: key.rpartition("/")[2] in names
