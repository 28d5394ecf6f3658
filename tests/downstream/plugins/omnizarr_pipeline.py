"""A plugin of pytest: zarr-python uses the codec pipeline of omnizarr, also when tests reset its configuration."""

from __future__ import annotations

import zarr

from omnizarr.interop.zarr_python import Pipeline

PATH = f"{Pipeline.__module__}.{Pipeline.__qualname__}"
for values in zarr.config.defaults:
    if "codec_pipeline" in values:
        values["codec_pipeline"]["path"] = PATH
zarr.config.reset()
assert zarr.config.get("codec_pipeline.path") == PATH
