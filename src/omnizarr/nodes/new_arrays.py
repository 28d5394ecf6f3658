"""Arrays that a group creates by the names of NumPy and h5py: ``zeros``, ``full_like``, ``create_dataset``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from omnizarr.nodes.array import Array
from omnizarr.nodes.late import habits
from omnizarr.nodes.options import (
    ArrayOptions,
    FillOptions,
    MemberLikeFillOptions,
    MemberLikeOptions,
    MemberOptions,
    RequireOptions,
    shows,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from omnizarr.nodes.options import Shape


class NewArrays:
    """The methods of a group that create arrays by other names than `create_array`, which creates all of them."""

    __slots__ = ()

    @abstractmethod
    def create_array(self, name: str, **options: Unpack[ArrayOptions]) -> Array:
        """Create an array below this group, and return it."""

    @abstractmethod
    def _like(self, name: str, data: Any, options: Mapping[str, Any]) -> Array:
        """Create an array like another one, except for what `options` say, and return it."""

    @shows(RequireOptions)
    def array(self, name: str, data: ArrayLike, **options: Unpack[RequireOptions]) -> Array:
        """Store values as an array at a path, and return it. Keywords are those of `create_array`.

        >>> import omnizarr
        >>> omnizarr.create_group({}).array("t", [1, 2, 3], chunks=(2,))
        <Array /t (3,) int64 memory>
        """
        return self.create_array(name, data=data, **options)

    @shows(RequireOptions)
    def create_dataset(
        self,
        name: str,
        shape: Shape | None = None,
        dtype: DTypeLike | None = None,
        data: ArrayLike | None = None,
        *,
        compression: str | int | bool | None = None,
        compression_opts: int | None = None,
        shuffle: bool = False,
        fletcher32: bool = False,
        fillvalue: object = None,
        maxshape: tuple[int | None, ...] | None = None,
        **options: Unpack[RequireOptions],
    ) -> Array:
        """Create an array below this group, with the keywords of h5py or those of `create_array`, and return it.

        Parameters
        ----------
        name : str
        shape : int or tuple of int, optional
        dtype : data type, optional
        data : array_like, optional
        compression : {"gzip", 0, ..., 9, True}, optional
            gzip, with its level. Other codecs are `compressors` of `create_array`.
        compression_opts : int, optional
            Level of gzip; 4 by default.
        shuffle : bool
            Shuffle the bytes of elements before they are compressed, by Blosc with zlib.
        fletcher32 : bool
            Store a checksum with each chunk. It is CRC-32C, which other programs check too.
        fillvalue : scalar, optional
            `fill_value` of `create_array`.
        maxshape : tuple of (int or None), optional
            Has no effect: every array can be resized.
        **options
            Other keywords of `create_array`.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root.create_dataset("t", (3,), "f4", compression="gzip", compression_opts=9, fillvalue=-1)[:]
        array([-1., -1., -1.], dtype=float32)
        """
        chosen = habits.from_h5py(compression, compression_opts, fillvalue, shuffle=shuffle, fletcher32=fletcher32)
        for theirs, ours in (("compression", "compressors"), ("fillvalue", "fill_value")):
            if ours in chosen and ours in options:
                raise TypeError(f"{ours} and h5py's {theirs} are both given: leave out one of them")
        return self.create_array(name, **options, **chosen, **_given(shape=shape, dtype=dtype, data=data))

    @shows(MemberOptions)
    def empty(self, *, name: str, shape: Any, **options: Unpack[MemberOptions]) -> Array:
        """Create an array whose elements are not set. They read as the fill value.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root.empty(name="t", shape=(2,))
        <Array /t (2,) float64 memory>
        """
        options.setdefault("dtype", np.dtype("float64"))
        return self.create_array(name, shape=shape, **options)

    @shows(MemberOptions)
    def zeros(self, *, name: str, shape: Any, **options: Unpack[MemberOptions]) -> Array:
        """Create an array of zeros.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root.zeros(name="t", shape=(2,))[:]
        array([0., 0.])
        """
        options.setdefault("fill_value", 0)
        return self.empty(name=name, shape=shape, **options)

    @shows(MemberOptions)
    def ones(self, *, name: str, shape: Any, **options: Unpack[MemberOptions]) -> Array:
        """Create an array of ones.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root.ones(name="t", shape=(2,))[:]
        array([1., 1.])
        """
        options.setdefault("fill_value", 1)
        return self.empty(name=name, shape=shape, **options)

    @shows(FillOptions)
    def full(self, *, name: str, shape: Any, fill_value: Any, **options: Unpack[FillOptions]) -> Array:
        """Create an array in which every element has the same value.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root.full(name="t", shape=(2,), fill_value=7)[:]
        array([7., 7.])
        """
        return self.empty(name=name, shape=shape, fill_value=fill_value, **options)

    @shows(MemberLikeOptions)
    def empty_like(self, *, name: str, data: Any, **options: Unpack[MemberLikeOptions]) -> Array:
        """Create an array with the shape, data type, chunks and codecs of another.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.empty_like(name="copy", data=root["ocean/temp"])
        <Array /copy (3,) int64 memory>
        """
        return self._like(name, data, options)

    @shows(MemberLikeOptions)
    def zeros_like(self, *, name: str, data: Any, **options: Unpack[MemberLikeOptions]) -> Array:
        """Create an array of zeros with the shape, data type, chunks and codecs of another.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.zeros_like(name="copy", data=root["ocean/temp"])[:]
        array([0, 0, 0])
        """
        return self._like(name, data, {"fill_value": 0, **options})

    @shows(MemberLikeOptions)
    def ones_like(self, *, name: str, data: Any, **options: Unpack[MemberLikeOptions]) -> Array:
        """Create an array of ones with the shape, data type, chunks and codecs of another.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.ones_like(name="copy", data=root["ocean/temp"])[:]
        array([1, 1, 1])
        """
        return self._like(name, data, {"fill_value": 1, **options})

    @shows(MemberLikeFillOptions)
    def full_like(self, *, name: str, data: Any, fill_value: Any, **options: Unpack[MemberLikeFillOptions]) -> Array:
        """Create an array of one value with the shape, data type, chunks and codecs of another.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.full_like(name="copy", data=root["ocean/temp"], fill_value=7)[:]
        array([7, 7, 7])
        """
        return self._like(name, data, {"fill_value": fill_value, **options})


def _given(**options: Any) -> Any:
    return {name: value for name, value in options.items() if value is not None}
