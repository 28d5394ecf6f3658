"""Data types: from a name in a document to a NumPy dtype, and fill values from JSON and back."""

from omnizarr.datatypes.data_type import DataType
from omnizarr.datatypes.infer import from_numpy, parse
from omnizarr.datatypes.registry import bind

__all__ = ["DataType", "bind", "from_numpy", "parse"]
