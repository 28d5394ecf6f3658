"""On-disk formats: documents in, model out, and back.

Each dialect is one value, `omnizarr.dialects.contract.Dialect`. None of its functions does I/O, and translating a
document never needs the codecs that it names.
"""

from __future__ import annotations

from typing import Final

from omnizarr.dialects.contract import Consolidated, Dialect
from omnizarr.dialects.older import DRAFT2019, DRAFT2020, V0, V1
from omnizarr.dialects.v2 import V2
from omnizarr.dialects.v3 import V3

DIALECTS: Final[tuple[Dialect, ...]] = (V3, V2, V1, V0, DRAFT2019, DRAFT2020)
"""In the order of detection."""

__all__ = ["DIALECTS", "DRAFT2019", "DRAFT2020", "V0", "V1", "V2", "V3", "Consolidated", "Dialect"]
