"""Whether a transformation of OME-Zarr 0.6 is what it should be: its parameters, and the numbers of dimensions.

Spec: https://ngff.openmicroscopy.org, version 0.6 (RFC-5), "transformation types".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from omnizarr.formats.conventions.ome.systems import is_number, objects
from omnizarr.formats.reader import is_integer, is_list, is_object

FIELDS: Final[Mapping[str, str]] = {"displacements": "displacement", "coordinates": "coordinate"}
"""Transformations whose vectors are an image, and the type of the axis along which these lie."""
_DEEPEST: Final = 16
"""Transformations within each other; documents have a few."""
_MATRIX_TOLERANCE: Final = 1e-4


class Problem(NamedTuple):
    """Something that is wrong with a transformation.

    Attributes
    ----------
    below : tuple of str or int
        The place in the transformation.
    message : str
    found, expected : object
    is_stored : bool
        Whether it is about what is stored at the path of the transformation.
    """

    below: tuple[str | int, ...]
    message: str
    found: object = None
    expected: object = None
    is_stored: bool = False


class Stored(NamedTuple):
    """What is stored at the path of a transformation.

    Attributes
    ----------
    shape : tuple of int
        Of the array, or of the first level of the image.
    axes : list or None
        Those of the image; None for an array.
    """

    shape: tuple[int, ...]
    axes: Sequence[Any] | None = None


Find = Callable[[str], Stored | None]
"""Returns what is stored at a path; None if nothing is."""


class _Place(NamedTuple):
    """A transformation, with the numbers of dimensions that it leads from and to (None: not known)."""

    step: Mapping[str, Any]
    inputs: int | None
    outputs: int | None
    find: Find
    below: tuple[str | int, ...]
    depth: int

    def problem(
        self, member: str, message: str, found: object, expected: object, *, is_stored: bool = False
    ) -> Problem:
        return Problem((*self.below, member), message, found, expected, is_stored)


def problems(
    step: Any, inputs: int | None, outputs: int | None, find: Find, below: tuple[str | int, ...] = (), depth: int = 0
) -> Iterator[Problem]:
    """Yield what is wrong with a transformation from a number of dimensions to another.

    Parameters
    ----------
    step : JSON
    inputs, outputs : int or None
        Numbers of dimensions; None if they are not known.
    find : callable
        Returns what is stored at a path.

    Examples
    --------
    >>> [each.message for each in problems({"type": "scale", "scale": [1, 2, 3]}, 2, 2, lambda path: None)]
    ['the scale has 3 numbers for 2 dimensions']
    >>> list(problems({"type": "affine", "affine": [[1, 0, 5], [0, 1, 5], [0, 0, 1]]}, 2, 3, lambda path: None))
    []
    """
    kind = step.get("type") if is_object(step) else None
    check = _CHECKS.get(kind) if isinstance(kind, str) else None
    if check is None:
        yield Problem((*below, "type"), "there is no such transformation", kind, f"one of {', '.join(_CHECKS)}")
    elif depth >= _DEEPEST:
        yield Problem(below, "transformations within transformations, too deep", depth, f"at most {_DEEPEST}")
    else:
        yield from check(_Place(step, inputs, outputs, find, below, depth))


def dimensions(step: Any, inputs: int | None, depth: int = 0) -> int | None:
    """Return the number of dimensions that a transformation leads to; None if that is not known.

    >>> dimensions({"type": "projectAxis", "createdOutputs": [0], "droppedInputs": [0, 1]}, 3)
    2
    """
    kind = step.get("type") if is_object(step) else None
    if depth >= _DEEPEST:
        return None
    if kind == "affine":
        return len(step["affine"]) if is_list(step.get("affine")) else None
    if kind == "projectAxis":
        made, left = (len(step[name]) if is_list(step.get(name)) else 0 for name in ("createdOutputs", "droppedInputs"))
        return None if inputs is None else inputs - left + made
    if kind == "sequence":
        for each in objects(step.get("transformations")):
            inputs = dimensions(each, inputs, depth + 1)
        return inputs
    if kind == "byDimension":
        parts = [each.get("outputAxes") for each in objects(step.get("transformations"))]
        return sum(len(part) for part in parts if is_list(part))
    return None if kind == "coordinates" else inputs


def _same(at: _Place) -> Iterator[Problem]:
    if at.inputs is not None and at.outputs is not None and at.inputs != at.outputs:
        message = f"it leads from {at.inputs} dimensions to {at.outputs}"
        yield at.problem("type", message, at.step.get("type"), "as many dimensions on both sides")


def _of_numbers(at: _Place) -> Iterator[Problem]:
    kind = str(at.step["type"])
    numbers = at.step.get(kind)
    count = at.outputs if at.inputs is None else at.inputs
    if not is_list(numbers) or not all(map(is_number, numbers)):
        yield at.problem(kind, f"the {kind} is not a list of numbers", numbers, f"{count or 'some'} numbers")
        return
    if count is not None and len(numbers) != count:
        message = f"the {kind} has {len(numbers)} numbers for {count} dimensions"
        yield at.problem(kind, message, numbers, f"{count} numbers")
    elif kind == "scale" and not all(each > 0 for each in numbers):
        yield at.problem(kind, "a scale that is not above 0 cannot be inverted", numbers, "numbers above 0")
    yield from _same(at)


def _of_map(at: _Place) -> Iterator[Problem]:
    listed = at.step.get("mapAxis")
    count = len(listed) if is_list(listed) else 0
    if not is_list(listed) or not all(map(is_integer, listed)) or sorted(listed) != list(range(count)):
        yield at.problem("mapAxis", "it is no order of the axes", listed, "each number of an axis once")
    elif at.inputs is not None and count != at.inputs:
        message = f"it orders {count} axes of {at.inputs}"
        yield at.problem("mapAxis", message, listed, f"{at.inputs} numbers")
    yield from _same(at)


def _of_projection(at: _Place) -> Iterator[Problem]:
    counts = []
    for member, whole in (("droppedInputs", at.inputs), ("createdOutputs", at.outputs)):
        listed = at.step.get(member, ())
        is_right = is_list(listed) and all(is_integer(each) and each >= 0 for each in listed)
        if not is_right or len(set(listed)) != len(listed) or (member in at.step and not listed):
            yield at.problem(member, "they are not numbers of axes, each once", listed, "different numbers from 0 on")
            return
        if whole is not None and any(each >= whole for each in listed):
            message = f"there are only {whole} axes"
            yield at.problem(member, message, listed, f"numbers below {whole}")
            return
        counts.append(len(listed))
    if not sum(counts):
        yield at.problem("type", "it neither drops nor creates axes", None, "droppedInputs or createdOutputs")
    elif at.inputs is not None and at.outputs is not None and at.inputs - counts[0] + counts[1] != at.outputs:
        message = f"it leads from {at.inputs} dimensions to {at.inputs - counts[0] + counts[1]}, not to {at.outputs}"
        yield at.problem("type", message, counts, f"{at.outputs} dimensions")


def _of_matrix(at: _Place) -> Iterator[Problem]:
    kind = str(at.step["type"])
    columns = None if at.inputs is None else at.inputs + (kind == "affine")
    expected = (at.outputs, columns)
    shown = f"{at.outputs or 'M'} rows of {columns or 'N'} numbers"
    matrix, path = at.step.get(kind), at.step.get("path")
    if (matrix is None) == (path is None):
        yield at.problem(
            kind, f"there must be one of these, and there are both or none: {kind} and path", matrix, f"{kind} or path"
        )
        return
    if path is not None:
        found = at.find(path) if isinstance(path, str) else None
        if found is None or found.axes is not None:
            message = "the path leads to no readable array"
            yield at.problem("path", message, path, "the path of an array", is_stored=True)
        elif not _fits(found.shape, expected):
            yield at.problem("path", "the array has another shape", list(found.shape), shown, is_stored=True)
        return
    rows = list(matrix) if is_list(matrix) else []
    lengths = {len(row) if is_list(row) else -1 for row in rows}
    are_numbers = all(is_list(row) and all(map(is_number, row)) for row in rows)
    if len(lengths) != 1 or not are_numbers or not _fits((len(rows), *lengths), expected):
        yield at.problem(kind, "the matrix has not the shape for its dimensions", matrix, shown)
    elif kind == "rotation":
        yield from _of_rotation(at, np.array([[float(each) for each in row] for row in rows]))
        yield from _same(at)


def _fits(shape: Sequence[int], expected: Sequence[int | None]) -> bool:
    return len(shape) == 2 and all(wanted in (None, length) for length, wanted in zip(shape, expected, strict=True))


def _of_rotation(at: _Place, matrix: np.ndarray[Any, Any]) -> Iterator[Problem]:
    is_square = matrix.shape[0] == matrix.shape[1]
    with np.errstate(all="ignore"):
        is_right = is_square and np.allclose(matrix @ matrix.T, np.eye(len(matrix)), atol=_MATRIX_TOLERANCE)
    if not is_right or np.linalg.det(matrix) < 0:
        message = "the matrix is no rotation"
        yield at.problem("rotation", message, matrix.tolist(), "orthonormal rows, and the determinant 1")


def _of_sequence(at: _Place) -> Iterator[Problem]:
    listed = at.step.get("transformations")
    if not is_list(listed) or not listed:
        yield at.problem("transformations", "no list of transformations", listed, "a list of objects")
        return
    inputs = at.inputs
    for number, each in enumerate(listed):
        outputs = at.outputs if number == len(listed) - 1 else dimensions(each, inputs)
        yield from problems(each, inputs, outputs, at.find, (*at.below, "transformations", number), at.depth + 1)
        inputs = outputs


def _of_bijection(at: _Place) -> Iterator[Problem]:
    yield from _same(at)
    for member, inputs, outputs in (("forward", at.inputs, at.outputs), ("inverse", at.outputs, at.inputs)):
        yield from problems(at.step.get(member), inputs, outputs, at.find, (*at.below, member), at.depth + 1)


def _of_parts(at: _Place) -> Iterator[Problem]:
    listed = at.step.get("transformations")
    if not is_list(listed) or not listed:
        yield at.problem("transformations", "no list of transformations", listed, "a list of objects")
        return
    seen: list[Any] = []
    for number, each in enumerate(listed):
        below = (*at.below, "transformations", number)
        counts = []
        for member, whole in (("inputAxes", at.inputs), ("outputAxes", at.outputs)):
            numbers = each.get(member) if is_object(each) else None
            if not is_list(numbers) or not all(is_integer(one) and 0 <= one < (whole or 2**31) for one in numbers):
                expected = f"numbers below {whole}" if whole else "a list of numbers"
                yield Problem((*below, member), "they are not numbers of axes", numbers, expected)
                return
            counts.append(len(numbers))
            seen += numbers if member == "outputAxes" else ()
        yield from problems(
            each.get("transformation"), counts[0], counts[1], at.find, (*below, "transformation"), at.depth + 1
        )
    if sorted(seen) != list(range(len(seen) if at.outputs is None else at.outputs)):
        message = "the axes of the output are not each in one of the transformations"
        yield at.problem("transformations", message, seen, "each number of an axis once")


def _of_field(at: _Place) -> Iterator[Problem]:
    kind, path = str(at.step["type"]), at.step.get("path")
    found = at.find(path) if isinstance(path, str) else None
    if found is None or found.axes is None:
        message = "the path leads to no readable image"
        yield at.problem(
            "path", message, path, "the path of an image with the vectors", is_stored=isinstance(path, str)
        )
        return
    along = [number for number, axis in enumerate(found.axes) if is_object(axis) and axis.get("type") == FIELDS[kind]]
    if len(along) != 1 or len(found.axes) != len(found.shape):
        message = f"the image has not one axis of type {FIELDS[kind]}"
        yield at.problem("path", message, path, f"an axis of type {FIELDS[kind]}", is_stored=True)
        return
    if at.inputs is not None and len(found.shape) != at.inputs + 1:
        message = f"the image has {len(found.shape)} dimensions for points of {at.inputs}"
        yield at.problem("path", message, list(found.shape), f"{at.inputs + 1} dimensions", is_stored=True)
    wanted = at.outputs if kind == "coordinates" else at.inputs
    if wanted is not None and found.shape[along[0]] != wanted:
        message = f"the vectors have {found.shape[along[0]]} components"
        yield at.problem("path", message, list(found.shape), f"{wanted} components", is_stored=True)
    if kind == "displacements":
        yield from _same(at)


_CHECKS: Final[Mapping[str, Callable[[_Place], Iterator[Problem]]]] = {
    "identity": _same,
    "mapAxis": _of_map,
    "projectAxis": _of_projection,
    "translation": _of_numbers,
    "scale": _of_numbers,
    "affine": _of_matrix,
    "rotation": _of_matrix,
    "sequence": _of_sequence,
    "displacements": _of_field,
    "coordinates": _of_field,
    "bijection": _of_bijection,
    "byDimension": _of_parts,
}
