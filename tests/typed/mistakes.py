"""Mistakes that type checkers have to find; never run.

``make lint`` runs mypy and basedpyright on this module. Each mistake names the error that mypy must find. A
``type: ignore`` without an error is an error of either checker.
"""

import numpy as np

import omnizarr
from omnizarr import aio, netcdf


def misspelt_keywords(group: omnizarr.Group) -> None:
    """Keywords that no function has."""
    omnizarr.open_group("a.zarr", mod="r")  # type: ignore[call-arg]
    omnizarr.open_array("a.zarr", mod="r")  # type: ignore[call-arg]
    omnizarr.open("a.zarr", mod="r")  # type: ignore[call-arg]
    omnizarr.zeros(3, chnks=2)  # type: ignore[call-arg]
    omnizarr.full(3, 7, chnks=2)  # type: ignore[call-arg]
    omnizarr.zeros_like(np.zeros(3), chnks=2)  # type: ignore[call-arg]
    omnizarr.create_array("a.zarr", shpe=3)  # type: ignore[call-arg]
    omnizarr.from_array("a.zarr", data=[1], chnks=2)  # type: ignore[call-arg]
    group.create_array("a", shpe=3)  # type: ignore[call-arg]
    group.require_array("a", shape=3, chnks=2)  # type: ignore[call-arg]
    group.zeros(name="a", shape=3, chnks=2)  # type: ignore[call-arg]


def values_of_another_type(group: omnizarr.Group) -> None:
    """Keywords with values that are not valid."""
    omnizarr.create_array("a.zarr", shape=3, order="K")  # type: ignore[arg-type]
    omnizarr.open("a.zarr", mode="rw")  # type: ignore[arg-type]
    omnizarr.zeros(3, attributes=["units"])  # type: ignore[arg-type]
    omnizarr.create_group("a.zarr", overwrite="yes")  # type: ignore[arg-type]
    group.create_array("a", shape=3, missing="zero")  # type: ignore[arg-type]
    group.create_array("a", shape="3 by 4", dtype="i4")  # type: ignore[arg-type]


async def coroutines(group: aio.AsyncGroup) -> None:
    """The same of functions that are awaited."""
    await aio.zeros(3, chnks=2)  # type: ignore[call-arg]
    await aio.open_array("a.zarr", mod="r")  # type: ignore[call-arg]
    await aio.create_array("a.zarr", shape=3, order="K")  # type: ignore[arg-type]
    await group.create_array("a", shpe=3)  # type: ignore[call-arg]
    array = await group.zeros(name="a", shape=3)
    array.getitm(0)  # type: ignore[attr-defined]


def results(group: omnizarr.Group) -> None:
    """What functions return."""
    assert omnizarr.zeros(3).shpe  # type: ignore[attr-defined]
    omnizarr.open_array("a.zarr").members()  # type: ignore[attr-defined]
    group.create_array("a", shape=3).create_group("b")  # type: ignore[attr-defined]


def keywords_of_files(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    """Keywords of functions that save, and of netCDF."""
    omnizarr.save_array("a.zarr", values, chnks=2)  # type: ignore[call-arg]
    omnizarr.open_consolidated("a.zarr", mod="r")  # type: ignore[call-arg]
    omnizarr.open_like(values, "a.zarr", mod="r")  # type: ignore[call-arg]
    netcdf.Dataset("a.zarr", mod="r")  # type: ignore[call-arg]
    netcdf.Dataset("a.zarr").createVariable("a", "f4", chunksize=(1,))  # type: ignore[call-arg]


def members(group: omnizarr.Group) -> None:
    """What is in a group may be an array or a group, and in a list of members what cannot be read."""
    group["a"][:]  # type: ignore[index]
    assert group["a"].shape  # type: ignore[union-attr]
    assert group.get("a").path  # type: ignore[union-attr]
    assert group["a"].pth  # type: ignore[union-attr]
    for _, node in group.members():
        assert node.attrs  # type: ignore[union-attr]
    for node in group.values():
        assert node.shape  # type: ignore[union-attr]
    group.visititems(lambda _, node: node.shape)  # type: ignore[union-attr]
    group[0]  # type: ignore[index]
    group.get_array("a").members()  # type: ignore[attr-defined]


def elements(array: omnizarr.Array) -> None:
    """What an array returns, and takes between brackets."""
    assert array[:].shpe  # type: ignore[attr-defined]
    assert array[...].shpe  # type: ignore[attr-defined]
    assert array[0, :].shpe  # type: ignore[attr-defined]
    assert array[0, 0, 1:3].shpe  # type: ignore[attr-defined]
    assert array[[0, 2]].shpe  # type: ignore[attr-defined]
    assert array.oindex[[0, 2], 1].shpe  # type: ignore[attr-defined]
    assert array.vindex[[0, 2], [1, 1]].shpe  # type: ignore[attr-defined]
    assert array.blocks[0, 1:].shpe  # type: ignore[attr-defined]
    assert array.astype("f4")[:].shpe  # type: ignore[attr-defined]
    assert array.get_mask_selection([True]).shpe  # type: ignore[attr-defined]
    array[0.5]  # type: ignore[call-overload]
    array[0, 0.5]  # type: ignore[index]
    array[{0}]  # type: ignore[call-overload]
    array[0.5] = 1  # type: ignore[index]
    array.oindex[0.5] = 1  # type: ignore[index]
    array.get_basic_selection(0.5)  # type: ignore[arg-type]
    omnizarr.read_many([(array, 0.5)])  # type: ignore[list-item]


def datasets(dataset: netcdf.Dataset) -> None:
    """The same of netCDF."""
    dataset["a"][:]  # type: ignore[index]
    assert dataset.variables["a"][:].shpe  # type: ignore[attr-defined]
    dataset.variables["a"][0.5]  # type: ignore[call-overload]
    dataset.variables["a"][0.5] = 1  # type: ignore[index]


async def awaited_members(group: aio.AsyncGroup, array: aio.AsyncArray) -> None:
    """The same of what is awaited."""
    await (await group.getitem("a")).getitem(0)  # type: ignore[arg-type]
    assert (await group.getitem("a")).shape  # type: ignore[union-attr]
    async for _, node in group.members():
        assert node.shape  # type: ignore[union-attr]
    assert (await array.getitem(...)).shpe  # type: ignore[attr-defined]
    await array.getitem(0.5)  # type: ignore[call-overload]
    await array.setitem(0.5, 1)  # type: ignore[arg-type]
    assert (await array.info_complete()).chunk  # type: ignore[attr-defined]
