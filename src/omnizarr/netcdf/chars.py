"""Text as arrays of characters: what netCDF has instead of strings of a fixed length.

As in netCDF4-python, but for this: text that does not fit is refused, never cut; strings of any number of dimensions
and raw bytes become characters (netCDF4-python fails, or makes digits of them); and one string alone becomes a vector.

Spec: netCDF4-python 1.7.5, ``chartostring``, ``stringtochar``, ``stringtoarr`` and ``Variable.set_auto_chartostring``.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import ShapeError, ValueTypeError

_RAW: Final = frozenset({"none", "None", "bytes"})
"""Encodings that mean none: bytes stay bytes."""


def chartostring(b: NDArray[Any], encoding: str | None = None) -> NDArray[Any]:
    r"""Return strings made of the characters along the last dimension.

    Parameters
    ----------
    b : ndarray
        Of single characters (``S1`` or ``U1``). If it is masked, what fills it is text as well.
    encoding : str, optional
        Of the bytes: ASCII unless given. ``"none"`` or ``"bytes"``: the result is of bytes.

    Returns
    -------
    ndarray
        Of ``U<n>`` or ``S<n>`` for a last dimension of length n, which is gone. NULs at the end are no part of a text.

    Raises
    ------
    ValueTypeError
        If the bytes are no text in this encoding, or are no single characters.
    ShapeError
        If there is no dimension.

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
    except UnicodeDecodeError as error:
        raise ValueTypeError(
            f"the characters are no text: {error}", remedy="set _Encoding, or read them as they are"
        ) from error


def stringtochar(a: NDArray[Any], encoding: str | None = None, n_strlen: int | None = None) -> NDArray[Any]:
    r"""Return the bytes of strings along one more dimension, at the end.

    Parameters
    ----------
    a : ndarray
        Of ``S<n>`` or ``U<n>``.
    encoding : str, optional
        UTF-8 for ``U<n>``, and bytes as they are for ``S<n>``, unless given.
    n_strlen : int, optional
        How many bytes there are for each string, shorter ones followed by NULs: ``a.itemsize`` unless given.

    Returns
    -------
    ndarray
        Of ``S1``, with the shape ``(*a.shape, n_strlen)``.

    Raises
    ------
    ValueTypeError
        If it is no text, has no form in the encoding, or is too long.

    Examples
    --------
    >>> stringtochar(np.array(["é", "b"]), n_strlen=2).tolist()
    [[b'\xc3', b'\xa9'], [b'b', b'']]
    """
    _check_text(a)
    if isinstance(a, np.ma.MaskedArray):
        a = a.filled(b"" if a.dtype.kind == "S" else "")
    length = a.dtype.itemsize if n_strlen is None else n_strlen
    texts = a.ravel().tolist()
    if encoding is None or encoding in _RAW:
        encoding = "utf-8"
    try:
        pieces = [each if isinstance(each, bytes) else each.encode(encoding) for each in texts]
    except UnicodeEncodeError as error:
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
    """Return a text as a vector of its characters, followed by NULs.

    Raises
    ------
    ValueTypeError
        If it is longer than `NUMCHARS`, or not ASCII and `dtype` is ``"S"``; or for another `dtype`.

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


def encoded(data: Any, encoding: str, length: int) -> Any:
    r"""Return what is assigned to a variable of characters with the attribute ``_Encoding``: text as characters.

    Parameters
    ----------
    data : object
        A str, bytes, or anything that NumPy makes an array of.
    encoding : str
        The attribute.
    length : int
        Of the variable's last dimension.

    Returns
    -------
    object
        Characters with one more dimension; `data` itself if it holds single bytes, or no text.

    Raises
    ------
    ValueTypeError
        If the text does not fit, or has no form in the encoding.

    Examples
    --------
    >>> encoded("é", "utf-8", 3).tolist()
    [b'\xc3', b'\xa9', b'']
    """
    if isinstance(data, bytes):
        return stringtochar(np.array(data, f"S{len(data) or 1}"), encoding, length)
    array = data if isinstance(data, np.ndarray) else np.asarray(data)
    if array.dtype == object and array.size and all(isinstance(each, str) for each in array.flat):
        array = array.astype(str)
    if array.dtype.kind not in "SU" or array.dtype.itemsize == 1:
        return data
    return stringtochar(array, encoding, length)


def _check_text(array: NDArray[Any]) -> None:
    if array.dtype.kind not in "SU":
        raise ValueTypeError("this is no text", found=str(array.dtype), expected="S or U")
