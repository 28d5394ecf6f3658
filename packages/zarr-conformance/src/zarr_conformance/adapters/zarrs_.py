"""zarrs, as the codec pipeline of zarr-python."""

from importlib.metadata import version

import zarr
import zarr_python
import zarrs  # noqa: F401 - registers the pipeline

zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
zarr_python.main("zarrs-python", f"{version('zarrs')} (zarr-python {zarr.__version__})")
