"""Writing whole datasets: from CDL, from files of netCDF, from other datasets.

Spec: NCZarr, "The NCZarr Data Model".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from omnizarr import nodes
from omnizarr.errors import OmnizarrError
from omnizarr.netcdf.dataset import Dataset
from omnizarr.netcdf.group import Group
from omnizarr.netcdf.header import GroupHeader, Source
from omnizarr.netcdf.variable import Variable


def write(
    dataset: Dataset, source: Source, *, truncate: bool = False, progress: Callable[[int], Any] | None = None
) -> None:
    """Copy a dataset into another one, which is empty: definitions, attributes with their types, and data.

    Data is moved in blocks of whole chunks.

    Parameters
    ----------
    dataset : Dataset
        Open to be written.
    source : Source
    truncate : bool
        Cut strings that are longer than their variable stores.
    progress : callable, optional
        Called with the number of bytes that each block had.

    Raises
    ------
    UnknownDataTypeError
        If a variable has a type that a program defined, before anything of it is written.
    ValueTypeError
        If a string is longer than the variable stores.
    """
    define(dataset, source.root)
    for path, header in source.root.walk():
        group = dataset[path] if path else dataset
        for name in header.variables:
            variable = group.variables[name]
            if truncate:
                variable.set_auto_truncate(True)
            try:
                _copy(variable, source, f"{path}/{name}", progress)
            except OmnizarrError as error:
                raise error.add(path=variable.full_name[1:])


def define(dataset: Dataset, root: GroupHeader) -> None:
    """Make all that a header says, without data."""
    session = dataset._session
    session.check_writable()
    with session.lock:
        _define_groups(dataset, root)
        dims = {each.path: each for group in dataset.walk() for each in group.dimensions.values()}
        for path, header in root.walk():
            group = dataset[path] if path else dataset
            for each in header.variables.values():
                group._add_variable(each, tuple(dims[name] for name in each.dimensions))


def _define_groups(group: Group, header: GroupHeader) -> None:
    group._adopt(header)
    for name, below in header.groups.items():
        _define_groups(group.createGroup(name), below)


def _copy(variable: Variable, source: Source, name: str, progress: Callable[[int], Any] | None) -> None:
    for selection in blocks(variable):
        values = source.read(name, selection)
        variable.write_raw(selection, values)
        if progress is not None:
            progress(values.nbytes)


def blocks(variable: Variable) -> Iterator[tuple[slice, ...]]:
    """Yield selections of whole chunks that together are the variable, each of a moderate size."""
    if not variable.ndim:
        yield ()
        return
    if 0 in variable.shape:
        return
    array = variable.array
    yield from nodes.blocks(array._grid, max(array.dtype.itemsize, 1))
