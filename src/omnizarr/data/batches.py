"""The memory of batches, which is used again when no array uses it any more, and batches for other libraries."""

from __future__ import annotations

import math
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

import numpy as np

from omnizarr.errors import MissingDependencyError, SettingError
from omnizarr.support.locks import RLock

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

LIBRARIES: Final = ("numpy", "torch", "jax", "cupy")


class _Lease:
    """Memory that an array borrows. NumPy keeps it as long as any view of that array."""

    __slots__ = ("__array_interface__", "__weakref__", "_memory")

    def __init__(self, memory: NDArray[np.uint8], nbytes: int) -> None:
        self._memory = memory
        self.__array_interface__ = {**memory.__array_interface__, "shape": (nbytes,)}


class _Loan(ref[_Lease]):
    """Puts itself into a list when its lease ends: in one call into C, so that no Ctrl-C is lost there."""

    __slots__ = ("memory",)

    memory: NDArray[np.uint8]


class Memory:
    """Arrays of one shape and data type, in memory that is used again when the array, and all views of it, are gone.

    Parameters
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    most : int
        Pieces of memory that wait to be used again.
    new : callable, optional
        Makes memory of a number of bytes.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        most: int,
        new: Callable[[int], NDArray[np.uint8]] | None = None,
    ) -> None:
        self._shape = shape
        self._dtype = dtype
        self._most = most
        self._nbytes = math.prod(shape) * dtype.itemsize
        self._new = new or _new
        self._free: list[_Loan] = []
        self._lent: dict[int, _Loan] = {}

    def take(self, length: int) -> NDArray[Any]:
        """Return an array of the first `length` samples, with any values."""
        shape = (length, *self._shape[1:])
        if self._dtype.hasobject or self._dtype.kind == "T" or not self._nbytes or not length:
            return np.empty(shape, self._dtype)
        try:
            ended = self._free.pop()
            memory = self._lent.pop(id(ended)).memory
        except IndexError:
            memory = self._new(self._nbytes)
        with suppress(IndexError):  # another thread took the last
            while len(self._free) > self._most:
                self._lent.pop(id(self._free.pop()))
        lease = _Lease(memory, math.prod(shape) * self._dtype.itemsize)
        loan = _Loan(lease, self._free.append)
        loan.memory = memory
        self._lent[id(loan)] = loan
        return np.asarray(lease).view(self._dtype).reshape(shape)


class Spare:
    """Memory of chunks that no batch needs any more, for the next ones: new memory would take as long as decoding.

    Parameters
    ----------
    limit : int
        Bytes of all that was taken, in use or not. It is kept to if users take no more than that at a time.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._free: dict[int, list[NDArray[np.uint8]]] = {}
        self._taken = 0
        self._whole: dict[Any, NDArray[Any]] = {}
        self._guard = RLock()

    def whole(self, key: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the memory of a whole array, with any values: the same as before, if that had the same key."""
        with self._guard:
            self._free.clear()
            self._taken = 0
            found = self._whole.get(key)
            if found is None:
                found = self._whole[key] = np.empty(shape, dtype)
            return found

    def take(self, nbytes: int) -> NDArray[np.uint8]:
        """Return memory with any values."""
        with self._guard:
            self._whole.clear()
            found = self._free.get(nbytes)
            if found:
                return found.pop()
            self._taken += nbytes
            for size, others in self._free.items():
                while others and self._taken > self._limit:
                    others.pop()
                    self._taken -= size
        return np.empty(nbytes, np.uint8)

    def give(self, memory: NDArray[np.uint8]) -> None:
        """Take back memory that is not used any more."""
        with self._guard:
            self._free.setdefault(memory.nbytes, []).append(memory)


def _new(nbytes: int) -> NDArray[np.uint8]:
    return np.empty(nbytes, np.uint8)


def pinned() -> Callable[[int], NDArray[np.uint8]] | None:
    """Return what makes memory that is pinned for CUDA; None if torch has none."""
    torch = import_module("torch")
    if not torch.cuda.is_available():
        return None

    def new(nbytes: int) -> NDArray[np.uint8]:
        found: NDArray[np.uint8] = torch.empty(nbytes, dtype=torch.uint8, pin_memory=True).numpy()
        return found

    return new


def converter(library: str) -> Callable[[NDArray[Any]], Any] | None:
    """Return what makes an array of a library from one of NumPy, without a copy where it can; None for NumPy.

    Raises SettingError, and MissingDependencyError.
    """
    if library == "numpy":
        return None
    if library not in LIBRARIES:
        raise SettingError(
            "batches cannot be made for this library", found=library, expected=f"one of {', '.join(LIBRARIES)}"
        )
    try:
        module: Any = import_module("jax.numpy" if library == "jax" else library)
    except ImportError as error:
        raise MissingDependencyError(
            f"batches for {library} need the package {library!r}, which cannot be imported ({error})",
            remedy=f"pip install {library}",
        ) from error
    found: Callable[[NDArray[Any]], Any] = module.from_numpy if library == "torch" else module.asarray
    return found
