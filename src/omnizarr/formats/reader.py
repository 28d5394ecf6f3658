"""Reading documents of all dialects: checking values, and reporting problems and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from omnizarr.errors import MetadataError
from omnizarr.model import JSON, Note, Problem, Report

MAX_LENGTH = 2**63 - 1
"""The largest length of a dimension. Larger ones cannot be addressed."""
MOST_DIMENSIONS = 200
"""NumPy has 64. With more than this, a number of elements has more digits than Python writes (4300)."""


@dataclass(frozen=True, slots=True)
class Reader:
    """The state of reading one node's documents."""

    report: Report
    notes: list[Note] = field(default_factory=list)

    def problem(self, pointer: str, message: str, **fields: Any) -> None:
        """Report that the document departs from its format. This raises an error if `report` is `strict`."""
        if fields.get("found", self) is None:
            fields["found"] = "null"  # None would mean that there is nothing to show
        self.report(Problem(pointer, message, **fields))

    def note(self, pointer: str, message: str, spec: str = "") -> None:
        """Report that something was corrected."""
        self.notes.append(Note(pointer, message, spec))


def overheard(reader: Reader, faults: list[Problem]) -> Reader:
    """Return a reader that does the same, and also adds the problems to a list."""

    def report(problem: Problem) -> None:
        faults.append(problem)
        reader.report(problem)

    return Reader(report, reader.notes)


def join(pointer: str, *keys: str | int) -> str:
    """Return the JSON pointer (RFC 6901) of something below `pointer`.

    >>> join("/attributes", "a/b", 0)
    '/attributes/a~1b/0'
    """
    for key in keys:
        pointer += f"/{key}" if isinstance(key, int) else "/" + str(key).replace("~", "~0").replace("/", "~1")
    return pointer


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether `value` is a JSON array."""
    return isinstance(value, list | tuple)


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether `value` is a JSON object."""
    return type(value) is dict or isinstance(value, Mapping)


def is_integer(value: object) -> TypeGuard[int]:
    """Whether `value` is an integer in JSON (``true`` and ``1.0`` are none)."""
    return type(value) is int or (isinstance(value, int) and not isinstance(value, bool))


def read_object(reader: Reader, value: JSON, pointer: str, spec: str) -> Mapping[str, JSON]:
    """Return `value` if it is an object, otherwise an empty one."""
    if is_object(value):
        return value
    reader.problem(pointer, "not an object", found=value, expected="an object", spec=spec)
    return {}


def read_list(reader: Reader, value: JSON, pointer: str, spec: str) -> Sequence[Any]:
    """Return `value` if it is a list, otherwise an empty one."""
    if is_list(value):
        return value
    reader.problem(pointer, "not a list", found=value, expected="a list", spec=spec)
    return ()


def read_lengths(reader: Reader, value: JSON, pointer: str, spec: str) -> tuple[int, ...]:
    """Return a list of lengths of dimensions, in elements: integers from 0 to 2**63 - 1."""
    lengths = []
    items = read_list(reader, value, pointer, spec)
    if len(items) > MOST_DIMENSIONS:
        reader.problem(
            pointer, "too many dimensions", found=f"{len(items)}", expected=f"at most {MOST_DIMENSIONS}", spec=spec
        )
        items = items[:MOST_DIMENSIONS]
    for index, item in enumerate(items):
        if is_integer(item) and 0 <= item <= MAX_LENGTH:
            lengths.append(item)
            continue
        if not is_integer(item):
            message = "a length is not an integer"
        elif item < 0:
            message = "a length is negative"
        else:
            message = "a length is too large"
        reader.problem(
            join(pointer, index), message, found=item, expected=f"an integer from 0 to {MAX_LENGTH}", spec=spec
        )
        lengths.append(1)
    return tuple(lengths)


def read_chunk_lengths(reader: Reader, value: JSON, pointer: str, shape: tuple[int, ...], spec: str) -> tuple[int, ...]:
    """Return the lengths of a regular grid's chunks: one per dimension, at least 1.

    A 0 that some writers use for empty dimensions becomes 1.
    """
    chunks = list(read_lengths(reader, value, pointer, spec))
    if is_list(value) and len(chunks) != len(shape):
        reader.problem(
            pointer,
            f"{len(chunks)} chunk lengths for {len(shape)} dimensions",
            found=value,
            expected=f"{len(shape)}, one per dimension of shape {list(shape)}",
            spec=spec,
        )
    if len(chunks) != len(shape):
        chunks = [max(length, 1) for length in shape]
    for index, (length, extent) in enumerate(zip(chunks, shape, strict=True)):
        if length == 0:
            if extent == 0:
                reader.note(join(pointer, index), "chunk length 0 of an empty dimension, read as 1", spec)
            else:
                reader.problem(
                    join(pointer, index), "a chunk length is 0", found=0, expected="an integer from 1", spec=spec
                )
            chunks[index] = 1
    return tuple(chunks)


def problem_of(error: MetadataError, pointer: str, spec: str) -> Problem:
    """Return an error of a lower layer as a problem at `pointer` or below."""
    below = error.pointer or ""
    return Problem(
        below if below.startswith(pointer) else pointer,
        error.message,
        spec=error.spec or spec,
        found=error.found,
        expected=error.expected,
        remedy=error.remedy,
        kind=type(error),
    )
