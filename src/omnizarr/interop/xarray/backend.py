"""Names that xarray's guide for engines recommends and `xarray.backends` lacks."""

from typing import Any, Final

import numpy as np
from xarray.core import indexing as indexing

TEXT: Final[np.dtype[Any]] = np.dtype("O", metadata={"element_type": str})
"""Data type of strings of variable length. xarray and h5py distinguish them by it from other objects."""
