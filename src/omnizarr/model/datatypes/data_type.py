"""Data types: a name, a NumPy dtype, and the meaning of fill values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np

from omnizarr.errors import MetadataError
from omnizarr.model import JSON, Named
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import base64
else:
    base64 = Lazy("base64")

AnyDType: TypeAlias = np.dtype[Any]
ByteOrder: TypeAlias = Literal["<", ">"]

FILL_VALUE = "/fill_value"
SPEC = 'Zarr v3 core, "fill_value"'


class Scalars(Protocol):
    """The values of one data type: their dtype in memory and their forms in documents.

    `at` is the JSON pointer of the value, for errors. Types can have two more members: ``has_null`` (see
    `DataType.has_null`), and of types whose elements are Python objects, ``element``, which returns one that a user
    assigns as codecs need it, or raises TypeError or ValueError.
    """

    @property
    def dtype(self) -> AnyDType:
        """NumPy dtype in memory."""

    def default(self) -> Any:
        """Return the zero of the type."""

    def from_json(self, value: JSON, at: str) -> Any:
        """Return the scalar for `value`."""

    def to_json(self, scalar: Any) -> JSON:
        """Return the canonical v3 form of `scalar`."""

    def cast(self, value: Any, at: str) -> Any:
        """Return the scalar for what a user passed."""


@dataclass(frozen=True, slots=True)
class OfDtype:
    """The dtype of scalars, for most types the only field. These types need not be dataclasses again."""

    dtype: AnyDType


@dataclass(frozen=True, slots=True, eq=False)
class DataType:
    """A bound data type, which can be used in memory.

    Two are equal if they have the same name, configuration and NumPy dtype. `bind` and `parse` create them.

    Parameters
    ----------
    named : Named
        The name and configuration in documents.
    byte_order : {"<", ">"}
        The requested byte order. It has no effect on types without one.
    scalars : Scalars
        The meaning of its values.

    Examples
    --------
    >>> from omnizarr.model.datatypes import bind
    >>> from omnizarr.model import Named
    >>> float32 = bind(Named("float32"), byte_order=">")
    >>> float32.dtype
    dtype('>f4')
    >>> float32.fill_from_json("0x7fc00000")
    np.float32(nan)
    >>> float32.fill_to_json(float("inf"))
    'Infinity'
    """

    named: Named
    byte_order: ByteOrder
    scalars: Scalars
    rebind: Callable[[Named, ByteOrder], DataType]

    @property
    def dtype(self) -> AnyDType:
        """NumPy dtype in memory, byte order applied."""
        return self.scalars.dtype

    @property
    def is_fixed_size(self) -> bool:
        """Whether every value takes the same number of bytes (False: strings, bytes, objects)."""
        return not self.dtype.hasobject and self.dtype.kind != "T"

    @property
    def is_optional(self) -> bool:
        """Whether a value may be missing: elements are records with a mask, and null is a fill value."""
        return self.named.name in ("optional", "zarrs.optional")

    @property
    def has_null(self) -> bool:
        """Whether null is a value: as a fill value it is what it says, and not "the default"."""
        return getattr(self.scalars, "has_null", False)

    @property
    def has_byte_order(self) -> bool:
        """Whether the stored bytes of a value depend on the byte order."""
        return _has_byte_order(self.dtype)

    @property
    def default_fill_value(self) -> Any:
        """The zero of the type, as a scalar."""
        return self.scalars.default()

    def fill_from_json(self, value: JSON) -> Any:
        """Return the scalar for a document's `value`; null means the default.

        Raises
        ------
        MetadataError
            If `value` is not a fill value of this type; the pointer starts at ``/fill_value``.
        """
        return self.scalars.default() if value is None else self.scalars.from_json(value, FILL_VALUE)

    def fill_to_json(self, scalar: Any) -> JSON:
        """Return the canonical v3 form of a value, with every bit kept.

        Raises
        ------
        MetadataError
            If `scalar` is not a value of this type.
        """
        return self.scalars.to_json(self.cast(scalar))

    def cast(self, value: Any) -> Any:
        """Return the scalar for what a user passed; None means the default.

        Raises
        ------
        MetadataError
            If the type has no such value: it is out of range, too long, or of another kind.
        """
        if isinstance(value, np.ndarray) and value.ndim == 0 and not self.dtype.hasobject:
            value = value[()]
        return self.scalars.default() if value is None else self.scalars.cast(value, FILL_VALUE)

    def with_byte_order(self, byte_order: ByteOrder) -> DataType:
        """Return this type in another byte order. Fields with their own order keep it."""
        return self if byte_order == self.byte_order else self.rebind(self.named, byte_order)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DataType):
            return NotImplemented
        return self.named == other.named and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self.named.name, self.dtype))

    def __repr__(self) -> str:
        configuration = f", {dict(self.named.configuration)}" if self.named.configuration else ""
        return f"DataType({self.named.name!r}{configuration}, dtype={self.dtype})"


def _has_byte_order(dtype: AnyDType) -> bool:
    # Comparing with dtype.newbyteorder() is not enough: types of ml_dtypes differ even if they have one byte.
    if dtype.fields is not None:
        return any(_has_byte_order(field[0].base) for field in dtype.fields.values())
    kinds = "VWf" if dtype.type.__module__ == "ml_dtypes" else "iufcMmU"
    return dtype.kind in kinds and dtype.itemsize > 1


def reject(message: str, at: str, found: object, expected: object, *, spec: str | None = SPEC) -> MetadataError:
    """Return the error for a value that does not have this type."""
    return MetadataError(message, pointer=at, found=_printable(found), expected=expected, spec=spec)


def _printable(found: object) -> object:
    """Return `found`, or a description if an error message cannot show it."""
    if found is None or (isinstance(found, str) and not found):
        return "null" if found is None else "an empty string"
    try:
        repr(found)
    except ValueError:  # Python prints no integer of more than 4300 digits.
        return "an integer of very many digits"
    return found


def scalar_of(data: bytes, dtype: AnyDType) -> Any:
    """Return the scalar of `dtype` with the bytes `data`. No bit changes, not even in a NaN."""
    return np.frombuffer(data, dtype, count=1)[0]


def bytes_of(scalar: Any, dtype: AnyDType) -> bytes:
    """Return the bytes of `scalar` as an element of `dtype`."""
    if dtype.kind in "Mm" and isinstance(scalar, np.generic):
        # NumPy (2.4) does not swap the bytes of times without a unit.
        return np.asarray(scalar).view(np.int64).astype(f"{dtype.str[0]}i8").tobytes()
    return np.asarray(scalar, dtype).tobytes()


def bytes_from_base64(value: str, at: str) -> bytes:
    """Return the bytes of base64 text (standard alphabet)."""
    try:
        return base64.b64decode(value.encode("ascii"), validate=True)
    except ValueError:  # `binascii.Error` and `UnicodeEncodeError` are ValueErrors
        raise reject("the fill value is not base64", at, value, "base64 in the standard alphabet") from None


def bytes_to_base64(data: bytes) -> str:
    """Return `data` as base64 text (standard alphabet)."""
    return base64.b64encode(data).decode("ascii")


def is_blank(value: Any) -> bool:
    """Whether `value` is what writers use for "nothing": ``""``, or 0, zarr 2's default for every type."""
    return isinstance(value, str | int | float | np.number) and value in ("", 0) and not isinstance(value, bool)
