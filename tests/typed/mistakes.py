"""Mistakes that type checkers have to find; never run.

``make lint`` runs mypy on this module. Each mistake names the error that mypy must find. A
``type: ignore`` without an error is an error too.
"""

import numpy as np

import omnizarr
from omnizarr import aio


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
    """Keywords with values that make no sense."""
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
