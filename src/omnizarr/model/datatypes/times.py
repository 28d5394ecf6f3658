"""Moments and durations: NumPy's datetime64 and timedelta64.

Spec: zarr-extensions ``numpy.datetime64``, ``numpy.timedelta64``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import numpy as np

from omnizarr.errors import MetadataError
from omnizarr.model import JSON
from omnizarr.model.datatypes.data_type import AnyDType, ByteOrder, OfDtype, bytes_of, reject, scalar_of

NAT = -(2**63)
LAST = 2**63 - 1
LARGEST_SCALE = 2**31 - 1
UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "µs", "ns", "ps", "fs", "as", "generic")
"""``μs`` in both spellings: Greek mu, and micro sign."""

KINDS = {"numpy.datetime64": "M8", "numpy.timedelta64": "m8"}
VALUES = f'an integer from {NAT} to {LAST}, or "NaT"'


class Time(OfDtype):
    """Counts of a unit, 64 bits; the lowest is NaT, "not a time"."""

    __slots__ = ()

    def default(self) -> Any:
        """Return the zero of the type."""
        return self._make(0)

    def from_json(self, value: JSON, at: str) -> Any:
        """Return the scalar for `value`."""
        if value == "NaT":
            return self._make(NAT)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise reject("the fill value is not a count of time units", at, value, VALUES)
        if not NAT <= value <= LAST:
            raise reject("the fill value is out of range", at, value, VALUES)
        return self._make(value)

    def to_json(self, scalar: Any) -> JSON:
        """Return the canonical v3 form of `scalar`."""
        # NaT is written as a number, like in zarr-python; its readers accept both.
        return int.from_bytes(bytes_of(scalar, self.dtype.newbyteorder("<")), "little", signed=True)

    def cast(self, value: Any, at: str) -> Any:
        """Return the scalar for what a user passed."""
        if isinstance(value, np.integer) and not isinstance(value, np.timedelta64):
            value = int(value)
        if isinstance(value, np.datetime64 | np.timedelta64):
            return self._converted(value, at)
        moments = dt.date | dt.timedelta | str
        if isinstance(value, moments) and value != "NaT":
            kind = np.datetime64 if self.dtype.kind == "M" else np.timedelta64
            try:
                return self._converted(kind(value), at)
            except (ValueError, TypeError, OverflowError):
                raise reject("the fill value is not a time", at, value, VALUES) from None
        return self.from_json(value, at)

    def _converted(self, value: Any, at: str) -> Any:
        """Return `value` in this unit. NumPy would silently cut off what does not fit."""
        plain = self.dtype.newbyteorder("=")
        if value.dtype.kind == plain.kind:
            if np.isnat(value):
                return self._make(NAT)
            try:
                converted = value.astype(plain)
                if converted == value and converted.astype(value.dtype) == value:
                    return converted
            except (TypeError, OverflowError):
                pass
        raise reject(f"the fill value has no exact form in {plain}", at, str(value), VALUES)

    def _make(self, count: int) -> Any:
        return scalar_of(count.to_bytes(8, "little", signed=True), self.dtype.newbyteorder("<"))


def time_dtype(kind: str, configuration: Mapping[str, JSON], byte_order: ByteOrder) -> AnyDType:
    """Return the NumPy dtype of ``"M8"`` or ``"m8"`` in the configured unit."""
    unit, scale = configuration.get("unit"), configuration.get("scale_factor", 1)
    if unit not in UNITS:
        raise MetadataError(
            "not a unit of time",
            pointer="/data_type/configuration/unit",
            found="nothing" if unit is None else unit,
            expected=" or ".join((", ".join(UNITS[:-1]), UNITS[-1])),
            spec="zarr-extensions, numpy.datetime64",
        )
    if isinstance(scale, bool) or not isinstance(scale, int) or not 1 <= scale <= LARGEST_SCALE:
        raise MetadataError(
            "not a scale factor",
            pointer="/data_type/configuration/scale_factor",
            found="null" if scale is None else scale,
            expected=f"an integer from 1 to {LARGEST_SCALE}",
            spec="zarr-extensions, numpy.datetime64",
        )
    if unit == "generic":
        return np.dtype(f"{byte_order}{kind}")
    ascii_unit = "us" if unit in ("μs", "µs") else unit
    return np.dtype(f"{byte_order}{kind}[{scale}{ascii_unit}]")


def time_configuration(dtype: AnyDType) -> dict[str, JSON]:
    """Return the configuration that describes a NumPy time dtype."""
    unit, scale = np.datetime_data(dtype)
    return {"unit": unit, "scale_factor": scale}
