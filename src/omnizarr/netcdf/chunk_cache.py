"""The size of the cache of decoded chunks, under the names of netCDF4-python.

Spec: netCDF4-python 1.7.5, ``set_chunk_cache`` and ``get_chunk_cache``.
"""

from __future__ import annotations

import operator
from typing import Final, NamedTuple


class ChunkCache(NamedTuple):
    """The size in bytes, and two numbers of HDF5's cache, which have no effect."""

    size: int = 64 * 2**20
    nelems: int = 1000
    preemption: float = 0.75

    def changed(self, size: int | None, nelems: int | None, preemption: float | None) -> ChunkCache:
        """Return a copy with the values that are not None. Raises ValueError for invalid numbers."""
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
    """Set the size of the cache that the variables of a dataset share, for datasets that are opened from now on.

    Parameters
    ----------
    size : int, optional
        Size in bytes; 0 means no cache. The initial size is 64 MiB.
    nelems, preemption : int, float, optional
        These have no effect, but `get_chunk_cache` returns them.

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
    """Return the values of `set_chunk_cache`: size, nelems, preemption.

    Examples
    --------
    >>> from omnizarr import netcdf
    >>> netcdf.get_chunk_cache()
    (67108864, 1000, 0.75)
    """
    size, nelems, preemption = _LATEST[0]
    return size, nelems, preemption


def latest() -> ChunkCache:
    """Return the same values by name."""
    return _LATEST[0]
