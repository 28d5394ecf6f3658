"""Hierarchies over HTTP: any format as Zarr v3 or v2, or the stored bytes unchanged; needs the extra ``serve``."""

from __future__ import annotations

from importlib.util import find_spec

from omnizarr.errors import MissingDependencyError
from omnizarr.support import extras

if find_spec("starlette") is None or find_spec("uvicorn") is None:
    raise MissingDependencyError(
        "serving over HTTP needs the packages starlette and uvicorn", remedy=extras.remedy("serve")
    )
