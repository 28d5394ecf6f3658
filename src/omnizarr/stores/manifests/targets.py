"""Read-only stores whose values are parts of named files: sets of references, and repositories of Icechunk."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from omnizarr.errors import OmnizarrError, Remedy, StoreError
from omnizarr.stores import verbs
from omnizarr.stores.base import (
    Buffer,
    Buffers,
    Extent,
    Listing,
    Parts,
    Span,
    answers,
    as_prefix,
    bounds,
    check_key,
    fill,
    parts_of,
)
from omnizarr.stores.manifests.file import File
from omnizarr.stores.manifests.parts import ALL, PartStore, Wanted
from omnizarr.stores.manifests.places import Columns, Name, Places
from omnizarr.stores.ranges import Range

T = TypeVar("T")
Advice: TypeAlias = str | Remedy

_MOST_FILES: Final = 1 << 16


class Target(NamedTuple):
    """A part of a file, or all of it."""

    url: str | None
    """What the store calls the file. None: the one file that the set is about."""
    offset: int = 0
    length: int | None = None
    """None: the whole file."""


Reference: TypeAlias = bytes | Target
"""The value itself, or its place in a file."""


class References(Protocol):
    """A set of references."""

    def find(self, key: str) -> Reference | None:
        """Return the reference of `key`; None if it is not in the set. Raises StoreError for an invalid reference."""

    def columns(self, keys: Sequence[str], numbers: Any) -> Columns:
        """Return the references of chunks of one array as columns, by key and by number in the C order of the grid."""

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield all keys that begin with `prefix`, which is empty or ends with a slash."""

    def below(self, prefix: str) -> Listing:
        """Return the keys and prefixes directly under `prefix`."""


class TargetStore(PartStore):
    """A store of the values that a set of references names.

    A subclass has the set (`_set`), and says where files are.
    """

    _Place = Target
    _set: References
    _files: dict[str | None, File]
    _again: ClassVar[Advice]
    """What to do if a file is not what it was."""
    _lost: ClassVar[Advice]
    """What to do if a file is not there."""

    # -- what a subclass says ------------------------------------------------------------

    @abstractmethod
    def _made(self, url: str | None) -> File:
        """Return a file, as it is not known yet. Raises OmnizarrError if it may not be read."""

    @abstractmethod
    def _file_of(self, key: str, target: Target) -> str:
        """Return the absolute path or the URL of the file of a target."""

    @abstractmethod
    def _leads(self, target: Target) -> str:
        """Return the beginning of messages about a target, without secrets: what leads where."""

    def _is_fixed(self, target: Target) -> bool:
        """Return whether the file of a target must stay the same: not if it is one chunk."""
        return target.length is not None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_files": {}}  # what other processes find is theirs to record

    # -- reading ------------------------------------------------------------------

    def _find(self, key: str) -> Reference | None:
        check_key(key)
        try:
            return self._set.find(key)
        except OmnizarrError as error:
            raise error.add(store=repr(self), key=key)

    def _range(self, place: Target, span: Span) -> Range | None:
        if place.length is None:
            return None
        start, length = bounds(span, place.length)
        return Range(place.url, place.offset + start, place.offset + start + length)

    def _known_size(self, place: Target) -> int | None:
        return place.length

    def _parts(self, group: Sequence[Wanted], most: int | None) -> Buffers:
        first = group[0]
        if len(group) == 1:
            return self._read(first.key, first.found, [first.span], most)
        found = (self._range(each.found, each.span) for each in group)
        parts = [each for each in found if each is not None]
        start, stop = parts[0].start, parts[-1].stop
        around = Target(first.found.url, start, stop - start)
        return self._read(first.key, around, [(begin - start, end - start) for _, begin, end in parts])

    @answers(verbs.get_spans)
    def _get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Read several parts of the part of the file."""
        found = self._find(key)
        if not isinstance(found, Target):
            return None if found is None else parts_of(found, spans)
        return self._read(key, found, spans)

    def _read(self, key: str, target: Target, spans: Sequence[Span], most: int | None = None) -> Buffers:
        """Return parts of a target. Raises StoreError if it does not exist, or is too short.

        If the target is a whole file, it may have at most `most` bytes.
        """

        def read(file: File) -> Buffers | None:
            if target.length is not None:
                return file.pieces([_within(target, span) for span in spans])
            store, name = file.store, file.key
            if len(spans) != 1:
                return verbs.get_spans(store, name, spans)
            if spans[0] != ALL:
                part = store.get(name, spans[0])
            else:
                part = store.get(name) if most is None else verbs.get_within(store, name, most)
            return None if part is None else [part]

        parts = self._ask(key, target, read)
        if target.length is not None:
            for part, span in zip(parts, spans, strict=True):
                if len(part) != bounds(span, target.length)[1]:
                    raise self._too_short(key, target, len(part), bounds(span, target.length)[1])
            return Parts(parts, target.length)
        # For a whole file of unknown size, the size of the file counts; for a part of it, it does not.
        return parts if not target.offset else list(parts)

    @answers(verbs.read_into)
    def _read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        """Read from the file directly into `out`."""
        found = self._find(key)
        if not isinstance(found, Target):
            return None if found is None else fill(out, memoryview(found)[start:])
        if found.length is None:
            return self._ask(key, found, lambda file: verbs.read_into(file.store, file.key, out, start))
        size = max(0, found.length - start)
        room = out.cast("B")[:size]
        there = self._ask(key, found, lambda file: file.pieces_into(room, found.offset + start))
        if there < len(room):
            raise self._too_short(key, found, there, len(room))
        return size

    def _file(self, url: str | None) -> File:
        """Return a file, and what shows that it is the same. Raises what `_made` raises."""
        found = self._files.get(url)
        if found is None:
            if len(self._files) >= _MOST_FILES:
                self._files.clear()
            found = self._files.setdefault(url, self._made(url))
        return found

    def _ask(self, key: str, target: Target, ask: Callable[[File], T | None]) -> T:
        """Return what is asked of a file. Raises StoreError if that fails, or if the file does not exist."""
        try:
            answer = ask(self._file(target.url))
        except OmnizarrError as error:
            failure = type(error)(
                f"{self._leads(target)}, which cannot be read: {error.message}",
                store=repr(self),
                key=key,
                found=error.found,
                expected=error.expected,
                remedy=error.remedy,
            )
            raise failure from error
        if answer is None:
            raise StoreError(f"{self._leads(target)}, which is not there", store=repr(self), key=key, remedy=self._lost)
        return answer

    def _too_short(self, key: str, target: Target, found: int, expected: int) -> StoreError:
        return StoreError(
            f"{self._leads(target)}, which is too short: has the file changed?",
            store=repr(self),
            key=key,
            found=f"{found} bytes",
            expected=f"{expected} of the {target.length} from byte {target.offset} on",
            remedy=self._again,
        )

    def size(self, key: str) -> int | None:
        """Return the size that the reference states; only for whole files, ask for the size of the file."""
        found = self._find(key)
        if found is None or isinstance(found, bytes):
            return None if found is None else len(found)
        return self._ask(key, found, lambda file: file.store.size(file.key)) if found.length is None else found.length

    @answers(verbs.extents)
    def _extents(self, keys: Iterable[str]) -> Iterator[tuple[int, Extent | Buffer | None]]:
        """Return the references themselves: their files by absolute paths or URLs."""
        files: dict[str | None, str] = {}
        for position, key in enumerate(keys):
            found = self._find(key)
            if not isinstance(found, Target):
                yield position, found
                continue
            file = files.get(found.url)
            if file is None:
                file = files[found.url] = self._file_of(key, found)
            length = self.size(key) if found.length is None else found.length
            yield position, None if length is None else Extent(file, found.offset, length)

    @answers(verbs.places)
    def _places(self, prefix: str) -> Places:
        """Return what finds the references of an array for the native engine."""
        return Places(_Found(self))

    @answers(verbs.stamp)
    def _stamp(self, key: str) -> Hashable | None:
        """Return the stamp of the file, and the part of it."""
        found = self._find(key)
        return self._stamp_of(key, found) if isinstance(found, Target) else found

    def _stamp_of(self, key: str, found: Target) -> Hashable | None:
        stamp = self._ask(key, found, lambda file: (verbs.stamp(file.store, file.key),))[0]
        return None if stamp is None else (*found, stamp)

    # -- listing ------------------------------------------------------------------

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield every key under `prefix`."""
        return self._set.keys(as_prefix(prefix))

    def list_dir(self, prefix: str) -> Listing:
        """Return the keys and prefixes directly under `prefix`."""
        return self._set.below(as_prefix(prefix))


class _Found:
    """Where references lead, for the native engine."""

    def __init__(self, store: TargetStore) -> None:
        self._store = store

    def place(self, key: str) -> tuple[Name, int, int | None] | bytes | None:
        """Return one reference."""
        found = self._store._set.find(key)  # noqa: SLF001 - of this module
        if not isinstance(found, Target):
            return found
        is_fixed = self._store._is_fixed(found)  # noqa: SLF001 - of this module
        return Name(found.url, not is_fixed), found.offset, found.length

    def columns(self, keys: Sequence[str], numbers: Any) -> Columns:
        """Return references as columns."""
        return self._store._set.columns(keys, numbers)  # noqa: SLF001 - of this module

    def file(self, name: Name) -> File:
        """Return a file."""
        return self._store._file(name.url)  # noqa: SLF001 - of this module


def _within(target: Target, span: Span) -> Span:
    """Return the part of the file for a part of a target."""
    if target.length is None:
        return span
    start, length = bounds(span, target.length)
    return target.offset + start, target.offset + start + length
