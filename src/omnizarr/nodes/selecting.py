"""The methods of an array that select with keywords: ``get_basic_selection`` and the like, as in zarr-python."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from omnizarr import indexing
from omnizarr.nodes.indexers import AnyArray, Fields, Index, Indexed
from omnizarr.nodes.out import Out

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Selecting(Indexed):
    """What elements are read from and written to by methods that name the kind of the selection."""

    __slots__ = ()

    # All methods return what these return: for an `AsyncArray` that is a coroutine.
    _get: Callable[..., Any]
    _set: Callable[..., None]

    def get_basic_selection(
        self,
        selection: Index = Ellipsis,
        *,
        out: Out | None = None,
        prototype: Any = None,
        fields: Fields = None,
        concurrency: int | None = None,
    ) -> Any:
        """Return the elements that integers and slices select.

        Parameters
        ----------
        selection : int, slice, Ellipsis, newaxis, or tuple of these
        out : array, optional
            Array with the shape of the selection. It is filled in place and returned: an array of NumPy with any
            strides, a memory map, or an array of another library in the memory of the host, by the buffer protocol,
            ``__array_interface__`` or DLPack. Elements are converted to its data type.
        prototype : object
            Has no effect. It is accepted because zarr-python has it.
        fields : str or list of str, optional
            Fields of a structured data type.
        concurrency : int, optional
            Number of chunks to fetch or store at once in this call. The default is the array's setting.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> out = np.empty(4, dtype="int64")
        >>> array.get_basic_selection((1, slice(None)), out=out)
        array([4, 5, 6, 7])
        """
        return self._get(indexing.basic, selection, out, fields, concurrency)

    def get_orthogonal_selection(
        self,
        selection: Index,
        *,
        out: Out | None = None,
        prototype: Any = None,
        fields: Fields = None,
        concurrency: int | None = None,
    ) -> Any:
        """Return the elements selected independently along each dimension.

        Keywords are those of `get_basic_selection`.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.get_orthogonal_selection(([0, 2], [1, 3]))
        array([[ 1,  3],
               [ 9, 11]])
        """
        return self._get(indexing.orthogonal, selection, out, fields, concurrency)

    def get_coordinate_selection(
        self,
        selection: Index,
        *,
        out: Out | None = None,
        prototype: Any = None,
        fields: Fields = None,
        concurrency: int | None = None,
    ) -> Any:
        """Return the elements at coordinates, given as one array per dimension.

        Keywords are those of `get_basic_selection`.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.get_coordinate_selection(([0, 2], [1, 3]))
        array([ 1, 11])
        """
        return self._get(indexing.coordinate, selection, out, fields, concurrency)

    def get_mask_selection(
        self,
        mask: ArrayLike,
        *,
        out: Out | None = None,
        prototype: Any = None,
        fields: Fields = None,
        concurrency: int | None = None,
    ) -> AnyArray:
        """Return the elements where a mask of the array's shape is True.

        Keywords are those of `get_basic_selection`.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.get_mask_selection(array[:] > 9)
        array([10, 11])
        """
        return self._get(indexing.mask, mask, out, fields, concurrency)  # type: ignore[no-any-return]

    def get_block_selection(
        self,
        selection: Index,
        *,
        out: Out | None = None,
        prototype: Any = None,
        fields: Fields = None,
        concurrency: int | None = None,
    ) -> AnyArray:
        """Return whole chunks, selected by chunk coordinates. Keywords are those of `get_basic_selection`.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.get_block_selection((0, 1))
        array([[2, 3],
               [6, 7]])
        """
        return self._get(indexing.block, selection, out, fields, concurrency)  # type: ignore[no-any-return]

    def set_basic_selection(
        self,
        selection: Index,
        value: ArrayLike,
        *,
        fields: Fields = None,
        prototype: Any = None,
        concurrency: int | None = None,
    ) -> None:
        """Store elements that integers and slices select; see `__setitem__`.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.set_basic_selection((0, slice(None)), 7)
        >>> array[0]
        array([7, 7, 7, 7])
        """
        return self._set(indexing.basic, selection, value, fields, concurrency)

    def set_orthogonal_selection(
        self,
        selection: Index,
        value: ArrayLike,
        *,
        fields: Fields = None,
        prototype: Any = None,
        concurrency: int | None = None,
    ) -> None:
        """Store elements that one selector per dimension selects; see `__setitem__`.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.set_orthogonal_selection(([0, 2], 1), [20, 30])
        >>> array[:, 1]
        array([20,  5, 30])
        """
        return self._set(indexing.orthogonal, selection, value, fields, concurrency)

    def set_coordinate_selection(
        self,
        selection: Index,
        value: ArrayLike,
        *,
        fields: Fields = None,
        prototype: Any = None,
        concurrency: int | None = None,
    ) -> None:
        """Store elements at coordinates; see `__setitem__`.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.set_coordinate_selection(([0, 2], [1, 3]), [20, 30])
        >>> array[2]
        array([ 8,  9, 10, 30])
        """
        return self._set(indexing.coordinate, selection, value, fields, concurrency)

    def set_mask_selection(
        self,
        mask: ArrayLike,
        value: ArrayLike,
        *,
        fields: Fields = None,
        prototype: Any = None,
        concurrency: int | None = None,
    ) -> None:
        """Store elements where a mask is true; see `__setitem__`.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.set_mask_selection(array[:] > 9, -1)
        >>> array[2]
        array([ 8,  9, -1, -1])
        """
        return self._set(indexing.mask, mask, value, fields, concurrency)

    def set_block_selection(
        self,
        selection: Index,
        value: ArrayLike,
        *,
        fields: Fields = None,
        prototype: Any = None,
        concurrency: int | None = None,
    ) -> None:
        """Store whole chunks; see `__setitem__`.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.set_block_selection((0, 0), -1)
        >>> array[0]
        array([-1, -1,  2,  3])
        """
        return self._set(indexing.block, selection, value, fields, concurrency)
