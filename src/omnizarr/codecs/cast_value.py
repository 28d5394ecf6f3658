"""cast_value: the same numbers in another data type, with rules for numbers that it cannot hold.

Configuration: ``data_type``; ``rounding`` (nearest-even if missing, towards-zero, towards-positive,
towards-negative, nearest-away); ``out_of_range`` (clamp, wrap; an error if missing); ``scalar_map``: lists
of [from, to] for ``encode`` and ``decode``, which come first.
Agrees with zarr-python 3.4 and cast-value-rs. NaN and infinities that the other type does not have are errors,
unless ``scalar_map`` maps them. A NaN in ``scalar_map`` matches any NaN.

Spec: zarr-extensions, "cast_value".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Configuration
from omnizarr.codecs.numbers import Floats, Integers, loss_of_cast, numbers_of
from omnizarr.codecs.record import A2A, Name, Record, brief
from omnizarr.errors import ChunkError, CodecError, OmnizarrError
from omnizarr.model import Named
from omnizarr.model.datatypes import DataType
from omnizarr.model.datatypes import bind as bind_data_type

_SPEC: Final = 'zarr-extensions, "cast_value"'
_ROUNDINGS: Final = ("nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away")
_WHOLE: Final[Mapping[str, Any]] = {
    "nearest-even": np.rint,
    "towards-zero": np.trunc,
    "towards-positive": np.ceil,
    "towards-negative": np.floor,
}


@dataclass(frozen=True, slots=True)
class Cast:
    """One direction: from numbers to other numbers.

    Attributes
    ----------
    source, target : Integers or Floats
    rounding : str
    out_of_range : str, optional
    pairs : tuple of (scalar, scalar)
        Replacements that come before all rules.
    error : type
        The class of the error for a number that cannot be cast.
    """

    source: Integers | Floats
    target: Integers | Floats
    rounding: str
    out_of_range: str | None
    pairs: tuple[tuple[Any, Any], ...]
    error: type[OmnizarrError]

    def __call__(self, array: AnyArray) -> AnyArray:
        """Return `array` in the target's dtype (in the machine's byte order)."""
        native = np.ascontiguousarray(array.astype(self.source.dtype, copy=False)).reshape(-1)
        with np.errstate(all="ignore"):
            hits = [_equal(native, before) for before, _ in self.pairs]
            mapped = np.logical_or.reduce(hits) if hits else None
            if mapped is None or not mapped.any():
                return self._convert(native).reshape(array.shape)
            out = np.empty(native.shape, self.target.dtype)
            out[~mapped] = self._convert(native[~mapped])
            # If keys are equal, the first counts, because it is written last.
            for hit, (_, after) in zip(reversed(hits), reversed(self.pairs), strict=True):
                out[hit] = after
        return out.reshape(array.shape)

    def _convert(self, array: NDArray[Any]) -> NDArray[Any]:
        if isinstance(self.target, Floats):
            return self._to_floats(array, self.target)
        if isinstance(self.source, Integers):
            target = self.target
            lowest, highest = max(self.source.lowest, target.lowest), min(self.source.highest, target.highest)
            wide = array.astype(np.int8) if array.dtype.kind == "V" else array  # the small integers of ml_dtypes
            outside = (wide < lowest) | (wide > highest)
            if outside.any():
                if self.out_of_range == "wrap":
                    return _wrapped(wide.astype(np.uint64), target)
                if self.out_of_range is None:
                    raise self._reject(wide[outside][0])
                wide = np.clip(wide, lowest, highest)
            return wide.astype(target.dtype)
        return self._to_integers(array, self.target)

    def _to_integers(self, array: NDArray[Any], target: Integers) -> NDArray[Any]:
        wide = array.astype(np.float64)
        if not np.isfinite(wide).all():
            raise self._reject(wide[~np.isfinite(wide)][0])
        if self.rounding != "nearest-away":
            whole = np.asarray(_WHOLE[self.rounding](wide))
        else:
            whole = np.trunc(wide)
            # values + 0.5 would round up 0.49999999999999994
            away: NDArray[Any] = np.where(np.abs(wide - whole) >= 0.5, whole + np.copysign(1.0, wide), whole)
            whole = away
        # highest + 1 is a power of two, exact as a float; highest may not be
        outside = (whole < target.lowest) | (whole >= float(target.highest + 1))
        if not outside.any():
            return _wrapped(_modulo(whole), target)
        if self.out_of_range is None:
            raise self._reject(wide[outside][0])
        wrapped = _wrapped(_modulo(whole), target)
        if self.out_of_range == "clamp":
            wrapped[outside & (whole < 0)] = target.lowest
            wrapped[outside & (whole > 0)] = target.highest
        return wrapped

    def _to_floats(self, array: NDArray[Any], target: Floats) -> NDArray[Any]:
        if isinstance(self.source, Floats) and target.dtype == self.source.dtype:
            return array
        # Small numbers of any kind are exact as float64; only 64-bit integers are not.
        exact = array if array.dtype.kind in "iu" else array.astype(np.float64)
        is_nan = np.isnan(exact) if exact.dtype.kind == "f" else np.zeros(exact.shape, bool)
        infinite = np.isinf(exact) if exact.dtype.kind == "f" else is_nan
        if (is_nan.any() and not target.has_nan) or (infinite.any() and not target.has_infinity):
            raise self._reject(exact[is_nan | infinite][0])
        special = is_nan | infinite
        rounded, too_large = _nearest(exact, target)
        rounded, too_large = _directed(exact, rounded, too_large & ~special, self.rounding, target)
        if too_large.any():
            if self.out_of_range is None:
                raise self._reject(exact[too_large][0])
            limit = np.inf if target.has_infinity else target.highest
            rounded[too_large] = np.where(exact[too_large] > 0, limit, -limit).astype(target.dtype)
        if special.any():
            rounded[special] = exact[special].astype(target.dtype)
        return rounded

    def _reject(self, value: Any) -> OmnizarrError:
        return self.error(
            "a number has no place in the other data type",
            found=str(value),
            expected=f"a number that {self.target.dtype.name} can hold",
            remedy='set "out_of_range" or a "scalar_map" of the codec',
            spec=_SPEC,
        )


@dataclass(frozen=True, slots=True)
class CastValue:
    """Numbers of another data type."""

    decoded: ArraySpec
    encoded: ArraySpec
    forward: Cast
    backward: Cast

    @property
    def loss(self) -> str:
        """What numbers lose in the other data type."""
        before, after = self.forward.source, self.forward.target
        if isinstance(after, Integers):
            found = "" if isinstance(before, Integers) else f"fractions ({self.forward.rounding})"
        else:
            found = loss_of_cast(before.dtype, after.dtype)
        limit = self.forward.out_of_range
        if isinstance(before, Integers) and isinstance(after, Integers):
            fits = after.lowest <= before.lowest and before.highest <= after.highest
        else:
            fits = not found
        if limit is None or fits:
            return found
        return "; ".join(filter(None, (found, f"numbers that {after.dtype.name} cannot hold ({limit})")))

    def encode(self, array: AnyArray) -> AnyArray:
        """Return the array in the encoded data type."""
        return self.forward(array).astype(self.encoded.dtype, copy=False)

    def decode(self, array: AnyArray) -> AnyArray:
        """Return the array in the decoded data type."""
        return self.backward(array).astype(self.decoded.dtype, copy=False)


def _equal(array: NDArray[Any], key: Any) -> NDArray[Any]:
    if key != key:  # noqa: PLR0124  NaN
        return np.asarray(np.isnan(array))
    return np.asarray(array == key)


def _modulo(whole: NDArray[Any]) -> NDArray[Any]:
    """Return whole float64 modulo 2**64, as unsigned integers; exact, however large they are."""
    rest = np.fmod(whole, 2.0**64)
    magnitude = np.abs(rest).astype(np.uint64)
    words: NDArray[Any] = np.where(rest < 0, np.uint64(0) - magnitude, magnitude)
    return words


def _wrapped(words: NDArray[Any], target: Integers) -> NDArray[Any]:
    """Return integers modulo 2**64 modulo 2**bits, as two's complement says it."""
    width = 8 * target.dtype.itemsize
    wide: NDArray[Any] = words.astype(np.uint64)
    if target.bits < 64:
        wide &= np.uint64((1 << target.bits) - 1)
    signed = wide.view(np.int64)
    if target.lowest < 0 and target.bits < 64:
        signed = np.where(signed > target.highest, signed - (1 << target.bits), signed)
    if width == 8 and target.dtype.kind == "V":
        return signed.astype(np.int8).astype(target.dtype)
    return signed.astype(target.dtype)


def _nearest(exact: NDArray[Any], target: Floats) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the numbers rounded to nearest, ties to even, and which are too large for that.

    Where they are too large the largest number of the type is returned, with their sign.
    """
    if exact.dtype.kind in "iu" and target.dtype.itemsize < 4:
        # Integers from 2**53 on are not exact float64, but far beyond these types, or rounded by few bits only:
        # odd rounding keeps the second rounding right.
        values = exact.astype(np.float64)
        order = _compare(exact, values)
        words = values.view(np.int64)
        towards = np.where(order * np.sign(values) < 0, -1, 0)
        chopped = words + towards
        odd: NDArray[Any] = np.where(order == 0, words, chopped | 1)
        exact = odd.view(np.float64)
    half = target.highest + (target.beyond - target.highest) / 2
    size = np.abs(exact.astype(np.float64)) if exact.dtype.kind in "iu" else np.abs(exact)
    too_large = size >= half
    rounded = np.where(too_large, exact.dtype.type(0), exact).astype(target.dtype)
    if too_large.any():
        rounded[too_large] = np.where(exact[too_large] > 0, target.highest, -target.highest).astype(target.dtype)
    return rounded, too_large


def _compare(exact: NDArray[Any], rounded: NDArray[Any]) -> NDArray[Any]:
    """Return the sign of ``exact - rounded``, without an error of rounding."""
    wide = rounded.astype(np.float64)
    if exact.dtype.kind not in "iu":
        return np.sign(exact - wide)
    info = np.iinfo(exact.dtype)
    above = wide >= float(info.max) + 1 if info.bits < 64 else wide >= 2.0 ** (64 if info.min == 0 else 63)
    below = wide < info.min
    inside = np.where(above | below, 0.0, wide).astype(exact.dtype)
    order = (exact > inside).astype(np.int8) - (exact < inside).astype(np.int8)
    return np.where(above, -1, np.where(below, 1, order))


def _directed(
    exact: NDArray[Any], nearest: NDArray[Any], too_large: NDArray[Any], rounding: str, target: Floats
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return numbers rounded by another rule, and which are too large. The input is rounded to nearest."""
    if rounding == "nearest-even":
        return nearest, too_large
    order = _compare(exact, nearest)
    order = np.where(np.isnan(order), 0, order)
    sign = np.sign(exact.astype(np.float64))
    if rounding == "nearest-away":
        return _ties_away(exact, nearest, order, target), too_large
    wanted = {"towards-zero": -sign, "towards-positive": np.ones_like(sign), "towards-negative": -np.ones_like(sign)}
    direction = wanted[rounding]
    # Rounded away from zero they are at `beyond`, unless they are between `highest` and there and are rounded
    # towards zero.
    size = np.abs(exact.astype(np.float64))
    inwards = direction * sign < 0
    beyond = (size >= target.beyond) | ((size > target.highest) & ~inwards)
    too_large = beyond & np.isfinite(size)
    step = (order != 0) & (np.sign(order) == direction) & (size <= target.highest)
    moved = nearest.copy()
    if step.any():
        moved[step] = _next(nearest[step], direction[step], target)
    return moved, too_large


def _ties_away(exact: NDArray[Any], nearest: NDArray[Any], order: NDArray[Any], target: Floats) -> NDArray[Any]:
    """Return numbers rounded to nearest with ties away from zero."""
    positive = exact > 0
    # Only numbers rounded towards zero can be ties that should have gone the other way.
    inner = ((order > 0) & positive) | ((order < 0) & ~positive)
    moved = nearest.copy()
    if not inner.any():
        return moved
    sign = np.where(positive[inner], 1.0, -1.0)
    outer = _next(nearest[inner], sign, target)
    part = exact[inner]
    if part.dtype.kind in "iu":
        near, far = (rounded.astype(np.float64) for rounded in (nearest[inner], outer))
        step = np.abs(far - near)
        # Both are within 2**64: the difference to the integer is small, and exact.
        rest = np.abs(_difference(part, near))
        tie = rest * 2 == step
    else:
        tie = np.abs(part - nearest[inner].astype(np.float64)) == np.abs(outer.astype(np.float64) - part)
    moved[inner] = np.where(tie, outer, nearest[inner])
    return moved


def _difference(integers: NDArray[Any], near: NDArray[Any]) -> NDArray[Any]:
    """Return integers minus floats close to them, as float64."""
    words = integers.astype(np.uint64) - _modulo(near)
    difference: NDArray[Any] = words.view(np.int64).astype(np.float64)
    return difference


def _next(values: NDArray[Any], direction: NDArray[Any], target: Floats) -> NDArray[Any]:
    """Return the neighbour of each number in the direction of a sign."""
    if target.dtype.name in ("float16", "float32", "float64"):
        return np.asarray(np.nextafter(values, (direction * np.inf).astype(target.dtype)))
    table = _all_values(target.dtype)
    at = np.searchsorted(table, values.astype(np.float64))
    return table[np.clip(at + direction.astype(np.intp), 0, len(table) - 1)].astype(target.dtype)


@lru_cache(maxsize=16)
def _all_values(dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return all finite numbers of a small type, in order."""
    words = np.arange(1 << 8 * dtype.itemsize, dtype=f"u{dtype.itemsize}")
    with np.errstate(all="ignore"):
        values = words.view(dtype).astype(np.float64)
    return np.unique(values[np.isfinite(values)])


def bind(configuration: Configuration, decoded: ArraySpec) -> CastValue:
    """Return the codec."""
    fields = Fields(configuration, ("data_type", "rounding", "out_of_range", "scalar_map"), _SPEC)
    data_type = _data_type(fields, decoded.data_type)
    source, target = numbers_of(decoded.data_type), numbers_of(data_type)
    for one, name in ((source, decoded.data_type.named.name), (target, data_type.named.name)):
        if one is None:
            raise CodecError("only real numbers can be cast", found=name,
                             expected="a floating-point or integer type", spec=_SPEC)  # fmt: skip
    rounding = fields.choice("rounding", {name: name for name in _ROUNDINGS}, "nearest-even")
    out_of_range = None
    if fields.raw("out_of_range", None) is not None:
        out_of_range = fields.choice("out_of_range", {"clamp": "clamp", "wrap": "wrap"})
    if out_of_range == "wrap" and not isinstance(target, Integers):
        raise fields.reject("out_of_range", "only integers wrap around", "wrap", "clamp, or none")
    document = fields.raw("scalar_map", None)
    if document is None:
        document = {}
    elif not isinstance(document, Mapping) or not document.keys() <= {"encode", "decode"}:
        raise fields.reject("scalar_map", "malformed map of scalars", document, 'an object of "encode" and "decode"')
    encode = _pairs(fields, document.get("encode", ()), "encode", decoded.data_type, data_type)
    decode = _pairs(fields, document.get("decode", ()), "decode", data_type, decoded.data_type)
    forward = Cast(source, target, rounding, out_of_range, encode, CodecError)  # type: ignore[arg-type]
    # Floats do not wrap; in the other direction the rule has no effect.
    back = out_of_range if out_of_range != "wrap" or isinstance(source, Integers) else None
    backward = Cast(target, source, rounding, back, decode, ChunkError)  # type: ignore[arg-type]
    fill = _fill(decoded, forward, backward)
    encoded = ArraySpec(decoded.shape, data_type, fill.astype(data_type.dtype)[()], decoded.policy)
    return CastValue(decoded, encoded, forward, backward)


def _data_type(fields: Fields, decoded: DataType) -> DataType:
    document = fields.raw("data_type")
    configuration: Any = {}
    name = document
    if isinstance(document, Mapping):
        name, configuration = document.get("name"), document.get("configuration", {})
    if not isinstance(name, str) or not isinstance(configuration, Mapping):
        raise fields.reject("data_type", "malformed data type", document, "a name, or an object with a name")
    try:
        return bind_data_type(Named(name, configuration), decoded.byte_order)
    except OmnizarrError as error:
        error.pointer = "/configuration/data_type"
        raise


def _pairs(fields: Fields, document: Any, name: str, source: DataType, target: DataType) -> tuple[tuple[Any, Any], ...]:
    is_list = isinstance(document, Sequence) and not isinstance(document, str)
    if not is_list or any(not isinstance(pair, list | tuple) or len(pair) != 2 for pair in document):
        raise fields.reject(f"scalar_map/{name}", "malformed map of scalars", document, "a list of [from, to]")
    pairs = []
    for position, (before, after) in enumerate(document):
        try:
            pairs.append((_scalar(source, before), _scalar(target, after)))
        except OmnizarrError as error:
            error.pointer = f"/configuration/scalar_map/{name}/{position}"
            raise
    return tuple(pairs)


def _scalar(data_type: DataType, value: Any) -> Any:
    return np.asarray(data_type.fill_from_json(value)).astype(data_type.dtype.newbyteorder("="))[()]


def _fill(decoded: ArraySpec, forward: Cast, backward: Cast) -> NDArray[Any]:
    """Return the encoded fill value, after checking that it can be decoded again."""
    before = np.asarray(decoded.fill_value, decoded.dtype).astype(forward.source.dtype)
    try:
        fill = forward(before)
        after = backward(fill)
    except OmnizarrError as error:
        raise CodecError(f"the fill value cannot be cast: {error.message}", pointer="/fill_value", found=error.found,
                         expected=error.expected, remedy=error.remedy, spec=_SPEC) from error  # fmt: skip
    with np.errstate(all="ignore"):
        if not (after == before or (after != after and before != before)):  # noqa: PLR0124  NaN
            raise CodecError("the fill value does not survive being cast and back", pointer="/fill_value",
                             found=str(after), expected=str(before), spec=_SPEC)  # fmt: skip
    return fill


CODECS = (
    Record(
        id="cast_value", kind=A2A, names={"cast_value": Name(bind, status="registered")},
        parameters={"data_type": object, "rounding": str, "out_of_range": str, "scalar_map": dict}, v2="-",
        note="by the rules given", words=lambda given: f"as {brief(given.get('data_type', '?'))}", is_inexact=True,
        remedy="re-encode with numcodecs.astype, or write v3",
    ),
)  # fmt: skip
