"""The `transpose` codec: array to array. The same elements with the axes in another order.

Names: v3 `transpose`. Configuration: ``order`` is a permutation; axis ``i`` of the encoded array is axis
``order[i]`` of the decoded one. Documents of 2022 and 2023 have "C" (keep) and "F" (reverse).

Both directions return views, without a copy.

Spec: Zarr v3, "Transpose codec".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Configuration, Description
from omnizarr.codecs.record import A2A, ALL, Name, Parameters, Record, brief
from omnizarr.indexing import place_of_points

_SPEC = 'Zarr v3, "Transpose codec"'


@dataclass(frozen=True, slots=True)
class Transpose:
    """Axes in another order.

    Attributes
    ----------
    encoded : ArraySpec
    order : tuple of int
        The axis of the decoded array for each axis of the encoded one.
    inverse : tuple of int
    """

    encoded: ArraySpec
    order: tuple[int, ...]
    inverse: tuple[int, ...]

    def describe_native(self, _spec: ArraySpec) -> Description | None:
        """Return what the native engine takes; see `omnizarr.codecs.chain.describe_chain`."""
        return "transpose", self.order

    def encode(self, array: AnyArray) -> AnyArray:
        """Return a view of `array` with the axes in `order`."""
        return array.transpose(self.order)

    def decode(self, array: AnyArray) -> AnyArray:
        """Return a view of `array` with the original axes."""
        return array.transpose(self.inverse)

    def map_selection(self, selection: tuple[Any, ...], array: AnyArray) -> tuple[tuple[Any, ...], AnyArray] | None:
        """Return selection and array (result or value) in terms of the encoded array. The array is a view.

        `selection` is the `chunk_selection` of a piece. Returns None if `array` does not have the axes of
        ``decoded[selection]``.
        """
        mapped = [selection[axis] for axis in self.order]
        scattered = [place for place, part in enumerate(mapped) if isinstance(part, np.ndarray)]
        if len(scattered) > 1 and mapped[scattered[0]].ndim == 1:
            return tuple(mapped), array.transpose(_turned_points(selection, self.order))
        if array.ndim != len(mapped):
            return None
        if len(scattered) > 1:
            _open_mesh(mapped, range(scattered[0], scattered[-1] + 1), self.encoded.shape)
        return tuple(mapped), array.transpose(self.order)


def _turned_points(selection: Sequence[Any], order: Sequence[int]) -> list[int]:
    """Return the dimensions of ``decoded[selection]`` in the order of the encoded array's, points among slices."""
    points = [axis for axis, part in enumerate(selection) if isinstance(part, np.ndarray)]
    decoded = [axis for axis in range(len(order)) if axis not in points]
    encoded = [axis for axis in order if axis not in points]
    decoded.insert(place_of_points(points), points[0])
    encoded.insert(place_of_points(sorted(map(order.index, points))), points[0])
    return [decoded.index(axis) for axis in encoded]


def _open_mesh(selection: list[Any], span: range, shape: Sequence[int]) -> None:
    """Turn all parts in a range of axes into arrays like those of `numpy.ix_`.

    NumPy keeps the axes of a result in place only if no slice is between two arrays.
    """
    for axis in span:
        part = selection[axis]
        places = np.arange(*part.indices(shape[axis])) if isinstance(part, slice) else part
        selection[axis] = places.reshape([-1 if other == axis else 1 for other in span])


def bind(configuration: Configuration, decoded: ArraySpec) -> Transpose:
    """Return the codec for arrays like `decoded`.

    Raises
    ------
    MetadataError
        If ``order`` is not a permutation of the axes, or the configuration has other members.

    Examples
    --------
    >>> from omnizarr.model import datatypes
    >>> bind({"order": [2, 0, 1]}, ArraySpec((3, 4, 5), datatypes.parse("uint8"), np.uint8(0))).encoded.shape
    (5, 3, 4)
    """
    fields = Fields(configuration, ("order",), _SPEC)
    ndim = len(decoded.shape)
    order = fields.raw("order")
    if order == "C":
        order = tuple(range(ndim))
    elif order == "F":
        order = tuple(reversed(range(ndim)))
    else:
        is_list = isinstance(order, Sequence) and not isinstance(order, str)
        # True == 1, but JSON's true is not an axis.
        if not is_list or any(type(axis) is not int for axis in order) or sorted(order) != list(range(ndim)):
            expected = f"each of 0 to {ndim - 1} once" if ndim else "no axes: []"
            raise fields.reject("order", "the order is not a permutation of the axes", order, expected)
        order = tuple(order)
    inverse = tuple(order.index(axis) for axis in range(len(order)))
    encoded = replace(decoded, shape=tuple(decoded.shape[axis] for axis in order))
    return Transpose(encoded, order, inverse)


def _words(given: Parameters) -> str:
    order = given.get("order")
    if order == "F" or (isinstance(order, Sequence) and list(order) == list(range(len(order)))[::-1]):
        return "Fortran order"
    return f"axes in order {brief(list(order) if isinstance(order, tuple) else order)}"


CODECS = (
    Record(
        id="transpose", kind=A2A, names={"transpose": Name(bind, ALL, "core")}, parameters={"order": list},
        v2="`order` F, if axes are reversed", note="a view", native=True, words=_words,
        remedy="there are orders C and F only: re-encode with one of these, or write v3",
    ),
)  # fmt: skip
