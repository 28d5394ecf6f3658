"""Reading the configuration of a codec, field by field. Errors state the pointer, found and expected values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from omnizarr.errors import MetadataError
from omnizarr.model import Named
from omnizarr.support import suggestions

AnyDType = np.dtype[Any]
T = TypeVar("T")

REQUIRED: Final[Any] = object()
"""The default of a field without a default."""


class Fields:
    """The fields of one configuration.

    Parameters
    ----------
    configuration : mapping
        The configuration in the document.
    known : sequence of str
        Names of the codec's fields. Any other is an error, because ignoring it could give wrong values.
    spec : str, optional
        The specification that defines them.
    """

    def __init__(self, configuration: Mapping[str, Any], known: Sequence[str], spec: str | None = None) -> None:
        self.spec = spec
        if not isinstance(configuration, Mapping):
            raise self.reject("", "the configuration is malformed", configuration, "an object")
        self._values = configuration
        for name in configuration:
            if name not in known:
                raise MetadataError(
                    f"unknown field {name!r} in the configuration",
                    pointer=f"/configuration/{name}",
                    found=name,
                    expected=f"only {', '.join(known)}" if known else "an empty configuration",
                    remedy=suggestions.meant(str(name), known),
                    spec=spec,
                )

    def reject(self, name: str, message: str, found: object, expected: object) -> MetadataError:
        """Return the error about a field ("": about the configuration)."""
        shown = "null" if found is None else f"{found!r}"
        pointer = f"/configuration/{name}" if name else "/configuration"
        return MetadataError(message, pointer=pointer, found=shown, expected=expected, spec=self.spec)

    def codec(self, position: int, document: Any, field: str = "codecs") -> Named:
        """Return a codec of a list in a field: a name, or an object with a name."""
        if isinstance(document, Named):
            return document
        name, configuration = document, {}
        if isinstance(document, Mapping):
            name, configuration = document.get("name"), document.get("configuration", {})
        if not isinstance(name, str) or not isinstance(configuration, Mapping):
            raise self.reject(f"{field}/{position}", "malformed codec", document, "a name, or an object with a name")
        return Named(name, configuration)

    def has(self, name: str) -> bool:
        """Return whether a field exists and is not null."""
        return self._values.get(name) is not None

    def raw(self, name: str, default: Any = REQUIRED) -> Any:
        """Return the value of a field unchanged."""
        if name in self._values:
            return self._values[name]
        if default is REQUIRED:
            raise MetadataError(
                f"the configuration lacks the field {name!r}", pointer=f"/configuration/{name}", spec=self.spec
            )
        return default

    def integer(self, name: str, default: Any = REQUIRED, low: int | None = None, high: int | None = None) -> int:
        """Return an integer from `low` to `high` (both included)."""
        value = self.raw(name, default)
        if value is default and default is not REQUIRED:
            return value  # type: ignore[no-any-return]
        # JSON has only one number type, and some writers turn every number into a float.
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        inside = isinstance(value, int) and not isinstance(value, bool)
        if not inside or (low is not None and value < low) or (high is not None and value > high):
            if low is None and high is None:
                range_text = ""
            elif high is None:
                range_text = f", at least {low}"
            else:
                range_text = f" from {low} to {high}" if low is not None else f", at most {high}"
            raise self.reject(name, f"{name!r} is out of range" if inside else f"{name!r} is not an integer", value,
                              f"an integer{range_text}")  # fmt: skip
        return value  # type: ignore[no-any-return]

    def number(self, name: str, default: Any = REQUIRED) -> float:
        """Return a finite number, int or float as it is written."""
        value = self.raw(name, default)
        if value is default and default is not REQUIRED:
            return value  # type: ignore[no-any-return]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124  NaN
            raise self.reject(name, f"{name!r} is not a number", value, "a finite number")
        return value  # type: ignore[no-any-return]

    def boolean(self, name: str, default: Any = REQUIRED) -> bool:
        """Return a boolean."""
        value = self.raw(name, default)
        if not isinstance(value, bool):
            raise self.reject(name, f"{name!r} is not a boolean", value, "true or false")
        return value

    def text(self, name: str, default: Any = REQUIRED) -> str:
        """Return a string."""
        value = self.raw(name, default)
        if not isinstance(value, str):
            raise self.reject(name, f"{name!r} is not a string", value, "a string")
        return value

    def choice(self, name: str, choices: Mapping[str, T], default: Any = REQUIRED) -> T:
        """Return the value for the string in a field."""
        value = self.raw(name, default)
        if not isinstance(value, str) or value not in choices:
            raise self.reject(name, f"unknown {name!r}", value, f"one of {', '.join(map(repr, choices))}")
        return choices[value]

    def dtype(self, name: str, default: Any = REQUIRED) -> AnyDType:
        """Return the NumPy dtype of a type string of Zarr v2. It never holds objects."""
        value = self.raw(name, default)
        if isinstance(value, np.dtype):
            return value
        if value is None and default is not REQUIRED:  # in numcodecs, null means "the same as the other"
            return self.dtype_of(name, default)
        return self.dtype_of(name, value)

    def dtype_of(self, name: str, value: Any) -> AnyDType:
        """Return the NumPy dtype that `value` of a field names."""
        if isinstance(value, np.dtype):
            return value
        expected = 'a type string such as "<f4"'
        if not isinstance(value, str) or len(value) > 64 or "," in value:  # NumPy parses commas as structs
            raise self.reject(name, f"{name!r} names no data type", value, expected)
        try:
            dtype = np.dtype(value)
        except (TypeError, ValueError, SyntaxError) as error:
            raise self.reject(name, f"{name!r} names no data type", value, expected) from error
        if dtype.hasobject or dtype.itemsize == 0 or dtype.kind == "T":
            raise self.reject(name, f"{name!r} names no data type of fixed size", value, expected)
        return dtype
