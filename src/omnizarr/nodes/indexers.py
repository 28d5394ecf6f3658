"""Views of an array: other kinds of selection, another data type, some of its fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, overload

import numpy as np

from omnizarr import indexing
from omnizarr.errors import SelectionError
from omnizarr.indexing import Plan
from omnizarr.model.grids import Grid

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import EllipsisType
    from typing import SupportsIndex

    from numpy.typing import ArrayLike, DTypeLike, NDArray

    class SupportsArray(Protocol):
        """An object that NumPy converts to an array, such as an array of another library or one in a store."""

        def __array__(self, *args: Any, **kwargs: Any) -> NDArray[Any]: ...


AnyArray: TypeAlias = "NDArray[Any]"
Planner: TypeAlias = Callable[[Any, Grid], Plan]
Fields: TypeAlias = "str | list[str] | None"

# Types of selections, for type checkers. `Many` selects an array; the others select an array or a scalar,
# which depends on the number of dimensions, and types do not know that.
Integers: TypeAlias = "Sequence[SupportsIndex | Sequence[SupportsIndex]]"
Selector: TypeAlias = "SupportsIndex | slice | EllipsisType | Integers | SupportsArray | str | list[str] | None"
Index: TypeAlias = "Selector | tuple[Selector, ...]"
Many: TypeAlias = "slice | list[int] | list[bool] | NDArray[Any] | None"
AllMany: TypeAlias = "Many | EllipsisType | tuple[Many | EllipsisType, ...]"
OneMany: TypeAlias = "tuple[Many, *tuple[Selector, ...]] | tuple[Selector, Many, *tuple[Selector, ...]]"
ArrayIndex: TypeAlias = "AllMany | OneMany | tuple[Selector, Selector, Many, *tuple[Selector, ...]]"


class Indexer:
    """Another kind of selection, with brackets: ``array.oindex[...]``."""

    __slots__ = ("_array", "_planner")

    def __init__(self, array: Indexed, planner: Planner) -> None:
        self._array: Any = array
        self._planner = planner

    @overload
    def __getitem__(self, selection: ArrayIndex) -> AnyArray: ...
    @overload
    def __getitem__(self, selection: Index) -> Any: ...
    def __getitem__(self, selection: Any) -> Any:
        fields, selection = indexing.pop_fields(selection)
        return self._array._get(self._planner, selection, None, fields)  # noqa: SLF001 - a part of it

    def __setitem__(self, selection: Index, value: ArrayLike) -> None:
        fields, selection = indexing.pop_fields(selection)
        self._array._set(self._planner, selection, value, fields)  # noqa: SLF001 - a part of it


class Indexed:
    """What elements are read from and written to by selections of other kinds, too."""

    __slots__ = ()

    @property
    def oindex(self) -> Indexer:
        """Orthogonal selections, for reading and writing: ``array.oindex[[0, 2], :, mask]``.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.oindex[[0, 2], [1, 3]]
        array([[ 1,  3],
               [ 9, 11]])
        """
        return Indexer(self, indexing.orthogonal)

    @property
    def vindex(self) -> Indexer:
        """Selections by coordinates or by a mask, for reading and writing: ``array.vindex[[0, 2], [1, 1]]``.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.vindex[[0, 2], [1, 3]]
        array([ 1, 11])
        """
        return Indexer(self, points)

    @property
    def blocks(self) -> Indexer:
        """Selections of whole chunks, for reading and writing: ``array.blocks[0, 1:]``.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.blocks[1, 0]
        array([[8, 9]])
        """
        return Indexer(self, indexing.block)


class AsType:
    """A view of an array that converts elements to another data type."""

    def __init__(self, array: Any, dtype: np.dtype[Any]) -> None:
        self._array = array
        self.dtype = dtype

    @property
    def store_path(self) -> Any:
        """The place of the array: store and path."""
        return self._array.store_path

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of elements along each dimension."""
        shape: tuple[int, ...] = self._array.shape
        return shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        return len(self._array)

    @overload
    def __getitem__(self, selection: ArrayIndex) -> AnyArray: ...
    @overload
    def __getitem__(self, selection: Index) -> Any: ...
    def __getitem__(self, selection: Any) -> Any:
        """Return the selected elements, converted."""
        result = np.asarray(self._array[selection]).astype(self.dtype)
        return result if result.ndim else result[()]

    def __iter__(self) -> Iterator[Any]:
        return (np.asarray(item).astype(self.dtype) for item in self._array)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:  # noqa: FBT001 - NumPy's
        elements: AnyArray = self._array.__array__(self.dtype, copy)
        return elements.astype(dtype or self.dtype, copy=False)

    def __repr__(self) -> str:
        return f"<{self._array!r} as {self.dtype}>"


def as_buffer(out: AnyArray, plan: Plan) -> AnyArray | None:
    """Return `out` in the shape of the plan's buffer, if that needs no copy."""
    if plan.shape == plan.buffer_shape and plan.turned is None:
        return out
    view = plan.as_buffer(out)
    return view if np.may_share_memory(view, out) else None


def select_fields(elements: AnyArray, fields: Fields) -> AnyArray:
    """Return some fields of elements, packed without the bytes of the other fields."""
    dtype = fields_dtype(elements.dtype, fields)
    if isinstance(fields, str):
        return elements[fields].copy()
    selected = np.empty(elements.shape, dtype)
    for name in fields or ():
        selected[name] = elements[name]
    return selected


def fields_dtype(dtype: np.dtype[Any], fields: Fields) -> np.dtype[Any]:
    """Return the data type of some fields. Raises SelectionError if a field does not exist."""
    wanted = [fields] if isinstance(fields, str) else list(fields or ())
    for name in wanted:
        if name not in (dtype.names or ()):
            raise SelectionError(
                "there is no such field",
                found=repr(name),
                expected=f"one of {', '.join(dtype.names)}" if dtype.names else "no field: the type has none",
            )
    if isinstance(fields, str):
        return dtype[fields]
    return np.dtype([(name, dtype[name]) for name in wanted])


def points(selection: Any, grid: Grid) -> Plan:
    """Return the plan for a selection of ``array.vindex[...]``: coordinates or a mask."""
    items = selection if isinstance(selection, tuple) else (selection,)
    if len(items) == 1:
        only = np.asarray(items[0])
        if only.dtype == np.bool_ and only.ndim == len(grid.shape):
            return indexing.mask(only, grid)
    return indexing.coordinate(selection, grid)
