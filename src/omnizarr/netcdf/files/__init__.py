"""Files of netCDF-3 and netCDF-4 as datasets: reading and writing.

>>> import tempfile, os
>>> import numpy as np
>>> from omnizarr.netcdf import types
>>> from omnizarr.netcdf.header import Attribute, DimensionHeader, GroupHeader, Source, VariableHeader
>>> root = GroupHeader(
...     dimensions={"x": DimensionHeader("x", 3)},
...     variables={"t": VariableHeader(name="t", type=types.SHORT, dimensions=("/x",))},
...     attributes={"title": Attribute.of("Example")},
... )
>>> path = os.path.join(tempfile.mkdtemp(), "example.nc")
>>> write_file(path, Source(root, lambda name, selection: np.arange(3, dtype="i2")[selection]))
()
>>> with open_file(path) as source:
...     print(source.root.attributes["title"].value, source.read("/t", (slice(0, 2),)))
Example [0 1]

Spec: NetCDF Classic Format; NetCDF-4 Format. Attribute types: xarray#10361.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Final

from omnizarr.errors import (
    MetadataError,
    MissingDependencyError,
    NodeExistsError,
    NodeNotFoundError,
    OmnizarrError,
    Remedy,
    StoreError,
)
from omnizarr.model import Loss
from omnizarr.netcdf.files.planning import Format, StoredOtherwise, plan
from omnizarr.netcdf.header import Source
from omnizarr.stores import Store, trust
from omnizarr.stores.manifests.store import ManifestStore
from omnizarr.stores.trust import References
from omnizarr.support import extras
from omnizarr.support.progress import Progress

__all__ = ["Format", "Loss", "StoredOtherwise", "is_netcdf", "open_file", "plan", "write_file"]

_CLASSIC: Final = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
_HDF5: Final = b"\x89HDF\r\n\x1a\n"


def is_netcdf(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is netCDF-3 or HDF5, by its first bytes. No library is needed.

    HDF5 may begin after a user block of 512 bytes or a doubling of that. Anything that is not a file is not
    netCDF.

    >>> is_netcdf(__file__)
    False
    """
    return _kind(Path(path)) is not None


def _kind(path: Path) -> str | None:
    """Return "classic", "hdf5" or None."""
    try:
        if not path.is_file():  # a pipe would wait for its writer
            return None
        size = path.stat().st_size
        with path.open("rb") as file:
            start = 0
            while start + len(_HDF5) <= size or start == 0:
                file.seek(start)
                magic = file.read(len(_HDF5))
                if start == 0 and magic.startswith(_CLASSIC):
                    return "classic"
                if magic == _HDF5:
                    return "hdf5"
                start = max(512, start * 2)
    except OSError:
        return None
    return None


@contextmanager
def open_file(
    path: str | os.PathLike[str], *, references: References | None = None, whole: bool = False
) -> Iterator[Source]:
    """Open a file of netCDF-3 (classic, 64-bit offset, 64-bit data) or netCDF-4 to read.

    You get everything that ``ncdump -s`` shows, with the exact types and bytes of attributes, and values in
    stored form. Variables of user-defined types are included, and attributes of types that netCDF lacks if they have
    a form in JSON. Notes tell the rest: also what is broken, missing, or has a filter without a codec.

    Neither netCDF-C nor HDF5 is needed, and several threads may read.

    Parameters
    ----------
    path : path
        A local file.
    references : {"inside", "trusted"} or list of str, optional
        Which other files an HDF5 file may use, by external links, external storage and virtual datasets: those in its
        own directory and below ("inside"); also those below these directories (a list); all that you can read
        ("trusted"). The default is the setting, and "inside" without it.
    whole : bool, optional
        Whether you read all values. Then variables of HDF5 whose index of chunks is broken are left out, with a note.
        Otherwise reading them raises the error.

    Raises
    ------
    NodeNotFoundError
        If there is no file.
    StoreAccessError
        If an HDF5 file leads out of its directory, where `references` does not allow it.
    MetadataError
        If it is not netCDF, or is broken as a whole.
    """
    yield source_at(path, references=references, whole=whole)


def source_at(path: str | os.PathLike[str], *, references: References | None = None, whole: bool = False) -> Source:
    """Return a file as `open_file` opens it: nothing of it stays open. Raises what that raises."""
    allowed = trust.of(references)
    place = Path(path).absolute()
    kind = _kind(place)
    if kind is None:
        raise _no_netcdf(place)
    from omnizarr.netcdf.files import classic, netcdf4  # noqa: PLC0415 (only what reads files needs them)

    try:
        source = classic.opened(place) if kind == "classic" else netcdf4.opened(place, allowed, whole=whole)
    except OmnizarrError as error:
        error.store = str(place)
        raise
    return source


def source_in(store: Store, *, references: References | None = None, whole: bool = False) -> Source | None:
    """Return the file that a store shows, as `open_file` does; None if that is no netCDF or HDF5 file."""
    if not isinstance(store, ManifestStore) or store.format not in {"HDF5", "netCDF-3"}:
        return None
    from omnizarr.netcdf.files import classic, netcdf4  # noqa: PLC0415 (only what reads files needs them)

    file = store.files[0]
    if store.format == "netCDF-3":
        return classic.in_store(file)
    return netcdf4.in_store(file, trust.of(references), whole=whole)


def write_file(
    path: str | os.PathLike[str],
    source: Source,
    *,
    format: Format = "NETCDF4",  # noqa: A002 (netCDF4-python's name)
    overwrite: bool = False,
    progress: Progress = None,
) -> tuple[Loss, ...]:
    """Write a dataset to a file, which appears when it is complete.

    Memory holds one block of chunks at a time. Chunks, filters, byte order and fill values of variables are
    kept if the format and netCDF4-python can express them.

    Parameters
    ----------
    path : path
        A local file.
    source : Source
        A dataset from a file, CDL, or a Zarr hierarchy.
    format : {"NETCDF4", "NETCDF4_CLASSIC", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"}
    overwrite : bool
        Whether to replace an existing file.
    progress : bool, callable or bar, optional
        As for `omnizarr.convert`.

    Returns
    -------
    tuple of Loss
        What could not be kept; `StoredOtherwise` if only chunks or filters differ. `plan` predicts this without
        writing.

    Raises
    ------
    NodeExistsError
        If the file exists and `overwrite` is False, or if there is a directory.
    NotRepresentableError
        If netCDF-C refuses something, such as a name.
    StoreError
        If the file cannot be written.
    MissingDependencyError
        If the extra ``netcdf`` is not installed.
    """
    place = Path(path).absolute()
    if place.is_dir() or (not overwrite and os.path.lexists(place)):
        remedy = None if place.is_dir() else Remedy("pass {overwrite} to replace it", overwrite=True)
        raise NodeExistsError("something is in the way", store=str(place), remedy=remedy)
    if not place.parent.is_dir():
        raise StoreError("there is no such directory", store=str(place), found=str(place.parent))
    _require("netCDF4", "h5py")
    from omnizarr.netcdf.files import writing  # noqa: PLC0415 (only what writes files needs it)

    return writing.write(place, source, format, progress)


def _no_netcdf(path: Path) -> Exception:
    if not os.path.lexists(path):
        return NodeNotFoundError("there is no such file", store=str(path))
    if not path.is_file():
        return MetadataError("this is not a file", store=str(path), expected="a netCDF-3 or netCDF-4 file")
    try:
        with path.open("rb") as file:
            found = file.read(8)
    except OSError as error:
        return MetadataError("this file cannot be read", store=str(path), found=str(error))
    return MetadataError("this is not a netCDF file", store=str(path), found=found, expected=(*_CLASSIC, _HDF5))


def _require(*modules: str) -> None:
    for module in modules:
        try:
            import_module(module)
        except ImportError as error:
            raise MissingDependencyError(
                f"netCDF files need the package {module}",
                found=str(error),
                remedy=extras.remedy("netcdf"),
            ) from error
