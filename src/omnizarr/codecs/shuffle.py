"""shuffle: the first bytes of all items, then their second bytes, and so on.

Configuration: ``elementsize``. If it is missing or null (netCDF-C, zarr-python) or 0 (netCDF-C), it is the item
size; a string of digits means the number. Documents of Zarr v2 that omit it mean 4, which their dialect fills
in. Agrees with numcodecs. If the size is not a multiple of the item size, which numcodecs refuses, the
remaining bytes stay unchanged at the end, as in HDF5. netCDF-C stores a shuffle after a checksum in this way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration, Description
from omnizarr.codecs.record import B2B, MOST, Filter, Name, Record
from omnizarr.codecs.streams import check_size

_LARGEST: Final = 2**31 - 1
_FEW: Final = 32


@dataclass(frozen=True, slots=True)
class Shuffle:
    """The byte shuffle of HDF5."""

    item_size: int
    decoded: BytesSpec

    @property
    def encoded(self) -> BytesSpec:
        """The same size."""
        return replace(self.decoded, item_size=1)

    def describe_native(self, _spec: BytesSpec) -> Description | None:
        """Return what the native engine takes; see `omnizarr.codecs.chain.describe_chain`."""
        return "shuffle", self.item_size

    def encode(self, data: Buffer) -> Buffer:
        """Return the shuffled bytes."""
        if self.item_size == 1 or len(data) < self.item_size:
            return data
        out = np.empty(len(data), np.uint8)
        self._transpose(np.frombuffer(data, np.uint8), out, len(data) // self.item_size, self.item_size)
        return out.data

    def decode(self, data: Buffer) -> Buffer:
        """Return the bytes in their original order."""
        check_size(len(data), self.decoded)
        if self.item_size == 1 or len(data) < self.item_size:
            return data
        out = np.empty(len(data), np.uint8)
        self.decode_into(data, out.data)
        return out.data

    def decode_into(self, data: Buffer, out: memoryview) -> None:
        """Fill `out` with the bytes in their original order."""
        check_size(len(data), BytesSpec(len(out)))
        if self.item_size == 1 or len(data) < self.item_size:
            out[:] = data
            return
        self._transpose(
            np.frombuffer(data, np.uint8), np.frombuffer(out, np.uint8), self.item_size, len(data) // self.item_size
        )

    def _transpose(self, data: NDArray[Any], out: NDArray[Any], rows: int, columns: int) -> None:
        whole = rows * columns
        source, target = data[:whole].reshape(rows, columns), out[:whole].reshape(columns, rows)
        if rows <= _FEW:
            # Otherwise NumPy iterates along the short axis, which takes three times as long.
            for row in range(rows):
                target[:, row] = source[row]
        else:
            np.copyto(target, source.T)
        out[whole:] = data[whole:]


def bind(configuration: Configuration, decoded: BytesSpec) -> Shuffle:
    """Return the codec."""
    fields = Fields(configuration, ("elementsize",))
    value = fields.raw("elementsize", None)
    if value is None:
        size = 0
    elif isinstance(value, str) and value.isdecimal() and value.isascii():
        size = int(value[:10])
    else:
        size = fields.integer("elementsize", low=0, high=_LARGEST)
    return Shuffle(size or decoded.item_size, decoded)


CODECS = (
    Record(
        id="shuffle", kind=B2B, names={"numcodecs.shuffle": Name(bind, MOST), "shuffle": Name(bind)},
        parameters={"elementsize": int}, note="NumPy", native=True, words="bytes shuffled",
        hdf5=Filter(2, 0, lambda _parameters, item_size: {"elementsize": item_size}, lambda _given: ()),
        replaced_by=lambda _given, _item_size: None,
    ),
)  # fmt: skip
