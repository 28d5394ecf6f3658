"""Data types: from a name in a document to a NumPy dtype, and fill values from JSON and back.

In memory ``string`` is `numpy.dtypes.StringDType`; ``bytes`` and Python objects have the dtype ``object``. Two
names exist only in the model, and in no v3 document: ``omnizarr.object`` (Python objects; its configuration
names the object codec) and ``omnizarr.vlen_array`` (ragged arrays of ``{"data_type": ...}``). Structured types
are ``struct``; a field may have ``"shape"`` (an array within the field) and ``"byte_order"`` (if fields
differ), which only v2 can write.

`DataType.with_byte_order` gives the layout in which a ``bytes`` codec stores elements: unlike
`numpy.dtype.newbyteorder`, it does not change fields with their own order. Types of ``ml_dtypes`` are always in
the machine's order.
"""

from omnizarr.model.datatypes.data_type import DataType
from omnizarr.model.datatypes.infer import from_numpy, parse
from omnizarr.model.datatypes.registry import bind

__all__ = ["DataType", "bind", "from_numpy", "parse"]
