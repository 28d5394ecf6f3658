"""netCDF-C, through netCDF4-python. It opens groups: the array is linked into one."""

import json
import os
import tempfile

import netCDF4
from contract import UnsupportedError, is_v3, serve


def read(path, selection):
    if path.endswith(".zip") or path.startswith("http"):
        raise UnsupportedError("arrays at the root cannot be opened")
    three = is_v3(path)
    with tempfile.TemporaryDirectory() as root:
        with open(f"{root}/{'zarr.json' if three else '.zgroup'}", "w", encoding="utf-8") as file:
            json.dump({"zarr_format": 3, "node_type": "group"} if three else {"zarr_format": 2}, file)
        os.symlink(path, f"{root}/array")
        try:
            opened = netCDF4.Dataset(f"file://{root}#mode=zarr,file")
        except OSError as error:
            if three and error.errno == -51:
                raise UnsupportedError("netCDF-C sees no Zarr v3 here") from None
            raise
        with opened as dataset:
            if "array" not in dataset.variables:
                raise UnsupportedError("netCDF-C does not list the array")
            variable = dataset.variables["array"]
            variable.set_auto_maskandscale(False)
            variable.set_always_mask(False)
            return variable[selection]


serve("netCDF-C", netCDF4.__netcdf4libversion__, read=read, unsupported=lambda error: "undefined filter" in str(error))
