"""Attributes and elements as JSON for the page."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import Function, OmnizarrError, Setting, StorageOption, in_python
from omnizarr.model.datatypes.optional import VALID, VALUE
from omnizarr.nodes.packing import Marks, Packing
from omnizarr.stores.redaction import redact
from omnizarr.support.text import text_of_time, visible

_LARGEST: Final = 2**53
"""Integers from this size on are not exact in browsers, which have only doubles."""
_MISSING: Final = "missing"
_DIGITS: Final = 15
"""Of a product, so that 0.1 of 3 is 0.3."""
_LONGEST: Final = 1000
"""Characters of an element."""


def plain(value: Any) -> Any:
    """Return a value as strict JSON that a browser reads without loss.

    NaN and infinities are the strings of Zarr v3, integers that a double does not hold are strings of digits.

    >>> plain({"a": (1.5, float("nan"), 2**60)})
    {'a': [1.5, 'NaN', '1152921504606846976']}
    """
    if isinstance(value, np.generic):
        return plain(value.item()) if value.dtype.kind in "biuf" else text_of(value)
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST else str(value)
    if isinstance(value, float):
        return (
            value
            if math.isfinite(value)
            else ("NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity")
        )
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [plain(item) for item in value]
    return text_of(value)


def json_text(value: Any) -> str:
    """Return strict JSON.

    >>> json_text([float("inf"), "é"])
    '["Infinity", "é"]'
    """
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)


def numbers(values: NDArray[Any]) -> list[Any]:
    """Return a vector of numbers; None for those that JSON cannot express.

    >>> numbers(np.array([0.1, np.nan], "f4"))
    [0.1, None]
    """
    if values.dtype.kind == "f":
        # The shortest number that is this one among its own kind: 0.1, not 0.10000000149011612.
        found = values.tolist() if values.dtype.itemsize == 8 else [float(each) for each in values.astype(str).tolist()]
        return [each if math.isfinite(each) else None for each in found]
    return [plain(each) for each in values.tolist()]


def texts(values: NDArray[Any]) -> Any:
    r"""Return elements as nested lists of text; of records each is a list, with a text for each field.

    >>> texts(np.array([[b"a", b"\xff"]])), texts(np.array([(1, 0.5)], "i4,f4"))
    ([['a', '\\xff']], [['1', '0.5']])
    """
    is_record = values.dtype.names is not None
    return nested([_record(each) if is_record else text_of(each) for each in values.reshape(-1)], values.shape)


def unpacked_texts(packing: Packing, stored: NDArray[Any]) -> Any:
    """Return what stored elements mean as nested lists of text, ``"missing"`` where they are missing or not valid.

    >>> unpacked_texts(Packing.of_json({"scale_factor": 0.1, "valid_min": 0}, np.dtype("i2")), np.array([3, -1], "i2"))
    ['0.3', 'missing']
    """
    if packing.is_trivial or stored.dtype.names is not None:
        return texts(stored)
    values, hidden = packing.decoded(stored)
    flat = values.reshape(-1)
    is_scaled = values.dtype != stored.dtype and values.dtype == np.float64
    found = [f"{each:.{_DIGITS}g}" if is_scaled else text_of(each) for each in flat]
    if hidden is not None:
        found = [_MISSING if is_hidden else text for text, is_hidden in zip(found, hidden.reshape(-1), strict=True)]
    return nested(found, values.shape)


def floats_of(records: NDArray[Any]) -> NDArray[np.float64]:
    """Return optional elements, as records of whether they are there and of their value, as numbers; NaN for none.

    >>> from omnizarr.model.datatypes.optional import dtype_of
    >>> floats_of(np.array([(True, 5), (False, 0)], dtype_of(np.dtype("u1")))).tolist()
    [5.0, nan]
    """
    return np.where(records[VALID], records[VALUE].astype(np.float64), np.nan)


def optional_texts(records: NDArray[Any]) -> Any:
    """Return optional elements as nested lists of text.

    >>> from omnizarr.model.datatypes.optional import dtype_of
    >>> optional_texts(np.array([(True, 5), (False, 0)], dtype_of(np.dtype("u1"))))
    ['5', 'missing']
    """
    values, valid = records[VALUE].reshape(-1), records[VALID].reshape(-1)
    found = [text_of(each) if is_there else _MISSING for each, is_there in zip(values, valid, strict=True)]
    return nested(found, records.shape)


def packing_facts(packing: Packing) -> dict[str, Any]:
    """Return what attributes mean for stored values, as the page needs it to draw these.

    It is ``kind``, of the integers that the bits mean, if these are others than those of the data type; ``missing``,
    ``low`` and ``high``, the missing values and the smallest and largest valid one, of that kind; and ``scale`` and
    ``offset``.
    """
    marks = (packing.viewed if packing.kind else packing.marks) or Marks()
    missing = [value for value in (*marks.missing, marks.fill) if value is not None and value.dtype.kind != "c"]
    return {
        "kind": packing.kind,
        "missing": list(dict.fromkeys(map(plain, missing))),
        "low": plain(marks.low),
        "high": plain(marks.high),
        "scale": 1.0 if packing.scale_factor is None else float(packing.scale_factor),
        "offset": 0.0 if packing.add_offset is None else float(packing.add_offset),
    }


def nested(flat: Sequence[Any], shape: Sequence[int]) -> Any:
    """Return the items of a list, in C order, as nested lists of a shape.

    >>> nested([1, 2, 3, 4], (2, 2)), nested([7], ()), nested([], (2, 0))
    ([[1, 2], [3, 4]], 7, [[], []])
    """
    if not flat:
        return np.empty(shape, np.bool_).tolist()
    if not shape:
        return flat[0]
    for length in reversed(shape[1:]):
        flat = [list(flat[at : at + length]) for at in range(0, len(flat), length)]
    return list(flat)


def _record(element: np.void) -> list[str]:
    return [text_of(element[name]) for name in element.dtype.names or ()]


def text_of(value: Any) -> str:
    r"""Return one element as text, cut where it is very long.

    >>> text_of(np.float32(0.1)), text_of(np.datetime64("2020-01-01")), text_of(1 - 2j), text_of(b"\x00a")
    ('0.1', '2020-01-01', '1-2j', '\\x00a')
    """
    text = _text(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        text = value[:_LONGEST].decode("utf-8", "backslashreplace")
        return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
    if isinstance(value, np.void) and value.dtype.names is None:
        return value.tobytes().hex(" ")
    if isinstance(value, complex | np.complexfloating):
        return str(value).strip("()")
    if isinstance(value, np.ndarray | np.void):
        return _joined(map(_text, value.reshape(-1)[:_LONGEST] if isinstance(value, np.ndarray) else value.item()))
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=str)
    return "" if value is None else text_of_time(value) if isinstance(value, np.datetime64) else str(value)


def _joined(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"


def words(error: Exception) -> str:
    """Return an error as the page shows it, which takes no keywords: without remedies that name one, and secrets."""
    return visible(redact(error.worded(_word) if isinstance(error, OmnizarrError) else str(error)))


def _word(name: str, value: Any) -> str | None:
    return in_python(name, value) if isinstance(value, Function | Setting | StorageOption) else None
