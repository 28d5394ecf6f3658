"""Memory of the caller that reading fills: `out=`, an array of NumPy or of any library that shares its memory.

The memory is never copied: what cannot be filled in place is refused before anything is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import numpy as np

from omnizarr.errors import ReadOnlyError, ShapeError, ValueTypeError
from omnizarr.nodes.indexers import AnyArray

if TYPE_CHECKING:
    from typing_extensions import Buffer

_HOST: Final = frozenset({1, 3, 11, 13})
"""Devices of DLPack whose memory the processor can write: itself, pinned for CUDA or ROCm, and managed by CUDA."""
_DEVICES: Final = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI"}


class _OfDLPack(Protocol):
    def __dlpack__(self) -> Any: ...

    def __dlpack_device__(self) -> Any: ...


class _OfInterface(Protocol):
    @property
    def __array_interface__(self) -> Any: ...


Out: TypeAlias = "AnyArray | Buffer | _OfDLPack | _OfInterface"
"""What `out=` takes."""


def memory_of(out: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> AnyArray:
    """Return an array that is the memory of `out`, into which elements of a shape and data type can be put.

    Raises
    ------
    ValueTypeError
        If `out` is no array in the memory of the host, or has another kind of data type.
    ReadOnlyError
        If it is read-only.
    ShapeError
        If it has another shape, or elements that lie in the same memory.
    """
    found = out if isinstance(out, np.ndarray) else _shared(out)
    if not found.flags.writeable:
        raise ReadOnlyError(
            "out is read-only",
            found=_owner(out),
            expected="memory that can be written",
            remedy="pass an array of your own, or map the file with mode 'r+'",
        )
    shape, dtype = shape + dtype.shape, dtype.base  # a field may be an array
    if found.shape != shape:
        raise ShapeError("out has another shape than the selection", found=found.shape, expected=shape)
    if found.dtype != dtype and not np.can_cast(dtype, found.dtype, "same_kind"):
        raise ValueTypeError("out has another kind of data type than the array", found=found.dtype, expected=dtype)
    if _overlaps_itself(found):
        raise ShapeError(
            "several elements of out lie in the same memory",
            found=f"strides {found.strides} of shape {found.shape}",
            expected="memory of its own for each element",
            remedy="pass out.copy()",
        )
    return found


def _shared(out: Any) -> AnyArray:
    """Return the memory of an array of another library. It is read-only if the library does not say that it is not."""
    _refuse_device(out)
    if hasattr(out, "__array_interface__") or hasattr(out, "__array_struct__") or _is_buffer(out):
        return np.asarray(out)
    if not hasattr(out, "__dlpack__"):
        raise _foreign(out)
    try:
        found = np.from_dlpack(out, copy=False)
    except TypeError:  # an export without this keyword
        found = np.from_dlpack(out)
    except (BufferError, RuntimeError, ValueError) as error:
        raise _foreign(out, f": {error}") from error
    if not found.flags.writeable and hasattr(out, "__array__"):
        # Before version 1, DLPack does not say whether memory may be written: libraries whose arrays never change
        # share theirs, too. NumPy's protocol says it.
        other = np.asarray(out)
        if _place(other) == _place(found):
            return other
    return found


def _place(array: AnyArray) -> tuple[Any, ...]:
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype


def _refuse_device(out: Any) -> None:
    """Raise an error for memory that is not the host's: that of a GPU."""
    if hasattr(out, "__dlpack_device__"):
        kind, number = out.__dlpack_device__()
        if kind in _HOST:
            return
        found = f"{_name(out)} on the device {number} of {_DEVICES.get(int(kind), f'kind {int(kind)}')}"
    elif hasattr(out, "__cuda_array_interface__"):
        found = f"{_name(out)} on a device of CUDA"
    else:
        return
    raise ValueTypeError(
        "out is not in the memory of the host",
        found=found,
        expected="memory that the processor can write",
        remedy="read into an array on the host, pinned if you like, and copy that to the device",
    )


def _is_buffer(out: Any) -> bool:
    try:
        with memoryview(out):
            return True
    except (TypeError, BufferError):
        return False


def _foreign(out: Any, why: str = "") -> ValueTypeError:
    return ValueTypeError(
        f"out is not an array whose memory can be filled{why}",
        found=_name(out),
        expected="numpy.ndarray, or an array of the host that is shared by the buffer protocol or DLPack",
    )


def _name(out: Any) -> str:
    kind = type(out)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _owner(out: Any) -> str:
    """Return what `out` is a view of: the object that owns its memory."""
    owner: object = out
    kind = type(out).__name__
    while (base := getattr(owner, "base", None)) is not None:
        owner = base
    return kind if isinstance(owner, np.ndarray) or owner is out else f"{kind} of {type(owner).__name__}"


def _overlaps_itself(out: AnyArray) -> bool:
    """Return whether two elements share memory, which only strides that were made by hand can cause."""
    if out.flags.forc:
        return False
    end = out.itemsize
    for stride, length in sorted((abs(stride), length) for stride, length in zip(out.strides, out.shape, strict=True)):
        if length > 1:
            if stride < end:
                return out.size > 0
            end += stride * (length - 1)
    return False
