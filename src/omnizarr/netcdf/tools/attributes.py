"""Attributes of nodes of NCZarr, set and deleted as netCDF does, so that the notes of their types stay right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from omnizarr.netcdf.dataset import Dataset
from omnizarr.nodes.location import StorePath
from omnizarr.tools.edit import attrs


def set_attributes(where: StorePath, values: Mapping[str, Any], nc_type: str | None) -> None:
    """Set attributes of a node of NCZarr, all with a type of netCDF if one is given."""
    typed = {name: _typed(where, name, value, nc_type) for name, value in values.items()}
    with _opened(where) as node:
        if nc_type == "string":
            for name, value in typed.items():
                node.setncattr_string(name, value)
        else:
            node.setncatts(typed)


def delete_attributes(where: StorePath, names: Iterable[str]) -> None:
    """Delete attributes of a node of NCZarr."""
    with _opened(where) as node:
        for name in names:
            node.delncattr(name)


def _typed(where: StorePath, name: str, value: Any, nc_type: str | None) -> Any:
    is_text = isinstance(value, str) or (isinstance(value, list) and isinstance(value[0], str))
    wants_text = nc_type in ("char", "string")
    if nc_type is None:
        return value
    if is_text != wants_text:
        text = [str(each) for each in value] if isinstance(value, list) else str(value)
        if wants_text:
            return text
        raise attrs.unfit(where, name, value, nc_type)
    if wants_text:
        return value
    with np.errstate(all="ignore"):
        try:
            found = np.asarray(value).astype(attrs.TYPES[nc_type])
        except (ValueError, OverflowError) as error:
            raise attrs.unfit(where, name, value, nc_type) from error
    exact = np.asarray(value)
    if found.dtype.kind in "iu" and not np.array_equal(found.astype(object), exact.astype(object)):
        raise attrs.unfit(where, name, value, nc_type)
    return found[()]


@contextmanager
def _opened(where: StorePath) -> Iterator[Any]:
    with Dataset(where.at(""), "r+") as dataset:
        yield dataset[where.path] if where.path else dataset
