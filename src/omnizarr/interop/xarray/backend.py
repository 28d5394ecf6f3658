"""What xarray's guide for engines tells them to use of it, and `xarray.backends` does not have."""

from typing import Any, Final

import numpy as np
from xarray.core import indexing as indexing

TEXT: Final[np.dtype[Any]] = np.dtype("O", metadata={"element_type": str})
"""Texts of any length, as objects: the data type by which xarray, as h5py, tells them from other objects."""
