"""Readers of other formats: of files they find metadata and the places of chunks, and copy no values.

N5 hierarchies and precomputed volumes are stores. All are in `omnizarr.stores.kinds.READERS`, so that paths and
URLs can be opened.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final

from omnizarr.stores import kinds

if TYPE_CHECKING:
    from omnizarr.stores import Store
    from omnizarr.stores.kinds import Place
    from omnizarr.stores.manifests.file import File

_ENDINGS: Final = (".h5", ".hdf5", ".he5", ".hdf", ".h5ad", ".nwb")
_OF_NETCDF: Final = (".nc", ".nc3", ".nc4", ".cdf", ".netcdf")
_OF_TIFF: Final = (".tif", ".tiff", ".btf", ".tf8", ".gtiff", ".svs")
_OF_FITS: Final = (".fits", ".fit", ".fts", ".fz")
_OF_GZIPPED: Final = (".fits.gz", ".fit.gz", ".fts.gz")
_OF_GRIB: Final = (".grib", ".grib1", ".grib2", ".grb", ".grb2")
_SIGNATURE: Final = b"\x89HDF\r\n\x1a\n"


def _open_hdf5(place: Place, file: File | None = None) -> tuple[Store, str] | None:
    found: tuple[Store, str] | None = import_module("omnizarr.readers.hdf5.store").open_place(place, file)
    return found


def _open_netcdf(place: Place) -> tuple[Store, str] | None:
    """Return the store of a netCDF-4 file, which is HDF5, or of a netCDF-3 file: what is read first is read once."""
    file = None if place.path is not None else import_module("omnizarr.stores.manifests.opening").remote(place)
    if file is None and place.path is None:
        return None
    return _open_hdf5(place, file) or _open_netcdf3(place, file)


def _open_by(reader: str) -> Callable[..., tuple[Store, str] | None]:
    """Return what opens files by a module of this room. It may be told the file, where that is known already."""

    def opens(place: Place, file: File | None = None) -> tuple[Store, str] | None:
        opening = import_module("omnizarr.stores.manifests.opening")
        found: tuple[Store, str] | None = opening.open_place(reader, place, file)
        return found

    return opens


_open_netcdf3 = _open_by("netcdf3")


_HDF5: Final = kinds.Kind(
    "an HDF5 file",
    _open_hdf5,
    existing=_ENDINGS,
    heads=tuple((start, _SIGNATURE) for start in (0, 512, 1024, 2048)),
    is_foreign=True,
)

_NETCDF: Final = kinds.Kind("a netCDF file", _open_netcdf, existing=_OF_NETCDF, is_foreign=True)
_NETCDF3: Final = kinds.Kind(
    "a netCDF file", _open_netcdf3, heads=tuple((0, b"CDF" + version) for version in (b"\1", b"\2", b"\5"))
)
_TIFF: Final = kinds.Kind(
    "a TIFF file",
    _open_by("tiff"),
    existing=_OF_TIFF,
    heads=tuple((0, head) for head in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),
    is_foreign=True,
)
_FITS: Final = kinds.Kind(
    "a FITS file", _open_by("fits"), existing=_OF_FITS, heads=((0, b"SIMPLE  ="),), is_foreign=True
)


def _open_gzipped(place: Place) -> tuple[Store, str] | None:
    found: tuple[Store, str] | None = import_module("omnizarr.readers.fits.gzipped").open_place(place)
    return found


_GZIPPED: Final = kinds.Kind("a FITS file in gzip", _open_gzipped, existing=_OF_GZIPPED, is_foreign=True)
_GRIB: Final = kinds.Kind("a GRIB file", _open_by("grib"), existing=_OF_GRIB, heads=((0, b"GRIB"),), is_foreign=True)


def _open_n5(place: Place) -> tuple[Store, str] | None:
    found: tuple[Store, str] | None = import_module("omnizarr.readers.n5.store").open_place(place)
    return found


_N5: Final = kinds.Kind(
    "an N5 hierarchy", _open_n5, schemes=("n5",), endings=(".n5",), markers=(("attributes.json", b""),)
)


def _open_precomputed(place: Place) -> tuple[Store, str] | None:
    found: tuple[Store, str] | None = import_module("omnizarr.readers.precomputed.store").open_place(place)
    return found


_PRECOMPUTED: Final = kinds.Kind(
    "a volume of Neuroglancer",
    _open_precomputed,
    schemes=("precomputed",),
    endings=(".precomputed",),
    markers=(("info", b""), ("../info", b"")),  # the second: of a scale
)

kinds.READERS.update(dict.fromkeys(_ENDINGS, _HDF5))
kinds.READERS.update(dict.fromkeys(_OF_NETCDF, _NETCDF))
kinds.READERS.update(dict.fromkeys(_OF_TIFF, _TIFF))
kinds.READERS.update(dict.fromkeys(_OF_FITS, _FITS))
kinds.READERS.update(dict.fromkeys(_OF_GZIPPED, _GZIPPED))
kinds.READERS.update(dict.fromkeys(_OF_GRIB, _GRIB))
kinds.READERS["CDF"] = _NETCDF3  # no ending: found by its head
kinds.add_folders(_N5)
kinds.add_folders(_PRECOMPUTED)
