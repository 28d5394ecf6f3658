"""JSON values of any kind: in memory None, booleans, numbers, text, lists and dictionaries of Python.

What is written is read back with the same types, so values that JSON does not have are refused: NaN, infinities, names
that are not text. Stored text is read as strictly: a name that occurs twice and a number that is too large are errors.

Spec: zarr-extensions ``json`` (proposal 9); RFC 8259.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NoReturn

import numpy as np

from omnizarr.model import JSON
from omnizarr.model.datatypes.data_type import OfDtype, reject

NAME: Final = "json"
SPEC: Final = "zarr-extensions, json"
DEEPEST: Final = 128
"""Maximum depth of lists and objects, as in documents."""


class JsonValues(OfDtype):
    """JSON values. A scalar is the value, which its receiver may change."""

    __slots__ = ()
    has_null: ClassVar = True

    def element(self, item: Any) -> Any:
        """Return a copy of what a user assigns to an element."""
        return plain(item)

    def default(self) -> Any:
        """Return null."""
        return None

    def from_json(self, value: JSON, at: str) -> Any:
        """Return a copy of `value`."""
        return self.cast(value, at)

    def to_json(self, scalar: Any) -> JSON:
        """Return a copy of `scalar`."""
        return plain(scalar)  # type: ignore[no-any-return]

    def cast(self, value: Any, at: str) -> Any:
        """Return a copy of what a user passed."""
        try:
            return plain(value)
        except (TypeError, ValueError) as error:
            found = value if isinstance(value, int | float | str) else type(value).__name__
            raise reject(f"the fill value is not JSON: {error}", at, found, "a JSON value", spec=SPEC) from None


def plain(value: Any, depth: int = 0) -> Any:
    """Return a copy of a JSON value: tuples become lists, numbers of NumPy those of Python.

    Raises TypeError or ValueError for what JSON does not have.

    >>> plain({"a": (1, np.float32(0.5))})
    {'a': [1, 0.5]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        value.encode()  # not with half a pair of surrogates
        return str(value)
    if isinstance(value, int):
        str(value)  # Python prints no integer of more than 4300 digits
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"JSON has no {value}")
        return float(value)
    if not isinstance(value, Mapping | list | tuple):
        raise TypeError(f"JSON has no {type(value).__name__}")
    if depth >= DEEPEST:
        raise ValueError(f"more than {DEEPEST} levels of lists and objects")
    if not isinstance(value, Mapping):
        return [plain(item, depth + 1) for item in value]
    for name in value:
        if not isinstance(name, str):
            raise TypeError(f"JSON has no name {name!r:.50}: names are text")
    return {plain(name): plain(item, depth + 1) for name, item in value.items()}


def dumps(value: Any) -> bytes:
    """Return a value as text. Raises TypeError or ValueError for what JSON does not have.

    >>> dumps({"a": [1, "ü"]}).decode()
    '{"a":[1,"ü"]}'
    """
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def loads(data: bytes) -> Any:
    """Return the value of a text. Raises ValueError if it is not JSON.

    >>> loads(b'{"a": [1, true, null]}')
    {'a': [1, True, None]}
    """
    try:
        text = data.decode("utf-8")
        value = _DECODER.decode(text)
        return plain(value) if text.count("[") + text.count("{") > DEEPEST else value
    except RecursionError:
        raise ValueError(f"more than {DEEPEST} levels of lists and objects") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs more than once in one object")
    return found


def _refuse(token: str) -> NoReturn:
    raise ValueError(f"JSON has no {token}")


def _finite(token: str) -> float:
    number = float(token)
    if math.isinf(number):
        raise ValueError(f"the number {token:.50} is too large")
    return number


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refuse, parse_float=_finite)
