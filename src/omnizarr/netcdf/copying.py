"""Writing whole datasets: from CDL, from files of netCDF, from other datasets.

Spec: NCZarr, "The NCZarr Data Model".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import numpy as np

from omnizarr import nodes
from omnizarr.errors import OmnizarrError
from omnizarr.netcdf import types
from omnizarr.netcdf.dataset import Dataset
from omnizarr.netcdf.dimension import Dimension
from omnizarr.netcdf.group import Group
from omnizarr.netcdf.header import Attribute, GroupHeader, Source, VariableHeader
from omnizarr.netcdf.session import Session
from omnizarr.netcdf.variable import MAXSTRLEN, Variable

_SLAB: Final = 16 * 2**20
_GUESSED: Final = 64  # bytes of a string
_DEFAULT_MAXSTRLEN: Final = 128


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
    define(dataset, source.root, source)
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


def define(dataset: Dataset, root: GroupHeader, source: Source | None = None) -> None:
    """Make all that a header says, without data; strings as wide as those of the source are, if there is one."""
    session = dataset._session
    session.check_writable()
    with session.lock, _completing(session):
        _define_groups(dataset, root)
        dims = {each.path: each for group in dataset.walk() for each in group.dimensions.values()}
        for path, header in root.walk():
            group = dataset[path] if path else dataset
            new = []
            for each in header.variables.values():
                found = tuple(dims[name] for name in each.dimensions)
                wide = each if source is None else _wide_enough(each, f"{path}/{each.name}", found, source)
                new.append((wide, found))
            if new:
                group._add_variables(new)


@contextmanager
def _completing(session: Session) -> Iterator[None]:
    """Tell what is defined meanwhile that all its elements will be written."""
    session.is_complete = True
    try:
        yield
    finally:
        session.is_complete = False


def _wide_enough(header: VariableHeader, name: str, dims: tuple[Dimension, ...], source: Source) -> VariableHeader:
    """Return a variable of strings that stores the longest one, where nobody has said how long they may be."""
    if header.type is not types.STRING or MAXSTRLEN in header.attributes:
        return header
    longest = 0
    for selection in slabs(tuple(each.size for each in dims), _GUESSED):
        texts = source.read(name, selection).ravel().tolist()
        longest = max([longest, *(len(text.encode("utf-8", "surrogateescape")) for text in texts)])
    if longest <= _DEFAULT_MAXSTRLEN:
        return header
    width = Attribute(types.INT, np.array([longest], types.INT.dtype))
    return replace(header, special={**header.special, MAXSTRLEN: width})


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


def slabs(shape: tuple[int, ...], item_size: int) -> Iterator[tuple[slice, ...]]:
    """Yield selections that together are all of a shape, each of some 16 MiB.

    >>> list(slabs((3,), 8 * 2**20))
    [(slice(0, 2, None),), (slice(2, 3, None),)]
    """
    lengths = list(shape)
    for axis, length in enumerate(shape):
        rest = math.prod(shape[axis + 1 :]) * max(item_size, 1)
        lengths[axis] = min(length, max(_SLAB // max(rest, 1), 1))
        if lengths[axis] > 1:
            break
    steps = [range(0, length, step) if length else range(0) for length, step in zip(shape, lengths, strict=True)]
    for corner in itertools.product(*steps):
        yield tuple(
            slice(start, min(start + step, length)) for start, step, length in zip(corner, lengths, shape, strict=True)
        )


def blocks(variable: Variable) -> Iterator[tuple[slice, ...]]:
    """Yield selections of whole chunks that together are the variable, each of a moderate size."""
    if not variable.ndim:
        yield ()
        return
    if 0 in variable.shape:
        return
    array = variable.array
    yield from nodes.blocks(array._grid, max(array.dtype.itemsize, 1))
