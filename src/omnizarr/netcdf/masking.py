"""Masks and scales: what the attributes of a variable mean for its values.

`Packing.of` reads the attributes once. `unpack` then converts stored values to what the user sees (masked if they
are missing or not valid, scaled, unsigned), and `pack` converts back.

Like netCDF4-python, with these differences. Values that do not fit an integer type raise an error instead of
wrapping around. Masked elements are filled even if scaling is off. A ``missing_value`` of several values fills
with the first; one that the type cannot hold does not fill.

Spec: netCDF4-python 1.7.5, ``Variable.set_auto_maskandscale``; NetCDF Users Guide, "Attribute Conventions".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import ValueTypeError
from omnizarr.netcdf.chars import as_characters, as_objects
from omnizarr.netcdf.header import Attribute
from omnizarr.netcdf.types import AnyType, UserType, of_dtype
from omnizarr.nodes import packing
from omnizarr.support.warned import warn

_UNUSED: Final = "WARNING: {} not used since it\ncannot be safely cast to variable data type"  # of netCDF4-python
_NO_SCALE: Final = "invalid scale_factor or add_offset attribute, no unpacking done..."
_PLAIN: Final = frozenset({np.ndarray, int, float, str, list, tuple})


def _is_plain(data: Any) -> bool:
    """Whether data is certainly not masked, without `numpy.ma`, whose import takes milliseconds."""
    return type(data) in _PLAIN or isinstance(data, np.generic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing(packing.Packing):
    """What the attributes of a variable mean for its values.

    Create one with `Packing.of` for a variable, and again when attributes change. As in netCDF4-python, ``_Unsigned``
    makes signed integers unsigned, and never the reverse, and netCDF's defaults are fill values.

    Attributes
    ----------
    problems : tuple of str
        Attributes that the type of the variable cannot hold.
    bad_scale : bool
        Whether scale or offset is no number.
    """

    problems: tuple[str, ...] = ()
    bad_scale: bool = False

    @classmethod
    def of(cls, attributes: Mapping[str, Attribute], nc_type: AnyType, *, no_fill: bool = False) -> Self:
        """Read attributes.

        Parameters
        ----------
        attributes : mapping of str to Attribute
            Attributes of the variable, including ``_FillValue`` if it was set.
        nc_type : NcType or UserType
            Type of the variable. Strings, compounds, opaque and vlen values are neither masked nor scaled.
        no_fill : bool
            Whether filling is switched off. Then the default fill value of bytes is an ordinary value.

        Examples
        --------
        >>> from omnizarr.netcdf import types
        >>> attributes = {"scale_factor": Attribute.of(0.5), "_FillValue": Attribute.of(np.int16(-1))}
        >>> packing = Packing.of(attributes, types.SHORT)
        >>> print(packing.unpack(np.array([4, -1, 5], "i2")))
        [2.0 -- 2.5]
        >>> packing.pack(np.ma.masked_greater([1.0, 2.6, 9.0], 8))
        array([ 2,  5, -1], dtype=int16)
        """
        dtype = nc_type.dtype
        if dtype.kind not in "iufS" or (isinstance(nc_type, UserType) and nc_type.kind != "enum"):
            return cls(dtype=dtype)
        safe: dict[str, NDArray[Any]] = {}
        problems = []
        for name in packing.SPEAK_OF_VALUES:
            if name in attributes:
                cast = _cast(attributes[name].python, dtype, is_fill=name == "_FillValue")
                if cast is None:
                    problems.append(_UNUSED.format(name))
                else:
                    safe[name] = cast
        unsigned = dtype.kind == "i" and "_Unsigned" in attributes and _says_true(attributes["_Unsigned"].python)
        marks = _marks_of(safe, dtype, no_fill=no_fill)
        scales = {}
        if dtype.kind != "S" and not isinstance(nc_type, UserType):
            scales = {n: attributes[n].python for n in ("scale_factor", "add_offset") if n in attributes}
        bad_scale = not all(isinstance(value, np.number) for value in scales.values())
        if bad_scale:
            scales = {}
        # netCDF4-python has no default fill value for these.
        seen = marks if "_FillValue" in safe else marks._replace(fill=None)
        return cls(
            dtype=dtype,
            marks=marks,
            kind="u" if unsigned else "",
            viewed=seen.viewed("u") if unsigned else None,
            **scales,
            problems=tuple(problems),
            bad_scale=bad_scale,
        )

    def unpack(
        self, data: NDArray[Any], *, mask: bool = True, scale: bool = True, always_mask: bool = True
    ) -> NDArray[Any]:
        """Return stored values as the user sees them.

        Parameters
        ----------
        data : ndarray
            The stored values, in any byte order.
        mask : bool
            Whether to mask values that ``missing_value``, ``_FillValue`` (or its default) or ``valid_range`` exclude.
        scale : bool
            Whether to apply ``scale_factor``, ``add_offset`` and ``_Unsigned``.
        always_mask : bool
            Whether the result is a masked array even if nothing is masked.

        Returns
        -------
        ndarray or MaskedArray
            ``numpy.ma.masked`` for a single masked value.
        """
        marks = self.marks
        if scale and self.kind and data.dtype.kind == "i":
            data = self.meant(data)
            marks = self.viewed
        if scale and self.bad_scale:
            warn(_NO_SCALE)
        if not mask or marks is None:
            return self.scaled(data) if scale else data
        for problem in self.problems:
            warn(problem)
        data = np.asarray(data)
        found, filler = marks.find(data)
        values = self.scaled(data, found) if scale else data
        if found is None:
            # NumPy's results for a single value are scalars, masked or not.
            return values.view(np.ma.MaskedArray) if always_mask and isinstance(values, np.ndarray) else values
        return np.ma.MaskedArray(values, mask=found, fill_value=filler) if values.ndim else np.ma.masked

    def pack(self, data: Any, *, scale: bool = True) -> NDArray[Any]:
        """Return values in stored form: the reverse of `unpack`, rounded for integers, with masked elements filled.

        They are filled with ``missing_value``, otherwise ``_FillValue``, otherwise the default. If all values
        under the mask are a ``missing_value``, they stay.

        Parameters
        ----------
        data : array_like
        scale : bool
            Whether to apply ``scale_factor`` and ``add_offset``.

        Raises
        ------
        ValueTypeError
            If values do not fit the type.
        """
        if not _is_plain(data) and data is np.ma.masked:
            return np.array(self._filler, self.dtype)
        try:
            array = self._array(data, scale=scale)
            if scale:
                array = self._divided(array)
            if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray):
                mask = np.ma.getmaskarray(array)
                filler = "" if array.dtype == object else np.zeros((), array.dtype)[()]
                values = self._fitted(np.where(mask, filler, array.data)).copy()
                missing = self.marks.missing if self.marks is not None else ()
                if missing:
                    with np.errstate(all="ignore"):
                        hidden = array.data[mask].astype(self.dtype)
                    values[mask] = hidden if np.isin(hidden, missing).all() else missing[0]
                else:
                    values[mask] = self._filler
                return values
            return self._fitted(array)
        except ValueTypeError:
            raise
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueTypeError(
                f"the data does not fit the type of the variable: {error}",
                found=f"data of type {getattr(data, 'dtype', type(data).__name__)}",
                expected=str(self.dtype),
            ) from error

    def _array(self, data: Any, *, scale: bool) -> NDArray[Any]:
        """Return a value that the user assigns as an array, without loss."""
        if not _is_plain(data) and isinstance(data, np.ma.MaskedArray):
            return data
        if isinstance(data, np.ndarray | np.generic) or self.dtype.kind not in "iuf":
            return np.asarray(data, object if self.dtype.kind == "O" else None)
        if scale and (self.add_offset is not None or (self.scale_factor is not None and self.dtype.kind in "iu")):
            return np.asarray(data, np.float64)
        if self.dtype.kind == "f":
            return np.asarray(data, self.dtype)
        array = np.asarray(data)
        if array.dtype.kind == "f":  # NumPy makes floats of integers, too, if some need 64 bits and some a sign.
            numbers = np.array(data, object)
            if all(isinstance(each, int) for each in numbers.flat):
                return numbers
        return array

    def _divided(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return values with scale and offset removed."""
        factor, offset = self.scale_factor, self.add_offset
        if factor is None and offset is None:
            return array
        if offset is not None:
            array = array - offset
        if factor is not None:
            array = array / factor
        rounded: NDArray[Any] = np.around(array) if self.dtype.kind in "iu" else array
        return rounded

    @property
    def _filler(self) -> Any:
        """The value that fills masked elements."""
        if self.marks is None:
            return "" if self.dtype.kind == "O" else np.zeros((), self.dtype)[()]
        return self.marks.missing[0] if self.marks.missing else self.marks.filler

    def _fitted(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return values in the variable's type.

        Raises ValueError, TypeError or OverflowError if that loses something.
        """
        if array.dtype == self.dtype and array.dtype.kind != "O":
            return array
        if self.dtype.kind == "O":
            return as_objects(array)
        if self.dtype.kind == "S":
            return as_characters(array)
        if array.dtype.kind == "c":
            raise TypeError("complex numbers have two parts")
        if self.dtype.kind not in "iu" or array.dtype.kind not in "iufO" or not array.size:
            return np.array(array, self.dtype)
        # Fractions are cut off.
        if array.dtype.kind == "f":
            array = np.trunc(array.astype(np.float64) if array.dtype.itemsize < 8 else array)
        low, high = array.min(), array.max()
        if low != low:  # noqa: PLR0124
            raise ValueError("NaN is not an integer")
        dtype = _unsigned(self.dtype) if self.kind and low >= 0 else self.dtype
        limits = np.iinfo(dtype)
        # Infinity compares, and the numbers just beyond the limits are exact as floats.
        if low < limits.min or not high < limits.max + 1:
            raise OverflowError(f"it reaches from {low} to {high}")
        return array.astype(dtype).view(self.dtype)


def masked(
    data: NDArray[Any],
    attributes: Mapping[str, Attribute],
    nc_type: AnyType,
    *,
    always_mask: bool = True,
    mask: bool = True,
) -> NDArray[Any]:
    """Return stored values masked according to the attributes, but not scaled: `Packing.unpack` for a single use.

    Examples
    --------
    >>> from omnizarr.netcdf import types
    >>> masked(np.array([1, -32767, 3], "i2"), {}, types.SHORT)
    masked_array(data=[1, --, 3], mask=[False, True, False], fill_value=-32767, dtype=int16)
    """
    return Packing.of(attributes, nc_type).unpack(data, mask=mask, scale=False, always_mask=always_mask)


def _unsigned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the unsigned type of the same size and byte order."""
    return np.dtype(f"{dtype.byteorder}u{dtype.itemsize}")


def _says_true(value: Any) -> bool:
    return isinstance(value, str) and value in {"true", "True"}


def _cast(value: Any, dtype: np.dtype[Any], *, is_fill: bool) -> NDArray[Any] | None:
    """Return the value of an attribute in the type of its variable; None if that changes it."""
    if isinstance(value, str | list):  # text; netCDF4-python treats it as a character only in the fill value
        if not is_fill or dtype.kind != "S" or isinstance(value, list):
            return None
        return np.array([value.encode("utf-8", "surrogateescape")], dtype)
    given = np.atleast_1d(value)
    if dtype.kind == "S":
        return None
    with np.errstate(all="ignore"):
        cast = given.astype(dtype)
    same = (given == cast) | (np.isnan(given) & np.isnan(cast))
    return cast if same.all() else None


def _marks_of(stated: Mapping[str, NDArray[Any]], dtype: np.dtype[Any], *, no_fill: bool) -> packing.Marks:
    """Return the marks for attribute values in the type of the variable."""
    default = of_dtype(dtype).default_fill
    # A byte has so few values that none of them counts as a fill value, unless one is written to new chunks.
    fill = None if no_fill and dtype.kind in "iu" and dtype.itemsize == 1 else default
    found = packing.marks_of(stated, fill=fill, filler=default)
    return found._replace(low=None, high=None) if dtype.kind == "S" else found
