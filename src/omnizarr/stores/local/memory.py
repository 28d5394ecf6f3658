"""Values in the memory of this process."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, NoReturn

from omnizarr.errors import ReadOnlyError
from omnizarr.stores import threads, verbs
from omnizarr.stores.base import (
    Buffer,
    Features,
    Identity,
    Listing,
    Span,
    Store,
    answers,
    as_prefix,
    check_key,
    cut,
    fill,
    is_key,
    listing,
)
from omnizarr.stores.urls import parse

if TYPE_CHECKING:
    from omnizarr.stores.kinds import Place

_PLAIN: Final = frozenset({dict, OrderedDict, defaultdict})
"""Mappings that hold exactly what they list."""

_OF_MAPPING: Final = Features(exclusion="lock")
_OF_DICTIONARY: Final = Features(exclusion="lock", listing="complete")


class MemoryStore(Store):
    """A store in a dictionary.

    Parameters
    ----------
    store_dict : mapping of str to bytes, optional
        The mapping that holds the values. It is shared, not copied. The default is a new dictionary. Only a mutable
        one can be written.
    read_only : bool, default False
        Whether to refuse to write.

    Notes
    -----
    Stores for the same mapping see the same values and exclude each other in `lock`. Pickling copies the values. Two
    stores are equal while their values are.

    Examples
    --------
    >>> values = {}
    >>> store = MemoryStore(values)
    >>> store.set("c/0", b"abc")
    >>> values, store.get("c/1")
    ({'c/0': b'abc'}, None)
    """

    def __init__(
        self, store_dict: MutableMapping[str, Buffer] | Mapping[str, Buffer] | None = None, *, read_only: bool = False
    ) -> None:
        self._values: Any = {} if store_dict is None else store_dict
        self.read_only = read_only
        if not (read_only or isinstance(self._values, MutableMapping)):
            self._refuse()

    @property
    def store_dict(self) -> MutableMapping[str, Buffer]:
        """The mapping that holds the values."""
        values: MutableMapping[str, Buffer] = self._values
        return values

    @property
    def features(self) -> Features:
        """Locks exclude all other writers. A mapping that is no plain dictionary may make values when it is asked."""
        return _OF_DICTIONARY if type(self._values) in _PLAIN else _OF_MAPPING

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return the value, not a copy of it."""
        check_key(key)
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, bytes):  # a dictionary of the user may hold arrays
            value = memoryview(value).cast("B")
        return value if span is None else cut(value, span)

    @answers(verbs.read_into)
    def _read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        """Copy from the value directly into `out`."""
        value = self.get(key)
        return None if value is None else fill(out, memoryview(value)[start:])

    @answers(verbs.has_any)
    def _has_any(self, prefix: str, names: Iterable[str]) -> bool:
        """Look the keys up."""
        prefix = as_prefix(prefix)
        return any(self.exists(prefix + name) for name in names)

    def exists(self, key: str) -> bool:
        """Look the key up."""
        check_key(key)
        return key in self._values

    @answers(verbs.stamp)
    def _stamp(self, key: str) -> Hashable | None:
        """Return the identity of the value; None if the value could change, as values set by others can."""
        check_key(key)
        value = self._values.get(key)
        return Identity(value) if type(value) is bytes else None

    def set(self, key: str, value: Buffer) -> None:
        """Store `value`, or a copy of it if it could still change."""
        self.check_writable()
        check_key(key)
        self._values[key] = value if type(value) is bytes else memoryview(value).tobytes()

    @answers(verbs.set_if_absent)
    def _set_if_absent(self, key: str, value: Buffer) -> bool:
        """Set `key` in one operation of the dictionary, which a plain `set` cannot interrupt."""
        self.check_writable()
        check_key(key)
        if type(self._values) is not dict or len(value) < 2:  # empty bytes and single bytes are shared objects
            return verbs.set_if_absent.default(self, key, value)
        new = bytes(bytearray(value))  # an object of our own, to distinguish it from an equal value that existed
        return self._values.setdefault(key, new) is new

    def delete(self, key: str) -> None:
        """Drop the key."""
        self.check_writable()
        check_key(key)
        self._values.pop(key, None)

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Lock the key of this mapping, also for other stores of the mapping."""
        self.check_writable()
        check_key(key)
        # The lock keeps the mapping alive, so its id is not reused meanwhile.
        return threads.lock((id(self._values), key))

    def origin(self) -> tuple[Hashable, str]:
        """Return the identity of the mapping."""
        return ("mapping", id(self._values)), ""

    def with_read_only(self, read_only: bool = True) -> Store:  # noqa: FBT001, FBT002 - as in `Store`
        """Return a read-only store for the same mapping, or (False) a writable one."""
        if not (read_only or isinstance(self._values, MutableMapping)):
            self._refuse()
        return super().with_read_only(read_only)

    def _refuse(self) -> NoReturn:
        raise ReadOnlyError(
            "the mapping cannot be changed",
            store=repr(self),
            found=type(self._values).__name__,
            remedy="give a dict, which can be changed",
        )

    def list(self) -> Iterator[str]:
        """Yield the current keys. Other entries of a user's dictionary are skipped."""
        return (key for key in list(self._values) if isinstance(key, str) and is_key(key))

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield the current keys under `prefix`."""
        prefix = as_prefix(prefix)
        return (key for key in list(self._values) if isinstance(key, str) and key.startswith(prefix) and is_key(key))

    def list_dir(self, prefix: str) -> Listing:
        """Look at all names."""
        prefix = as_prefix(prefix)
        names = (name for name in list(self._values) if isinstance(name, str) and name.startswith(prefix))
        return listing(names, prefix)

    def __eq__(self, other: object) -> bool:
        """Return whether both hold equal values, as with zarr-python's: so does a copy that was pickled."""
        if not isinstance(other, MemoryStore) or self.read_only != other.read_only:
            return False
        return self._values is other._values or self._contents() == other._contents()

    def __hash__(self) -> int:
        return hash(MemoryStore)  # values change

    def _contents(self) -> dict[str, Buffer | None]:
        return {key: self.get(key) for key in self.list()}

    def __repr__(self) -> str:
        return f"MemoryStore(<{len(self._values)} keys at {id(self._values):#x}>)"


# The stores of `memory://name`. They last as long as the process, because the name can be used again at any time.
_named: dict[str, dict[str, Buffer]] = {}


def open_place(place: Place) -> tuple[Store, str]:
    """Return the store of ``memory://name/path``, and the path."""
    place.refuse_options()
    parts = parse.urlsplit(place.text)
    path = as_prefix(parse.unquote(parts.path).strip("/")).removesuffix("/")
    if place.mode in ("r", "r+"):  # looking must not create anything
        return MemoryStore(_named.get(parts.netloc, {}), read_only=place.read_only), path
    return MemoryStore(_named.setdefault(parts.netloc, {})), path
