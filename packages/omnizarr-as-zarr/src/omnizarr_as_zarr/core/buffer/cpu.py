"""Bytes and arrays in the memory of this machine."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike as _AnyArrayLike
from numpy.typing import NDArray


@runtime_checkable
class ArrayLike(Protocol):
    """The content of a `Buffer`: an array of one dimension."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the elements."""

    @property
    def size(self) -> int:
        """Number of elements."""


@runtime_checkable
class NDArrayLike(ArrayLike, Protocol):
    """The result of reading an array: an array of any number of dimensions."""

    @property
    def ndim(self) -> int:
        """Number of dimensions."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each dimension."""

    def __len__(self) -> int: ...

    def __getitem__(self, key: slice, /) -> Any: ...


NDArrayLikeOrScalar: TypeAlias = NDArrayLike | np.generic


class Buffer:
    """Bytes.

    Parameters
    ----------
    array_like : numpy.ndarray
        One dimension of bytes.

    Examples
    --------
    >>> buffer = Buffer.from_bytes(b"zarr")
    >>> len(buffer), buffer[:2].to_bytes(), (buffer + b"!").to_bytes()
    (4, b'za', b'zarr!')
    """

    def __init__(self, array_like: Any) -> None:
        if getattr(array_like, "ndim", 1) != 1 or np.dtype(getattr(array_like, "dtype", "uint8")).itemsize != 1:
            raise ValueError("array_like: expected one dimension of bytes")
        self._data: NDArray[np.uint8] = np.asarray(array_like).view(np.uint8)

    @classmethod
    def create_zero_length(cls) -> Self:
        """Return no bytes."""
        return cls(np.empty(0, np.uint8))

    @classmethod
    def from_array_like(cls, array_like: Any) -> Self:
        """Return the bytes of an array of bytes."""
        return cls(array_like)

    @classmethod
    def from_buffer(cls, buffer: Buffer) -> Self:
        """Return the bytes of another one."""
        return cls(buffer.as_array_like())

    @classmethod
    def from_bytes(cls, bytes_like: Any) -> Self:
        """Return bytes, a bytearray or a memoryview as a buffer, without a copy."""
        return cls(np.frombuffer(bytes_like, np.uint8))

    def as_array_like(self) -> Any:
        """Return the bytes as an array."""
        return self._data

    def as_numpy_array(self) -> NDArray[np.uint8]:
        """Return the bytes as an array."""
        return self._data

    def as_buffer_like(self) -> memoryview:
        """Return the bytes as a memoryview."""
        return self._data.data

    def to_bytes(self) -> bytes:
        """Return a copy of the bytes."""
        return self._data.tobytes()

    def combine(self, others: Any) -> Self:
        """Return these bytes with those of others behind them."""
        return type(self)(np.concatenate([self._data, *(other.as_numpy_array() for other in others)]))

    def __getitem__(self, key: slice) -> Self:
        if not isinstance(key, slice):
            raise TypeError(f"Item or scalar access is not supported: {key!r} is not a slice")
        return type(self)(self._data[key])

    def __setitem__(self, key: slice, value: Any) -> None:
        self._data[key] = value.as_numpy_array() if isinstance(value, Buffer) else value

    def __len__(self) -> int:
        return self._data.size

    def __add__(self, other: Any) -> Self:
        return self.combine([other if isinstance(other, Buffer) else type(self).from_bytes(other)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Buffer) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Buffer of {len(self)} bytes>"


class NDBuffer:
    """An array.

    Parameters
    ----------
    array : numpy.ndarray
    """

    def __init__(self, array: Any) -> None:
        self._data: NDArray[Any] = array

    @classmethod
    def create(cls, *, shape: Any, dtype: Any, order: Any = "C", fill_value: Any | None = None) -> Self:
        """Return a new array, of zeros or of `fill_value`."""
        if fill_value is None:
            return cls(np.zeros(tuple(shape), dtype, order))
        return cls(np.full(tuple(shape), fill_value, dtype, order))

    @classmethod
    def empty(cls, shape: Any, dtype: Any, order: Any = "C") -> Self:
        """Return a new array whose elements are not set."""
        return cls(np.empty(tuple(shape), dtype, order))

    @classmethod
    def from_ndarray_like(cls, ndarray_like: Any) -> Self:
        """Return an array unchanged."""
        return cls(ndarray_like)

    @classmethod
    def from_numpy_array(cls, array_like: _AnyArrayLike) -> Self:
        """Return an array unchanged."""
        return cls(np.asarray(array_like))

    def as_ndarray_like(self) -> NDArray[Any]:
        """Return the array."""
        return self._data

    def as_numpy_array(self) -> NDArray[Any]:
        """Return the array."""
        return self._data

    def as_scalar(self) -> Any:
        """Return the one element."""
        if self._data.size != 1:
            raise ValueError("Buffer does not contain a single scalar value")
        return self._data[()]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the elements."""
        return self._data.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each dimension."""
        return self._data.shape

    @property
    def byteorder(self) -> str:
        """Byte order of the elements."""
        return {"<": "little", ">": "big"}.get(self._data.dtype.newbyteorder("=").byteorder, "little")

    def __getitem__(self, key: Any) -> Self:
        return type(self)(np.asanyarray(self._data[key]))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._data[key] = value.as_ndarray_like() if isinstance(value, NDBuffer) else value

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        return f"<NDBuffer shape={self.shape} dtype={self.dtype}>"


class BufferPrototype(NamedTuple):
    """The classes of buffers for bytes and for arrays."""

    buffer: type[Buffer]
    nd_buffer: type[NDBuffer]


buffer_prototype = BufferPrototype(Buffer, NDBuffer)


def default_buffer_prototype() -> BufferPrototype:
    """Return the classes of buffers for bytes and for arrays."""
    return buffer_prototype


def numpy_buffer_prototype() -> BufferPrototype:
    """Return the classes of buffers for bytes and for arrays."""
    return buffer_prototype
