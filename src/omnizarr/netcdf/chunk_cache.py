"""How many bytes of decoded chunks a dataset keeps, by the names of netCDF4-python.

Spec: netCDF4-python 1.7.5, ``set_chunk_cache`` and ``get_chunk_cache``.
"""

from __future__ import annotations

import operator
from typing import Final, NamedTuple


class ChunkCache(NamedTuple):
    """The size in bytes, and two numbers of HDF5's cache, which are without effect here."""

    size: int = 64 * 2**20
    nelems: int = 1000
    preemption: float = 0.75

    def changed(self, size: int | None, nelems: int | None, preemption: float | None) -> ChunkCache:
        """Return it with what is not None replaced. Raises ValueError if a number is none."""
        changed = ChunkCache(
            self.size if size is None else operator.index(size),
            self.nelems if nelems is None else operator.index(nelems),
            self.preemption if preemption is None else float(preemption),
        )
        if changed.size < 0 or changed.nelems < 0 or not 0 <= changed.preemption <= 1:
            raise ValueError(f"{changed}: expected size and nelems from 0 on, and a preemption from 0 to 1")
        return changed


_LATEST: Final = [ChunkCache()]


def set_chunk_cache(size: int | None = None, nelems: int | None = None, preemption: float | None = None) -> None:
    """Set how many bytes of decoded chunks the variables of a dataset share, for datasets that are opened from now on.

    Parameters
    ----------
    size : int, optional
        In bytes; 0: none are kept. It is 64 MiB until it is set.
    nelems, preemption : int, float, optional
        Without effect here, and remembered.

    Examples
    --------
    >>> from omnizarr import netcdf
    >>> before = netcdf.get_chunk_cache()
    >>> netcdf.set_chunk_cache(2**20)
    >>> netcdf.get_chunk_cache()
    (1048576, 1000, 0.75)
    >>> netcdf.set_chunk_cache(*before)
    """
    _LATEST[0] = _LATEST[0].changed(size, nelems, preemption)


def get_chunk_cache() -> tuple[int, int, float]:
    """Return what `set_chunk_cache` has set: size, nelems, preemption.

    Examples
    --------
    >>> from omnizarr import netcdf
    >>> netcdf.get_chunk_cache()
    (67108864, 1000, 0.75)
    """
    size, nelems, preemption = _LATEST[0]
    return size, nelems, preemption


def latest() -> ChunkCache:
    """Return the same, by name."""
    return _LATEST[0]
