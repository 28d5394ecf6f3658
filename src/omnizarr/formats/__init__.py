"""On-disk formats: documents in, model out, and back.

Each dialect is one value, `omnizarr.formats.contract.Dialect`. None of its functions does I/O, and translating a
document never needs the codecs that it names.
"""

from __future__ import annotations

from typing import Final

from omnizarr.formats.contract import Consolidated, Dialect
from omnizarr.formats.older import DRAFT2019, DRAFT2020, V0, V1
from omnizarr.formats.v2 import V2
from omnizarr.formats.v3 import V3

DIALECTS: Final[tuple[Dialect, ...]] = (V3, V2, V1, V0, DRAFT2019, DRAFT2020)
"""In the order of detection."""

__all__ = ["DIALECTS", "DRAFT2019", "DRAFT2020", "V0", "V1", "V2", "V3", "Consolidated", "Dialect"]
