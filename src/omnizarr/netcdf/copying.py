"""Writing whole datasets: from CDL, from netCDF files, from other datasets.

Spec: NCZarr, "The NCZarr Data Model".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from omnizarr.errors import OmnizarrError
from omnizarr.netcdf import chars, stored, types
from omnizarr.netcdf.attributed import checked_name
from omnizarr.netcdf.group import Group
from omnizarr.netcdf.header import Attribute, GroupHeader, Selection, Source, VariableHeader
from omnizarr.netcdf.session import Session
from omnizarr.netcdf.types import NcType
from omnizarr.netcdf.variable import MAXSTRLEN, Variable
from omnizarr.nodes import creating
from omnizarr.support.progress import Tick, silent

if TYPE_CHECKING:
    from omnizarr.netcdf.dataset import Dataset
    from omnizarr.nodes.array import Array

DEFAULT_MAXSTRLEN: Final = "_nczarr_default_maxstrlen"
_SLAB: Final = 16 * 2**20
_GUESSED: Final = 64  # bytes of a string
_DEFAULT_MAXSTRLEN: Final = 128


def write(
    dataset: Dataset,
    source: Source,
    *,
    root: GroupHeader | None = None,
    truncate: bool = False,
    tick: Tick = silent,
    on_change: Callable[[str], Any] | None = None,
    on_copied: Callable[[str], Any] | None = None,
) -> None:
    """Copy a dataset into another one, which is empty: definitions, attributes with their types, and data.

    Data is moved in blocks of whole chunks. Where the source is an array that stores the same chunks, they are copied
    byte for byte, and of arrays with very many chunks only those that are stored are looked at.

    Parameters
    ----------
    dataset : Dataset
        An empty dataset that is open for writing.
    source : Source
    root : GroupHeader, optional
        The header to define. The default is the header of the source, as `fitted` returns it.
    truncate : bool
        Whether to cut strings that are longer than their variable allows.
    tick : callable, optional
        Called with the number of bytes of each block.
    on_change : callable, optional
        Called with the full name of each variable whose strings contain invalid UTF-8, if strings must be
        UTF-8. The invalid bytes become U+FFFD.
    on_copied : callable, optional
        Called with the full name of each variable whose chunks were all copied byte for byte.

    Raises
    ------
    UnknownDataTypeError
        If a variable has a user-defined type. Nothing of it has been written then.
    ValueTypeError
        If a string is longer than the variable allows.
    """
    define(dataset, fitted(dataset, source) if root is None else root)
    for path, header in source.root.walk():
        group = dataset[path] if path else dataset
        for name in header.variables:
            variable = group.variables[name]
            if truncate:
                variable.set_auto_truncate(True)
            try:
                done = _copy(variable, source, f"{path}/{name}", tick)
            except OmnizarrError as error:
                raise error.add(path=variable.full_name[1:])
            if not done.is_same and on_change is not None:
                on_change(variable.full_name)
            if done.is_copied and on_copied is not None:
                on_copied(variable.full_name)


def define(dataset: Dataset, root: GroupHeader) -> None:
    """Define everything in a header, without data. All elements are to be written afterwards."""
    session = dataset._session
    session.check_writable()
    with session.lock, _completing(session):
        _define_groups(dataset, root)
        dims = {each.path: each for group in dataset.walk() for each in group.dimensions.values()}
        for path, header in root.walk():
            group = dataset[path] if path else dataset
            new = [(each, tuple(dims[name] for name in each.dimensions)) for each in header.variables.values()]
            if new:
                group._add_variables(new)


@contextmanager
def _completing(session: Session) -> Iterator[None]:
    """State that all elements of what is defined meanwhile will be written."""
    session.is_complete = True
    try:
        yield
    finally:
        session.is_complete = False


def fitted(dataset: Dataset, source: Source, *, beyond: bool = False) -> GroupHeader:
    """Return the header of a source, with strings as wide as the longest one if the dataset limits their length.

    `beyond`: also if the source states a maximum length, by ``_nczarr_maxstrlen`` of a variable or
    ``_nczarr_default_maxstrlen`` of the root.
    """
    if dataset._session.layout.has_long_strings:
        return source.root
    default = source.root.attributes.get(DEFAULT_MAXSTRLEN)
    limit = _DEFAULT_MAXSTRLEN if default is None else _number(default)
    return _fitted(source.root, "", source, limit if beyond else max(limit, _DEFAULT_MAXSTRLEN), beyond=beyond)


def _fitted(group: GroupHeader, path: str, source: Source, limit: int, *, beyond: bool) -> GroupHeader:
    variables = {
        name: _wide_enough(each, f"{path}/{name}", source, limit, beyond=beyond)
        for name, each in group.variables.items()
    }
    groups = {
        name: _fitted(each, f"{path}/{name}", source, limit, beyond=beyond) for name, each in group.groups.items()
    }
    return replace(group, variables=variables, groups=groups)


def _wide_enough(header: VariableHeader, name: str, source: Source, limit: int, *, beyond: bool) -> VariableHeader:
    """Return a variable of strings that is wide enough for the longest one."""
    said = header.attributes.get(MAXSTRLEN)
    if header.type is not types.STRING or (said is not None and not beyond):
        return header
    sizes = source.root.sizes()
    longest = 0
    shape, array = tuple(sizes[each].size for each in header.dimensions), source.array(name)
    found = None if array is None else stored.regions(shape, [array])
    for selection in slabs(shape, _GUESSED) if found is None else found:
        texts = source.read(name, selection).ravel().tolist()
        longest = max([longest, *(len(text.encode("utf-8", "surrogateescape")) for text in texts)])
    if longest <= (limit if said is None else _number(said)):
        return header
    width = Attribute(types.INT, np.array([longest], types.INT.dtype))
    if said is not None:
        return replace(header, attributes={**header.attributes, MAXSTRLEN: width})
    return replace(header, special={**header.special, MAXSTRLEN: width})


def _number(attribute: Attribute) -> int:
    """Return a single positive integer; the default limit of strings if an attribute is not one."""
    value = attribute.python
    is_one = isinstance(value, int | np.integer) and value > 0
    return int(value) if is_one else _DEFAULT_MAXSTRLEN


def _define_groups(group: Group, header: GroupHeader) -> None:
    group._adopt(header)
    for name in header.groups:
        group._refuse(checked_name(name), group._variables, "variable")
    group._add_groups([GroupHeader(name=name) for name in header.groups if name not in group._groups])
    for name, below in header.groups.items():
        _define_groups(group._groups[name], below)


class _Done(NamedTuple):
    """How the data of a variable was copied: unchanged, and byte for byte."""

    is_same: bool
    is_copied: bool


def _copy(variable: Variable, source: Source, name: str, tick: Tick) -> _Done:
    """Copy the data of a variable."""
    is_utf8 = variable.nctype is types.STRING and variable._session.layout.has_long_strings
    is_same = True
    array = source.array(name)
    left = None if array is None else _copied(variable, array, tick)
    for selection in _parts(variable, array) if left is None else left:
        values = source.read(name, selection)
        written = chars.as_utf8(values) if is_utf8 else values
        is_same &= written is values
        variable.write_raw(selection, written)
        tick(values.nbytes)
    return _Done(is_same, is_copied=left is not None and not left)


def _copied(variable: Variable, array: Array, tick: Tick) -> list[Selection] | None:
    """Copy chunks byte for byte, and return the selections that are left; None if this cannot be done."""
    target = variable.array
    if variable._encode is not None or not isinstance(variable.nctype, NcType) or variable.nctype.is_text:
        return None
    if array.shape != target.shape or not array.shape:
        return None
    return stored.copied(array, target, needs_all=variable._stored.needs_chunks, tick=tick)


def _parts(variable: Variable, array: Array | None) -> Iterator[Selection]:
    """Return the selections that are to be copied: all blocks, or those that are stored, if there are very many."""
    target = variable.array
    is_missing_known = not variable._stored.needs_chunks
    if array is not None and is_missing_known and stored.has_same_fill(array, target, undefined_is_zero=True):
        found = stored.regions(target.shape, [array])
        if found is not None:
            return found
    return blocks(variable)


def slabs(shape: tuple[int, ...], item_size: int) -> Iterator[tuple[slice, ...]]:
    """Yield selections that together cover a shape, each of about 16 MiB.

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
    """Yield selections of whole chunks that together cover the variable, each of moderate size."""
    if not variable.ndim:
        yield ()
        return
    if 0 in variable.shape:
        return
    array = variable.array
    yield from creating.blocks(array._grid, max(array.dtype.itemsize, 1))
