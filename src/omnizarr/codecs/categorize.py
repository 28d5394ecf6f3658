"""categorize: strings as numbers of labels.

Configuration: ``labels`` (strings), ``dtype`` ("|O" or of kind U: the type of the strings), ``astype`` ("|u1").
Agrees with numcodecs: 1 is the first label, 0 means no label and decodes to the empty string. So strings that
are not labels are lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnizarr.codecs.configuration import AnyDType, Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Configuration
from omnizarr.codecs.record import A2A, NONE, Name, Record
from omnizarr.errors import CodecError
from omnizarr.model.datatypes import bind as bind_data_type
from omnizarr.model.datatypes import from_numpy


@dataclass(frozen=True, slots=True)
class Categorize:
    """Strings as numbers."""

    labels: tuple[str, ...]
    decoded: ArraySpec
    encoded: ArraySpec

    def encode(self, array: AnyArray) -> AnyArray:
        """Return the numbers of the labels."""
        return _numbers(array, self.labels, self.encoded.dtype)

    def decode(self, array: AnyArray) -> AnyArray:
        """Return the labels."""
        # dtype of a StringDType or of objects: NumPy chooses no length, so no string is cut
        table = np.array(["", *self.labels], dtype=self.decoded.dtype)
        known = (array > 0) & (array <= len(self.labels))
        # assigned, not returned: for an array without dimensions, NumPy returns a plain string
        out = np.empty(self.decoded.shape, self.decoded.dtype)
        out[...] = table[np.where(known, array, 0).astype(np.intp).reshape(out.shape)]
        return out


def _numbers(array: AnyArray, labels: Sequence[str], dtype: AnyDType) -> AnyArray:
    out = np.zeros(array.shape, dtype)
    for number, label in enumerate(labels, start=1):
        out[array == label] = number
    return out


def bind(configuration: Configuration, decoded: ArraySpec) -> Categorize:
    """Return the codec."""
    fields = Fields(configuration, ("labels", "dtype", "astype"))
    labels: Any = fields.raw("labels")
    if not isinstance(labels, list | tuple) or not all(isinstance(label, str) for label in labels):
        raise fields.reject("labels", "malformed labels", labels, "a list of strings")
    if decoded.dtype.kind not in "UOT":
        raise CodecError("only strings have categories", found=decoded.data_type.named.name, expected="strings")
    kind = fields.raw("dtype", "|O")
    if not isinstance(kind, str) or kind.lstrip("<>|=")[:1] not in ("O", "U"):
        raise fields.reject("dtype", "'dtype' names no strings", kind, '"|O", or a type string of kind U')
    made = fields.dtype("astype", np.dtype("u1"))
    if made.kind not in "iu" or len(labels) > np.iinfo(made).max:
        raise fields.reject("astype", "'astype' cannot number all labels", made.str, "an integer type, wide enough")
    named, order = from_numpy(made)
    fill = _numbers(np.full(1, decoded.fill_value, decoded.dtype), labels, made)[0]
    return Categorize(
        tuple(labels), decoded, ArraySpec(decoded.shape, bind_data_type(named, order), fill, decoded.policy)
    )


CODECS = (
    Record(
        id="categorize", kind=A2A, names={"numcodecs.categorize": Name(bind, NONE)},
        parameters={"labels": list, "dtype": str, "astype": str}, note="other strings are lost",
        result_type=lambda given: given.get("astype", "|u1"),
    ),
)  # fmt: skip
