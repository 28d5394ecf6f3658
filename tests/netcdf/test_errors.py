"""What omnizarr raises where netCDF-C returns a code: docs/netcdf.md, "Errors". The codes are those of netcdf.h."""

import builtins
import json
import re
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from omnizarr import errors, netcdf

pytestmark = pytest.mark.rules

PAGE = Path(__file__).parents[2] / "docs" / "netcdf.md"
ROWS = re.findall(r"^\| (`NC_.*?) \| .*? \| (.*?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
RAISED = {
    code: tuple(getattr(errors, name, None) or getattr(builtins, name) for name in re.findall(r"`(\w+)`", raised))
    for codes, raised in ROWS
    for code in re.findall(r"NC_\w+", codes)
}


@pytest.fixture
def ds():
    ds = netcdf.Dataset({}, "w")
    ds.createDimension("x", 3)
    ds.createVariable("v", "i2", ("x",))
    ds.setncatts({"a": "1", "b": "2"})
    return ds


def stored(ds):
    """Return what the store of a dataset holds."""
    store = ds["v"].array.store
    return {key: bytes(store.get(key)) for key in store.list()}


def closed(ds):
    ds.close()
    return ds["v"][:]


def reading_only(ds):
    netcdf.Dataset(stored(ds), "r").createDimension("y", 2)


def unknown_filter(ds):
    values = stored(ds)
    document = json.loads(values["v/.zarray"])
    values["v/.zarray"] = json.dumps({**document, "compressor": {"id": "enigma"}}).encode()
    values["v/0"] = b"\0" * 6
    netcdf.Dataset(values)["v"][:]


def no_dataset(_):
    Path("notes.txt").write_text("no data")
    netcdf.Dataset("notes.txt")


def without_obstore(_):
    with mock.patch.dict(sys.modules, {"obstore": None, "obstore.store": None}):
        netcdf.Dataset("http://127.0.0.1:1/x.zarr#mode=zarr")


def nobody_there(_):
    options = {"access_key_id": "a", "secret_access_key": "b", "region": "us-east-1", "max_retries": 0}
    netcdf.Dataset("http://127.0.0.1:1/bucket/x.zarr#mode=nczarr,s3", storage_options=options)


ACTIONS = {
    "NC_EBADID": closed,
    "NC_EBADGRPID": closed,
    "NC_ENOTVAR": lambda ds: ds["nope"],
    "NC_ENOGRP": lambda ds: ds["nope/v"],
    "NC_EBADDIM": lambda ds: ds.createVariable("w", "f4", ("nope",)),
    "NC_ENOTATT": lambda ds: ds.getncattr("nope"),
    "NC_EPERM": reading_only,
    "NC_EACCESS": reading_only,
    "NC_EEXIST": lambda ds: netcdf.Dataset(stored(ds), "x"),
    "NC_ENAMEINUSE": lambda ds: ds.createDimension("x", 2),
    "NC_EOBJECT": lambda ds: ds.createGroup("v"),
    "NC_EATTEXISTS": lambda ds: ds.renameAttribute("a", "b"),
    "NC_ENOTFOUND": lambda _: netcdf.Dataset("nothing.zarr"),
    "NC_ENOOBJECT": lambda _: netcdf.Dataset({}),
    "NC_EEMPTY": lambda _: netcdf.Dataset({}),
    "NC_EINVALCOORDS": lambda ds: ds["v"][3],
    "NC_EEDGE": lambda ds: ds["v"].__setitem__(3, 1),
    "NC_ESTRIDE": lambda ds: ds["v"][0:3:0],
    "NC_ERANGE": lambda ds: ds["v"].__setitem__(0, 70000),
    "NC_ECHAR": lambda ds: ds["v"].__setitem__(0, "x"),
    "NC_EBADTYPE": lambda ds: ds.createVariable("w", np.dtype([("a", "i4")])),
    "NC_EBADTYPID": lambda ds: ds.createVariable("w", "nope"),
    "NC_EBADNAME": lambda ds: ds.createDimension("a/b", 2),
    "NC_EDIMSIZE": lambda ds: ds.createDimension("y", -1),
    "NC_EBADCHUNK": lambda ds: ds.createVariable("w", "i2", ("x",), chunksizes=(4,)),
    "NC_EFILTER": lambda ds: ds.createVariable("w", "i2", ("x",), compression="zlib", complevel=99),
    "NC_ENOFILTER": unknown_filter,
    "NC_ELATEFILL": lambda ds: ds["v"].setncattr("_FillValue", 1),
    "NC_ENOTNC": no_dataset,
    "NC_ENOTZARR": no_dataset,
    "NC_ENCZARR": lambda _: netcdf.Dataset({".zgroup": b"{"}),
    "NC_EZARRMETA": lambda _: netcdf.Dataset({".zgroup": b'{"zarr_format": 7}'}),
    "NC_EURL": lambda _: netcdf.Dataset("file://x.zarr#mode=nonsense"),
    "NC_ENOTBUILT": without_obstore,
    "NC_ES3": nobody_there,
}


def test_page_tells_of_every_code_once():
    assert sorted(code for codes, _ in ROWS for code in re.findall(r"NC_\w+", codes)) == sorted(ACTIONS)


@pytest.mark.parametrize("code", ACTIONS)
def test_error_is_the_one_that_the_page_names(ds, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RAISED[code][0]) as caught:
        ACTIONS[code](ds)
    assert [each.__name__ for each in RAISED[code] if not isinstance(caught.value, each)] == []
