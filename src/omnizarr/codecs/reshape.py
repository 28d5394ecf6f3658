"""reshape, singleton_dim, zarrs.squeeze: the same elements, in C order, in another shape.

Configuration of reshape: ``shape``: one entry per dimension of the encoded array, each a size, a list of dimensions of
the decoded array whose sizes are multiplied, or once -1 for the rest.
That of singleton_dim: ``operations``: a list of ``{"insert": place}`` and ``{"remove": place}``. zarrs.squeeze has
none: it removes all dimensions of length 1.
Spec: zarr-extensions, "reshape"; its pull request "singleton_dim", as of November 2026; zarrs, "squeeze".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Final

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Configuration
from omnizarr.codecs.record import A2A, Name, Record
from omnizarr.errors import CodecError

_SPEC: Final = 'zarr-extensions, "reshape"'
_MOST_DIMENSIONS: Final = 64
"""As many as NumPy has."""


@dataclass(frozen=True, slots=True)
class Reshape:
    """Another shape."""

    decoded: ArraySpec
    encoded: ArraySpec

    def encode(self, array: AnyArray) -> AnyArray:
        """Return the array in the encoded shape."""
        return array.reshape(self.encoded.shape)

    def decode(self, array: AnyArray) -> AnyArray:
        """Return the array in the decoded shape."""
        return array.reshape(self.decoded.shape)


def bind(configuration: Configuration, decoded: ArraySpec) -> Reshape:
    """Return the codec."""
    fields = Fields(configuration, ("shape",), _SPEC)
    entries = fields.raw("shape")
    if not isinstance(entries, list | tuple) or not all(map(_is_entry, entries)):
        raise fields.reject("shape", "malformed shape", entries, "a list of sizes, lists of dimensions, or -1 (once)")
    if sum(entry == -1 for entry in entries) > 1:
        raise fields.reject("shape", "-1 occurs more than once", entries, "at most one -1")
    dims = [dim for entry in entries if not isinstance(entry, int) for dim in entry]
    if dims != sorted(set(dims)) or (dims and dims[-1] >= len(decoded.shape)):
        raise fields.reject("shape", "the input dimensions are not in order, or not there", entries,
                            f"strictly increasing dimensions below {len(decoded.shape)}")  # fmt: skip
    sizes = [entry if isinstance(entry, int) else prod(decoded.shape[dim] for dim in entry) for entry in entries]
    if -1 in sizes:
        at = sizes.index(-1)
        others = prod(sizes[:at] + sizes[at + 1 :])
        sizes[at] = prod(decoded.shape) // others if others else 0
    shape = tuple(sizes)
    if prod(shape) != prod(decoded.shape):
        raise CodecError("the shapes differ in size", pointer="/configuration/shape", found=list(entries),
                         expected=f"{prod(decoded.shape)} elements, as in {decoded.shape}", spec=_SPEC)  # fmt: skip
    _check_places(entries, shape, decoded.shape)
    return Reshape(decoded, replace(decoded, shape=shape))


def bind_singleton_dim(configuration: Configuration, decoded: ArraySpec) -> Reshape:
    """Return the codec that inserts and removes dimensions of length 1."""
    spec = 'zarr-extensions, "singleton_dim" (proposed)'
    fields = Fields(configuration, ("operations",), spec)
    operations = fields.raw("operations")
    if not isinstance(operations, list | tuple):
        raise fields.reject("operations", "no list of operations", operations, "a list")
    shape = list(decoded.shape)
    for number, operation in enumerate(operations):
        verb, place = next(iter(operation.items())) if isinstance(operation, Mapping) and operation else (None, None)
        if verb not in ("insert", "remove") or len(operation) != 1 or type(place) is not int or place < 0:
            expected = '{"insert": a place} or {"remove": a place}'
            raise fields.reject(f"operations/{number}", "not an operation", operation, expected)
        if verb == "insert" and place <= len(shape) < _MOST_DIMENSIONS:
            shape.insert(place, 1)
        elif verb == "remove" and place < len(shape) and shape[place] == 1:
            del shape[place]
        else:
            raise CodecError("the array has no such dimension", pointer=f"/configuration/operations/{number}",
                             found=dict(operation), expected=f"a place in the shape {tuple(shape)}"
                             + (", where the length is 1" if verb == "remove" else ""), spec=spec)  # fmt: skip
    return Reshape(decoded, replace(decoded, shape=tuple(shape)))


def bind_squeeze(configuration: Configuration, decoded: ArraySpec) -> Reshape:
    """Return the codec that removes dimensions of length 1."""
    Fields(configuration, (), "zarrs, squeeze")
    return Reshape(decoded, replace(decoded, shape=tuple(length for length in decoded.shape if length != 1)))


def _is_entry(entry: Any) -> bool:
    if isinstance(entry, list | tuple):
        return all(isinstance(dim, int) and not isinstance(dim, bool) and dim >= 0 for dim in entry)
    return isinstance(entry, int) and not isinstance(entry, bool) and (entry > 0 or entry == -1)


def _check_places(entries: Any, shape: tuple[int, ...], source: tuple[int, ...]) -> None:
    """Check that coordinates along input dimensions correspond to one output dimension made of them."""
    for at, entry in enumerate(entries):
        if isinstance(entry, int) or not entry:
            continue
        first, last = entry[0], entry[-1]
        before = prod(shape[:at]) == prod(source[:first])
        behind = prod(shape[at + 1 :]) == prod(source[last + 1 :])
        if not before or not behind or prod(source[first : last + 1]) != shape[at]:
            raise CodecError(
                "an output dimension does not lie where its input dimensions do",
                pointer=f"/configuration/shape/{at}", found=f"shape {shape} from {source}",
                expected="as many elements before and behind them", spec=_SPEC,
            )  # fmt: skip


CODECS = (
    Record(
        id="reshape", kind=A2A, names={"reshape": Name(bind, status="registered")}, parameters={"shape": list},
        v2="-", note="a view",
    ),
    Record(
        id="singleton_dim", kind=A2A, names={"singleton_dim": Name(bind_singleton_dim)},
        parameters={"operations": list}, v2="-", note="a view; proposed",
    ),
    Record(
        id="zarrs.squeeze", kind=A2A, names={"zarrs.squeeze": Name(bind_squeeze)}, v2="-",
        note="a view; `reshape` took its place",
    ),
)  # fmt: skip
