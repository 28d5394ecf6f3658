"""Where chunks lie that somebody asks for: the manifest of an array whose index is not read as a whole.

A set of references has millions of chunks, of which most are never asked for. So the native engine asks for those
chunks of a plan that it does not know yet, by key and by number, and keeps the answer: columns of offsets, lengths and
numbers of files. Opening an array and reading one chunk costs one look-up, whatever the number of chunks.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from omnizarr.errors import OmnizarrError
from omnizarr.stores import threads, verbs
from omnizarr.stores.access import Found
from omnizarr.stores.manifests.manifest import NOT_STORED, Seek
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from omnizarr.stores.access import Access, Opened
    from omnizarr.stores.base import Store
    from omnizarr.stores.manifests.file import File
else:
    np = Lazy("numpy")

ASK: Final = NOT_STORED - 2
"""The length of a chunk that the store must be asked for, as only it knows how, or what is wrong."""
WHOLE: Final = NOT_STORED - 4
"""The length of a chunk that is a whole file, of any size."""
_FEW: Final = 16
"""At most this number of chunks is looked up one by one, which takes less time then."""
_END: Final = 1 << 62
_UNSEEN: Final = -3
_ASKED: Final = -1
_ELSEWHERE: Final = -2


class Name(NamedTuple):
    """What a source calls a file."""

    url: str | None
    is_whole: bool
    """Whether the file is one chunk, and so may be replaced by another version."""


_NOWHERE: Final = Name(None, is_whole=False), _END, None
"""A chunk of which only the store can say what is wrong."""


class Columns(NamedTuple):
    """Where some chunks lie."""

    offsets: NDArray[np.uint64]
    lengths: NDArray[np.uint64]
    """Bytes; `NOT_STORED`, `ASK` or `WHOLE`."""
    files: NDArray[np.uint32]
    """Positions in `names`."""
    names: Sequence[Name]
    values: Mapping[int, bytes]
    """The bytes of chunks that lie in no file, by number. What the columns say of them means nothing."""


class Source(Protocol):
    """What knows where chunks lie."""

    def place(self, key: str) -> tuple[Name, int, int | None] | bytes | None:
        """Return where a chunk lies: file, offset, and length or None for a whole file. Or its bytes; None if missing.

        Raises OmnizarrError if only the store can tell what is wrong.
        """

    def columns(self, keys: Sequence[str], numbers: NDArray[np.uint64]) -> Columns:
        """Return where chunks lie, by key and by number in the C order of the grid."""

    def file(self, name: Name) -> File:
        """Return a file. Raises OmnizarrError if it may not be read."""


class Places:
    """What finds chunks of one array.

    All files are on this machine, or all behind one client. Otherwise the store is to be asked for each chunk.
    """

    is_index = False
    near = None

    def __init__(self, source: Source) -> None:
        self._source = source
        self._numbers: dict[Name, int] = {}
        self._files: list[File] = []
        self._way: tuple[Store, Access] | None = None

    def find(self, keys: Sequence[str], numbers: memoryview) -> Found | None:
        """Return where chunks lie; None if the store is to be asked for all of this array. Raises OmnizarrError.

        `numbers` has 64 bits for each chunk.
        """
        return self._few(keys, numbers) if len(keys) <= _FEW else self._many(keys, np.asarray(numbers))

    def _few(self, keys: Sequence[str], numbers: memoryview) -> Found | None:
        places = [self._place(key) for key in keys]
        known = self._numbers
        unseen = [each[0] for each in places if type(each) is tuple and each is not _NOWHERE and each[0] not in known]
        new, first = _New([], []), 0
        if unseen:
            with threads.lock((Places, id(self))):  # so that the numbers of new files follow one another
                first = len(self._files)
                if any(self._number(name, new) == _ELSEWHERE for name in unseen):
                    return None
        offsets, lengths, files = array("Q"), array("Q"), array("I")
        values: dict[int, bytes] = {}
        for place, number in zip(places, numbers, strict=True):
            offset, length, file = 0, NOT_STORED, 0
            if isinstance(place, bytes):
                values[number] = place
            elif place is not None:
                name, offset, size = place
                file = _ASKED if place is _NOWHERE else known[name]
                length = WHOLE if size is None else size
                if max(offset, size or 0) >= _END or file == _ASKED:
                    offset, length, file = 0, ASK, 0
            offsets.append(offset)
            lengths.append(length)
            files.append(file)
        return Found((offsets, lengths, files), values, first, new.near, new.far, self._way)

    def _place(self, key: str) -> tuple[Name, int, int | None] | bytes | None:
        try:
            return self._source.place(key)
        except OmnizarrError:
            return _NOWHERE

    def _many(self, keys: Sequence[str], numbers: NDArray[np.uint64]) -> Found | None:
        offsets, lengths, files, names, values = self._source.columns(keys, numbers)
        is_placed = (lengths != NOT_STORED) & (lengths != ASK)
        new = _New([], [])
        with threads.lock((Places, id(self))):
            first = len(self._files)
            table = np.zeros(max(1, len(names)), np.int64)
            for position in np.unique(files[is_placed]).tolist() if names else ():
                table[position] = number = self._number(names[position], new)
                if number == _ELSEWHERE:
                    return None
        found = table[files]
        lengths[is_placed & (found == _ASKED)] = ASK
        columns = offsets, lengths, np.maximum(found, 0).astype(np.uint32)
        return Found(columns, values, first, new.near, new.far, self._way)

    def _number(self, name: Name, new: _New) -> int:
        """Return the number of a file. `_ASKED`: the store is to be asked for its chunks; `_ELSEWHERE`: for all."""
        number = self._numbers.get(name)
        if number is None:
            number = self._described(name, new)
            if number != _ELSEWHERE:
                self._numbers[name] = number
        return number

    def _described(self, name: Name, new: _New) -> int:
        try:
            file = self._source.file(name)
            if file.is_local:
                status = file.recorded(is_fixed=not name.is_whole)
                if status is None:
                    return _ASKED
                if self._way is not None:
                    return _ELSEWHERE
                new.near.append((status, not name.is_whole))
            else:
                access = self._access(file.store)
                if access is None:
                    return _ELSEWHERE
                version = None if name.is_whole else file.known_version
                new.far.append((access.prefix + file.key, file.key, version))
        except OmnizarrError:  # which the store raises again
            return _ASKED
        self._files.append(file)
        return len(self._files) - 1

    def _access(self, store: Store) -> Access | None:
        """Return how the files of a store are reached; None if not as the others are."""
        if self._way is not None and self._way[0] is store:
            return self._way[1]
        access = verbs.access(store)
        if access is None or access.ignores_ranges:
            return None
        if self._way is None:
            if self._files:  # on this machine
                return None
            self._way = store, access
        return access if self._way[1].client == access.client else None

    def opened(self, versions: Sequence[tuple[int, tuple[int, str | None, str | None, int]]]) -> None:
        """Learn which versions of files have been read: the store reads the same."""
        for number, version in versions:
            self._files[number].adopt(*version)


class Sought:
    """What finds chunks of one array in a file by those parts of its index that lead to them.

    Parameters
    ----------
    seek : callable
        That of an `Index`.
    near : tuple or None
        What `File.status` says of the file.
    far : tuple of str, str, Opened, or None
        The file, if it is elsewhere.
    way : tuple of Store, Access, or None
        How it is reached.
    index : object, optional
        What of the native engine finds chunks in the file without this.
    """

    is_index = True

    def __init__(
        self,
        seek: Seek,
        near: tuple[str, int, int, int, int] | None,
        far: tuple[str, str, Opened] | None,
        way: tuple[Store, Access] | None,
        index: Any = None,
    ) -> None:
        self._seek, self.near = seek, index
        self._near = [] if near is None else [(near, True)]
        self._far = [] if far is None else [far]
        self._way = way

    def find(self, keys: Sequence[str], numbers: memoryview) -> Found | None:
        """Return where chunks lie; None if the whole index is better read. Raises OmnizarrError."""
        found = self._seek(numbers)
        if found is None:
            return None
        offsets, lengths = found
        columns = offsets, lengths, array("I", bytes(4 * len(offsets)))
        return Found(columns, {}, 0, self._near, self._far, self._way)

    def opened(self, versions: Sequence[tuple[int, tuple[int, str | None, str | None, int]]]) -> None:
        """Learn nothing: the version is known."""


class _New(NamedTuple):
    """Files that got a number."""

    near: list[tuple[tuple[str, int, int, int, int], bool]]
    far: list[tuple[str, str, Opened | None]]
