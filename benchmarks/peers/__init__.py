"""The compared libraries. A new peer is one module with one class (`contract`) and one entry of `PEERS`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

from benchmarks.peers.contract import Peer
from benchmarks.workloads import JOINING, WRITING, Verb

Role = Literal["ours", "peer", "variant", "floor"]


@dataclass(frozen=True)
class Entry:
    """One peer: `role` "variant" is shown, but is not who is compared with.

    `imports` is what a user imports (nothing: the same as another peer), `suffix` how the paths of its own format end
    (nothing: it reads the same Zarr arrays as the others), `verbs` what is measured (nothing: all that it can do).
    """

    label: str
    module: str
    of: str
    role: Role = "peer"
    options: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    imports: str = ""
    suffix: str = ""
    verbs: tuple[Verb, ...] = ()

    def load(self) -> Peer:
        """Import the library in this process."""
        peer: Peer = getattr(import_module(f"benchmarks.peers.{self.module}"), self.of)(**self.options)
        return peer


_WHOLE: tuple[Verb, ...] = ("read", "write", "memory", "stream", "import")
_CHUNKS: tuple[Verb, ...] = ("read", "write", "open and read", "memory", "stream")
_FUSED = "zarr.core.codec_pipeline.FusedCodecPipeline"
_OMNIZARR = "omnizarr.interop.zarr_python.Pipeline"
PEERS = {
    "omnizarr": Entry(
        "omnizarr", "omnizarr", "Omnizarr", "ours", {"engine": "native"}, {"OMNIZARR_ENGINE": "native"}, "omnizarr"
    ),
    "omnizarr-reference": Entry(
        "omnizarr (Python)", "omnizarr", "Omnizarr", "ours",
        {"engine": "reference"}, {"OMNIZARR_ENGINE": "reference"}, "omnizarr",
    ),
    "zarr-python": Entry("zarr-python", "zarr_python", "ZarrPython", imports="zarr"),
    "zarr-python-fused": Entry("zarr-python, fused", "zarr_python", "ZarrPython", options={"pipeline": _FUSED}),
    "zarrs-python": Entry(
        "zarrs-python", "zarr_python", "ZarrPython",
        options={"pipeline": "zarrs.ZarrsCodecPipeline", "package": "zarrs"}, imports="zarr, zarrs",
    ),
    "zarr-python-omnizarr": Entry(
        "zarr-python, omnizarr", "zarr_python", "ZarrPython", "variant", options={"pipeline": _OMNIZARR}, verbs=_CHUNKS
    ),
    "zarrista": Entry("zarrista", "zarrista", "Zarrista", imports="zarrista"),
    "tensorstore": Entry("TensorStore", "tensorstore", "TensorStore", imports="tensorstore"),
    "tensorstore-fsync": Entry(
        "TensorStore, fsync", "tensorstore", "TensorStore", "variant", {"sync": True}, verbs=WRITING
    ),
    "z5py": Entry("z5py", "z5py", "Z5py", imports="z5py"),
    "h5py": Entry("h5py (HDF5)", "hdf5", "H5py", imports="h5py", suffix=".h5", verbs=_WHOLE),
    "netcdf4": Entry("netCDF4 (HDF5)", "hdf5", "NetCDF4", imports="netCDF4", suffix=".nc", verbs=_WHOLE),
    "xarray": Entry("xarray", "many", "Xarray", verbs=JOINING),
    "dask": Entry("dask", "many", "Dask", verbs=JOINING),
    "virtualizarr": Entry("VirtualiZarr", "many", "VirtualiZarr", verbs=JOINING),
    "floor": Entry("floor", "floor", "Floor", "floor"),
}  # fmt: skip
