"""Readers of files of other formats: each finds metadata and the places of chunks, and copies no values.

They are in `omnizarr.stores.kinds.READERS`, so that paths and URLs of such files can be opened.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from omnizarr.stores import kinds

if TYPE_CHECKING:
    from omnizarr.stores import Store
    from omnizarr.stores.kinds import Place

_ENDINGS: Final = (".h5", ".hdf5", ".he5", ".hdf", ".h5ad", ".nwb", ".nc", ".nc4", ".cdf", ".netcdf")
_SIGNATURE: Final = b"\x89HDF\r\n\x1a\n"


def _open_hdf5(place: Place) -> tuple[Store, str] | None:
    found: tuple[Store, str] | None = import_module("omnizarr.readers.hdf5.store").open_place(place)
    return found


_HDF5: Final = kinds.Kind(
    "an HDF5 file",
    _open_hdf5,
    existing=_ENDINGS,
    heads=tuple((start, _SIGNATURE) for start in (0, 512, 1024, 2048)),
    is_foreign=True,
)

kinds.READERS.update(dict.fromkeys(_ENDINGS, _HDF5))
