"""Values of pure functions, remembered.

Most hierarchies hold many nodes whose documents are equal or nearly so, and most are opened more than once: what was
made of one serves for the others. What is remembered is immutable, or handed out in copies, and says nothing of where a
node lies: neither stores nor chunks are kept.
"""

from __future__ import annotations

import marshal
import pickle
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

V = TypeVar("V")

_PROTOCOL: Final = 5
_WITHOUT_REFERENCES: Final = 2
# Of values that were made in memory; documents hold nothing that cannot be pickled.
_NO_QUESTION: Final = (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError)


def _as_plain(question: Any) -> bytes:
    return marshal.dumps(question, _WITHOUT_REFERENCES)


def _pickled(question: Any) -> bytes:
    return pickle.dumps(question, _PROTOCOL)


class Memo(Generic[V]):
    """The values of one function, by what it was asked.

    Two questions are the same if they pickle to the same bytes: 1, 1.0 and True are three questions, as are two arrays
    of other data types. Nothing is ever unpickled. To pickle, it matters whether equal values are one object or two;
    questions that are `plain` are the same also if they differ in that. Any number of threads may ask at once, and a
    process may fork meanwhile: there is no lock, so that at worst something is made twice.

    Parameters
    ----------
    most : int
        How many values are kept; one more, and all are forgotten.
    most_bytes : int
        How long a question may be whose answer is kept.
    plain : bool
        Questions are made of the types of JSON, tuples and bytes; the answer to others is not remembered.

    Examples
    --------
    >>> squares = Memo()
    >>> squares.get(3, lambda: print("made") or 9), squares.get(3, lambda: print("made") or 9)
    made
    (9, 9)
    """

    __slots__ = ("_encode", "_most", "_most_bytes", "_values")

    def __init__(self, most: int = 512, most_bytes: int = 4096, *, plain: bool = False) -> None:
        self._encode: Callable[[Any], bytes] = _as_plain if plain else _pickled
        self._most = most
        self._most_bytes = most_bytes
        self._values: dict[bytes, V] = {}

    def get(self, question: object, make: Callable[[], V], keep: Callable[[V], bool] | None = None) -> V:
        """Return what was made for the same question before, else what `make` returns.

        What `make` raises is not remembered, nor what `keep` says no to.
        """
        try:
            key = self._encode(question)
        except _NO_QUESTION:
            return make()
        values = self._values
        try:
            return values[key]
        except KeyError:
            pass
        value = make()
        if len(key) <= self._most_bytes and (keep is None or keep(value)):
            if len(values) >= self._most:
                values.clear()
            values[key] = value
        return value

    def __len__(self) -> int:
        return len(self._values)
