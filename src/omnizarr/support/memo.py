"""Remembered results of pure functions.

Most hierarchies hold many nodes whose documents are equal or nearly equal, and most are opened more than once. So
what was computed for one node is used for others. Results are immutable, or returned as copies. They do not
depend on where a node is: neither stores nor chunks are kept.

One rule for all tables: a result is found by the value of a question (`Memo`), or by the objects that it was made of
(`ById`). A table holds a few hundred results; when it is full, all are dropped. There is no lock.
"""

from __future__ import annotations

import marshal
import pickle
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_PROTOCOL: Final = 5
_OWN_WEIGHT: Final = 200  # of a key and its entry
_WITHOUT_REFERENCES: Final = 2
# For objects created in memory. Documents hold only values that can be pickled.
_NO_QUESTION: Final = (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError)


def _as_plain(question: Any) -> bytes:
    return marshal.dumps(question, _WITHOUT_REFERENCES)


def _pickled(question: Any) -> bytes:
    return pickle.dumps(question, _PROTOCOL)


class Memo(Generic[V]):
    """The results of one function by its arguments.

    Two questions are equal if they pickle to the same bytes. 1, 1.0 and True are three different questions, and
    so are two arrays of different data types. Nothing is ever unpickled. Pickling distinguishes one object used
    twice from two equal objects; with `plain`, this makes no difference. Threads may ask at the same time, and a
    process may fork meanwhile: there is no lock, so at worst a result is computed twice.

    Parameters
    ----------
    most : int
        Maximum number of results. When there would be more, all are dropped.
    most_bytes : int
        Maximum length of a pickled question.
    plain : bool
        Whether questions consist of JSON types, tuples and bytes. Results for others are not remembered.
    exact : bool
        Whether questions can be hashed, and are equal only if the results are. `most_bytes` does not apply.

    Examples
    --------
    >>> squares = Memo()
    >>> squares.get(3, lambda: print("made") or 9), squares.get(3, lambda: print("made") or 9)
    made
    (9, 9)
    """

    __slots__ = ("_encode", "_most", "_most_bytes", "_values")

    def __init__(self, most: int = 512, most_bytes: int = 4096, *, plain: bool = False, exact: bool = False) -> None:
        self._encode: Callable[[Any], Any] | None = None if exact else _as_plain if plain else _pickled
        self._most = most
        self._most_bytes = most_bytes
        self._values: dict[Any, V] = {}

    def get(self, question: object, make: Callable[[], V], keep: Callable[[V], bool] | None = None) -> V:
        """Return the remembered result for a question, otherwise what `make` returns.

        Errors raised by `make`, and results for which `keep` returns False, are not remembered.
        """
        try:
            key: Any = question if self._encode is None else self._encode(question)
        except _NO_QUESTION:
            return make()
        values = self._values
        try:
            return values[key]
        except KeyError:
            pass
        value = make()
        if (self._encode is None or len(key) <= self._most_bytes) and (keep is None or keep(value)):
            if len(values) >= self._most:
                values.clear()
            values[key] = value
        return value

    def put(self, question: object, value: V) -> None:
        """Remember the result for a question."""
        if len(self._values) >= self._most:
            self._values.clear()
        self._values[question if self._encode is None else self._encode(question)] = value

    def known(self, question: object) -> V | None:
        """Return the remembered result for a question; None if there is none."""
        return self._values.get(question if self._encode is None else self._encode(question))

    def __len__(self) -> int:
        return len(self._values)


class ById(Generic[K, V]):
    """The results of one function by the object that it was asked about, which is not hashed, but kept.

    Parameters
    ----------
    most : int
        Maximum number of results. When there would be more, all are dropped.

    Examples
    --------
    >>> lengths = ById()
    >>> text = "abc"
    >>> lengths.put(text, 3)
    >>> lengths.get(text), lengths.get("".join("abc"))
    (3, None)
    """

    __slots__ = ("_most", "_values")

    def __init__(self, most: int = 512) -> None:
        self._most = most
        self._values: dict[int, tuple[K, V]] = {}

    def get(self, about: K) -> V | None:
        """Return the result for this very object; None if there is none."""
        kept = self._values.get(id(about))
        return kept[1] if kept is not None and kept[0] is about else None

    def put(self, about: K, value: V) -> None:
        """Keep a result, and the object, so that its id stays its own."""
        if len(self._values) >= self._most:
            self._values.clear()
        self._values[id(about)] = about, value

    def __len__(self) -> int:
        return len(self._values)


class Weighed(Generic[V]):
    """Values by a key that can be hashed, as long as they weigh no more than allowed together.

    When there would be more, all are dropped. There is no lock: at worst, a value is made twice.

    Parameters
    ----------
    most : int
        The maximum of all weights. A value that weighs more than half of it is not kept.

    Examples
    --------
    >>> kept = Weighed(1000)
    >>> kept.put("a", 1, 30)
    >>> kept.put("b", 2, 900)
    >>> kept.get("a"), kept.get("b")
    (1, None)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 0
        self._kept: dict[Any, V] = {}

    def get(self, key: Any) -> V | None:
        """Return the value of a key; None if it is not kept."""
        return self._kept.get(key)

    def put(self, key: Any, value: V, weight: int) -> None:
        """Keep a value."""
        weight += _OWN_WEIGHT
        if weight > self._most // 2:
            return
        if self._weight + weight > self._most:
            self._kept = {}
            self._weight = 0
        self._kept[key] = value
        self._weight += weight
