"""Data types: from a name in a document to a NumPy dtype, and fill values from JSON and back."""

from omnizarr.model.datatypes.data_type import DataType
from omnizarr.model.datatypes.infer import from_numpy, parse
from omnizarr.model.datatypes.registry import bind

__all__ = ["DataType", "bind", "from_numpy", "parse"]
