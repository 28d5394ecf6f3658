"""`omnizarr.tools.extension`: the tools do not need netCDF."""

import subprocess
import sys

from tests.structure import MODULES, room_of

WITHOUT = """
import sys
sys.modules["omnizarr.netcdf"] = None
from importlib import import_module
for module in sys.argv[1:]:
    import_module(module)
import omnizarr
from omnizarr.tools.edit import attrs
from omnizarr.tools.extension import Extension, extension
assert type(extension()) is Extension
values = {}
root = omnizarr.create_group(values, zarr_format=2, attributes={"_NCProperties": "netcdf=4.9.2", "_nczarr_group": {}})
root.create_array("x", shape=(4,), dtype="int16")[...] = 7
attrs.update(root["x"].store_path, {"units": "m"})
attrs.delete(root.store_path, ("_NCProperties",))
assert omnizarr.convert(values, "converted.zarr").verified
assert omnizarr.check("converted.zarr", data=True).ok
assert omnizarr.repair("converted.zarr", adopt=True, dry_run=False).actions == ()
assert dict(omnizarr.open("converted.zarr")["x"].attrs) == {"units": "m"}
"""


def test_tools_work_without_netcdf(tmp_path):
    tools = [module for module in MODULES if room_of(module) == "tools"]
    subprocess.run([sys.executable, "-c", WITHOUT, *tools], check=True, cwd=tmp_path)
