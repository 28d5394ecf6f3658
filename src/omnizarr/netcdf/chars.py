"""Text as arrays of characters, which netCDF has instead of strings of a fixed length.

Like netCDF4-python, with these differences. Text that does not fit raises an error and is never cut. Strings of
any number of dimensions and raw bytes become characters (netCDF4-python fails, or makes digits of them). A single
string becomes a vector.

Spec: netCDF4-python 1.7.5, ``chartostring``, ``stringtochar``, ``stringtoarr`` and ``Variable.set_auto_chartostring``.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import ShapeError, ValueTypeError

_RAW: Final = frozenset({"none", "None", "bytes"})
"""Names of encodings that leave bytes as they are."""


def chartostring(b: NDArray[Any], encoding: str | None = None) -> NDArray[Any]:
    r"""Return strings, each from the characters along the last dimension.

    Parameters
    ----------
    b : ndarray
        Single characters (``S1`` or ``U1``). If it is masked, the fill value counts as text.
    encoding : str, optional
        Encoding of the bytes. The default is ASCII. With ``"none"`` or ``"bytes"``, the result consists of bytes.

    Returns
    -------
    ndarray
        Strings ``U<n>`` or ``S<n>`` for a last dimension of length n, which is removed. NULs at the end are not
        part of a text.

    Raises
    ------
    ValueTypeError
        If the bytes are not text in this encoding, or `b` does not hold single characters.
    ShapeError
        If `b` has no dimension.

    Examples
    --------
    >>> chartostring(np.array([[b"a", b"b", b"\0"], [b"\xc3", b"\xa9", b"c"]]), "utf-8").tolist()
    ['ab', 'éc']
    """
    _check_text(b)
    if b.dtype.itemsize != (1 if b.dtype.kind == "S" else 4):
        raise ValueTypeError("these are no single characters", found=str(b.dtype), expected="S1 or U1")
    if not b.ndim:
        raise ShapeError("characters are turned into strings along a dimension", found="no dimension")
    if isinstance(b, np.ma.MaskedArray):
        b = b.filled()
    length, shape = b.shape[-1], b.shape[:-1]
    raw = encoding in _RAW
    if not b.size:
        return np.zeros(shape, f"{'S' if raw else 'U'}{length or 1}")
    if b.dtype.kind == "U":
        strings = np.ascontiguousarray(b).view(f"{b.dtype.byteorder}U{length}")[..., 0]
        return strings.astype(f"S{length}") if raw else strings
    text = b.tobytes()
    pieces = [text[start : start + length] for start in range(0, len(text), length)]
    if raw:
        return np.array(pieces, f"S{length}").reshape(shape)
    try:
        return np.array([each.decode(encoding or "ascii") for each in pieces], f"U{length}").reshape(shape)
    except (ValueError, LookupError) as error:
        raise ValueTypeError(
            f"the characters are not text: {error}", remedy="set _Encoding, or read them as they are"
        ) from error


def stringtochar(a: NDArray[Any], encoding: str | None = None, n_strlen: int | None = None) -> NDArray[Any]:
    r"""Return the bytes of strings along an additional last dimension.

    Parameters
    ----------
    a : ndarray
        Strings ``S<n>`` or ``U<n>``.
    encoding : str, optional
        Encoding of the result. The default is UTF-8 for ``U<n>``; the bytes of ``S<n>`` do not change.
    n_strlen : int, optional
        Number of bytes for each string. Shorter ones are padded with NULs. The default is ``a.itemsize``.

    Returns
    -------
    ndarray
        Characters ``S1``, with the shape ``(*a.shape, n_strlen)``.

    Raises
    ------
    ValueTypeError
        If `a` is not text, cannot be encoded, or is too long.

    Examples
    --------
    >>> stringtochar(np.array(["é", "b"]), n_strlen=2).tolist()
    [[b'\xc3', b'\xa9'], [b'b', b'']]
    """
    _check_text(a)
    a = _plain(a)
    length = a.dtype.itemsize if n_strlen is None else n_strlen
    texts = a.ravel().tolist()
    if encoding is None or encoding in _RAW:
        encoding = "utf-8"
    try:
        pieces = [each if isinstance(each, bytes) else each.encode(encoding) for each in texts]
    except (ValueError, LookupError) as error:
        raise ValueTypeError(f"the text has no form in the encoding: {error}", expected=encoding) from error
    longest = max(map(len, pieces), default=0)
    if longest > length:
        raise ValueTypeError(
            "the text is too long, and would be cut",
            found=f"{longest} bytes in {encoding}",
            expected=f"at most {length}",
            remedy="cut it before, or make the last dimension longer",
        )
    if not length:
        return np.zeros((*a.shape, 0), "S1")
    return np.array(pieces, f"S{length}").view("S1").reshape((*a.shape, length))


def stringtoarr(string: str | bytes, NUMCHARS: int, dtype: Literal["S", "U"] = "S") -> NDArray[Any]:  # noqa: N803
    """Return a text as a vector of its characters, padded with NULs.

    Raises
    ------
    ValueTypeError
        If the text is longer than `NUMCHARS`, or not ASCII with `dtype` ``"S"``, or for an unknown `dtype`.

    Examples
    --------
    >>> stringtoarr("ab", 3).tolist()
    [b'a', b'b', b'']
    """
    if dtype not in {"S", "U"}:
        raise ValueTypeError("characters are S or U", found=dtype)
    try:
        text = string.decode("ascii") if isinstance(string, bytes) and dtype == "U" else string
        text = text.encode("ascii") if isinstance(text, str) and dtype == "S" else text
    except UnicodeError as error:
        raise ValueTypeError(f"the text is not ASCII: {error}", remedy="use stringtochar") from error
    if len(text) > NUMCHARS:
        raise ValueTypeError("the text is too long", found=f"{len(text)} characters", expected=f"at most {NUMCHARS}")
    if not NUMCHARS:
        return np.zeros(0, f"{dtype}1")
    return np.array([text], f"{dtype}{NUMCHARS}").view(f"{dtype}1")


def for_writing(data: Any, encoding: str | None, length: int) -> NDArray[Any]:
    r"""Return the data assigned to a variable of characters as single bytes.

    Parameters
    ----------
    data : array_like
        Text. With an encoding, it becomes characters along an additional dimension, unless its type is ``S1``.
        Without an encoding, it must consist of single characters.
    encoding : str or None
        The attribute ``_Encoding`` of the variable.
    length : int
        Length of the variable's last dimension.

    Raises
    ------
    ValueTypeError
        If `data` is not text, does not fit, or cannot be encoded.

    Examples
    --------
    >>> for_writing("é", "utf-8", 3).tolist(), for_writing(["a", ""], None, 3).tolist()
    ([b'\xc3', b'\xa9', b''], [b'a', b''])
    """
    if isinstance(data, bytes):
        data = np.array(data, f"S{len(data) or 1}")
    array = data if isinstance(data, np.ndarray) else np.asarray(data)
    if array.dtype == object and all(isinstance(each, str) for each in array.flat):
        array = array.astype(str)
    if encoding is not None and array.dtype.kind in "SU" and array.dtype.itemsize > 1:
        return stringtochar(array, encoding, length)
    return as_characters(array)


def as_characters(data: Any) -> NDArray[Any]:
    """Return single characters as bytes, ``S1``; masked elements become NUL.

    Raises ValueTypeError for values that are not text, are longer, or are not ASCII.

    >>> as_characters(["a", ""]).tolist()
    [b'a', b'']
    """
    array = _plain(data)
    if array.dtype == np.dtype("S1"):
        return array
    _check_text(array)
    try:
        characters = array.astype("S")
    except UnicodeEncodeError as error:
        raise ValueTypeError(
            f"a character is one byte: {error}", remedy="set _Encoding, or use stringtochar"
        ) from error
    if array.size and int(np.strings.str_len(characters).max()) > 1:
        raise ValueTypeError(
            "a character is one byte", found=str(characters.dtype), remedy="set _Encoding, or use stringtochar"
        )
    return characters.astype("S1")


def as_objects(data: Any) -> NDArray[Any]:
    """Return strings as objects of type str. Bytes are decoded as UTF-8; masked elements become empty.

    Raises ValueTypeError for values that are not text.

    >>> as_objects([["é", b"b"]])
    array([['é', 'b']], dtype=object)
    """
    array = _plain(data, object)
    texts = np.empty(array.shape, object)
    for place, item in np.ndenumerate(array):
        try:
            text = item.decode() if isinstance(item, bytes) else item
        except UnicodeDecodeError as error:
            raise ValueTypeError(f"the bytes are not text: {error}", found=item, expected="UTF-8") from error
        if not isinstance(text, str):
            raise ValueTypeError("this is not text", found=text, expected="str")
        texts[place] = str(text)
    return texts


def as_utf8(strings: NDArray[Any]) -> NDArray[Any]:
    r"""Return strings with U+FFFD in place of invalid UTF-8; the same array if everything is valid.

    >>> as_utf8(np.array(["a", "b\udcff"], object)).tolist()
    ['a', 'b\ufffd']
    """
    texts = strings.ravel().tolist()
    if all(text.isascii() or _is_utf8(text) for text in texts):
        return strings
    changed = np.empty(strings.shape, object)
    changed.ravel()[:] = [text.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for text in texts]
    return changed


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(data: Any, dtype: Any = None) -> NDArray[Any]:
    """Return an array without a mask: masked elements become NUL or empty."""
    if not isinstance(data, np.ma.MaskedArray):
        return np.asarray(data, dtype)
    if data is np.ma.masked:
        return np.array("" if dtype is object else b"", dtype)
    if data.dtype != object:
        _check_text(data)
    return np.asarray(data.filled(b"" if data.dtype.kind == "S" else ""), dtype)


def _check_text(array: NDArray[Any]) -> None:
    if array.dtype.kind not in "SU":
        raise ValueTypeError("this is not text", found=str(array.dtype), expected="S or U")
