"""Correct programs, which type checkers have to accept, and the types that they find; never run."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import omnizarr
from omnizarr import aio, netcdf


def nodes(group: omnizarr.Group) -> float:
    """Look for arrays in a group, as programs written for zarr-python do."""
    assert_type(group["a"], omnizarr.Array | omnizarr.Group)
    assert_type(group.get("a"), omnizarr.Array | omnizarr.Group | None)
    assert_type(group.get("a", 0), omnizarr.Array | omnizarr.Group | int)
    assert_type(group.members()[0][1], omnizarr.Array | omnizarr.Group | omnizarr.UnreadableNode)
    for name, node in group.members(max_depth=None):
        if isinstance(node, omnizarr.UnreadableNode):
            raise node.error
        assert name
        assert node.attrs is not None
    found = group["a"]
    assert isinstance(found, omnizarr.Array)
    return float(found[:].mean() + group.get_array("b")[...].sum())


def elements(array: omnizarr.Array, mask: NDArray[np.bool_], where: tuple[int | slice, ...]) -> None:
    """Select in all ways there are."""
    assert_type(array[:], NDArray[Any])
    assert_type(array[...], NDArray[Any])
    assert_type(array[0, 1, 2:], NDArray[Any])
    assert_type(array[mask], NDArray[Any])
    assert_type(array[[0, 2], 1], NDArray[Any])
    assert_type(array[0], Any)
    assert_type(array[0, 1], Any)
    assert_type(array[..., 0], Any)
    assert_type(array[where], Any)
    assert array[np.int64(1)]
    assert array["field"]
    assert array[["x", "y"]]
    assert array["x", 0:3]
    assert array[range(3)].any()
    assert array.oindex[[0, 2], :, mask].any()
    assert array.vindex[mask].any()
    assert array.blocks[0, 1:].any()
    array[:] = 0
    array[0, 1:] = [1, 2]
    array[mask] = np.zeros(3)
    array[where] = array
    omnizarr.read_many([(array, slice(0, 3)), (array, (0, ...))])


def created(values: NDArray[np.float64]) -> None:
    """Use keywords of functions that create and open."""
    assert_type(omnizarr.open("a.zarr", mode="r"), omnizarr.Array | omnizarr.Group)
    omnizarr.save_array("a.zarr", values, chunks=2, overwrite=True)
    omnizarr.open_consolidated("a.zarr", mode="r", concurrency=4).tree()
    omnizarr.open_like(values, "a.zarr", mode="a", chunks=(2,)).resize(3)
    omnizarr.create_array("b.zarr", shape=(3, 4), dtype="f4", chunks=(1, 4), shards=(3, 4)).attrs["units"] = "K"


def datasets() -> None:
    """Use netCDF as programs written for netCDF4-python do."""
    with netcdf.Dataset("a.zarr", "w", clobber=False, layout="zarr", diskless=False) as dataset:
        dataset.createDimension("time")
        temp = dataset.createVariable("temp", "f4", ("time",), fill_value=-999.0)
        temp.units = "K"
        temp[0:3] = np.arange(3)
        temp[3] = 4
        assert temp[:].filled(0).any()
        assert temp[0] > 0
        assert_type(dataset["temp"], netcdf.Variable | netcdf.Group)


async def awaited(group: aio.AsyncGroup) -> None:
    """Await the same."""
    assert_type(await group.getitem("a"), aio.AsyncArray | aio.AsyncGroup)
    array = await group.get_array("a")
    assert_type(await array.getitem(...), NDArray[Any])
    assert_type(await array.oindex.getitem(([0, 2], 1)), NDArray[Any])
    await array.setitem((0, slice(3)), 1)
